//! Writing outputs: a file appears under its name complete, or not at all.
//!
//! A [`Sink`] takes bytes, at any position ([`WriteOrder::Any`]) or only in order. `commit`
//! consumes it and puts the output in place; dropping it without `commit` leaves the old file.
//! Sinks know nothing of tensors or of command line flags.
//!
//! ```no_run
//! use tslice::sink::{SinkOptions, Destination, create};
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

mod clone_range;
mod copy_file;
mod create;
mod file;
mod folder;
mod in_place;
mod parts;
mod resolve;
mod scratch;
mod several;
mod space;
mod spooled;
mod stream;
mod temp_name;
mod writable_map;
mod zip;

pub use clone_range::{BLOCK_BYTES, shared_len};
pub use create::{can_share, check, create, create_copy, overwritten_file};
pub use file::FileSink;
pub use folder::FolderSink;
pub use in_place::InPlaceFile;
pub use parts::{
    Begun, Difference, Fingerprint, FixedFrame, InputId, JobRecord, Part, PartSink, PartsError,
    PartsStatus, discard, status,
};
pub use scratch::ScratchSink;
pub use several::SeveralSinks;
pub use stream::StreamSink;
pub use writable_map::WritableMap;
pub use zip::{DeflatedZipSink, ZipLayout, ZipSink};

/// In which order a sink takes its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteOrder {
    /// Any position at any time, from several threads.
    Any,
    /// Ascending and without a gap, one call after the other.
    Ascending,
}

/// An output that is being written.
pub trait Sink: Send + Sync {
    /// In which order `write_at` may be called.
    fn order(&self) -> WriteOrder;

    /// Whether nobody sees any byte of the output before `commit`. False for streams.
    fn is_atomic(&self) -> bool {
        true
    }

    /// Write `bytes` at `offset`, counted from the beginning of the output. No byte may be
    /// written twice.
    ///
    /// # Errors
    /// [`SinkError::Io`], [`SinkError::BrokenPipe`]; [`SinkError::OutOfOrder`] and
    /// [`SinkError::OutOfBounds`] for a mistake of the caller.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), SinkError>;

    /// Let the output have, at `offset`, the blocks of a range of a file, as far as the file system
    /// lets both share them. Returns the part of `range` that need not be written any more, which is
    /// empty where nothing is shared.
    fn share(&self, offset: u64, file: &File, range: Range<u64>) -> Range<u64> {
        let _ = (offset, file);
        range.start..range.start
    }

    /// The map of the output, if runs of `run` bytes should be written through it instead of
    /// [`write_at`](Sink::write_at). Call [`verify`](Sink::verify) after writing.
    fn mapped(&self, run: u64) -> Option<&WritableMap> {
        let _ = run;
        None
    }

    /// Check that everything written through [`mapped`](Sink::mapped) reached the output.
    ///
    /// # Errors
    /// [`SinkError::Io`] for a full disk, [`SinkError::Truncated`].
    fn verify(&self) -> Result<(), SinkError> {
        Ok(())
    }

    /// After all elements: write what stands behind them, and check that no byte is missing, so
    /// that [`commit`](Sink::commit) only has to put the output in place. `commit` does the same
    /// where it was not done before.
    ///
    /// # Errors
    /// [`SinkError::Incomplete`] if bytes are missing, and those of [`write_at`](Sink::write_at).
    fn seal(&mut self) -> Result<(), SinkError> {
        Ok(())
    }

    /// After [`seal`](Sink::seal): close the file, which gets a temporary name to be put in place by.
    /// So there can be more outputs at a time than descriptors. Does nothing where that cannot be.
    ///
    /// # Errors
    /// [`SinkError::Os`].
    fn park(&mut self) -> Result<(), SinkError> {
        Ok(())
    }

    /// Put the output in place, after every byte of it was written.
    ///
    /// # Errors
    /// [`SinkError::AlreadyExists`] if another process created the file meanwhile,
    /// [`SinkError::Incomplete`] if bytes are missing, [`SinkError::Os`]. The old file is then
    /// still in place.
    fn commit(self: Box<Self>) -> Result<(), SinkError>;
}

/// Where an output goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// Standard output.
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
}

/// Why an output could not be written. Messages don't name the output: the caller adds the path.
#[derive(Debug, thiserror::Error)]
pub enum SinkError {
    /// The output exists, and [`SinkOptions::force`] is not set.
    #[error("the file exists")]
    AlreadyExists,
    /// The output is a folder that is not empty, and [`SinkOptions::force`] is not set.
    #[error("the folder exists and is not empty")]
    FolderNotEmpty,
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
    /// The original could not be read, or its copy could not be written.
    #[error("cannot be copied: {0}")]
    Copy(io::Error),
    /// Standard output was closed when the program began.
    #[error("standard output is closed")]
    StdoutClosed,
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
        /// Its path.
        path: PathBuf,
        /// Why.
        error: Box<SinkError>,
    },
    /// A step other than writing failed: creating, allocating, renaming, syncing.
    #[error("{what}: {error}")]
    Os {
        /// What could not be done: "cannot be created".
        what: &'static str,
        /// Why not.
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
    /// For `map_err` on the result of a system call.
    fn os<E: Into<io::Error>>(what: &'static str) -> impl Fn(E) -> Self {
        move |error| SinkError::Os { what, error: error.into() }
    }

    /// The error of the operating system, if there is one.
    pub fn io(&self) -> Option<&io::Error> {
        match self {
            SinkError::Os { error, .. } | SinkError::Io(error) => Some(error),
            SinkError::File { error, .. } => error.io(),
            _ => None,
        }
    }
}

/// Turn SIGXFSZ (file size limit, `ulimit -f`) into an error of `write`: with any handler installed,
/// even one that does nothing, the process is not killed.
fn ignore_sigxfsz() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let _ = signal_hook::flag::register(libc::SIGXFSZ, Arc::default());
    });
}
