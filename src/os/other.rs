//! Functions for a system with POSIX only: each fails or returns "no", and callers fall back.

#![allow(unsafe_code)]
// macOS and Windows use a part of this file
#![cfg_attr(any(target_os = "macos", windows), allow(dead_code, unreachable_pub))]

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::fd::{AsFd, OwnedFd};
use super::files::Advice;
use super::fs::{Mode, OFlags, fstat, openat, stat};
use super::io::{Errno, Result, retry_on_intr};
use super::path::Arg;
use super::{Attributes, FileId};
use memmap2::{Mmap, MmapRaw};

/// Whether the system has files without names, on file systems that have them.
pub const UNNAMED_FILES: bool = false;

/// Whether the system can exchange two names, on file systems that can.
pub const EXCHANGES_NAMES: bool = false;

#[cfg(unix)]
pub(crate) fn memory_bytes() -> u64 {
    // SAFETY: the call takes a number and touches no memory.
    let known = |name| u64::try_from(unsafe { libc::sysconf(name) }).unwrap_or(0);
    known(libc::_SC_PHYS_PAGES).saturating_mul(known(libc::_SC_PAGESIZE))
}

pub(crate) fn open_place(from: impl AsFd, path: &Path) -> Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    retry_on_intr(|| openat(&from, path, flags, Mode::empty()))
}

/// Whether a directory is the folder of this process's open descriptors.
pub(crate) fn is_descriptors(dir: impl AsFd) -> bool {
    let id = |stat: Result<_>| stat.ok().as_ref().map(FileId::any);
    let known = id(stat("/dev/fd"));
    known.is_some() && known == id(fstat(dir))
}

pub(crate) fn open_unnamed(_: impl AsFd, _: &Path, _: Mode) -> Option<OwnedFd> {
    None
}

pub(crate) fn link_unnamed(_: &File, _: impl AsFd, _: impl Arg) -> Result<()> {
    Err(Errno::NOSYS)
}

pub(crate) fn rename_to_free(_: impl AsFd, _: impl Arg, _: impl AsFd, _: impl Arg) -> Result<()> {
    Err(Errno::NOSYS)
}

pub(crate) fn exchange(_: impl AsFd, _: impl Arg, _: impl AsFd, _: impl Arg) -> Result<()> {
    Err(Errno::NOSYS)
}

pub(crate) fn set_attribute(_: &File, _: &str, _: &str) {}

pub(crate) fn attribute(_: &File, _: &str) -> Option<Vec<u8>> {
    None
}

pub(crate) fn take_attributes(
    _: impl AsFd,
    _: &OwnedFd,
    _: &OsStr,
    _: Attributes,
    _: bool,
) -> Result<()> {
    Ok(())
}

pub(crate) fn path_of(_: &OwnedFd) -> PathBuf {
    PathBuf::new()
}

pub(crate) fn allocate(_: impl AsFd, _: Range<u64>) -> Result<()> {
    Err(Errno::NOSYS)
}

pub(crate) fn allocate_within(_: impl AsFd, _: Range<u64>) -> Result<()> {
    Err(Errno::NOSYS)
}

pub(crate) fn clone_file(_: &File, _: &File) -> Result<()> {
    Err(Errno::NOSYS)
}

pub(crate) fn clone_over(_: &File, _: impl AsFd, _: &str) -> Result<OwnedFd> {
    Err(Errno::NOSYS)
}

pub(crate) fn clone_range(_: &File, _: &Range<u64>, _: &File, _: u64) -> Result<()> {
    Err(Errno::NOSYS)
}

pub(crate) fn copy_range(_: &File, _: u64, _: &File, _: u64, _: usize) -> Result<usize> {
    Err(Errno::NOSYS)
}

pub(crate) fn is_network(_: impl AsFd) -> bool {
    false
}

pub(crate) fn is_in_memory(_: impl AsFd) -> bool {
    false
}

pub(crate) fn open_within_mount(_: impl AsFd, _: &Path) -> Result<OwnedFd> {
    Err(Errno::NOSYS)
}

pub(crate) fn is_fixed(_: impl AsFd, _: &OsStr) -> bool {
    false
}

#[cfg(feature = "remote")]
pub(crate) fn machine_vendor() -> Option<String> {
    None
}

pub(crate) fn advise_file(_: &File, _: Range<u64>, _: Advice) {}

pub(crate) fn populate(_: &Mmap, _: usize, _: usize) -> io::Result<()> {
    Err(ErrorKind::Unsupported.into())
}

pub(crate) const UNRESERVED: std::ffi::c_int = 0;

pub(crate) const LOADED: Option<u64> = None;

pub(crate) fn load(_: &Mmap, _: usize, _: usize) -> io::Result<()> {
    Err(ErrorKind::Unsupported.into())
}

/// Does nothing: a page that cannot be written is noticed by the map's watch, when the page is touched.
pub(crate) fn populate_to_write(_: &MmapRaw, _: usize, _: usize) -> io::Result<()> {
    Ok(())
}

pub(crate) fn load_to_write(_: &MmapRaw, _: usize, _: usize) -> io::Result<()> {
    Ok(())
}

pub(crate) fn settle(_: &File, _: &Range<u64>, _: bool) -> Result<()> {
    Ok(())
}

pub(crate) fn is_cached(_: &File, _: u64) -> bool {
    true
}

pub(crate) fn reads_ahead(_: impl AsFd) -> bool {
    false
}

pub(crate) fn mapped_pages() -> u64 {
    0
}

pub(crate) fn enlarge_pipe(_: impl AsFd) {}

pub(crate) fn discard(_: &File, _: &File, _: usize) -> Result<usize> {
    Err(Errno::NOSYS)
}
