//! Lists and masks as items of an index: NumPy's advanced indexing, as data.
//!
//! A list is typed, or is a tensor of a file that is only named here; the code that resolves the
//! expression looks up what it holds. Typed ones are nested, `[[0, 1], [2, 3]]`, `[True, False]`: as for
//! np.array, the shape is that of the nesting, and all lists at one depth have one length.
//!
//! ```
//! use tslice::index::list::parse;
//! let array = parse("[[0, 1], [2, -3], [4, 5]]").unwrap();
//! assert_eq!(array.shape, [3, 2]);
//! assert_eq!(array.values, [0, 1, 2, -3, 4, 5]);
//! ```

use std::fmt;
use std::ops::Range;

use super::comparison::Sign;
use super::lexer::{Cursor, trim};
pub use super::lexer::{ParseError, ParseErrorKind};
use super::{Comparison, SliceItem};
use crate::shape::MAX_NDIM;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum List {
    /// Positions on one axis in any order; negative values count from the end.
    Integers(Array<i64>),
    /// The positions where the mask is true, on as many axes as the mask has.
    Mask(Array<bool>),
    /// All positions on one axis but these, ascending (`~`).
    Others(Array<i64>),
    /// An integer or boolean tensor of a file.
    File(FileRef),
    /// All positions of an axis in random order, or some of these.
    Shuffle(Shuffle),
}

/// `shuffle(SEED)`, or `shuffle(SEED)[SLICE]`: the order depends on the seed and the length of the axis alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shuffle {
    pub seed: u64,
    /// The positions in the order that are taken.
    pub slice: SliceItem,
}

impl fmt::Display for Shuffle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "shuffle({})", self.seed)?;
        if self.slice == SliceItem::default() { Ok(()) } else { write!(f, "[{}]", self.slice) }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Array<T> {
    /// The lengths of the axes; `values` are in C order.
    pub shape: Vec<u64>,
    pub values: Vec<T>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileRef {
    pub path: String,
    /// The name of the tensor, for files of several tensors.
    pub name: Option<String>,
    /// Whether the opposite is meant (`~`): the false elements of a mask, all positions not in the
    /// list.
    pub opposite: bool,
    /// The comparison that makes a mask of its elements.
    #[doc(hidden)]
    pub comparison: Option<Comparison>,
}

impl FileRef {
    #[doc(hidden)]
    pub fn is_stdin(&self) -> bool {
        self.path == "-"
    }
}

/// Whether an unquoted word of a [`FileRef`] ends before this text.
pub(super) fn ends_word(rest: &[u8]) -> bool {
    let ends = |byte: &u8| byte.is_ascii_whitespace() || b",[]()#".contains(byte);
    rest.first().is_none_or(ends) || Sign::begins(rest)
}

impl fmt::Display for FileRef {
    /// `@FILE#NAME==3`, quoted where needed; `~@FILE` for an inverted mask.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.opposite { "~@" } else { "@" })?;
        word(f, &self.path)?;
        if let Some(name) = &self.name {
            f.write_str("#")?;
            word(f, name)?;
        }
        self.comparison.map_or(Ok(()), |comparison| write!(f, "{comparison}"))
    }
}

fn word(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    // a text that ends so would be read as part of a comparison
    let is_marked = text.starts_with(['"', '\'']) || text.ends_with(['=', '!']);
    let plain = |at: usize| !ends_word(&text.as_bytes()[at..]);
    if !text.is_empty() && !is_marked && (0..text.len()).all(plain) {
        return f.write_str(text);
    }
    write!(f, "\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

impl fmt::Display for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            List::Others(array) => {
                f.write_str("~")?;
                nested(f, &array.shape, &array.values)
            }
            List::Integers(array) => nested(f, &array.shape, &array.values),
            List::Mask(array) => {
                let word = |&value: &bool| if value { "True" } else { "False" };
                nested(f, &array.shape, &array.values.iter().map(word).collect::<Vec<_>>())
            }
            List::File(file) => write!(f, "{file}"),
            List::Shuffle(shuffle) => write!(f, "{shuffle}"),
        }
    }
}

fn nested(f: &mut fmt::Formatter<'_>, shape: &[u64], values: &[impl fmt::Display]) -> fmt::Result {
    let Some((&len, inner)) = shape.split_first() else {
        return values.first().map_or(Ok(()), |value| write!(f, "{value}"));
    };
    f.write_str("[")?;
    let each = inner.iter().product::<u64>() as usize;
    for number in 0..len as usize {
        if number > 0 {
            f.write_str(", ")?;
        }
        nested(f, inner, values.get(number * each..).unwrap_or_default())?;
    }
    f.write_str("]")
}

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

/// The list that `~` makes of the list after it.
pub(super) fn opposite_at(cursor: &mut Cursor<'_>) -> Result<List, ParseError> {
    Ok(match list_at(cursor)? {
        List::Mask(mut mask) => {
            mask.values.iter_mut().for_each(|value| *value = !*value);
            List::Mask(mask)
        }
        List::Integers(array) => List::Others(array),
        other => other,
    })
}

pub(super) fn list_at(cursor: &mut Cursor<'_>) -> Result<List, ParseError> {
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
    let is_part = |byte: u8| !b"[],~".contains(&byte);
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
    /// The length of the lists at each depth; `None` until the first list there has ended.
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
