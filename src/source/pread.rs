//! A file that is read by position (`pread`).
//!
//! For network file systems, block devices, and files that cannot be mapped. Windows are read into
//! the caller's scratch buffer.

use std::fs::File;
use std::io::ErrorKind;
use std::ops::{Range, RangeInclusive};
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;

use super::{Advice, FileRange, PAGE, Source, SourceError, SourceResult, WINDOW, checked_len};
use crate::os;

/// Fewer bytes are read to a slow place all the same.
const DIRECT: usize = 16 << 10;

/// So many bytes go through a window on their way to a slow place, which the processor keeps at hand.
const DETOUR: usize = 256 << 10;

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
    pub fn new(file: File, base: u64, len: u64) -> Self {
        // `base + len` must not overflow.
        Self { file, base, len: len.min(u64::MAX - base), reads_ahead: OnceLock::new() }
    }
}

impl Source for PreadSource {
    fn len(&self) -> u64 {
        self.len
    }

    fn window<'a>(&'a self, range: Range<u64>, scratch: &'a mut Vec<u8>) -> SourceResult<&'a [u8]> {
        let count = checked_len(&range, self.len)?;
        // Scratch never shrinks, so that its bytes are zeroed only once.
        if scratch.len() < count + STEP {
            scratch.resize(count + STEP, 0);
        }
        let at = self.base + range.start;
        let start = if is_slow(at as usize, scratch.as_ptr().addr()) { STEP } else { 0 };
        let window = &mut scratch[start..start + count];
        read_exact(&self.file, at, window)?;
        Ok(window)
    }

    fn read(&self, range: Range<u64>, scratch: &mut Vec<u8>, out: &mut [u8]) -> SourceResult<()> {
        checked_len(&range, self.len)?;
        let at = self.base + range.start;
        if out.len() < DIRECT || !is_slow(at as usize, out.as_ptr().addr()) {
            return read_exact(&self.file, at, out);
        }
        for (out, start) in out.chunks_mut(DETOUR).zip(range.step_by(DETOUR)) {
            out.copy_from_slice(self.window(start..start + out.len() as u64, scratch)?);
        }
        Ok(())
    }

    fn window_limit(&self) -> Option<u64> {
        Some(WINDOW)
    }

    fn places(&self, range: Range<u64>) -> SourceResult<Vec<FileRange>> {
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
pub(super) fn read_exact(file: &File, at: u64, out: &mut [u8]) -> SourceResult<()> {
    // Repeats after signals and short reads.
    match file.read_exact_at(out, at) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Err(SourceError::Truncated),
        result => Ok(result?),
    }
}

// The places between which processors copy slowly.
//
// Kernels and C libraries copy long strings by one instruction of the processor (`rep movsb`). On AMD's
// Zen 3 it is five to thirty times slower where the destination lies 1 to 31 bytes further in its page
// than the source in its own. Memory that `malloc` maps begins 16 bytes into a page, blocks of a file at
// the beginning of one: without care the slow case is the usual one.

/// How many bytes further in its page a destination is slow.
const SLOW: RangeInclusive<usize> = 1..=31;

/// How far to move memory that lies at a slow place, in bytes: a cache line.
pub(crate) const STEP: usize = 64;

/// Whether the processor may take long to copy many bytes from one place to another, told by addresses or
/// by positions in a file, whose pages are those of memory.
pub(crate) fn is_slow(from: usize, to: usize) -> bool {
    SLOW.contains(&(to.wrapping_sub(from) % PAGE as usize))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn bytes_are_read_to_any_place() {
        let bytes: Vec<u8> = (0..2 * DETOUR + 100).map(|at| (at % 251) as u8).collect();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        let base = 7;
        let len = bytes.len() as u64 - 7;
        let source = PreadSource::new(file, base, len);
        let mut memory = vec![0; 2 * DETOUR + 3 * PAGE as usize];
        let mut scratch = Vec::new();
        for len in [1, DIRECT - 1, DIRECT, DETOUR, DETOUR + 1, 2 * DETOUR] {
            for (at, place) in [(0, 0), (0, 16), (0, 31), (0, 32), (40, 8), (40, 0), (93, 20)] {
                // so far from the bytes in the file's pages
                let page = memory.as_ptr().align_offset(PAGE as usize);
                let start = page + at + base as usize + place;
                let out = &mut memory[start..start + len];
                out.fill(0);
                let range = at as u64..(at + len) as u64;
                source.read(range.clone(), &mut scratch, out).unwrap();
                let expected = &bytes[base as usize + at..][..len];
                assert!(out == expected, "{len} bytes of {at} to {place}");
                assert!(source.window(range, &mut scratch).unwrap() == expected);
            }
        }
        let behind = len - 10..len + 10;
        assert!(source.read(behind, &mut scratch, &mut memory[16..36]).is_err());
    }
}
