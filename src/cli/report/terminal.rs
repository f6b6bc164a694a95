//! How wide the terminal is.

use std::io;

/// The columns of the terminal on standard output; 80 where there is none.
pub(crate) fn terminal_columns() -> u64 {
    let size = rustix::termios::tcgetwinsize(io::stdout());
    size.map_or(80, |size| u64::from(size.ws_col).max(1))
}
