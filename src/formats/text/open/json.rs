//! Nested lists of JSON.
//!
//! A list is read once. While all numbers are integers or booleans, they are stored as 64-bit integers,
//! signed or unsigned; from the first other number on, all are stored as doubles. The dtype of the
//! first ones is known at the end, when they are converted ([`Recoder`]).

use super::pieces::TextParser;
use super::{MAX_CELL, TextPosition, is_wide};
use crate::dtype::{DType, Endian, NumberKind, Scalar};
use crate::element::CellReader;
use crate::formats::text::TextFault;
use crate::shape::MAX_NDIM;
use crate::tensor::shortened;

/// The state of the parser between two bytes of JSON.
pub(super) struct JsonParser {
    /// The reader of elements, where their dtype is given.
    cells: Option<CellReader>,
    /// The number of items so far in each open list.
    counts: Vec<u64>,
    /// The number of items in lists of each depth, once a list of this depth has ended.
    lengths: Vec<Option<u64>>,
    /// The number of lists around each number, once a number was found.
    depth: Option<usize>,
    expected: Expected,
    token: Vec<u8>,
    token_position: TextPosition,
    in_text: bool,
    position: TextPosition,
    found: FoundNumbers,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Expected {
    Value,
    /// A value, or the end of an empty list.
    First,
    CommaOrEnd,
    Nothing,
}

/// The numbers found so far, where the dtype is not given.
#[derive(Default)]
struct FoundNumbers {
    booleans: u64,
    integers: u64,
    floats: u64,
    /// The number of elements, from the first on, that are stored as integers.
    exact_integers: u64,
    /// Whether these are unsigned, as one of them needs 64 bits.
    exact_unsigned: bool,
    /// Whether an integer is negative, and whether an integer needs 64 unsigned bits.
    has_negative: bool,
    is_unsigned: bool,
    /// The first integer beyond 64 signed bits, and whether an integer is even beyond 64 unsigned bits.
    too_large: Option<TextFault>,
    has_larger: bool,
    /// Whether an integer is not exact as a double.
    has_wide: bool,
}

impl JsonParser {
    /// A parser that reads elements by `cells`, or finds the dtype from the numbers.
    pub(super) fn new(cells: Option<CellReader>) -> JsonParser {
        let position = TextPosition { line: 1, column: 1 };
        JsonParser {
            cells,
            counts: Vec::new(),
            lengths: Vec::new(),
            depth: None,
            expected: Expected::Value,
            token: Vec::new(),
            token_position: position,
            in_text: false,
            position,
            found: FoundNumbers::default(),
        }
    }

    pub(super) fn shape(&self) -> Vec<u64> {
        self.lengths.iter().map(|length| length.unwrap_or(0)).collect()
    }

    /// The dtype of the numbers, and the conversion of the numbers stored as integers.
    pub(super) fn dtype(&mut self) -> Result<(DType, Option<Recoder>), TextFault> {
        let little = |scalar| DType::Scalar(scalar, Endian::Little);
        let FoundNumbers { booleans, integers, floats, exact_integers, exact_unsigned, .. } =
            self.found;
        let recoder =
            |kind, left| Recoder { kind, is_unsigned: exact_unsigned, left, begun: Vec::new() };
        if booleans > 0 && integers == 0 && floats == 0 {
            return Ok((little(Scalar::Bool), Some(recoder(NumberKind::Bool, u64::MAX))));
        }
        if integers > 0 && booleans == 0 && floats == 0 {
            return match self.found.too_large.take() {
                None => Ok((little(Scalar::I64), None)),
                Some(_) if !self.found.has_negative && !self.found.has_larger => {
                    Ok((little(Scalar::U64), None))
                }
                Some(fault) => Err(fault),
            };
        }
        let recoder = (exact_integers > 0).then(|| recoder(NumberKind::Float, exact_integers));
        Ok((little(Scalar::F64), recoder))
    }

    /// Whether an integer is not exact as a double.
    pub(super) fn has_wide(&self) -> bool {
        self.found.has_wide
    }

    fn failed(&self, what: &'static str) -> TextFault {
        TextFault::Json { position: self.position, what }
    }

    fn byte(&mut self, byte: u8, out: &mut Vec<u8>) -> Result<(), TextFault> {
        if self.in_text {
            return match byte {
                b'"' => {
                    self.in_text = false;
                    self.value(true, out)
                }
                b'\n' => Err(self.failed("a string does not end on its line")),
                _ => self.hold(byte),
            };
        }
        let is_word = matches!(byte, b'+' | b'-' | b'.' | b'_')
            || byte.is_ascii_alphanumeric()
            || !byte.is_ascii();
        if is_word {
            if self.token.is_empty() {
                self.begin_value()?;
            }
            return self.hold(byte);
        }
        if !self.token.is_empty() {
            self.value(false, out)?;
        }
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' => Ok(()),
            b'"' => {
                self.begin_value()?;
                self.in_text = true;
                Ok(())
            }
            b'[' => self.begin_list(),
            b']' => self.end_list(),
            b',' if self.expected == Expected::CommaOrEnd => {
                self.expected = Expected::Value;
                Ok(())
            }
            b'{' => Err(self.failed("an object: only lists of numbers are read")),
            _ => Err(self.unexpected()),
        }
    }

