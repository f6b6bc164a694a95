//! What an expression selects from a tensor of one shape, as positions; and why one does not fit.

use std::ops::Range;
use std::sync::Arc;

use super::{Malformed, SliceItem};
use crate::shape::{AsTuple, MAX_NDIM};

/// What an expression selects from a tensor of one shape; all positions are in bounds, but those of
/// files, which are not known yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// One for each axis of the source and each new axis, in the order of the expression, with the
    /// ellipsis expanded; the source axes are in ascending order.
    pub axes: Vec<AxisSelection>,
    /// The shape of the source.
    pub source_shape: Vec<u64>,
    /// The lists and masks, in the order of the expression.
    pub lists: Vec<SelectedList>,
    /// The axes of the result that the lists become, in the order of the result. Every list belongs
    /// to one block.
    pub blocks: Vec<ListBlock>,
}

/// What is selected on one axis of the source, or a new axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AxisSelection {
    /// One position; the result has no such axis.
    Index {
        /// Axis of the source.
        axis: usize,
        /// Position, less than the axis' length.
        at: u64,
    },
    /// The positions `start`, `start + step`, ..., `len` of them.
    Range {
        /// Axis of the source.
        axis: usize,
        /// First position; 0 if `len` is 0.
        start: u64,
        /// Distance between positions; 1 if `len` is less than 2.
        step: i64,
        /// Number of positions.
        len: u64,
    },
    /// A new axis of length 1.
    NewAxis,
    /// Positions that a list names; the axes of the result are those of its [`ListBlock`].
    List {
        /// Axis of the source.
        axis: usize,
        /// Number of the list in [`Selection::lists`].
        list: usize,
    },
}

/// A list or a mask, applied to a shape: tuples of positions, one for each axis that it takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectedList {
    /// The number of the item in the expression.
    pub item: usize,
    /// The axes of the source that its tuples index: one for integers, as many as it has for a mask.
    pub axes: Range<usize>,
    /// The shape along which the tuples lie: that of integers, and how many are true of a mask.
    pub shape: Vec<u64>,
    /// The tuples.
    pub positions: ListPositions,
}

/// Where the tuples of a list are known from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListPositions {
    /// Typed positions: tuple after tuple in C order, each position less than its axis' length.
    Known(Arc<[u64]>),
    /// A tensor of integers in a file.
    Integers,
    /// A mask in a file.
    Mask,
}

/// Lists that are broadcast against each other, and become neighbouring axes of the result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListBlock {
    /// How many axes of the result that come from ranges and new axes stand before it.
    pub at: usize,
    /// The shape to which its lists are broadcast.
    pub shape: Vec<u64>,
    /// The lists, as numbers in [`Selection::lists`].
    pub lists: Range<usize>,
}

impl Selection {
    /// All of a tensor of this shape.
    pub fn whole(shape: &[u64]) -> Selection {
        let range = |(axis, &len)| AxisSelection::Range { axis, start: 0, step: 1, len };
        let axes = shape.iter().enumerate().map(range).collect();
        Selection { axes, source_shape: shape.to_vec(), ..Selection::default() }
    }

    /// The shape of the result, with the axes of lists where NumPy puts them.
    pub fn shape(&self) -> Vec<u64> {
        let mut kept = self.axes.iter().filter_map(|axis| match axis {
            AxisSelection::Range { len, .. } => Some(*len),
            AxisSelection::NewAxis => Some(1),
            AxisSelection::Index { .. } | AxisSelection::List { .. } => None,
        });
        let mut shape = Vec::new();
        let mut before = 0;
        for block in &self.blocks {
            shape.extend(kept.by_ref().take(block.at - before));
            shape.extend(&block.shape);
            before = block.at;
        }
        shape.extend(kept);
        shape
    }

    /// For each axis of the result the axis of the source that it is, where it is one: the axis of a list without others
    /// beside it is that of its positions.
    pub fn source_axes(&self) -> Vec<Option<usize>> {
        let mut kept = self.axes.iter().filter_map(|axis| match axis {
            AxisSelection::Range { axis, .. } => Some(Some(*axis)),
            AxisSelection::NewAxis => Some(None),
            AxisSelection::Index { .. } | AxisSelection::List { .. } => None,
        });
        let mut axes = Vec::new();
        let mut before = 0;
        for block in &self.blocks {
            axes.extend(kept.by_ref().take(block.at - before));
            let only = match (&self.lists[block.lists.clone()], block.shape.as_slice()) {
                ([list], [_]) if list.axes.len() == 1 => Some(list.axes.start),
                _ => None,
            };
            axes.extend(block.shape.iter().map(|_| only));
            before = block.at;
        }
        axes.extend(kept);
        axes
    }

