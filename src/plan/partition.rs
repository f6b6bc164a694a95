//! The two ways to divide an output into pieces: ranges of it, and boxes of several rows.
//!
//! Both compute a piece from its number, and divide lengths evenly, so that no piece is tiny.

use super::piece::{OutputRows, Piece, Tiling};
use crate::runs::{Axis, Runs, dense_bytes, distance, unravel_index};

/// The most of the input that a panel may need, in bytes.
pub(super) const PANEL_BYTES: u64 = 32 << 20;

/// How a plan's output is divided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Partition {
    /// There are no bytes.
    Empty,
    Ranges(Ranges),
    Boxes(Boxes),
}

/// Pieces that are ranges of the output, in its order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ranges {
    /// The axis that is divided; `axes.len()` for the run itself.
    pub(super) axis: usize,
    /// Items of that axis (bytes, of the run) in a piece, and pieces along it.
    pub(super) chunk: u64,
    pub(super) chunks: u64,
    /// Bytes of output an item of that axis.
    inner: u64,
}

impl Ranges {
    /// Divide the outermost axis one of whose items (its inner axes and their bytes) fits a piece.
    pub(super) fn choose(
        input: &Runs,
        unit: u64,
        piece_bytes: u64,
        fits: impl Fn(&[Axis], u64) -> bool,
    ) -> Ranges {
        let Runs { axes, run, .. } = input;
        let mut inner = *run;
        let mut divided = None;
        for (at, axis) in axes.iter().enumerate().rev() {
            if !fits(&axes[at + 1..], inner) {
                break;
            }
            divided = Some((at, axis.len, inner, 1));
            inner = inner.saturating_mul(axis.len);
        }
        let (axis, len, inner, unit) = divided.unwrap_or((axes.len(), *run, 1, unit));
        let most = (piece_bytes / inner / unit * unit).max(unit);
        let chunk = evenly(len, most).next_multiple_of(unit).min(len);
        Ranges { axis, chunk, chunks: len.div_ceil(chunk), inner }
    }

    pub(super) fn pieces(&self, axes: &[Axis]) -> u64 {
        dense_bytes(&axes[..self.axis], self.chunks)
    }

    pub(super) fn piece(&self, input: &Runs, number: u64) -> Piece {
        let Ranges { axis, chunk, chunks, inner } = *self;
        let (outer, divided) = input.axes.split_at(axis);
        let whole = divided.first().map_or(input.run, |axis| axis.len);
        let first = number % chunks * chunk;
        let len = chunk.min(whole - first);
        let outer_item = number / chunks;
        let output = OutputRows::range((outer_item * whole + first) * inner, len * inner);
        let mut offset = input.offset + distance(outer, outer_item);
        let (mut axes, mut run) = (divided.to_vec(), input.run);
        match axes.first_mut() {
            Some(axis) => {
                offset += first as i64 * axis.stride;
                axis.len = len;
            }
            None => {
                offset += first as i64;
                run = len;
            }
        }
        Piece { input: Runs { offset, axes, run }, output }
    }
}

/// Pieces of several rows: a part of the axis that is contiguous in the input, and of the axes
/// that are contiguous in the output. Neighbouring pieces lie side by side in the input, so that
/// what was read for one serves the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Boxes {
    /// The axis that is contiguous in the input, and its items a piece, the number of rows.
    along: usize,
    rows: u64,
    /// The outermost axis inside a row, which comes after `along`, and its items a row.
    across: usize,
    chunk: u64,
}

/// The longest row of a box, in bytes: what is written at a time.
const ROW_BYTES: u64 = 16 << 10;

impl Boxes {
    /// Boxes of those sizes; `None` where ranges serve as well.
    pub(super) fn choose(input: &Runs, tiling: Tiling) -> Option<Boxes> {
        let (axes, run) = (&input.axes[..], input.run);
        let along = transposed_axis(axes, run)?;
        let Tiling { box_bytes, width_bytes, .. } = tiling;
        let row_most = (box_bytes * run / width_bytes.max(run)).min(ROW_BYTES).max(run);
        let (mut across, mut inner) = (axes.len() - 1, run);
        while across > along + 1 && inner * axes[across].len <= row_most {
            inner *= axes[across].len;
            across -= 1;
        }
        let chunk = evenly(axes[across].len, (row_most / inner).max(1));
        let rows = evenly(axes[along].len, (box_bytes / (inner * chunk)).max(1));
        Some(Boxes { along, rows, across, chunk })
    }

