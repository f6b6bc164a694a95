//! Finding out what an input is, and opening it the best way.
//!
//! A regular file can be had in any order, mapped or read; a pipe, a terminal, a socket come
//! forward only; a block device is read by position. Standard input is whatever it was
//! redirected from, from where it stands.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use super::{Mapped, Positioned, Source, Stream};
use crate::os;
use crate::os::stdio::{Standard, closed_at_start};

/// How the bytes of a file are to be had (`--io`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Io {
    /// Mapped on local file systems, read by position on those of the network.
    #[default]
    Auto,
    /// Mapped.
    Mmap,
    /// Read by position.
    Read,
}

/// An input that was opened.
pub enum Input {
    /// Its bytes can be had in any order.
    Random(Box<dyn Source>),
    /// Its bytes come once.
    Forward(Stream),
}

impl std::fmt::Debug for Input {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Input::Random(source) => write!(f, "Random({} bytes)", source.len()),
            Input::Forward(stream) => f.debug_tuple("Forward").field(stream).finish(),
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
    Directory,
    /// A map was asked for, of something that has none.
    #[error("only a regular file can be mapped")]
    NotMappable,
    /// Standard input was closed when the program began.
    #[error("standard input is closed")]
    StdinClosed,
}

/// Open a file, a pipe or a device by its name.
///
/// # Errors
/// Those of [`OpenError`]; the path is left to the caller to name.
pub fn open(path: &Path, io: Io) -> Result<Input, OpenError> {
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
pub fn open_stdin(io: Io) -> Result<Input, OpenError> {
    if closed_at_start(Standard::Input) {
        return Err(OpenError::StdinClosed);
    }
    classify(File::from(io::stdin().as_fd().try_clone_to_owned()?), io)
}

fn classify(mut file: File, io: Io) -> Result<Input, OpenError> {
    let metadata = file.metadata()?;
    let kind = metadata.file_type();
    if kind.is_dir() {
        return Err(OpenError::Directory);
    }
    if kind.is_file() {
        let base = file.stream_position()?;
        let len = metadata.len().saturating_sub(base);
        return Ok(Input::Random(random(file, base, len, io)?));
    }
    if io == Io::Mmap {
        return Err(OpenError::NotMappable);
    }
    if kind.is_block_device() {
        let base = file.stream_position()?;
        let len = file.seek(SeekFrom::End(0))?.saturating_sub(base);
        return Ok(Input::Random(Box::new(Positioned::new(file, base, len))));
    }
    Ok(Input::Forward(file.into()))
}

/// A regular file, `len` bytes from `base` on. A map that the operating system refuses is an
/// error only where one was asked for.
pub(super) fn random(file: File, base: u64, len: u64, io: Io) -> io::Result<Box<dyn Source>> {
    if io == Io::Read || io == Io::Auto && os::is_network(&file) {
        return Ok(Box::new(Positioned::new(file, base, len)));
    }
    match Mapped::new(file, base, len) {
        Ok(mapped) => Ok(Box::new(mapped)),
        Err((_, Some(error))) if io == Io::Mmap => Err(error),
        Err((file, _)) => Ok(Box::new(Positioned::new(file, base, len))),
    }
}
