//! A changed copy of a file for a pipe: made in a temporary file, sent by `commit`.
//!
//! A pipe cannot be written by position. If a change fails, nothing is sent.

use std::fs::File;

use super::copy_file::{COPYING, CopiedRange, copy_file, in_pieces};
use super::{Draft, InPlaceFile, Old, Placed, Sink, SinkError, StreamSink};

/// An unnamed file in `TMPDIR` whose bytes `commit` sends to a pipe.
#[derive(Debug)]
pub(super) struct SpooledSink {
    file: File,
    len: u64,
    pipe: StreamSink,
}

impl SpooledSink {
    /// Copy a range of another file. The copy is changed through the returned [`InPlaceFile`] and
    /// sent to `pipe`.
    pub(super) fn copy_of(
        original: &CopiedRange<'_>,
        pipe: StreamSink,
        copied: &dyn Fn(u64),
    ) -> Result<(Self, InPlaceFile), SinkError> {
        let file = tempfile::tempfile().map_err(SinkError::os(COPYING))?;
        copy_file(original, &file, copied)?;
        let patch = InPlaceFile::new(file.try_clone().map_err(SinkError::Io)?)?;
        Ok((Self { file, len: original.len(), pipe }, patch))
    }
}

impl Sink for SpooledSink {
    /// Always an error: all bytes are written through the [`InPlaceFile`].
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), SinkError> {
        Err(SinkError::OutOfBounds { offset, count: bytes.len() as u64, len: self.len })
    }
}

impl Draft for SpooledSink {
    fn place(self: Box<Self>, old: Old) -> Result<Placed, SinkError> {
        let Self { file, len, pipe } = *self;
        in_pieces(&file, 0..len, SinkError::os(COPYING), |at, piece| pipe.write_at(at, piece))?;
        Box::new(pipe).place(old)
    }
}
