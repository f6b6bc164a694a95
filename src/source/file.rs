//! A local file as a source: mapped, or read by position.
//!
//! Windows of a map are slices. If another process truncates the file, access to a lost page raises
//! SIGBUS. The handler in `os::sigbus` puts zero pages there and records the loss, which
//! [`Source::verify`] turns into an error. So a job on a map reads, verifies, and only then commits.
//!
//! A piece that is one run of the input is read by position even in a mapped file (`Source::read`): it needs no packing,
//! and so no mapped pages. Where the kernel reads far ahead by itself, a range that is copied
//! whole is not prefetched, which would only slow it down (`Source::reads_ahead`).
//!
//! Network file systems, block devices, files that cannot be mapped and `--io read` use positioned
//! reads (`pread`) in large pieces instead; windows are read into the caller's scratch buffer.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::io::{ErrorKind, Read, Write};
use std::ops::{Range, RangeInclusive};
use std::sync::OnceLock;

use memmap2::{Mmap, MmapOptions};

use super::open::{IoMode, open_regular};
use super::{Advice, FileRange, PAGE, Source, SourceError, SourceResult, WINDOW, checked_len};
use crate::os;
use crate::os::io::Errno;
use crate::os::{FileExt, Watch};

/// A mapped file, or its tail.
#[derive(Debug)]
pub struct MmapSource {
    // Declared before the map: fields are dropped in order, and the watch must be dropped first.
    watch: Watch,
    map: Mmap,
    /// A reader of the same bytes by position.
    read: PreadSource,
}

impl MmapSource {
    /// Map `len` bytes of a regular file from byte `base`. If this fails (no bytes, too many maps), the
    /// file is returned, to be read by position.
    pub fn new(file: File, base: u64, len: u64) -> Result<Self, (File, Option<io::Error>)> {
        let end = base.checked_add(len).and_then(|end| usize::try_from(end).ok());
        let Some(end) = end.filter(|_| len > 0) else {
            return Err((file, None));
        };
        // SAFETY: other processes may change the bytes. They are only copied and checked, and no
        // code relies on reading the same value twice; truncation is handled by `Watch`.
        let map = match unsafe { MmapOptions::new().len(end).map(&file) } {
            Ok(map) => map,
            Err(error) => return Err((file, Some(error))),
        };
        let addresses = map.as_ptr_range();
        match Watch::new(addresses.start as usize..addresses.end as usize, false) {
            Some(watch) => Ok(Self { watch, map, read: PreadSource::new(file, base, len) }),
            None => Err((file, None)),
        }
    }
}

impl Source for MmapSource {
    fn len(&self) -> u64 {
        self.read.len()
    }

    fn behind(&self) -> Option<&dyn Source> {
        Some(&self.read)
    }

    fn window<'a>(
        &'a self,
        range: Range<u64>,
        _scratch: &'a mut Vec<u8>,
    ) -> SourceResult<&'a [u8]> {
        let count = checked_len(&range, self.len())?;
        // `base + len` is the length of the map, so that neither sum can wrap around.
        let start = (self.read.base + range.start) as usize;
        let window = self.map.get(start..start + count);
        window.ok_or(SourceError::OutOfBounds {
            start: range.start,
            end: range.end,
            len: self.len(),
        })
    }

    fn window_limit(&self) -> Option<u64> {
        None
    }

    fn load_unit(&self) -> Option<u64> {
        os::LOADED
    }

    fn verify(&self) -> SourceResult<()> {
        if let Some(at) = self.watch.lost() {
            // Truncation and a disk error both lose pages; a read tells which it was.
            self.read.file.read_at(&mut [0], at as u64)?;
            return Err(SourceError::Truncated);
        }
        if os::file_len(&self.read.file)? < self.read.base + self.len() {
            return Err(SourceError::Truncated);
        }
        Ok(())
    }

    fn advise(&self, range: Range<u64>, advice: Advice) {
        if checked_len(&range, self.len()).is_err() {
            return;
        }
        let start = (self.read.base + range.start) as usize;
        let count = (range.end - range.start) as usize;
        // Errors are ignored: pages are then read when they are accessed.
        let _ = match advice {
            // the kernel does the same for a map
            Advice::WillNeed => return self.read.advise(range, advice),
            Advice::Populate => os::populate(&self.map, start, count),
            Advice::Load => match os::load(&self.map, start, count) {
                Ok(()) => Ok(()),
                Err(_) => return self.read.advise(range, Advice::WillNeed),
            },
            Advice::Sequential | Advice::Random | Advice::DontNeed | Advice::Evict => {
                os::advise_map(&self.map, start, count, advice)
            }
        };
        if advice == Advice::Evict {
            // a page that is mapped stays in the cache
            self.read.advise(range, advice);
        }
    }
}