    /// Count blocks of the last axis in place of its elements, of which each holds so many.
    ///
    /// # Errors
    /// [`ResolveErrorKind::PartOfBlock`].
    pub(super) fn count_blocks(&mut self, block: u64) -> Result<(), ResolveErrorKind> {
        let Some((last, len)) = self.source_shape.iter_mut().enumerate().last() else {
            return Ok(());
        };
        let whole = |count: u64| count.checked_div(block).filter(|it| it * block == count);
        let unfit = || ResolveErrorKind::PartOfBlock { axis: last, block };
        *len = whole(*len).ok_or_else(unfit)?;
        for pick in &mut self.axes {
            match pick {
                AxisSelection::Range { axis, start, step: 1, len } if *axis == last => {
                    *start = whole(*start).ok_or_else(unfit)?;
                    *len = whole(*len).ok_or_else(unfit)?;
                }
                AxisSelection::Range { axis, .. }
                | AxisSelection::Index { axis, .. }
                | AxisSelection::List { axis, .. }
                    if *axis == last =>
                {
                    return Err(unfit());
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Whether the lists name any position at all. Where they are broadcast to nothing, NumPy does
    /// not look at them.
    pub fn lists_are_empty(&self) -> bool {
        self.blocks.iter().any(|block| block.shape.contains(&0))
    }

    /// Whether the result holds every element of the source, in the same order. Its shape may still
    /// differ by axes of length 1. Always false for a selection with a list.
    pub fn is_whole(&self) -> bool {
        self.lists.is_empty()
            && self.axes.iter().all(|axis| match *axis {
                AxisSelection::Index { axis, .. } => self.source_shape.get(axis) == Some(&1),
                AxisSelection::Range { axis, start, step, len } => {
                    start == 0 && step == 1 && self.source_shape.get(axis) == Some(&len)
                }
                AxisSelection::NewAxis => true,
                AxisSelection::List { .. } => false,
            })
    }
}

/// An expression that does not fit a shape.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind}")]
pub struct ResolveError {
    /// The index of the wrong item in the expression.
    pub item: usize,
    /// The number of the wrong value in the item, where that is a typed list; in C order.
    pub value: Option<usize>,
    /// What is wrong with it.
    pub kind: ResolveErrorKind,
    /// What the lists in files before a wrong value of a typed list select. NumPy looks at one list
    /// after the other, and would report a bad position of these instead.
    pub before: Box<Selection>,
}

/// Why an expression does not fit a shape.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResolveErrorKind {
    /// An integer, alone or in a list, is out of range for its axis.
    #[error("index {index} is out of bounds for axis {axis} with size {size}")]
    OutOfBounds {
        /// The integer as written.
        index: i64,
        /// Axis of the source.
        axis: usize,
        /// Length of that axis.
        size: u64,
    },
    /// More items than axes; the error is at the first item too many.
    #[error("too many indices for array: array is {ndim}-dimensional, but {indexed} were indexed")]
    TooManyIndices {
        /// Axes of the source.
        ndim: usize,
        /// Axes that the items need.
        indexed: usize,
    },
    /// More axes than NumPy allows; the error is at the last new axis or list.
    #[error("number of dimensions must be within [0, {MAX_NDIM}], indexing result would have {0}")]
    TooManyAxes(usize),
    /// An axis of a mask has another length than the axis that it takes.
    #[error(
        "boolean index did not match indexed array along axis {axis}; size of axis is {size} but \
         size of corresponding boolean axis is {mask}"
    )]
    MaskShape {
        /// Axis of the source.
        axis: usize,
        /// Length of that axis.
        size: u64,
        /// Length of the mask's axis.
        mask: u64,
    },
    /// Elements that are stored in blocks, and the index would take one apart.
    #[error(
        "axis {axis} is stored in blocks of {block} elements: a slice of it must begin and end on \
         multiples of {block}, with step 1"
    )]
    PartOfBlock {
        /// Axis of the source.
        axis: usize,
        /// Elements of a block.
        block: u64,
    },
    /// Lists of shapes that are not broadcast to one; the error is at the first that does not fit
    /// those before it.
    #[error(
        "shape mismatch: indexing arrays could not be broadcast together with shapes {}",
        .0.iter().map(|shape| format!("{:#}", AsTuple(shape))).collect::<Vec<_>>().join(" ")
    )]
    Broadcast(Vec<Vec<u64>>),
    /// A mask of several axes where each list is taken along its own axis.
    #[error("a mask of {0} axes is not for one axis: with each list along its own it needs 1")]
    OuterMask(usize),
    /// A list in a file that nobody has opened.
    #[error("the file of this list is not open: lists in files cannot be used here")]
    NotOpened,
    /// The expression breaks a rule that parsing checks.
    #[error(transparent)]
    Malformed(#[from] Malformed),
}

/// The position of an integer; a negative one counts from the end.
pub(super) fn position(index: i64, axis: usize, size: u64) -> Result<u64, ResolveErrorKind> {
    let wrapped = i128::from(index) + if index < 0 { i128::from(size) } else { 0 };
    match u64::try_from(wrapped) {
        Ok(at) if at < size => Ok(at),
        _ => Err(ResolveErrorKind::OutOfBounds { index, axis, size }),
    }
}

