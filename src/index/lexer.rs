//! The shared base of this module's parsers: a cursor, Python's integer literals, errors with
//! position.
//!
//! Text is read in one pass, in linear time. A [`Literal`] may have any number of digits; the
//! parser narrows it to what it needs (an index, a bound, a mask).
//!
//! The rules are those of the Python language reference, "Integer literals".

use std::ops::Range;

use super::Malformed;

/// A text that is not a valid index expression, list or mask.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind}")]
pub struct ParseError {
    /// The byte range of the error in the text; empty at its end.
    pub span: Range<usize>,
    #[doc(hidden)]
    pub kind: ParseErrorKind,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseErrorKind {
    /// A character that the grammar does not allow here.
    #[error("expected {expected}, found '{found}'")]
    Unexpected {
        expected: &'static str,
        /// Printable ASCII.
        found: char,
    },
    #[error("expected {expected} at the end")]
    UnexpectedEnd {
        /// The text that the grammar allows here.
        expected: &'static str,
    },
    /// A character that is valid nowhere; digits and spaces must be ASCII.
    #[error("invalid character {0:?} (U+{code:04X})", code = u32::from(*.0))]
    InvalidCharacter(char),
    #[error("'{0}' was never closed")]
    NeverClosed(char),
    #[error("unmatched '{0}'")]
    Unmatched(char),
    /// `0x` without digits, `1__0`, `12ab`.
    #[error("invalid {0} literal")]
    InvalidLiteral(&'static str),
    #[error("leading zeros in decimal integer literals are not permitted")]
    LeadingZeros,
    #[error("{0} does not fit into 64 bits")]
    TooLarge(&'static str),
    /// A Python expression that is not an index: a float, a bool, a string, a name.
    #[error(
        "only integers, slices (':'), ellipsis ('...'), None, lists and files ('@FILE') are valid \
         indices"
    )]
    NotAnIndex,
    #[error("a bare True or False is not an index; in a list it is a mask: [True, False]")]
    BareBool,
    #[error("a list holds integers or booleans, not both")]
    MixedList,
    #[error("shuffle needs a seed, an integer from 0 to 2^64 - 1: shuffle(42)")]
    Seed,
    #[error("only one slice may follow a shuffle: shuffle(42)[:8000]")]
    ShuffleSlice,
    #[error("a comparison needs a number, True or False after its sign: @FILE==3")]
    NotCompared,
    #[error("a comparison with nan has the same result for all elements")]
    NanCompared,
    #[error("an item with the name of a dimension is an integer, a slice or a list")]
    NamedItem,
    #[error("either all items have names of dimensions, or none: [time=0, lat=10:20]")]
    SomeNamed,
    #[error("{0:?} has an item already")]
    NamedTwice(String),
    #[error("the quotation mark was never closed")]
    OpenQuote,
    #[error("slice indices must be integers or None")]
    NotABound,
    #[error("all lists of one depth must have one length")]
    Ragged,
    #[error("a mask cannot be negative")]
    NegativeMask,
    #[error("too many nested brackets")]
    TooDeep,
    #[error(transparent)]
    Malformed(#[from] Malformed),
}

impl ParseErrorKind {
    pub(super) fn at(self, span: Range<usize>) -> ParseError {
        ParseError { span, kind: self }
    }
}

/// An integer literal of any number of digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Literal {
    pub(super) negative: bool,
    /// Saturates at 2^128 - 1.
    pub(super) magnitude: u128,
}

impl Literal {
    pub(super) fn exact(self) -> Option<i64> {
        let magnitude = i128::try_from(self.magnitude).ok()?;
        i64::try_from(if self.negative { -magnitude } else { magnitude }).ok()
    }

