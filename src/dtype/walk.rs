//! A walk through the parts of an element, in the order of their bytes: numbers, strings and times,
//! with the structures and the axes of subarrays around them.
//!
//! A structure in a subarray is visited once for each item, but nothing is expanded in memory: the
//! walk only keeps its position, however large the element.
//!
//! ```
//! use tslice::dtype::{Step, Walk};
//! use tslice::formats::npy::parse_dtype;
//! let dtype = parse_dtype("i2, (2,3)f4")?;
//! let leaves = Walk::new(&dtype).filter_map(|step| match step {
//!     Step::Leaf { dtype, offset, count, .. } => Some((dtype.to_string(), offset, count)),
//!     _ => None,
//! });
//! let float = |offset| ("float32".to_owned(), offset, 3);
//! assert_eq!(leaves.collect::<Vec<_>>(), [("int16".to_owned(), 0, 1), float(2), float(14)]);
//! # Ok::<(), tslice::formats::npy::DescrError>(())
//! ```

use super::{DType, Field};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    Structure,
    Field(&'a Field),
    EndStructure,
    /// The beginning of an axis of a subarray.
    List,
    /// Items omitted in the middle of an axis.
    Gap,
    EndList,
    /// Neighbouring items without fields: a single item, or the items along the last axis of a
    /// subarray.
    Leaf {
        dtype: &'a DType,
        /// The index of the type in [`DType::leaves`].
        number: usize,
        /// The offset of the first item in the element, in bytes.
        offset: u64,
        count: u64,
    },
}

#[derive(Clone, Debug)]
pub struct Walk<'a> {
    /// The open structures and axes, outermost first.
    open: Vec<Open<'a>>,
    /// The next step, where it is not found from `open`.
    next: Option<Step<'a>>,
    shortened: Option<Shortened>,
}

/// The shortening of subarrays, as in NumPy's summaries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shortened {
    /// Only subarrays of more items than this are shortened.
    pub(crate) threshold: u64,
    /// The number of items shown at each end of an axis.
    pub(crate) edge: u64,
}

impl Shortened {
    /// The number of items to show at each end of an axis of length `len`; `None` to show all.
    fn edge(self, field: &Field, len: u64) -> Option<u64> {
        let is_long = self.edge.checked_mul(2).is_some_and(|shown| shown < len);
        (is_long && field.count() > self.threshold).then_some(self.edge)
    }
}

#[derive(Clone, Debug)]
enum Open<'a> {
    /// A structure and its remaining fields; `start.number` is the first leaf of the next field.
    Structure { fields: &'a [Field], start: Start },
    /// An axis of a subarray: `shape` is its length and the inner axes, `at` the next item.
    List { field: &'a Field, shape: &'a [u64], at: u64, start: Start },
}

/// An offset in the element, in bytes, and the index of the first leaf type at this offset.
#[derive(Clone, Copy, Debug, Default)]
struct Start {
    offset: u64,
    number: usize,
}

impl<'a> Walk<'a> {
    pub fn new(dtype: &'a DType) -> Walk<'a> {
        let mut walk = Walk { open: Vec::new(), next: None, shortened: None };
        walk.next = Some(walk.enter(dtype, Start::default()));
        walk
    }

    /// Walk through an element, leaving out the middle of long subarrays.
    pub(crate) fn shortened(dtype: &'a DType, shortened: Shortened) -> Walk<'a> {
        Walk { shortened: Some(shortened), ..Walk::new(dtype) }
    }

    fn enter(&mut self, dtype: &'a DType, start: Start) -> Step<'a> {
        match dtype.structure() {
            Some(structure) => {
                self.open.push(Open::Structure { fields: &structure.fields, start });
                Step::Structure
            }
            None => Step::Leaf { dtype, number: start.number, offset: start.offset, count: 1 },
        }
    }

    /// Begin the items of a field along `shape`, the last axes of the field.
    fn enter_axes(&mut self, field: &'a Field, shape: &'a [u64], start: Start) -> Step<'a> {
        if shape.is_empty() {
            return self.enter(&field.dtype, start);
        }
        self.open.push(Open::List { field, shape, at: 0, start });
        Step::List
    }

    /// Continue in a structure with the remaining fields.
    fn next_field(&mut self, fields: &'a [Field], mut start: Start) -> Step<'a> {
        let Some((field, rest)) = fields.split_first() else { return Step::EndStructure };
        let begin = Start { offset: start.offset + field.offset, number: start.number };
        start.number += field.dtype.leaf_count();
        self.open.push(Open::Structure { fields: rest, start });
        self.next = Some(self.enter_axes(field, &field.shape, begin));
        Step::Field(field)
    }

    /// Continue along an axis of a field; `at` is the next item.
    fn next_item(&mut self, field: &'a Field, shape: &'a [u64], at: u64, start: Start) -> Step<'a> {
        let len = shape[0];
        let inner = &shape[1..];
        if at >= len {
            return Step::EndList;
        }
        let edge = self.shortened.and_then(|shortened| shortened.edge(field, len));
        let is_leaf = inner.is_empty() && field.dtype.structure().is_none();
        let next = match edge {
            Some(edge) if edge == at => len - edge,
            _ if !is_leaf => at + 1,
            Some(edge) if at < edge => edge,
            _ => len,
        };
        let behind = Start { offset: start.offset + (next - at) * bytes(field, inner), ..start };
        self.open.push(Open::List { field, shape, at: next, start: behind });
        if edge == Some(at) {
            return Step::Gap;
        }
        if is_leaf {
            let Start { offset, number } = start;
            return Step::Leaf { dtype: &field.dtype, number, offset, count: next - at };
        }
        self.enter_axes(field, inner, start)
    }
}

impl<'a> Iterator for Walk<'a> {
    type Item = Step<'a>;

    fn next(&mut self) -> Option<Step<'a>> {
        if let Some(step) = self.next.take() {
            return Some(step);
        }
        Some(match self.open.pop()? {
            Open::Structure { fields, start } => self.next_field(fields, start),
            Open::List { field, shape, at, start } => self.next_item(field, shape, at, start),
        })
    }
}

fn bytes(field: &Field, axes: &[u64]) -> u64 {
    axes.iter().fold(field.itemsize(), |size, &len| size.saturating_mul(len))
}

impl DType {
    /// The types of the parts without fields, in order; each type once, even inside a subarray.
    pub fn leaves(&self) -> Vec<&DType> {
        let Some(structure) = self.structure() else { return vec![self] };
        structure.fields.iter().flat_map(|field| field.dtype.leaves()).collect()
    }

    fn leaf_count(&self) -> usize {
        let fields = self.structure().map(|structure| &structure.fields);
        fields.map_or(1, |fields| fields.iter().map(|field| field.dtype.leaf_count()).sum())
    }
}
