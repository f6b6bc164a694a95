//! Assignment: a dense value written to the runs of a target.
//!
//! The pieces are ranges of the dense bytes. Each is packed from the value, and the sink,
//! [`StridedSink`], unpacks it into the target. A basic index takes no element twice, so pieces share
//! no byte of the target.

use std::cell::Cell;
use std::ops::Range;

use super::fill::read_boxes;
use super::{Conversion, FillError, Pieces, ReadFrom, VisitRange, tiling};
use crate::plan::{Panel, Plan, Tiling, row_piece_bytes};
use crate::runs::{Axis, Runs, byte_bounds, starts};
use crate::sink::{Sink, SinkError, WritableMap};
use crate::source::{PAGE, Source};

pub struct Assignment {
    plan: Plan,
}

impl Assignment {
    /// Read `value` from `source` in pieces that suit `target`, which has as many elements;
    /// `conversion` converts elements to the target's dtype. Both runs must be coalesced.
    pub fn new(
        target: &Runs,
        value: &Runs,
        conversion: Conversion,
        source: &dyn Source,
    ) -> Assignment {
        let piece_bytes = row_piece_bytes(target, conversion.output_unit());
        let piece_bytes = conversion.input_bytes(piece_bytes);
        let tiling = tiling(source, value.bytes()).divided(conversion.expansion());
        let tiling = Tiling { piece_bytes, ..tiling };
        Assignment { plan: Plan::tiled(value, conversion.unit(), tiling) }
    }
}

impl Assignment {
    /// This assignment, read ahead in panels that take `room` bytes of memory, unless the value is
    /// broadcast.
    #[must_use]
    pub(crate) fn in_panels(self, room: u64) -> Assignment {
        let is_broadcast = self.plan.input().axes.iter().any(|axis| axis.stride == 0);
        if is_broadcast { self } else { self.plan.in_panels(Some(room)).into() }
    }
}

impl From<Plan> for Assignment {
    fn from(plan: Plan) -> Assignment {
        Assignment { plan }
    }
}

impl Pieces for Assignment {
    fn bytes(&self) -> u64 {
        self.plan.bytes()
    }

    fn count(&self) -> u64 {
        self.plan.pieces()
    }

    fn output(&self, number: u64) -> Runs {
        self.plan.piece(number).output
    }

    fn fill(&self, number: u64, from: &mut ReadFrom<'_>, out: &mut [u8]) -> Result<(), FillError> {
        let value = self.plan.input();
        if let Some(run) = value.repeated().filter(|run| run.end - run.start <= PAGE) {
            let phase = self.output(number).offset as u64 % (run.end - run.start);
            repeat(from.window(run)?, phase as usize, out);
            return Ok(from.source.verify()?);
        }
        read_boxes(&self.plan.piece(number).input, from, out)?;
        // bytes written in place cannot be taken back, so zeros of lost pages must not be written
        Ok(from.source.verify()?)
    }

    fn panel(&self, number: u64) -> Option<Panel> {
        self.plan.panel(number)
    }

    fn needs(&self, number: u64, gap: u64, visit: VisitRange<'_>) -> Result<(), FillError> {
        Pieces::needs(&self.plan, number, gap, visit)
    }
}

/// Fill `out` with copies of a run, starting at byte `phase` of the run.
fn repeat(run: &[u8], phase: usize, out: &mut [u8]) {
    let mut done = run.len().min(out.len());
    for (byte, &of_run) in out.iter_mut().zip(run.iter().cycle().skip(phase)).take(done) {
        *byte = of_run;
    }
    while done < out.len() {
        let next = done.min(out.len() - done);
        out.copy_within(..next, done);
        done += next;
    }
}

/// A sink that takes dense bytes, in any order, and writes them to strided runs of another sink.
///
/// The other sink must take bytes in any order. It is only borrowed: its owner commits it.
pub struct StridedSink<'a> {
    sink: &'a dyn Sink,
    target: &'a Runs,
}

impl<'a> StridedSink<'a> {
    pub fn new(sink: &'a dyn Sink, target: &'a Runs) -> StridedSink<'a> {
        StridedSink { sink, target }
    }
}

impl Sink for StridedSink<'_> {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), SinkError> {
        let range = offset..offset + bytes.len() as u64;
        write_range(self.sink, self.target, range, bytes)
    }
}

/// Write a range of the dense bytes of runs to a sink.
pub(crate) fn write_range(
    sink: &dyn Sink,
    runs: &Runs,
    range: Range<u64>,
    mut bytes: &[u8],
) -> Result<(), SinkError> {
    for part in runs.boxes(range) {
        let (now, later) = bytes.split_at(part.bytes() as usize);
        write_runs(sink, &part, now)?;
        bytes = later;
    }
    Ok(())
}

/// Write dense bytes to runs of a sink: through its map, where it has one and runs are short, else by
/// position.
fn write_runs(sink: &dyn Sink, runs: &Runs, bytes: &[u8]) -> Result<(), SinkError> {
    if sink.mapped(runs.run).is_some_and(|shared| write_mapped(shared, runs, bytes)) {
        return sink.verify();
    }
    each_run(&runs.axes, runs.run, bytes, runs.offset, |at, run| sink.write_at(at as u64, run))
}

