//! Text of files in messages.

/// Text of a file for a message: control characters escaped, at most 200 characters.
pub(super) fn brief(text: &str) -> String {
    const MOST: usize = 200;
    let mut brief = String::new();
    for char in text.chars().take(MOST) {
        if char.is_control() {
            brief.extend(char.escape_default());
        } else {
            brief.push(char);
        }
    }
    if text.chars().nth(MOST).is_some() {
        brief.push('…');
    }
    brief
}
