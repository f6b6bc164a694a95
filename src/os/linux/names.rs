//! Files without names, and folders as places for names.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, openat, statat};
use rustix::io::{Result, retry_on_intr};
use rustix::path::Arg;

/// Whether the system knows files without names, for file systems that have them.
pub const UNNAMED_FILES: bool = true;

/// Open a file without a name in a directory. `None` if the file system has no such files, or there
/// is no `/proc` to link them through; also on any other error, which creating a named file will meet
/// again and report.
pub(crate) fn open_unnamed(from: impl AsFd, dir: &Path, mode: Mode) -> Option<OwnedFd> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = retry_on_intr(|| openat(&from, dir, flags, mode)).ok()?;
    statat(CWD, by_descriptor(&file), AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some(file)
}

/// Give a file without a name one.
pub(crate) fn link_unnamed(file: &File, dir: impl AsFd, name: impl Arg) -> Result<()> {
    linkat(CWD, by_descriptor(file), dir, name, AtFlags::SYMLINK_FOLLOW)
}

/// Open a directory, as a place for names: that needs no right to list it, which a drop-box directory
/// does not grant.
pub(crate) fn open_place(from: impl AsFd, path: &Path) -> Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    retry_on_intr(|| openat(&from, path, flags, Mode::empty()))
}

/// The path of an open directory, as far as it can be found out.
pub(crate) fn path_of(dir: &OwnedFd) -> PathBuf {
    std::fs::read_link(by_descriptor(dir)).unwrap_or_default()
}

/// The path of an open file in `/proc`.
fn by_descriptor(file: &impl AsRawFd) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}