/// The bytes that are copied at a time: they fit in the second-level cache.
const PIECE: usize = 256 << 10;

/// Write the rest of a stream to a scratch file (unnamed, in `TMPDIR`) and map it. Byte 0 of the source
/// is the stream's next byte. The file vanishes with the source or the process.
pub fn spool(mut stream: impl Read) -> SourceResult<Box<dyn Source>> {
    let spool = SourceError::unspooled;
    let mut file = tempfile::tempfile().map_err(spool)?;
    let mut piece = vec![0; PIECE];
    let mut len = 0;
    loop {
        let count = stream.read(&mut piece)?;
        if count == 0 {
            return open_spooled(file, len);
        }
        file.write_all(&piece[..count]).map_err(spool)?;
        len += count as u64;
    }
}

/// Open `len` bytes of a scratch file that has been written.
pub fn open_spooled(file: File, len: u64) -> SourceResult<Box<dyn Source>> {
    open_regular(file, 0, len, IoMode::Auto).map_err(SourceError::unspooled)
}

/// Up to this length, bytes are read directly even to a slow address.
const DIRECT: usize = 16 << 10;

/// Longer reads to a slow address go through a buffer of this length, which stays in the cache.
const DETOUR: usize = 256 << 10;

/// A file, or its tail, read with `pread`.
#[derive(Debug)]
pub struct PreadSource {
    file: File,
    /// The offset in the file of the source's byte 0.
    base: u64,
    len: u64,
    reads_ahead: OnceLock<bool>,
    /// Whether the file has holes, once this was asked.
    holes: OnceLock<bool>,
}

impl PreadSource {
    pub fn new(file: File, base: u64, len: u64) -> Self {
        // `base + len` must not overflow.
        let [reads_ahead, holes] = Default::default();
        Self { file, base, len: len.min(u64::MAX - base), reads_ahead, holes }
    }

    /// Whether a long range of the file is known to be in a hole.
    fn is_hole(&self, range: Range<u64>) -> bool {
        self.holes.get() == Some(&true)
            && match os::next_data(&self.file, range.start) {
                Ok(at) => at >= range.end,
                Err(Errno::NXIO) => os::file_len(&self.file).is_ok_and(|len| len >= range.end),
                Err(_) => false,
            }
    }
}

impl Source for PreadSource {
    fn len(&self) -> u64 {
        self.len
    }

    fn window<'a>(&'a self, range: Range<u64>, scratch: &'a mut Vec<u8>) -> SourceResult<&'a [u8]> {
        let count = checked_len(&range, self.len)?;
        // The buffer never shrinks, so that its bytes are zeroed only once.
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
        if out.len() >= DIRECT && self.is_hole(at..at + out.len() as u64) {
            out.fill(0);
            return Ok(());
        }
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

    fn file_ranges(&self, range: Range<u64>) -> SourceResult<Vec<FileRange>> {
        FileRange::of(&self.file, self.base, range)
    }

    fn file(&self, range: Range<u64>) -> Option<(&File, u64)> {
        checked_len(&range, self.len).ok()?;
        Some((&self.file, self.base.checked_add(range.start)?))
    }

    fn has_holes(&self) -> bool {
        *self.holes.get_or_init(|| os::has_holes(&self.file))
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

/// Fill `out` with bytes of a file from offset `at`.
pub(super) fn read_exact(file: &File, at: u64, out: &mut [u8]) -> SourceResult<()> {
    // Repeats after signals and short reads.
    match file.read_exact_at(out, at) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Err(SourceError::Truncated),
        result => Ok(result?),
    }
}

// Pairs of addresses between which processors copy slowly.
//
// Kernels and C libraries copy long strings by one instruction of the processor (`rep movsb`). On AMD's
// Zen 3 it is five to thirty times slower where the destination's offset in its page is 1 to 31 bytes
// higher than the source's. Memory that `malloc` maps begins 16 bytes into a page, blocks of a file at
// its beginning: by default the slow case is usual.

/// The differences of offsets in a page, destination less source, that are slow.
const SLOW: RangeInclusive<usize> = 1..=31;

/// The distance to move a buffer away from a slow address, in bytes: a cache line.
pub(crate) const STEP: usize = 64;

/// Whether the processor may copy slowly between two addresses. A position in a file counts as an address: its page in
/// the page cache begins at a page of memory.
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
                // as far apart as in the pages of the file
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
