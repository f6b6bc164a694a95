//! Assignment: a dense value written to the runs of a target.
//!
//! The pieces are ranges of the dense bytes. Filling one packs it from the value's side; the sink
//! at the other end of the engine, [`StridedSink`], unpacks it into the target. A basic index takes
//! no element twice, so pieces share no byte of the target either.

use super::fill::read_boxes;
use super::unpack::{each_run, unpack};
use super::{Conversion, FillError, Pieces, ReadFrom, VisitRange, tiling};
use crate::plan::{Panel, Plan, Tiling, row_piece_bytes};
use crate::runs::{Runs, byte_bounds, starts};
use crate::sink::{Sink, SinkError, WritableMap};
use crate::source::Source;

/// Runs further apart than this, in bytes, lie on pages of their own.
const PAGE: u64 = 4096;

/// What is written: the value's side of an assignment.
pub struct Assignment {
    plan: Plan,
}

impl Assignment {
    /// Read `value`, of `source`, in pieces that suit `target`, of the same number of elements, which
    /// `conversion` makes elements of the target; both coalesced.
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
    /// The same, read ahead in panels that take so many bytes of memory, unless it is broadcast.
    #[must_use]
    pub(crate) fn in_panels(self, room: u64) -> Assignment {
        match self.plan.input().axes.iter().any(|axis| axis.stride == 0) {
            true => self,
            false => self.plan.in_panels(room).into(),
        }
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
        // what is written in place cannot be taken back, so lost pages must not pass as zeros
        Ok(from.source.verify()?)
    }

    fn panel(&self, number: u64) -> Option<Panel> {
        self.plan.panel(number)
    }

    fn needs(&self, number: u64, gap: u64, visit: VisitRange<'_>) -> Result<(), FillError> {
        Pieces::needs(&self.plan, number, gap, visit)
    }
}

/// Fill `out` with copies of a run, from byte `phase` of it on.
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
/// The other sink must take bytes in any order. It is only borrowed: whoever owns it commits it.
pub struct StridedSink<'a> {
    sink: &'a dyn Sink,
    target: &'a Runs,
}

impl<'a> StridedSink<'a> {
    /// Write to the runs `target` of `sink`.
    pub fn new(sink: &'a dyn Sink, target: &'a Runs) -> StridedSink<'a> {
        StridedSink { sink, target }
    }
}

impl Sink for StridedSink<'_> {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), SinkError> {
        let mut bytes = bytes;
        self.target.split(offset..offset + bytes.len() as u64, &mut |part| {
            let (now, later) = bytes.split_at(part.bytes() as usize);
            bytes = later;
            write_runs(self.sink, &part, now)
        })
    }
}

/// Write dense bytes to runs of a sink: through a map where it has one and runs are short, else by
/// position.
pub(crate) fn write_runs(sink: &dyn Sink, runs: &Runs, bytes: &[u8]) -> Result<(), SinkError> {
    if sink.mapped(runs.run).is_some_and(|shared| write_mapped(shared, runs, bytes)) {
        return sink.verify();
    }
    each_run(&runs.axes, runs.run, bytes, runs.offset, |at, run| sink.write_at(at as u64, run))
}

/// Write to the mapped target; false, and nothing done, where its pages cannot be brought in.
fn write_mapped(shared: &WritableMap, runs: &Runs, bytes: &[u8]) -> bool {
    let Runs { offset, ref axes, run } = *runs;
    let bounds = runs.byte_bounds();
    let Some(cells) = shared.cells(bounds.start as u64..bounds.end as u64) else {
        return false;
    };
    // rows whose runs lie closer than pages are brought in whole
    let (outer, row) = match axes.split_last() {
        Some((inner, outer)) if inner.stride.unsigned_abs() <= PAGE => {
            (outer, byte_bounds(&[*inner], run))
        }
        _ => (&axes[..], 0..run as i64),
    };
    let rows = starts(outer, offset);
    let ready = shared.populate(rows.map(|at| (at + row.start) as u64..(at + row.end) as u64));
    if ready {
        unpack(axes, run, bytes, cells, (offset - bounds.start) as usize);
    }
    ready
}
