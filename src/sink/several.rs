//! Several outputs that appear together, as one space of positions.
//!
//! 1. Each output is created as any other is: without a name, allocated in full.
//! 2. `seal` writes what is left to write of each, and checks that no byte is missing. A full disk
//!    is found out here at the latest.
//! 3. Where there are more outputs than descriptors, they are written in batches. The outputs of a
//!    batch are sealed, get temporary names, and are closed (`park`) before the next batch is begun.
//! 4. `commit` puts them in place one after the other, in their order. What they replace is kept
//!    under temporary names (`placed`). Signals that can be handled wait until that is done. If one
//!    cannot be put in place, those before it are taken back, the last one first, and what stood there
//!    before has its names again.
//! 5. When all are in place, what was replaced is removed.
//!
//! There is no call that renames several files at once: a process that is killed between two of
//! them (SIGKILL, a power cut) leaves the first ones in place, each whole, and what those replaced
//! under names that begin with `.tslice-`. Running it again, with `force`, completes the set, if the
//! input was not one of them. With more outputs than descriptors a kill may leave such names of new
//! files, too.

use std::fs::File;
use std::ops::Range;
use std::path::PathBuf;

use super::placed::{Old, Placed};
use super::temp_name::without_signals;
use super::{Draft, Sink, SinkError, WriteOrder, end_within};
use crate::os::open_file_limit;

/// Outputs of which all appear or none.
#[derive(Default)]
pub struct SeveralSinks {
    outputs: Vec<OneOutput>,
    /// How many of them are sealed and closed: the first ones.
    parked: usize,
    /// The position behind the last one.
    end: u64,
}

/// Descriptors that are left for all else.
const RESERVED: u64 = 64;

/// How many outputs are open at a time where not all can be.
const BATCH: u64 = 64;

struct OneOutput {
    path: PathBuf,
    /// The position of its first byte.
    start: u64,
    sink: Box<dyn Draft>,
}

impl SeveralSinks {
    /// How many of `count` outputs should be open at a time: all, if there are enough descriptors
    /// for two of each, the file and its folder.
    pub fn batch(count: u64) -> u64 {
        let spare = open_file_limit().saturating_sub(RESERVED) / 2;
        if count <= spare { count } else { spare.clamp(1, BATCH) }
    }

    /// Add an output that takes positions below `len`. Returns the position of its first byte.
    ///
    /// # Errors
    /// [`SinkError::OutOfBounds`] where positions exceed 63 bits.
    pub fn push(
        &mut self,
        path: PathBuf,
        sink: Box<dyn Draft>,
        len: u64,
    ) -> Result<u64, SinkError> {
        let start = self.end;
        self.end = end_within(start, len, i64::MAX as u64)?;
        self.outputs.push(OneOutput { path, start, sink });
        Ok(start)
    }

    /// Those that are open, as one sink.
    pub fn open(&self) -> OpenSinks<'_> {
        OpenSinks { outputs: &self.outputs[self.parked..] }
    }

    /// Seal those that are open, and close them, so that others can be added.
    ///
    /// # Errors
    /// [`SinkError::File`].
    pub fn park(&mut self) -> Result<(), SinkError> {
        for output in &mut self.outputs[self.parked..] {
            let parked = output.sink.seal().and_then(|()| output.sink.park());
            parked.map_err(|error| error.of_file(&output.path))?;
        }
        self.parked = self.outputs.len();
        Ok(())
    }

    /// Put all in place.
    ///
    /// # Errors
    /// [`SinkError::File`]. None of them is in place then, but where only a folder could not be brought
    /// to the disk.
    pub fn commit(mut self) -> Result<(), SinkError> {
        for output in &mut self.outputs[self.parked..] {
            output.sink.seal().map_err(|error| error.of_file(&output.path))?;
        }
        let last = self.outputs.last().map(|output| output.path.clone()).unwrap_or_default();
        let placed = without_signals(|| {
            self.outputs.into_iter().try_fold(Placed::default(), |placed, output| {
                let OneOutput { path, sink, .. } = output;
                placed.and(sink.place(Old::Kept)).map_err(|error| error.of_file(path))
            })
        })?;
        placed.keep().map_err(|error| error.of_file(last))
    }
}

/// Outputs as one sink, borrowed from who puts them in place.
pub struct OpenSinks<'a> {
    outputs: &'a [OneOutput],
}

impl OpenSinks<'_> {
    /// The output that holds a position.
    fn output_at(&self, offset: u64) -> Option<&OneOutput> {
        let at = self.outputs.partition_point(|output| output.start <= offset);
        self.outputs[..at].last()
    }
}

impl Sink for OpenSinks<'_> {
    fn order(&self) -> WriteOrder {
        let any = |output: &OneOutput| output.sink.order() == WriteOrder::Any;
        if self.outputs.iter().all(any) { WriteOrder::Any } else { WriteOrder::Ascending }
    }

    fn is_atomic(&self) -> bool {
        self.outputs.iter().all(|output| output.sink.is_atomic())
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), SinkError> {
        match self.output_at(offset) {
            Some(output) => output
                .sink
                .write_at(offset - output.start, bytes)
                .map_err(|error| error.of_file(&output.path)),
            None => Ok(()),
        }
    }

    fn share(&self, offset: u64, file: &File, range: Range<u64>) -> Range<u64> {
        match self.output_at(offset) {
            Some(output) => output.sink.share(offset - output.start, file, range),
            None => range.start..range.start,
        }
    }

    fn settle(&self, range: Range<u64>, wait: bool) -> Result<(), SinkError> {
        let Some(output) = self.output_at(range.start) else { return Ok(()) };
        let settled =
            output.sink.settle(range.start - output.start..range.end - output.start, wait);
        settled.map_err(|error| error.of_file(&output.path))
    }

    fn expect(&self, range: Range<u64>) {
        if let Some(output) = self.output_at(range.start) {
            output.sink.expect(range.start - output.start..range.end - output.start);
        }
    }
}
