//! The place where an output grows: whole or not at all.
//!
//! A [`Sink`] takes bytes, at any position ([`WriteOrder::Any`]) or only in order. `commit`
//! consumes it and puts the output in place; dropping it leaves what stood there before. What
//! the bytes mean, and what the path was called on the command line, is not known here.
//!
//! ```no_run
//! use tslice::sink::{Options, Target, create};
//!
//! let sink = create(&Target::Path("out.npy".into()), Options { len: Some(4), ..Options::default() })?;
//! sink.write_at(0, b"\x93NUM")?;
//! sink.commit()?;
//! # Ok::<(), tslice::sink::SinkError>(())
//! ```

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Once};

use rustix::fs::{Access, AtFlags, accessat};
use rustix::io::Errno;

use self::place::Place;
use self::spooled::SpooledSink;
use crate::os::stdio::{Standard, closed_at_start};

mod deflate;
mod direct;
mod duplicate;
mod file;
mod folder;
mod litter;
mod patch;
mod place;
mod record;
mod shared;
mod spooled;
mod zip;

pub use deflate::DeflateSink;
pub use direct::DirectSink;
pub use file::FileSink;
pub use folder::FolderSink;
pub use patch::Patch;
pub use shared::Shared;
pub use zip::{ZipLayout, ZipMember, ZipSink};

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
    /// [`SinkError::Io`], [`SinkError::Closed`]; [`SinkError::OutOfOrder`] and
    /// [`SinkError::Beyond`] where the caller is mistaken.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), SinkError>;

    /// Put the output in place: every byte of it has been written.
    ///
    /// # Errors
    /// [`SinkError::Exists`] where a file came to be there in the meantime,
    /// [`SinkError::Incomplete`], [`SinkError::Os`]. What stood there before is still there then.
    fn commit(self: Box<Self>) -> Result<(), SinkError>;
}

/// Where an output goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Standard output.
    Stdout,
    /// A file, or an existing FIFO or device.
    Path(PathBuf),
}

/// How an output is put in place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
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
/// [`SinkError::Exists`], [`SinkError::Directory`], [`SinkError::StdoutClosed`]; the operating
/// system's, a missing directory and a full disk included.
pub fn create(target: &Target, options: Options) -> Result<Box<dyn Sink>, SinkError> {
    let path = match target {
        Target::Stdout => return Ok(Box::new(DirectSink::stdout(options)?)),
        Target::Path(path) => path,
    };
    match place::resolve(path)? {
        Place::Stdout => Ok(Box::new(DirectSink::stdout(options)?)),
        Place::Stream(stream) => Ok(Box::new(DirectSink::open(&stream, options)?)),
        Place::File(entry) => Ok(Box::new(FileSink::at(entry, options, file::Naming::Unnamed)?)),
    }
}

/// Begin an output that is a copy of `original`, of as many bytes as it had when its header was
/// read, but for what is then written through the [`Patch`], which is to be done with before
/// `commit`. For a pipe the copy is made in a temporary file, and sent by `commit`.
///
/// # Errors
/// Those of [`create`], [`SinkError::OriginalShrunk`], and [`SinkError::Copy`] where `original` could not be read or there is no
/// room for it.
pub fn create_copy(
    target: &Target,
    options: Options,
    (original, len): (&File, u64),
) -> Result<(Box<dyn Sink>, Patch), SinkError> {
    let place = match target {
        Target::Stdout => Place::Stdout,
        Target::Path(path) => place::resolve(path)?,
    };
    let pipe = match place {
        Place::File(entry) => {
            let mut sink = FileSink::at(entry, options, file::Naming::Unnamed)?;
            let patch = sink.fill_from(original, len)?;
            return Ok((Box::new(sink), patch));
        }
        Place::Stdout => DirectSink::stdout(options)?,
        Place::Stream(stream) => DirectSink::open(&stream, options)?,
    };
    let (sink, patch) = SpooledSink::copy_of(original, len, pipe)?;
    Ok((Box::new(sink), patch))
}

/// What [`create`] would find wrong, without creating anything (`--dry-run`).
///
/// # Errors
/// Those of [`create`], but for those that only writing brings to light, such as a full disk.
pub fn check(target: &Target, options: Options) -> Result<(), SinkError> {
    let place = match target {
        Target::Stdout => Place::Stdout,
        Target::Path(path) => place::resolve(path)?,
    };
    let writable = |dir, name, access| {
        accessat(dir, name, access, AtFlags::EACCESS).map_err(SinkError::os("cannot be created"))
    };
    match place {
        Place::Stdout if closed_at_start(Standard::Output) => Err(SinkError::StdoutClosed),
        Place::Stdout => Ok(()),
        Place::Stream(stream) => writable(&stream.dir, &*stream.name, Access::WRITE_OK),
        Place::File(entry) => {
            entry.may_be_written(options)?;
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
    Exists,
    /// The output is a folder that holds files, which were not to be replaced.
    #[error("the folder exists and is not empty")]
    FolderExists,
    /// The output is a directory, or its name ends with a slash.
    #[error("is a directory")]
    Directory,
    /// Only a file can be written at any position.
    #[error("not a regular file, which alone can be written at any position")]
    NotAFile,
    /// The file that is written in place became shorter.
    #[error("the file was cut short while it was being written")]
    Shrunk,
    /// The file that was to be copied became shorter.
    #[error("the file was cut short while it was being copied")]
    OriginalShrunk,
    /// The file that was to be copied could not be, or not to this place.
    #[error("cannot be copied: {0}")]
    Copy(io::Error),
    /// Standard output was closed when the program began.
    #[error("standard output is closed")]
    StdoutClosed,
    /// The reader of the pipe went away: not worth a message.
    #[error("the pipe was closed by its reader")]
    Closed,
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
    Beyond {
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
fn outlive_sigxfsz() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let _ = signal_hook::flag::register(libc::SIGXFSZ, Arc::default());
    });
}

/// Repeat a system call that signals interrupt.
fn retry<T>(mut call: impl FnMut() -> rustix::io::Result<T>) -> rustix::io::Result<T> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}
