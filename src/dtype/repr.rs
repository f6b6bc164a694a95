//! Strings as Python's `repr` spells them: names of fields in headers, elements that are printed.

use std::fmt::Write;

/// The quotes around a string, which decide what in it is escaped. Code points are written one by
/// one, so that a string need not be held.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CodePoints {
    quote: char,
}

impl CodePoints {
    /// For a string that holds single quotes, double ones, or both.
    pub(crate) fn new(single: bool, double: bool) -> CodePoints {
        CodePoints { quote: if single && !double { '"' } else { '\'' } }
    }

    /// The character before and after the string.
    pub(crate) fn quote(self) -> char {
        self.quote
    }

    /// Append a code point; one that is no character, such as a lone surrogate, becomes an escape.
    pub(crate) fn write(self, out: &mut String, code: u32) {
        match char::from_u32(code) {
            Some('\\') => out.push_str("\\\\"),
            Some('\n') => out.push_str("\\n"),
            Some('\r') => out.push_str("\\r"),
            Some('\t') => out.push_str("\\t"),
            Some(char) if char == self.quote => out.extend(['\\', char]),
            Some(char) if is_printable(char) => out.push(char),
            // writing to a string cannot fail
            _ => {
                let _ = match code {
                    0..=0xff => write!(out, "\\x{code:02x}"),
                    0x100..=0xffff => write!(out, "\\u{code:04x}"),
                    _ => write!(out, "\\U{code:08x}"),
                };
            }
        }
    }

    /// Append a byte of a string of bytes.
    pub(crate) fn write_byte(self, out: &mut String, byte: u8) {
        match byte {
            0..=0x7f => self.write(out, byte.into()),
            // writing to a string cannot fail
            _ => drop(write!(out, "\\x{byte:02x}")),
        }
    }
}

/// Append a string.
pub(crate) fn write_str(out: &mut String, text: &str) {
    let points = CodePoints::new(text.contains('\''), text.contains('"'));
    out.push(points.quote());
    text.chars().for_each(|char| points.write(out, u32::from(char)));
    out.push(points.quote());
}

/// Whether Python's `str.isprintable` holds: all but the Unicode categories of control, format and
/// private characters, surrogates, what is not assigned, and separators other than the space.
///
/// ```
/// use tslice::format::is_printable;
/// assert!(is_printable('é') && is_printable(' ') && !is_printable('\u{9b}') && !is_printable('\u{202e}'));
/// ```
pub fn is_printable(char: char) -> bool {
    match char {
        ' '..='~' => true,
        '\0'..='\x7f' => false,
        _ => {
            // The standard library escapes these categories in the debug form of a text. At its
            // beginning it escapes combining characters too, so there a letter stands.
            let mut behind_a_letter = [b'a'; 5];
            let len = char.encode_utf8(&mut behind_a_letter[1..]).len() + 1;
            std::str::from_utf8(&behind_a_letter[..len])
                .is_ok_and(|text| text.escape_debug().nth(1) == Some(char))
        }
    }
}
