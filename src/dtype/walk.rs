//! A walk through the parts of an element, in the order of their bytes: numbers, strings and times,
//! with the structures and the axes of subarrays around them.
//!
//! A structure in a subarray is visited once for each item, but nothing is expanded in memory.
//!
//! ```
//! use std::convert::Infallible;
//! use tslice::dtype::{Step, walk};
//! use tslice::formats::npy::parse_dtype;
//! let dtype = parse_dtype("i2, f4")?;
//! let mut leaves = Vec::new();
//! let Ok(()) = walk::<Infallible>(&dtype, &mut |step| {
//!     if let Step::Leaf { dtype, offset, count, .. } = step {
//!         leaves.push((dtype.to_string(), offset, count));
//!     }
//!     Ok(())
//! });
//! assert_eq!(leaves, [("int16".to_owned(), 0, 1), ("float32".to_owned(), 2, 1)]);
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

/// What is called with each step; its error ends the walk.
type Visit<'v, 'a, E> = &'v mut dyn FnMut(Step<'a>) -> Result<(), E>;

/// Visit all parts of an element.
pub fn walk<'a, E>(dtype: &'a DType, visit: Visit<'_, 'a, E>) -> Result<(), E> {
    walk_shortened(dtype, None, visit)
}

/// Visit the parts of an element, but the middle of long subarrays.
pub(crate) fn walk_shortened<'a, E>(
    dtype: &'a DType,
    shortened: Option<Shortened>,
    visit: Visit<'_, 'a, E>,
) -> Result<(), E> {
    Walk { shortened, visit }.element(dtype, 0, 0)
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

struct Walk<'v, 'a, E> {
    shortened: Option<Shortened>,
    visit: Visit<'v, 'a, E>,
}

impl<'a, E> Walk<'_, 'a, E> {
    /// Visit an element or a part of one, which begins at `offset`; `number` is the index of its first leaf type.
    fn element(&mut self, dtype: &'a DType, offset: u64, mut number: usize) -> Result<(), E> {
        let Some(structure) = dtype.structure() else {
            return (self.visit)(Step::Leaf { dtype, number, offset, count: 1 });
        };
        (self.visit)(Step::Structure)?;
        for field in &structure.fields {
            (self.visit)(Step::Field(field))?;
            self.items(field, &field.shape, offset + field.offset, number)?;
            number += field.dtype.leaf_count();
        }
        (self.visit)(Step::EndStructure)
    }

    /// Visit the items of a field along `shape`, the last axes of the field.
    fn items(
        &mut self,
        field: &'a Field,
        shape: &'a [u64],
        offset: u64,
        number: usize,
    ) -> Result<(), E> {
        let Some((&len, inner)) = shape.split_first() else {
            return self.element(&field.dtype, offset, number);
        };
        let size = inner.iter().fold(field.itemsize(), |size, &len| size.saturating_mul(len));
        let is_leaf = inner.is_empty() && field.dtype.structure().is_none();
        let edge = self.shortened.and_then(|shortened| shortened.edge(field, len));
        let (first, last) = edge.map_or((len, len), |edge| (edge, len - edge));
        (self.visit)(Step::List)?;
        for items in [0..first, last..len] {
            if items.start > 0 && edge.is_some() {
                (self.visit)(Step::Gap)?;
            }
            if !is_leaf {
                for at in items {
                    self.items(field, inner, offset + at * size, number)?;
                }
            } else if !items.is_empty() {
                let count = items.end - items.start;
                let offset = offset + items.start * size;
                (self.visit)(Step::Leaf { dtype: &field.dtype, number, offset, count })?;
            }
        }
        (self.visit)(Step::EndList)
    }
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
