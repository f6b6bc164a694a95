//! A changed copy for a pipe: made in a temporary file, and sent when it is complete.
//!
//! What is written by position cannot go straight into a pipe; this is the way around, which also
//! sends nothing at all where the change fails.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;

use super::copy_file::copy_file;
use super::{InPlaceFile, Sink, SinkError, StreamSink, WriteOrder};

/// What is sent at a time, in bytes.
const PIECE: usize = 256 << 10;

/// An unnamed file in `TMPDIR`, on its way to a pipe.
#[derive(Debug)]
pub(super) struct SpooledSink {
    file: File,
    len: u64,
    pipe: StreamSink,
}

impl SpooledSink {
    /// Make a copy of `original`, of `len` bytes, to be changed through the patch and then sent
    /// to `pipe`.
    pub(super) fn copy_of(
        original: &File,
        len: u64,
        pipe: StreamSink,
    ) -> Result<(Self, InPlaceFile), SinkError> {
        let file = tempfile::tempfile().map_err(SinkError::Copy)?;
        copy_file(original, &file, len)?;
        let patch = InPlaceFile::new(file.try_clone().map_err(SinkError::Io)?)?;
        Ok((Self { file, len, pipe }, patch))
    }
}

impl Sink for SpooledSink {
    fn order(&self) -> WriteOrder {
        WriteOrder::Any
    }

    /// All bytes are written through the patch.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), SinkError> {
        Err(SinkError::OutOfBounds { offset, count: bytes.len() as u64, len: self.len })
    }

    fn commit(self: Box<Self>) -> Result<(), SinkError> {
        let mut piece = vec![0; PIECE];
        let mut at = 0;
        while at < self.len {
            let count = match self.file.read_at(&mut piece, at) {
                Ok(0) => Err(io::Error::from(ErrorKind::UnexpectedEof)),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                result => result,
            }
            .map_err(SinkError::Copy)?
            .min((self.len - at) as usize);
            self.pipe.write_at(at, &piece[..count])?;
            at += count as u64;
        }
        Box::new(self.pipe).commit()
    }
}
