//! Several outputs that appear together, as one space of positions.
//!
//! 1. Each output is created as any other is: without a name, allocated in full.
//! 2. `seal` writes what is left to write of each, and checks that no byte is missing. A full disk
//!    is found out here at the latest.
//! 3. `commit` puts them in place one after the other, in their order. Signals that can be handled
//!    wait until that is done. If one cannot be put in place, those before it that replaced nothing
//!    are removed again.
//!
//! There is no call that renames several files at once: a process that is killed between two of
//! them (SIGKILL, a power cut) leaves the first ones in place, each whole. Running it again, with
//! `force`, completes the set.

use std::fs::{self, File};
use std::ops::Range;
use std::path::PathBuf;

use super::temp_name::without_signals;
use super::{Sink, SinkError, WriteOrder};

/// Outputs of which all appear or none.
#[derive(Default)]
pub struct SeveralSinks {
    outputs: Vec<OneOutput>,
    /// The position behind the last one.
    end: u64,
}

struct OneOutput {
    path: PathBuf,
    /// Whether something has that name already.
    replaces: bool,
    /// The position of its first byte.
    start: u64,
    sink: Box<dyn Sink>,
}

impl OneOutput {
    fn named(&self, error: SinkError) -> SinkError {
        SinkError::File { path: self.path.clone(), error: Box::new(error) }
    }
}

impl SeveralSinks {
    /// Add an output that takes positions below `len`. Returns the position of its first byte.
    ///
    /// # Errors
    /// [`SinkError::OutOfBounds`] where positions exceed 63 bits.
    pub fn push(&mut self, path: PathBuf, sink: Box<dyn Sink>, len: u64) -> Result<u64, SinkError> {
        let start = self.end;
        let end = start.checked_add(len).filter(|&end| i64::try_from(end).is_ok());
        let too_far = SinkError::OutOfBounds { offset: start, count: len, len: i64::MAX as u64 };
        self.end = end.ok_or(too_far)?;
        let replaces = path.symlink_metadata().is_ok();
        self.outputs.push(OneOutput { path, replaces, start, sink });
        Ok(start)
    }
}

impl Sink for SeveralSinks {
    fn order(&self) -> WriteOrder {
        let any = |output: &OneOutput| output.sink.order() == WriteOrder::Any;
        if self.outputs.iter().all(any) { WriteOrder::Any } else { WriteOrder::Ascending }
    }

    fn is_atomic(&self) -> bool {
        self.outputs.iter().all(|output| output.sink.is_atomic())
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), SinkError> {
        let at = self.outputs.partition_point(|output| output.start <= offset);
        match self.outputs[..at].last() {
            Some(output) => output
                .sink
                .write_at(offset - output.start, bytes)
                .map_err(|error| output.named(error)),
            None => Ok(()),
        }
    }

    fn share(&self, offset: u64, file: &File, range: Range<u64>) -> Range<u64> {
        let at = self.outputs.partition_point(|output| output.start <= offset);
        match self.outputs[..at].last() {
            Some(output) => output.sink.share(offset - output.start, file, range),
            None => range.start..range.start,
        }
    }

    fn seal(&mut self) -> Result<(), SinkError> {
        for output in &mut self.outputs {
            if let Err(error) = output.sink.seal() {
                return Err(output.named(error));
            }
        }
        Ok(())
    }

    fn commit(mut self: Box<Self>) -> Result<(), SinkError> {
        self.seal()?;
        without_signals(|| {
            let mut placed = Vec::new();
            for OneOutput { path, replaces, sink, .. } in self.outputs {
                if let Err(error) = sink.commit() {
                    placed.iter().for_each(|path| {
                        // the error that is reported is the one that kept the set from being whole
                        let _ = fs::remove_file(path);
                    });
                    return Err(SinkError::File { path, error: Box::new(error) });
                }
                if !replaces {
                    placed.push(path);
                }
            }
            Ok(())
        })
    }
}
