//! Python literals, of which `.npy` headers consist, read strictly.
//!
//! Dictionaries, lists, tuples, strings, decimal integers, `True`, `False` and `None` are
//! read as `repr` writes them, of Python 2 and 3, with any white space between them; other
//! spellings, which no program writes into a header, are errors. Depth and number of values are
//! limited, and the time is linear in the text.
//!
//! ```text
//! {'descr': '<f4', 'fortran_order': False, 'shape': (3,), }
//! ```

/// The deepest nesting of brackets, which is also the limit of Python's own tokenizer.
const MAX_DEPTH: usize = 200;

/// The most values in one literal: far more than the fields of any real structure.
const MAX_VALUES: usize = 1_000_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PyLiteral {
    Str(String),
    Int(i128),
    Bool(bool),
    None,
    Tuple(Vec<PyLiteral>),
    List(Vec<PyLiteral>),
    /// The entries in the order of the text.
    Dict(Vec<(PyLiteral, PyLiteral)>),
}

/// Why a text is not a literal, and the position of the fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason} at byte {at} of the header's text")]
pub struct LiteralError {
    at: usize,
    reason: &'static str,
}

/// Parse a text that is a single literal, with white space around it. `long_suffix` allows the
/// integers of Python 2, `3L`, which versions 1.0 and 2.0 of the format may hold.
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
            Some(b'\'' | b'"') => Ok(PyLiteral::Str(self.string()?)),
            Some(b'-' | b'0'..=b'9') => self.integer(),
            Some(_) => self.word(),
            None => Err(self.error("unexpected end")),
        }
    }

    /// Parse the inside of a bracket, one level deeper.
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

    /// Parse values up to `close`; also returns whether a comma follows the last value.
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
            "u" if rest[end..].starts_with(['\'', '"']) => {
                self.at += end;
                return Ok(PyLiteral::Str(self.string()?));
            }
            _ => return Err(self.error("expected a Python literal")),
        };
        self.at += end;
        Ok(value)
    }

    fn integer(&mut self) -> Result<PyLiteral, LiteralError> {
        let rest = self.rest();
        let digits = rest.strip_prefix('-').unwrap_or(rest);
        let count = digits.bytes().take_while(u8::is_ascii_digit).count();
        let (number, after) = rest.split_at(rest.len() - digits.len() + count);
        let long = after.strip_prefix('L').filter(|_| self.long_suffix);
        let after = long.unwrap_or(after);
        if count == 0
            || (count > 1 && digits.starts_with('0'))
            || after.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '.'))
        {
            return Err(self.error("expected an integer"));
        }
        let value = number.parse().map_err(|_| self.error("an integer of too many digits"))?;
        self.at = self.text.len() - after.len();
        Ok(PyLiteral::Int(value))
    }

    /// Parse a string from its opening quote.
    fn string(&mut self) -> Result<String, LiteralError> {
        let quote = self.rest().chars().next();
        self.at += 1;
        let mut value = String::new();
        loop {
            let mut rest = self.rest().chars();
            let char = match rest.next() {
                None => return Err(self.error("an unfinished string")),
                Some('\n' | '\r') => return Err(self.error("a line end in a string")),
                Some('\\') => self.escape()?,
                Some(char) => {
                    self.at += char.len_utf8();
                    if Some(char) == quote {
                        return Ok(value);
                    }
                    char
                }
            };
            value.push(char);
        }
    }

    /// The character for a backslash and the text after it.
    fn escape(&mut self) -> Result<char, LiteralError> {
        let mut after = self.rest()[1..].chars();
        let (char, digits) = match after.next() {
            Some(char @ ('\\' | '\'' | '"')) => (Some(char), 0),
            Some('n') => (Some('\n'), 0),
            Some('r') => (Some('\r'), 0),
            Some('t') => (Some('\t'), 0),
            Some('x') => (None, 2),
            Some('u') => (None, 4),
            Some('U') => (None, 8),
            _ => return Err(self.error("an unknown escape in a string")),
        };
        let hex =
            after.as_str().get(..digits).filter(|it| it.bytes().all(|c| c.is_ascii_hexdigit()));
        let coded = || char::from_u32(u32::from_str_radix(hex?, 16).ok()?);
        let char = char.or_else(coded).ok_or_else(|| self.error("a bad character code"))?;
        self.at += 2 + digits;
        Ok(char)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::write_str;
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
            "1_0",
            "0x2",
            "-",
            "+3",
            "3LL",
            "1e0",
            "9999999999999999999999999999999999999999",
        ] {
            assert!(parse(bad, true).is_err(), "{bad}");
        }
    }

    #[test]
    fn strings_that_no_program_writes_are_errors() {
        for odd in [
            r"r'a'",
            "'''a'''",
            "'a' 'b'",
            "'a' # b",
            "(1, \\\n2)",
            r"'\a'",
            r"'\101'",
            r"'\N{DIGIT ONE}'",
        ] {
            assert!(parse(odd, false).is_err(), "{odd}");
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
