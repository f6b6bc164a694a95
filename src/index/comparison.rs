//! Comparisons of a file's tensor with a number, which make a mask: `@labels.npy==3`.

use std::cmp::Ordering;
use std::fmt;

use super::lexer::{Cursor, ParseError, ParseErrorKind, magnitude};

/// The right side of `@FILE==3`. NumPy's `a == 3` defines which elements are true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Comparison {
    pub sign: Sign,
    pub number: Number,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    Equal,
    Different,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// A number of Python's that is not NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    Integer(i128),
    /// The bits of a double.
    Float(u64),
}

/// The signs as they are written; a sign comes before those that it begins with.
const SIGNS: [(&str, Sign); 6] = [
    ("==", Sign::Equal),
    ("!=", Sign::Different),
    ("<=", Sign::LessOrEqual),
    (">=", Sign::GreaterOrEqual),
    ("<", Sign::Less),
    (">", Sign::Greater),
];

impl Sign {
    /// Whether a number with this order relative to another (`None`: one is NaN) satisfies the
    /// comparison.
    pub fn holds(self, ordering: Option<Ordering>) -> bool {
        match self {
            Sign::Equal => ordering == Some(Ordering::Equal),
            Sign::Different => ordering != Some(Ordering::Equal),
            Sign::Less => ordering == Some(Ordering::Less),
            Sign::LessOrEqual => ordering.is_some_and(Ordering::is_le),
            Sign::Greater => ordering == Some(Ordering::Greater),
            Sign::GreaterOrEqual => ordering.is_some_and(Ordering::is_ge),
        }
    }

    /// Whether a text begins with a sign.
    pub(super) fn begins(text: &[u8]) -> bool {
        SIGNS.iter().any(|(sign, _)| text.starts_with(sign.as_bytes()))
    }
}

impl Number {
    /// The nearest double.
    pub fn float(self) -> f64 {
        match self {
            Number::Integer(value) => value as f64,
            Number::Float(bits) => f64::from_bits(bits),
        }
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = SIGNS.iter().find(|(_, sign)| *sign == self.sign).map_or("", |(text, _)| text);
        match self.number {
            Number::Integer(value) => write!(f, "{sign}{value}"),
            Number::Float(bits) => write!(f, "{sign}{:?}", f64::from_bits(bits)),
        }
    }
}

impl Cursor<'_> {
    /// Parse a sign and a number, if a sign follows.
    pub(super) fn comparison(&mut self) -> Result<Option<Comparison>, ParseError> {
        let Some((_, sign)) = SIGNS.into_iter().find(|(text, _)| self.eat(text)) else {
            return Ok(None);
        };
        self.skip_space();
        let start = self.at;
        let number = self.number();
        let number = number.map_err(|kind| kind.at(start..self.at.max(start)))?;
        Ok(Some(Comparison { sign, number }))
    }

    /// Parse a number as Python writes it, `inf`, or a boolean, which is 1 or 0.
    fn number(&mut self) -> Result<Number, ParseErrorKind> {
        let negative = self.eat("-");
        let signed = negative || self.eat("+");
        self.skip_space();
        let word = self.numeral();
        let float = |value: f64| Number::Float(if negative { -value } else { value }.to_bits());
        match word {
            "True" | "False" if !signed => return Ok(Number::Integer((word == "True").into())),
            "inf" => return Ok(float(f64::INFINITY)),
            "nan" => return Err(ParseErrorKind::NanCompared),
            _ => {}
        }
        let radix = word.get(..2).unwrap_or_default().to_ascii_lowercase();
        let is_prefixed = ["0x", "0o", "0b"].contains(&radix.as_str());
        if is_prefixed || !word.contains(['.', 'e', 'E']) {
            let is_number = word.starts_with(|first: char| first.is_ascii_digit());
            let read = if is_number { magnitude(word.as_bytes())? } else { 0 };
            if let (true, Ok(value)) = (is_number, i128::try_from(read)) {
                return Ok(Number::Integer(if negative { -value } else { value }));
            }
            if is_prefixed {
                return Err(ParseErrorKind::NotCompared);
            }
        }
        // an underscore stands between digits
        let bytes = word.as_bytes();
        let is_digit = |at: Option<usize>| {
            at.and_then(|at| bytes.get(at)).is_some_and(|byte| byte.is_ascii_digit())
        };
        let joins = |(at, _): (usize, &str)| is_digit(at.checked_sub(1)) && is_digit(Some(at + 1));
        let is_float = word.starts_with(|first: char| first.is_ascii_digit() || first == '.')
            && word.match_indices('_').all(joins);
        let value: Option<f64> = word.replace('_', "").parse().ok().filter(|_| is_float);
        let is_integer = !word.contains(['.', 'e', 'E']);
        match value {
            // too large for a double: NumPy raises an error
            Some(value) if is_integer && value.is_infinite() => Err(ParseErrorKind::NotCompared),
            Some(value) => Ok(float(value)),
            None => Err(ParseErrorKind::NotCompared),
        }
    }

    /// Read the letters and digits of a number, with the signs inside it.
    fn numeral(&mut self) -> &str {
        let rest = self.rest();
        let is_prefixed =
            rest.first() == Some(&b'0') && rest.get(1).is_some_and(|byte| b"xXoObB".contains(byte));
        let mut before = 0;
        let len = rest.iter().take_while(|&&byte| {
            let in_exponent = !is_prefixed && b"eE".contains(&before) && b"+-".contains(&byte);
            before = byte;
            byte.is_ascii_alphanumeric() || b"._".contains(&byte) || in_exponent
        });
        let len = len.count();
        self.at += len;
        std::str::from_utf8(&rest[..len]).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::numpy;
    use super::super::{Item, List};
    use super::*;

    fn number(text: &str) -> Result<Number, ParseErrorKind> {
        let parsed = numpy::parse(&format!("0, @a.npy=={text}")).map_err(|error| error.kind)?;
        match &parsed.expr.items[1] {
            Item::List(List::File(file)) => Ok(file.comparison.unwrap().number),
            other => panic!("{other}"),
        }
    }

    #[test]
    fn numbers_are_pythons() {
        for (text, value) in [
            ("3", 3),
            ("-1", -1),
            ("- 1", -1),
            ("+1_000", 1000),
            ("0x1e", 30),
            ("True", 1),
            ("False", 0),
            ("170141183460469231731687303715884105727", i128::MAX),
        ] {
            assert_eq!(number(text), Ok(Number::Integer(value)), "{text}");
        }
        for (text, value) in [
            ("0.5", 0.5),
            ("-.5", -0.5),
            ("5.", 5.0),
            ("1e-3", 1e-3),
            ("1_0.2_5E+1_0", 10.25e10),
            ("007.5", 7.5),
            ("-inf", f64::NEG_INFINITY),
            ("1e999", f64::INFINITY),
            ("10000000000000000000000000000000000000000", 1e40),
        ] {
            assert_eq!(number(text), Ok(Number::Float(value.to_bits())), "{text}");
        }
        assert_eq!(number("nan"), Err(ParseErrorKind::NanCompared));
        let too_large = "9".repeat(400);
        let others = [
            "", "x", "1x", "1_", "1__0", "1_.5", "._5", "e5", "1e", "3j", "007", "-True", "1 2",
            "[1]",
        ];
        for text in
            others.into_iter().chain([too_large.as_str(), "0xfffffffffffffffffffffffffffffffffff"])
        {
            assert!(number(text).is_err(), "{text}");
        }
    }
}
