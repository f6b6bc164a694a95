//! `tslice completions SHELL`: a script that completes subcommands, flags and file names.

use crate::cli::args::command;
use crate::cli::report::{Failure, print};

/// Print the script.
pub(super) fn run(shell: clap_complete::Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command(), "tslice", &mut script);
    print(&String::from_utf8_lossy(&script))
}
