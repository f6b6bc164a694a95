//! A file mapped for writing: the way for runs that are too short for a system call each.
//!
//! The pages of what is about to be written are brought in by one call for many runs
//! (`MADV_POPULATE_WRITE`). It fails where a write would raise SIGBUS, for want of disk behind a
//! hole or of the file itself; the caller then writes by position, and gets the reason. Only the
//! runs' own pages are brought in, so that holes between them stay holes.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::fs::File;
use std::io::ErrorKind;
use std::ops::Range;

use memmap2::{Advice, MmapOptions, MmapRaw};

use crate::os::sigbus::Watch;

/// What is brought in with a run, in bytes; pages of other sizes are multiples of it.
pub(super) const PAGE: u64 = 4096;

/// A whole file in memory, written to by any thread.
#[derive(Debug)]
pub struct WritableMap {
    // Before the map, since fields are dropped in this order and a watch must not outlive it.
    watch: Watch,
    map: MmapRaw,
}

impl WritableMap {
    /// Map a file of `len` bytes; `None` where that cannot be.
    pub(super) fn new(file: &File, len: u64) -> Option<WritableMap> {
        let len = usize::try_from(len).ok().filter(|&len| len > 0)?;
        let map = MmapOptions::new().len(len).map_raw(file).ok()?;
        let start = map.as_ptr() as usize;
        Some(WritableMap { watch: Watch::writable(start..start + len)?, map })
    }

    /// Bring in the pages of ranges that come in ascending order; false where one of them cannot
    /// be written.
    pub fn populate(&self, ranges: impl Iterator<Item = Range<u64>>) -> bool {
        let mut pages = 0..0;
        for range in ranges {
            let start = range.start / PAGE * PAGE;
            let end = range.end.next_multiple_of(PAGE);
            if (pages.start..=pages.end).contains(&start) {
                pages.end = pages.end.max(end);
            } else if self.bring_in(pages) {
                pages = start..end;
            } else {
                return false;
            }
        }
        self.bring_in(pages)
    }

    fn bring_in(&self, pages: Range<u64>) -> bool {
        let end = pages.end.min(self.map.len() as u64);
        let count = end.saturating_sub(pages.start) as usize;
        count == 0
            || loop {
                match self.map.advise_range(Advice::PopulateWrite, pages.start as usize, count) {
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    result => break result.is_ok(),
                }
            }
    }

    /// The bytes of a range of the file, to be written.
    pub fn cells(&self, range: Range<u64>) -> Option<&[Cell<u8>]> {
        let inside = range.start <= range.end && range.end <= self.map.len() as u64;
        // SAFETY: the range lies inside the map, which lives as long as `self` is borrowed. Cells
        // may alias; threads and processes write disjoint bytes of them, and nobody reads any, so
        // that there is no race. A file that becomes shorter is `Watch`'s concern.
        inside.then(|| unsafe {
            let first = self.map.as_mut_ptr().add(range.start as usize).cast::<Cell<u8>>();
            std::slice::from_raw_parts(first, (range.end - range.start) as usize)
        })
    }

    /// The first byte that was found lost, where one was: what was written from there on is too.
    pub(super) fn lost(&self) -> Option<u64> {
        self.watch.lost().map(|at| at as u64)
    }
}
