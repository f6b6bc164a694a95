//! JSON for programs, which is also safe to look at in a terminal.

use std::fmt;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use serde_json::{Value, json};
use tslice::format;
use tslice::source::remote::mask_secrets;

use super::failure::Failure;

/// Prints a value on one line; what is not printable is escaped.
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

pub(super) fn of_note(note: &Failure) -> Value {
    let masked = |text: &str| mask_secrets(text).into_owned();
    json!({ "note": masked(&note.message), "hint": note.hint.as_deref().map(masked) })
}

/// A failure as an object. `caret` has the expression at fault, and the range of the fault in
/// bytes.
pub(super) fn of_failure(failure: &Failure) -> Value {
    let masked = |text: &str| mask_secrets(text).into_owned();
    let hint = failure.hint.as_deref().or(failure.usage.as_deref());
    let mut value = json!({
        "error": masked(&failure.message),
        "hint": hint.map(masked),
        "exit": failure.exit.status(),
    });
    if let Some((text, span)) = &failure.caret {
        value["at"] = json!({ "text": masked(text), "start": span.start, "end": span.end });
    }
    value
}

/// Write a name as addresses do, with `%XX` for all bytes but ASCII letters, digits and `-._~/`;
/// `None` if it is UTF-8, and needs no such spelling.
pub(crate) fn percent_encoded(path: &Path) -> Option<String> {
    if path.to_str().is_some() {
        return None;
    }
    let encoded = path.as_os_str().as_bytes().iter().map(|&byte| match byte {
        b'-' | b'.' | b'_' | b'~' | b'/' => char::from(byte).to_string(),
        byte if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    });
    Some(encoded.collect())
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[test]
    fn only_what_is_not_utf_8_is_encoded() {
        let encoded = |name: &[u8]| percent_encoded(Path::new(OsStr::from_bytes(name)));
        assert_eq!(encoded("é a.npy".as_bytes()), None);
        assert_eq!(encoded(b"d/\xe9 100%.npy").as_deref(), Some("d/%E9%20100%25.npy"));
    }
}
