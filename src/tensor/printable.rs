//! Text from files in messages, shortened and printable.
//!
//! One rule decides everywhere what is printable, Python's `str.isprintable`: no control character
//! reaches a terminal, no mark turns the direction of a line, and nothing is invisible. NumPy prints
//! strings by this rule.

use std::borrow::Cow;
use std::fmt;

use crate::dtype::is_printable;

/// The most characters of a text that messages show.
const MOST: usize = 200;

/// The first 200 characters of a text, such as the name of a tensor, for a message that quotes it.
pub fn shortened(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(MOST) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

/// The beginning of a text, shortened and printable; escapes do not make it longer either.
pub(crate) fn brief(text: &str) -> String {
    shortened(&printable(&shortened(text))).into_owned()
}

/// A text on one line, with escapes (`\n`, `\u{202e}`) for all characters that are not printable.
pub fn printable(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_printable) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for char in text.chars() {
        if is_printable(char) { shown.push(char) } else { shown.extend(char.escape_default()) }
    }
    Cow::Owned(shown)
}

/// Append JSON, with escapes (`\u202e`) for characters in strings that are not printable.
pub fn write_printable_json(out: &mut dyn fmt::Write, json: &str) -> fmt::Result {
    if json.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return out.write_str(json);
    }
    for part in json.split_inclusive(|char| !is_printable(char)) {
        match part.char_indices().next_back().filter(|&(_, last)| !is_printable(last)) {
            None => out.write_str(part)?,
            Some((at, last)) => {
                out.write_str(&part[..at])?;
                for unit in last.encode_utf16(&mut [0; 2]) {
                    write!(out, "\\u{unit:04x}")?;
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_printable_is_escaped() {
        let name = "a\u{9b}\u{85}\u{7f}\u{202e}\u{2028}\u{200d}\u{e000}\u{1b}\n\u{e0001}é\u{301} z";
        let shown = "a\\u{9b}\\u{85}\\u{7f}\\u{202e}\\u{2028}\\u{200d}\\u{e000}\\u{1b}\\n\\u{e0001}é\u{301} z";
        assert_eq!(printable(name), shown);
        assert_eq!(brief(name), shown);
        assert!(matches!(printable(shown), Cow::Borrowed(_)));
    }

    #[test]
    fn all_characters_are_escaped_or_printable() {
        for char in '\0'..=char::MAX {
            let text = String::from(char);
            let shown = printable(&text);
            assert!(shown.chars().all(is_printable), "{char:?}");
            assert_eq!(shown == text, is_printable(char), "{char:?}");
            // control and surrogate-like categories that no version of Unicode makes printable
            if char.is_control() || char.is_whitespace() && char != ' ' {
                assert!(!is_printable(char), "{char:?}");
            }
            if char.is_alphanumeric() {
                assert!(is_printable(char), "{char:?}");
            }
        }
    }

    #[test]
    fn json_means_the_same_and_is_printable() {
        for char in '\0'..=char::MAX {
            let text = format!("{char}a{char}");
            let mut json = String::new();
            write_printable_json(&mut json, &serde_json::to_string(&text).unwrap()).unwrap();
            assert!(json.chars().all(is_printable), "{char:?}");
            assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
        }
    }
}
