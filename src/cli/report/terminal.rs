//! How wide the terminal is.

use std::io;

/// The columns of the terminal on standard output; where there is none those that `COLUMNS` says, or 80.
pub(crate) fn terminal_columns() -> u64 {
    let asked = || std::env::var("COLUMNS").ok()?.parse().ok().filter(|&columns| columns > 0);
    match rustix::termios::tcgetwinsize(io::stdout()) {
        Ok(size) => u64::from(size.ws_col).max(1),
        Err(_) => asked().unwrap_or(80),
    }
}
