//! The parts of an element, in the order of their bytes: numbers, strings and times, with the
//! structures and the lists of subarrays around them.
//!
//! A structure in a subarray is gone through as often as it stands there, but nothing is held of
//! that: a walk knows where it is, however large the element. It may begin anywhere in it.
//!
//! ```
//! use tslice::dtype::{Step, Walk};
//! use tslice::format::npy::parse_dtype;
//! let dtype = parse_dtype("i2, (2,3)f4")?;
//! let leaves = Walk::new(&dtype).filter_map(|step| match step {
//!     Step::Leaf { dtype, offset, count, .. } => Some((dtype.to_string(), offset, count)),
//!     _ => None,
//! });
//! let float = |offset| ("float32".to_owned(), offset, 3);
//! assert_eq!(leaves.collect::<Vec<_>>(), [("int16".to_owned(), 0, 1), float(2), float(14)]);
//! # Ok::<(), tslice::format::npy::DescrError>(())
//! ```

use std::ops::Range;

use super::types::{DType, Field};

/// What is met on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// A structure begins.
    Structure,
    /// A field of it begins.
    Field(&'a Field),
    EndStructure,
    /// An axis of a subarray begins.
    List,
    /// Items in the middle of an axis are left out.
    Gap,
    /// The axis ends.
    EndList,
    /// Neighbouring items that are no structures: one, or those along the last axis of a subarray.
    Leaf {
        /// The type of each.
        dtype: &'a DType,
        /// Which of the types of the parts it is: see [`DType::leaves`].
        number: usize,
        /// Where the first one begins in the element, in bytes.
        offset: u64,
        count: u64,
    },
}

/// The steps through an element.
#[derive(Clone, Debug)]
pub struct Walk<'a> {
    /// Where it is: what has begun, the outermost first.
    open: Vec<Open<'a>>,
    /// What comes before going on with these.
    next: Option<Step<'a>>,
    /// Bytes of the element in which leaves lie.
    range: Range<u64>,
    shortened: Option<Shortened>,
}

/// Which items of subarrays are left out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shortened {
    /// Subarrays of more items than this are shortened,
    pub(crate) threshold: u64,
    /// to so many at each end of their axes.
    pub(crate) edge: u64,
}

impl Shortened {
    /// How many items are shown at each end of an axis of a subarray, where some are left out.
    fn edge(self, field: &Field, len: u64) -> Option<u64> {
        let is_long = self.edge.checked_mul(2).is_some_and(|shown| shown < len);
        (is_long && field.count() > self.threshold).then_some(self.edge)
    }
}

/// Where a walk is, for going on with it later: see [`Walk::pause`].
#[derive(Clone, Debug)]
pub struct Paused {
    open: Vec<PausedIn>,
    range: Range<u64>,
}

/// What has begun: how many of its fields or axes are left, and as in [`Open`].
#[derive(Clone, Copy, Debug)]
enum PausedIn {
    Structure { left: usize, start: Start },
    List { left: usize, at: u64, start: Start },
}

#[derive(Clone, Debug)]
enum Open<'a> {
    /// A structure, of whose fields these are left. The first type is that of the next field.
    Structure { fields: &'a [Field], start: Start },
    /// An axis of a subarray: its length and its inner axes, the item that comes.
    List { field: &'a Field, shape: &'a [u64], at: u64, start: Start },
}

/// Where something begins: in bytes of the element, and by the number of the first type in it.
#[derive(Clone, Copy, Debug, Default)]
struct Start {
    offset: u64,
    number: usize,
}

