//! An unnamed file in `TMPDIR`, for bytes that come in another order than an output takes them.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use rustix::fs::fstatvfs;

use super::copy_file::{COPYING, CopiedRange, copy_file, in_pieces};
use super::file::reserve;
use super::{Draft, InPlaceFile, Old, Placed, Sink, SinkError, StreamSink, ignore_sigxfsz};
use crate::os::{is_in_memory, settle};

/// A temporary file that takes bytes in any order. It vanishes with the last handle on it.
#[derive(Debug)]
pub struct ScratchSink(File);

impl ScratchSink {
    /// Create the file, for which `len` bytes are allocated; also returns a handle to read it by.
    ///
    /// # Errors
    /// [`SinkError::Os`]: `TMPDIR` cannot be written, or is full.
    pub fn new(len: u64) -> Result<(ScratchSink, File), SinkError> {
        ignore_sigxfsz();
        let failed = SinkError::os("a temporary file cannot be created");
        let file = tempfile::tempfile().map_err(&failed)?;
        reserve(&file, len).map_err(|error| failed(error.into()))?;
        let reader = file.try_clone().map_err(&failed)?;
        Ok((ScratchSink(file), reader))
    }

    /// The same for short runs of bytes, which go through a map.
    ///
    /// # Errors
    /// Those of [`new`](ScratchSink::new).
    pub(crate) fn mapped(len: u64) -> Result<(InPlaceFile, File), SinkError> {
        let (ScratchSink(file), reader) = ScratchSink::new(len)?;
        Ok((InPlaceFile::in_no_order(file)?, reader))
    }
}

/// Check that temporary files of so many bytes in all fit in `TMPDIR`. False where they would be in memory.
///
/// # Errors
/// They do not fit, or no file can be created there.
pub(crate) fn scratch_fits(bytes: u64) -> io::Result<bool> {
    let file = tempfile::tempfile()?;
    if is_in_memory(&file) {
        return Ok(false);
    }
    // a file system that does not tell says so when they are allocated
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
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), SinkError> {
        let written = self.0.write_all_at(bytes, offset);
        written.map_err(SinkError::os("a temporary file cannot be written"))
    }

    fn settle(&self, range: Range<u64>, wait: bool) -> Result<(), SinkError> {
        let settled = settle(&self.0, &range, wait);
        settled.map_err(SinkError::os("a temporary file cannot be written"))
    }
}

/// How many bytes are kept in memory.
const FEW: usize = 1 << 20;

/// Bytes that were written one after the other, to be read once.
#[derive(Debug, Default)]
pub struct HeldBytes {
    /// The last of them.
    recent: Vec<u8>,
    /// Where the others are, and how many.
    file: Option<(ScratchSink, File, u64)>,
}

impl HeldBytes {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.recent.is_empty() && self.file.is_none()
    }

    /// All of them, where they are in memory.
    pub fn in_memory(&self) -> Option<&[u8]> {
        self.file.is_none().then_some(&self.recent)
    }

    /// Append bytes.
    ///
    /// # Errors
    /// A temporary file that cannot be written.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), SinkError> {
        self.recent.extend_from_slice(bytes);
        if self.recent.len() < FEW {
            return Ok(());
        }
        let (sink, file, len) = match self.file.take() {
            Some(file) => file,
            None => {
                let (sink, file) = ScratchSink::new(0)?;
                (sink, file, 0)
            }
        };
        sink.write_at(len, &self.recent)?;
        self.file = Some((sink, file, len + self.recent.len() as u64));
        self.recent.clear();
        Ok(())
    }

    /// Hand all of them on, in pieces.
    ///
    /// # Errors
    /// Those of `pass`; a temporary file that cannot be read.
    pub fn hand_on(
        self,
        pass: &mut dyn FnMut(&[u8]) -> Result<(), SinkError>,
    ) -> Result<(), SinkError> {
        if let Some((_, file, len)) = self.file {
            let unread = SinkError::os("a temporary file cannot be read");
            in_pieces(&file, 0..len, unread, |_, piece| pass(piece))?;
        }
        pass(&self.recent)
    }
}

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