/// Write to the mapped target. Returns false, and writes nothing, where its pages cannot be brought
/// in.
fn write_mapped(shared: &WritableMap, runs: &Runs, bytes: &[u8]) -> bool {
    let Runs { offset, ref axes, run } = *runs;
    let bounds = runs.file_bounds();
    let first = (offset as u64 - bounds.start) as usize;
    let Some(cells) = shared.cells(bounds) else { return false };
    // rows whose runs lie less than a page apart are brought in whole
    let (outer, row) = match axes.split_last() {
        Some((inner, outer)) if inner.stride.unsigned_abs() <= PAGE => {
            (outer, byte_bounds(&[*inner], run))
        }
        _ => (&axes[..], 0..run as i64),
    };
    let rows = starts(outer, offset);
    let ready = shared.populate(rows.map(|at| (at + row.start) as u64..(at + row.end) as u64));
    if ready {
        unpack(axes, run, bytes, cells, first);
    }
    ready
}

/// Copy the bytes of `input`, run after run of `run` bytes, to runs along `axes` (outermost first),
/// the first at position `first` of `output`: the inverse of [`pack`](super::pack::pack).
///
/// The output is shared with other threads and processes, each of which writes other runs. So it is
/// given as cells, and no byte between the runs is written or read.
///
/// ```
/// use std::cell::Cell;
/// use tslice::execute::unpack;
/// use tslice::runs::Axis;
/// let mut output = *b"......";
/// let cells = Cell::from_mut(&mut output[..]).as_slice_of_cells();
/// unpack(&[Axis { len: 3, stride: -2 }], 1, b"fdb", cells, 5);
/// assert_eq!(&output, b".b.d.f");
/// ```
pub fn unpack(axes: &[Axis], run: u64, input: &[u8], output: &[Cell<u8>], first: usize) {
    let Some((inner, outer)) = axes.split_last() else {
        set(&output[first..first + run as usize], input);
        return;
    };
    let row_bytes = inner.len as usize * run as usize;
    for (at, row) in starts(outer, first as i64).zip(input.chunks_exact(row_bytes)) {
        unpack_row(inner.stride, run as usize, row, output, at);
    }
}

pub(crate) fn each_run<E>(
    axes: &[Axis],
    run: u64,
    input: &[u8],
    first: i64,
    mut write: impl FnMut(i64, &[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let runs = input.chunks_exact(run as usize);
    starts(axes, first).zip(runs).try_for_each(|(at, bytes)| write(at, bytes))
}

fn unpack_row(stride: i64, run: usize, row: &[u8], output: &[Cell<u8>], at: i64) {
    match run {
        1 => unpack_items::<1>(stride, row, output, at),
        2 => unpack_items::<2>(stride, row, output, at),
        4 => unpack_items::<4>(stride, row, output, at),
        8 => unpack_items::<8>(stride, row, output, at),
        16 => unpack_items::<16>(stride, row, output, at),
        _ => {
            let mut at = at;
            for item in row.chunks_exact(run) {
                set(&output[at as usize..at as usize + run], item);
                at += stride;
            }
        }
    }
}

/// Unpack a row of items whose size the compiler knows, so that it emits moves instead of calls.
fn unpack_items<const SIZE: usize>(stride: i64, row: &[u8], output: &[Cell<u8>], mut at: i64) {
    for item in row.as_chunks::<SIZE>().0 {
        set(&output[at as usize..at as usize + SIZE], item);
        at += stride;
    }
}

#[inline(always)]
fn set(to: &[Cell<u8>], from: &[u8]) {
    for (to, &from) in to.iter().zip(from) {
        to.set(from);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::pack::pack;
    use super::*;
    use crate::runs::{byte_bounds, coalesce};

    fn boxes() -> impl Strategy<Value = (Vec<Axis>, u64)> {
        let run = prop_oneof![Just(1u64), Just(2), Just(4), Just(8), Just(16), 1u64..40];
        let axis = (1u64..6, 1u64..4, any::<bool>());
        (prop::collection::vec(axis, 0..5), run).prop_map(|(inner_first, run)| {
            let mut extent = run as i64;
            let mut axes = vec![];
            for (len, spread, backwards) in inner_first {
                let stride = extent * spread as i64;
                extent = stride * len as i64;
                axes.push(Axis { len, stride: if backwards { -stride } else { stride } });
            }
            axes.reverse();
            coalesce(&axes, run)
        })
    }

    proptest! {
        #[test]
        fn packing_what_was_unpacked_gives_it_back((axes, run) in boxes(), seed in any::<u8>()) {
            let span = byte_bounds(&axes, run);
            let count = axes.iter().fold(run, |bytes, axis| bytes * axis.len);
            let input: Vec<u8> = (0..count).map(|at| (at as u8).wrapping_mul(7) ^ seed | 1).collect();
            let mut output = vec![0; (span.end - span.start) as usize];
            let first = -span.start;
            unpack(&axes, run, &input, Cell::from_mut(&mut output[..]).as_slice_of_cells(), first as usize);
            // every byte outside the runs is still 0; no byte of the input is 0
            prop_assert_eq!(output.iter().filter(|&&byte| byte != 0).count() as u64, count);
            let mut packed = vec![0; input.len()];
            pack(&axes, run, &output, first as usize, &mut packed);
            prop_assert_eq!(&packed, &input);
            let mut written = vec![0; output.len()];
            each_run(&axes, run, &input, first, |at, bytes| {
                written[at as usize..][..bytes.len()].copy_from_slice(bytes);
                Ok::<(), ()>(())
            }).unwrap();
            prop_assert_eq!(written, output);
        }
    }
}
