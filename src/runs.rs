//! Strided runs of bytes: the description of memory that the whole engine shares.
//!
//! [`Runs`] is an offset, axes with signed strides, and the length of the contiguous run at each position, all
//! in bytes. [Views](crate::view::View), plans, pieces of plans, gathers and both sides of an assignment hold
//! `Runs`. The *dense bytes* are the runs one after the other, the last axis fastest: the bytes of an output.
//!
//! ```text
//!   dense    |    range     |        the runs, one after the other
//!               ▲▲▲│▲▲▲▲│▲
//!   file     ··███···████···████··   the end of a row, whole rows, the beginning of one
//! ```
//!
//! ```
//! use tslice::runs::{Axis, Runs};
//! let axes = vec![Axis { len: 3, stride: 10 }, Axis { len: 4, stride: 1 }];
//! let rows = Runs { offset: 100, axes, run: 1 };
//! assert_eq!(rows.bytes(), 12);
//! assert_eq!(rows.byte_bounds(), 100..124);
//! let rows = rows.coalesced();
//! assert_eq!((&rows.axes[..], rows.run), (&[Axis { len: 3, stride: 10 }][..], 4));
//! assert_eq!(rows.starts().collect::<Vec<_>>(), [100, 110, 120]);
//! let mut boxes = vec![];
//! rows.split(2..8, &mut |part| Ok::<(), ()>(boxes.push((part.offset, part.bytes())))).unwrap();
//! assert_eq!(boxes, [(102, 2), (110, 4)]);
//! ```

use std::cmp::Reverse;
use std::convert::Infallible;
use std::ops::Range;

use crate::shape::MAX_NDIM;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axis {
    /// The number of items.
    pub len: u64,
    /// The distance between neighbours in bytes; negative where the axis runs backwards.
    pub stride: i64,
}

impl Axis {
    /// Whether this axis and `outer`, the axis around it, form one axis with the stride of this one: neighbours
    /// on `outer` are as far apart as this axis is long.
    pub(crate) fn merges_with(self, outer: Axis) -> bool {
        i128::from(self.stride) * i128::from(self.len) == i128::from(outer.stride)
    }
}

/// Runs of `run` bytes at all positions along `axes`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Runs {
    /// The offset of the first run, in bytes.
    pub offset: i64,
    /// The axes, outermost first, at most [`MAX_NDIM`].
    pub axes: Vec<Axis>,
    pub run: u64,
}

/// The gap between consecutive runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The bytes from the end of a run to the beginning of the next; negative where the step leads backwards.
    pub bytes: i64,
    pub count: u64,
}

impl Runs {
    pub fn contiguous(offset: u64, bytes: u64) -> Runs {
        Runs { offset: offset as i64, axes: Vec::new(), run: bytes }
    }

    pub fn bytes(&self) -> u64 {
        dense_bytes(&self.axes, self.run)
    }

    /// The range of all bytes of the runs (NumPy: `byte_bounds`). No axis may have length 0.
    pub fn byte_bounds(&self) -> Range<i64> {
        let bounds = byte_bounds(&self.axes, self.run);
        self.offset + bounds.start..self.offset + bounds.end
    }

    /// These runs with the fewest axes and the longest run, and unchanged dense bytes; a single axis of length 0
    /// for no bytes.
    #[must_use]
    pub fn coalesced(&self) -> Runs {
        let (axes, run) = match self.bytes() {
            0 => (vec![Axis { len: 0, stride: 0 }], self.run),
            _ => coalesce(&self.axes, self.run),
        };
        Runs { offset: self.offset, axes, run }
    }

    /// The gaps in the input between consecutive runs of the dense bytes: for each axis of more than one item,
    /// outermost first, the step from the last run of an item to the first run of the next item. No axis may
    /// have length 0.
    ///
    /// ```
    /// use tslice::runs::{Axis, Gap, Runs};
    /// // two rows of two runs of 3 bytes, 4 apart; the rows are 10 apart
    /// let axes = vec![Axis { len: 2, stride: 10 }, Axis { len: 2, stride: 4 }];
    /// let gaps = Runs { offset: 0, axes, run: 3 }.gaps();
    /// assert_eq!(gaps, [Gap { bytes: 3, count: 1 }, Gap { bytes: 1, count: 2 }]);
    /// ```
    pub fn gaps(&self) -> Vec<Gap> {
        let mut count = 1;
        let mut gaps = Vec::with_capacity(self.axes.len());
        for axis in self.axes.iter().filter(|axis| axis.len > 1) {
            // one item forward on this axis, from the last item back to the first on all inner axes
            gaps.iter_mut()
                .for_each(|gap: &mut Gap| gap.bytes -= axis.stride * (axis.len as i64 - 1));
            gaps.push(Gap { bytes: axis.stride - self.run as i64, count: count * (axis.len - 1) });
            count *= axis.len;
        }
        gaps
    }

