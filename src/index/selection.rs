//! The positions that an expression selects from a tensor, and the errors if it does not fit.

use std::ops::Range;
use std::sync::Arc;

use super::{IndexExpr, Item, Malformed, SliceItem};
use crate::shape::{AsTuple, MAX_NDIM, NoDimension};

/// The selection of an expression from a tensor of one shape; all known positions are in bounds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// One entry for each source axis and each new axis, in the order of the expression, with the
    /// ellipsis expanded; the source axes are in ascending order.
    pub axes: Vec<AxisSelection>,
    pub source_shape: Vec<u64>,
    pub lists: Vec<SelectedList>,
    /// The axes of lists in the result, in its order. Every list belongs to one block.
    pub blocks: Vec<ListBlock>,
}

/// The selection on one axis of the source, or a new axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AxisSelection {
    /// One position; the result has no such axis.
    Index {
        axis: usize,
        at: u64,
    },
    /// The positions `start`, `start + step`, ..., `len` of them.
    Range {
        axis: usize,
        start: u64,
        /// Distance between positions; 1 if `len` is less than 2.
        step: i64,
        len: u64,
    },
    NewAxis,
    /// Positions given by a list; its axes of the result are those of its [`ListBlock`].
    List {
        axis: usize,
        list: usize,
    },
}

impl AxisSelection {
    /// The source axis; `None` for a new axis.
    pub fn axis(&self) -> Option<usize> {
        match *self {
            AxisSelection::Index { axis, .. }
            | AxisSelection::Range { axis, .. }
            | AxisSelection::List { axis, .. } => Some(axis),
            AxisSelection::NewAxis => None,
        }
    }
}

/// A list or a mask applied to a shape: tuples of positions, one for each axis that it indexes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectedList {
    pub item: usize,
    /// The source axes that it indexes: one for integers, as many as it has for a mask.
    pub axes: Range<usize>,
    /// The shape of the array of tuples: that of a list of integers; the number of true values for
    /// a mask.
    pub shape: Vec<u64>,
    pub positions: ListPositions,
}

/// The tuples of a list, or the kind of tensor in a file to read them from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListPositions {
    /// The tuples one after the other in C order, each position less than its axis' length.
    Known(Arc<[u64]>),
    Integers,
    Mask,
    Shuffle(Shuffled),
    Others(OtherPositions),
}

/// All positions of an axis except some.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherPositions {
    /// The length of the axis.
    pub size: u64,
    /// The excluded positions, ascending, each once.
    pub left_out: Arc<[u64]>,
}

impl OtherPositions {
    pub fn count(&self) -> u64 {
        self.size - self.left_out.len() as u64
    }
}

/// A shuffle applied to an axis: the positions whose numbers in the random order are `taken`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shuffled {
    pub seed: u64,
    /// The length of the axis.
    pub size: u64,
    pub taken: Steps,
}

/// The numbers `start`, `start + step`, ..., `len` of them, all at least 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steps {
    pub start: u64,
    /// Distance between numbers; 1 if `len` is less than 2.
    pub step: i64,
    pub len: u64,
}

/// Lists that are broadcast together and become neighbouring axes of the result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListBlock {
    /// The number of axes of the result before the block that come from ranges and new axes.
    pub at: usize,
    pub shape: Vec<u64>,
    /// The indices in [`Selection::lists`].
    pub lists: Range<usize>,
}

impl Selection {
    pub fn whole(shape: &[u64]) -> Selection {
        let range = |(axis, &len)| AxisSelection::Range { axis, start: 0, step: 1, len };
        let axes = shape.iter().enumerate().map(range).collect();
        Selection { axes, source_shape: shape.to_vec(), ..Selection::default() }
    }

    /// The shape of the result, with the axes of lists where NumPy puts them.
    pub fn shape(&self) -> Vec<u64> {
        self.result_axes().into_iter().map(|(len, _)| len).collect()
    }

    /// For each axis of the result, the source axis that it comes from; for an axis of lists, only
    /// if it comes from a single list.
    pub fn source_axes(&self) -> Vec<Option<usize>> {
        self.result_axes().into_iter().map(|(_, source)| source).collect()
    }

    /// The length of each axis of the result, and its source axis.
    fn result_axes(&self) -> Vec<(u64, Option<usize>)> {
        let mut unlisted = self.axes.iter().filter_map(|axis| match axis {
            AxisSelection::Range { axis, len, .. } => Some((*len, Some(*axis))),
            AxisSelection::NewAxis => Some((1, None)),
            AxisSelection::Index { .. } | AxisSelection::List { .. } => None,
        });
        let mut axes = Vec::new();
        let mut before = 0;
        for block in &self.blocks {
            axes.extend(unlisted.by_ref().take(block.at - before));
            let only = match (&self.lists[block.lists.clone()], block.shape.as_slice()) {
                ([list], [_]) if list.axes.len() == 1 => Some(list.axes.start),
                _ => None,
            };
            axes.extend(block.shape.iter().map(|&len| (len, only)));
            before = block.at;
        }
        axes.extend(unlisted);
        axes
    }

