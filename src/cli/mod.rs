//! The command line: what was typed, what it means, and what is said about it.
//!
//! Everything that knows flags, paths in messages and terminals lives here. Each subcommand has
//! a file that reads as an outline of its job.

use std::ffi::OsString;
use std::io::{self, Write};

use exit::Exit;
use report::Failure;
use tslice::sink::{self, Destination};

mod archive;
mod args;
mod assign;
mod choose;
mod completions;
mod declared;
mod edit;
mod exit;
mod explain;
mod folder;
mod gather;
mod index;
mod info;
mod input;
mod job;
#[cfg(test)]
mod man;
mod misuse;
mod output;
mod progress;
mod report;
mod scatter;
mod shards;
mod slice;
mod table;
mod value;

/// Run a command line, program name first.
pub(crate) fn run(args: impl Iterator<Item = OsString>) -> Exit {
    let command = match args::parse(args) {
        Ok(command) => command,
        Err(error) => return not_parsed(&error),
    };
    let outcome = match command {
        args::Command::Slice(args) => slice::run(&args),
        args::Command::Gather(args) => gather::run(&args),
        args::Command::Scatter(args) => scatter::run(&args),
        args::Command::Assign(args) => assign::run(&args),
        args::Command::Info(args) => info::run(&args),
        args::Command::Explain(args) => explain::run(&args),
        args::Command::Completions { shell } => completions::run(shell),
    };
    match outcome {
        Ok(()) => Exit::Done,
        Err(failure) if failure.quiet => closed_pipe(failure.exit),
        Err(failure) => {
            failure.print();
            failure.exit
        }
    }
}

/// Help and version go to standard output; what was not understood goes to standard error.
fn not_parsed(error: &clap::Error) -> Exit {
    if !error.use_stderr() {
        return match print(&error.render().to_string()) {
            Ok(()) => Exit::Done,
            Err(failure) if failure.quiet => closed_pipe(failure.exit),
            Err(failure) => {
                failure.print();
                failure.exit
            }
        };
    }
    misuse::failure(error).print();
    Exit::Usage
}

/// Print on standard output.
fn print(text: &str) -> Result<(), Failure> {
    // Rust's runtime opens `/dev/null` where it was closed, and writing would succeed
    sink::check(&Destination::Stdout, sink::SinkOptions::default()).map_err(Failure::new)?;
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    written.map_err(|error| output::failed_stdout(&error))
}

/// End as a program does that writes to a pipe nobody reads, without a word: by the signal.
fn closed_pipe(exit: Exit) -> Exit {
    // where the signal is blocked, the status alone must tell
    let _ = signal_hook::low_level::emulate_default_handler(signal_hook::consts::SIGPIPE);
    exit
}