    /// The axes along which pieces are counted, the fastest first, and the items of each in a
    /// piece: neighbouring pieces lie along `along`, then along `across`, then along the axes that
    /// neither a row nor the rows of a piece go along.
    fn counted(&self) -> impl Iterator<Item = (usize, u64)> {
        let along = self.along;
        let outer = (0..self.across).rev().filter(move |&axis| axis != along);
        [(along, self.rows), (self.across, self.chunk)]
            .into_iter()
            .chain(outer.map(|axis| (axis, 1)))
    }

    pub(super) fn pieces(&self, axes: &[Axis]) -> u64 {
        self.counted().map(|(axis, chunk)| axes[axis].len.div_ceil(chunk)).product()
    }

    /// Where a panel begins with piece `number`: the number of its pieces, and the axes of all
    /// that they need. A panel is all of the axis along, and as many items across as fit.
    pub(super) fn panel(&self, input: &Runs, number: u64) -> Option<(u64, Vec<Axis>)> {
        let (axes, run) = (&input.axes[..], input.run);
        let (along, across) = (axes[self.along], axes[self.across]);
        let inner = &axes[self.across + 1..];
        let item = along.len * dense_bytes(inner, run);
        let chunks = (PANEL_BYTES / item.saturating_mul(self.chunk)).max(1);
        let (beside, below) = (along.len.div_ceil(self.rows), across.len.div_ceil(self.chunk));
        let first = number / beside % below;
        if !number.is_multiple_of(beside) || !first.is_multiple_of(chunks) {
            return None;
        }
        let chunks = chunks.min(below - first);
        let len = (chunks * self.chunk).min(across.len - first * self.chunk);
        let axes = [&[along, Axis { len, ..across }], inner].concat();
        Some((beside * chunks, axes))
    }

    pub(super) fn piece(&self, input: &Runs, number: u64) -> Piece {
        let mut axes = input.axes.clone();
        let bytes_from = |axis: usize| dense_bytes(&input.axes[axis..], input.run);
        let (mut offset, mut output) = (input.offset, 0);
        let counts = self.counted().map(|(axis, chunk)| input.axes[axis].len.div_ceil(chunk));
        for ((axis, chunk), index) in self.counted().zip(unravel_index(counts, number)) {
            let first = index * chunk;
            offset += first as i64 * axes[axis].stride;
            output += first * bytes_from(axis + 1);
            axes[axis].len = chunk.min(axes[axis].len - first);
        }
        let (along, across) = (axes[self.along], axes[self.across]);
        let row_bytes = across.len * bytes_from(self.across + 1);
        let row_stride = bytes_from(self.along + 1);
        let output = if row_bytes == row_stride {
            OutputRows::range(output, along.len * row_bytes)
        } else {
            OutputRows { offset: output, rows: along.len, row_bytes, row_stride }
        };
        let axes = [&[along, across], &axes[self.across + 1..]].concat();
        Piece { input: Runs { offset, axes, run: input.run }, output }
    }
}

/// The axis whose items of `run` bytes are neighbours in the input, where that is not the axis
/// whose items are neighbours in the output, and items are small enough to transpose.
pub(crate) fn transposed_axis(axes: &[Axis], run: u64) -> Option<usize> {
    let (across, outer) = axes.split_last()?;
    let far = across.stride.unsigned_abs() > 16 && across.len > 1;
    let neighbours = |axis: &Axis| axis.stride.unsigned_abs() == run;
    (far && matches!(run, 1 | 2 | 4 | 8 | 16)).then(|| outer.iter().position(neighbours))?
}

/// The length of chunks of at most `most` that divide `len` evenly, or nearly so.
fn evenly(len: u64, most: u64) -> u64 {
    len.div_ceil(len.div_ceil(most))
}