/// A slice, by the rules of Python's `slice.indices`; its step is not 0.
pub(super) fn range(slice: SliceItem, axis: usize, size: u64) -> AxisSelection {
    let size = i128::from(size);
    let step = i128::from(slice.step.unwrap_or(1));
    // Bounds are clamped to the axis and one past its end in the direction of the step.
    let (lowest, highest) = if step < 0 { (-1, size - 1) } else { (0, size) };
    let (first, last) = if step < 0 { (highest, lowest) } else { (lowest, highest) };
    let clamped = |bound: i64| {
        let bound = i128::from(bound);
        (if bound < 0 { bound + size } else { bound }).clamp(lowest, highest)
    };
    let start = slice.start.map_or(first, clamped);
    let stop = slice.stop.map_or(last, clamped);
    let distance = if step < 0 { start - stop } else { stop - start };
    let len = match distance {
        // Rounded up: an incomplete last step still has a position at its start.
        1.. => (distance - 1) / step.abs() + 1,
        _ => 0,
    };
    // The casts are lossless: positions and lengths are within the axis, and so is a step that is
    // used.
    AxisSelection::Range {
        axis,
        start: if len > 0 { start as u64 } else { 0 },
        step: if len > 1 { step as i64 } else { 1 },
        len: len as u64,
    }
}

impl Selection {
    /// The positions `start` to `start + len` of this selection's axis `axis`, counted in its
    /// result; `len` must be more than 0. `None` for an axis that the result does not have, for
    /// positions past its end, and for a selection with a list.
    ///
    /// ```
    /// use tslice::index::{numpy, resolve::{AxisSelection, resolve}};
    /// let expr = numpy::parse("2, ::-2").unwrap().expr;
    /// let part = resolve(&expr, &[3, 9], false).unwrap().narrowed(0, 1, 3).unwrap();
    /// assert_eq!(part.shape(), [3]);
    /// assert_eq!(part.axes[1], AxisSelection::Range { axis: 1, start: 6, step: -2, len: 3 });
    /// ```
    pub fn narrowed(&self, axis: usize, start: u64, len: u64) -> Option<Selection> {
        if !self.lists.is_empty() {
            return None;
        }
        let mut narrowed = self.clone();
        let mut at = 0;
        for selected in &mut narrowed.axes {
            match selected {
                AxisSelection::Index { .. } | AxisSelection::List { .. } => continue,
                AxisSelection::NewAxis if at == axis && (start, len) != (0, 1) => return None,
                AxisSelection::Range { start: first, step, len: all, .. } if at == axis => {
                    if start.checked_add(len)? > *all {
                        return None;
                    }
                    // each position lies inside the axis, so below 2^63
                    *first = first.checked_add_signed(*step * start as i64)?;
                    *all = len;
                    if len == 1 {
                        *step = 1;
                    }
                }
                AxisSelection::NewAxis | AxisSelection::Range { .. } => {}
            }
            at += 1;
        }
        (axis < at).then_some(narrowed)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tests::slices;
    use super::*;

    /// Python's `slice.indices` and `range`, one position at a time.
    fn naive(slice: SliceItem, len: i128) -> Vec<i128> {
        let step = i128::from(slice.step.unwrap_or(1));
        let wrap = |bound: i64| i128::from(bound) + if bound < 0 { len } else { 0 };
        let (mut at, stop) = if step > 0 {
            (
                slice.start.map_or(0, |start| wrap(start).max(0)),
                slice.stop.map_or(len, |stop| wrap(stop).min(len)),
            )
        } else {
            (
                slice.start.map_or(len - 1, |start| wrap(start).min(len - 1)),
                slice.stop.map_or(-1, |stop| wrap(stop).max(-1)),
            )
        };
        let mut positions = Vec::new();
        while if step > 0 { at < stop } else { at > stop } {
            positions.push(at);
            at += step;
        }
        positions
    }

    proptest! {
        #[test]
        fn ranges_are_pythons(slice in slices(), len in 0..9u64) {
            let AxisSelection::Range { start, step, len: count, .. } = range(slice, 0, len) else {
                return Err(TestCaseError::fail("not a range"));
            };
            let positions: Vec<_> =
                (0..i128::from(count)).map(|i| i128::from(start) + i * i128::from(step)).collect();
            prop_assert_eq!(positions, naive(slice, len.into()));
        }

        #[test]
        fn long_ranges_stay_inside(slice in slices(), len in any::<i64>()) {
            let len = len.unsigned_abs() >> 1;
            let AxisSelection::Range { start, step, len: count, .. } = range(slice, 0, len) else {
                return Err(TestCaseError::fail("not a range"));
            };
            prop_assert!(count <= len);
            if count > 0 {
                let last = i128::from(start) + (i128::from(count) - 1) * i128::from(step);
                prop_assert!(start < len && (0..i128::from(len)).contains(&last));
            }
        }
    }
}
