//! Text of files in messages.

use std::borrow::Cow;

/// The most characters of a text that messages show.
const MOST: usize = 200;

/// A text of any length, such as the name of a tensor, for a message that quotes it: its first 200
/// characters.
pub fn shortened(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(MOST) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

/// The same, with control characters escaped.
pub(super) fn brief(text: &str) -> String {
    let mut brief = String::new();
    for char in shortened(text).chars() {
        if char.is_control() {
            brief.extend(char.escape_default());
        } else {
            brief.push(char);
        }
    }
    brief
}
