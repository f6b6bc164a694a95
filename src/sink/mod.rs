//! Sinks, which write outputs: a file appears under its name complete, or not at all.
//!
//! A [`Sink`] takes bytes, at any position ([`WriteOrder::Any`]) or only in order. A [`Draft`] is a sink that
//! becomes an output: `commit` consumes it and puts the output in place; dropping it without `commit` leaves the old
//! file. Sinks know nothing of tensors or command line flags.
//!
//! ```no_run
//! use tslice::sink::{Destination, SinkOptions, create};
//!
//! let sink = create(&Destination::Path("out.npy".into()), SinkOptions { len: Some(4), ..SinkOptions::default() })?;
//! sink.write_at(0, b"\x93NUM")?;
//! sink.commit()?;
//! # Ok::<(), tslice::sink::SinkError>(())
//! ```

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Once;

use crate::os::{is_network, read_from_stdout, survive_file_limit};

mod create;
mod file;
mod folder;
mod in_place;
mod parts;
mod placed;
mod resolve;
mod rights;
mod scratch;
mod several;
mod sharing;
mod stream;
mod temp_name;
mod zip;

pub use sharing::{BLOCK_BYTES, CopiedRange};
// public for the tests
#[doc(hidden)]
pub use create::create_named;
pub use create::{check, check_among, create, create_copy, overwritten_file};
pub use folder::{FileTree, FolderSink, FolderTree};
pub use in_place::{Growth, Hold, InPlaceFile, WritableMap};
pub use parts::{
    Begun, Difference, Fingerprint, FixedLayout, InputId, JobRecord, MAX_PARTS, PartJob,
    PartsError, PartsStatus, discard, status,
};
pub use placed::{PlacedOutputs, Replaced};
pub use resolve::{Targets, link_target};
pub use scratch::ScratchSink;
pub(crate) use scratch::scratch_fits;
pub use several::SeveralSinks;
pub use stream::StreamSink;
pub use zip::{DeflatedZipSink, ZipLayout, ZipSink};

#[doc(hidden)]
pub use crate::os::{
    EXCHANGES_NAMES, UNNAMED_FILES, Waiting, end_by_closed_pipe, expanded, name_of,
    note_interrupts, remove_unused, terminal_columns, words,
};

/// The order in which a sink takes its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteOrder {
    /// At any position, at any time, from several threads.
    Any,
    /// In ascending order without gaps, one call after the other.
    Ascending,
}

/// The receiver of an output's bytes.
pub trait Sink: Send + Sync {
    fn order(&self) -> WriteOrder {
        WriteOrder::Any
    }

    /// Whether no byte of the output is visible before it is put in place. False for streams.
    fn is_atomic(&self) -> bool {
        true
    }

    /// Write `bytes` at `offset`, counted from the beginning of the output. No byte may be
    /// written twice.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> SinkResult<()>;

    /// Prepare a [`write_at`](Sink::write_at), in any order of offsets: a sink that takes bytes in order and changes
    /// them does so here, for many workers at a time. The returned function writes, and is called in order.
    fn prepare<'a>(&'a self, offset: u64, bytes: &'a [u8]) -> PreparedWrite<'a> {
        Box::new(move || self.write_at(offset, bytes))
    }

    /// Let the output share, at `offset`, the blocks of a range of a file, as far as the file system allows. Returns
    /// the part of `range` that need not be written any more; empty where nothing is shared.
    fn share(&self, offset: u64, file: &File, range: Range<u64>) -> Range<u64> {
        let _ = (offset, file);
        range.start..range.start
    }

    /// Store no blocks of zeros, unless something was written already: the input has holes.
    fn keep_holes(&self) {}

    /// Begin to write a finished range to the disk; with `wait`, wait until it is there, and drop its pages from
    /// memory. Other ranges stay in memory as long as the kernel likes.
    fn settle(&self, range: Range<u64>, wait: bool) -> SinkResult<()> {
        let _ = (range, wait);
        Ok(())
    }

    /// Begin to read a range into memory that will be changed in part.
    fn expect(&self, range: Range<u64>) {
        let _ = range;
    }

