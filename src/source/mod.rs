//! Reading inputs.
//!
//! A [`Source`] gives any range at any time (a mapped file, a file read by position, a spooled pipe);
//! a [`Stream`] is a pipe, which is read once, in order. Sources know nothing of tensors.
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

use std::fs::File;
use std::io;
use std::io::{BufRead, Read};
use std::ops::Range;
use std::path::PathBuf;

mod concat;
mod file;
mod inflate;
mod open;
pub mod remote;
mod stream;

pub use concat::{ConcatSource, FilePool};
pub use file::{MmapSource, PreadSource, open_spooled, spool};
pub(crate) use file::{STEP, is_slow};
pub use inflate::{DeflatedRange, InflateReader, InflatedSource};
pub use open::{IoMode, OpenError, Opened, open, open_file, open_stdin, sample};
pub use stream::Stream;

pub use crate::os::{
    Advice, FileId, is_too_many_open_files, note_read, note_will_read, raise_open_files,
};
pub(crate) use crate::os::{NO_WAIT, PAGE, mapped_pages, memory_bytes};

/// Bytes with random access, for several threads at once.
pub trait Source: Send + Sync {
    /// The number of bytes there are.
    fn len(&self) -> u64;

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of `range`, which must lie inside `0..len()`; mapped sources lend their own,
    /// others read into `scratch`.
    fn window<'a>(&'a self, range: Range<u64>, scratch: &'a mut Vec<u8>) -> SourceResult<&'a [u8]>;

    /// Copy the bytes of `range` to `out`, which has as many. Files are read by position, mapped ones
    /// too: no page need be mapped for it, and kernels read ahead of such reads more evenly.
    fn read(&self, range: Range<u64>, scratch: &mut Vec<u8>, out: &mut [u8]) -> SourceResult<()> {
        if let Some(behind) = self.behind() {
            return behind.read(range, scratch, out);
        }
        out.copy_from_slice(self.window(range, scratch)?);
        Ok(())
    }

    /// The source that has the same bytes at the same positions, knows how they are best read, and
    /// takes the hints: what is not said here is asked of it. `None` for bytes in memory, where
    /// nothing is gained by any order, and for a source that says all by itself.
    fn behind(&self) -> Option<&dyn Source> {
        None
    }

    /// The longest window in bytes worth reading if only a part of it is used; `None` if unused
    /// bytes cost nothing (a map).
    fn window_limit(&self) -> Option<u64> {
        self.behind()?.window_limit()
    }

    /// The longest gap between two ranges that is cheaper to read than to ask for each by itself;
    /// `None` where asking costs next to nothing. Where there is one, [`WillNeed`](Advice::WillNeed)
    /// is how the bytes of a job are asked for, in the order in which they are used.
    fn request_gap(&self) -> Option<u64> {
        self.behind()?.request_gap()
    }

    /// Where the file ends that holds byte `at`, in bytes of the source: no request reaches further.
    fn file_end(&self, at: u64) -> u64 {
        self.behind().map_or(self.len(), |behind| behind.file_end(at))
    }

    /// Whether there is use for more such advice: a source keeps a bounded number of bytes.
    fn is_hungry(&self) -> bool {
        self.behind().is_some_and(Source::is_hungry)
    }

    /// Check that all windows so far held real bytes of the file, and not pages lost because another
    /// process truncated it. Call it after the last window and before committing a result.
    fn verify(&self) -> SourceResult<()> {
        self.behind().map_or(Ok(()), Source::verify)
    }

    /// Where the bytes of `range` lie: in which files, and in which ranges of them. Nothing for bytes
    /// that are in memory only.
    fn places(&self, range: Range<u64>) -> SourceResult<Vec<FileRange>> {
        self.behind().map_or(Ok(Vec::new()), |behind| behind.places(range))
    }

    /// The file that holds all of `range`, and the position in it of the first byte; `None` where
    /// there is no such file.
    fn file(&self, range: Range<u64>) -> Option<(&File, u64)> {
        self.behind()?.file(range)
    }

    /// Whether a file has zeros that take no space, which an output need not store either.
    fn has_holes(&self) -> bool {
        self.behind().is_some_and(Source::has_holes)
    }

