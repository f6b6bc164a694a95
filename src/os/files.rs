//! Open files: identity, limits, advice on reading; whether standard output is an input; which standard
//! streams there are.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::OnceLock;

use super::fd::AsFd;
use super::fs::{FileType, Stat, fstat, stat};
use super::next_hole;

/// A regular file or a block device, the same for all its links and descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    /// The identity of an open file; `None` for pipes, sockets, terminals and folders, whose bytes cannot be
    /// overwritten.
    pub(crate) fn of(fd: impl AsFd) -> io::Result<Option<FileId>> {
        Ok(FileId::from_stat(&fstat(fd)?))
    }

    /// [`FileId::of`] from the result of `stat`.
    pub(crate) fn from_stat(stat: &Stat) -> Option<FileId> {
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile | FileType::BlockDevice => Some(FileId::any(stat)),
            _ => None,
        }
    }

    /// The identity of any directory entry, folders and links included.
    pub(crate) fn any(stat: &Stat) -> FileId {
        // some systems number devices by signed integers
        #[allow(clippy::unnecessary_cast)]
        FileId { device: stat.st_dev as u64, inode: stat.st_ino }
    }
}

/// The identity of a file and its last changes, as this machine sees them; another machine may see other numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileVersion {
    pub(crate) file: FileId,
    pub(crate) size: u64,
    /// The times of the last change of the bytes (mtime) and of the status (ctime).
    pub(crate) mtime: (i64, i64),
    ctime: (i64, i64),
}

impl FileVersion {
    pub(crate) fn of(stat: &Stat) -> FileVersion {
        // types differ between systems
        #[allow(clippy::unnecessary_cast, clippy::useless_conversion)]
        FileVersion {
            file: FileId::any(stat),
            size: u64::try_from(stat.st_size).unwrap_or(0),
            mtime: (stat.st_mtime.into(), stat.st_mtime_nsec as i64),
            ctime: (stat.st_ctime.into(), stat.st_ctime_nsec as i64),
        }
    }
}

/// The length of an open file, in bytes.
pub(crate) fn file_len(file: impl AsFd) -> io::Result<u64> {
    Ok(u64::try_from(fstat(file)?.st_size).unwrap_or(0))
}

/// A file is said to have holes if at least this many of its bytes are not stored.
const HOLE: i64 = 16 << 10;

/// Whether a file has holes: zeros that take no blocks. Standard input is not asked, since asking moves its
/// position.
pub(crate) fn has_holes(file: &File) -> bool {
    let Ok(stat) = fstat(file) else { return false };
    // a compressed file takes fewer blocks, too
    let is_short = stat.st_blocks.saturating_mul(512).saturating_add(HOLE) <= stat.st_size;
    is_short
        && FileId::from_stat(&stat) != FileId::of(io::stdin()).ok().flatten()
        && next_hole(file, 0).is_ok_and(|at| at < stat.st_size as u64)
}

/// How a range of an input will be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// From beginning to end: read ahead.
    Sequential,
    /// Here and there: don't read ahead.
    Random,
    /// Soon: start reading from the disk, don't wait.
    WillNeed,
    /// Now, by this thread: fault in the pages in one call, waiting for the disk. For maps only.
    Populate,
    /// Now and all, by this thread: read in the kernel's largest units, waiting for the disk. For maps
    /// only.
    Load,
    /// No longer: unmap the pages; a later access brings them back. For maps only.
    DontNeed,
    /// No longer, where the input does not fit in memory: drop the pages from the page cache too.
    Evict,
}

// Whether standard output is a file that this run reads.
//
// `tslice info a.npy >> a.npy` would write what it reads; `cat a >> a` refuses that too. All inputs
// (tensors, lists, names of files) are opened in few places; each place notes the input here, and the code
// that writes to standard output asks.

static READ: OnceLock<String> = OnceLock::new();

/// Note that an input was opened. An empty file does not count: `> a.npy` has emptied it before.
pub fn note_read(input: impl AsFd, name: impl FnOnce() -> String) {
    if let Ok(stat) = fstat(input) {
        note(&stat, name);
    }
}

/// Note that a file will be opened: for commands that print before they open it.
pub fn note_will_read(path: &Path) {
    if let Ok(stat) = stat(path) {
        note(&stat, || path.display().to_string());
    }
}

fn note(stat: &Stat, name: impl FnOnce() -> String) {
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile || stat.st_size == 0 {
        return;
    }
    if FileId::of(io::stdout()).is_ok_and(|output| output == FileId::from_stat(stat)) {
        READ.get_or_init(name);
    }
}

pub(crate) fn read_from_stdout() -> Option<&'static str> {
    READ.get().map(String::as_str)
}

/// A standard stream that the program uses for data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StdStream {
    Input = 0,
    Output = 1,
}
