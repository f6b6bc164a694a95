//! The Python literals that `.npy` headers consist of: read strictly, written as `repr` does.
//!
//! Dictionaries, lists, tuples, strings and bytes in all their spellings, integers, `True`,
//! `False`, `None`, comments and continued lines are known, but not what they mean. All that
//! np.load reads is read, except floats and characters by their Unicode names, which get errors of
//! their own. Depth and number of values are capped, and the time is linear in the text.
//!
//! ```text
//! {'descr': '<f4', 'fortran_order': False, 'shape': (3,), }
//! ```

use std::fmt::Write;

use crate::dtype::{CodePoints, write_str};
use crate::element::integer_literal;

/// The deepest nesting of brackets, which is also the limit of Python's own tokenizer.
const MAX_DEPTH: usize = 200;

/// The most values in one literal: far more than the fields of any real structure.
const MAX_VALUES: usize = 1_000_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PyLiteral {
    Str(String),
    Bytes(Vec<u8>),
    Int(i128),
    Bool(bool),
    None,
    Tuple(Vec<PyLiteral>),
    List(Vec<PyLiteral>),
    /// The entries in the order of the text.
    Dict(Vec<(PyLiteral, PyLiteral)>),
}

/// Why a text is not a literal, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason} at byte {at} of the header's text")]
pub struct LiteralError {
    at: usize,
    reason: &'static str,
}

/// Parse a text that is one literal, with white space around it. `long_suffix` allows the integers
/// of Python 2, `3L`, which versions 1.0 and 2.0 of the format may hold.
pub(super) fn parse(text: &str, long_suffix: bool) -> Result<PyLiteral, LiteralError> {
    if let Some(at) = text.find('\0') {
        return Err(LiteralError { at, reason: "a NUL" });
    }
    let mut parser = LiteralParser { text, at: 0, depth: 0, values: 0, long_suffix };
    let value = parser.value()?;
    match parser.peek() {
        None => Ok(value),
        Some(_) => Err(parser.error("unexpected text after the dictionary")),
    }
}

struct LiteralParser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    values: usize,
    long_suffix: bool,
}

