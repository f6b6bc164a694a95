//! Which file an open descriptor leads to, whatever its name.

use std::io;
use std::os::fd::AsFd;

use rustix::fs::{FileType, Stat, fstat};

/// A regular file or a block device: the same for all its hard links, symbolic links and
/// descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    /// The file of a descriptor. `None` for what holds no bytes to be overwritten: pipes, sockets,
    /// terminals, directories.
    ///
    /// # Errors
    /// Those of `fstat`.
    pub(crate) fn of(fd: impl AsFd) -> io::Result<Option<FileId>> {
        Ok(FileId::from_stat(&fstat(fd)?))
    }

    /// The same of what `stat` found.
    pub(crate) fn from_stat(stat: &Stat) -> Option<FileId> {
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile | FileType::BlockDevice => Some(FileId::any(stat)),
            _ => None,
        }
    }

    /// The same of what stands under a name, of whatever kind: a folder or a link, too.
    pub(crate) fn any(stat: &Stat) -> FileId {
        // some systems number devices by signed integers
        #[allow(clippy::unnecessary_cast)]
        FileId { device: stat.st_dev as u64, inode: stat.st_ino }
    }
}