    /// These runs with their bytes in ascending order: [`in_memory_order`](Runs::in_memory_order) with all
    /// strides positive.
    #[must_use]
    pub fn ascending(&self) -> Runs {
        let mut runs = self.in_memory_order();
        for axis in runs.axes.iter_mut().filter(|axis| axis.stride < 0) {
            runs.offset += axis.stride * (axis.len as i64 - 1);
            axis.stride = -axis.stride;
        }
        runs
    }

    /// The offset of each run, in the order of the dense bytes.
    pub fn starts(&self) -> RunStarts<'_> {
        starts(&self.axes, self.offset)
    }

    /// The range of the run, where no axis moves: all axes only repeat the run.
    pub fn repeated(&self) -> Option<Range<u64>> {
        let repeated = !self.axes.is_empty() && self.axes.iter().all(|axis| axis.stride == 0);
        let offset = self.offset as u64;
        repeated.then_some(offset..offset + self.run)
    }

    /// [`byte_bounds`](Runs::byte_bounds) as a range of a file, where offsets are not negative.
    pub(crate) fn file_bounds(&self) -> Range<u64> {
        let bounds = self.byte_bounds();
        bounds.start as u64..bounds.end as u64
    }

    /// Divide a range of the dense bytes into boxes, in order.
    pub(crate) fn boxes(&self, range: Range<u64>) -> Vec<Runs> {
        let mut boxes = Vec::new();
        let Ok(()) = self.split(range, &mut |part| {
            boxes.push(part);
            Ok::<_, Infallible>(())
        });
        boxes
    }

    /// Call `visit` with each box of a range of the dense bytes, in order; stops at the first error.
    pub fn split<E>(
        &self,
        range: Range<u64>,
        visit: &mut impl FnMut(Runs) -> Result<(), E>,
    ) -> Result<(), E> {
        if range.is_empty() {
            return Ok(());
        }
        split(&self.axes, self.run, self.offset, range, visit)
    }

    /// These runs with the axes sorted from the longest stride to the shortest: in the order of memory, except
    /// for axes that run backwards.
    #[must_use]
    pub fn in_memory_order(&self) -> Runs {
        let mut axes = self.axes.clone();
        axes.sort_by_key(|axis| Reverse(axis.stride.unsigned_abs()));
        Runs { axes, ..*self }
    }

    /// The position of these runs in a buffer that holds the dense bytes of
    /// [`in_memory_order`](Runs::in_memory_order).
    #[must_use]
    pub fn packed_in_memory_order(&self) -> Runs {
        let mut order: Vec<usize> = (0..self.axes.len()).collect();
        order.sort_by_key(|&axis| Reverse(self.axes[axis].stride.unsigned_abs()));
        self.packed(order.into_iter().rev())
    }

    /// The position of these runs in a buffer that holds their own dense bytes.
    #[must_use]
    pub fn dense(&self) -> Runs {
        self.packed((0..self.axes.len()).rev())
    }

    /// These runs packed without gaps; `order` lists the axes from the fastest to the slowest.
    fn packed(&self, order: impl Iterator<Item = usize>) -> Runs {
        let mut axes = self.axes.clone();
        let mut inner = self.run as i64;
        for axis in order {
            axes[axis].stride = inner;
            inner = inner.saturating_mul(axes[axis].len.max(1) as i64);
        }
        Runs { offset: 0, axes, run: self.run }
    }

    /// The part of the runs with a range of items of each axis.
    #[must_use]
    pub(crate) fn part(&self, items: &[Range<u64>]) -> Runs {
        let pairs = || self.axes.iter().zip(items);
        let offset = pairs().map(|(axis, items)| items.start as i64 * axis.stride).sum::<i64>();
        let axes = pairs().map(|(axis, items)| Axis { len: items.end - items.start, ..*axis });
        Runs { offset: self.offset + offset, axes: axes.collect(), run: self.run }
    }

    /// Bring two runs of one shape and run length into the memory order of `first`, and coalesce both. The axes
    /// of `first` go from the longest stride to the shortest, all positive, so that its bytes ascend and its
    /// runs are as long as possible. The axes of `second` follow them.
    pub fn pair_in_memory_order(first: &Runs, second: &Runs) -> (Runs, Runs) {
        let mut offsets = (first.offset, second.offset);
        let pairs = first.axes.iter().copied().zip(second.axes.iter().copied());
        let mut pairs: Vec<(Axis, Axis)> = pairs.filter(|(axis, _)| axis.len != 1).collect();
        for (axis, other) in pairs.iter_mut().filter(|(axis, _)| axis.stride < 0) {
            let last = axis.len as i64 - 1;
            offsets.0 += axis.stride * last;
            offsets.1 += other.stride * last;
            axis.stride = -axis.stride;
            other.stride = -other.stride;
        }
        pairs.sort_by_key(|(axis, _)| Reverse(axis.stride));
        let (axes, others) = pairs.into_iter().unzip();
        (
            Runs { offset: offsets.0, axes, run: first.run }.coalesced(),
            Runs { offset: offsets.1, axes: others, run: second.run }.coalesced(),
        )
    }
}

