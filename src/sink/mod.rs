//! Writing outputs: a file appears under its name complete, or not at all.
//!
//! A [`Sink`] takes bytes, at any position ([`WriteOrder::Any`]) or only in order. A [`Draft`] is one
//! that becomes an output: `commit` consumes it and puts the output in place; dropping it without
//! `commit` leaves the old file.
//! Sinks know nothing of tensors or of command line flags.
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
use std::sync::{Arc, Once};

use signal_hook::consts::SIGXFSZ;

use crate::os::{is_network, read_from_stdout};

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
// what tests may expect
#[doc(hidden)]
pub use create::create_named;
pub use create::{check, check_among, create, create_copy, overwritten_file};
pub use folder::{FileTree, FolderSink, FolderTree};
pub use in_place::{Growth, Hold, InPlaceFile, WritableMap};
pub use parts::{
    Begun, Difference, Fingerprint, FixedFrame, InputId, JobRecord, MAX_PARTS, PartJob, PartsError,
    PartsStatus, discard, status,
};
pub use placed::{Old, Placed};
pub use resolve::{Targets, link_target};
pub use scratch::ScratchSink;
pub(crate) use scratch::scratch_fits;
pub use several::SeveralSinks;
pub use stream::StreamSink;
pub use zip::{DeflatedZipSink, ZipLayout, ZipSink};

#[doc(hidden)]
pub use crate::os::{EXCHANGES_NAMES, UNNAMED_FILES, Waiting};

/// In which order a sink takes its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteOrder {
    /// Any position at any time, from several threads.
    Any,
    /// Ascending and without a gap, one call after the other.
    Ascending,
}

/// What takes the bytes of an output.
pub trait Sink: Send + Sync {
    fn order(&self) -> WriteOrder {
        WriteOrder::Any
    }

    /// Whether nobody sees any byte of the output before it is put in place. False for streams.
    fn is_atomic(&self) -> bool {
        true
    }

    /// Write `bytes` at `offset`, counted from the beginning of the output. No byte may be
    /// written twice.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> SinkResult<()>;

    /// The first step of [`write_at`](Sink::write_at), which needs no turn: a sink that takes bytes in order and
    /// changes them does so here, for many workers at a time. What it returns is called in its turn.
    fn prepare<'a>(&'a self, offset: u64, bytes: &'a [u8]) -> PreparedWrite<'a> {
        Box::new(move || self.write_at(offset, bytes))
    }

    /// Let the output have, at `offset`, the blocks of a range of a file, as far as the file system
    /// lets both share them. Returns the part of `range` that need not be written any more, which is
    /// empty where nothing is shared.
    fn share(&self, offset: u64, file: &File, range: Range<u64>) -> Range<u64> {
        let _ = (offset, file);
        range.start..range.start
    }

    /// Store no blocks of zeros, if nothing was written yet: the input has some that it does not store.
    fn keep_holes(&self) {}

    /// Begin to bring a range that was written to the disk; with `wait`, do so to the end, and let memory
    /// have it. What is not told stays in memory as long as kernels like.
    fn settle(&self, range: Range<u64>, wait: bool) -> SinkResult<()> {
        let _ = (range, wait);
        Ok(())
    }

    /// Begin to bring a range into memory that is about to be changed in part.
    fn expect(&self, range: Range<u64>) {
        let _ = range;
    }

    /// The map of the output, if runs of `run` bytes should be written through it instead of
    /// [`write_at`](Sink::write_at). Call [`verify`](Sink::verify) after writing.
    fn mapped(&self, run: u64) -> Option<&WritableMap> {
        let _ = run;
        None
    }

    /// Check that everything written through [`mapped`](Sink::mapped) reached the output.
    fn verify(&self) -> SinkResult<()> {
        Ok(())
    }
}

/// The second step of a write, which is called once.
pub type PreparedWrite<'a> = Box<dyn FnOnce() -> SinkResult<()> + 'a>;

/// An output that appears when it is complete. Dropping it leaves what stood there before.
pub trait Draft: Sink {
    /// After all elements: write what stands behind them, and check that no byte is missing, so
    /// that [`place`](Draft::place) only has to put the output in place. Called once.
    fn seal(&mut self) -> SinkResult<()> {
        Ok(())
    }

    /// After [`seal`](Draft::seal): close the file, which gets a temporary name to be put in place by.
    /// So there can be more outputs at a time than descriptors. Does nothing where that cannot be.
    fn park(&mut self) -> SinkResult<()> {
        Ok(())
    }

    /// Open one of its files, by its number in the order of their positions, to change bytes that were written.
    fn patch(&self, file: usize) -> SinkResult<InPlaceFile> {
        let _ = file;
        Err(SinkError::NotRegularFile)
    }

    /// Put a sealed output in place. What it replaces may be kept, so that it can be taken back; an
    /// output that cannot be, such as a stream, stays. On an error the old file is still in place.
    fn place(self: Box<Self>, old: Old) -> SinkResult<Placed>;

    fn commit(mut self: Box<Self>) -> SinkResult<()> {
        self.seal()?;
        self.place(Old::Gone)?.keep()
    }
}

