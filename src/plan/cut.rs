//! The two ways to cut an output into pieces: ranges of it, and boxes of several rows.
//!
//! Both know a piece by its number alone, and divide lengths evenly, so that no piece is tiny.

use super::ahead::PANEL_BYTES;
use super::{Piece, Place, Tiling};
use crate::view::Axis;

/// How a plan's output is cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// There are no bytes.
    Nothing,
    Ranges(Ranges),
    Boxes(Boxes),
}

/// Pieces that are ranges of the output, in its order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ranges {
    /// The axis that is cut; `axes.len()` for the run itself.
    pub(super) axis: usize,
    /// Items of that axis (bytes, of the run) in a piece, and pieces along it.
    pub(super) chunk: u64,
    pub(super) chunks: u64,
    /// Bytes of output an item of that axis.
    inner: u64,
}

impl Ranges {
    /// Cut the outermost axis one of whose items (its inner axes and their bytes) fits a piece.
    pub(super) fn choose(
        axes: &[Axis],
        run: u64,
        unit: u64,
        piece_bytes: u64,
        fits: impl Fn(&[Axis], u64) -> bool,
    ) -> Ranges {
        let mut inner = run;
        let mut cut = None;
        for (at, axis) in axes.iter().enumerate().rev() {
            if !fits(&axes[at + 1..], inner) {
                break;
            }
            cut = Some((at, axis.len, inner, 1));
            inner = inner.saturating_mul(axis.len);
        }
        let (axis, len, inner, unit) = cut.unwrap_or((axes.len(), run, 1, unit));
        let most = (piece_bytes / inner / unit * unit).max(unit);
        let chunk = evenly(len, most).next_multiple_of(unit).min(len);
        Ranges { axis, chunk, chunks: len.div_ceil(chunk), inner }
    }

    pub(super) fn pieces(&self, axes: &[Axis]) -> u64 {
        axes[..self.axis].iter().map(|axis| axis.len).product::<u64>() * self.chunks
    }

    pub(super) fn piece(&self, offset: u64, axes: &[Axis], run: u64, number: u64) -> Piece {
        let Ranges { axis: at, chunk, chunks, inner } = *self;
        let (outer, cut) = axes.split_at(at);
        let whole = cut.first().map_or(run, |axis| axis.len);
        let first = number % chunks * chunk;
        let len = chunk.min(whole - first);
        let mut rest = number / chunks;
        let output = (rest * whole + first) * inner;
        let mut input = offset as i64;
        for axis in outer.iter().rev() {
            input += (rest % axis.len) as i64 * axis.stride;
            rest /= axis.len;
        }
        let (mut axes, mut run) = (cut.to_vec(), run);
        match axes.first_mut() {
            Some(axis) => {
                input += first as i64 * axis.stride;
                axis.len = len;
            }
            None => {
                input += first as i64;
                run = len;
            }
        }
        Piece { input: input as u64, axes, run, place: Place::range(output, len * inner) }
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
    pub(super) fn choose(axes: &[Axis], run: u64, tiling: Tiling) -> Option<Boxes> {
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

    /// The axes that neither a row nor the rows of a piece go along.
    fn outer<'a>(&self, axes: &'a [Axis]) -> impl DoubleEndedIterator<Item = (usize, &'a Axis)> {
        let along = self.along;
        axes[..self.across].iter().enumerate().filter(move |(at, _)| *at != along)
    }

    pub(super) fn pieces(&self, axes: &[Axis]) -> u64 {
        self.outer(axes).map(|(_, axis)| axis.len).product::<u64>()
            * axes[self.across].len.div_ceil(self.chunk)
            * axes[self.along].len.div_ceil(self.rows)
    }

    /// Where a panel begins with piece `number`: the number of its pieces, and the axes of all
    /// that they need. A panel is all of the axis along, and as many items across as fit.
    pub(super) fn panel(&self, axes: &[Axis], run: u64, number: u64) -> Option<(u64, Vec<Axis>)> {
        let (along, across) = (axes[self.along], axes[self.across]);
        let inner = &axes[self.across + 1..];
        let item = run * along.len * inner.iter().map(|axis| axis.len).product::<u64>();
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

    pub(super) fn piece(&self, offset: u64, axes: &[Axis], run: u64, number: u64) -> Piece {
        let bytes_from =
            |axis: usize| run * axes[axis..].iter().map(|axis| axis.len).product::<u64>();
        let (mut input, mut output, mut rest) = (offset as i64, 0, number);
        // Take `len` items of an axis at a time: which ones, by the digits of the number.
        let mut part = |at: usize, chunk: u64| {
            let axis = axes[at];
            let first = rest % axis.len.div_ceil(chunk) * chunk;
            rest /= axis.len.div_ceil(chunk);
            input += first as i64 * axis.stride;
            output += first * bytes_from(at + 1);
            Axis { len: chunk.min(axis.len - first), stride: axis.stride }
        };
        let along = part(self.along, self.rows);
        let across = part(self.across, self.chunk);
        for (at, _) in self.outer(axes).rev() {
            part(at, 1);
        }
        let row_bytes = across.len * bytes_from(self.across + 1);
        let row_stride = bytes_from(self.along + 1);
        let place = if row_bytes == row_stride {
            Place::range(output, along.len * row_bytes)
        } else {
            Place { output, rows: along.len, row_bytes, row_stride }
        };
        let axes = [&[along, across], &axes[self.across + 1..]].concat();
        Piece { input: input as u64, axes, run, place }
    }
}

/// The axis whose items of `run` bytes are neighbours in the input, where that is not the axis
/// whose items are neighbours in the output, and items are small enough to transpose.
pub fn transposed_axis(axes: &[Axis], run: u64) -> Option<usize> {
    let (across, outer) = axes.split_last()?;
    let far = across.stride.unsigned_abs() > 16 && across.len > 1;
    let neighbours = |axis: &Axis| axis.stride.unsigned_abs() == run;
    (far && matches!(run, 1 | 2 | 4 | 8 | 16)).then(|| outer.iter().position(neighbours))?
}

/// The length of chunks of at most `most` that divide `len` evenly, or nearly so.
fn evenly(len: u64, most: u64) -> u64 {
    len.div_ceil(len.div_ceil(most))
}
