//! The place where an output grows: whole or not at all.
//!
//! A [`Sink`] takes bytes, at any position ([`WriteOrder::Any`]) or only in order. `commit`
//! consumes it and puts the output in place; dropping it leaves what stood there before. What
//! the bytes mean, and what the path was called on the command line, is not known here.
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

    /// Whether nothing is seen of the output before `commit`: a stream cannot take back.
    fn is_atomic(&self) -> bool {
        true
    }

    /// Write `bytes` at `offset`, counted from the beginning of the output. No byte is to be
    /// written twice.
    ///
    /// # Errors
    /// [`SinkError::Io`], [`SinkError::BrokenPipe`]; [`SinkError::OutOfOrder`] and
    /// [`SinkError::OutOfBounds`] where the caller is mistaken.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), SinkError>;

    /// The output in memory, where runs of `run` bytes are better written there than by
    /// [`write_at`](Sink::write_at). To be followed by [`verify`](Sink::verify).
    fn mapped(&self, run: u64) -> Option<&WritableMap> {
        let _ = run;
        None
    }

    /// Whether all that was written through [`mapped`](Sink::mapped) is in the output.
    ///
    /// # Errors
    /// [`SinkError::Io`] for want of disk, [`SinkError::Truncated`].
    fn verify(&self) -> Result<(), SinkError> {
        Ok(())
    }

    /// Put the output in place: every byte of it has been written.
    ///
    /// # Errors
    /// [`SinkError::AlreadyExists`] where a file came to be there in the meantime,
    /// [`SinkError::Incomplete`], [`SinkError::Os`]. What stood there before is still there then.
    fn commit(self: Box<Self>) -> Result<(), SinkError>;
}

/// Where an output goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// StdStream output.
    Stdout,
    /// A file, or an existing FIFO or device.
    Path(PathBuf),
}

/// How an output is put in place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SinkOptions {
    /// Replace a file that exists (`--force`).
    pub force: bool,
    /// Wait until the disk has it all (`--fsync`).
    pub fsync: bool,
    /// How many bytes there will be, where that is known: room is made for them at once, and
    /// `commit` refuses any other number.
    pub len: Option<u64>,
}

/// Open a place to write to.
///
/// # Errors
/// [`SinkError::AlreadyExists`], [`SinkError::IsADirectory`], [`SinkError::StdoutClosed`]; the operating
/// system's, a missing directory and a full disk included.
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

/// Begin an output that is a copy of `original`, of as many bytes as it had when its header was
/// read, but for what is then written through the [`InPlaceFile`], which is to be done with before
/// `commit`. For a pipe the copy is made in a temporary file, and sent by `commit`.
///
/// # Errors
/// Those of [`create`], [`SinkError::OriginalTruncated`], and [`SinkError::Copy`] where `original` could not be read or there is no
/// room for it.
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

/// What [`create`] would find wrong, without creating anything (`--dry-run`).
///
/// # Errors
/// Those of [`create`], but for those that only writing brings to light, such as a full disk.
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

/// Why an output could not be written. The path, or that it is standard output, is left to the
/// caller to name.
#[derive(Debug, thiserror::Error)]
pub enum SinkError {
    /// The output exists, and was not to be replaced.
    #[error("the file exists")]
    AlreadyExists,
    /// The output is a folder that holds files, which were not to be replaced.
    #[error("the folder exists and is not empty")]
    FolderNotEmpty,
    /// The output is a directory, or its name ends with a slash.
    #[error("is a directory")]
    IsADirectory,
    /// Only a file can be written at any position.
    #[error("not a regular file, which alone can be written at any position")]
    NotRegularFile,
    /// The file that is written in place became shorter.
    #[error("the file was cut short while it was being written")]
    Truncated,
    /// The file that was to be copied became shorter.
    #[error("the file was cut short while it was being copied")]
    OriginalTruncated,
    /// The file that was to be copied could not be, or not to this place.
    #[error("cannot be copied: {0}")]
    Copy(io::Error),
    /// StdStream output was closed when the program began.
    #[error("standard output is closed")]
    StdoutClosed,
    /// The reader of the pipe went away: not worth a message.
    #[error("the pipe was closed by its reader")]
    BrokenPipe,
    /// A write at `offset` where only one at `expected` is possible, in bytes.
    #[error("bytes were to be written at {offset}, where only {expected} can come next")]
    OutOfOrder {
        /// Where the next byte must go.
        expected: u64,
        /// Where it was to go.
        offset: u64,
    },
    /// A write past the end that was announced, in bytes.
    #[error("{count} bytes were to be written at {offset}, of an output of {len}")]
    OutOfBounds {
        /// Where they were to go.
        offset: u64,
        /// How many.
        count: u64,
        /// The length of the output.
        len: u64,
    },
    /// An output that is not complete was to be put in place.
    #[error("only {written} of {len} bytes were written")]
    Incomplete {
        /// How many bytes were written.
        written: u64,
        /// How many there should be.
        len: u64,
    },
    /// The operating system refused a step on the way from nothing to a file.
    #[error("{what}: {error}")]
    Os {
        /// What could not be done: "cannot be created".
        what: &'static str,
        /// Why not.
        error: io::Error,
    },
    /// The operating system refused to write.
    #[error("{0}")]
    Io(io::Error),
}

impl SinkError {
    /// To be mapped over a system call's result.
    fn os<E: Into<io::Error>>(what: &'static str) -> impl Fn(E) -> Self {
        move |error| SinkError::Os { what, error: error.into() }
    }

    /// The operating system's error, where it was one.
    pub fn io(&self) -> Option<&io::Error> {
        match self {
            SinkError::Os { error, .. } | SinkError::Io(error) => Some(error),
            _ => None,
        }
    }
}

/// Let a file that exceeds the process's limit (`ulimit -f`) be an error of `write` rather than
/// the death of the process. A handler that does nothing will do, and is safe to install.
fn ignore_sigxfsz() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let _ = signal_hook::flag::register(libc::SIGXFSZ, Arc::default());
    });
}