impl<'a> Walk<'a> {
    /// Through all of an element.
    pub fn new(dtype: &'a DType) -> Walk<'a> {
        Walk::within(dtype, 0..u64::MAX)
    }

    /// Through those items of an element that have bytes in a range, and what is around them; what
    /// lies outside is passed over.
    pub fn within(dtype: &'a DType, range: Range<u64>) -> Walk<'a> {
        let mut walk = Walk { open: Vec::new(), next: None, range, shortened: None };
        walk.next = walk.enter(dtype, Start::default());
        walk
    }

    /// Through an element without the middle of long subarrays.
    pub(crate) fn shortened(dtype: &'a DType, shortened: Shortened) -> Walk<'a> {
        Walk { shortened: Some(shortened), ..Walk::new(dtype) }
    }

    /// Where it is, apart from the dtype that it goes through. A step that is known to come next is
    /// lost: there is none at the beginnings of leaves and at the end.
    pub fn pause(self) -> Paused {
        let paused = |open: &Open<'_>| match *open {
            Open::Structure { fields, start } => PausedIn::Structure { left: fields.len(), start },
            Open::List { shape, at, start, .. } => PausedIn::List { left: shape.len(), at, start },
        };
        Paused { open: self.open.iter().map(paused).collect(), range: self.range }
    }

    /// Go on from there through an element of the same dtype.
    pub fn resume(dtype: &'a DType, paused: Paused) -> Walk<'a> {
        let mut open = Vec::with_capacity(paused.open.len());
        let mut inside = dtype;
        let mut begun = None;
        for paused in paused.open {
            match paused {
                PausedIn::Structure { left, start } => {
                    let fields = inside.structure().map_or(&[][..], |inside| &inside.fields);
                    let (before, fields) = fields.split_at(fields.len().saturating_sub(left));
                    open.push(Open::Structure { fields, start });
                    begun = before.last();
                    inside = begun.map_or(inside, |field| &field.dtype);
                }
                PausedIn::List { left, at, start } => {
                    let Some(field) = begun else { continue };
                    let shape = &field.shape[field.shape.len().saturating_sub(left)..];
                    open.push(Open::List { field, shape, at, start });
                }
            }
        }
        Walk { open, next: None, range: paused.range, shortened: None }
    }

    /// Begin an item.
    fn enter(&mut self, dtype: &'a DType, start: Start) -> Option<Step<'a>> {
        match dtype.structure() {
            Some(structure) => {
                self.open.push(Open::Structure { fields: &structure.fields, start });
                Some(Step::Structure)
            }
            None => self.leaf(dtype, start, 1),
        }
    }

    /// Those of neighbouring items that have bytes in the range.
    fn leaf(&self, dtype: &'a DType, start: Start, count: u64) -> Option<Step<'a>> {
        let Start { offset, number } = start;
        let size = dtype.item_bits() / 8;
        let first = self.range.start.saturating_sub(offset).checked_div(size).unwrap_or(0);
        let end = match size {
            0 => count,
            size => self.range.end.saturating_sub(offset).div_ceil(size).min(count),
        };
        let offset = offset + first * size;
        (first < end).then_some(Step::Leaf { dtype, number, offset, count: end - first })
    }

    /// Begin the items of a field, or those along the rest of its axes.
    fn enter_axes(
        &mut self,
        field: &'a Field,
        shape: &'a [u64],
        mut start: Start,
    ) -> Option<Step<'a>> {
        let Some((&len, inner)) = shape.split_first() else {
            return self.enter(&field.dtype, start);
        };
        let size = bytes(field, inner);
        let before = self.range.start.saturating_sub(start.offset);
        let at = before.checked_div(size).unwrap_or(0).min(len);
        start.offset += at * size;
        self.open.push(Open::List { field, shape, at, start });
        Some(Step::List)
    }
}

impl<'a> Iterator for Walk<'a> {
    type Item = Step<'a>;

    fn next(&mut self) -> Option<Step<'a>> {
        loop {
            if let Some(step) = self.next.take() {
                return Some(step);
            }
            let end = self.range.end;
            let shortened = self.shortened;
            match self.open.last_mut()? {
                Open::Structure { fields, start } => {
                    let (mut begin, Some((field, rest))) = (*start, fields.split_first()) else {
                        self.open.pop();
                        return Some(Step::EndStructure);
                    };
                    *fields = rest;
                    start.number += field.dtype.leaf_count();
                    begin.offset += field.offset;
                    if begin.offset >= end {
                        *fields = &[];
                    } else if begin.offset + field.bytes() > self.range.start || field.bytes() == 0
                    {
                        self.next = self.enter_axes(field, &field.shape, begin);
                        return Some(Step::Field(field));
                    }
                }
                Open::List { field, shape, at, start } => {
                    let field = *field;
                    let begin = *start;
                    let shape = *shape;
                    let len = shape[0];
                    let inner = &shape[1..];
                    let size = bytes(field, inner);
                    let edge = shortened.and_then(|shortened| shortened.edge(field, len));
                    if *at >= len || begin.offset >= end {
                        self.open.pop();
                        return Some(Step::EndList);
                    }
                    if edge == Some(*at) {
                        *at = len - *at;
                        start.offset += (2 * *at - len) * size;
                        return Some(Step::Gap);
                    }
                    let is_leaf = inner.is_empty() && field.dtype.structure().is_none();
                    let stop = edge.filter(|edge| *at < *edge).unwrap_or(len);
                    let count = if is_leaf { stop - *at } else { 1 };
                    *at += count;
                    start.offset += count * size;
                    self.next = if is_leaf {
                        self.leaf(&field.dtype, begin, count)
                    } else {
                        self.enter_axes(field, inner, begin)
                    };
                }
            }
        }
    }
}

/// The bytes of those items of a field that lie along some of its axes.
fn bytes(field: &Field, axes: &[u64]) -> u64 {
    axes.iter().fold(field.itemsize(), |size, &len| size.saturating_mul(len))
}

impl DType {
    /// The types of the parts of an element that are no structures, in their order; once also where
    /// they stand in subarrays.
    pub fn leaves(&self) -> Vec<&DType> {
        let Some(structure) = self.structure() else { return vec![self] };
        structure.fields.iter().flat_map(|field| field.dtype.leaves()).collect()
    }

    /// How many types of parts it has.
    fn leaf_count(&self) -> usize {
        let fields = self.structure().map(|structure| &structure.fields);
        fields.map_or(1, |fields| fields.iter().map(|field| field.dtype.leaf_count()).sum())
    }
}
