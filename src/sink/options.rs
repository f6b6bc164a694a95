//! Where an output goes, and how it is put there.

use std::path::PathBuf;

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
    /// Whether some of the bytes may be [shared](super::Sink::share): the space is allocated by the first
    /// write, and only if nothing was shared before it.
    pub shares: bool,
    /// The permission bits of the file; without them an old file's, or those that the umask leaves.
    pub mode: Option<u32>,
}
