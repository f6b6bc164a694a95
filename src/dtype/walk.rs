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

/// One event of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    Structure,
    Field(&'a Field),
    EndStructure,
    /// An axis of a subarray begins.
    List,
    /// Items in the middle of the axis are left out.
    Gap,
    EndList,
    /// Neighbouring items without fields: one, or those along the last axis of a subarray.
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
    /// The structures and axes that are open, the outermost first.
    open: Vec<Open<'a>>,
    /// The step to return before continuing with `open`.
    next: Option<Step<'a>>,
    shortened: Option<Shortened>,
}

/// How subarrays are shortened, as in NumPy's summaries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shortened {
    /// Only subarrays of more items than this are shortened.
    pub(crate) threshold: u64,
    /// How many items stay at each end of an axis.
    pub(crate) edge: u64,
}

impl Shortened {
    /// The items to show at each end of an axis of length `len`; `None` where all are shown.
    fn edge(self, field: &Field, len: u64) -> Option<u64> {
        let is_long = self.edge.checked_mul(2).is_some_and(|shown| shown < len);
        (is_long && field.count() > self.threshold).then_some(self.edge)
    }
}

#[derive(Clone, Debug)]
enum Open<'a> {
    /// A structure and its remaining fields. `start.number` is that of the next field's first leaf.
    Structure { fields: &'a [Field], start: Start },
    /// An axis of a subarray: `shape` is its length and the inner axes, `at` the next item.
    List { field: &'a Field, shape: &'a [u64], at: u64, start: Start },
}

/// The offset in the element, in bytes, and the index of the first leaf type there.
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

    /// Begin the items of a field along the axes `shape`, the last of its axes.
    fn enter_axes(&mut self, field: &'a Field, shape: &'a [u64], start: Start) -> Step<'a> {
        if shape.is_empty() {
            return self.enter(&field.dtype, start);
        }
        self.open.push(Open::List { field, shape, at: 0, start });
        Step::List
    }

    /// Go on in a structure with these fields left.
    fn next_field(&mut self, fields: &'a [Field], mut start: Start) -> Step<'a> {
        let Some((field, rest)) = fields.split_first() else { return Step::EndStructure };
        let begin = Start { offset: start.offset + field.offset, number: start.number };
        start.number += field.dtype.leaf_count();
        self.open.push(Open::Structure { fields: rest, start });
        self.next = Some(self.enter_axes(field, &field.shape, begin));
        Step::Field(field)
    }

    /// Go on along an axis of a field, of which `at` is the next item.
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
    /// The types of the parts without fields, in order; each once, even inside a subarray.
    pub fn leaves(&self) -> Vec<&DType> {
        let Some(structure) = self.structure() else { return vec![self] };
        structure.fields.iter().flat_map(|field| field.dtype.leaves()).collect()
    }

    fn leaf_count(&self) -> usize {
        let fields = self.structure().map(|structure| &structure.fields);
        fields.map_or(1, |fields| fields.iter().map(|field| field.dtype.leaf_count()).sum())
    }
}
