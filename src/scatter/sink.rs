//! The end of a scatter: slabs written at their positions in another sink.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::execute::{FillError, unpack, write_range};
use crate::gather::{DROPPED, RowBlock, RowOffsets, Stages};
use crate::plan::PIECE_BYTES;
use crate::runs::Runs;
use crate::sink::{Sink, SinkError, WritableMap, WriteOrder};
use crate::source::PAGE;

const ROWS: usize = 4096;

/// A sink that takes slabs in order, and writes each to its position in another sink. It borrows that sink,
/// whose owner commits it.
pub struct ScatterSink<'a> {
    order: WriteOrder,
    slab: &'a Runs,
    positions: &'a dyn RowOffsets,
    sink: &'a dyn Sink,
}

impl<'a> ScatterSink<'a> {
    /// A sink that writes slabs of the form `slab` to their positions in `sink`.
    pub(super) fn new(
        order: WriteOrder,
        slab: &'a Runs,
        positions: &'a dyn RowOffsets,
        sink: &'a dyn Sink,
    ) -> ScatterSink<'a> {
        ScatterSink { order, slab, positions, sink }
    }
}

impl Sink for ScatterSink<'_> {
    fn order(&self) -> WriteOrder {
        self.order
    }

    fn write_at(&self, offset: u64, mut bytes: &[u8]) -> Result<(), SinkError> {
        let slab = self.slab;
        let mut row = offset / slab.bytes();
        let mut within = offset % slab.bytes();
        let mut block = RowBlock::default();
        while !bytes.is_empty() {
            let left = (within + bytes.len() as u64).div_ceil(slab.bytes());
            self.positions.block(row..row + left, ROWS, slab, &mut block).map_err(no_positions)?;
            // a file that was cut short reads as zeros, which are valid positions
            self.positions.verify().map_err(no_positions)?;
            let count = (block.rows() * slab.bytes() - within).min(bytes.len() as u64);
            let (now, later) = bytes.split_at(count as usize);
            self.write_rows(&block, within, now)?;
            row += block.rows();
            (bytes, within) = (later, 0);
        }
        Ok(())
    }
}

impl ScatterSink<'_> {
    /// Write slabs to their offsets, without the first `within` bytes of the first slab.
    fn write_rows(
        &self,
        block: &RowBlock,
        mut within: u64,
        mut bytes: &[u8],
    ) -> Result<(), SinkError> {
        let slab = self.slab;
        if within == 0
            && bytes.len() as u64 == block.rows() * slab.bytes()
            && let Some(shared) = self.sink.mapped(slab.bytes())
            && write_mapped(shared, block, slab, bytes)
        {
            return self.sink.verify();
        }
        for (offset, rows) in block.stretches() {
            let runs = block.runs(slab, offset, rows);
            let count = (runs.bytes() - within).min(bytes.len() as u64);
            let (now, later) = bytes.split_at(count as usize);
            if offset != DROPPED {
                write_range(self.sink, &runs, within..within + count, now)?;
            }
            (bytes, within) = (later, 0);
        }
        Ok(())
    }
}

/// Write small slabs to the mapped target. Returns false, and writes nothing, where its pages cannot be brought
/// in.
fn write_mapped(shared: &WritableMap, block: &RowBlock, slab: &Runs, bytes: &[u8]) -> bool {
    let bounds = slab.byte_bounds();
    let span_bytes = (bounds.end - bounds.start) as u64;
    if span_bytes > PIECE_BYTES {
        return false;
    }
    let there = || block.stretches().filter(|&(offset, _)| offset != DROPPED);
    // one call for each of many scattered elements takes longer than the page faults that it saves
    if span_bytes >= PAGE {
        let mut ascending: Vec<(u64, u64)> = there().collect();
        ascending.sort_unstable();
        let ranges = ascending.into_iter();
        let ranges = ranges.map(|(at, rows)| block.runs(slab, at, rows).file_bounds());
        if !shared.populate(ranges) {
            return false;
        }
    }
    let mut bytes = bytes;
    for (offset, rows) in block.stretches() {
        let (now, later) = bytes.split_at((rows * slab.bytes()) as usize);
        bytes = later;
        if offset == DROPPED {
            continue;
        }
        let runs = block.runs(slab, offset, rows);
        // the slab may begin before its first element, where its axes run backwards
        let range = runs.file_bounds();
        let first = (runs.offset as u64 - range.start) as usize;
        let Some(cells) = shared.cells(range) else { return false };
        unpack(&runs.axes, runs.run, now, cells, first);
    }
    true
}

/// The error for positions that changed after their check.
fn no_positions(error: FillError) -> SinkError {
    SinkError::Positions(Box::new(error))
}

// A sink whose rows come in stages; each stage changes a few ranges of a file, which fit in a share of the
// memory.
//
// It is the counterpart of a panel: the ranges of a stage are written to the disk when the stage is complete,
// and dropped from memory when the next stage is complete. So each byte is written to the disk once.

/// A sink for rows of `row_bytes` bytes, which another sink writes to a file.
pub(super) struct StagedSink<'a> {
    rows: &'a dyn Sink,
    row_bytes: u64,
    file: &'a dyn Sink,
    stages: &'a Stages,
    /// The bytes of each stage that are not written yet.
    left: Vec<AtomicU64>,
    /// Whether the file has old bytes, which stay where no row is written.
    patches: bool,
}