    pub(super) fn saturated(self) -> i64 {
        self.exact().unwrap_or(if self.negative { i64::MIN } else { i64::MAX })
    }
}

pub(super) struct Cursor<'a> {
    text: &'a str,
    /// The byte offset of the next character in the whole text; always on a character boundary.
    pub(super) at: usize,
    end: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str, part: Range<usize>) -> Self {
        Cursor { text, at: part.start, end: part.end }
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        self.text.as_bytes().get(self.at..self.end).unwrap_or_default()
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.rest().first().copied()
    }

    pub(super) fn eat(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token.as_bytes());
        self.at += if found { token.len() } else { 0 };
        found
    }

    pub(super) fn skip_space(&mut self) {
        self.skip_while(|byte| byte.is_ascii_whitespace());
    }

    fn skip_while(&mut self, is_part: impl Fn(&u8) -> bool) {
        self.at += self.rest().iter().take_while(|&byte| byte.is_ascii() && is_part(byte)).count();
    }

    pub(super) fn word(&mut self) -> &'a [u8] {
        let start = self.at;
        self.skip_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
        self.text.as_bytes().get(start..self.at).unwrap_or_default()
    }

    /// Parse an optional sign, white space and digits: `-1`, `+ 1_000`, `0x_ff`.
    pub(super) fn integer(&mut self) -> Result<Literal, ParseError> {
        let negative = self.eat("-");
        if negative || self.eat("+") {
            self.skip_space();
        }
        if !self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            return Err(self.unexpected("an integer"));
        }
        let start = self.at;
        let word = self.word();
        let magnitude = magnitude(word).map_err(|kind| kind.at(start..self.at))?;
        Ok(Literal { negative, magnitude })
    }

    /// Step over the brackets of this kind that open here; returns a cursor on the text inside.
    pub(super) fn brackets(&mut self, kind: [u8; 2]) -> Result<Cursor<'a>, ParseError> {
        let start = self.at;
        let [open, _] = kind.map(char::from);
        let never_closed = || ParseErrorKind::NeverClosed(open).at(start..start + 1);
        self.at += closing(self.rest()).ok_or_else(never_closed)? + 1;
        let inside = enclosed(self.text, start..self.at, kind).ok_or_else(never_closed)?;
        Ok(Cursor::new(self.text, trim(self.text, inside)))
    }

    /// Step over the comma before the next item; the end needs none.
    pub(super) fn comma(&mut self) -> Result<(), ParseError> {
        self.skip_space();
        if !self.eat(",") && self.peek().is_some() {
            return Err(self.unexpected("','"));
        }
        self.skip_space();
        Ok(())
    }

    /// Parse a quoted text, or an unquoted one that ends where `ends` is true of the rest.
    pub(super) fn text(&mut self, ends: impl Fn(&[u8]) -> bool) -> Result<String, ParseError> {
        let start = self.at;
        let rest = self.rest();
        if rest.first().is_some_and(|byte| b"\"'".contains(byte)) {
            let Some(len) = quoted(rest) else {
                return Err(ParseErrorKind::OpenQuote.at(start..start + 1));
            };
            self.at += len;
            let mark = &self.text[start..start + 1];
            let inside = self.text.get(start + 1..start + len - 1).unwrap_or_default();
            return Ok(unescaped(inside, mark));
        }
        self.at += (0..rest.len()).position(|at| ends(&rest[at..])).unwrap_or(rest.len());
        match self.text.get(start..self.at) {
            Some(text) if !text.is_empty() => Ok(text.to_owned()),
            _ => Err(self.unexpected("a name")),
        }
    }

    pub(super) fn unexpected(&self, expected: &'static str) -> ParseError {
        let rest = self.text.get(self.at..self.end).unwrap_or_default();
        let Some(found) = rest.chars().next() else {
            return ParseErrorKind::UnexpectedEnd { expected }.at(self.at..self.at);
        };
        let kind = match found {
            ']' | ')' => ParseErrorKind::Unmatched(found),
            ' '..='~' => ParseErrorKind::Unexpected { expected, found },
            _ => ParseErrorKind::InvalidCharacter(found),
        };
        kind.at(self.at..self.at + found.len_utf8())
    }
}

/// Undo the escapes of a quoted text: `\\` and an escaped mark stand for one character.
fn unescaped(inside: &str, mark: &str) -> String {
    let mut text = String::with_capacity(inside.len());
    let mut chars = inside.chars().peekable();
    while let Some(c) = chars.next() {
        let escaped = |next: &char| *next == '\\' || mark.starts_with(*next);
        match (c, chars.next_if(|next| c == '\\' && escaped(next))) {
            (_, Some(next)) => text.push(next),
            (c, None) => text.push(c),
        }
    }
    text
}

pub(super) fn magnitude(word: &[u8]) -> Result<u128, ParseErrorKind> {
    let (radix, name, digits) = match word {
        [b'0', b'x' | b'X', digits @ ..] => (16, "hexadecimal", digits),
        [b'0', b'o' | b'O', digits @ ..] => (8, "octal", digits),
        [b'0', b'b' | b'B', digits @ ..] => (2, "binary", digits),
        digits => (10, "decimal", digits),
    };
    let mut value = 0u128;
    // An underscore must be between two digits, or between the prefix and a digit.
    let mut underscore_allowed = radix != 10;
    let mut complete = false;
    for &byte in digits {
        match char::from(byte).to_digit(radix) {
            Some(digit) => {
                value = value.saturating_mul(radix.into()).saturating_add(digit.into());
                (underscore_allowed, complete) = (true, true);
            }
            None if byte == b'_' && underscore_allowed => {
                (underscore_allowed, complete) = (false, false);
            }
            None => return Err(ParseErrorKind::InvalidLiteral(name)),
        }
    }
    match word {
        _ if !complete => Err(ParseErrorKind::InvalidLiteral(name)),
        [b'0', ..] if radix == 10 && value != 0 => Err(ParseErrorKind::LeadingZeros),
        _ => Ok(value),
    }
}

