//! A scratch file: an unnamed file in `TMPDIR`, for bytes that are made in another order than an output takes them.

use std::fs::File;
use std::io;
use std::ops::Range;

use super::file::reserve;
use super::sharing::{COPYING, CopiedRange, copy_file, in_pieces};
use super::{
    Draft, InPlaceFile, PlacedOutputs, Replaced, Sink, SinkError, SinkResult, StreamSink,
    ignore_sigxfsz,
};
use crate::os::fs::fstatvfs;
use crate::os::{FileExt, is_in_memory, settle};

/// A scratch file that takes bytes in any order. It vanishes with the last handle on it.
#[derive(Debug)]
pub struct ScratchSink(File);

impl ScratchSink {
    /// Create a scratch file with `len` bytes allocated; also returns a handle to read it.
    pub fn new(len: u64) -> SinkResult<(ScratchSink, File)> {
        ignore_sigxfsz();
        let failed = SinkError::os("a temporary file cannot be created");
        let file = tempfile::tempfile().map_err(&failed)?;
        reserve(&file, len).map_err(|error| failed(error.into()))?;
        let reader = file.try_clone().map_err(&failed)?;
        Ok((ScratchSink(file), reader))
    }

    /// Create a scratch file of `len` bytes with holes: only written bytes take room.
    pub(crate) fn sparse(len: u64) -> SinkResult<(ScratchSink, File)> {
        let (ScratchSink(file), reader) = ScratchSink::new(0)?;
        let failed = SinkError::os("a temporary file cannot be created");
        file.set_len(len).map_err(failed)?;
        Ok((ScratchSink(file), reader))
    }

    /// Create a scratch file for short runs of bytes, which are written through a map.
    pub(crate) fn mapped(len: u64) -> SinkResult<(InPlaceFile, File)> {
        let (ScratchSink(file), reader) = ScratchSink::new(len)?;
        Ok((InPlaceFile::in_no_order(file)?, reader))
    }
}

/// Check that scratch files of `bytes` bytes in all fit in `TMPDIR`; otherwise an error. Returns false where
/// `TMPDIR` is in memory.
pub(crate) fn scratch_fits(bytes: u64) -> io::Result<bool> {
    let file = tempfile::tempfile()?;
    if is_in_memory(&file) {
        return Ok(false);
    }
    // if the file system does not tell, the allocation itself may fail
    let Ok(stat) = fstatvfs(&file) else { return Ok(true) };
    match stat.f_bavail.saturating_mul(stat.f_frsize) {
        free if free < bytes => {
            let error = format!("{bytes} bytes are needed there, and {free} are free");
            Err(io::Error::new(io::ErrorKind::StorageFull, error))
        }
        _ => Ok(true),
    }
}

impl Sink for ScratchSink {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> SinkResult<()> {
        let written = self.0.write_all_at(bytes, offset);
        written.map_err(SinkError::os("a temporary file cannot be written"))
    }

    fn settle(&self, range: Range<u64>, wait: bool) -> SinkResult<()> {
        let settled = settle(&self.0, &range, wait);
        settled.map_err(SinkError::os("a temporary file cannot be written"))
    }
}

/// A scratch file whose bytes `commit` sends to a pipe.
#[derive(Debug)]
pub(super) struct SpooledSink {
    file: File,
    len: u64,
    pipe: StreamSink,
}

impl SpooledSink {
    /// Copy a range of another file. The copy is changed through the returned [`InPlaceFile`], and then sent to
    /// `pipe`.
    pub(super) fn copy_of(
        original: &CopiedRange<'_>,
        pipe: StreamSink,
        copied: &dyn Fn(u64),
    ) -> SinkResult<(Self, InPlaceFile)> {
        let file = tempfile::tempfile().map_err(SinkError::os(COPYING))?;
        copy_file(original, &file, copied)?;
        let patch = InPlaceFile::new(file.try_clone().map_err(SinkError::Io)?)?;
        Ok((Self { file, len: original.len(), pipe }, patch))
    }
}

impl Sink for SpooledSink {
    /// Always an error: all bytes are written through the [`InPlaceFile`].
    fn write_at(&self, offset: u64, bytes: &[u8]) -> SinkResult<()> {
        Err(SinkError::OutOfBounds { offset, count: bytes.len() as u64, len: self.len })
    }
}

impl Draft for SpooledSink {
    fn place(self: Box<Self>, replaced: Replaced) -> SinkResult<PlacedOutputs> {
        let Self { file, len, pipe } = *self;
        in_pieces(&file, 0..len, SinkError::os(COPYING), |at, piece| pipe.write_at(at, piece))?;
        Box::new(pipe).place(replaced)
    }
}
