//! A sink for standard output, and for existing FIFOs and devices.
//!
//! Bytes are visible as soon as they are written; `commit` only checks that none is missing. A
//! regular file on standard output (`> out.npy`) is written by position from its current offset,
//! unless it was opened with `>>`, where the kernel ignores positions; other streams are written in
//! order.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::io::{ErrorKind, Seek, SeekFrom, Write};
use std::sync::{Mutex, PoisonError};

use super::{
    Draft, PlacedOutputs, Replaced, Sink, SinkError, SinkOptions, SinkResult, WriteOrder,
    end_within, ignore_sigxfsz, sync_file,
};
use crate::os;
use crate::os::fd::OwnedFd;
use crate::os::fs::{AtFlags, FileType, Mode, OFlags, fstat, openat, statat};
use crate::os::io::retry_on_intr;
use crate::os::{FileExt, StdStream, Waiting, closed_at_start};

/// An output whose written bytes cannot be taken back: a pipe, a device, or an open file.
#[derive(Debug)]
pub struct StreamSink {
    file: File,
    options: SinkOptions,
    position: Mutex<u64>,
    /// The file offset of byte 0, if bytes may come in any order.
    start: Option<u64>,
}

impl StreamSink {
    pub fn stdout(options: SinkOptions) -> SinkResult<Self> {
        if closed_at_start(StdStream::Output) {
            return Err(SinkError::StdoutClosed);
        }
        SinkError::refuse_input()?;
        let file = os::duplicate(io::stdout()).map_err(SinkError::Io)?;
        Ok(Self::new(file, options))
    }

    pub(super) fn open(dir: &OwnedFd, name: &OsStr, options: SinkOptions) -> SinkResult<Self> {
        let failed = SinkError::os("cannot be opened");
        let mut flags = OFlags::WRONLY | OFlags::NOCTTY | OFlags::CLOEXEC;
        let stat = statat(dir, name, AtFlags::empty());
        // Only /dev/fd/3 and the like can be a regular file here. Opening it again loses the
        // offset of descriptor 3, which is nearly always the end.
        if stat.is_ok_and(|s| FileType::from_raw_mode(s.st_mode) == FileType::RegularFile) {
            flags |= OFlags::APPEND;
        }
        let fd = retry_on_intr(|| openat(dir, name, flags, Mode::empty()));
        Ok(Self::new(fd.map_err(failed)?.into(), options))
    }

    fn new(file: File, options: SinkOptions) -> Self {
        ignore_sigxfsz();
        os::enlarge_pipe(&file);
        let start = positional(&file);
        Self { file, options, position: Mutex::new(0), start }
    }

    fn write_all_at(&self, start: u64, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let at = start.checked_add(offset).ok_or(ErrorKind::FileTooLarge)?;
        self.file.write_all_at(bytes, at)?;
        *self.position.lock().unwrap_or_else(PoisonError::into_inner) += bytes.len() as u64;
        Ok(())
    }

    /// Write all of `bytes` in order; `position` counts the written bytes, also on errors.
    fn write_all(&self, mut bytes: &[u8], position: &mut u64) -> io::Result<()> {
        while !bytes.is_empty() {
            match Waiting(&self.file).write(bytes) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => {
                    bytes = bytes.get(count..).unwrap_or_default();
                    *position += count as u64;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// The current offset of a file that can be written by position.
fn positional(mut file: &File) -> Option<u64> {
    if is_regular(file) && !os::appends(file) { file.stream_position().ok() } else { None }
}

fn is_regular(file: &File) -> bool {
    fstat(file).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode).is_file())
}

impl Sink for StreamSink {
    fn order(&self) -> WriteOrder {
        if self.start.is_some() { WriteOrder::Any } else { WriteOrder::Ascending }
    }

    fn is_atomic(&self) -> bool {
        false
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> SinkResult<()> {
        end_within(offset, bytes.len() as u64, self.options.len.unwrap_or(u64::MAX))?;
        if let Some(start) = self.start {
            return self.write_all_at(start, offset, bytes).map_err(SinkError::Io);
        }
        let mut position = self.position.lock().unwrap_or_else(PoisonError::into_inner);
        if offset != *position {
            return Err(SinkError::OutOfOrder { expected: *position, offset });
        }
        self.write_all(bytes, &mut position).map_err(|error| match error.kind() {
            ErrorKind::BrokenPipe => SinkError::BrokenPipe,
            _ => SinkError::Io(error),
        })
    }
}

impl Draft for StreamSink {
    fn place(self: Box<Self>, _: Replaced) -> SinkResult<PlacedOutputs> {
        let written = self.position.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(len) = self.options.len
            && written != len
        {
            return Err(SinkError::Incomplete { written, len });
        }
        if let Some(start) = self.start {
            // the next program that writes to this redirection continues after the output
            (&self.file).seek(SeekFrom::Start(start + written)).map_err(SinkError::Io)?;
        }
        // only regular files can be synced
        if is_regular(&self.file) {
            sync_file(&self.file, self.options.fsync)?;
        }
        Ok(PlacedOutputs::default())
    }
}
