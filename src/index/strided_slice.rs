//! TensorFlow's notation for an index: begin, end, strides and five masks.
//!
//! The terms and rules are those of the StridedSlice op of TensorFlow 2.21 on CPU. Shapes are not
//! known here: item i of the lists becomes item i of the expression. The lists and masks of the
//! command line are parsed here too.
//!
//! ```
//! use tslice::index::{numpy, strided_slice::StridedSlice};
//! let expr = numpy::parse("1, 2:4, None, ..., :-3:-1, :").unwrap().expr;
//! let flags = StridedSlice::from_expr(&expr).unwrap();
//! assert_eq!(flags.begin, [1, 2, 0, 0, 0, 0]);
//! assert_eq!((flags.begin_mask, flags.end_mask, flags.ellipsis_mask), (48, 32, 8));
//! assert_eq!(numpy::format(&flags.to_expr().unwrap()).text, "[1, 2:4, None, ..., :-3:-1, :]");
//! ```

use super::lexer::{Cursor, enclosed};
use super::{IndexExpr, Item, SliceItem};

pub use super::lexer::{ParseError, ParseErrorKind};

/// The most items, since a mask has one bit for each.
pub const MAX_ITEMS: usize = 64;

/// The arguments of the StridedSlice op; bit i of each mask is for item i.
///
/// Bits past the last item are ignored, except that the ellipsis mask has at most one bit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StridedSlice {
    /// First position of each item; negative values count from the end.
    pub begin: Vec<i64>,
    /// One past the last position of each item, in the stride's direction.
    pub end: Vec<i64>,
    /// Distance between positions of each item.
    pub strides: Vec<i64>,
    /// Items that start at the beginning of the axis, seen in the stride's direction.
    pub begin_mask: u64,
    /// Items that stop at the end of the axis, seen in the stride's direction.
    pub end_mask: u64,
    /// The item that covers all axes that no other item indexes.
    pub ellipsis_mask: u64,
    /// Items that are new axes of length 1.
    pub new_axis_mask: u64,
    /// Items that select one position, `begin`, and drop their axis.
    pub shrink_axis_mask: u64,
}

/// Arguments that are invalid for every tensor, or an index that StridedSlice cannot express.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StridedSliceError {
    /// The three lists have different lengths.
    #[error(
        "begin, end and strides must have one length, but have {begin}, {end} and {strides} items"
    )]
    Lengths {
        /// Items of `begin`.
        begin: usize,
        /// Items of `end`.
        end: usize,
        /// Items of `strides`.
        strides: usize,
    },
    /// Items have names of dimensions.
    #[error("begin, end and strides have no names of dimensions")]
    Named,
    /// More items than a mask has bits.
    #[error("{0} items are too many: a mask has {MAX_ITEMS} bits")]
    TooManyItems(usize),
    /// The ellipsis mask has more than one bit.
    #[error("multiple ellipses in slice spec not allowed (ellipsis mask {0:#b})")]
    MultipleEllipses(u64),
    /// A stride of 0 in an item that uses its stride.
    #[error("strides[{0}] must be non-zero")]
    ZeroStride(usize),
    /// A negative stride in a shrink item.
    #[error("only stride 1 allowed on non-range indexing, but strides[{item}] is {stride}")]
    ShrinkStride {
        /// Index of the item.
        item: usize,
        /// The stride of the item.
        stride: i64,
    },
    /// A list or a mask, which StridedSlice does not have.
    #[error("item {0} is a list, which begin, end and strides cannot express")]
    List(usize),
}

