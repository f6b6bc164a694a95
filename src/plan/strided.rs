//! A view whose bytes are known by their places in its dense output.
//!
//! An assignment has two strided sides and one dense buffer between them. Each side finds its own
//! part for any range of the dense bytes, as few boxes: the two need not agree on how their axes
//! merge, and pieces may be cut wherever it suits.
//!
//! ```text
//!   dense    |    range     |        the items of a view, one after the other
//!               ▲▲▲│▲▲▲▲│▲
//!   file     ··███···████···████··   what is left of a row, whole rows, a beginning of one
//! ```
//!
//! ```
//! use tslice::plan::Strided;
//! use tslice::view::Axis;
//! let rows = Strided::from_axes(100, &[Axis { len: 3, stride: 10 }, Axis { len: 4, stride: 1 }], 1);
//! let mut parts = vec![];
//! rows.parts(2..8, &mut |part| Ok::<(), ()>(parts.push((part.first, part.axes.len(), part.run))));
//! assert_eq!(parts, [(102, 0, 2), (110, 1, 4)]);
//! ```

use std::cmp::Reverse;
use std::ops::Range;

use super::PIECE_BYTES;
use crate::view::{Axis, View, coalesce};

/// A view made simple: an offset, axes over runs, all in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Strided {
    first: i64,
    axes: Vec<Axis>,
    run: u64,
}

/// A box of a view: runs of `run` bytes along `axes`, outermost first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Where the first run lies, in bytes from the beginning of the file.
    pub first: i64,
    /// The axes, over runs.
    pub axes: Vec<Axis>,
    /// Bytes that are contiguous in the file.
    pub run: u64,
}

impl Part {
    /// The bytes of all runs together.
    pub fn bytes(&self) -> u64 {
        dense_bytes(&self.axes, self.run)
    }
}

impl Strided {
    /// The items of `run` bytes along `axes`, outermost first, from byte `first` on.
    pub fn from_axes(first: u64, axes: &[Axis], run: u64) -> Strided {
        if axes.iter().any(|axis| axis.len == 0) {
            return Strided { first: first as i64, axes: vec![Axis { len: 0, stride: 0 }], run };
        }
        let (axes, run) = coalesce(axes, run);
        Strided { first: first as i64, axes, run }
    }

    /// Two views of one shape and item size, in the order that suits the first: its axes from the
    /// longest stride to the shortest and all forward, so that its bytes rise with the dense ones
    /// and its runs are as long as they can be. The other's axes follow.
    pub fn pair(target: &View, value: &View) -> (Strided, Strided) {
        let (mut first, mut from) = (target.offset() as i64, value.offset() as i64);
        let mut axes: Vec<(Axis, Axis)> = target
            .axes()
            .iter()
            .zip(value.axes())
            .filter(|(target, _)| target.len != 1)
            .map(|(&target, &value)| (target, value))
            .collect();
        for (target, value) in axes.iter_mut().filter(|(target, _)| target.stride < 0) {
            let last = target.len as i64 - 1;
            first += target.stride * last;
            from += value.stride * last;
            (target.stride, value.stride) = (-target.stride, -value.stride);
        }
        axes.sort_by_key(|(target, _)| Reverse(target.stride));
        let (targets, values): (Vec<Axis>, Vec<Axis>) = axes.into_iter().unzip();
        (
            Strided::from_axes(first as u64, &targets, target.itemsize()),
            Strided::from_axes(from as u64, &values, value.itemsize()),
        )
    }

    /// The bytes of all items together.
    pub fn bytes(&self) -> u64 {
        dense_bytes(&self.axes, self.run)
    }

    /// How many dense bytes to take at a time: as many whole rows as fit a cache-sized buffer,
    /// and in any case a multiple of `unit`, which must divide the items.
    pub fn piece_bytes(&self, unit: u64) -> u64 {
        let mut row = unit.max(1);
        let mut inner = self.run;
        for axis in self.axes.iter().rev() {
            if inner > PIECE_BYTES || inner == 0 {
                break;
            }
            row = inner;
            inner = inner.saturating_mul(axis.len);
        }
        (PIECE_BYTES / row * row).max(row)
    }

    /// Hand the boxes of a range of the dense bytes to `visit`, in the order of the dense bytes.
    ///
    /// # Errors
    /// The first of `visit`'s.
    pub fn parts<E>(
        &self,
        range: Range<u64>,
        visit: &mut impl FnMut(Part) -> Result<(), E>,
    ) -> Result<(), E> {
        if range.is_empty() {
            return Ok(());
        }
        split(&self.axes, self.run, self.first, range, visit)
    }

    /// The whole view as one box.
    pub fn whole(&self) -> Part {
        Part { first: self.first, axes: self.axes.clone(), run: self.run }
    }

    /// The range of the file that holds the one run which is repeated all over; `None` where there
    /// is more than one.
    pub fn repeated(&self) -> Option<Range<u64>> {
        let repeated = !self.axes.is_empty() && self.axes.iter().all(|axis| axis.stride == 0);
        let first = self.first as u64;
        repeated.then_some(first..first + self.run)
    }
}

fn dense_bytes(axes: &[Axis], run: u64) -> u64 {
    axes.iter().fold(run, |bytes, axis| bytes * axis.len)
}

fn split<E>(
    axes: &[Axis],
    run: u64,
    first: i64,
    range: Range<u64>,
    visit: &mut impl FnMut(Part) -> Result<(), E>,
) -> Result<(), E> {
    let Some((&axis, inner)) = axes.split_first() else {
        let run = range.end - range.start;
        return visit(Part { first: first + range.start as i64, axes: vec![], run });
    };
    let item = dense_bytes(inner, run);
    let at = |index: u64| first + axis.stride * index as i64;
    let (mut index, skipped) = (range.start / item, range.start % item);
    let (end, rest) = (range.end / item, range.end % item);
    if index == end {
        return split(inner, run, at(index), skipped..rest, visit);
    }
    if skipped > 0 {
        split(inner, run, at(index), skipped..item, visit)?;
        index += 1;
    }
    if index < end {
        let axes = [&[Axis { len: end - index, ..axis }], inner].concat();
        visit(Part { first: at(index), axes, run })?;
    }
    if rest > 0 { split(inner, run, at(end), 0..rest, visit) } else { Ok(()) }
}
