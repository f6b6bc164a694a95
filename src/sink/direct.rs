//! Standard output, and FIFOs and devices that exist: bytes leave as they are written.
//!
//! Nothing can be taken back here, so there is no "whole or not at all"; `commit` still refuses
//! an output with bytes missing. A regular file on standard output is written in order too: the
//! shell may have opened it with `>>`, where positions are ignored.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

use rustix::event::PollFlags;
use rustix::fs::{FileType, Mode, OFlags, openat, statat};

use super::place::Stream;
use super::{Options, Sink, SinkError, WriteOrder, outlive_sigxfsz, retry};
use crate::os;
use crate::os::stdio::{Standard, closed_at_start};

/// An output that takes its bytes in order.
#[derive(Debug)]
pub struct DirectSink {
    file: File,
    options: Options,
    /// How many bytes were written.
    position: Mutex<u64>,
}

impl DirectSink {
    /// Write to standard output.
    ///
    /// # Errors
    /// [`SinkError::StdoutClosed`].
    pub fn stdout(options: Options) -> Result<Self, SinkError> {
        if closed_at_start(Standard::Output) {
            return Err(SinkError::StdoutClosed);
        }
        let fd = io::stdout().as_fd().try_clone_to_owned().map_err(SinkError::Io)?;
        Ok(Self::new(fd, options))
    }

    /// Write to what has this name now.
    pub(super) fn open(stream: &Stream, options: Options) -> Result<Self, SinkError> {
        let failed = SinkError::os("cannot be opened");
        let mut flags = OFlags::WRONLY | OFlags::NOCTTY | OFlags::CLOEXEC;
        let stat = statat(&stream.dir, &stream.name, rustix::fs::AtFlags::empty());
        // Only /dev/fd/3 and the like can be a regular file here. Opening it anew loses the
        // position of descriptor 3, which is nearly always the end.
        if stat.is_ok_and(|s| FileType::from_raw_mode(s.st_mode) == FileType::RegularFile) {
            flags |= OFlags::APPEND;
        }
        let fd = retry(|| openat(&stream.dir, &stream.name, flags, Mode::empty()));
        Ok(Self::new(fd.map_err(failed)?, options))
    }

    fn new(fd: OwnedFd, options: Options) -> Self {
        outlive_sigxfsz();
        os::enlarge_pipe(&fd);
        Self { file: fd.into(), options, position: Mutex::new(0) }
    }

    /// Write all of `bytes`, counting what could be written.
    fn write_all(&self, mut bytes: &[u8], position: &mut u64) -> io::Result<()> {
        while !bytes.is_empty() {
            match (&self.file).write(bytes) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => {
                    bytes = bytes.get(count..).unwrap_or_default();
                    *position += count as u64;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    os::wait(&self.file, PollFlags::OUT)?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl Sink for DirectSink {
    fn order(&self) -> WriteOrder {
        WriteOrder::Ascending
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), SinkError> {
        let mut position = self.position.lock().unwrap_or_else(PoisonError::into_inner);
        if offset != *position {
            return Err(SinkError::OutOfOrder { expected: *position, offset });
        }
        let count = bytes.len() as u64;
        if let Some(len) = self.options.len
            && count > len.saturating_sub(offset)
        {
            return Err(SinkError::Beyond { offset, count, len });
        }
        self.write_all(bytes, &mut position).map_err(|error| match error.kind() {
            ErrorKind::BrokenPipe => SinkError::Closed,
            _ => SinkError::Io(error),
        })
    }

    fn commit(self: Box<Self>) -> Result<(), SinkError> {
        let written = self.position.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(len) = self.options.len
            && written != len
        {
            return Err(SinkError::Incomplete { written, len });
        }
        // Only a file has a disk to wait for. One on the network is waited for in any case, since
        // it may keep its errors for `close`, whose result nobody sees.
        let regular = self.file.metadata().is_ok_and(|metadata| metadata.is_file());
        if regular && (self.options.fsync || os::is_network(&self.file)) {
            self.file.sync_all().map_err(SinkError::os("cannot be brought to the disk"))?;
        }
        Ok(())
    }
}
