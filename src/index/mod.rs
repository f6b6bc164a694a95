//! Index expressions: what to take of a tensor, as data.
//!
//! Both ways of writing an index, NumPy's text ([`numpy`]) and StridedSlice's numbers
//! ([`strided_slice`]), parse to one list of [`Item`]s and can be printed from it. After parsing,
//! nobody knows which it was. [`resolve`] applies a list to a shape: arithmetic on numbers alone,
//! no bytes, no files.
//!
//! ```
//! use tslice::index::{numpy, resolve::resolve};
//! let parsed = numpy::parse("1, ..., ::-2").unwrap();
//! let selection = resolve(&parsed.expr, &[4, 5, 6], false).unwrap();
//! assert_eq!(selection.shape(), [5, 3]);
//! ```

pub mod numpy;
pub mod resolve;
pub mod strided_slice;

/// One item of an index expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// One position on an axis, which the result loses; negative values count from the end.
    Integer(i64),
    /// A range of positions on an axis.
    Slice(Slice),
    /// As many whole axes as the other items leave over.
    Ellipsis,
    /// A new axis of length 1.
    NewAxis,
    /// Positions on an axis in any order, negative ones counting from the end.
    List(Vec<i64>),
}

/// `start:stop:step` of Python, each part optional.
///
/// Bounds past 64 bits are stored as the nearest 64-bit value, which selects the same elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slice {
    /// First position; negative values count from the end.
    pub start: Option<i64>,
    /// One past the last position, in the direction of the step.
    pub stop: Option<i64>,
    /// Distance between positions; never 0. Absent means 1.
    pub step: Option<i64>,
}

/// A whole index expression: at most one ellipsis, at most one list, no step of 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexExpr {
    /// The items in the order in which they were written.
    pub items: Vec<Item>,
}

/// An index expression in NumPy's words, with the place of each item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spelled {
    /// What the text means.
    pub expr: IndexExpr,
    /// The text.
    pub text: String,
    /// The byte range of each item of `expr` in `text`.
    pub spans: Vec<std::ops::Range<usize>>,
}
