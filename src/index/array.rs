//! Arrays written as nested lists: `[[0, 1], [2, 3]]`, `[True, False]`.
//!
//! As for np.array, the shape is that of the nesting, and all lists at one depth have one length.
//! Integers are written as in index expressions; booleans are for items of an index only.
//!
//! ```
//! use tslice::index::array::parse;
//! let array = parse("[[0, 1], [2, -3], [4, 5]]").unwrap();
//! assert_eq!(array.shape, [3, 2]);
//! assert_eq!(array.values, [0, 1, 2, -3, 4, 5]);
//! ```

use std::ops::Range;

use super::lexer::{Cursor, trim};
pub use super::lexer::{ParseError, ParseErrorKind};
use super::list::{Array, List};
use crate::shape::MAX_NDIM;

/// Parse one list of integers of 64 bits, of at most [`MAX_NDIM`] levels.
pub fn parse(text: &str) -> Result<Array<i64>, ParseError> {
    let mut cursor = Cursor::new(text, 0..text.len());
    cursor.skip_space();
    if cursor.peek() != Some(b'[') {
        return Err(cursor.unexpected("a list of integers"));
    }
    let mut parser = ArrayParser::new(&mut cursor, false);
    parser.whole()?;
    let array = Array { shape: parser.shape(), values: parser.values };
    cursor.skip_space();
    match cursor.peek() {
        Some(_) => Err(cursor.unexpected("nothing more")),
        None => Ok(array),
    }
}

/// Parse the list of integers or booleans at the cursor.
pub(super) fn list(cursor: &mut Cursor<'_>) -> Result<List, ParseError> {
    let mut parser = ArrayParser::new(cursor, true);
    parser.whole()?;
    let shape = parser.shape();
    Ok(match parser.is_mask {
        Some(true) => {
            let values = parser.values.iter().map(|&value| value != 0).collect();
            List::Mask(Array { shape, values })
        }
        _ => List::Integers(Array { shape, values: parser.values }),
    })
}

/// The byte range of value `number`, in C order, of the list at `list` in `text`.
pub(super) fn value_span(text: &str, list: Range<usize>, number: usize) -> Option<Range<usize>> {
    let part = text.get(list.clone())?;
    let is_part = |byte: u8| !b"[],".contains(&byte);
    let mut values = part.bytes().enumerate().filter(|&(_, byte)| is_part(byte)).map(|(at, _)| at);
    let mut found = 0;
    let mut end = 0;
    loop {
        let start = values.find(|&at| at >= end)?;
        end =
            part[start..].bytes().position(|byte| !is_part(byte)).map_or(part.len(), |n| start + n);
        let span = trim(text, list.start + start..list.start + end);
        if span.is_empty() {
            continue;
        }
        if found == number {
            return Some(span);
        }
        found += 1;
    }
}

struct ArrayParser<'c, 'a> {
    cursor: &'c mut Cursor<'a>,
    /// Booleans are 1 and 0.
    values: Vec<i64>,
    /// The length of the lists at each depth; `None` until the first of them has ended.
    lens: Vec<Option<u64>>,
    /// Whether the values are booleans; `None` until the first one.
    is_mask: Option<bool>,
    allows_masks: bool,
}

impl<'c, 'a> ArrayParser<'c, 'a> {
    fn new(cursor: &'c mut Cursor<'a>, allows_masks: bool) -> Self {
        ArrayParser { cursor, values: Vec::new(), lens: Vec::new(), is_mask: None, allows_masks }
    }

    fn whole(&mut self) -> Result<(), ParseError> {
        let start = self.cursor.at;
        self.cursor.eat("[");
        self.list(start, 0)
    }

    fn shape(&mut self) -> Vec<u64> {
        self.lens.drain(..).map(Option::unwrap_or_default).collect()
    }
}

