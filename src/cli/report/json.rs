//! JSON for programs, which is safe to look at in a terminal too.

use std::fmt::{self, Write};

use serde_json::Value;
use tslice::internals::format;

/// Prints a value on one line, with escapes in its texts for what is not printable.
pub(crate) struct Json<'a>(pub(crate) &'a Value);

impl fmt::Display for Json<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(Escaped(f), "{}", self.0)
    }
}

struct Escaped<'a, 'b>(&'a mut fmt::Formatter<'b>);

impl Write for Escaped<'_, '_> {
    fn write_str(&mut self, json: &str) -> fmt::Result {
        format::write_printable_json(self.0, json)
    }
}