    fn unexpected(&self) -> TextFault {
        self.failed(match self.expected {
            Expected::Value => "a number or a list is expected",
            Expected::First => "a number, a list or ']' is expected",
            Expected::CommaOrEnd => "',' or ']' is expected",
            Expected::Nothing => "text after the end of the list",
        })
    }

    /// Begin an item of the list.
    fn begin_value(&mut self) -> Result<(), TextFault> {
        if !matches!(self.expected, Expected::Value | Expected::First) {
            return Err(self.unexpected());
        }
        self.token_position = self.position;
        if let Some(count) = self.counts.last_mut() {
            *count += 1;
        }
        Ok(())
    }

    /// Set the expectation after an item.
    fn end_value(&mut self) {
        self.expected =
            if self.counts.is_empty() { Expected::Nothing } else { Expected::CommaOrEnd };
    }

    fn begin_list(&mut self) -> Result<(), TextFault> {
        self.begin_value()?;
        self.counts.push(0);
        let depth = self.counts.len();
        if depth > MAX_NDIM {
            return Err(self.failed("the lists have too many axes: 64 are possible"));
        }
        if self.depth.is_some_and(|numbers| depth > numbers) {
            return Err(self.failed("a list where earlier lists have a number"));
        }
        if depth > self.lengths.len() {
            // an earlier empty list has no lists in it
            if self.lengths.last().is_some_and(Option::is_some) {
                return Err(self.failed("a list where earlier lists have no list"));
            }
            self.lengths.push(None);
        }
        self.expected = Expected::First;
        Ok(())
    }

    fn end_list(&mut self) -> Result<(), TextFault> {
        if !matches!(self.expected, Expected::First | Expected::CommaOrEnd) {
            return Err(self.unexpected());
        }
        let depth = self.counts.len();
        let (Some(found), Some(length)) = (self.counts.pop(), self.lengths.get_mut(depth - 1))
        else {
            return Err(self.unexpected());
        };
        match *length {
            Some(expected) if expected != found => {
                return Err(TextFault::RaggedLists { position: self.position, found, expected });
            }
            _ => *length = Some(found),
        }
        self.end_value();
        Ok(())
    }

    fn hold(&mut self, byte: u8) -> Result<(), TextFault> {
        if self.token.len() == MAX_CELL {
            return Err(TextFault::TooLong { position: self.token_position });
        }
        self.token.push(byte);
        Ok(())
    }

    /// End a number, or a word instead of one.
    fn value(&mut self, is_text: bool, out: &mut Vec<u8>) -> Result<(), TextFault> {
        let position = self.token_position;
        let depth = self.counts.len();
        if self.lengths.len() > depth || self.depth.is_some_and(|it| it != depth) {
            let what = "a number where earlier lists have a list";
            return Err(TextFault::Json { position, what });
        }
        self.depth = Some(depth);
        self.end_value();
        let token = std::mem::take(&mut self.token);
        let text = str::from_utf8(&token).map_err(|_| TextFault::NotUtf8 { position })?;
        let text = match text {
            "NaN" | "Infinity" | "-Infinity" => text,
            _ if is_text => {
                return Err(TextFault::Json { position, what: "a string is not a number" });
            }
            "true" => "1",
            // an integer has no negative zero
            "false" | "-0" => "0",
            "null" => return Err(TextFault::Json { position, what: "null is not a number" }),
            _ if is_number(text) => text,
            _ => return Err(TextFault::Json { position, what: "not a JSON number" }),
        };
        let pushed = match &self.cells {
            Some(cells) => cells.push(text, out).ok_or_else(|| refused(cells, position, text)),
            None => {
                self.found.push(position, text, matches!(token.first(), Some(b't' | b'f')), out)
            }
        };
        // keep the allocation for the next token
        self.token = token;
        self.token.clear();
        pushed
    }
}