impl ArrayParser<'_, '_> {
    /// Parse the rest of the list that began at `start`, inside of `depth` other lists.
    fn list(&mut self, start: usize, depth: usize) -> Result<(), ParseError> {
        let ragged = |cursor: &Cursor<'_>| ParseErrorKind::Ragged.at(start..cursor.at);
        if depth == MAX_NDIM {
            return Err(ParseErrorKind::TooDeep.at(start..self.cursor.at));
        }
        if depth == self.lens.len() {
            // the first list at this depth: ragged if the lists above it hold integers or have
            // ended empty
            let above = depth.checked_sub(1).and_then(|above| self.lens[above]);
            if above.is_some() || !self.values.is_empty() {
                return Err(ragged(self.cursor));
            }
            self.lens.push(None);
        }
        let mut len = 0;
        loop {
            self.cursor.skip_space();
            if self.cursor.eat("]") {
                break;
            }
            if len > 0 && !self.cursor.eat(",") {
                return Err(self.cursor.unexpected("',' or ']'"));
            }
            self.cursor.skip_space();
            if len > 0 && self.cursor.eat("]") {
                break;
            }
            self.item(depth)?;
            len += 1;
        }
        match self.lens[depth].replace(len) {
            Some(other) if other != len => Err(ragged(self.cursor)),
            _ => Ok(()),
        }
    }

    fn item(&mut self, depth: usize) -> Result<(), ParseError> {
        let start = self.cursor.at;
        if self.cursor.eat("[") {
            return self.list(start, depth + 1);
        }
        let value = self.value()?;
        let span = start..self.cursor.at;
        if *self.is_mask.get_or_insert(value.1) != value.1 {
            return Err(ParseErrorKind::MixedList.at(span));
        }
        if self.lens.len() != depth + 1 {
            return Err(ParseErrorKind::Ragged.at(span));
        }
        self.values.push(value.0);
        Ok(())
    }

    /// Parse an integer, or a boolean as 1 or 0; also says whether it is a boolean.
    fn value(&mut self) -> Result<(i64, bool), ParseError> {
        let start = self.cursor.at;
        let is_word = self.cursor.peek().is_some_and(|byte| byte.is_ascii_alphabetic());
        if self.allows_masks && is_word {
            return match self.cursor.word() {
                b"True" => Ok((1, true)),
                b"False" => Ok((0, true)),
                _ => Err(ParseErrorKind::NotAnIndex.at(start..self.cursor.at)),
            };
        }
        let literal = self.cursor.integer()?;
        let too_large = || ParseErrorKind::TooLarge("integer index").at(start..self.cursor.at);
        Ok((literal.exact().ok_or_else(too_large)?, false))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shape_is_that_of_the_nesting() {
        // as np.array(..).shape
        for (text, shape) in [
            ("[]", vec![0]),
            (" [ 1 , -2, 0x10 , ] ", vec![3]),
            ("[[]]", vec![1, 0]),
            ("[[], []]", vec![2, 0]),
            ("[[[1], [2], [3]], [[4], [5], [6]]]", vec![2, 3, 1]),
        ] {
            assert_eq!(parse(text).unwrap().shape, shape, "{text}");
        }
        assert_eq!(
            parse(&format!("{}{}", "[".repeat(64), "]".repeat(64))).unwrap().shape.len(),
            64
        );
    }

    #[test]
    fn other_texts_are_refused_where_they_go_wrong() {
        use ParseErrorKind::*;
        let error = |text: &str| parse(text).unwrap_err();
        for text in ["[[1], 2]", "[1, [2]]", "[[1], []]", "[[], 1]", "[[], [[]]]", "[[[]], []]"] {
            assert_eq!(error(text).kind, Ragged, "{text}");
        }
        assert_eq!(error("[[1, 2], [3]]").span, 9..12);
        assert_eq!(error(&"[".repeat(100_000)).kind, TooDeep);
        assert_eq!(error("[9223372036854775808]").kind, TooLarge("integer index"));
        for text in ["[1", "[1 2]", "[1]]", "[,]", "[1,,2]", "[1.5]", "[True]", "(1,)", "[1] 2"] {
            parse(text).unwrap_err();
        }
    }
}
