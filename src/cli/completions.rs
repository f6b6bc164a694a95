//! `tslice completions SHELL`: a script that completes subcommands, flags and file names.

use super::args;
use super::report::Failure;

/// Print the script.
pub(crate) fn run(shell: clap_complete::Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut args::command(), "tslice", &mut script);
    super::print(&String::from_utf8_lossy(&script))
}
