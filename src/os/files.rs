//! Open files: identity, limits, advice on reading; whether standard output is an input; which standard
//! streams there are.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

use rustix::fs::{FileType, Stat, fstat, stat};
#[cfg(not(any(target_os = "netbsd", target_os = "openbsd")))]
use rustix::fs::{SeekFrom, seek};
#[cfg(any(target_os = "netbsd", target_os = "openbsd"))]
use rustix::io::Errno;
use rustix::io::Result;
#[cfg(not(any(target_os = "netbsd", target_os = "openbsd")))]
use rustix::io::retry_on_intr;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// A regular file or a block device, the same for all its links and descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    /// The file of a descriptor; `None` for what holds no bytes to overwrite: pipes, sockets, terminals,
    /// folders.
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

/// The start of the first data at or after a position; `ENXIO` where only a hole follows.
#[cfg(not(any(target_os = "netbsd", target_os = "openbsd")))]
pub(crate) fn next_data(file: &File, at: u64) -> Result<u64> {
    retry_on_intr(|| seek(file, SeekFrom::Data(at)))
}

/// The start of the first hole at or after a position; the end of the file counts as one.
#[cfg(not(any(target_os = "netbsd", target_os = "openbsd")))]
pub(crate) fn next_hole(file: &File, at: u64) -> Result<u64> {
    retry_on_intr(|| seek(file, SeekFrom::Hole(at)))
}

#[cfg(any(target_os = "netbsd", target_os = "openbsd"))]
pub(crate) fn next_data(_: &File, _: u64) -> Result<u64> {
    Err(Errno::NOSYS)
}

#[cfg(any(target_os = "netbsd", target_os = "openbsd"))]
pub(crate) fn next_hole(_: &File, _: u64) -> Result<u64> {
    Err(Errno::NOSYS)
}

/// A file with so many bytes that are not stored counts as a file with holes.
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

/// An open flag for `custom_flags`: an opened terminal does not become the process's controlling terminal.
pub(crate) const NO_TERMINAL: i32 = libc::O_NOCTTY;

/// Open flags for `custom_flags`: [`NO_TERMINAL`], and opening a FIFO does not wait for its other end.
pub(crate) const NO_WAIT: i32 = libc::O_NOCTTY | libc::O_NONBLOCK;

/// Raise the soft limit on open files to the hard limit. The soft limit, mostly 1,024, is meant for
/// programs that use `select`; a checkpoint of 700 files that is written as 700 others needs more. Only
/// programs call this: a library must not change the limits of its process.
pub fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_some() && limit.current != limit.maximum {
        // where the limit stays, opening one file too many will fail and say so
        let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    }
}

pub(crate) fn open_file_limit() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Whether an error says that the process has too many open files.
pub fn is_too_many_open_files(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EMFILE)
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

/// Note that a file will be opened, where something is printed before.
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

// Which standard streams were closed when the process began.
//
// Rust's runtime opens `/dev/null` in place of a closed descriptor 0, 1 or 2 before `main`: writing to it
// would lose all output and still succeed. To look for that `/dev/null` later is not exact: Python's
// `subprocess.DEVNULL` and many daemons open it read-write too, as the runtime does. So a function in
// `.init_array`, which the loader calls before the runtime, asks the kernel.

/// A standard stream that the program uses for data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StdStream {
    Input = 0,
    Output = 1,
}

pub(crate) const STDIN: [&str; 3] = ["/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"];

pub(crate) fn closed_at_start(stream: StdStream) -> bool {
    // A use of the entry keeps the linker from leaving it out of a program.
    std::hint::black_box(&ENTRY);
    CLOSED.load(Ordering::Relaxed) & (1 << stream as u8) != 0
}

static CLOSED: AtomicU8 = AtomicU8::new(0);

// SAFETY: the section holds pointers to C functions that the loader calls once, on the only thread, with
// arguments that a C function is free to ignore.
#[used]
#[cfg_attr(not(target_vendor = "apple"), unsafe(link_section = ".init_array"))]
#[cfg_attr(target_vendor = "apple", unsafe(link_section = "__DATA,__mod_init_func"))]
static ENTRY: extern "C" fn() = note_closed;

/// Note the closed streams. Runs before Rust's runtime, so it must use nothing of it: no allocation, no
/// panic.
extern "C" fn note_closed() {
    for stream in [StdStream::Input, StdStream::Output] {
        // SAFETY: `F_GETFD` only asks, whatever the descriptor is; `EBADF` is its one error.
        if unsafe { libc::fcntl(stream as libc::c_int, libc::F_GETFD) } == -1 {
            CLOSED.fetch_or(1 << stream as u8, Ordering::Relaxed);
        }
    }
}
