//! Text on standard output.

use std::io::{self, BufWriter, Write};

use tslice::format::printable;
use tslice::sink::{self, Destination};

use super::failure::{Failure, plain};

/// Print lines on standard output, with escapes for what is not printable.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    print_by(|out| {
        text.split_inclusive('\n').try_for_each(|line| {
            let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
            out.write_all(printable(line).as_bytes())?;
            out.write_all(end.as_bytes())
        })
    })
}

/// Print on standard output what speaks to a terminal or a shell.
pub(crate) fn print_raw(text: &str) -> Result<(), Failure> {
    print_by(|out| out.write_all(text.as_bytes()))
}

/// Print on standard output what is written by and by.
pub(crate) fn print_by(
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    // Rust's runtime opens `/dev/null` where it was closed, and writing would succeed
    sink::check(&Destination::Stdout, sink::SinkOptions::default()).map_err(Failure::new)?;
    let mut stdout = BufWriter::new(io::stdout().lock());
    let written = write(&mut stdout).and_then(|()| stdout.flush());
    written.map_err(|error| {
        let quiet = error.kind() == io::ErrorKind::BrokenPipe;
        let message = format!("standard output: {}", plain(&error));
        Failure { quiet, ..Failure::new(message) }
    })
}