impl<'a> StagedSink<'a> {
    /// Pass rows to `rows`, which writes them to `file`, in these stages.
    pub(super) fn new(
        rows: &'a dyn Sink,
        row_bytes: u64,
        file: &'a dyn Sink,
        stages: &'a Stages,
        patches: bool,
    ) -> StagedSink<'a> {
        let left = (0..stages.count()).map(|stage| {
            let rows = stages.rows_of(stage);
            AtomicU64::new((rows.end - rows.start) * row_bytes)
        });
        StagedSink { rows, row_bytes, file, stages, left: left.collect(), patches }
    }

    fn bytes(&self, stage: usize) -> Range<u64> {
        let rows = self.stages.rows_of(stage);
        rows.start * self.row_bytes..rows.end * self.row_bytes
    }

    fn settle(&self, stage: usize, wait: bool) -> Result<(), SinkError> {
        self.stages.ranges(stage).try_for_each(|range| self.file.settle(range, wait))
    }
}

impl Sink for StagedSink<'_> {
    fn order(&self) -> WriteOrder {
        self.rows.order()
    }

    fn write_at(&self, offset: u64, mut bytes: &[u8]) -> Result<(), SinkError> {
        let mut at = offset;
        while !bytes.is_empty() {
            let stage = self.stages.of_row(at / self.row_bytes);
            let whole = self.bytes(stage);
            let (now, later) = bytes.split_at((whole.end - at).min(bytes.len() as u64) as usize);
            if self.patches && at == whole.start {
                self.stages.ranges(stage).for_each(|range| self.file.expect(range));
            }
            self.rows.write_at(at, now)?;
            let count = now.len() as u64;
            if self.left[stage].fetch_sub(count, Ordering::Relaxed) == count {
                self.settle(stage, false)?;
                stage.checked_sub(1).map_or(Ok(()), |before| self.settle(before, true))?;
            }
            (at, bytes) = (at + count, later);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;
    use std::sync::Mutex;

    use super::super::Scatter;
    use super::*;
    use crate::dtype::{DType, Endian, Scalar};
    use crate::execute::{Conversion, Workers};
    use crate::gather::{Indices, OutOfRange};
    use crate::shape::Order;
    use crate::source::{MemorySource, Source, SourceError};
    use crate::view::Layout;

    /// A source of zeros, as a mapped file reads where it was cut short.
    struct CutShort(MemorySource);

    impl Source for CutShort {
        fn len(&self) -> u64 {
            self.0.len()
        }

        fn window<'a>(
            &'a self,
            range: Range<u64>,
            scratch: &'a mut Vec<u8>,
        ) -> Result<&'a [u8], SourceError> {
            self.0.window(range, scratch)
        }

        fn verify(&self) -> Result<(), SourceError> {
            Err(SourceError::Truncated)
        }
    }

    /// A target that must not be written to.
    struct Untouched;

    impl Sink for Untouched {
        fn write_at(&self, _offset: u64, _bytes: &[u8]) -> Result<(), SinkError> {
            unreachable!("what was read are no positions")
        }
    }

    #[test]
    fn positions_that_cannot_be_read_are_not_the_targets_fault() {
        let layout = |shape| Layout::new(shape, 8, Order::C, 0);
        let dtype = DType::Scalar(Scalar::I8, Endian::Little);
        let shape = [2, 1];
        let bits = dtype.item_bits();
        let indices = Indices { dtype: &dtype, layout: Layout::new(&shape, bits, Order::C, 0) };
        let target = layout(&[4, 3]);
        let values = layout(&[2, 3]);
        let scatter =
            Scatter::new(&target, &indices, &values, OutOfRange::Error, Conversion::None).unwrap();
        let source = CutShort(MemorySource(vec![0; 2]));
        let positions = scatter.positions(&[&source], &Workers::new(1)).unwrap();
        let written = scatter.sink(&Untouched, &positions).write_at(0, &[1; 6]);
        let Err(SinkError::Positions(reason)) = written else { panic!("{written:?}") };
        assert_eq!(reason.to_string(), "the file was cut short while it was being read");
    }

    /// A file that records its calls.
    #[derive(Default)]
    struct Noted(Mutex<Vec<(Range<u64>, &'static str)>>);

    impl Noted {
        fn note(&self, range: Range<u64>, what: &'static str) {
            self.0.lock().unwrap().push((range, what));
        }
    }

    impl Sink for Noted {
        fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), SinkError> {
            self.note(offset..offset + bytes.len() as u64, "write");
            Ok(())
        }

        fn settle(&self, range: Range<u64>, wait: bool) -> Result<(), SinkError> {
            self.note(range, if wait { "let go" } else { "settle" });
            Ok(())
        }

        fn expect(&self, range: Range<u64>) {
            self.note(range, "expect");
        }
    }

    #[test]
    fn each_stage_is_expected_settled_and_let_go() {
        let stages = Stages::new(vec![0, 10, 30], 4, |stage| {
            let start = stage as u64 * 100;
            vec![start..start + 60, 90..90]
        });
        for (patches, expects) in [(true, 1), (false, 0)] {
            let file = Noted::default();
            let sink = StagedSink::new(&file, 2, &file, &stages, patches);
            // writes divide rows, and cross the boundary of stages
            for (offset, count) in [(0, 13), (13, 20), (33, 27)] {
                sink.write_at(offset, &vec![0; count]).unwrap();
            }
            let noted = file.0.into_inner().unwrap();
            let first = [(0..60, "expect"), (0..13, "write"), (13..20, "write"), (0..60, "settle")];
            let second = [
                (100..160, "expect"),
                (20..33, "write"),
                (33..60, "write"),
                (100..160, "settle"),
                (0..60, "let go"),
            ];
            let expected = first[1 - expects..].iter().chain(&second[1 - expects..]);
            assert_eq!(noted, expected.cloned().collect::<Vec<_>>());
        }
    }
}
