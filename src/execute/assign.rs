//! An assignment: a dense value on its way into the runs of a target.
//!
//! The pieces are ranges of the dense bytes. Filling one packs it from the value's side; the sink
//! that stands at the other end of the engine, [`Spread`], unpacks it into the target. A basic
//! index takes no element twice, so pieces share no byte of the target either.

use super::fill::fill_box;
use super::unpack::{each_run, positions, unpack};
use super::{FillError, Pieces};
use crate::plan::{Part, Place, Strided};
use crate::sink::{InPlaceFile, Sink, SinkError, WritableMap, WriteOrder};
use crate::source::Source;
use crate::view::reach;

/// Runs further apart than this, in bytes, lie on pages of their own.
const PAGE: u64 = 4096;

/// What is written: the value's side of an assignment.
pub struct Assignment {
    value: Strided,
    piece: u64,
}

impl Assignment {
    /// Read `value` in pieces that suit `target`, of the same number of bytes; `unit` bytes are
    /// never divided.
    pub fn new(target: &Strided, value: Strided, unit: u64) -> Assignment {
        Assignment::in_pieces(value, target.piece_bytes(unit))
    }

    /// Read `value` in pieces of so many bytes, more than 0.
    pub(crate) fn in_pieces(value: Strided, piece: u64) -> Assignment {
        Assignment { value, piece }
    }
}

impl Pieces for Assignment {
    fn bytes(&self) -> u64 {
        self.value.bytes()
    }

    fn count(&self) -> u64 {
        self.bytes().div_ceil(self.piece)
    }

    fn place(&self, number: u64) -> Place {
        let start = number * self.piece;
        Place::range(start, self.piece.min(self.bytes() - start))
    }

    fn fill(
        &self,
        number: u64,
        source: &dyn Source,
        scratch: &mut Vec<u8>,
        mut out: &mut [u8],
    ) -> Result<(), FillError> {
        let Place { output, row_bytes, .. } = self.place(number);
        if let Some(run) = self.value.repeated().filter(|run| run.end - run.start <= PAGE) {
            let phase = output % (run.end - run.start);
            repeat(source.window(run, scratch)?, phase as usize, out);
            return Ok(source.verify()?);
        }
        self.value.parts(output..output + row_bytes, &mut |part| {
            let (now, later) = std::mem::take(&mut out).split_at_mut(part.bytes() as usize);
            out = later;
            fill_box(&part.axes, part.run, part.first, source, scratch, now)
        })?;
        // what is written in place cannot be taken back: no zeros for bytes that were lost
        source.verify()?;
        Ok(())
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

/// A sink that takes the dense bytes, in any order, and lays them out in a target.
pub struct Spread<'a> {
    patch: &'a InPlaceFile,
    target: &'a Strided,
}

impl<'a> Spread<'a> {
    /// Write to the runs of `target` in the file of `patch`.
    pub fn new(patch: &'a InPlaceFile, target: &'a Strided) -> Spread<'a> {
        Spread { patch, target }
    }
}

impl Sink for Spread<'_> {
    fn order(&self) -> WriteOrder {
        WriteOrder::Any
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), SinkError> {
        let mut bytes = bytes;
        self.target.parts(offset..offset + bytes.len() as u64, &mut |part| {
            let (now, later) = bytes.split_at(part.bytes() as usize);
            bytes = later;
            write_part(self.patch, &part, now)
        })
    }

    /// The file is not this one's to put in place.
    fn commit(self: Box<Self>) -> Result<(), SinkError> {
        Ok(())
    }
}

/// Lay a part out in the target, the way that suits its runs.
pub(crate) fn write_part(patch: &InPlaceFile, part: &Part, bytes: &[u8]) -> Result<(), SinkError> {
    if patch.shared(part.run).is_some_and(|shared| in_memory(shared, part, bytes)) {
        return patch.check();
    }
    each_run(&part.axes, part.run, bytes, part.first, |at, run| patch.write_at(at as u64, run))
}

/// Lay a part out in the mapped target; false, and nothing done, where its pages are not to be had.
fn in_memory(shared: &WritableMap, part: &Part, bytes: &[u8]) -> bool {
    let span = reach(&part.axes, part.run);
    let first = part.first + span.start;
    let Some(cells) = shared.cells(first as u64..(part.first + span.end) as u64) else {
        return false;
    };
    // rows whose runs lie closer than pages are brought in whole
    let (axes, row) = match part.axes.split_last() {
        Some((inner, outer)) if inner.stride.unsigned_abs() <= PAGE => {
            (outer, reach(&[*inner], part.run))
        }
        _ => (&part.axes[..], 0..part.run as i64),
    };
    let rows = positions(axes, part.first);
    let ready = shared.populate(rows.map(|at| (at + row.start) as u64..(at + row.end) as u64));
    if ready {
        unpack(&part.axes, part.run, bytes, cells, -span.start as usize);
    }
    ready
}
