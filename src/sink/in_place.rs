//! A file whose bytes are replaced where they stand: nothing else of it is read or written.
//!
//! Several processes may patch one file at a time where their bytes are disjoint, so no byte next
//! to those that were given is ever written back. There is nothing to commit: what was written
//! stays, and a run that was killed is completed by repeating it. The other user of this room is
//! a copy that has not got its name yet ([`super::create_copy`]).

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;

use super::writable_map::PAGE;
use super::{Sink, SinkError, WritableMap, WriteOrder, ignore_sigxfsz};
use crate::os;

/// From this length on, in bytes, a run is worth a system call.
const LONG: u64 = 64 << 10;

/// An open file that is written by position.
#[derive(Debug)]
pub struct InPlaceFile {
    file: File,
    /// How long the file was in the beginning, in bytes.
    len: u64,
    map: Option<WritableMap>,
}

impl InPlaceFile {
    /// Open an existing regular file for patching, links followed.
    ///
    /// # Errors
    /// [`SinkError::IsADirectory`], [`SinkError::NotRegularFile`], [`SinkError::Io`].
    pub fn open(path: &Path) -> Result<InPlaceFile, SinkError> {
        // not to wait for the other end of a FIFO, nor to take over a terminal
        let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
        let opened = OpenOptions::new().read(true).write(true).custom_flags(flags).open(path);
        let file = opened.map_err(|error| match error.kind() {
            std::io::ErrorKind::IsADirectory => SinkError::IsADirectory,
            _ => SinkError::Io(error),
        })?;
        if !file.metadata().map_err(SinkError::Io)?.is_file() {
            return Err(SinkError::NotRegularFile);
        }
        InPlaceFile::new(file)
    }

    pub(super) fn new(file: File) -> Result<InPlaceFile, SinkError> {
        ignore_sigxfsz();
        let len = file.metadata().map_err(SinkError::Io)?.len();
        let map = if os::is_network(&file) { None } else { WritableMap::new(&file, len) };
        Ok(InPlaceFile { file, len, map })
    }

    /// The file, to read its header from.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Done: with `fsync`, and where the network would report errors late, wait for the disk.
    ///
    /// # Errors
    /// [`SinkError::Os`], and those of [`Sink::verify`].
    pub fn finish(self, fsync: bool) -> Result<(), SinkError> {
        self.verify()?;
        if fsync || os::is_network(&self.file) {
            self.file.sync_all().map_err(SinkError::os("cannot be brought to the disk"))?;
        }
        Ok(())
    }
}

impl Sink for InPlaceFile {
    fn order(&self) -> WriteOrder {
        WriteOrder::Any
    }

    fn is_atomic(&self) -> bool {
        false
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), SinkError> {
        // behind the end of a file that was cut, it would begin to grow again
        let len = self.file.metadata().map_err(SinkError::Io)?.len();
        if len < self.len {
            return Err(SinkError::Truncated);
        }
        self.file.write_all_at(bytes, offset).map_err(SinkError::Io)
    }

    fn mapped(&self, run: u64) -> Option<&WritableMap> {
        self.map.as_ref().filter(|_| run < LONG)
    }

    fn verify(&self) -> Result<(), SinkError> {
        let Some(at) = self.map.as_ref().and_then(WritableMap::lost) else { return Ok(()) };
        // a full disk and a cut look alike from here; asking for the page again tells which it was
        let again = fallocate(&self.file, FallocateFlags::KEEP_SIZE, at / PAGE * PAGE, PAGE);
        Err(match again {
            Err(error @ (Errno::NOSPC | Errno::DQUOT)) => SinkError::Io(error.into()),
            _ => SinkError::Truncated,
        })
    }

    fn commit(self: Box<Self>) -> Result<(), SinkError> {
        self.finish(false)
    }
}
