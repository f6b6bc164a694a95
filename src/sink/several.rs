//! Several outputs that appear together. As one sink, the bytes of each output follow those of the previous output.
//!
//! 1. Each output is created like a single one: without a name, allocated in full.
//! 2. `seal` writes the remaining bytes of each, and checks that no byte is missing. A full disk is noticed here at the
//!    latest.
//! 3. Where there are more outputs than descriptors, they are written in batches. The outputs of a batch are sealed,
//!    get temporary names, and are closed (`park`) before the next batch is begun.
//! 4. `commit` puts them in place one after the other, in order. Replaced files are preserved under temporary names
//!    (`placed`). Signals that can be handled wait until this is done. If one output cannot be put in place, the
//!    earlier ones are taken back, the last one first, and the old files have their names again.
//! 5. When all are in place, the old files are removed.
//!
//! No system call renames several files at once: a process that is killed between two of them (SIGKILL,
//! a power cut) leaves the first outputs in place, each whole, and their old files under names that
//! begin with `.tslice-`. Running it again, with `force`, completes the set, unless an input was one of
//! them. With more outputs than descriptors a kill may leave new files under such names, too.

use std::fs::File;
use std::ops::Range;
use std::path::PathBuf;

use super::placed::{PlacedOutputs, Replaced};
use super::temp_name::without_signals;
use super::{Draft, PreparedWrite, Sink, SinkError, SinkResult, WriteOrder, end_within};
use crate::os::open_file_limit;

/// The number of descriptors left for other uses.
const RESERVED: u64 = 64;

/// The number of outputs that are open at a time, where not all can be.
const BATCH: u64 = 64;

/// Outputs that all appear, or none.
pub type SeveralSinks = Files<dyn Draft>;

/// Files in one space of positions: the bytes of each file follow those of the previous one.
#[derive(Debug)]
pub struct Files<S: ?Sized> {
    pub(super) files: Vec<FileInSpace<S>>,
    /// The number of files, from the first on, that are sealed and closed.
    parked: usize,
    end: u64,
    /// Whether write errors name the file.
    names_errors: bool,
}

#[derive(Debug)]
pub(super) struct FileInSpace<S: ?Sized> {
    pub(super) name: PathBuf,
    start: u64,
    pub(super) sink: Box<S>,
}

impl SeveralSinks {
    /// How many of `count` outputs should be open at a time: all, if there are two descriptors for
    /// each, for the file and its folder.
    pub fn batch(count: u64) -> u64 {
        let spare = open_file_limit().saturating_sub(RESERVED) / 2;
        if count <= spare { count } else { spare.clamp(1, BATCH) }
    }

    /// Seal and close the open files, so that others can be added.
    pub fn park(&mut self) -> SinkResult<()> {
        for output in &mut self.files[self.parked..] {
            let parked = output.sink.seal().and_then(|()| output.sink.park());
            parked.map_err(|error| error.of_file(&output.name))?;
        }
        self.parked = self.files.len();
        Ok(())
    }

    /// Put all in place. After an error none is in place, except where only a folder could not be
    /// synced.
    pub fn commit(mut self) -> SinkResult<()> {
        for output in &mut self.files[self.parked..] {
            output.sink.seal().map_err(|error| error.of_file(&output.name))?;
        }
        let last = self.files.last().map(|output| output.name.clone()).unwrap_or_default();
        let placed = without_signals(|| {
            self.files.into_iter().try_fold(PlacedOutputs::default(), |placed, output| {
                let FileInSpace { name, sink, .. } = output;
                placed.and(sink.place(Replaced::Saved)).map_err(|error| error.of_file(name))
            })
        })?;
        placed.keep().map_err(|error| error.of_file(last))
    }
}

impl<S: ?Sized> Files<S> {
    pub fn new(names_errors: bool) -> Files<S> {
        Files { files: Vec::new(), parked: 0, end: 0, names_errors }
    }

    /// Add a file that takes `len` bytes of positions. Returns the position of its first byte.
    pub fn push(&mut self, name: PathBuf, sink: Box<S>, len: u64) -> SinkResult<u64> {
        let start = self.end;
        self.end = end_within(start, len, i64::MAX as u64)?;
        self.files.push(FileInSpace { name, start, sink });
        Ok(start)
    }

    fn file_at(&self, offset: u64) -> Option<&FileInSpace<S>> {
        let at = self.files.partition_point(|file| file.start <= offset);
        self.files[..at].last()
    }

    fn failed(&self, file: &FileInSpace<S>, error: SinkError) -> SinkError {
        if self.names_errors { error.of_file(&file.name) } else { error }
    }
}

impl<S: ?Sized> FileInSpace<S> {
    fn within(&self, range: Range<u64>) -> Range<u64> {
        range.start - self.start..range.end - self.start
    }
}

impl<S: Sink + ?Sized> Sink for Files<S> {
    fn order(&self) -> WriteOrder {
        let mut open = self.files[self.parked..].iter();
        let any = open.all(|file| file.sink.order() == WriteOrder::Any);
        if any { WriteOrder::Any } else { WriteOrder::Ascending }
    }

    fn is_atomic(&self) -> bool {
        self.files[self.parked..].iter().all(|file| file.sink.is_atomic())
    }

    fn prepare<'a>(&'a self, offset: u64, bytes: &'a [u8]) -> PreparedWrite<'a> {
        let Some(file) = self.file_at(offset) else { return Box::new(|| Ok(())) };
        let write = file.sink.prepare(offset - file.start, bytes);
        Box::new(move || write().map_err(|error| self.failed(file, error)))
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> SinkResult<()> {
        let Some(file) = self.file_at(offset) else { return Ok(()) };
        let written = file.sink.write_at(offset - file.start, bytes);
        written.map_err(|error| self.failed(file, error))
    }

    fn share(&self, offset: u64, file: &File, range: Range<u64>) -> Range<u64> {
        match self.file_at(offset) {
            Some(target) => target.sink.share(offset - target.start, file, range),
            None => range.start..range.start,
        }
    }

    fn keep_holes(&self) {
        self.files[self.parked..].iter().for_each(|file| file.sink.keep_holes());
    }

    fn settle(&self, range: Range<u64>, wait: bool) -> SinkResult<()> {
        let Some(file) = self.file_at(range.start) else { return Ok(()) };
        file.sink.settle(file.within(range), wait).map_err(|error| self.failed(file, error))
    }

    fn expect(&self, range: Range<u64>) {
        if let Some(file) = self.file_at(range.start) {
            file.sink.expect(file.within(range));
        }
    }
}
