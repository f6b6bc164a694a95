//! A file whose bytes are overwritten in place.
//!
//! Only the given bytes are written, never their neighbours, so that several processes may write disjoint parts of
//! one file at the same time. There is no commit: writes are visible at once. [`super::create_copy`] uses this too,
//! on a file without a name.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::fs::File;
use std::io::ErrorKind;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, PoisonError};

use memmap2::{MmapOptions, MmapRaw};

use super::temp_name::{GROWING, Growing, watch, without_signals};
use super::{Sink, SinkError, SinkResult, ignore_sigxfsz, resolve, sync_file};
use crate::os::io::Errno;
use crate::os::{self, FileExt, FileId, PAGE, Watch, load_to_write, populate_to_write};

/// The length, in bytes, from which runs are written by `pwrite`; shorter runs go through the map.
const LONG: u64 = 64 << 10;

/// The result of an attempt to lock a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    Alone,
    Refused,
    /// The file system has no locks: other processes that change the file go unnoticed.
    NoLocks,
}

impl Hold {
    fn of(locked: Result<(), Errno>) -> Hold {
        match locked {
            Ok(()) => Hold::Alone,
            Err(Errno::WOULDBLOCK) => Hold::Refused,
            // NFS without a lock service, FUSE without this call
            Err(_) => Hold::NoLocks,
        }
    }
}

#[derive(Debug)]
pub struct InPlaceFile {
    file: File,
    len: u64,
    map: Option<WritableMap>,
}

impl InPlaceFile {
    /// Open an existing regular file. Symbolic links are followed, except into a cache whose files are named by
    /// their content.
    pub fn open(path: &Path) -> SinkResult<InPlaceFile> {
        resolve::check_in_place(path)?;
        let file = os::open_at_once(path, true).map_err(|error| match error.kind() {
            ErrorKind::IsADirectory => SinkError::IsADirectory,
            _ => SinkError::Io(error),
        })?;
        if !file.metadata().map_err(SinkError::Io)?.is_file() {
            return Err(SinkError::NotRegularFile);
        }
        InPlaceFile::new(file)
    }

    pub(super) fn new(file: File) -> SinkResult<InPlaceFile> {
        ignore_sigxfsz();
        let len = file.metadata().map_err(SinkError::Io)?.len();
        let map = if os::is_network(&file) { None } else { WritableMap::new(&file, len) };
        Ok(InPlaceFile { file, len, map })
    }

    /// A new file, whose bytes are written in any order.
    pub(super) fn in_no_order(file: File) -> SinkResult<InPlaceFile> {
        let file = InPlaceFile::new(file)?;
        file.map.iter().for_each(WritableMap::expect_anywhere);
        Ok(file)
    }

    pub fn id(&self) -> SinkResult<Option<FileId>> {
        FileId::of(&self.file).map_err(SinkError::Io)
    }

    /// Lock the file until it is closed; no other process can lock it meanwhile.
    pub fn hold(&self) -> Hold {
        Hold::of(os::lock(&self.file))
    }

    pub fn file(&self) -> &File {
        &self.file
    }

    /// With `fsync`, and on network file systems, wait until all written bytes are on the disk.
    pub fn sync(&self, fsync: bool) -> SinkResult<()> {
        sync_file(&self.file, fsync)
    }

    /// Begin to write after `end`. The file is truncated to `end` again, unless the growth is kept.
    pub fn grow_from(&self, end: u64) -> SinkResult<Growth<'_>> {
        let file = self.file.try_clone().map_err(SinkError::Io)?;
        let growing = Arc::new(Growing { file, end });
        // without the thread that handles signals, they act as usual
        let _ = watch();
        GROWING.write().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&growing));
        Ok(Growth { file: self, growing })
    }

    /// Truncate the file to `len` bytes, where it is longer.
    pub fn cut(&self, len: u64) -> SinkResult<()> {
        match self.file.metadata().map_err(SinkError::Io)?.len() {
            longer if longer > len => os::truncate(&self.file, len).map_err(SinkError::Io),
            _ => Ok(()),
        }
    }

    /// Check all writes. With `fsync`, and on network file systems, wait for the disk.
    pub fn finish(self, fsync: bool) -> SinkResult<()> {
        self.verify()?;
        sync_file(&self.file, fsync)
    }
}

