//! Finding out what an input is, and opening it the best way.
//!
//! A regular file can be had in any order, mapped or read; a pipe, a terminal, a socket come
//! forward only; a block device is read by position. StdStream input is whatever it was
//! redirected from, from where it stands.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use super::{MmapSource, PreadSource, Source, Stream};
use crate::os;
use crate::os::stdio::{StdStream, closed_at_start};

/// How the bytes of a file are to be had (`--io`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IoMode {
    /// MmapSource on local file systems, read by position on those of the network.
    #[default]
    Auto,
    /// MmapSource.
    Mmap,
    /// Read by position.
    Read,
}

/// An input that was opened.
pub enum Opened {
    /// Its bytes can be had in any order.
    Random(Box<dyn Source>),
    /// Its bytes come once.
    Forward(Stream),
}

impl std::fmt::Debug for Opened {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Opened::Random(source) => write!(f, "Random({} bytes)", source.len()),
            Opened::Forward(stream) => f.debug_tuple("Forward").field(stream).finish(),
        }
    }
}

/// Why an input could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The operating system refused.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// It is a directory.
    #[error("is a directory")]
    IsADirectory,
    /// A map was asked for, of something that has none.
    #[error("only a regular file can be mapped")]
    NotMappable,
    /// StdStream input was closed when the program began.
    #[error("standard input is closed")]
    StdinClosed,
}

/// Open a file, a pipe or a device by its name.
///
/// # Errors
/// Those of [`OpenError`]; the path is left to the caller to name.
pub fn open(path: &Path, io: IoMode) -> Result<Opened, OpenError> {
    // By these names a file would be opened anew, at its first byte.
    if ["/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"].iter().any(|name| path == Path::new(name)) {
        return open_stdin(io);
    }
    // A terminal that is read must not become the one whose Ctrl-C reaches us.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NOCTTY).open(path)?;
    classify(file, io)
}

/// Open standard input. Where it is a regular file, its bytes are those from its present position
/// on, as they are to any program that reads it.
///
/// # Errors
/// Those of [`OpenError`].
pub fn open_stdin(io: IoMode) -> Result<Opened, OpenError> {
    if closed_at_start(StdStream::Input) {
        return Err(OpenError::StdinClosed);
    }
    classify(File::from(io::stdin().as_fd().try_clone_to_owned()?), io)
}

fn classify(mut file: File, io: IoMode) -> Result<Opened, OpenError> {
    let metadata = file.metadata()?;
    let kind = metadata.file_type();
    if kind.is_dir() {
        return Err(OpenError::IsADirectory);
    }
    if kind.is_file() {
        let base = file.stream_position()?;
        let len = metadata.len().saturating_sub(base);
        return Ok(Opened::Random(open_regular(file, base, len, io)?));
    }
    if io == IoMode::Mmap {
        return Err(OpenError::NotMappable);
    }
    if kind.is_block_device() {
        let base = file.stream_position()?;
        let len = file.seek(SeekFrom::End(0))?.saturating_sub(base);
        return Ok(Opened::Random(Box::new(PreadSource::new(file, base, len))));
    }
    Ok(Opened::Forward(file.into()))
}

/// A regular file, `len` bytes from `base` on. A map that the operating system refuses is an
/// error only where one was asked for.
pub(super) fn open_regular(
    file: File,
    base: u64,
    len: u64,
    io: IoMode,
) -> io::Result<Box<dyn Source>> {
    if io == IoMode::Read || io == IoMode::Auto && os::is_network(&file) {
        return Ok(Box::new(PreadSource::new(file, base, len)));
    }
    match MmapSource::new(file, base, len) {
        Ok(mapped) => Ok(Box::new(mapped)),
        Err((_, Some(error))) if io == IoMode::Mmap => Err(error),
        Err((file, _)) => Ok(Box::new(PreadSource::new(file, base, len))),
    }
}