/// The number of dense bytes of runs of `run` bytes along `axes`.
pub(crate) fn dense_bytes(axes: &[Axis], run: u64) -> u64 {
    if axes.iter().any(|axis| axis.len == 0) {
        return 0;
    }
    axes.iter().fold(run, |bytes, axis| bytes * axis.len)
}

/// The range that runs of `run` bytes along `axes` touch, relative to the first run: the start is
/// at most 0, the end at least `run`. No axis may have length 0.
pub fn byte_bounds(axes: &[Axis], run: u64) -> Range<i64> {
    axes.iter().fold(0..run as i64, |bounds, axis| {
        let last = axis.stride * (axis.len as i64 - 1);
        bounds.start + last.min(0)..bounds.end + last.max(0)
    })
}

pub(crate) fn span_bytes(axes: &[Axis], run: u64) -> u64 {
    let bounds = byte_bounds(axes, run);
    (bounds.end - bounds.start) as u64
}

/// Drop axes of length 1 and merge axes that form one axis; `run` and strides have one unit.
///
/// Returns the remaining axes, outermost first, and the run, which includes the innermost axis where its items
/// are contiguous. No axis may have length 0.
///
/// ```
/// use tslice::runs::{Axis, coalesce};
/// // a crop of 3 rows of 4 whole, neighbouring, 8-byte items in rows of 64 bytes
/// let axes = [Axis { len: 3, stride: 64 }, Axis { len: 1, stride: 0 }, Axis { len: 4, stride: 8 }];
/// assert_eq!(coalesce(&axes, 8), (vec![Axis { len: 3, stride: 64 }], 32));
/// ```
pub fn coalesce(axes: &[Axis], mut run: u64) -> (Vec<Axis>, u64) {
    // most often no axis remains
    let mut merged: Vec<Axis> = Vec::new();
    for &axis in axes.iter().rev().filter(|axis| axis.len != 1) {
        match merged.last_mut() {
            None if i64::try_from(run) == Ok(axis.stride) => run *= axis.len,
            Some(inner) if inner.merges_with(axis) => inner.len *= axis.len,
            _ => merged.push(axis),
        }
    }
    merged.reverse();
    (merged, run)
}

/// Axes of lengths `lens` over the same items of `run` bytes in unchanged order, as NumPy's reshape finds them;
/// `None` where no strides do this. No length may be 0, and both must have the same number of items.
pub(crate) fn reshaped(axes: &[Axis], run: u64, lens: &[u64]) -> Option<Vec<Axis>> {
    let (mut left, bytes) = coalesce(axes, run);
    let mut inner = Axis { len: bytes / run, stride: i64::try_from(run).ok()? };
    let mut reshaped: Vec<Axis> = lens.iter().map(|&len| Axis { len, stride: 0 }).collect();
    for axis in reshaped.iter_mut().rev().filter(|axis| axis.len != 1) {
        while inner.len == 1 {
            inner = left.pop()?;
        }
        if !inner.len.is_multiple_of(axis.len) {
            return None;
        }
        axis.stride = inner.stride;
        let stride = inner.stride.checked_mul(i64::try_from(axis.len).ok()?)?;
        inner = Axis { len: inner.len / axis.len, stride };
    }
    Some(reshaped)
}

/// Split each axis into parts; the product of an axis's parts is its length.
pub(crate) fn split_axes(axes: &[Axis], splits: &[Vec<u64>]) -> Vec<Axis> {
    let mut parts = Vec::with_capacity(axes.len());
    for (axis, lens) in axes.iter().zip(splits) {
        let at = parts.len();
        let mut stride = axis.stride;
        for &len in lens.iter().rev() {
            parts.insert(at, Axis { len, stride });
            // for a part of length 1, and where there are no elements, the stride does not matter
            stride = stride.wrapping_mul(len as i64);
        }
    }
    parts
}