impl FoundNumbers {
    /// Append a number whose dtype is not known yet.
    fn push(
        &mut self,
        position: TextPosition,
        text: &str,
        is_boolean: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), TextFault> {
        let is_integer = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
        let signed = text.parse::<i64>().ok();
        let unsigned = if signed.is_none() { text.parse::<u64>().ok() } else { None };
        self.has_negative |= signed.is_some_and(|integer| integer < 0);
        self.is_unsigned |= unsigned.is_some();
        self.has_wide = self.has_wide || is_wide(text);
        let has_both = self.has_negative && self.is_unsigned;
        let as_integer = signed.map(|integer| integer as u64).or(unsigned).filter(|_| !has_both);
        match (is_boolean, is_integer) {
            (true, _) => self.booleans += 1,
            (_, true) => self.integers += 1,
            _ => self.floats += 1,
        }
        if is_integer && signed.is_none() && self.too_large.is_none() {
            let cells = CellReader::of(&DType::Scalar(Scalar::I64, Endian::Little));
            self.too_large = cells.map(|cells| refused(&cells, position, text));
        }
        self.has_larger |= is_integer && signed.is_none() && unsigned.is_none();
        let earlier = self.booleans + self.integers + self.floats - 1;
        if let (Some(integer), true) = (as_integer, self.exact_integers == earlier) {
            self.exact_integers += 1;
            self.exact_unsigned = self.is_unsigned;
            out.extend(integer.to_le_bytes());
            return Ok(());
        }
        let float: f64 =
            text.parse().map_err(|_| TextFault::Json { position, what: "not a JSON number" })?;
        out.extend(float.to_le_bytes());
        Ok(())
    }
}

impl TextParser for JsonParser {
    type Fault = TextFault;

    fn parse(&mut self, text: &[u8], out: &mut Vec<u8>) -> Result<(), TextFault> {
        for &byte in text {
            self.byte(byte, out)?;
            self.position.column += 1;
            if byte == b'\n' {
                self.position = TextPosition { line: self.position.line + 1, column: 1 };
            }
        }
        Ok(())
    }

    fn end(&mut self, out: &mut Vec<u8>) -> Result<(), TextFault> {
        if !self.token.is_empty() && !self.in_text {
            self.value(false, out)?;
        }
        match self.expected {
            Expected::Nothing => Ok(()),
            _ => Err(self.failed("the text ends inside its list")),
        }
    }
}

/// Whether a text is a number by the grammar of JSON.
fn is_number(text: &str) -> bool {
    let text = text.strip_prefix('-').unwrap_or(text);
    let has_zeros = matches!(text.as_bytes(), [b'0', b'0'..=b'9', ..]);
    let Some(mut rest) = behind_digits(text) else { return false };
    if let Some(fraction) = rest.strip_prefix('.') {
        rest = behind_digits(fraction).unwrap_or(".");
    }
    if let Some(exponent) = rest.strip_prefix(['e', 'E']) {
        let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        rest = behind_digits(exponent).unwrap_or("e");
    }
    rest.is_empty() && !has_zeros
}

/// The text behind the digits with which a text begins; `None` if it begins with none.
fn behind_digits(text: &str) -> Option<&str> {
    let rest = text.trim_start_matches(|char: char| char.is_ascii_digit());
    (rest.len() < text.len()).then_some(rest)
}

/// The error for a number that is no element.
fn refused(cells: &CellReader, position: TextPosition, text: &str) -> TextFault {
    TextFault::Cell { position, error: cells.refusal(text, &shortened(text)), remedy: None }
}

/// A converter of the first elements, 64-bit integers; later elements pass unchanged.
pub(super) struct Recoder {
    kind: NumberKind,
    /// Whether the integers are unsigned.
    is_unsigned: bool,
    left: u64,
    /// The first bytes of an incomplete element.
    begun: Vec<u8>,
}

impl TextParser for Recoder {
    type Fault = TextFault;

    fn parse(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), TextFault> {
        for &byte in bytes {
            self.begun.push(byte);
            let Ok(element) = <[u8; 8]>::try_from(self.begun.as_slice()) else { continue };
            self.begun.clear();
            let integer = i64::from_le_bytes(element);
            match (self.left, self.kind) {
                (0, _) => out.extend(element),
                (_, NumberKind::Bool) => out.push(u8::from(integer != 0)),
                _ if self.is_unsigned => out.extend((integer as u64 as f64).to_le_bytes()),
                _ => out.extend((integer as f64).to_le_bytes()),
            }
            self.left = self.left.saturating_sub(1);
        }
        Ok(())
    }

    fn end(&mut self, _: &mut Vec<u8>) -> Result<(), TextFault> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::is_number;

    /// All short texts of the characters of numbers.
    #[test]
    fn numbers_are_those_of_another_reader() {
        let mut texts = vec![String::new()];
        for _ in 0..6 {
            let longer = texts
                .iter()
                .flat_map(|text| ["-", "+", ".", "0", "1", "e"].map(|it| format!("{text}{it}")));
            texts = longer.collect();
            for text in &texts {
                let theirs = serde_json::from_str::<serde::de::IgnoredAny>(text);
                assert_eq!(is_number(text), theirs.is_ok(), "{text}");
            }
        }
    }
}
