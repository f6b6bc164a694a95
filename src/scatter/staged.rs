//! A sink whose rows come in stages, each of which changes a few ranges of a file that fit a share of the memory.
//!
//! It is the counterpart of a [panel](crate::plan::Panel): what a stage changes is brought to the disk
//! when the stage is complete, and let go when the next one is. So each byte is written to the disk once.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::gather::Stages;
use crate::sink::{Sink, SinkError, WriteOrder};

/// Rows of so many bytes, on their way through another sink to a file.
pub(super) struct StagedSink<'a> {
    rows: &'a dyn Sink,
    row_bytes: u64,
    file: &'a dyn Sink,
    stages: &'a Stages,
    /// Bytes of each stage that are not written yet.
    left: Vec<AtomicU64>,
    /// Whether the file has bytes already, which stay where no row comes.
    patches: bool,
}

impl<'a> StagedSink<'a> {
    /// Give the rows to `rows`, which writes them to `file`, in these stages.
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

    /// The bytes of a stage among all.
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
    use std::sync::Mutex;

    use super::*;

    /// A file that notes what is asked of it.
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
            // writes divide rows, and cross from one stage to the next
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