    /// Whether byte `at` is in memory; true if that is unknown.
    fn is_cached(&self, at: u64) -> bool {
        self.behind().is_none_or(|behind| behind.is_cached(at))
    }

    /// Whether the kernel reads far ahead of who reads in order from byte `at` on. To ask it for the
    /// same makes it slower then: it takes what it is asked for page by page.
    fn reads_ahead(&self, at: u64) -> bool {
        self.behind().is_none_or(|behind| behind.reads_ahead(at))
    }

    /// The unit in bytes in which [`Load`](Advice::Load) brings ranges in, at far less cost than
    /// [`WillNeed`](Advice::WillNeed) does page by page; `None` where there is no such way.
    fn load_unit(&self) -> Option<u64> {
        self.behind()?.load_unit()
    }

    /// Tell how `range` is going to be used. A hint, which cannot fail.
    fn advise(&self, range: Range<u64>, advice: Advice) {
        if let Some(behind) = self.behind() {
            behind.advise(range, advice);
        }
    }
}

/// Some bytes of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileRange {
    pub file: FileId,
    pub range: Range<u64>,
}

impl FileRange {
    /// A range of an open file: from byte `base` of the file on, `range` is counted from there.
    fn of(file: &File, base: u64, range: Range<u64>) -> SourceResult<Vec<FileRange>> {
        let range = base.saturating_add(range.start)..base.saturating_add(range.end);
        let id = FileId::of(file)?;
        Ok(id.into_iter().map(|file| FileRange { file, range: range.clone() }).collect())
    }

    /// Whether they share a byte with a range of the file `file`.
    pub fn overlaps(&self, file: FileId, range: &Range<u64>) -> bool {
        let start = self.range.start.max(range.start);
        self.file == file && start < self.range.end.min(range.end)
    }
}

/// Bytes that are read once, in order.
pub trait Forward: Read {
    /// How many bytes have been read or skipped.
    fn position(&self) -> u64;

    fn skip(&mut self, count: u64) -> SourceResult<()>;
}

/// What comes of reading.
pub type SourceResult<T> = Result<T, SourceError>;

/// Why an input could not be read.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The operating system's error.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// A remote file could not be read.
    #[error(transparent)]
    Remote(#[from] remote::RemoteError),
    /// The input became shorter while it was being read.
    #[error("the file was cut short while it was being read")]
    Truncated,
    /// Other bytes were read than before: a mask has not as many true elements as were counted.
    #[error("the file was changed while it was being read")]
    Changed,
    /// A pipe ended inside bytes that were to be skipped, after this many bytes.
    #[error("the input ends after {0} bytes")]
    UnexpectedEnd(u64),
    /// A range (bytes) that is not inside the source.
    #[error("bytes {start} to {end} were asked for, of {len}")]
    OutOfBounds {
        /// The first byte.
        start: u64,
        /// The byte after the last one.
        end: u64,
        /// How many there are.
        len: u64,
    },
    /// A chunk of a tensor that cannot be decoded: its number along each axis, and why.
    #[error("chunk {at}: {reason}")]
    Chunk {
        /// The number of the chunk along each axis, as a tuple.
        at: String,
        /// What is wrong with it, in one line.
        reason: String,
    },
    /// An error in one of several files.
    #[error("{name}: {error}")]
    File {
        /// The name of the file.
        name: String,
        /// What went wrong.
        error: Box<SourceError>,
    },
    /// The temporary file for a pipe's bytes could not be written.
    #[error("the input cannot be kept in {}: {error}", dir.display())]
    Spool {
        /// The directory of the temporary file.
        dir: PathBuf,
        /// What went wrong.
        error: io::Error,
    },
}

impl SourceError {
    /// The error of a temporary file in `TMPDIR`.
    pub(crate) fn unspooled(error: io::Error) -> SourceError {
        SourceError::Spool { dir: std::env::temp_dir(), error }
    }
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
pub(crate) fn checked_len(range: &Range<u64>, len: u64) -> SourceResult<usize> {
    let Range { start, end } = *range;
    if start <= end && end <= len {
        // What doesn't fit into memory can't be lent as a slice.
        usize::try_from(end - start).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory).into())
    } else {
        Err(SourceError::OutOfBounds { start, end, len })
    }
}

