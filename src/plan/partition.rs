//! How an output is divided into pieces: into ranges of it, or into [`Boxes`] of several rows.
//!
//! Both compute a piece from its number, and divide lengths evenly, so that no piece is tiny.

use std::convert::Infallible;
use std::ops::Range;

use super::boxes::Boxes;
use super::piece::{Piece, evenly};
use crate::runs::{Axis, Runs, dense_bytes, distance};

/// How a plan's output is divided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Partition {
    Ranges(Ranges),
    Cuts(PieceCuts),
    Boxes(Boxes),
}

/// Pieces that are ranges of the output of equal length, but for the first and the last one,
/// wherever rows end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PieceCuts {
    /// Bytes of all pieces, of the first one at most, and of any other.
    bytes: u64,
    first: u64,
    step: u64,
}

impl PieceCuts {
    /// Divide `bytes` bytes behind the first `first` ones, and then every `step`; both at least 1.
    pub(crate) fn new(bytes: u64, first: u64, step: u64) -> PieceCuts {
        PieceCuts { bytes, first: first.max(1), step: step.max(1) }
    }

    pub(crate) fn pieces(&self) -> u64 {
        match self.bytes {
            0 => 0,
            bytes => 1 + bytes.saturating_sub(self.first).div_ceil(self.step),
        }
    }

    pub(crate) fn range(&self, number: u64) -> Range<u64> {
        let end = self.first + number * self.step;
        let start = if number == 0 { 0 } else { end - self.step };
        start..end.min(self.bytes)
    }

    pub(super) fn piece(&self, input: &Runs, number: u64) -> Piece {
        let range = self.range(number);
        let output = Runs::contiguous(range.start, range.end - range.start);
        let mut boxes = Vec::new();
        let Ok(()) = input.split(range, &mut |runs| {
            boxes.push(runs);
            Ok::<_, Infallible>(())
        });
        Piece { input: boxes, output }
    }
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
        let output = Runs::contiguous((outer_item * whole + first) * inner, len * inner);
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
        Piece { input: vec![Runs { offset, axes, run }], output }
    }
}