impl StridedSlice {
    /// The expression with the same meaning; its item i is item i of the lists.
    ///
    /// Source: TensorFlow's `ValidateStridedSliceOp`. An ellipsis takes precedence over a new axis,
    /// a new axis over a shrink, and a shrink over begin and end masks.
    ///
    /// # Errors
    /// [`StridedSliceError`]: lists of different lengths, more than 64 items, several ellipses, a
    /// stride of 0, a shrink item with a negative stride.
    pub fn to_expr(&self) -> Result<IndexExpr, StridedSliceError> {
        let [begin, end, strides] = [&self.begin, &self.end, &self.strides].map(Vec::len);
        if begin != end || begin != strides {
            return Err(StridedSliceError::Lengths { begin, end, strides });
        }
        if begin > MAX_ITEMS {
            return Err(StridedSliceError::TooManyItems(begin));
        }
        if self.ellipsis_mask.count_ones() > 1 {
            return Err(StridedSliceError::MultipleEllipses(self.ellipsis_mask));
        }
        let ranges = self.begin.iter().zip(&self.end).zip(&self.strides);
        let items = ranges.enumerate().map(|(i, ((&begin, &end), &stride))| {
            let set = |mask: u64| mask & (1 << i) != 0;
            Ok(if set(self.ellipsis_mask) {
                Item::Ellipsis
            } else if set(self.new_axis_mask) {
                Item::NewAxis
            } else if stride == 0 {
                return Err(StridedSliceError::ZeroStride(i));
            } else if set(self.shrink_axis_mask) {
                if stride < 0 {
                    return Err(StridedSliceError::ShrinkStride { item: i, stride });
                }
                Item::Integer(begin)
            } else {
                Item::Slice(SliceItem {
                    start: (!set(self.begin_mask)).then_some(begin),
                    stop: (!set(self.end_mask)).then_some(end),
                    // On an axis of at most 2^63 - 1 elements, -2^63 selects the same as this.
                    step: (stride != 1).then_some(stride.max(-i64::MAX)),
                })
            })
        });
        Ok(IndexExpr::new(items.collect::<Result<_, _>>()?))
    }

    /// The arguments with the same meaning as an expression; unused numbers are 0.
    ///
    /// # Errors
    /// [`StridedSliceError`]: a list, more than 64 items.
    pub fn from_expr(expr: &IndexExpr) -> Result<StridedSlice, StridedSliceError> {
        if expr.items.len() > MAX_ITEMS {
            return Err(StridedSliceError::TooManyItems(expr.items.len()));
        }
        if expr.is_named() {
            return Err(StridedSliceError::Named);
        }
        let mut flags = StridedSlice::default();
        for (i, item) in expr.items.iter().enumerate() {
            let bit = 1 << i;
            let (begin, end, stride) = match item {
                Item::Integer(index) => {
                    flags.shrink_axis_mask |= bit;
                    (*index, index.saturating_add(1), 1)
                }
                Item::Slice(SliceItem { start, stop, step }) => {
                    flags.begin_mask |= if start.is_none() { bit } else { 0 };
                    flags.end_mask |= if stop.is_none() { bit } else { 0 };
                    (start.unwrap_or(0), stop.unwrap_or(0), step.unwrap_or(1))
                }
                Item::Ellipsis => {
                    flags.ellipsis_mask |= bit;
                    (0, 0, 1)
                }
                Item::NewAxis => {
                    flags.new_axis_mask |= bit;
                    (0, 0, 1)
                }
                Item::List(_) => return Err(StridedSliceError::List(i)),
            };
            flags.begin.push(begin);
            flags.end.push(end);
            flags.strides.push(stride);
        }
        Ok(flags)
    }
}

/// Parse integers of 64 bits: `1,2,-3`, `[1, 2]`, `(1,)`; an empty text is the empty list.
pub fn parse_list(text: &str) -> Result<Vec<i64>, ParseError> {
    let inside = enclosed(text, 0..text.len(), *b"[]")
        .or_else(|| enclosed(text, 0..text.len(), *b"()"))
        .unwrap_or(0..text.len());
    let mut cursor = Cursor::new(text, inside);
    let mut values = Vec::new();
    cursor.skip_space();
    while cursor.peek().is_some() {
        let start = cursor.at;
        let literal = cursor.integer()?;
        let too_large = || ParseErrorKind::TooLarge("an integer").at(start..cursor.at);
        values.push(literal.exact().ok_or_else(too_large)?);
        cursor.comma()?;
    }
    Ok(values)
}

/// Parse a mask of 64 bits: a Python integer, or several combined as in `1<<4 | 1<<5`.
pub fn parse_mask(text: &str) -> Result<u64, ParseError> {
    // The command line may pass `-1` as `[-1]`; brackets have no other meaning here.
    let negative = enclosed(text, 0..text.len(), *b"[]")
        .filter(|inside| text[inside.clone()].trim_ascii_start().starts_with('-'));
    let mut cursor = Cursor::new(text, negative.unwrap_or(0..text.len()));
    let mask = mask_of_shifts(&mut cursor, 0)?;
    match cursor.peek() {
        None => Ok(mask),
        Some(_) => Err(cursor.unexpected("'|' or '<<'")),
    }
}

const MAX_DEPTH: usize = 64;

