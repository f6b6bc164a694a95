//! A file that is read by position (`pread`).
//!
//! For network file systems, block devices, and files that cannot be mapped. Windows are read into
//! the caller's scratch buffer.

use std::fs::File;
use std::io::ErrorKind;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;

use super::{Advice, FileRange, Source, SourceError, checked_len};
use crate::os;

/// The longest window in bytes that is worth reading for a part of it.
const WINDOW: u64 = 1 << 20;

/// A file, or its tail from some byte on, read with `pread`.
#[derive(Debug)]
pub struct PreadSource {
    pub(super) file: File,
    /// The byte of the file that is byte 0 of the source.
    pub(super) base: u64,
    len: u64,
    reads_ahead: OnceLock<bool>,
}

impl PreadSource {
    /// Read `len` bytes of a file from byte `base` on.
    pub fn new(file: File, base: u64, len: u64) -> Self {
        // `base + len` must not overflow.
        Self { file, base, len: len.min(u64::MAX - base), reads_ahead: OnceLock::new() }
    }
}

impl Source for PreadSource {
    fn len(&self) -> u64 {
        self.len
    }

    fn window<'a>(
        &'a self,
        range: Range<u64>,
        scratch: &'a mut Vec<u8>,
    ) -> Result<&'a [u8], SourceError> {
        let count = checked_len(&range, self.len)?;
        // Scratch never shrinks, so that its bytes are zeroed only once.
        if scratch.len() < count {
            scratch.resize(count, 0);
        }
        let window = &mut scratch[..count];
        read_exact(&self.file, self.base + range.start, window)?;
        Ok(window)
    }

    fn read(
        &self,
        range: Range<u64>,
        _scratch: &mut Vec<u8>,
        out: &mut [u8],
    ) -> Result<(), SourceError> {
        checked_len(&range, self.len)?;
        read_exact(&self.file, self.base + range.start, out)
    }

    fn window_limit(&self) -> Option<u64> {
        Some(WINDOW)
    }

    fn places(&self, range: Range<u64>) -> Result<Vec<FileRange>, SourceError> {
        FileRange::of(&self.file, self.base, range)
    }

    fn file(&self, range: Range<u64>) -> Option<(&File, u64)> {
        checked_len(&range, self.len).ok()?;
        Some((&self.file, self.base.checked_add(range.start)?))
    }

    fn is_cached(&self, at: u64) -> bool {
        os::is_cached(&self.file, self.base.saturating_add(at))
    }

    fn reads_ahead(&self, _at: u64) -> bool {
        *self.reads_ahead.get_or_init(|| os::reads_ahead(&self.file))
    }

    fn advise(&self, range: Range<u64>, advice: Advice) {
        let end = self.base + range.end.min(self.len);
        let range = self.base.saturating_add(range.start)..end;
        os::advise_file(&self.file, range, advice);
    }
}

/// Fill `out` with bytes of a file from byte `at` on.
pub(super) fn read_exact(file: &File, at: u64, out: &mut [u8]) -> Result<(), SourceError> {
    // Repeats after signals and short reads.
    match file.read_exact_at(out, at) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Err(SourceError::Truncated),
        result => Ok(result?),
    }
}
