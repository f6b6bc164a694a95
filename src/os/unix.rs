//! Calls that all POSIX systems have: by descriptor, limits, standard streams, pipes.

#![allow(unsafe_code)]

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata, OpenOptions};
use std::io::{Result as IoResult, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
pub(crate) use std::os::unix::fs::FileExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use memmap2::{Mmap, MmapRaw, UncheckedAdvice};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
pub(crate) use rustix::{fs, io, path};
use signal_hook::consts::{SIGINT, SIGPIPE, SIGQUIT, SIGXFSZ};
use signal_hook::iterator::Signals;

use fd::AsFd;
use fs::{AtFlags, Dir, FlockOperation, OFlags, fcntl_getfl, flock, linkat, readlinkat};
#[cfg(not(any(target_os = "netbsd", target_os = "openbsd")))]
use fs::{SeekFrom, seek};
use io::{Errno, Result, retry_on_intr};

use super::files::{Advice, StdStream};
pub(crate) use super::sigbus::Watch;
use super::signals::{end_by, ending_signals};

pub(crate) mod fd {
    pub(crate) use std::os::fd::{AsFd, OwnedFd};
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

/// Open a file to read it; a terminal does not become the process's controlling terminal.
pub(crate) fn open_to_read(path: &Path) -> IoResult<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_NOCTTY).open(path)
}

/// Open a file to read it, and to write it if `writes`; opening a FIFO does not wait for its other end.
pub(crate) fn open_at_once(path: &Path, writes: bool) -> IoResult<File> {
    let flags = libc::O_NOCTTY | libc::O_NONBLOCK;
    OpenOptions::new().read(true).write(writes).custom_flags(flags).open(path)
}

/// Duplicate the descriptor of an open file, such as a standard stream.
pub(crate) fn duplicate(fd: impl AsFd) -> IoResult<File> {
    fd.as_fd().try_clone_to_owned().map(File::from)
}

/// The permission bits of a file.
pub(crate) fn permissions(found: &Metadata) -> u32 {
    found.mode() & 0o777
}

/// The text of a symbolic link.
pub(crate) fn link_text(dir: impl AsFd, name: &OsStr) -> Result<PathBuf> {
    let link = readlinkat(dir, name, Vec::new())?;
    Ok(PathBuf::from(OsString::from_vec(link.into_bytes())))
}

/// The path alone: on POSIX systems the shell has expanded patterns.
pub fn expanded(path: &Path) -> Vec<PathBuf> {
    vec![path.to_owned()]
}

/// Give a file of a folder a second name there.
pub(crate) fn link_aside(dir: impl AsFd, name: &OsStr, other: &str) -> Result<()> {
    linkat(&dir, name, &dir, other, AtFlags::empty())
}

/// The name with these bytes, from a file or a user.
pub fn name_of(bytes: Vec<u8>) -> OsString {
    OsString::from_vec(bytes)
}