/// The index of item `number` on each axis (NumPy: `unravel_index`). Lengths and result go from the fastest axis
/// to the slowest: innermost first for C order.
pub(crate) fn unravel_index(
    lens: impl Iterator<Item = u64>,
    number: u64,
) -> impl Iterator<Item = u64> {
    lens.scan(number, |rest, len| {
        let index = *rest % len;
        *rest /= len;
        Some(index)
    })
}

/// The index of item `number` on each axis, in C order.
pub(crate) fn index_of(lens: impl DoubleEndedIterator<Item = u64>, number: u64) -> Vec<u64> {
    let mut index: Vec<u64> = unravel_index(lens.rev(), number).collect();
    index.reverse();
    index
}

/// The distance from the first item along `axes` to item `number`, in bytes.
pub(crate) fn distance(axes: &[Axis], number: u64) -> i64 {
    let indices = unravel_index(axes.iter().rev().map(|axis| axis.len), number);
    axes.iter().rev().zip(indices).map(|(axis, index)| index as i64 * axis.stride).sum()
}

/// The offset of each item along `axes` (outermost first); the first item is at offset `at`.
pub(crate) fn starts(axes: &[Axis], at: i64) -> RunStarts<'_> {
    let left = dense_bytes(axes, 1);
    let (inner, outer) = match axes.split_last() {
        Some((inner, outer)) => (*inner, outer),
        None => (Axis { len: 1, stride: 0 }, axes),
    };
    RunStarts { inner, outer, index: 0, indices: [0; MAX_NDIM], at, left }
}

#[derive(Clone, Debug)]
pub struct RunStarts<'a> {
    inner: Axis,
    outer: &'a [Axis],
    /// The index along the inner axis.
    index: u64,
    /// The indices along the outer axes.
    indices: [u64; MAX_NDIM],
    at: i64,
    left: u64,
}

impl Iterator for RunStarts<'_> {
    type Item = i64;

    #[inline]
    fn next(&mut self) -> Option<i64> {
        self.left = self.left.checked_sub(1)?;
        let at = self.at;
        self.at += self.inner.stride;
        self.index += 1;
        if self.index == self.inner.len {
            self.carry();
        }
        Some(at)
    }
}

impl RunStarts<'_> {
    /// Go from the end of the inner axis to the next item of the outer axes.
    fn carry(&mut self) {
        self.at -= self.inner.stride * self.inner.len as i64;
        self.index = 0;
        let indices = &mut self.indices[..self.outer.len()];
        for (index, axis) in indices.iter_mut().zip(self.outer).rev() {
            self.at += axis.stride;
            *index += 1;
            if *index < axis.len {
                break;
            }
            self.at -= axis.stride * axis.len as i64;
            *index = 0;
        }
    }
}