    /// The map of the output, if runs of `run` bytes should be written through it instead of
    /// [`write_at`](Sink::write_at). Call [`verify`](Sink::verify) after writing.
    fn mapped(&self, run: u64) -> Option<&WritableMap> {
        let _ = run;
        None
    }

    /// Check that all bytes written through [`mapped`](Sink::mapped) reached the output.
    fn verify(&self) -> SinkResult<()> {
        Ok(())
    }
}

/// The second step of a write, which is called once.
pub type PreparedWrite<'a> = Box<dyn FnOnce() -> SinkResult<()> + 'a>;

/// An output that appears when it is complete. Dropping it leaves the old file or folder.
pub trait Draft: Sink {
    /// Finish the output after all elements: write the bytes after them, and check that no byte is missing, so that
    /// only [`place`](Draft::place) remains. Called once.
    fn seal(&mut self) -> SinkResult<()> {
        Ok(())
    }

    /// Close the file after [`seal`](Draft::seal), under a temporary name. So there can be more outputs at a time
    /// than descriptors. Does nothing where this is impossible.
    fn park(&mut self) -> SinkResult<()> {
        Ok(())
    }

    /// Open file number `file` of the output, in the order of positions, to change written bytes.
    fn patch(&self, file: usize) -> SinkResult<InPlaceFile> {
        let _ = file;
        Err(SinkError::NotRegularFile)
    }

    /// Put a sealed output in place. With `Replaced::Saved`, the replaced file is preserved, so that this step can be
    /// undone; for a stream it cannot. On an error the old file is still in place.
    fn place(self: Box<Self>, replaced: Replaced) -> SinkResult<PlacedOutputs>;

    fn commit(mut self: Box<Self>) -> SinkResult<()> {
        self.seal()?;
        self.place(Replaced::Removed)?.keep()
    }
}

/// Let writes beyond the file size limit (`ulimit -f`) fail instead of ending the process.
fn ignore_sigxfsz() {
    static ONCE: Once = Once::new();
    ONCE.call_once(survive_file_limit);
}

/// Wait for the disk, with `fsync` and on network file systems. Network file systems may report an error as late as at
/// `close`, whose result is not checked.
fn sync_file(file: &File, fsync: bool) -> SinkResult<()> {
    if fsync || is_network(file) {
        file.sync_all().map_err(SinkError::os("cannot be brought to the disk"))?;
    }
    Ok(())
}

pub type SinkResult<T> = Result<T, SinkError>;

