//! Text on standard output.

use std::io::{self, BufWriter, Write};

use tslice::sink::{self, Destination};

use super::failure::{Failure, plain};

/// Print on standard output.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
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
