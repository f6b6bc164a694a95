//! A pipe or a character device, which is read once, in order.
//!
//! A [`Stream`] counts its position and skips bytes without copying them. [`spool`](super::spool())
//! writes the rest of it to a scratch file, for jobs that need random access.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::sync::{Arc, OnceLock};

use super::{Forward, SourceError, SourceResult};
use crate::os;
use crate::os::io::Errno;

const PIECE: usize = 256 << 10;

/// An input that is read once, in order.
#[derive(Debug)]
pub struct Stream {
    file: File,
    position: u64,
    /// Bytes that were peeked at and not yet read, in reverse order.
    peeked: Vec<u8>,
    /// `/dev/null`, which gets skipped bytes; opened at the first skip.
    dev_null: DevNull,
    /// Whether the stream is read to its end, beyond the needed bytes: so its writer can finish, and
    /// an end that comes too early is noticed.
    pub(crate) drains: bool,
    /// The reason for the end of the input, where another thread writes it and failed.
    fault: Arc<OnceLock<String>>,
}

#[derive(Debug)]
enum DevNull {
    Unopened,
    Open(File),
    /// Not a pipe, or no `/dev/null`: skipped bytes are read into a buffer.
    Unusable,
}

impl From<File> for Stream {
    fn from(file: File) -> Self {
        Stream::watched(file, Arc::default())
    }
}

impl Stream {
    /// The reading end of a pipe that another thread writes. Its end is an error where `fault` is set.
    pub(super) fn watched(file: File, fault: Arc<OnceLock<String>>) -> Stream {
        os::enlarge_pipe(&file);
        let dev_null = DevNull::Unopened;
        Stream { file, position: 0, peeked: Vec::new(), dev_null, drains: false, fault }
    }

    /// Check that the input did not end too early.
    fn end(&self) -> io::Result<()> {
        self.fault.get().map_or(Ok(()), |fault| Err(io::Error::other(fault.clone())))
    }

    /// The next `count` bytes, or all that remain, without consuming them.
    pub fn peek(&mut self, count: usize) -> io::Result<Vec<u8>> {
        let position = self.position;
        let mut first = Vec::new();
        Read::take(&mut *self, count as u64).read_to_end(&mut first)?;
        self.peeked.extend(first.iter().rev());
        self.position = position;
        Ok(first)
    }

    /// Skip between 1 and `most` bytes; returns 0 only at the end.
    fn discard(&mut self, most: u64) -> io::Result<u64> {
        if let DevNull::Unopened = self.dev_null {
            let null = OpenOptions::new().write(true).open("/dev/null");
            self.dev_null = null.map_or(DevNull::Unusable, DevNull::Open);
        }
        if let (DevNull::Open(null), true) = (&self.dev_null, self.peeked.is_empty()) {
            let most = usize::try_from(most).unwrap_or(usize::MAX).min(1 << 30);
            match os::discard(&self.file, null, most) {
                Ok(0) => return self.end().map(|()| 0),
                Ok(gone) => {
                    self.position += gone as u64;
                    return Ok(gone as u64);
                }
                // no bytes yet, or a signal: read this time
                Err(Errno::AGAIN | Errno::INTR) => {}
                // a real error will be met again by reading
                Err(_) => self.dev_null = DevNull::Unusable,
            }
        }
        let mut skipped = vec![0; most.min(PIECE as u64) as usize];
        Ok(self.read(&mut skipped)? as u64)
    }
}

impl Read for Stream {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if !self.peeked.is_empty() {
            let count = buf.len().min(self.peeked.len());
            for (byte, peeked) in
                buf.iter_mut().zip(self.peeked.drain(self.peeked.len() - count..).rev())
            {
                *byte = peeked;
            }
            self.position += count as u64;
            return Ok(count);
        }
        loop {
            match self.file.read(buf) {
                Ok(0) if !buf.is_empty() => return self.end().map(|()| 0),
                Ok(count) => {
                    self.position += count as u64;
                    return Ok(count);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    os::wait_to_read(&self.file)?;
                }
                Err(error) => return Err(error),
            }
        }
    }
}

impl Forward for Stream {
    fn position(&self) -> u64 {
        self.position
    }

    /// Skip `count` bytes; bytes of a pipe are not copied.
    fn skip(&mut self, count: u64) -> SourceResult<()> {
        let mut left = count;
        while left > 0 {
            match self.discard(left)? {
                0 => return Err(SourceError::UnexpectedEnd(self.position)),
                gone => left = left.saturating_sub(gone),
            }
        }
        Ok(())
    }
}
