//! A changed copy of a file for a pipe: made in a temporary file, sent by `commit`.
//!
//! A pipe cannot be written by position. If a change fails, nothing is sent.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;

use super::copy_file::copy_file;
use super::{Draft, InPlaceFile, Old, Placed, Sink, SinkError, StreamSink};

/// Buffer size for sending, in bytes.
const PIECE: usize = 256 << 10;

/// An unnamed file in `TMPDIR` whose bytes `commit` sends to a pipe.
#[derive(Debug)]
pub(super) struct SpooledSink {
    file: File,
    len: u64,
    pipe: StreamSink,
}

impl SpooledSink {
    /// Copy `len` bytes of `original`. The copy is changed through the returned [`InPlaceFile`] and
    /// sent to `pipe`.
    pub(super) fn copy_of(
        original: &File,
        len: u64,
        pipe: StreamSink,
        copied: &dyn Fn(u64),
    ) -> Result<(Self, InPlaceFile), SinkError> {
        let file = tempfile::tempfile().map_err(SinkError::Copy)?;
        copy_file(original, len, &file, copied)?;
        let patch = InPlaceFile::new(file.try_clone().map_err(SinkError::Io)?)?;
        Ok((Self { file, len, pipe }, patch))
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
        Box::new(self.pipe).place(old)
    }
}