/// The bytes written after the end of a file. Dropping this truncates the file to its old end, and so does a signal
/// that ends the process.
#[derive(Debug)]
pub struct Growth<'a> {
    file: &'a InPlaceFile,
    growing: Arc<Growing>,
}

impl Growth<'_> {
    /// Keep the growth. `tell` writes the new length to the front of the file, and no signal ends it halfway.
    pub fn keep<T>(self, tell: impl FnOnce() -> T) -> T {
        without_signals(|| {
            self.forget();
            tell()
        })
    }

    /// Let no signal truncate the file any more; returns whether one still could.
    fn forget(&self) -> bool {
        let mut all = GROWING.write().unwrap_or_else(PoisonError::into_inner);
        let before = all.len();
        all.retain(|growing| !Arc::ptr_eq(growing, &self.growing));
        all.len() < before
    }
}

impl Drop for Growth<'_> {
    fn drop(&mut self) {
        if self.forget() {
            self.growing.cut();
        }
    }
}

impl Sink for Growth<'_> {
    fn is_atomic(&self) -> bool {
        false
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> SinkResult<()> {
        let _uncut = GROWING.read().unwrap_or_else(PoisonError::into_inner);
        self.file.write_at(offset, bytes)
    }

    fn settle(&self, range: Range<u64>, wait: bool) -> SinkResult<()> {
        self.file.settle(range, wait)
    }
}

impl Sink for InPlaceFile {
    fn is_atomic(&self) -> bool {
        false
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> SinkResult<()> {
        // a write past the end of a truncated file would extend it again
        let len = self.file.metadata().map_err(SinkError::Io)?.len();
        if len < self.len {
            return Err(SinkError::Truncated);
        }
        self.file.write_all_at(bytes, offset).map_err(SinkError::Io)
    }

    fn settle(&self, range: Range<u64>, wait: bool) -> SinkResult<()> {
        if let (true, Some(map)) = (wait, &self.map) {
            map.forget(&range);
        }
        os::settle(&self.file, &range, wait).map_err(|error| SinkError::Io(error.into()))
    }

    fn expect(&self, range: Range<u64>) {
        if let Some(map) = &self.map {
            map.load(&range);
        }
    }

    fn mapped(&self, run: u64) -> Option<&WritableMap> {
        self.map.as_ref().filter(|_| run < LONG)
    }

    fn verify(&self) -> SinkResult<()> {
        let Some(at) = self.map.as_ref().and_then(WritableMap::lost) else { return Ok(()) };
        // a full disk and a truncation both lose pages; allocating the page tells which it was
        let page = at / PAGE * PAGE;
        Err(match os::allocate_within(&self.file, page..page + PAGE) {
            Err(error @ (Errno::NOSPC | Errno::DQUOT)) => SinkError::Io(error.into()),
            _ => SinkError::Truncated,
        })
    }
}

// Writes through a map, for runs that are too short for a system call each.
//
// Before writing, the pages of many runs are faulted in by one call (`populate_to_write`). It fails where a write
// would raise SIGBUS: a full disk behind a hole, or a truncated file. The caller then writes by position, and gets
// the error from there. Only pages that hold runs are faulted in, so that holes between them stay holes.

/// A whole file, mapped shared and writable.
#[derive(Debug)]
pub struct WritableMap {
    // Declared before the map: fields are dropped in order, and the watch must be dropped first.
    watch: Watch,
    map: MmapRaw,
}

impl WritableMap {
    /// Map a file of `len` bytes; `None` if it cannot be mapped.
    pub(super) fn new(file: &File, len: u64) -> Option<WritableMap> {
        let len = usize::try_from(len).ok().filter(|&len| len > 0)?;
        let map = MmapOptions::new().len(len).map_raw(file).ok()?;
        let start = map.as_ptr() as usize;
        Some(WritableMap { watch: Watch::new(start..start + len, true)?, map })
    }