/// The names in an open folder.
pub(crate) fn names_in(folder: impl AsFd) -> Result<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in retry_on_intr(|| Dir::read_from(&folder))? {
        let entry = match entry {
            Err(Errno::INTR) => continue,
            entry => entry?,
        };
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name != "." && name != ".." {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

/// Whether all writes to an open file append (`O_APPEND`). True where this is unknown.
pub(crate) fn appends(file: &File) -> bool {
    fcntl_getfl(file).map_or(true, |flags| flags.contains(OFlags::APPEND))
}

/// Lock a file for this process alone, until it is closed.
pub(crate) fn lock(file: &File) -> Result<()> {
    retry_on_intr(|| flock(file, FlockOperation::NonBlockingLockExclusive))
}

/// Tell the kernel how pages of a map will be used.
pub(crate) fn advise_map(map: &Mmap, start: usize, count: usize, advice: Advice) -> IoResult<()> {
    match advice {
        Advice::Sequential => map.advise_range(memmap2::Advice::Sequential, start, count),
        Advice::Random => map.advise_range(memmap2::Advice::Random, start, count),
        // SAFETY: the map is shared with the page cache and never written, so that a page comes back
        // with the file's bytes; the addresses of lent slices stay mapped.
        Advice::DontNeed | Advice::Evict => unsafe {
            map.unchecked_advise_range(UncheckedAdvice::DontNeed, start, count)
        },
        Advice::WillNeed | Advice::Populate | Advice::Load => Ok(()),
    }
}

/// Advise the kernel of random writes to a map: pages around them are not to be read.
pub(crate) fn expect_anywhere(map: &MmapRaw) {
    let _ = map.advise(memmap2::Advice::Random);
}

/// Drop pages from a map; written bytes stay written.
pub(crate) fn forget(map: &MmapRaw, start: usize, count: usize) {
    // SAFETY: the map is shared with the page cache, so that a page comes back with the written bytes.
    let _ = unsafe { map.unchecked_advise_range(UncheckedAdvice::DontNeed, start, count) };
}

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

/// Whether an error means that the process has too many open files.
pub fn is_too_many_open_files(error: &std::io::Error) -> bool {
    error.raw_os_error() == Some(libc::EMFILE)
}

/// The width of the terminal on standard output, in columns; 0 where there is none.
pub fn terminal_columns() -> u64 {
    rustix::termios::tcgetwinsize(std::io::stdout()).map_or(0, |size| size.ws_col.into())
}

/// Wait until a non-blocking descriptor has bytes to read.
pub(crate) fn wait_to_read(fd: impl AsFd) -> IoResult<()> {
    wait(fd, PollFlags::IN)
}

fn wait(fd: impl AsFd, ready: PollFlags) -> IoResult<()> {
    match poll(&mut [PollFd::new(&fd, ready)], None) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// A writer to a descriptor that waits where a non-blocking descriptor is not ready.
#[derive(Debug)]
pub struct Waiting<Fd>(pub Fd);

impl<Fd: AsFd> Write for Waiting<Fd> {
    fn write(&mut self, bytes: &[u8]) -> IoResult<usize> {
        // systems other than Linux refuse longer writes
        let some = &bytes[..bytes.len().min(1 << 30)];
        loop {
            match rustix::io::write(&self.0, some) {
                Err(Errno::AGAIN) => wait(&self.0, PollFlags::OUT)?,
                written => return Ok(written?),
            }
        }
    }

    fn flush(&mut self) -> IoResult<()> {
        Ok(())
    }
}

/// Call `clean` when a signal is about to end the process. Its argument is the function that ends the process.
pub(crate) fn before_end(clean: impl FnOnce(&dyn Fn()) + Send + 'static) -> IoResult<()> {
    let mut signals = Signals::new(ending_signals())?;
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        if let Some(signal) = signals.forever().next() {
            clean(&|| end_by(signal));
        }
    })?;
    Ok(())
}

/// Turn SIGXFSZ (file size limit, `ulimit -f`) into an error of `write`: with any handler installed, even an empty
/// one, the process is not killed.
pub(crate) fn survive_file_limit() {
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
}

/// End silently by SIGPIPE, as a program ends that writes to a closed pipe. Returns if the signal is blocked.
pub fn end_by_closed_pipe() {
    let _ = signal_hook::low_level::emulate_default_handler(SIGPIPE);
}

/// Note Ctrl-C in a flag instead of ending the process: while a pager runs, Ctrl-C is for the pager.
pub fn note_interrupts() -> Arc<AtomicBool> {
    let interrupted: Arc<AtomicBool> = Arc::default();
    for signal in [SIGINT, SIGQUIT] {
        let _ = signal_hook::flag::register(signal, Arc::clone(&interrupted));
    }
    interrupted
}

/// `None`: on POSIX systems the system's own words are used.
pub fn words(_: i32) -> Option<&'static str> {
    None
}

/// Does nothing: a replaced file that is in use has no name.
pub fn remove_unused() {}

pub(crate) fn truncate(file: &File, len: u64) -> IoResult<()> {
    file.set_len(len)
}

// Which standard streams were closed when the process began.
//
// Rust's runtime opens `/dev/null` in place of a closed descriptor 0, 1 or 2 before `main`: writing to it
// would lose all output and still succeed. To look for that `/dev/null` later is not exact: Python's
// `subprocess.DEVNULL` and many daemons open it read-write too, as the runtime does. So a function in
// `.init_array`, which the loader calls before the runtime, asks the kernel.

pub(crate) const STDIN: &[&str] = &["/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"];

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
