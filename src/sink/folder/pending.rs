//! A file of a folder that is being written.

use crate::sink::file::FileSink;
use crate::sink::resolve::FileAt;

/// A file that has no name in its folder yet.
#[derive(Debug)]
pub(super) struct PendingFile {
    pub(super) name: String,
    /// The position of its first byte.
    pub(super) start: u64,
    /// Where it goes; in another folder, where a link leads there.
    pub(super) entry: FileAt,
    pub(super) sink: FileSink,
}
