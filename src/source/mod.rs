//! Sources, which read inputs.
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
mod piece_folder;
mod pieces;
pub mod remote;
mod spare;
mod stream;

pub use concat::ConcatSource;
pub(crate) use concat::FileOpener;
pub use file::{MmapSource, PreadSource, open_spooled, spool};
pub(crate) use file::{STEP, is_slow};
pub use inflate::{DeflatedRange, InflateReader, InflatedSource};
pub(crate) use open::sample;
pub use open::{IoMode, OpenError, Opened, open, open_file, open_stdin};
pub(crate) use piece_folder::PieceFolder;
pub(crate) use pieces::{OpenedPiece, PieceBox, PiecedTensors, PiecesSource, RangeSource};
#[cfg(any(feature = "hdf5", feature = "zarr"))]
pub(crate) use spare::spare_memory;
pub(crate) use spare::{LEAST_SPARE, drop_spare, keep_spare, spare_bytes};
pub use stream::Stream;

pub use crate::os::{
    Advice, FileId, is_too_many_open_files, note_read, note_will_read, raise_open_files,
};
pub(crate) use crate::os::{PAGE, mapped_pages, memory_bytes, open_at_once, permissions};

pub trait Source: Send + Sync {
    fn len(&self) -> u64;

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of `range`, which must lie inside `0..len()`. Mapped sources lend their own bytes,
    /// others read into `scratch`.
    fn window<'a>(&'a self, range: Range<u64>, scratch: &'a mut Vec<u8>) -> SourceResult<&'a [u8]>;

    /// Copy the bytes of `range` to `out`, which has its length. Files are read by position, even mapped
    /// ones: this needs no mapped page, and kernels read ahead of such reads more evenly.
    fn read(&self, range: Range<u64>, scratch: &mut Vec<u8>, out: &mut [u8]) -> SourceResult<()> {
        if let Some(behind) = self.behind() {
            return behind.read(range, scratch, out);
        }
        out.copy_from_slice(self.window(range, scratch)?);
        Ok(())
    }

    /// The source below this one, which has the same bytes at the same positions: by default all questions and hints go
    /// to it. `None` for bytes in memory, and for a source that answers by itself.
    fn behind(&self) -> Option<&dyn Source> {
        None
    }

    /// The longest window, in bytes, that is worth reading if only a part of it is used; `None` if unused
    /// bytes cost nothing (a map).
    fn window_limit(&self) -> Option<u64> {
        self.behind()?.window_limit()
    }

    /// Whether each read costs a round trip through a network. Then the bytes of a job are requested by
    /// [`WillNeed`](Advice::WillNeed), in the order of their use.
    fn is_remote(&self) -> bool {
        self.behind().is_some_and(Source::is_remote)
    }

    /// The end of the file that holds byte `at`, as a position of the source: no request reaches further.
    fn file_end(&self, at: u64) -> u64 {
        self.behind().map_or(self.len(), |behind| behind.file_end(at))
    }

    /// Whether more requests are useful: a source holds a bounded number of bytes.
    fn is_hungry(&self) -> bool {
        self.behind().is_some_and(Source::is_hungry)
    }

    /// Check that all windows so far held real bytes of the file, not lost pages after another process
    /// truncated it. Call it after the last window, and before committing a result.
    fn verify(&self) -> SourceResult<()> {
        self.behind().map_or(Ok(()), Source::verify)
    }

    /// The files that hold the bytes of `range`, and their ranges. Nothing for bytes that are only in
    /// memory.
    fn file_ranges(&self, range: Range<u64>) -> SourceResult<Vec<FileRange>> {
        self.behind().map_or(Ok(Vec::new()), |behind| behind.file_ranges(range))
    }

    /// The file that holds all of `range`, and the offset of the first byte in it; `None` where there is
    /// no such file.
    fn file(&self, range: Range<u64>) -> Option<(&File, u64)> {
        self.behind()?.file(range)
    }

    /// Whether a file has holes (zeros that take no space), which an output need not store either.
    fn has_holes(&self) -> bool {
        self.behind().is_some_and(Source::has_holes)
    }

    /// Whether the byte at position `at` is in memory; true if this is unknown.
    fn is_cached(&self, at: u64) -> bool {
        self.behind().is_none_or(|behind| behind.is_cached(at))
    }

    /// Whether the kernel reads far ahead of reads in order from position `at`. Advice to read ahead is
    /// slower then: the kernel follows it page by page.
    fn reads_ahead(&self, at: u64) -> bool {
        self.behind().is_none_or(|behind| behind.reads_ahead(at))
    }

    /// The unit, in bytes, in which [`Load`](Advice::Load) reads ranges, far faster than
    /// [`WillNeed`](Advice::WillNeed) does page by page; `None` where this is impossible.
    fn load_unit(&self) -> Option<u64> {
        self.behind()?.load_unit()
    }