/// Parse `shifts | shifts | ...`, and the white space around them.
fn mask_of_shifts(cursor: &mut Cursor, depth: usize) -> Result<u64, ParseError> {
    let mut mask = 0;
    loop {
        mask |= shifts(cursor, depth)?;
        if !cursor.eat("|") {
            return Ok(mask);
        }
    }
}

/// Parse `atom << atom << ...`, from left to right, and the white space around them.
fn shifts(cursor: &mut Cursor, depth: usize) -> Result<u64, ParseError> {
    cursor.skip_space();
    let start = cursor.at;
    let mut value = atom(cursor, depth)?;
    while cursor.eat("<<") {
        cursor.skip_space();
        let places = atom(cursor, depth)?;
        if value != 0 {
            let fits = places <= u64::from(value.leading_zeros());
            let too_large = || ParseErrorKind::TooLarge("a mask").at(start..cursor.at);
            value = fits.then(|| value << places).ok_or_else(too_large)?;
        }
    }
    Ok(value)
}

/// Parse an integer or an expression in parentheses, and the white space after it.
fn atom(cursor: &mut Cursor, depth: usize) -> Result<u64, ParseError> {
    let start = cursor.at;
    let value = if cursor.eat("(") {
        if depth == MAX_DEPTH {
            return Err(ParseErrorKind::TooDeep.at(start..cursor.at));
        }
        let value = mask_of_shifts(cursor, depth + 1)?;
        if !cursor.eat(")") {
            return Err(cursor.unexpected("')'"));
        }
        value
    } else {
        let literal = cursor.integer()?;
        let span = start..cursor.at;
        if literal.negative && literal.magnitude != 0 {
            return Err(ParseErrorKind::NegativeMask.at(span));
        }
        u64::try_from(literal.magnitude).map_err(|_| ParseErrorKind::TooLarge("a mask").at(span))?
    };
    cursor.skip_space();
    Ok(value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::index::numpy;
    use crate::index::resolve::resolve;

    fn one(begin: i64, end: i64, stride: i64) -> StridedSlice {
        StridedSlice {
            begin: vec![begin],
            end: vec![end],
            strides: vec![stride],
            ..StridedSlice::default()
        }
    }

    fn text(flags: &StridedSlice) -> String {
        numpy::format(&flags.to_expr().unwrap()).text
    }

    #[test]
    fn the_documented_example() {
        let expr = numpy::parse("1, 2:4, None, ..., :-3:-1, :").unwrap().expr;
        let flags = StridedSlice {
            begin: vec![1, 2, 0, 0, 0, 0],
            end: vec![2, 4, 0, 0, -3, 0],
            strides: vec![1, 1, 1, 1, -1, 1],
            begin_mask: 48,
            end_mask: 32,
            ellipsis_mask: 8,
            new_axis_mask: 4,
            shrink_axis_mask: 1,
        };
        assert_eq!(StridedSlice::from_expr(&expr), Ok(flags.clone()));
        assert_eq!(flags.to_expr(), Ok(expr));
    }

    #[test]
    fn masks_win_in_their_order() {
        let all = StridedSlice {
            begin_mask: 1,
            end_mask: 1,
            ellipsis_mask: 1,
            new_axis_mask: 1,
            shrink_axis_mask: 1,
            ..one(2, 9, 0)
        };
        assert_eq!(text(&all), "[...]");
        let all = StridedSlice { ellipsis_mask: 0, ..all };
        assert_eq!(text(&all), "[None]");
        let all = StridedSlice { new_axis_mask: 0, ..all };
        assert_eq!(all.to_expr(), Err(StridedSliceError::ZeroStride(0)));
        let all = StridedSlice { strides: vec![3], ..all };
        assert_eq!(text(&all), "[2]");
        let all = StridedSlice { shrink_axis_mask: 0, ..all };
        assert_eq!(text(&all), "[::3]");
    }

    #[test]
    fn bits_past_the_items_mean_nothing_but_a_second_ellipsis() {
        let past = u64::MAX << 1;
        let flags = StridedSlice {
            begin_mask: past,
            end_mask: past,
            ellipsis_mask: 1 << 63,
            new_axis_mask: past,
            shrink_axis_mask: past,
            ..one(1, 2, 1)
        };
        assert_eq!(text(&flags), "[1:2]");
        let flags = StridedSlice { ellipsis_mask: 1 << 63 | 1 << 62, ..flags };
        assert!(matches!(flags.to_expr(), Err(StridedSliceError::MultipleEllipses(_))));
    }

    #[test]
    fn errors_name_the_item_and_the_lengths() {
        let ragged = StridedSlice { end: vec![1, 2], strides: vec![], ..one(0, 0, 1) };
        assert_eq!(
            ragged.to_expr().unwrap_err().to_string(),
            "begin, end and strides must have one length, but have 1, 2 and 0 items"
        );
        for stride in [-1, i64::MIN] {
            let error = StridedSlice { shrink_axis_mask: 1, ..one(0, 1, stride) }.to_expr();
            assert!(
                error.unwrap_err().to_string().contains("only stride 1 allowed on non-range index")
            );
        }
        let many = |n| StridedSlice {
            begin: vec![0; n],
            end: vec![0; n],
            strides: vec![1; n],
            new_axis_mask: u64::MAX,
            ..StridedSlice::default()
        };
        assert_eq!(many(64).to_expr().unwrap().items, vec![Item::NewAxis; 64]);
        assert_eq!(many(65).to_expr(), Err(StridedSliceError::TooManyItems(65)));
        let expr = IndexExpr::new(vec![Item::NewAxis; 65]);
        assert_eq!(StridedSlice::from_expr(&expr), Err(StridedSliceError::TooManyItems(65)));
        let expr = numpy::parse(":, [0]").unwrap().expr;
        assert_eq!(StridedSlice::from_expr(&expr), Err(StridedSliceError::List(1)));
    }

    #[test]
    fn lists_are_read() {
        for empty in ["", " ", "[]", "()", "[ ]"] {
            assert_eq!(parse_list(empty), Ok(vec![]), "{empty}");
        }
        for list in ["1,-2,3", "[1, -2, 3,]", "(1,\t- 2,0x3)", " 1 , -2 , +3 "] {
            assert_eq!(parse_list(list), Ok(vec![1, -2, 3]), "{list}");
        }
        assert_eq!(parse_list("-9223372036854775808"), Ok(vec![i64::MIN]));
        for bad in ["1,,2", ",", "1 2", "[1", "1]", "[[1]]", "1:2", "x", "9223372036854775808"] {
            assert!(parse_list(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn masks_are_read() {
        for (text, mask) in [
            ("0", 0),
            ("48", 48),
            ("0x30", 48),
            ("0b11_0000", 48),
            ("1<<4|1<<5", 48),
            (" ( 1 << 4 ) | ( 1<<5 ) ", 48),
            ("((1<<4)|(1<<5))", 48),
            ("(1|2)<<4", 48),
            ("1<<2<<3", 32),
            ("1<<63", 1 << 63),
            ("18446744073709551615", u64::MAX),
            ("0<<1000", 0),
            ("-0", 0),
        ] {
            assert_eq!(parse_mask(text), Ok(mask), "{text}");
        }
        for negative in ["-1", "[-1]", "1|-2", " - 1", "[ -0x1 ]"] {
            let error = parse_mask(negative).unwrap_err();
            assert_eq!(error.kind, ParseErrorKind::NegativeMask, "{negative}");
        }
        for large in ["1<<64", "18446744073709551616", "3<<63", "1<<99999999999999999999"] {
            let error = parse_mask(large).unwrap_err();
            assert_eq!(error.kind, ParseErrorKind::TooLarge("a mask"), "{large}");
        }
        for bad in ["", "[5]", "(1", "1)", "1<<", "1<4", "|1", "1||2", "1,2", "[-0] 1", "x"] {
            assert!(parse_mask(bad).is_err(), "{bad}");
        }
        assert_eq!(parse_mask(&"(".repeat(100_000)).unwrap_err().kind, ParseErrorKind::TooDeep);
    }

    proptest! {
        #[test]
        fn both_spellings_select_the_same(
            expr in crate::index::tests::expressions(),
            shape in prop::collection::vec(0..6u64, 0..8),
        ) {
            let has_list = expr.items.iter().any(|item| matches!(item, Item::List(_)));
            match StridedSlice::from_expr(&expr) {
                Err(error) => prop_assert!(has_list, "{error}"),
                Ok(flags) => {
                    let back = flags.to_expr();
                    prop_assert!(back.is_ok());
                    prop_assert_eq!(
                        resolve(&back.unwrap(), &shape, false),
                        resolve(&expr, &shape, false)
                    );
                }
            }
        }
    }
}
