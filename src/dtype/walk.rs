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
//!     Step::Leaf { dtype, offset, count } => Some((dtype.to_string(), offset, count)),
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
    /// The structure ends.
    EndStructure,
    /// An axis of a subarray begins.
    List,
    /// It ends.
    EndList,
    /// Neighbouring items that are no structures: one, or those along the last axis of a subarray.
    Leaf {
        /// The type of each.
        dtype: &'a DType,
        /// Where the first one begins in the element, in bytes.
        offset: u64,
        /// How many there are.
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
    Structure { left: usize, offset: u64 },
    List { left: usize, at: u64, offset: u64 },
}

#[derive(Clone, Debug)]
enum Open<'a> {
    /// A structure, of whose fields these are left; where it begins.
    Structure(&'a [Field], u64),
    /// An axis of a subarray: its length and its inner axes, the item that comes, where it begins.
    List { field: &'a Field, shape: &'a [u64], at: u64, offset: u64 },
}

impl<'a> Walk<'a> {
    /// Through all of an element.
    pub fn new(dtype: &'a DType) -> Walk<'a> {
        Walk::within(dtype, 0..u64::MAX)
    }

    /// Through those items of an element that have bytes in a range, and what is around them; what
    /// lies outside is passed over.
    pub fn within(dtype: &'a DType, range: Range<u64>) -> Walk<'a> {
        let mut walk = Walk { open: Vec::new(), next: None, range };
        walk.next = walk.enter(dtype, 0);
        walk
    }

    /// Where it is, apart from the dtype that it goes through. A step that is known to come next is
    /// lost: there is none at the beginnings of leaves and at the end.
    pub fn pause(self) -> Paused {
        let paused = |open: &Open<'_>| match *open {
            Open::Structure(fields, offset) => PausedIn::Structure { left: fields.len(), offset },
            Open::List { shape, at, offset, .. } => {
                PausedIn::List { left: shape.len(), at, offset }
            }
        };
        Paused { open: self.open.iter().map(paused).collect(), range: self.range }
    }

    /// Go on from there through an element of the same dtype.
    pub fn resume(dtype: &'a DType, paused: Paused) -> Walk<'a> {
        let mut open = Vec::with_capacity(paused.open.len());
        let (mut inside, mut begun) = (dtype, None);
        for paused in paused.open {
            match paused {
                PausedIn::Structure { left, offset } => {
                    let fields = inside.structure().map_or(&[][..], |inside| &inside.fields);
                    let (before, rest) = fields.split_at(fields.len().saturating_sub(left));
                    open.push(Open::Structure(rest, offset));
                    begun = before.last();
                    inside = begun.map_or(inside, |field| &field.dtype);
                }
                PausedIn::List { left, at, offset } => {
                    let Some(field) = begun else { continue };
                    let shape = &field.shape[field.shape.len().saturating_sub(left)..];
                    open.push(Open::List { field, shape, at, offset });
                }
            }
        }
        Walk { open, next: None, range: paused.range }
    }

    /// Begin an item.
    fn enter(&mut self, dtype: &'a DType, offset: u64) -> Option<Step<'a>> {
        match dtype.structure() {
            Some(structure) => {
                self.open.push(Open::Structure(&structure.fields, offset));
                Some(Step::Structure)
            }
            None => self.leaf(dtype, offset, 1),
        }
    }

    /// Those of neighbouring items that have bytes in the range.
    fn leaf(&self, dtype: &'a DType, offset: u64, count: u64) -> Option<Step<'a>> {
        let size = dtype.item_bits() / 8;
        let first = self.range.start.saturating_sub(offset).checked_div(size).unwrap_or(0);
        let end = match size {
            0 => count,
            size => self.range.end.saturating_sub(offset).div_ceil(size).min(count),
        };
        let offset = offset + first * size;
        (first < end).then_some(Step::Leaf { dtype, offset, count: end - first })
    }

    /// Begin the items of a field, or those along the rest of its axes.
    fn enter_axes(&mut self, field: &'a Field, shape: &'a [u64], offset: u64) -> Option<Step<'a>> {
        let Some((_, inner)) = shape.split_first() else {
            return self.enter(&field.dtype, offset);
        };
        let size = inner.iter().fold(field.itemsize(), |size, &len| size.saturating_mul(len));
        let skipped = self.range.start.saturating_sub(offset).checked_div(size).unwrap_or(0);
        let skipped = skipped.min(shape[0]);
        let offset = offset + skipped * size;
        self.open.push(Open::List { field, shape, at: skipped, offset });
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
            match self.open.last_mut()? {
                Open::Structure(fields, begin) => {
                    let begin = *begin;
                    let Some((field, rest)) = fields.split_first() else {
                        self.open.pop();
                        return Some(Step::EndStructure);
                    };
                    *fields = rest;
                    let offset = begin + field.offset;
                    if offset >= end {
                        *fields = &[];
                    } else if offset + field.bytes() > self.range.start || field.bytes() == 0 {
                        self.next = self.enter_axes(field, &field.shape, offset);
                        return Some(Step::Field(field));
                    }
                }
                Open::List { field, shape, at, offset } => {
                    let (field, place) = (*field, *offset);
                    let shape: &'a [u64] = shape;
                    if *at >= shape[0] || place >= end {
                        self.open.pop();
                        return Some(Step::EndList);
                    }
                    if shape.len() == 1 && field.dtype.structure().is_none() {
                        let count = shape[0] - *at;
                        *at = shape[0];
                        self.next = self.leaf(&field.dtype, place, count);
                    } else {
                        let inner = &shape[1..];
                        let size = inner
                            .iter()
                            .fold(field.itemsize(), |size, len| size.saturating_mul(*len));
                        *at += 1;
                        *offset += size;
                        self.next = self.enter_axes(field, inner, place);
                    }
                }
            }
        }
    }
}
