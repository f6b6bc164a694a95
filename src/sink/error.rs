//! Why outputs could not be written.

use std::io;
use std::path::PathBuf;

use super::parts::PartsError;
use crate::os::read_from_stdout;

/// Why an output could not be written. Messages don't name the output: the caller adds the path.
#[derive(Debug, thiserror::Error)]
pub enum SinkError {
    /// The output exists, and [`SinkOptions::force`](super::SinkOptions::force) is not set.
    #[error("the file exists")]
    AlreadyExists,
    /// The output is a folder that is not empty, and [`SinkOptions::force`](super::SinkOptions::force) is not set.
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
    pub(super) fn refuse_input() -> Result<(), SinkError> {
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
pub(super) fn end_within(offset: u64, count: u64, len: u64) -> Result<u64, SinkError> {
    let end = offset.checked_add(count).filter(|&end| end <= len);
    end.ok_or(SinkError::OutOfBounds { offset, count, len })
}
