//! Filling a piece's buffer through windows on the input.
//!
//! A mapped input lends a piece's whole reach at once. One that is read by position is asked for
//! windows of bounded length: a box that reaches further is divided along its outermost axis
//! until each part fits, or is a single run.

use std::ops::Range;

use super::pack::{each_place, pack};
use super::{FillError, Pieces};
use crate::plan::{Ahead, GAP_BYTES, Place, Plan, transposed_axis};
use crate::source::{Advice, Source, SourceError};
use crate::view::{Axis, reach};

impl Pieces for Plan {
    fn bytes(&self) -> u64 {
        self.bytes()
    }

    fn count(&self) -> u64 {
        self.pieces()
    }

    fn place(&self, number: u64) -> Place {
        self.piece(number).place
    }

    fn fill(
        &self,
        number: u64,
        source: &dyn Source,
        scratch: &mut Vec<u8>,
        out: &mut [u8],
    ) -> Result<(), FillError> {
        if number == 0 {
            ask(self.at_first(), source);
        }
        ask(self.ahead(number), source);
        let piece = self.piece(number);
        Ok(fill_box(&piece.axes, piece.run, piece.input as i64, source, scratch, out)?)
    }

    fn work(&self) -> u64 {
        self.bytes().max(self.reads())
    }

    fn scattered(&self) -> Option<Range<u64>> {
        self.scattered()
    }
}

/// The most stretches to ask for one by one.
const STRETCHES: u64 = 1 << 14;

/// In how many places of what is asked for to look whether it is in memory already.
const SAMPLES: u64 = 16;

/// Let the disk begin to bring what is not in memory yet.
fn ask(ahead: Option<Ahead>, source: &dyn Source) {
    let Some(Ahead { input, axes, run }) = ahead else { return };
    let stretches: u64 = axes.iter().map(|axis| axis.len).product();
    if stretches > STRETCHES {
        return;
    }
    let (mut number, mut is_cached) = (0, true);
    each_place(&axes, input as i64, stretches as usize, |at| {
        number += 1;
        if number % (stretches / SAMPLES + 1) == 0 || number == stretches {
            // its last byte tells, since what was read before may reach into its first ones
            is_cached = is_cached && source.is_cached(at as u64 + run - 1);
        }
    });
    if is_cached {
        return;
    }
    each_place(&axes, input as i64, stretches as usize, |at| {
        source.advise(at as u64..at as u64 + run, Advice::WillNeed);
    });
}

/// Fill `out` with the runs of `run` bytes along `axes`, the first at byte `first` of the source.
pub(crate) fn fill_box(
    axes: &[Axis],
    run: u64,
    first: i64,
    source: &dyn Source,
    scratch: &mut Vec<u8>,
    out: &mut [u8],
) -> Result<(), SourceError> {
    if let (Some(limit), Some(along)) = (source.window_limit(), transposed_axis(axes, run))
        && span_bytes(axes, run) > limit
    {
        return fill_panel(axes, along, run, first, source, scratch, out);
    }
    let Some(most) = source.window_limit().and_then(|limit| part_len(axes, run, limit)) else {
        let span = reach(axes, run);
        let range = (first + span.start) as u64..(first + span.end) as u64;
        pack(axes, run, source.window(range, scratch)?, -span.start as usize, out);
        return Ok(());
    };
    let (axis, inner) = (axes[0], &axes[1..]);
    let item_bytes = out.len() / axis.len as usize;
    let mut done = 0;
    for part in out.chunks_mut(most as usize * item_bytes) {
        let len = (part.len() / item_bytes) as u64;
        let at = first + axis.stride * done;
        if len == 1 {
            fill_box(inner, run, at, source, scratch, part)?;
        } else {
            let part_axes = [&[Axis { len, ..axis }], inner].concat();
            fill_box(&part_axes, run, at, source, scratch, part)?;
        }
        done += len as i64;
    }
    Ok(())
}

/// Read the rows of the input that a relayout needs one after the other, each once, and
/// transpose them from memory.
fn fill_panel(
    axes: &[Axis],
    along: usize,
    run: u64,
    first: i64,
    source: &dyn Source,
    scratch: &mut Vec<u8>,
    out: &mut [u8],
) -> Result<(), SourceError> {
    let mut others = axes.to_vec();
    let Axis { len, stride } = others.remove(along);
    let mut panel = vec![0; out.len()];
    let lowest = stride.min(0) * (len as i64 - 1);
    fill_box(&others, run * len, first + lowest, source, scratch, &mut panel)?;
    let mut inner = run * len;
    let mut dense = axes.to_vec();
    for (_, axis) in dense.iter_mut().enumerate().rev().filter(|(at, _)| *at != along) {
        axis.stride = inner as i64;
        inner *= axis.len;
    }
    pack(&dense, run, &panel, -lowest as usize, out);
    Ok(())
}

/// From the lowest byte of a box to the highest, in bytes.
fn span_bytes(axes: &[Axis], run: u64) -> u64 {
    let span = reach(axes, run);
    (span.end - span.start) as u64
}

/// How many items of the outermost axis to take at once, or `None` for the whole box.
fn part_len(axes: &[Axis], run: u64, limit: u64) -> Option<u64> {
    let (axis, item) = (axes.first()?, span_bytes(&axes[1..], run));
    let stride = axis.stride.unsigned_abs();
    let most =
        if stride > item + GAP_BYTES { 1 } else { limit.saturating_sub(item) / stride.max(1) + 1 };
    (axis.len == 1 || most < axis.len).then_some(most)
}
