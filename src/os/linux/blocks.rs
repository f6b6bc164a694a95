//! The blocks of files: allocated, shared, copied by the kernel, written to the disk.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::fs::{
    Advice, FallocateFlags, copy_file_range, fadvise, fallocate, fstat, fstatvfs, ioctl_ficlone,
};
use rustix::io::{Errno, Result, retry_on_intr};
use rustix::ioctl::{Setter, ioctl, opcode};
use rustix::process::geteuid;

use crate::os::PAGE;

/// Allocate space for a range of a file; extends the file to the end of the range.
pub(crate) fn allocate(file: impl AsFd, range: Range<u64>) -> Result<()> {
    allocate_by(FallocateFlags::empty(), file, range)
}

/// Allocate space for a range of a file; the length of the file stays.
pub(crate) fn allocate_within(file: impl AsFd, range: Range<u64>) -> Result<()> {
    allocate_by(FallocateFlags::KEEP_SIZE, file, range)
}

fn allocate_by(flags: FallocateFlags, file: impl AsFd, range: Range<u64>) -> Result<()> {
    let allocate = |len: u64| retry_on_intr(|| fallocate(&file, flags, range.start, len));
    let len = range.end - range.start;
    if len > SMALL && is_more_than_free(&file, len) {
        // an error if the file system cannot allocate at all
        allocate(1)?;
        return Err(Errno::NOSPC);
    }
    allocate(len)
}

/// A range of at most this many bytes is allocated without checking the free space.
const SMALL: u64 = 1 << 20;

/// Whether the file system says that it has too little free space for `len` more bytes of a file. Without this check
/// many file systems fill all free space before they fail.
fn is_more_than_free(file: impl AsFd, len: u64) -> bool {
    let Ok(system) = fstatvfs(&file) else { return false };
    let blocks = if geteuid().is_root() { system.f_bfree } else { system.f_bavail };
    let free = blocks.saturating_mul(system.f_frsize);
    // the file may have blocks in the range already
    let own = || fstat(&file).map_or(0, |stat| stat.st_blocks.max(0) as u64);
    system.f_blocks > 0 && len > free && len - free > own().saturating_mul(512)
}

pub(crate) fn clone_file(from: &File, to: &File) -> Result<()> {
    ioctl_ficlone(to, from)
}

/// Unused on Linux, where [`clone_file`] lets an open file share the blocks.
pub(crate) fn clone_over(_: &File, _: impl AsFd, _: &str) -> Result<OwnedFd> {
    Err(Errno::NOSYS)
}

#[repr(C)]
struct FileCloneRange {
    from: i64,
    start: u64,
    len: u64,
    at: u64,
}

const FICLONERANGE: rustix::ioctl::Opcode = opcode::write::<FileCloneRange>(0x94, 13);

/// Let `to` share the blocks of a range of `from`, at offset `at` (ioctl_ficlonerange(2)).
pub(crate) fn clone_range(from: &File, range: &Range<u64>, to: &File, at: u64) -> Result<()> {
    let start = range.start;
    let len = range.end - range.start;
    retry_on_intr(|| {
        let argument = FileCloneRange { from: from.as_raw_fd().into(), start, len, at };
        // SAFETY: the call only reads its argument, which has the expected type; both descriptors are open until
        // it returns.
        unsafe { ioctl(to, Setter::<FICLONERANGE, FileCloneRange>::new(argument)) }
    })
}

/// Copy up to `len` bytes within the kernel; returns the count. A signal may end the copy early.
pub(crate) fn copy_range(
    from: &File,
    mut source: u64,
    to: &File,
    mut target: u64,
    len: usize,
) -> Result<usize> {
    copy_file_range(from, Some(&mut source), to, Some(&mut target), len)
}

/// Start writing a range of a file to the disk, in whole pages. With `wait`, wait until the range is written,
/// and drop its pages from the page cache.
pub(crate) fn settle(file: &File, range: &Range<u64>, wait: bool) -> Result<()> {
    let start = range.start / PAGE * PAGE;
    let end = range.end / PAGE * PAGE;
    let Some(count) = end.checked_sub(start).and_then(NonZeroU64::new) else { return Ok(()) };
    let waits = libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    let flags = libc::SYNC_FILE_RANGE_WRITE | if wait { waits } else { 0 };
    // SAFETY: the call takes numbers and touches no memory; the descriptor is open.
    let outcome =
        unsafe { libc::sync_file_range(file.as_raw_fd(), start as i64, count.get() as i64, flags) };
    if outcome != 0 {
        let error = Errno::from_io_error(&io::Error::last_os_error());
        let known = [Errno::NOSYS, Errno::INVAL, Errno::SPIPE, Errno::INTR];
        return error.filter(|error| !known.contains(error)).map_or(Ok(()), Err);
    }
    if wait {
        let _ = fadvise(file, start, Some(count), Advice::DontNeed);
    }
    Ok(())
}
