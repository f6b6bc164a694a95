//! The command line: arguments, commands and messages.
//!
//! Everything that knows flags and terminals is here: `args` defines the arguments, `commands` has
//! a file for each subcommand, `report` prints, and `complete` answers shells while a line is
//! typed.

use std::ffi::OsString;

use report::{Exit, Failure};

mod args;
mod commands;
mod complete;
mod report;

/// Run a command line, program name first.
pub(crate) fn run(args: impl Iterator<Item = OsString>) -> Exit {
    let outcome = match std::env::var_os(complete::VARIABLE) {
        Some(shell) => {
            let answer = complete::answer(&shell, args);
            answer.and_then(|answer| report::print_raw(&answer)).map(|()| Exit::Done)
        }
        None => run_command(args),
    };
    tslice::sink::remove_unused();
    match outcome {
        Ok(exit) => exit,
        Err(Failure { quiet: true, exit, .. }) => closed_pipe(exit),
        Err(failure) => {
            failure.print();
            failure.exit
        }
    }
}

fn run_command(args: impl Iterator<Item = OsString>) -> Result<Exit, Failure> {
    tslice::source::raise_open_files();
    #[cfg(feature = "zarr")]
    tslice::execute::use_own_threads_only();
    let args = Vec::from_iter(args);
    if args.iter().take_while(|word| *word != "--").any(|word| word == "--json") {
        report::fail_in_json();
    }
    match args::parse(&args) {
        Ok(command) => commands::run(&command),
        Err(error) => report::misuse(&error, &args)
            .and_then(|what| report::print_raw(&args::text_of(what, &args)).map(|()| Exit::Done)),
    }
}

/// End as a program does that writes to a pipe nobody reads: silently.
fn closed_pipe(exit: Exit) -> Exit {
    // does not return, unless the signal is blocked: then the status alone must tell
    tslice::sink::end_by_closed_pipe();
    exit
}