pub(super) fn trim(text: &str, range: Range<usize>) -> Range<usize> {
    let part = text.as_bytes().get(range.clone()).unwrap_or_default();
    let start = range.start + (part.len() - part.trim_ascii_start().len());
    start..(range.start + part.trim_ascii_end().len()).max(start)
}

/// The range inside of the brackets that enclose all of `range`; `None` where there are none.
pub(super) fn enclosed(text: &str, range: Range<usize>, brackets: [u8; 2]) -> Option<Range<usize>> {
    let range = trim(text, range);
    let part = text.as_bytes().get(range.clone())?;
    let [open, close] = brackets;
    let matches = part.first() == Some(&open)
        && part.last() == Some(&close)
        && closing(part) == Some(part.len() - 1);
    matches.then(|| range.start + 1..range.end - 1)
}

/// The offset of the bracket that closes the first one of `part`, skipping quoted file names.
pub(super) fn closing(part: &[u8]) -> Option<usize> {
    let mut depth = 0usize;
    let mut at = 0;
    while let Some(&byte) = part.get(at) {
        match byte {
            b'[' | b'(' => depth += 1,
            b']' | b')' => depth = depth.saturating_sub(1),
            b'@' | b'#' => at += quoted(&part[at + 1..]).unwrap_or(0),
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
        at += 1;
    }
    None
}

/// The length of the quoted text at the start, marks included.
pub(super) fn quoted(part: &[u8]) -> Option<usize> {
    let mark = *part.first().filter(|&&byte| byte == b'"' || byte == b'\'')?;
    let mut at = 1;
    loop {
        match *part.get(at)? {
            b'\\' if part.get(at + 1).is_some_and(|&next| next == mark || next == b'\\') => at += 2,
            byte if byte == mark => return Some(at + 1),
            _ => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn integer(text: &str) -> Result<i64, ParseErrorKind> {
        let mut cursor = Cursor::new(text, 0..text.len());
        let literal = cursor.integer().map_err(|error| error.kind)?;
        assert_eq!(cursor.at, text.len());
        Ok(literal.saturated())
    }

    #[test]
    fn integers_are_read_as_in_python() {
        for (text, value) in [
            ("0", 0),
            ("00_0", 0),
            ("-1", -1),
            ("- \t1", -1),
            ("+1_000", 1000),
            ("0x_1F", 31),
            ("0B1_0", 2),
            ("-0o17", -15),
            ("9223372036854775807", i64::MAX),
            ("-9223372036854775808", i64::MIN),
            ("9223372036854775808", i64::MAX),
        ] {
            assert_eq!(integer(text), Ok(value), "{text}");
        }
        assert_eq!(integer(&"9".repeat(100_000)), Ok(i64::MAX));
        assert_eq!(integer(&format!("-0x{}", "f".repeat(100_000))), Ok(i64::MIN));
    }

    #[test]
    fn other_integers_are_refused() {
        for text in ["1_", "1__0", "0x", "0x_", "0x__1", "0b2", "0o8", "12ab", "1e5", "0_x1"] {
            assert!(matches!(integer(text), Err(ParseErrorKind::InvalidLiteral(_))), "{text}");
        }
        for text in ["007", "0_7", "-01"] {
            assert_eq!(integer(text), Err(ParseErrorKind::LeadingZeros), "{text}");
        }
        for text in ["--1", "+-1", "_1", "-"] {
            assert!(integer(text).is_err(), "{text}");
        }
    }

    #[test]
    fn enclosed_wants_the_matching_bracket_at_the_end() {
        let inside = |text: &'static str| enclosed(text, 0..text.len(), *b"[]").map(|r| &text[r]);
        assert_eq!(inside(" [1, 2] "), Some("1, 2"));
        assert_eq!(inside("[[1], 2]"), Some("[1], 2"));
        for text in ["", "[", "]", "[1], [2]", "[1, 2)", "[1", "1]"] {
            assert_eq!(inside(text), None, "{text}");
        }
        assert_eq!(trim("   ", 0..3), 3..3);
    }
}
