//! A mapped regular file: windows are slices of the map.
//!
//! If another process truncates the file, touching a lost page raises SIGBUS. The handler in
//! `os::sigbus` puts zero pages there and records the loss; [`Source::verify`] turns that into an
//! error. So a job on a map reads, verifies, and only then commits.
//!
//! A piece that is one run of the input is read by position
//! all the same (`Source::read`): nothing is packed, so that no page need be mapped. Where the kernel reads
//! far ahead by itself, a range that is copied whole is not prefetched, which would only make it slower
//! (`Source::reads_ahead`). Network file systems, block devices and `--io read`
//! use positioned reads in large pieces instead.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::io::{Read, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;

use memmap2::{Mmap, MmapOptions, UncheckedAdvice};

use super::open::{IoMode, open_regular};
use super::pread::PreadSource;
use super::{Advice, Source, SourceError, SourceResult, checked_len};
use crate::os;
use crate::os::sigbus::Watch;

/// A mapped file, or its tail from some byte on.
#[derive(Debug)]
pub struct MmapSource {
    // Declared before the map: fields are dropped in order, and the watch must go first.
    watch: Watch,
    map: Mmap,
    /// The same bytes, read by position.
    read: PreadSource,
}

impl MmapSource {
    /// Map `len` bytes of a regular file from byte `base` on. If it cannot be mapped (no bytes, too
    /// many maps), the file is returned, to be read by position.
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
            // Truncation and a disk error both lose pages; reading tells which it was.
            self.read.file.read_at(&mut [0], at as u64)?;
            return Err(SourceError::Truncated);
        }
        if self.read.file.metadata()?.len() < self.read.base + self.len() {
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
        // Errors are ignored: pages are then read when they are touched.
        let _ = match advice {
            Advice::Sequential => self.map.advise_range(memmap2::Advice::Sequential, start, count),
            Advice::Random => self.map.advise_range(memmap2::Advice::Random, start, count),
            // the kernel does the same of a map
            Advice::WillNeed => return self.read.advise(range, advice),
            Advice::Populate => os::populate(&self.map, start, count),
            Advice::Load => match os::load(&self.map, start, count) {
                Ok(()) => Ok(()),
                Err(_) => return self.read.advise(range, Advice::WillNeed),
            },
            // SAFETY: the map is shared with the page cache and never written, so that a page comes
            // back with the bytes of the file; addresses of lent slices stay mapped.
            Advice::DontNeed | Advice::Evict => unsafe {
                self.map.unchecked_advise_range(UncheckedAdvice::DontNeed, start, count)
            },
        };
        if advice == Advice::Evict {
            // a page that is mapped stays in the cache
            self.read.advise(range, advice);
        }
    }
}

/// What is copied at a time, in bytes: fits the second-level cache.
const PIECE: usize = 256 << 10;

/// Write the rest of a stream to an unnamed file in `TMPDIR` and map it. Byte 0 of the source is
/// the stream's next byte. The file has no name, so it vanishes with the source or the process.
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

/// Read `len` bytes of a temporary file that has been written.
pub fn open_spooled(file: File, len: u64) -> SourceResult<Box<dyn Source>> {
    open_regular(file, 0, len, IoMode::Auto).map_err(SourceError::unspooled)
}
