//! Filling a piece's buffer through windows on the input.
//!
//! A mapped input lends all of a piece's byte bounds at once. One that is read by position is asked
//! for windows of bounded length, in the order of the input: a box that spans more, or has long gaps,
//! is divided along its longest stride until each part is worth one read, or is a single run.

use std::ops::Range;

use super::pack::pack;
use super::{FillError, Pieces, ReadFrom, VisitRange};
use crate::plan::{Panel, Plan, needed_bytes, reads_gap};
use crate::runs::{Axis, Runs, dense_bytes, span_bytes};
use crate::source::{Advice, Source, SourceError};

impl Pieces for Plan {
    fn bytes(&self) -> u64 {
        self.bytes()
    }

    fn count(&self) -> u64 {
        self.pieces()
    }

    fn output(&self, number: u64) -> Runs {
        self.piece(number).output
    }

    fn fill(&self, number: u64, from: &mut ReadFrom<'_>, out: &mut [u8]) -> Result<(), FillError> {
        let source = from.source;
        if !is_read_ahead(self, source) {
            if number == 0 {
                self.prefetch_first().iter().for_each(|runs| prefetch(runs, source));
            }
            self.prefetch(number).iter().for_each(|runs| prefetch(runs, source));
        }
        match self.piece(number).input.as_slice() {
            [Runs { offset, axes, run }] if axes.is_empty() => {
                let start = *offset as u64;
                Ok(source.read(start..start + run, from.scratch, out)?)
            }
            boxes => Ok(read_boxes(boxes, from, out)?),
        }
    }

    fn needs(&self, number: u64, gap: u64, visit: VisitRange<'_>) -> Result<(), FillError> {
        self.needs(number, gap).iter().for_each(|runs| visit_ranges(runs, visit));
        Ok(())
    }

    fn panel(&self, number: u64) -> Option<Panel> {
        self.panel(number)
    }

    fn work(&self) -> u64 {
        self.bytes().max(self.reads())
    }

    fn range(&self) -> Option<Range<u64>> {
        let Runs { offset, axes, run } = self.input();
        let start = u64::try_from(*offset).ok()?;
        (axes.is_empty() && *run > 0).then_some(start..start + run)
    }

    fn sparse_range(&self) -> Option<Range<u64>> {
        self.sparse_range()
    }
}

/// Whether the kernel reads what pieces need ahead of them by itself. Not even to look whether some of
/// it is in memory is of use then: that look is a read to the kernel, out of the order. Nor is it of a
/// short range, which is one read anyway.
fn is_read_ahead(plan: &Plan, source: &dyn Source) -> bool {
    plan.range().is_some_and(|range| match plan.pieces() {
        1 => range.end - range.start <= ONE_READ,
        _ => source.reads_ahead(range.start),
    })
}

/// A range so short that a disk reads it at once, in bytes.
const ONE_READ: u64 = 64 << 10;

/// The ranges of ascending runs.
pub(crate) fn visit_ranges(runs: &Runs, visit: VisitRange<'_>) {
    runs.starts().for_each(|at| visit(at as u64..at as u64 + runs.run));
}

/// The most ranges to prefetch one by one.
const RANGES: u64 = 1 << 17;

/// In how many places to look whether what is to be prefetched is in memory already.
const SAMPLES: u64 = 16;

/// Let the disk begin to read what is not in memory yet.
fn prefetch(runs: &Runs, source: &dyn Source) {
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

/// The first `count` bytes of what is left of a buffer.
pub(crate) fn split_first<'b>(rest: &mut &'b mut [u8], count: u64) -> &'b mut [u8] {
    let (first, others) = std::mem::take(rest).split_at_mut(count as usize);
    *rest = others;
    first
}

/// Fill `out` with a range of the dense bytes of `runs` of the source.
pub(crate) fn read_range(
    runs: &Runs,
    range: Range<u64>,
    from: &mut ReadFrom<'_>,
    out: &mut [u8],
) -> Result<(), SourceError> {
    let mut rest = out;
    runs.split(range, &mut |runs| {
        let now = split_first(&mut rest, runs.bytes());
        read_runs(&runs, from, now)
    })
}

/// Fill `out` with the dense bytes of several runs, one after the other.
pub(crate) fn read_boxes(
    boxes: &[Runs],
    from: &mut ReadFrom<'_>,
    out: &mut [u8],
) -> Result<(), SourceError> {
    let mut rest = out;
    boxes.iter().try_for_each(|runs| {
        let now = split_first(&mut rest, runs.bytes());
        read_runs(runs, from, now)
    })
}

/// Fill `out` with the dense bytes of `runs` of the source.
///
/// What is read by position is read in the order of the input, each stretch once. Where the output
/// has another order, it is put in order in memory.
pub(crate) fn read_runs(
    runs: &Runs,
    from: &mut ReadFrom<'_>,
    out: &mut [u8],
) -> Result<(), SourceError> {
    let Some(limit) = from.source.window_limit() else {
        return read_window(runs, from, out);
    };
    let ordered = runs.in_memory_order();
    if ordered.axes == runs.axes {
        return read_ordered(runs, limit, from, out);
    }
    let mut panel = vec![0; out.len()];
    read_ordered(&ordered, limit, from, &mut panel)?;
    let Runs { axes, run, .. } = runs.packed_in_memory_order();
    pack(&axes, run, &panel, 0, out);
    Ok(())
}

/// The same for axes from the longest stride to the shortest, in windows of at most `limit` bytes.
fn read_ordered(
    runs: &Runs,
    limit: u64,
    from: &mut ReadFrom<'_>,
    out: &mut [u8],
) -> Result<(), SourceError> {
    let Runs { offset, axes, run } = runs;
    let Some((most, (axis, inner))) = part_len(axes, *run, limit).zip(axes.split_first()) else {
        return read_window(runs, from, out);
    };
    let item_bytes = out.len() / axis.len as usize;
    let mut done = 0;
    for part in out.chunks_mut(most as usize * item_bytes) {
        let len = (part.len() / item_bytes) as u64;
        let offset = offset + axis.stride * done;
        let outer = Axis { len, ..*axis };
        let axes = if len == 1 { inner.to_vec() } else { [&[outer], inner].concat() };
        read_ordered(&Runs { offset, axes, run: *run }, limit, from, part)?;
        done += len as i64;
    }
    Ok(())
}

/// Fill `out` from one window.
fn read_window(runs: &Runs, from: &mut ReadFrom<'_>, out: &mut [u8]) -> Result<(), SourceError> {
    let bounds = runs.byte_bounds();
    let window = from.window(bounds.start as u64..bounds.end as u64)?;
    pack(&runs.axes, runs.run, window, (runs.offset - bounds.start) as usize, out);
    Ok(())
}

/// How many items of the outermost axis to take at once, or `None` for all of them in one window.
fn part_len(axes: &[Axis], run: u64, limit: u64) -> Option<u64> {
    let (axis, inner) = axes.split_first()?;
    let item = span_bytes(inner, run);
    let stride = axis.stride.unsigned_abs();
    let most = match stride {
        0 => return None,
        _ if !reads_gap(stride, needed_bytes(inner, run)) => 1,
        _ => limit.saturating_sub(item) / stride + 1,
    };
    (axis.len == 1 || most < axis.len).then_some(most)
}
