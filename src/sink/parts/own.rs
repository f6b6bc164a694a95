//! Files in the folder of a job, which are opened by names of this program's own making.
//!
//! Whatever stands there instead, opening it never waits, follows no link and reads no more than a
//! record can have: it is an error that names the file.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::os::fd::OwnedFd;
use std::thread;
use std::time::Duration;

use rustix::fs::{FileType, Mode, OFlags, fstat, openat};
use rustix::io::{Errno, retry_on_intr};
use serde::Serialize;

use super::error::PartsError;
use crate::sink::SinkError;

/// The most bytes of a record: a job of a million inputs has fewer.
pub(super) const MOST: u64 = 256 << 20;

/// How often a file is tried that another machine holds, ten times a second: servers ask it to let
/// go, and take it away after less than that.
const HELD: u32 = 900;

/// Whether the error says that a file, or the folder that it was in, is gone.
pub(super) fn is_gone(error: Errno) -> bool {
    matches!(error, Errno::NOENT | Errno::STALE)
}

/// The error of a call in the folder, which may have been removed.
pub(super) fn discarded_if_gone(error: SinkError) -> SinkError {
    match error.io().and_then(Errno::from_io_error) {
        Some(errno) if is_gone(errno) => PartsError::Discarded.into(),
        _ => error,
    }
}

/// Open a file to read or to write; `None` where it is gone. `what` says what could not be done.
pub(super) fn open_own(
    dir: &OwnedFd,
    name: &str,
    access: OFlags,
    what: &'static str,
) -> Result<Option<File>, SinkError> {
    let flags = access | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
    let mut tries = 0;
    let file = loop {
        match retry_on_intr(|| openat(dir, name, flags, Mode::empty())) {
            Ok(file) => break file,
            Err(error) if is_gone(error) => return Ok(None),
            // an NFS server's clients have a word in it
            Err(Errno::AGAIN) if tries < HELD => {
                tries += 1;
                thread::sleep(Duration::from_millis(100));
            }
            // a link, a folder, a FIFO without a reader, a socket
            Err(Errno::LOOP | Errno::ISDIR | Errno::NXIO) => return Err(damaged(name)),
            Err(error) => return Err(SinkError::os(what)(error)),
        }
    };
    let stat = fstat(&file).map_err(SinkError::os(what))?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok(Some(File::from(file))),
        _ => Err(damaged(name)),
    }
}

/// Write a record to a new file, and bring it to the disk.
pub(super) fn write_record(mut file: File, record: &impl Serialize) -> Result<(), SinkError> {
    let bytes = serde_json::to_vec(record).map_err(|error| SinkError::Io(error.into()))?;
    if bytes.len() as u64 > MOST {
        return Err(SinkError::Io(ErrorKind::FileTooLarge.into()));
    }
    file.write_all(&bytes).and_then(|()| file.sync_all()).map_err(SinkError::Io)
}

/// Make a new file, to write.
pub(super) fn create_own(dir: &OwnedFd, name: &str) -> rustix::io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(0o666);
    retry_on_intr(|| openat(dir, name, flags, mode)).map(File::from)
}

/// The error of a file that no run of this program wrote.
pub(super) fn damaged(name: &str) -> SinkError {
    PartsError::Damaged(name.to_owned()).into()
}