impl<'a> LiteralParser<'a> {
    fn error(&self, reason: &'static str) -> LiteralError {
        LiteralError { at: self.at, reason }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// The next byte that is neither white space nor in a comment; a backslash continues the line.
    fn peek(&mut self) -> Option<u8> {
        let mut rest = self.rest();
        loop {
            rest = rest.trim_start_matches([' ', '\t', '\n', '\r', '\x0c']);
            let comment = rest
                .strip_prefix('#')
                .map(|text| text.find(['\n', '\r']).map_or("", |end| &text[end..]));
            let continued =
                ["\\\r\n", "\\\n", "\\\r"].iter().find_map(|end| rest.strip_prefix(end));
            match comment.or(continued) {
                Some(after) => rest = after,
                None => break,
            }
        }
        self.at = self.text.len() - rest.len();
        rest.bytes().next()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn value(&mut self) -> Result<PyLiteral, LiteralError> {
        self.values += 1;
        if self.values > MAX_VALUES {
            return Err(self.error("more than 1000000 values"));
        }
        match self.peek() {
            Some(b'{') => self.nested(Self::dict),
            Some(b'[') => self.nested(|parser| Ok(PyLiteral::List(parser.items(b']')?.0))),
            Some(b'(') => self.nested(Self::tuple),
            Some(b'\'' | b'"') => self.strings(),
            Some(b'-' | b'+') => self.signed(),
            Some(b'0'..=b'9') => self.integer(false),
            Some(_) => self.word(),
            None => Err(self.error("unexpected end")),
        }
    }

    /// Parse what stands in a bracket, one level deeper.
    fn nested(
        &mut self,
        inside: impl FnOnce(&mut Self) -> Result<PyLiteral, LiteralError>,
    ) -> Result<PyLiteral, LiteralError> {
        if self.depth == MAX_DEPTH {
            return Err(self.error("brackets nested deeper than 200 levels"));
        }
        self.at += 1;
        self.depth += 1;
        let value = inside(self)?;
        self.depth -= 1;
        Ok(value)
    }

    /// Parse values up to `close`; also says whether the last had a comma after it.
    fn items(&mut self, close: u8) -> Result<(Vec<PyLiteral>, bool), LiteralError> {
        let mut items = Vec::new();
        let mut comma = false;
        while !self.eat(close) {
            if !items.is_empty() && !comma {
                return Err(self.error("expected a comma or a closing bracket"));
            }
            items.push(self.value()?);
            comma = self.eat(b',');
        }
        Ok((items, comma))
    }

    fn tuple(&mut self) -> Result<PyLiteral, LiteralError> {
        let (mut items, comma) = self.items(b')')?;
        let is_one = items.len() == 1 && !comma;
        Ok(if is_one { items.remove(0) } else { PyLiteral::Tuple(items) })
    }

    fn dict(&mut self) -> Result<PyLiteral, LiteralError> {
        let mut entries = Vec::new();
        let mut comma = true;
        while !self.eat(b'}') {
            if !comma {
                return Err(self.error("expected a comma or a closing brace"));
            }
            let key = self.value()?;
            if !self.eat(b':') {
                return Err(self.error("expected a colon"));
            }
            entries.push((key, self.value()?));
            comma = self.eat(b',');
        }
        Ok(PyLiteral::Dict(entries))
    }

    fn word(&mut self) -> Result<PyLiteral, LiteralError> {
        let rest = self.rest();
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
        let value = match &rest[..end] {
            "True" => PyLiteral::Bool(true),
            "False" => PyLiteral::Bool(false),
            "None" => PyLiteral::None,
            _ if rest[end..].starts_with(['\'', '"']) => return self.strings(),
            _ => return Err(self.error("expected a Python literal")),
        };
        self.at += end;
        Ok(value)
    }

    /// Parse an integer after a sign; brackets may stand around it, as in Python.
    fn signed(&mut self) -> Result<PyLiteral, LiteralError> {
        let negative = self.rest().starts_with('-');
        self.at += 1;
        match self.peek() {
            Some(b'0'..=b'9') => self.integer(negative),
            Some(b'(') => match self.nested(Self::tuple)? {
                PyLiteral::Int(value) if value >= 0 => {
                    Ok(PyLiteral::Int(if negative { -value } else { value }))
                }
                _ => Err(self.error("expected an integer")),
            },
            _ => Err(self.error("expected an integer")),
        }
    }

    fn integer(&mut self, negative: bool) -> Result<PyLiteral, LiteralError> {
        let rest = self.rest();
        let (prefix, radix) = match rest.get(..2) {
            Some("0x" | "0X") => (2, 16),
            Some("0o" | "0O") => (2, 8),
            Some("0b" | "0B") => (2, 2),
            _ => (0, 10),
        };
        let is_digit = |c: char| c.is_digit(radix) || c == '_';
        let end = rest[prefix..].find(|c| !is_digit(c)).map_or(rest.len(), |end| prefix + end);
        let digits = &rest[..end];
        let is_zero = digits.bytes().all(|it| matches!(it, b'0' | b'_'));
        let leading = radix == 10 && digits.starts_with('0') && !is_zero;
        let suffix = usize::from(self.long_suffix && rest[end..].starts_with('L'));
        let after = &rest[end + suffix..];
        if after.starts_with(['.', 'e', 'E', 'j', 'J']) {
            return Err(self.error("a number that is no integer"));
        }
        let goes_on = after.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        let value = integer_literal(digits).filter(|_| !leading && !goes_on);
        let value = value.ok_or_else(|| self.error("expected an integer"))?;
        let value = value.ok_or_else(|| self.error("an integer of too many digits"))?;
        self.at += end + suffix;
        Ok(PyLiteral::Int(if negative { -value } else { value }))
    }

    /// Parse adjacent strings, or bytes, as one.
    fn strings(&mut self) -> Result<PyLiteral, LiteralError> {
        let (bytes, mut joined) = self.string()?;
        loop {
            self.peek();
            let letters = self.rest().bytes().take_while(u8::is_ascii_alphabetic).count();
            if letters > 2 || !self.rest()[letters..].starts_with(['\'', '"']) {
                let latin1 = || joined.chars().filter_map(|char| u8::try_from(char).ok()).collect();
                return Ok(if bytes { PyLiteral::Bytes(latin1()) } else { PyLiteral::Str(joined) });
            }
            let (are_bytes, more) = self.string()?;
            if are_bytes != bytes {
                return Err(self.error("bytes and a string cannot be joined"));
            }
            joined.push_str(&more);
        }
    }

    /// Parse one string; also says whether it is bytes, which become the characters of their
    /// numbers.
    fn string(&mut self) -> Result<(bool, String), LiteralError> {
        let rest = self.rest();
        let quote_at = rest.find(['\'', '"']).unwrap_or_default();
        let (bytes, raw) = match rest[..quote_at].to_ascii_lowercase().as_str() {
            "" | "u" => (false, false),
            "r" => (false, true),
            "b" => (true, false),
            "br" | "rb" => (true, true),
            _ => return Err(self.error("expected a Python literal")),
        };
        let opened = &rest[quote_at..];
        let triple = opened.starts_with("'''") || opened.starts_with("\"\"\"");
        let quote = &opened[..if triple { 3 } else { 1 }];
        self.at += quote_at + quote.len();
        let mut value = String::new();
        loop {
            let rest = self.rest();
            if rest.starts_with(quote) {
                self.at += quote.len();
                return Ok((bytes, value));
            }
            let Some(char) = rest.chars().next() else {
                return Err(self.error("an unfinished string"));
            };
            match char {
                '\n' | '\r' if !triple => return Err(self.error("a line end in a string")),
                // Python reads each kind of line end as this one
                '\r' => {
                    self.at += usize::from(rest.starts_with("\r\n"));
                    value.push('\n');
                }
                '\\' => {
                    self.escape(raw, bytes, &mut value)?;
                    continue;
                }
                _ if bytes && !char.is_ascii() => return Err(self.error("bytes must be ASCII")),
                _ => value.push(char),
            }
            self.at += char.len_utf8();
        }
    }

    /// Append what a backslash and the characters after it stand for.
    fn escape(&mut self, raw: bool, bytes: bool, value: &mut String) -> Result<(), LiteralError> {
        let mut after = self.rest()[1..].chars();
        let escape = after.next().ok_or_else(|| self.error("an unfinished string"))?;
        let line_end = if self.rest()[1..].starts_with("\r\n") { 2 } else { 1 };
        if bytes && !escape.is_ascii() {
            return Err(self.error("bytes must be ASCII"));
        }
        if raw {
            value.extend(['\\', if escape == '\r' { '\n' } else { escape }]);
            self.at += 1 + if matches!(escape, '\n' | '\r') { line_end } else { escape.len_utf8() };
            return Ok(());
        }
        let hex = |digits: usize| {
            let text = after.as_str().get(..digits).unwrap_or_default();
            (code_point(text, 16), 2 + digits)
        };
        let (char, len) = match escape {
            '\n' | '\r' => {
                self.at += 1 + line_end;
                return Ok(());
            }
            '\\' | '\'' | '"' => (Some(escape), 2),
            'n' => (Some('\n'), 2),
            'r' => (Some('\r'), 2),
            't' => (Some('\t'), 2),
            'a' => (Some('\x07'), 2),
            'b' => (Some('\x08'), 2),
            'f' => (Some('\x0c'), 2),
            'v' => (Some('\x0b'), 2),
            'x' => hex(2),
            'u' if !bytes => hex(4),
            'U' if !bytes => hex(8),
            'N' if !bytes => return Err(self.error("a character by its Unicode name")),
            '0'..='7' => {
                let text = &self.rest()[1..];
                let digits = text.bytes().take(3).take_while(|it| (b'0'..=b'7').contains(it));
                let count = digits.count();
                (code_point(&text[..count], 8).filter(|&it| !bytes || it < '\u{100}'), 1 + count)
            }
            // anything else is kept, with the backslash
            _ => {
                value.push('\\');
                self.at += 1;
                return Ok(());
            }
        };
        value.push(char.ok_or_else(|| self.error("a bad character code"))?);
        self.at += len;
        Ok(())
    }
}

fn code_point(digits: &str, radix: u32) -> Option<char> {
    let whole = !digits.is_empty() && digits.chars().all(|digit| digit.is_digit(radix));
    whole.then(|| u32::from_str_radix(digits, radix).ok().and_then(char::from_u32)).flatten()
}

/// Append a value as Python's `repr` spells it.
pub(super) fn write(out: &mut String, value: &PyLiteral) {
    match value {
        PyLiteral::Str(text) => write_str(out, text),
        PyLiteral::Bytes(bytes) => write_bytes(out, bytes),
        // Writing to a String cannot fail.
        PyLiteral::Int(value) => drop(write!(out, "{value}")),
        PyLiteral::Bool(true) => out.push_str("True"),
        PyLiteral::Bool(false) => out.push_str("False"),
        PyLiteral::None => out.push_str("None"),
        PyLiteral::Tuple(items) => {
            write_items(out, ['(', ')'], items);
            if items.len() == 1 {
                out.insert(out.len() - 1, ',');
            }
        }
        PyLiteral::List(items) => write_items(out, ['[', ']'], items),
        PyLiteral::Dict(entries) => {
            out.push('{');
            for (at, (key, value)) in entries.iter().enumerate() {
                out.push_str(if at > 0 { ", " } else { "" });
                write(out, key);
                out.push_str(": ");
                write(out, value);
            }
            out.push('}');
        }
    }
}

fn write_items(out: &mut String, brackets: [char; 2], items: &[PyLiteral]) {
    out.push(brackets[0]);
    for (at, item) in items.iter().enumerate() {
        out.push_str(if at > 0 { ", " } else { "" });
        write(out, item);
    }
    out.push(brackets[1]);
}

fn write_bytes(out: &mut String, bytes: &[u8]) {
    let points = CodePoints::new(bytes.contains(&b'\''), bytes.contains(&b'"'));
    out.extend(['b', points.quote()]);
    bytes.iter().for_each(|&byte| points.write_byte(out, byte));
    out.push(points.quote());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn int(value: i128) -> PyLiteral {
        PyLiteral::Int(value)
    }

    #[test]
    fn tuples_need_a_comma() {
        assert_eq!(parse("(3)", false), Ok(int(3)));
        assert_eq!(parse("(3,)", false), Ok(PyLiteral::Tuple(vec![int(3)])));
        assert_eq!(parse(" ( ) \n", false), Ok(PyLiteral::Tuple(vec![])));
        assert_eq!(parse("(3, -4, )", false), Ok(PyLiteral::Tuple(vec![int(3), int(-4)])));
        assert!(parse("(,)", false).is_err());
        assert!(parse("(3 4)", false).is_err());
        assert!(parse("{1: 2 3: 4}", false).is_err());
    }

    #[test]
    fn long_integers_are_python_2() {
        assert_eq!(parse("3L", true), Ok(int(3)));
        assert!(parse("3L", false).is_err());
        for bad in [
            "03",
            "3.0",
            "1__0",
            "0x",
            "-",
            "+-3",
            "3LL",
            "1e0",
            "99999999999999999999999999999999999999999",
        ] {
            assert!(parse(bad, true).is_err(), "{bad}");
        }
    }

    #[test]
    fn nesting_is_capped() {
        let nested = |depth| "(".repeat(depth) + &")".repeat(depth);
        assert!(parse(&nested(MAX_DEPTH), false).is_ok());
        assert!(parse(&nested(MAX_DEPTH + 1), false).is_err());
        assert!(parse(&"[".repeat(1_000_000), false).is_err());
    }

    #[test]
    fn strings_are_spelled_as_repr_does() {
        // Each pair is (text, repr(text)) of Python 3.11.
        for (text, repr) in [
            ("a'b", r#""a'b""#),
            ("a\"b", r#"'a"b'"#),
            ("a'\"b", r#"'a\'"b'"#),
            ("\0\n\t\r\\\x7f\u{80}\u{a0}\u{ad}é", r"'\x00\n\t\r\\\x7f\x80\xa0\xadé'"),
            ("\u{301}\u{200b}\u{3042}\u{2028}", "'\u{301}\\u200b\u{3042}\\u2028'"),
            ("\u{1f600}\u{e0001}\u{10ffff}", "'\u{1f600}\\U000e0001\\U0010ffff'"),
        ] {
            let mut spelled = String::new();
            write_str(&mut spelled, text);
            assert_eq!(spelled, repr);
        }
    }

    #[test]
    fn errors_say_where() {
        let error = parse("{'a': x}", false).unwrap_err();
        assert_eq!(error.to_string(), "expected a Python literal at byte 6 of the header's text");
        assert!(parse(r"'\ud800'", false).is_err());
        assert!(parse(r"'\x+1'", false).is_err());
        assert!(parse("u'x", false).is_err());
    }

    proptest! {
        #[test]
        fn any_string_is_read_back(text in any::<String>()) {
            let mut spelled = String::new();
            write_str(&mut spelled, &text);
            prop_assert_eq!(parse(&spelled, false), Ok(PyLiteral::Str(text)));
        }

        #[test]
        fn nothing_panics(text in r#"[\\(){}\[\]'",:uxL0-9 TF-]{0,40}"#, long in any::<bool>()) {
            let _ = parse(&text, long);
        }
    }
}
