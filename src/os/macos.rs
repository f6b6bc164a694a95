//! Calls of macOS: exchange of names, clones of files on APFS, allocation, reading ahead, file flags.
//! All other functions come from `other.rs`.
//!
//! The project checks and links this on Linux and cannot run it there, so every caller has a
//! fallback for each call that fails.

#![allow(unsafe_code)]

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CloneFlags, Mode, OFlags, fchmod, fclonefileat, fcntl_rdadvise, fstat, fstatfs,
    ftruncate, getpath, openat, renameat, statat, unlinkat,
};
use rustix::io::{Errno, Result, retry_on_intr};

use super::files::Advice;

pub use super::attributes::EXCHANGES_NAMES;
pub(crate) use super::attributes::{
    attribute, exchange, rename_to_free, set_attribute, take_attributes,
};
pub use super::other::UNNAMED_FILES;
#[cfg(feature = "remote")]
pub(crate) use super::other::machine_vendor;
pub(crate) use super::other::{
    LOADED, clone_file, clone_range, copy_range, discard, enlarge_pipe, is_cached, is_descriptors,
    link_unnamed, load, load_to_write, mapped_pages, memory_bytes, open_place, open_unnamed,
    populate, populate_to_write, reads_ahead, settle,
};

pub(crate) fn path_of(dir: &OwnedFd) -> PathBuf {
    getpath(dir)
        .map_or_else(|_| PathBuf::new(), |path| OsString::from_vec(path.into_bytes()).into())
}

pub(super) fn path_in(dir: &OwnedFd, name: &OsStr) -> PathBuf {
    path_of(dir).join(name)
}

/// Replace `name` in a folder by a clone of `from`, which shares all its blocks, and open it. The clone
/// has the permissions of the replaced file.
pub(crate) fn clone_over(from: &File, dir: impl AsFd, name: &str) -> Result<OwnedFd> {
    let mode = Mode::from_raw_mode(statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW)?.st_mode & 0o7777);
    let clone = format!("{name}.clone");
    fclonefileat(from, &dir, &clone, CloneFlags::NOFOLLOW | CloneFlags::NOOWNERCOPY)?;
    let put = || {
        // the clone has the permissions of the original, which may be read-only
        let reads = OFlags::RDONLY | OFlags::CLOEXEC;
        fchmod(retry_on_intr(|| openat(&dir, &clone, reads, Mode::empty()))?, mode)?;
        let writes = OFlags::RDWR | OFlags::CLOEXEC;
        let file = retry_on_intr(|| openat(&dir, &clone, writes, Mode::empty()))?;
        renameat(&dir, &clone, &dir, name).map(|()| file)
    };
    put().inspect_err(|_| {
        let _ = unlinkat(&dir, &clone, AtFlags::empty());
    })
}

pub(crate) fn allocate(file: impl AsFd, range: Range<u64>) -> Result<()> {
    allocate_within(&file, range.clone())?;
    let len = u64::try_from(fstat(&file)?.st_size).unwrap_or(0);
    if range.end > len { retry_on_intr(|| ftruncate(&file, range.end)) } else { Ok(()) }
}

/// Allocate space for the part of a range beyond the end of a file; the length of the file stays.
pub(crate) fn allocate_within(file: impl AsFd, range: Range<u64>) -> Result<()> {
    let stat = fstat(&file)?;
    let allocated = stat.st_blocks.saturating_mul(512).max(stat.st_size);
    let end = i64::try_from(range.end).map_err(|_| Errno::FBIG)?;
    if end <= allocated {
        return Ok(());
    }
    let mut space = libc::fstore_t {
        fst_flags: libc::F_ALLOCATEALL,
        fst_posmode: libc::F_PEOFPOSMODE,
        fst_offset: 0,
        fst_length: end - allocated,
        fst_bytesalloc: 0,
    };
    retry_on_intr(|| {
        // SAFETY: the request reads and writes its argument, which has the expected type; the descriptor
        // is open.
        let outcome =
            unsafe { libc::fcntl(file.as_fd().as_raw_fd(), libc::F_PREALLOCATE, &raw mut space) };
        if outcome == -1 { Err(last_error()) } else { Ok(()) }
    })
}

fn last_error() -> Errno {
    Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)
}

pub(crate) fn is_network(fd: impl AsFd) -> bool {
    fstatfs(fd).is_ok_and(|fs| fs.f_flags & libc::MNT_LOCAL as u32 == 0)
}

pub(crate) fn is_in_memory(fd: impl AsFd) -> bool {
    let is_tmpfs = |name: &[libc::c_char]| {
        name.iter().map(|&letter| letter as u8).take_while(|&letter| letter != 0).eq(*b"tmpfs")
    };
    fstatfs(fd).is_ok_and(|fs| is_tmpfs(&fs.f_fstypename))
}

pub(crate) fn open_within_mount(dir: impl AsFd, name: &Path) -> Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = retry_on_intr(|| openat(&dir, name, flags, Mode::empty()))?;
    if fstat(&folder)?.st_dev == fstat(&dir)?.st_dev { Ok(folder) } else { Err(Errno::XDEV) }
}

pub(crate) fn is_fixed(dir: impl AsFd, name: &OsStr) -> bool {
    const FIXED: u32 = libc::UF_IMMUTABLE | libc::UF_APPEND | libc::SF_IMMUTABLE | libc::SF_APPEND;
    let Ok(stat) = statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW) else { return false };
    stat.st_flags & FIXED != 0 || fstat(&dir).is_ok_and(|folder| folder.st_dev != stat.st_dev)
}

pub(crate) const UNRESERVED: libc::c_int = libc::MAP_NORESERVE;

const STEP: u64 = 1 << 20;

/// Advise the kernel on a range of a file that is read by position (fcntl(2), `F_RDADVISE`).
pub(crate) fn advise_file(file: &File, range: Range<u64>, advice: Advice) {
    if advice == Advice::WillNeed {
        for start in range.clone().step_by(STEP as usize) {
            let _ = fcntl_rdadvise(file, start, (range.end - start).min(STEP));
        }
    }
}
