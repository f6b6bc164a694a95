//! The page cache: which bytes of files are in memory, and which should be.

use std::fs::{File, read_to_string};
use std::io::{self, IoSliceMut};
use std::num::NonZeroU64;
use std::ops::Range;
use std::os::fd::AsFd;

use memmap2::{Advice as MapAdvice, Mmap, MmapRaw};
use rustix::fs::{Advice as FileAdvice, fadvise, fstat, major, minor};
use rustix::io::{Errno, ReadWriteFlags, preadv2};

use crate::os::advice::Advice;

/// A flag of maps whose pages need no room before they are written.
pub(crate) const UNRESERVED: libc::c_int = libc::MAP_NORESERVE;

/// How far a kernel reads ahead, at least, that need not be asked to, in bytes.
const FAR_AHEAD: u64 = 1 << 20;

/// How much is asked for at a call, in bytes: kernels begin to read no more than they commonly read
/// ahead.
const STEP: u64 = 128 << 10;

/// Tell how a range of a file that is read by position is going to be used.
pub(crate) fn advise_file(file: &File, range: Range<u64>, advice: Advice) {
    let advice = match advice {
        Advice::Sequential => FileAdvice::Sequential,
        Advice::Random => FileAdvice::Random,
        Advice::WillNeed => FileAdvice::WillNeed,
        Advice::Evict => FileAdvice::DontNeed,
        Advice::Populate | Advice::Load | Advice::DontNeed => return,
    };
    let step = if advice == FileAdvice::WillNeed { STEP } else { u64::MAX };
    let mut start = range.start;
    // a length of 0 would mean "to the end of the file"
    while let Some(rest) = range.end.checked_sub(start).and_then(NonZeroU64::new) {
        let count = rest.get().min(step);
        let _ = fadvise(file, start, NonZeroU64::new(count), advice);
        start += count;
    }
}

/// Fault in pages of a map to read them, in one call.
///
/// # Errors
/// One of them cannot be read.
pub(crate) fn populate(map: &Mmap, start: usize, count: usize) -> io::Result<()> {
    map.advise_range(MapAdvice::PopulateRead, start, count)
}

/// The unit in which [`load`] reads a file, in bytes: a large page.
pub(crate) const LOADED: Option<u64> = Some(2 << 20);

/// Read a range of a map into memory, in large pages where the file system has them. To read, map and let go
/// of single pages takes a processor longer than a fast disk.
///
/// # Errors
/// Some of it cannot be read, or the kernel has no such call.
pub(crate) fn load(map: &Mmap, start: usize, count: usize) -> io::Result<()> {
    // a kernel without large pages reads as far ahead as it does for anyone
    let _ = map.advise_range(MapAdvice::Normal, start, count);
    let _ = map.advise_range(MapAdvice::HugePage, start, count);
    populate(map, start, count)
}

/// Fault in pages of a map to write them, in one call.
///
/// # Errors
/// One of them cannot be written: a full disk behind a hole, or a truncated file.
pub(crate) fn populate_to_write(map: &MmapRaw, start: usize, count: usize) -> io::Result<()> {
    map.advise_range(MapAdvice::PopulateWrite, start, count)
}

/// Read a range of a map that is about to be written into memory, as [`load`] does.
///
/// # Errors
/// Those of [`load`].
pub(crate) fn load_to_write(map: &MmapRaw, start: usize, count: usize) -> io::Result<()> {
    let _ = map.advise_range(MapAdvice::HugePage, start, count);
    map.advise_range(MapAdvice::PopulateRead, start, count)
}

/// Whether byte `at` of a file is in the page cache; true where that is unknown.
pub(crate) fn is_cached(file: &File, at: u64) -> bool {
    let mut byte = [0];
    let mut buffers = [IoSliceMut::new(&mut byte)];
    let read = preadv2(file, &mut buffers, at, ReadWriteFlags::NOWAIT);
    !matches!(read, Err(Errno::AGAIN))
}

/// Whether the kernel reads far ahead of who reads a file in order. False where it does not tell:
/// on file systems without a disk of their own.
pub(crate) fn reads_ahead(file: impl AsFd) -> bool {
    let Ok(stat) = fstat(file) else { return false };
    let (major, minor) = (major(stat.st_dev), minor(stat.st_dev));
    // a partition has none, but the disk that it is on
    let kib = ["queue", "../queue"].iter().find_map(|queue| {
        let path = format!("/sys/dev/block/{major}:{minor}/{queue}/read_ahead_kb");
        read_to_string(path).ok()?.trim().parse::<u64>().ok()
    });
    kib.is_some_and(|kib| kib >= FAR_AHEAD >> 10)
}

/// How many pages of files are mapped into this process, about, of those in memory; 0 where the
/// kernel does not tell.
pub(crate) fn mapped_pages() -> u64 {
    let pages = |statm: String| statm.split(' ').nth(2)?.parse().ok();
    read_to_string("/proc/self/statm").ok().and_then(pages).unwrap_or(0)
}
