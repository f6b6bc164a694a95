//! Holes of files, which read as zeroes and have no blocks (lseek(2), `SEEK_DATA`).

use std::fs::File;

#[cfg(any(target_os = "netbsd", target_os = "openbsd"))]
use rustix::io::Errno;
use rustix::io::Result;
#[cfg(not(any(target_os = "netbsd", target_os = "openbsd")))]
use rustix::{
    fs::{SeekFrom, seek},
    io::retry_on_intr,
};

/// The start of the first data at or after a position.
///
/// # Errors
/// `ENXIO` where only a hole is left; that the system or the file system knows no holes.
#[cfg(not(any(target_os = "netbsd", target_os = "openbsd")))]
pub(crate) fn next_data(file: &File, at: u64) -> Result<u64> {
    retry_on_intr(|| seek(file, SeekFrom::Data(at)))
}

/// The start of the first hole at or after a position, of which the end of the file is one.
///
/// # Errors
/// As [`next_data`].
#[cfg(not(any(target_os = "netbsd", target_os = "openbsd")))]
pub(crate) fn next_hole(file: &File, at: u64) -> Result<u64> {
    retry_on_intr(|| seek(file, SeekFrom::Hole(at)))
}

#[cfg(any(target_os = "netbsd", target_os = "openbsd"))]
pub(crate) fn next_data(_: &File, _: u64) -> Result<u64> {
    Err(Errno::NOSYS)
}

#[cfg(any(target_os = "netbsd", target_os = "openbsd"))]
pub(crate) fn next_hole(_: &File, _: u64) -> Result<u64> {
    Err(Errno::NOSYS)
}
