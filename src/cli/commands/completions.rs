//! `tslice completions SHELL`: the script that makes a shell ask for completions.

use crate::cli::args::Shell;
use crate::cli::complete::script;
use crate::cli::report::{Failure, print_raw};

/// Print the script.
pub(super) fn run(shell: Shell) -> Result<(), Failure> {
    print_raw(script(shell))
}
