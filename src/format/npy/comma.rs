//! Types with commas or counts in their string: `'<i4,<i2'`, `'2i4, (2,3)f8'`.
//!
//! They are another spelling of a list of fields named `f0`, `f1` and so on. The rules are those of
//! NumPy's `_check_for_commastring` and `numpy._core._internal._commastring`.
//!
//! ```text
//! '2i4, >f8'  =>  [('f0', 'i4', 2), ('f1', '>f8')]
//! ```

use super::error::DescrError;
use super::literal::{self, PyLiteral};
use crate::format::brief::brief;

/// Whether NumPy reads a type string as one of these.
pub(super) fn is_comma_string(text: &str) -> bool {
    let bare = text.strip_prefix(['<', '>', '=', '|']).unwrap_or(text);
    let mut depth = 0;
    let mut outside = |char| {
        depth += match char {
            '[' => 1,
            ']' => -1,
            _ => 0,
        };
        char == ',' && depth == 0
    };
    bare.starts_with(|first: char| first.is_ascii_digit())
        || bare.starts_with("()")
        || text.chars().any(&mut outside)
}

/// The list of fields that a string stands for; its only type, where it has one without a comma.
pub(super) fn expand(text: &str) -> Result<PyLiteral, DescrError> {
    let unknown = || DescrError::Unknown(format!("'{}'", brief(text)));
    let mut items: Vec<(PyLiteral, Option<PyLiteral>)> = Vec::new();
    let (mut rest, mut is_list) = (text, false);
    while !rest.is_empty() {
        let (item, after) = item(rest).ok_or_else(unknown)?;
        items.push(item);
        rest = after;
        if !rest.trim_end().is_empty() {
            rest = rest.trim_start().strip_prefix(',').ok_or_else(unknown)?.trim_start();
            is_list = true;
        } else {
            rest = "";
        }
    }
    if is_list {
        let field = |(at, (base, shape)): (usize, (PyLiteral, Option<PyLiteral>))| {
            let name = PyLiteral::Str(format!("f{at}"));
            PyLiteral::Tuple([Some(name), Some(base), shape].into_iter().flatten().collect())
        };
        return Ok(PyLiteral::List(items.into_iter().enumerate().map(field).collect()));
    }
    match items.pop().ok_or_else(unknown)? {
        (base, None) => Ok(base),
        (base, Some(shape)) => Ok(PyLiteral::Tuple(vec![base, shape])),
    }
}

/// The first type of a string, its shape, and what follows: an order, a count or a shape, an order,
/// and a type.
fn item(text: &str) -> Option<((PyLiteral, Option<PyLiteral>), &str)> {
    let split = |text: &'_ str, in_part: &dyn Fn(char) -> bool| {
        text.find(|char| !in_part(char)).unwrap_or(text.len())
    };
    let order = |char: char| matches!(char, '<' | '>' | '=' | '|');
    let bare = text.strip_prefix(order).unwrap_or(text);
    let first = &text[..text.len() - bare.len()];

    let spaces = split(bare, &|char| char == ' ');
    let open = spaces + usize::from(bare[spaces..].starts_with('('));
    let numbers = open + split(&bare[open..], &|char| matches!(char, ' ' | ',' | '0'..='9'));
    let close = numbers + usize::from(bare[numbers..].starts_with(')'));
    let count = close + split(&bare[close..], &|char| char == ' ');
    let (count, bare) = bare.split_at(count);

    let typed = bare.strip_prefix(order).unwrap_or(bare);
    let second = &bare[..bare.len() - typed.len()];
    let mut end = split(typed, &|char| char.is_ascii_alphanumeric() || matches!(char, '.' | '?'));
    if let Some(unit) = typed[end..].strip_prefix('[') {
        let len = split(unit, &|char| char.is_ascii_alphanumeric() || matches!(char, ',' | '.'));
        end += if unit[len..].starts_with(']') { len + 2 } else { 0 };
    }
    let (name, rest) = typed.split_at(end);

    let order = match (first, second) {
        (order, "") | ("", order) => order,
        (first, second) if native(first) == native(second) => native(first),
        _ => return None,
    };
    let order = if order == ">" { order } else { "" };
    let base = PyLiteral::Str(format!("{order}{name}"));
    let shape = match count {
        "" => None,
        count if count.trim().is_empty() => return None,
        count => Some(literal::parse(&format!("({count})"), false).ok()?),
    };
    Some(((base, shape), rest))
}

/// A byte order, where `=` is that of the machine.
fn native(order: &str) -> &str {
    if order == "=" { "<" } else { order }
}
