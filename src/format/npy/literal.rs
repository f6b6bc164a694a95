//! Python literals, as far as `.npy` headers are made of them: read strictly, written as `repr`.
//!
//! Knows dictionaries, lists, tuples, strings, integers, `True`, `False` and `None`; knows nothing
//! of what they mean. Depth and number of values are capped, the time is linear in the text.
//!
//! ```text
//! {'descr': '<f4', 'fortran_order': False, 'shape': (3,), }
//! ```

use std::fmt::Write;

/// The deepest nesting of brackets, which is also the limit of Python's own tokenizer.
const MAX_DEPTH: usize = 200;

/// The most values in one literal: far more than the fields of any real structure.
const MAX_VALUES: usize = 1_000_000;

/// A value that a literal stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PyLiteral {
    /// `'text'` or `"text"`.
    Str(String),
    /// A decimal integer.
    Int(i128),
    /// `True` or `False`.
    Bool(bool),
    /// `None`.
    None,
    /// `(a, b)`.
    Tuple(Vec<PyLiteral>),
    /// `[a, b]`.
    List(Vec<PyLiteral>),
    /// `{a: b}`, entries in their order.
    Dict(Vec<(PyLiteral, PyLiteral)>),
}

/// Why a text is no literal, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason} at byte {at} of the header's text")]
pub struct LiteralError {
    at: usize,
    reason: &'static str,
}

/// Read a text that is one literal, white space around it allowed.
///
/// `long_suffix` allows the integers of Python 2, `3L`, which versions 1.0 and 2.0 may hold.
pub(super) fn parse(text: &str, long_suffix: bool) -> Result<PyLiteral, LiteralError> {
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

    /// The next byte that is not white space.
    fn peek(&mut self) -> Option<u8> {
        let rest = self.rest().trim_start_matches([' ', '\t', '\n', '\r', '\x0c']);
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
            Some(b'\'' | b'"') => self.string().map(PyLiteral::Str),
            Some(b'-' | b'0'..=b'9') => self.integer(),
            Some(_) => self.word(),
            None => Err(self.error("unexpected end")),
        }
    }

    /// Read what stands in a bracket, one level deeper.
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

    /// Values up to `close`, and whether the last had a comma after it.
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
        Ok(match items.pop() {
            Some(only) if items.is_empty() && !comma => only,
            Some(last) => {
                items.push(last);
                PyLiteral::Tuple(items)
            }
            None => PyLiteral::Tuple(items),
        })
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
            "u" | "U" if rest[end..].starts_with(['\'', '"']) => {
                self.at += end;
                return self.string().map(PyLiteral::Str);
            }
            _ => return Err(self.error("expected a Python literal")),
        };
        self.at += end;
        Ok(value)
    }

    fn integer(&mut self) -> Result<PyLiteral, LiteralError> {
        let rest = self.rest();
        let sign = usize::from(rest.starts_with('-'));
        let digits = rest[sign..].bytes().take_while(u8::is_ascii_digit).count();
        let end = sign + digits;
        if digits == 0 || (digits > 1 && rest[sign..].starts_with('0')) {
            return Err(self.error("expected a decimal integer"));
        }
        let value = rest[..end].parse().map_err(|_| self.error("an integer of too many digits"))?;
        let suffix = usize::from(self.long_suffix && rest[end..].starts_with('L'));
        if rest[end + suffix..].starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '.') {
            return Err(self.error("expected a decimal integer"));
        }
        self.at += end + suffix;
        Ok(PyLiteral::Int(value))
    }

    fn string(&mut self) -> Result<String, LiteralError> {
        let mut value = String::new();
        let mut chars = self.rest().char_indices();
        let quote = chars.next().map_or('\'', |(_, quote)| quote);
        let start = self.at;
        while let Some((position, char)) = chars.next() {
            self.at = start + position;
            match char {
                _ if char == quote => {
                    self.at += 1;
                    return Ok(value);
                }
                '\n' | '\r' | '\0' => return Err(self.error("a line end or NUL in a string")),
                '\\' => {
                    let (_, escape) =
                        chars.next().ok_or_else(|| self.error("an unfinished string"))?;
                    let simple = match escape {
                        '\\' | '\'' | '"' => Some(escape),
                        'n' => Some('\n'),
                        'r' => Some('\r'),
                        't' => Some('\t'),
                        'a' => Some('\x07'),
                        'b' => Some('\x08'),
                        'f' => Some('\x0c'),
                        'v' => Some('\x0b'),
                        _ => None,
                    };
                    let digits = match escape {
                        'x' => 2,
                        'u' => 4,
                        'U' => 8,
                        _ if simple.is_some() => 0,
                        _ => return Err(self.error("an escape that repr never writes")),
                    };
                    value.push(match simple {
                        Some(char) => char,
                        None => {
                            let hex = chars.as_str().get(..digits).unwrap_or_default();
                            chars.by_ref().take(digits).for_each(drop);
                            code_point(hex).ok_or_else(|| self.error("a bad character code"))?
                        }
                    });
                }
                _ => value.push(char),
            }
        }
        Err(self.error("an unfinished string"))
    }
}

fn code_point(hex: &str) -> Option<char> {
    let is_hex = !hex.is_empty() && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex.then(|| u32::from_str_radix(hex, 16).ok().and_then(char::from_u32)).flatten()
}

/// Append a string as Python's `repr` spells it.
pub(super) fn write_str(out: &mut String, text: &str) {
    write_code_points(out, text.chars().map(u32::from));
}

/// Append a string of code points as Python's `repr` spells it; those that are no characters, such
/// as lone surrogates, become escapes.
pub(crate) fn write_code_points(out: &mut String, codes: impl Iterator<Item = u32> + Clone) {
    let holds = |quote: char| codes.clone().any(|code| code == u32::from(quote));
    let quote = if holds('\'') && !holds('"') { '"' } else { '\'' };
    out.push(quote);
    for code in codes {
        match char::from_u32(code) {
            Some('\\') => out.push_str("\\\\"),
            Some('\n') => out.push_str("\\n"),
            Some('\r') => out.push_str("\\r"),
            Some('\t') => out.push_str("\\t"),
            Some(char) if char == quote => out.extend(['\\', char]),
            Some(char) if is_printable(char) => out.push(char),
            // Writing to a String cannot fail.
            _ => {
                let _ = match code {
                    0..=0xff => write!(out, "\\x{code:02x}"),
                    0x100..=0xffff => write!(out, "\\u{code:04x}"),
                    _ => write!(out, "\\U{code:08x}"),
                };
            }
        }
    }
    out.push(quote);
}

/// Whether Python's `str.isprintable` holds.
///
/// Rust and Python name the same Unicode categories unprintable. `char::escape_debug` also escapes
/// combining characters, but `str::escape_debug` does so at the beginning of a string only.
fn is_printable(char: char) -> bool {
    match char {
        ' '..='~' => true,
        '\0'..='\x7f' => false,
        _ => {
            let mut behind_a_letter = [b'a'; 5];
            let len = char.encode_utf8(&mut behind_a_letter[1..]).len() + 1;
            std::str::from_utf8(&behind_a_letter[..len])
                .is_ok_and(|text| text.escape_debug().nth(1) == Some(char))
        }
    }
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
        for bad in
            ["03", "3.0", "1_000", "0x10", "-", "3LL", "99999999999999999999999999999999999999999"]
        {
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
