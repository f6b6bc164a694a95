//! The bytes of an input, wherever they come from.
//!
//! Two kinds: a [`Source`] gives any range at any time (a mapped file, a file read by position,
//! a spooled pipe); a [`Stream`] is a pipe as it comes, and can only go forward. This room opens
//! inputs and knows nothing of tensors.
//!
//! ```no_run
//! use std::io::Read;
//! use tslice::source::{Opened, IoMode, Reader, open};
//!
//! let mut magic = [0; 6];
//! match open("a.npy".as_ref(), IoMode::Auto)? {
//!     Opened::Random(source) => Reader::new(&*source).read_exact(&mut magic)?,
//!     Opened::Forward(mut stream) => stream.read_exact(&mut magic)?,
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::io::{self, Read};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

mod concat;
mod inflate;
mod memory;
mod mmap;
mod offset;
mod open;
mod pread;
mod reader;
mod stream;

pub use concat::ConcatSource;
pub use inflate::{DeflatedRange, InflateReader, InflatedSource};
pub use memory::MemorySource;
pub use mmap::MmapSource;
pub use offset::OffsetSource;
pub use open::{IoMode, OpenError, Opened, open, open_stdin};
pub use pread::PreadSource;
pub use reader::Reader;
pub use stream::{Stream, spool, spool_range};

/// Bytes that can be had in any order, by several threads at once.
pub trait Source: Send + Sync {
    /// The number of bytes there are.
    fn len(&self) -> u64;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of `range`, which must lie inside `0..len()`; mapped sources lend their own,
    /// others read into `scratch`.
    ///
    /// # Errors
    /// [`SourceError::OutOfBounds`] for a range that lies elsewhere, [`SourceError::Truncated`] where
    /// the file ends too early, [`SourceError::Io`] otherwise.
    fn window<'a>(
        &'a self,
        range: Range<u64>,
        scratch: &'a mut Vec<u8>,
    ) -> Result<&'a [u8], SourceError>;

    /// The longest range in bytes that should be asked for in one window where only a part of it
    /// is used; `None` where asking costs nothing (a map).
    fn window_limit(&self) -> Option<u64>;

    /// Whether everything that was lent so far was really there: an input that another process
    /// cut short while it was mapped is found out here. To be asked after the last window, and
    /// before a result is put in place.
    ///
    /// # Errors
    /// [`SourceError::Truncated`], and [`SourceError::Io`] where a page could not be read.
    fn verify(&self) -> Result<(), SourceError>;

    /// Whether byte `at` can be had without waiting for a disk; where that cannot be told, yes.
    fn is_cached(&self, at: u64) -> bool {
        let _ = at;
        true
    }

    /// Say how `range` is going to be used. A hint: it changes no bytes and cannot fail.
    fn advise(&self, range: Range<u64>, advice: Advice) {
        let _ = (range, advice);
    }
}

impl Source for Arc<dyn Source> {
    fn len(&self) -> u64 {
        self.as_ref().len()
    }

    fn window<'a>(
        &'a self,
        range: Range<u64>,
        scratch: &'a mut Vec<u8>,
    ) -> Result<&'a [u8], SourceError> {
        self.as_ref().window(range, scratch)
    }

    fn window_limit(&self) -> Option<u64> {
        self.as_ref().window_limit()
    }

    fn verify(&self) -> Result<(), SourceError> {
        self.as_ref().verify()
    }

    fn advise(&self, range: Range<u64>, advice: Advice) {
        self.as_ref().advise(range, advice);
    }
}

/// Bytes that come once, in order.
pub trait Forward: Read {
    /// How many bytes have been read or skipped.
    fn position(&self) -> u64;

    /// Throw `count` bytes away.
    ///
    /// # Errors
    /// [`SourceError::UnexpectedEnd`] where there were fewer, and [`SourceError::Io`].
    fn skip(&mut self, count: u64) -> Result<(), SourceError>;
}

impl Forward for Stream {
    fn position(&self) -> u64 {
        Stream::position(self)
    }

    fn skip(&mut self, count: u64) -> Result<(), SourceError> {
        Stream::skip(self, count)
    }
}

/// What can be said beforehand about the use of a range of a [`Source`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// From its beginning to its end: read ahead.
    Sequential,
    /// Here and there: don't read ahead.
    Random,
    /// Soon: begin to read it from the disk, and don't wait.
    WillNeed,
    /// At once, by this thread: map its pages in one call, waiting for the disk. Only a map does
    /// something here.
    Populate,
}

/// Why bytes of an input could not be had.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The operating system refused.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The input became shorter while it was being read.
    #[error("the file was cut short while it was being read")]
    Truncated,
    /// A pipe ended before bytes that were to be skipped; the position in bytes where it ended.
    #[error("the input ends after {0} bytes")]
    UnexpectedEnd(u64),
    /// A range in bytes that was asked for, where the source has only `len`.
    #[error("bytes {start} to {end} were asked for, of {len}")]
    OutOfBounds {
        /// The first byte.
        start: u64,
        /// The byte after the last one.
        end: u64,
        /// How many there are.
        len: u64,
    },
    /// One of several files failed.
    #[error("{name}: {error}")]
    File {
        /// Its name.
        name: String,
        /// Why.
        error: Box<SourceError>,
    },
    /// The temporary file that keeps a pipe's bytes could not be written.
    #[error("the input cannot be kept in {}: {error}", dir.display())]
    Spool {
        /// Where it was to be.
        dir: PathBuf,
        /// Why not.
        error: io::Error,
    },
}

impl From<SourceError> for io::Error {
    fn from(error: SourceError) -> Self {
        match error {
            SourceError::Io(error) => error,
            early @ (SourceError::Truncated | SourceError::UnexpectedEnd(_)) => {
                io::Error::new(io::ErrorKind::UnexpectedEof, early)
            }
            other => io::Error::other(other),
        }
    }
}

/// The length of `range` in bytes, where it lies inside `0..len`.
fn checked_len(range: &Range<u64>, len: u64) -> Result<usize, SourceError> {
    let Range { start, end } = *range;
    if start <= end && end <= len {
        // What doesn't fit into memory can't be lent as a slice.
        usize::try_from(end - start).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory).into())
    } else {
        Err(SourceError::OutOfBounds { start, end, len })
    }
}
