//! The command-line program: run, and turn the outcome into an exit status.

use std::process::ExitCode;

mod cli;

fn main() -> ExitCode {
    cli::run(std::env::args_os()).into()
}