    /// Tell how `range` will be used. A hint, which cannot fail.
    fn advise(&self, range: Range<u64>, advice: Advice) {
        if let Some(behind) = self.behind() {
            behind.advise(range, advice);
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileRange {
    pub file: FileId,
    pub range: Range<u64>,
}

impl FileRange {
    /// A range of an open file; `range` counts from byte `base` of the file.
    fn of(file: &File, base: u64, range: Range<u64>) -> SourceResult<Vec<FileRange>> {
        let range = base.saturating_add(range.start)..base.saturating_add(range.end);
        let id = FileId::of(file)?;
        Ok(id.into_iter().map(|file| FileRange { file, range: range.clone() }).collect())
    }

    /// Whether the range shares a byte with a range of the file `file`.
    pub fn overlaps(&self, file: FileId, range: &Range<u64>) -> bool {
        let start = self.range.start.max(range.start);
        self.file == file && start < self.range.end.min(range.end)
    }
}

/// Bytes that are read once, in order.
pub trait Forward: Read {
    /// The number of bytes that have been read or skipped.
    fn position(&self) -> u64;

    fn skip(&mut self, count: u64) -> SourceResult<()>;
}

pub type SourceResult<T> = Result<T, SourceError>;

/// Why an input could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// An error of the operating system.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// A remote file could not be read.
    #[error(transparent)]
    #[doc(hidden)]
    Remote(#[from] remote::RemoteError),
    /// The input became shorter while it was being read.
    #[error("the file was cut short while it was being read")]
    Truncated,
    /// The bytes have changed since an earlier read: a mask has another number of true elements.
    #[error("the file was changed while it was being read")]
    Changed,
    /// A pipe ended inside bytes to be skipped, after so many bytes.
    #[error("the input ends after {0} bytes")]
    UnexpectedEnd(u64),
    /// A range, in bytes, outside the source.
    #[error("bytes {start} to {end} of {len} were requested")]
    OutOfBounds {
        /// The first byte.
        start: u64,
        /// The byte after the last one.
        end: u64,
        len: u64,
    },
    /// A chunk of a tensor that cannot be decoded.
    #[error("chunk {at}: {reason}")]
    Chunk {
        /// The number of the chunk along each axis, as a tuple.
        at: String,
        /// The reason, in one line.
        reason: String,
    },
    /// An error in one of several files.
    #[error("{name}: {error}")]
    File {
        /// The name of the file.
        name: String,
        #[source]
        error: Box<SourceError>,
    },
    /// A file that an input names is not below its folder.
    #[error("the file lies outside the folder of the file that names it")]
    Outside,
    /// The scratch file for a pipe's bytes could not be written.
    #[error("the input cannot be kept in {}: {error}", dir.display())]
    Spool {
        /// The directory of the scratch file.
        dir: PathBuf,
        #[source]
        error: io::Error,
    },
}

impl SourceError {
    /// This error in one of several files.
    pub(crate) fn of_file(self, name: &str) -> SourceError {
        SourceError::File { name: name.to_owned(), error: Box::new(self) }
    }

    /// The error of a scratch file in `TMPDIR`.
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

/// The length of `range` in bytes; an error where it is outside `0..len`.
pub(crate) fn checked_len(range: &Range<u64>, len: u64) -> SourceResult<usize> {
    let Range { start, end } = *range;
    if start <= end && end <= len {
        // A range that doesn't fit in memory can't be lent as a slice.
        usize::try_from(end - start).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory).into())
    } else {
        Err(SourceError::OutOfBounds { start, end, len })
    }
}

/// The longest window, in bytes, that is worth reading for a part of it, in files read by position or
/// through networks.
const WINDOW: u64 = 1 << 20;

/// A window of a source that lends no bytes: they are [read](Source::read) to `scratch`, which never
/// shrinks, so that it is zeroed only once.
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

/// A source that owns its bytes and lends them.
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

// A reader (`std::io::Read`) of a `Source`, for headers.
//
// Short reads are served from a buffered page of 4 KiB, so that a small job touches only the header's
// page; a read longer than a page goes to the source directly.

/// The longest read from the source, in bytes.
const PIECE: u64 = 1 << 20;

/// A position that moves forward over a source.
pub struct Reader<'s> {
    source: &'s dyn Source,
    position: u64,
    /// Buffered bytes; `buffer[at..]` are the bytes from `position`.
    buffer: Vec<u8>,
    at: usize,
    scratch: Vec<u8>,
}

impl<'s> Reader<'s> {
    /// The bytes that a short read brings in, if there are so many.
    pub const PAGE: u64 = 4096;

    pub fn new(source: &'s dyn Source) -> Self {
        Self { source, position: 0, buffer: Vec::new(), at: 0, scratch: Vec::new() }
    }

    pub fn at(source: &'s dyn Source, position: u64) -> Self {
        Self { position, ..Self::new(source) }
    }

    /// The position of the next byte in the source.
    pub fn position(&self) -> u64 {
        self.position
    }

    pub fn remaining(&self) -> u64 {
        self.source.len().saturating_sub(self.position)
    }

    /// Skip the next `len` bytes without reading them.
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
            // Up to a page boundary, so that no second page is read.
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