    /// For each axis of the selection, the number of its item in `expr`, whose items have no names;
    /// `None` for axes that the expression does not mention.
    pub fn items(&self, expr: &IndexExpr) -> Vec<Option<usize>> {
        let items = expr.items.iter().enumerate();
        let taken = |number: usize, item: &Item| match item {
            Item::Ellipsis => 0,
            Item::Integer(_) | Item::Slice(_) | Item::NewAxis => 1,
            // an array without axes is an integer
            Item::List(_) => {
                let list = self.lists.iter().find(|list| list.item == number);
                list.map_or(1, |list| list.axes.len())
            }
        };
        let known: usize = items.clone().map(|(number, item)| taken(number, item)).sum();
        let others = self.axes.len().saturating_sub(known);
        let all = items.flat_map(|(number, item)| {
            let count = if *item == Item::Ellipsis { others } else { taken(number, item) };
            std::iter::repeat_n(Some(number), count)
        });
        // without an ellipsis, the index does not mention the last axes
        all.chain(std::iter::repeat_n(None, others)).take(self.axes.len()).collect()
    }

    /// Count the last axis in blocks of `block` elements; fails where a block would be cut.
    pub(super) fn count_blocks(&mut self, block: u64) -> Result<(), ResolveErrorKind> {
        let Some((last, len)) = self.source_shape.iter_mut().enumerate().last() else {
            return Ok(());
        };
        let whole = |count: u64| count.checked_div(block).filter(|it| it * block == count);
        let unfit = || ResolveErrorKind::PartOfBlock { axis: last, block };
        *len = whole(*len).ok_or_else(unfit)?;
        for pick in self.axes.iter_mut().filter(|pick| pick.axis() == Some(last)) {
            let AxisSelection::Range { start, step: 1, len, .. } = pick else {
                return Err(unfit());
            };
            *start = whole(*start).ok_or_else(unfit)?;
            *len = whole(*len).ok_or_else(unfit)?;
        }
        Ok(())
    }

    /// Whether the lists are broadcast to no elements. NumPy does not check their positions then.
    pub fn lists_are_empty(&self) -> bool {
        self.blocks.iter().any(|block| block.shape.contains(&0))
    }

    /// Whether the result holds every element of the source in the same order, without a list.
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
    /// The index of the wrong item.
    pub item: usize,
    /// The number of the wrong value, in C order, where the item is a typed list.
    pub value: Option<usize>,
    #[doc(hidden)]
    pub kind: ResolveErrorKind,
    /// For a wrong value of a typed list, the selection of the lists in files before it. NumPy
    /// checks one list after the other, so a bad position in one of these is reported instead.
    #[doc(hidden)]
    pub before: Box<Selection>,
}

impl ResolveError {
    /// The error of an item, of no value in it.
    pub(crate) fn new(item: usize, kind: impl Into<ResolveErrorKind>) -> ResolveError {
        ResolveError { item, value: None, kind: kind.into(), before: Box::default() }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResolveErrorKind {
    #[error("index {index} is out of bounds for axis {axis} with size {size}")]
    OutOfBounds {
        index: i64,
        axis: usize,
        /// Length of that axis.
        size: u64,
    },
    /// The error is at the first item too many.
    #[error("too many indices for array: array is {ndim}-dimensional, but {indexed} were indexed")]
    TooManyIndices { ndim: usize, indexed: usize },
    /// The error is at the last new axis or list.
    #[error("number of dimensions must be within [0, {MAX_NDIM}], indexing result would have {0}")]
    TooManyAxes(usize),
    #[error(
        "boolean index did not match indexed array along axis {axis}; size of axis is {size} but \
         size of corresponding boolean axis is {mask}"
    )]
    MaskShape {
        axis: usize,
        /// Length of that axis.
        size: u64,
        mask: u64,
    },
    #[error(
        "axis {axis} is stored in blocks of {block} elements: a slice of it must begin and end on \
         multiples of {block}, with step 1"
    )]
    PartOfBlock { axis: usize, block: u64 },
    /// The error is at the first list that does not fit those before it.
    #[error(
        "shape mismatch: indexing arrays could not be broadcast together with shapes {}",
        .0.iter().map(|shape| format!("{:#}", AsTuple(shape))).collect::<Vec<_>>().join(" ")
    )]
    Broadcast(Vec<Vec<u64>>),
    #[error("a mask must have 1 axis where each list has its own axis, not {0} axes")]
    OuterMask(usize),
    #[error(transparent)]
    NoDimension(#[from] NoDimension),
    #[error("the file of this list is not open: lists in files cannot be used here")]
    NotOpened,
    #[error(transparent)]
    Malformed(#[from] Malformed),
}

pub(super) fn position(index: i64, axis: usize, size: u64) -> Result<u64, ResolveErrorKind> {
    let wrapped = i128::from(index) + if index < 0 { i128::from(size) } else { 0 };
    match u64::try_from(wrapped) {
        Ok(at) if at < size => Ok(at),
        _ => Err(ResolveErrorKind::OutOfBounds { index, axis, size }),
    }
}

/// Resolve a slice by the rules of Python's `slice.indices`; its step must not be 0.
pub(super) fn range(slice: SliceItem, axis: usize, size: u64) -> AxisSelection {
    let Steps { start, step, len } = steps(slice, size);
    AxisSelection::Range { axis, start, step, len }
}

pub(super) fn steps(slice: SliceItem, size: u64) -> Steps {
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
    Steps {
        start: if len > 0 { start as u64 } else { 0 },
        step: if len > 1 { step as i64 } else { 1 },
        len: len as u64,
    }
}

impl Selection {
    /// Keep the positions `start` to `start + len` of axis `axis` of the result; `len` must be more
    /// than 0. `None` where the result has no such axis or positions, and for a selection with a
    /// list.
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