fn split<E>(
    axes: &[Axis],
    run: u64,
    offset: i64,
    range: Range<u64>,
    visit: &mut impl FnMut(Runs) -> Result<(), E>,
) -> Result<(), E> {
    let Some((&axis, inner)) = axes.split_first() else {
        let run = range.end - range.start;
        return visit(Runs { offset: offset + range.start as i64, axes: vec![], run });
    };
    let item = dense_bytes(inner, run);
    let at = |index: u64| offset + axis.stride * index as i64;
    let mut index = range.start / item;
    let skipped = range.start % item;
    let end = range.end / item;
    let rest = range.end % item;
    if index == end {
        return split(inner, run, at(index), skipped..rest, visit);
    }
    if skipped > 0 {
        split(inner, run, at(index), skipped..item, visit)?;
        index += 1;
    }
    if index < end {
        let axes = [&[Axis { len: end - index, ..axis }], inner].concat();
        visit(Runs { offset: at(index), axes, run })?;
    }
    if rest > 0 { split(inner, run, at(end), 0..rest, visit) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn runs() -> impl Strategy<Value = Runs> {
        let axis = (1u64..5, -60i64..60).prop_map(|(len, stride)| Axis { len, stride });
        (prop::collection::vec(axis, 0..5), 1u64..9).prop_map(|(axes, run)| Runs {
            offset: 1000,
            axes,
            run,
        })
    }

    fn byte_positions(runs: &Runs) -> Vec<i64> {
        let mut starts = vec![runs.offset];
        for axis in &runs.axes {
            let along = |at: i64| (0..axis.len as i64).map(move |index| at + index * axis.stride);
            starts = starts.into_iter().flat_map(along).collect();
        }
        starts.into_iter().flat_map(|at| at..at + runs.run as i64).collect()
    }

    proptest! {
        #[test]
        fn all_ways_over_runs_agree(runs in runs(), range in (0u64..3000, 0u64..3000)) {
            let expected = byte_positions(&runs);
            prop_assert_eq!(expected.len() as u64, runs.bytes());
            prop_assert_eq!(&byte_positions(&runs.coalesced()), &expected);
            let bounds = runs.byte_bounds();
            prop_assert_eq!(expected.iter().min(), Some(&bounds.start));
            prop_assert_eq!(expected.iter().max(), Some(&(bounds.end - 1)));
            let starts: Vec<i64> = runs.starts().collect();
            let step = runs.run as usize;
            prop_assert_eq!(&starts, &expected.iter().copied().step_by(step).collect::<Vec<_>>());
            for (number, &start) in starts.iter().enumerate() {
                prop_assert_eq!(runs.offset + distance(&runs.axes, number as u64), start);
            }
            let mut gaps: Vec<i64> = starts.windows(2).map(|it| it[1] - it[0] - step as i64).collect();
            gaps.sort_unstable();
            let counted = runs.gaps();
            let mut counted: Vec<i64> = counted
                .iter()
                .flat_map(|gap| std::iter::repeat_n(gap.bytes, gap.count as usize))
                .collect();
            counted.sort_unstable();
            prop_assert_eq!(counted, gaps);
            let end = range.0.max(range.1).min(runs.bytes());
            let range = range.0.min(range.1).min(end)..end;
            let mut bytes = Vec::new();
            runs.split(range.clone(), &mut |part| {
                bytes.extend(byte_positions(&part));
                Ok::<(), ()>(())
            }).unwrap();
            prop_assert_eq!(&bytes[..], &expected[range.start as usize..range.end as usize]);
        }

        #[test]
        fn pairs_keep_their_partners(first in runs(), strides in prop::collection::vec(-60i64..60, 4)) {
            let axes = first.axes.iter().zip(strides).map(|(axis, stride)| Axis { stride, ..*axis });
            let second = Runs { offset: 5000, axes: axes.collect(), run: first.run };
            let first = Runs { axes: first.axes[..second.axes.len()].to_vec(), ..first };
            let (a, b) = Runs::pair_in_memory_order(&first, &second);
            let pairs = |a: &Runs, b: &Runs| {
                let mut pairs: Vec<(i64, i64)> =
                    byte_positions(a).into_iter().zip(byte_positions(b)).collect();
                pairs.sort_unstable();
                pairs
            };
            prop_assert_eq!(pairs(&a, &b), pairs(&first, &second));
            prop_assert!(a.axes.is_sorted_by_key(|axis| Reverse(axis.stride)));
            prop_assert!(a.axes.iter().all(|axis| axis.stride >= 0));
        }
    }

    #[test]
    fn axes_are_split_and_merged_where_strides_follow() {
        let axes = |axes: &[(u64, i64)]| -> Vec<Axis> {
            axes.iter().map(|&(len, stride)| Axis { len, stride }).collect()
        };
        // rows of 6 items of 2 bytes, with a gap behind each
        let rows = axes(&[(4, 20), (1, 7), (6, 2)]);
        let split = axes(&[(2, 40), (2, 20), (1, 0), (3, 4), (2, 2)]);
        assert_eq!(reshaped(&rows, 2, &[2, 2, 1, 3, 2]), Some(split));
        assert_eq!(reshaped(&rows, 2, &[24]), None);
        assert_eq!(reshaped(&rows, 2, &[8, 3]), None);
        // Fortran order, and an axis that is repeated
        assert_eq!(reshaped(&axes(&[(4, 2), (6, 8)]), 2, &[2, 12]), None);
        assert_eq!(
            reshaped(&axes(&[(4, 2), (6, 8)]), 2, &[4, 3, 2]),
            Some(axes(&[(4, 2), (3, 16), (2, 8)]))
        );
        assert_eq!(reshaped(&axes(&[(6, 0)]), 2, &[3, 2]), Some(axes(&[(3, 0), (2, 0)])));
        assert_eq!(reshaped(&[], 2, &[1, 1]), Some(axes(&[(1, 0), (1, 0)])));
    }

    #[test]
    fn runs_of_no_bytes_have_no_parts() {
        let axes = vec![Axis { len: 1 << 40, stride: 1 }, Axis { len: 0, stride: 9 }];
        let axes = [axes, vec![Axis { len: 1 << 40, stride: 1 }]].concat();
        let runs = Runs { offset: 0, axes, run: 8 };
        assert_eq!((runs.bytes(), runs.coalesced().bytes(), runs.starts().count()), (0, 0, 0));
    }
}
