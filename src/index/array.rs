//! Integer arrays written as nested lists: `[[0, 1], [2, 3]]`, as `--indices` takes them.
//!
//! The meaning is that of np.array: the shape is that of the nesting, and all lists at one depth
//! have the same length. Integers are written as in index expressions.
//!
//! ```
//! use tslice::index::array::parse;
//! let array = parse("[[0, 1], [2, -3], [4, 5]]").unwrap();
//! assert_eq!(array.shape, [3, 2]);
//! assert_eq!(array.values, [0, 1, 2, -3, 4, 5]);
//! ```

use super::lexer::Cursor;
pub use super::lexer::{ParseError, ParseErrorKind};
use crate::shape::MAX_NDIM;

/// An array of integers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IntArray {
    /// The length of the lists at each depth.
    pub shape: Vec<u64>,
    /// The integers, in C order.
    pub values: Vec<i64>,
}

/// Parse a text that is one list.
///
/// # Errors
/// [`ParseError`]: anything but lists and integers, lists of different lengths at one depth, more
/// than 64 levels, an integer past 64 bits.
pub fn parse(text: &str) -> Result<IntArray, ParseError> {
    let cursor = Cursor::new(text, 0..text.len());
    let mut parser = Parser { cursor, values: Vec::new(), lens: Vec::new() };
    parser.cursor.skip_space();
    let start = parser.cursor.at;
    if !parser.cursor.eat("[") {
        return Err(parser.cursor.unexpected("a list of integers"));
    }
    parser.list(start, 0)?;
    parser.cursor.skip_space();
    if parser.cursor.peek().is_some() {
        return Err(parser.cursor.unexpected("nothing more"));
    }
    let shape = parser.lens.into_iter().map(Option::unwrap_or_default).collect();
    Ok(IntArray { shape, values: parser.values })
}

struct Parser<'a> {
    cursor: Cursor<'a>,
    values: Vec<i64>,
    /// The length of the lists at each depth, known once the first of them has ended.
    lens: Vec<Option<u64>>,
}

impl Parser<'_> {
    /// The rest of the list that began at `start`, inside `depth` other lists.
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
                return Err(ragged(&self.cursor));
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
            Some(other) if other != len => Err(ragged(&self.cursor)),
            _ => Ok(()),
        }
    }

    fn item(&mut self, depth: usize) -> Result<(), ParseError> {
        let start = self.cursor.at;
        if self.cursor.eat("[") {
            return self.list(start, depth + 1);
        }
        let literal = self.cursor.integer()?;
        let span = start..self.cursor.at;
        if self.lens.len() != depth + 1 {
            return Err(ParseErrorKind::Ragged.at(span));
        }
        let too_large = || ParseErrorKind::TooLarge("an index").at(span);
        self.values.push(literal.exact().ok_or_else(too_large)?);
        Ok(())
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
        assert_eq!(error("[9223372036854775808]").kind, TooLarge("an index"));
        for text in ["[1", "[1 2]", "[1]]", "[,]", "[1,,2]", "[1.5]", "[True]", "(1,)", "[1] 2"] {
            parse(text).unwrap_err();
        }
    }
}
