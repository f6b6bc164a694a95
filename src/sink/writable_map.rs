//! A file mapped for writing, for runs that are too short for a system call each.
//!
//! Before writing, the pages of many runs are faulted in by one call (`populate_to_write`). It
//! fails where a write would raise SIGBUS: a full disk behind a hole, or a truncated file. The
//! caller then writes by position, and gets the error from there. Only pages that hold runs are
//! faulted in, so that holes between them stay holes.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::fs::File;
use std::io::ErrorKind;
use std::ops::Range;

use memmap2::{Advice, MmapOptions, MmapRaw, UncheckedAdvice};

use crate::os::sigbus::Watch;
use crate::os::{PAGE, load_to_write, populate_to_write};

/// A whole file, mapped shared and writable.
#[derive(Debug)]
pub struct WritableMap {
    // Declared before the map: fields are dropped in order, and the watch must go first.
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

    /// Fault in the pages of ranges (bytes, ascending); false if one of them cannot be written.
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

    /// Writes come here and there: what lies around them is not to be read.
    pub(super) fn expect_anywhere(&self) {
        let _ = self.map.advise(Advice::Random);
    }

    /// Read a range into memory that is about to be written here and there. A hint: what is not read is read when it
    /// is written.
    pub(super) fn load(&self, range: &Range<u64>) {
        if let Some((start, count)) = self.inside(range) {
            let _ = load_to_write(&self.map, start, count);
        }
    }

    /// Let the pages of a range go, as far as this map is concerned; bytes that were written stay written.
    pub(super) fn forget(&self, range: &Range<u64>) {
        if let Some((start, count)) = self.inside(range) {
            // SAFETY: the map is shared with the page cache, so that a page comes back with what was written.
            let _ =
                unsafe { self.map.unchecked_advise_range(UncheckedAdvice::DontNeed, start, count) };
        }
    }

    /// Where a range begins in the map, and how long it is there; `None` where it is not in it.
    fn inside(&self, range: &Range<u64>) -> Option<(usize, usize)> {
        let end = range.end.min(self.map.len() as u64);
        let count = end.checked_sub(range.start).filter(|&count| count > 0)?;
        Some((range.start as usize, count as usize))
    }

    /// The bytes of a range of the file, for writing; `None` if it is not inside the map.
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

    /// Offset of the first lost byte, if any: everything written from there on is lost as well.
    pub(super) fn lost(&self) -> Option<u64> {
        self.watch.lost().map(|at| at as u64)
    }
}
