//! Filling a piece's buffer through windows on the input.
//!
//! A mapped input lends all of a piece's byte bounds at once. One that is read by position is asked
//! for windows of bounded length: a box that spans more is divided along its outermost axis until
//! each part fits, or is a single run.

use std::ops::Range;

use super::pack::pack;
use super::{FillError, Pieces};
use crate::plan::{GAP_BYTES, OutputRows, Plan, transposed_axis};
use crate::runs::{Axis, Runs, byte_bounds, dense_bytes, span_bytes};
use crate::source::{Advice, Source, SourceError};

impl Pieces for Plan {
    fn bytes(&self) -> u64 {
        self.bytes()
    }

    fn count(&self) -> u64 {
        self.pieces()
    }

    fn output(&self, number: u64) -> OutputRows {
        self.piece(number).output
    }

    fn fill(
        &self,
        number: u64,
        source: &dyn Source,
        scratch: &mut Vec<u8>,
        out: &mut [u8],
    ) -> Result<(), FillError> {
        if number == 0 {
            prefetch(self.prefetch_first(), source);
        }
        prefetch(self.prefetch(number), source);
        Ok(read_runs(&self.piece(number).input, source, scratch, out)?)
    }

    fn work(&self) -> u64 {
        self.bytes().max(self.reads())
    }

    fn sparse_range(&self) -> Option<Range<u64>> {
        self.sparse_range()
    }
}

/// The most ranges to prefetch one by one.
const RANGES: u64 = 1 << 14;

/// In how many places to look whether what is to be prefetched is in memory already.
const SAMPLES: u64 = 16;

/// Let the disk begin to read what is not in memory yet.
fn prefetch(runs: Option<Runs>, source: &dyn Source) {
    let Some(runs) = runs else { return };
    let ranges = dense_bytes(&runs.axes, 1);
    if ranges > RANGES {
        return;
    }
    let sampled = |number: u64| number.is_multiple_of(ranges / SAMPLES + 1) || number == ranges;
    let mut samples = (1..).zip(runs.starts()).filter(|&(number, _)| sampled(number));
    // the last byte tells, since what was read before may extend into the first ones
    if samples.all(|(_, at)| source.is_cached(at as u64 + runs.run - 1)) {
        return;
    }
    for at in runs.starts() {
        source.advise(at as u64..at as u64 + runs.run, Advice::WillNeed);
    }
}

/// Fill `out` with the dense bytes of `runs` of the source.
pub(crate) fn read_runs(
    runs: &Runs,
    source: &dyn Source,
    scratch: &mut Vec<u8>,
    out: &mut [u8],
) -> Result<(), SourceError> {
    fill_box(&runs.axes, runs.run, runs.offset, source, scratch, out)
}

/// Fill `out` with the runs of `run` bytes along `axes`, the first at byte `first` of the source.
fn fill_box(
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
        let bounds = byte_bounds(axes, run);
        let range = (first + bounds.start) as u64..(first + bounds.end) as u64;
        pack(axes, run, source.window(range, scratch)?, -bounds.start as usize, out);
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

/// How many items of the outermost axis to take at once, or `None` for the whole box.
fn part_len(axes: &[Axis], run: u64, limit: u64) -> Option<u64> {
    let (axis, item) = (axes.first()?, span_bytes(&axes[1..], run));
    let stride = axis.stride.unsigned_abs();
    let most =
        if stride > item + GAP_BYTES { 1 } else { limit.saturating_sub(item) / stride.max(1) + 1 };
    (axis.len == 1 || most < axis.len).then_some(most)
}