/// Turn SIGXFSZ (file size limit, `ulimit -f`) into an error of `write`: with any handler installed,
/// even one that does nothing, the process is not killed.
fn ignore_sigxfsz() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
    });
}

/// Wait for the disk where that was asked for, and on network file systems: they may report errors
/// only at `close`, whose result is not checked.
fn sync_file(file: &File, fsync: bool) -> SinkResult<()> {
    if fsync || is_network(file) {
        file.sync_all().map_err(SinkError::os("cannot be brought to the disk"))?;
    }
    Ok(())
}

/// What comes of writing.
pub type SinkResult<T> = Result<T, SinkError>;

/// Why an output could not be written. Messages don't name the output: the caller adds the path.
#[derive(Debug, thiserror::Error)]
pub enum SinkError {
    /// The output exists, and [`SinkOptions::force`](SinkOptions::force) is not set.
    #[error("the file exists")]
    AlreadyExists,
    /// The output is a folder that is not empty, and [`SinkOptions::force`](SinkOptions::force) is not set.
    #[error("the folder exists and is not empty")]
    FolderNotEmpty,
    /// The output is a folder of another kind, which is not replaced.
    #[error("the folder holds something else, and is not replaced")]
    OtherFolder,
    /// A link leads to a file that is named by what it holds.
    #[error("leads into a cache whose files are named by their content: {}", target.display())]
    NamedByContent {
        /// The file, in the folder of the cache.
        target: PathBuf,
    },
    /// Of several outputs, two are one file.
    #[error("is the same file as {}, which is an output too", other.display())]
    SameFile {
        /// The path of the other one.
        other: PathBuf,
    },
    /// The output is a directory, or its name ends with a slash.
    #[error("is a directory")]
    IsADirectory,
    /// A file was to be changed in place, and the path is no regular file.
    #[error("not a regular file, which alone can be written at any position")]
    NotRegularFile,
    /// A file became shorter while it was written in place.
    #[error("the file was cut short while it was being written")]
    Truncated,
    /// A file became shorter while it was copied.
    #[error("the file was cut short while it was being copied")]
    OriginalTruncated,
    /// Standard output was closed when the program began.
    #[error("standard output is closed")]
    StdoutClosed,
    /// Standard output is a file that is read.
    #[error("input file is output file")]
    InputIsOutput,
    /// The reader of the pipe closed it; programs usually end silently then.
    #[error("the pipe was closed by its reader")]
    BrokenPipe,
    /// The positions that bytes are written to could not be read; the output is not at fault.
    #[error("{0}")]
    Positions(Box<dyn std::error::Error + Send + Sync>),
    /// A sequential sink got a write at `offset` instead of `expected` (bytes).
    #[error("bytes were to be written at {offset}, where only {expected} can come next")]
    OutOfOrder {
        /// Where the next byte must go.
        expected: u64,
        /// Where it was to go.
        offset: u64,
    },
    /// A write past the end of the output (bytes).
    #[error("{count} bytes were to be written at {offset}, of an output of {len}")]
    OutOfBounds {
        /// Where they were to go.
        offset: u64,
        /// How many.
        count: u64,
        /// The length of the output.
        len: u64,
    },
    /// `commit` was called before all bytes were written.
    #[error("only {written} of {len} bytes were written")]
    Incomplete {
        /// How many bytes were written.
        written: u64,
        /// How many there should be.
        len: u64,
    },
    /// An error in one of several outputs, or one file of a folder.
    #[error("{}: {error}", path.display())]
    File {
        /// The path of the file.
        path: PathBuf,
        /// What went wrong.
        error: Box<SinkError>,
    },
    /// The set could not be made whole, nor all of it be taken back.
    #[error("{error}; {left}")]
    NotUndone {
        /// Why it could not be made whole.
        error: Box<SinkError>,
        /// What is left, and where.
        left: String,
    },
    /// A step other than writing failed: creating, allocating, renaming, syncing.
    #[error("{what}: {error}")]
    Os {
        /// What could not be done: "cannot be created".
        what: &'static str,
        /// What went wrong.
        error: io::Error,
    },
    /// Writing failed.
    #[error("{0}")]
    Io(io::Error),
    /// A part of the output could not be written.
    #[error(transparent)]
    Parts(#[from] PartsError),
}

impl SinkError {
    /// Refuse a standard output that is a file which is read, as cat does.
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

    /// For `map_err` on the result of a system call.
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

/// Where `count` bytes at `offset` end, in an output of `len`.
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

/// How an output is created and put in place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SinkOptions {
    /// Replace a file that exists (`--force`).
    pub force: bool,
    /// `commit` waits until file and directory are on disk (`--fsync`).
    pub fsync: bool,
    /// The length of the output in bytes, if it is known: the space is allocated at once, and
    /// `commit` refuses any other length.
    pub len: Option<u64>,
    /// Whether some of the bytes may be [shared](Sink::share): the space is allocated by the first
    /// write, and only if nothing was shared before it.
    pub shares: bool,
    /// The permission bits of the file; without them an old file's, or those that the umask leaves.
    pub mode: Option<u32>,
}