    /// Fault in the pages of ascending ranges of bytes; returns false if a page cannot be written.
    pub(crate) fn populate(&self, ranges: impl Iterator<Item = Range<u64>>) -> bool {
        let mut pages = 0..0;
        for range in ranges {
            let start = range.start / PAGE * PAGE;
            let end = range.end.next_multiple_of(PAGE);
            if (pages.start..=pages.end).contains(&start) {
                pages.end = pages.end.max(end);
            } else if self.populate_pages(pages) {
                pages = start..end;
            } else {
                return false;
            }
        }
        self.populate_pages(pages)
    }

    fn populate_pages(&self, pages: Range<u64>) -> bool {
        let end = pages.end.min(self.map.len() as u64);
        let count = end.saturating_sub(pages.start) as usize;
        count == 0
            || loop {
                match populate_to_write(&self.map, pages.start as usize, count) {
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    result => break result.is_ok(),
                }
            }
    }

    /// Advise the kernel of random writes: pages around them are not to be read.
    pub(super) fn expect_anywhere(&self) {
        os::expect_anywhere(&self.map);
    }

    /// Read a range into memory before scattered writes to it. A hint: other pages are read when they are written.
    pub(super) fn load(&self, range: &Range<u64>) {
        if let Some((start, count)) = self.inside(range) {
            let _ = load_to_write(&self.map, start, count);
        }
    }

    /// Drop the pages of a range from this map; written bytes stay written.
    pub(super) fn forget(&self, range: &Range<u64>) {
        if let Some((start, count)) = self.inside(range) {
            os::forget(&self.map, start, count);
        }
    }

    /// The start and the length of a range in the map; `None` where it is outside.
    fn inside(&self, range: &Range<u64>) -> Option<(usize, usize)> {
        let end = range.end.min(self.map.len() as u64);
        let count = end.checked_sub(range.start).filter(|&count| count > 0)?;
        Some((range.start as usize, count as usize))
    }

    /// The bytes of a range of the file, for writing; `None` if the range is outside the map.
    ///
    /// Callers must not write one byte from two threads at the same time, and must not read any.
    /// The pieces of a job share no byte of the target, and a scatter writes from one thread at a
    /// time. Not public, since the types cannot enforce that.
    pub(crate) fn cells(&self, range: Range<u64>) -> Option<&[Cell<u8>]> {
        let inside = range.start <= range.end && range.end <= self.map.len() as u64;
        // SAFETY: the range lies inside the map, which lives as long as `self` is borrowed. Cells
        // may alias. By the rule above there is no data race between threads of this process. A
        // truncated file is handled by `Watch`.
        inside.then(|| unsafe {
            let first = self.map.as_mut_ptr().add(range.start as usize).cast::<Cell<u8>>();
            std::slice::from_raw_parts(first, (range.end - range.start) as usize)
        })
    }

    /// The offset of the first lost byte, if any: all bytes written from there on are lost as well.
    pub(super) fn lost(&self) -> Option<u64> {
        self.watch.lost().map(|at| at as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_system_without_locks_is_no_other_process() {
        assert_eq!(Hold::of(Err(Errno::WOULDBLOCK)), Hold::Refused);
        for errno in [Errno::NOLCK, Errno::OPNOTSUPP, Errno::NOSYS, Errno::INVAL] {
            assert_eq!(Hold::of(Err(errno)), Hold::NoLocks);
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        let [one, other] = [(); 2].map(|()| InPlaceFile::open(file.path()).unwrap());
        assert_eq!([one.hold(), other.hold()], [Hold::Alone, Hold::Refused]);
    }
}