/// Why an output could not be written. Messages don't name the output: the caller adds the path.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SinkError {
    /// The output exists, and [`SinkOptions::force`](SinkOptions::force) is not set.
    #[error("the file exists")]
    AlreadyExists,
    /// The output is a folder that is not empty, and [`SinkOptions::force`](SinkOptions::force) is not set.
    #[error("the folder exists and is not empty")]
    FolderNotEmpty,
    /// The output is a folder of another kind, which must not be replaced.
    #[error("the folder holds other files, and is not replaced")]
    OtherFolder,
    /// A link leads to a file that is named by its content.
    #[error("leads into a cache whose files are named by their content: {}", target.display())]
    NamedByContent {
        /// The file, in the folder of the cache.
        target: PathBuf,
    },
    /// Two of several outputs are one file.
    #[error("is the same file as {}, which is an output too", other.display())]
    SameFile {
        /// The path of the other output.
        other: PathBuf,
    },
    /// The output is a directory, or its name ends with a slash.
    #[error("is a directory")]
    IsADirectory,
    /// The path of a file to be changed in place is not a regular file.
    #[error("not a regular file: bytes cannot be written at any position")]
    NotRegularFile,
    /// A file became shorter while it was overwritten in place.
    #[error("the file was cut short while it was being written")]
    Truncated,
    /// A file became shorter while it was copied.
    #[error("the file was cut short while it was being copied")]
    OriginalTruncated,
    /// Standard output was closed when the program began.
    #[error("standard output is closed")]
    StdoutClosed,
    /// Standard output is a file that is also an input.
    #[error("input file is output file")]
    InputIsOutput,
    /// The reader of the pipe closed it; programs usually end silently then.
    #[error("the pipe was closed by its reader")]
    BrokenPipe,
    /// The positions of the writes could not be read; the output is not at fault.
    #[error("{0}")]
    Positions(Box<dyn std::error::Error + Send + Sync>),
    /// A sequential sink got a write at another offset than the expected one, in bytes.
    #[error("bytes were to be written at {offset}, where only {expected} can come next")]
    OutOfOrder {
        /// The offset of the next byte.
        expected: u64,
        /// The offset of the write.
        offset: u64,
    },
    /// A write past the end of the output, in bytes.
    #[error("{count} bytes were to be written at {offset}, of an output of {len}")]
    OutOfBounds {
        /// The offset of the write.
        offset: u64,
        /// The length of the write.
        count: u64,
        /// The length of the output.
        len: u64,
    },
    /// `commit` was called before all bytes were written.
    #[error("only {written} of {len} bytes were written")]
    Incomplete {
        /// The number of written bytes.
        written: u64,
        /// The length of the output.
        len: u64,
    },
    /// An error in one of several outputs, or one file of a folder.
    #[error("{}: {error}", path.display())]
    File {
        /// The path of the file.
        path: PathBuf,
        #[source]
        error: Box<SinkError>,
    },
    /// The set of outputs could neither be completed nor taken back as a whole.
    #[error("{error}; {left}")]
    NotUndone {
        /// Why the set could not be completed.
        #[source]
        error: Box<SinkError>,
        /// The files that are left, and their paths.
        left: String,
    },
    /// A step other than writing failed: creating, allocating, renaming, syncing.
    #[error("{what}: {error}")]
    Os {
        /// The failed step: "cannot be created".
        what: &'static str,
        #[source]
        error: io::Error,
    },
    /// Writing failed.
    #[error("{0}")]
    Io(#[source] io::Error),
    /// A part (`--part`) of the output could not be written.
    #[error(transparent)]
    #[doc(hidden)]
    Parts(#[from] PartsError),
}

impl SinkError {
    /// Refuse standard output where it is a file that is also an input, as `cat` does.
    pub(super) fn refuse_input() -> SinkResult<()> {
        match read_from_stdout() {
            None => Ok(()),
            Some(name) => Err(SinkError::InputIsOutput.of_file(name)),
        }
    }

    /// The error of one of several files.
    pub(crate) fn of_file(self, path: impl Into<PathBuf>) -> SinkError {
        SinkError::File { path: path.into(), error: Box::new(self) }
    }

    /// A function for `map_err` on the result of a system call.
    pub(in crate::sink) fn os<E: Into<io::Error>>(what: &'static str) -> impl Fn(E) -> Self + Copy {
        move |error| SinkError::Os { what, error: error.into() }
    }

    /// The error of the operating system, if there is one.
    pub fn io(&self) -> Option<&io::Error> {
        match self {
            SinkError::Os { error, .. } | SinkError::Io(error) => Some(error),
            SinkError::File { error, .. } | SinkError::NotUndone { error, .. } => error.io(),
            _ => None,
        }
    }
}

/// The end of `count` bytes at `offset`, in an output of `len` bytes.
pub(super) fn end_within(offset: u64, count: u64, len: u64) -> SinkResult<u64> {
    let end = offset.checked_add(count).filter(|&end| end <= len);
    end.ok_or(SinkError::OutOfBounds { offset, count, len })
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    Stdout,
    /// A file, or an existing FIFO or device.
    Path(PathBuf),
}

/// Options for creating an output and putting it in place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SinkOptions {
    /// Replace an existing file (`--force`).
    pub force: bool,
    /// Let `commit` wait until file and directory are on disk (`--fsync`).
    pub fsync: bool,
    /// The length of the output in bytes, if known: the space is allocated at once, and `commit` refuses any other
    /// length.
    pub len: Option<u64>,
    /// Whether some bytes may be [shared](Sink::share): the first write allocates the space, unless blocks were
    /// shared before it.
    pub shares: bool,
    /// The permission bits of the file; without them, the bits of the old file, or the bits that the umask leaves.
    pub mode: Option<u32>,
}