/// The longest window in bytes that is worth reading for a part of it, of files that are read by position
/// and through networks.
const WINDOW: u64 = 1 << 20;

/// A window of a source that lends none: its bytes are [read](Source::read) to the scratch memory, which
/// never shrinks, so that it is zeroed only once.
fn read_window<'a>(
    source: &dyn Source,
    range: Range<u64>,
    scratch: &'a mut Vec<u8>,
) -> SourceResult<&'a [u8]> {
    let count = checked_len(&range, source.len())?;
    if scratch.len() < count {
        scratch.resize(count, 0);
    }
    let window = &mut scratch[..count];
    source.read(range, &mut Vec::new(), window)?;
    Ok(window)
}

/// A source that lends bytes it owns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemorySource(pub Vec<u8>);

impl Source for MemorySource {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn window<'a>(
        &'a self,
        range: Range<u64>,
        _scratch: &'a mut Vec<u8>,
    ) -> SourceResult<&'a [u8]> {
        let count = checked_len(&range, self.len())?;
        let start = range.start as usize;
        Ok(&self.0[start..start + count])
    }
}

// `std::io::Read` on a `Source`, for headers.
//
// Short reads are served from a buffered page of 4 KiB, so that a small job touches only the
// header's page; a read longer than a page goes to the source directly.

/// The longest read from the source, in bytes.
const PIECE: u64 = 1 << 20;

/// A position that moves forward over a source.
pub struct Reader<'s> {
    source: &'s dyn Source,
    position: u64,
    /// Buffered bytes; those from `position` on are `buffer[at..]`.
    buffer: Vec<u8>,
    at: usize,
    scratch: Vec<u8>,
}

impl<'s> Reader<'s> {
    /// Short reads bring a page of so many bytes, as far as there are any.
    pub const PAGE: u64 = 4096;

    pub fn new(source: &'s dyn Source) -> Self {
        Self { source, position: 0, buffer: Vec::new(), at: 0, scratch: Vec::new() }
    }

    pub fn at(source: &'s dyn Source, position: u64) -> Self {
        Self { position, ..Self::new(source) }
    }

    /// Where the next byte stands in the source.
    pub fn position(&self) -> u64 {
        self.position
    }

    pub fn remaining(&self) -> u64 {
        self.source.len().saturating_sub(self.position)
    }

    /// Go on behind the next `len` bytes, which are not read.
    pub fn skip(&mut self, len: u64) {
        match usize::try_from(len) {
            Ok(count) if count <= self.buffer.len() - self.at => self.consume(count),
            _ => {
                self.position = self.position.saturating_add(len);
                self.at = self.buffer.len();
            }
        }
    }
}

impl Read for Reader<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.at < self.buffer.len() || (buf.len() as u64) < Self::PAGE {
            let buffered = self.fill_buf()?;
            let count = buffered.len().min(buf.len());
            buf[..count].copy_from_slice(&buffered[..count]);
            self.consume(count);
            return Ok(count);
        }
        let count = self.remaining().min(buf.len() as u64).min(PIECE);
        let window = self.source.window(self.position..self.position + count, &mut self.scratch)?;
        buf[..window.len()].copy_from_slice(window);
        self.position += count;
        Ok(window.len())
    }
}

impl BufRead for Reader<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.at >= self.buffer.len() && self.remaining() > 0 {
            // Up to a page boundary, so that no second page is touched.
            let end = self.source.len().min((self.position / Self::PAGE + 1) * Self::PAGE);
            let window = self.source.window(self.position..end, &mut self.scratch)?;
            self.buffer.clear();
            self.buffer.extend_from_slice(window);
            self.at = 0;
        }
        Ok(&self.buffer[self.at..])
    }

    fn consume(&mut self, count: usize) {
        let count = count.min(self.buffer.len() - self.at);
        self.at += count;
        self.position += count as u64;
    }
}
