//! Text on standard output, and how wide the terminal there is.

use std::io::{self, BufWriter, Write};

use tslice::format::{is_printable, printable};
use tslice::sink::{self, Destination};

use super::failure::{Failure, plain};

/// What ends lines and cells, and does no harm. A string without axes has them as they are: NumPy prints
/// it without quotes.
const ENDS: [char; 2] = ['\n', '\t'];

/// Print lines on standard output, with escapes for what is not printable.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    if text.chars().all(|char| is_printable(char) || ENDS.contains(&char)) {
        return print_raw(text);
    }
    let shown = text.split_inclusive(ENDS).fold(String::new(), |mut shown, cell| {
        let (cell, end) = cell.split_at(cell.trim_end_matches(ENDS).len());
        shown.push_str(&printable(cell));
        shown.push_str(end);
        shown
    });
    print_raw(&shown)
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

/// The columns of the terminal on standard output; where there is none those that `COLUMNS` says, or 80.
pub(crate) fn terminal_columns() -> u64 {
    let asked = || std::env::var("COLUMNS").ok()?.parse().ok().filter(|&columns| columns > 0);
    match rustix::termios::tcgetwinsize(io::stdout()) {
        Ok(size) if size.ws_col > 0 => u64::from(size.ws_col),
        _ => asked().unwrap_or(80),
    }
}
