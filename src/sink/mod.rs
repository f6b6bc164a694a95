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
use std::path::PathBuf;
use std::sync::{Arc, Once};

use rustix::fs::{Access, AtFlags, accessat};

use self::resolve::Resolved;
use self::spooled::SpooledSink;
use crate::os::stdio::{StdStream, closed_at_start};

mod copy_file;
mod file;
mod folder;
mod in_place;
mod resolve;
mod spooled;
mod stream;
mod temp_name;
mod writable_map;
mod zip;

pub use file::FileSink;
pub use folder::FolderSink;
pub use in_place::InPlaceFile;
pub use stream::StreamSink;
pub use writable_map::WritableMap;
pub use zip::{DeflatedZipSink, ZipLayout, ZipMember, ZipSink};

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
}

/// Open an output.
///
/// # Errors
/// [`SinkError::AlreadyExists`], [`SinkError::IsADirectory`], [`SinkError::StdoutClosed`]; the operating
/// system's errors, such as a missing directory or a full disk, as [`SinkError::Os`].
pub fn create(target: &Destination, options: SinkOptions) -> Result<Box<dyn Sink>, SinkError> {
    let path = match target {
        Destination::Stdout => return Ok(Box::new(StreamSink::stdout(options)?)),
        Destination::Path(path) => path,
    };
    match resolve::resolve(path)? {
        Resolved::Stdout => Ok(Box::new(StreamSink::stdout(options)?)),
        Resolved::Special(stream) => Ok(Box::new(StreamSink::open(&stream, options)?)),
        Resolved::File(entry) => Ok(Box::new(FileSink::at(entry, options, file::Naming::Unnamed)?)),
    }
}

/// Open an output that starts as a copy of the first `len` bytes of `original`. Changes are written
/// through the returned [`InPlaceFile`], which must be finished before `commit`. For a pipe, the copy
/// is made in a temporary file and `commit` sends it.
///
/// # Errors
/// Those of [`create`], [`SinkError::OriginalTruncated`], and [`SinkError::Copy`] if `original` cannot
/// be read or the copy does not fit on the disk.
pub fn create_copy(
    target: &Destination,
    options: SinkOptions,
    (original, len): (&File, u64),
) -> Result<(Box<dyn Sink>, InPlaceFile), SinkError> {
    let place = match target {
        Destination::Stdout => Resolved::Stdout,
        Destination::Path(path) => resolve::resolve(path)?,
    };
    let pipe = match place {
        Resolved::File(entry) => {
            let mut sink = FileSink::at(entry, options, file::Naming::Unnamed)?;
            let patch = sink.fill_from(original, len)?;
            return Ok((Box::new(sink), patch));
        }
        Resolved::Stdout => StreamSink::stdout(options)?,
        Resolved::Special(stream) => StreamSink::open(&stream, options)?,
    };
    let (sink, patch) = SpooledSink::copy_of(original, len, pipe)?;
    Ok((Box::new(sink), patch))
}

/// Make the checks of [`create`] without creating anything (`--dry-run`).
///
/// # Errors
/// Those of [`create`], except those that show only in writing, such as a full disk.
pub fn check(target: &Destination, options: SinkOptions) -> Result<(), SinkError> {
    let place = match target {
        Destination::Stdout => Resolved::Stdout,
        Destination::Path(path) => resolve::resolve(path)?,
    };
    let writable = |dir, name, access| {
        accessat(dir, name, access, AtFlags::EACCESS).map_err(SinkError::os("cannot be created"))
    };
    match place {
        Resolved::Stdout if closed_at_start(StdStream::Output) => Err(SinkError::StdoutClosed),
        Resolved::Stdout => Ok(()),
        Resolved::Special(stream) => writable(&stream.dir, &*stream.name, Access::WRITE_OK),
        Resolved::File(entry) => {
            entry.check_overwrite(options)?;
            writable(&entry.dir, ".".as_ref(), Access::WRITE_OK | Access::EXEC_OK)
        }
    }
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
