//! An unnamed file in `TMPDIR`, for bytes that come in another order than an output takes them.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use rustix::fs::fstatvfs;

use super::file::reserve;
use super::{InPlaceFile, Sink, SinkError, ignore_sigxfsz};
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
