//! Windows: functions named like POSIX's calls (`fs`, `io`, `path`), and the other functions of `os`. Functions that
//! Windows lacks come from `other.rs`.

#![allow(unsafe_code)]

use std::ffi::OsStr;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{ErrorKind, Result as IoResult, Write};
use std::ops::Range;
use std::os::windows::fs::{FileExt as _, OpenOptionsExt};
use std::os::windows::io::{AsHandle, AsRawHandle, OwnedHandle};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use memmap2::{Mmap, MmapRaw};
use windows_sys::Wdk::Storage::FileSystem::{FileAccessInformation, NtQueryInformationFile};
use windows_sys::Win32::Foundation::{
    ERROR_PIPE_NOT_CONNECTED, ERROR_TOO_MANY_OPEN_FILES, HANDLE, INVALID_HANDLE_VALUE,
};
use windows_sys::Win32::Storage::FileSystem::{
    FILE_FLAG_BACKUP_SEMANTICS, FILE_REMOTE_PROTOCOL_INFO, FILE_WRITE_DATA, FileRemoteProtocolInfo,
    GetFileInformationByHandleEx, LOCKFILE_EXCLUSIVE_LOCK, LOCKFILE_FAIL_IMMEDIATELY, LockFileEx,
};
use windows_sys::Win32::System::Console::{
    CONSOLE_SCREEN_BUFFER_INFO, GetConsoleMode, GetConsoleScreenBufferInfo, GetStdHandle,
    STD_INPUT_HANDLE, STD_OUTPUT_HANDLE, SetConsoleCtrlHandler, WriteConsoleW,
};
use windows_sys::Win32::System::IO::{IO_STATUS_BLOCK, OVERLAPPED, OVERLAPPED_0, OVERLAPPED_0_0};
use windows_sys::Win32::System::SystemInformation::{GlobalMemoryStatusEx, MEMORYSTATUSEX};

use super::files::{Advice, StdStream};
#[cfg(feature = "remote")]
pub(crate) use super::other::machine_vendor;
pub use super::other::{EXCHANGES_NAMES, UNNAMED_FILES};
pub(crate) use super::other::{
    LOADED, advise_file, attribute, clone_file, clone_over, clone_range, copy_range, discard,
    enlarge_pipe, exchange, is_cached, is_fixed, is_in_memory, link_unnamed, load, load_to_write,
    mapped_pages, open_place, open_unnamed, open_within_mount, populate, populate_to_write,
    reads_ahead, set_attribute, settle, take_attributes,
};
use io::{Errno, Result};

pub(crate) mod fs;
pub(crate) mod io;
pub(crate) mod path;

pub(crate) mod fd {
    pub(crate) use std::os::windows::io::{AsHandle as AsFd, OwnedHandle as OwnedFd};
}
pub use fs::remove_unused;
pub(crate) use fs::rename_if_free as rename_to_free;
pub(crate) use fs::truncate;
pub use io::words;
pub use path::{expanded, name_of};

/// Reading and writing by position. The handle's own position moves too; none of these calls uses it.
pub(crate) trait FileExt {
    fn read_at(&self, out: &mut [u8], at: u64) -> IoResult<usize>;

    fn read_exact_at(&self, out: &mut [u8], at: u64) -> IoResult<()>;

    fn write_all_at(&self, bytes: &[u8], at: u64) -> IoResult<()>;
}

/// The most bytes of one call.
const MOST: usize = 1 << 30;

impl FileExt for File {
    fn read_at(&self, out: &mut [u8], at: u64) -> IoResult<usize> {
        let most = out.len().min(MOST);
        self.seek_read(&mut out[..most], at)
    }

    fn read_exact_at(&self, mut out: &mut [u8], mut at: u64) -> IoResult<()> {
        while !out.is_empty() {
            match self.read_at(out, at)? {
                0 => return Err(ErrorKind::UnexpectedEof.into()),
                count => {
                    out = &mut out[count..];
                    at += count as u64;
                }
            }
        }
        Ok(())
    }

    fn write_all_at(&self, mut bytes: &[u8], mut at: u64) -> IoResult<()> {
        while !bytes.is_empty() {
            match self.seek_write(&bytes[..bytes.len().min(MOST)], at)? {
                0 => return Err(ErrorKind::WriteZero.into()),
                count => {
                    bytes = &bytes[count..];
                    at += count as u64;
                }
            }
        }
        Ok(())
    }
}

pub(crate) fn next_data(_: &File, _: u64) -> Result<u64> {
    Err(Errno::NOSYS)
}

pub(crate) fn next_hole(_: &File, _: u64) -> Result<u64> {
    Err(Errno::NOSYS)
}

pub(crate) fn open_to_read(path: &Path) -> IoResult<File> {
    open_at_once(path, false)
}

/// Open a file to read it, and to write it if `writes`. Without `writes` a folder opens too: the caller refuses it by
/// its kind.
pub(crate) fn open_at_once(path: &Path, writes: bool) -> IoResult<File> {
    if writes && path.is_dir() {
        return Err(ErrorKind::IsADirectory.into());
    }
    let flags = if writes { 0 } else { FILE_FLAG_BACKUP_SEMANTICS };
    OpenOptions::new().read(true).write(writes).custom_flags(flags).open(path)
}

/// Duplicate the handle of an open file, such as a standard stream.
pub(crate) fn duplicate(file: impl AsHandle) -> IoResult<File> {
    file.as_handle().try_clone_to_owned().map(File::from)
}

pub(crate) fn permissions(found: &Metadata) -> u32 {
    if found.permissions().readonly() { 0o444 } else { 0o666 }
}

pub(crate) fn link_text(dir: impl AsHandle, name: &OsStr) -> Result<PathBuf> {
    Ok(std::fs::read_link(path::below(fs::path_of_handle(&dir)?, name.as_ref()))?)
}

/// Always fails: a second name of an open file could not be removed again.
pub(crate) fn link_aside(_: impl AsHandle, _: &OsStr, _: &str) -> Result<()> {
    Err(Errno::PERM)
}

pub(crate) fn path_of(dir: &OwnedHandle) -> PathBuf {
    fs::path_of_handle(dir).map(path::plain).unwrap_or_default()
}

pub(crate) fn names_in(folder: impl AsHandle) -> Result<Vec<std::ffi::OsString>> {
    let entries = std::fs::read_dir(fs::path_of_handle(&folder)?)?;
    Ok(entries.map(|entry| entry.map(|entry| entry.file_name())).collect::<IoResult<_>>()?)
}

/// Whether a handle may only append, as Cygwin's shell opens `>>`.
pub(crate) fn appends(file: &File) -> bool {
    let mut status = IO_STATUS_BLOCK::default();
    let mut access = 0u32;
    // SAFETY: the handle is open, and the result has the length that is given.
    let outcome = unsafe {
        NtQueryInformationFile(
            file.as_raw_handle(),
            &raw mut status,
            (&raw mut access).cast(),
            size_of_val(&access) as u32,
            FileAccessInformation,
        )
    };
    outcome >= 0 && access & FILE_WRITE_DATA == 0
}

/// Lock a file for this process alone, until it is closed. The locked byte is far beyond the end of any file, so that
/// readers of the file need not wait.
pub(crate) fn lock(file: &File) -> Result<()> {
    let at = OVERLAPPED_0_0 { Offset: u32::MAX - 1, OffsetHigh: i32::MAX.cast_unsigned() };
    let mut place = OVERLAPPED { Anonymous: OVERLAPPED_0 { Anonymous: at }, ..Default::default() };
    let flags = LOCKFILE_EXCLUSIVE_LOCK | LOCKFILE_FAIL_IMMEDIATELY;
    // SAFETY: the handle is open and not asynchronous, so that the structure is not used after the call.
    let locked = unsafe { LockFileEx(file.as_raw_handle(), flags, 0, 1, 0, &raw mut place) };
    if locked == 0 { Err(Errno::last()) } else { Ok(()) }
}

pub(crate) fn allocate(file: impl AsHandle, range: Range<u64>) -> Result<()> {
    let file = duplicate(file)?;
    // a file that is not sparse has room for all of its length
    if file.metadata()?.len() < range.end { Ok(file.set_len(range.end)?) } else { Ok(()) }
}

/// Does nothing: the file has room for its length.
pub(crate) fn allocate_within(_: impl AsHandle, _: Range<u64>) -> Result<()> {
    Err(Errno::NOSYS)
}

pub(crate) fn is_descriptors(_: impl AsHandle) -> bool {
    false
}

/// Whether a file is on another machine.
pub(crate) fn is_network(file: impl AsHandle) -> bool {
    let mut info = FILE_REMOTE_PROTOCOL_INFO::default();
    // SAFETY: the handle is open, and the result has the length that is given.
    let remote = unsafe {
        GetFileInformationByHandleEx(
            file.as_handle().as_raw_handle(),
            FileRemoteProtocolInfo,
            (&raw mut info).cast(),
            size_of_val(&info) as u32,
        )
    };
    remote != 0
}

pub(crate) fn memory_bytes() -> u64 {
    let len = size_of::<MEMORYSTATUSEX>() as u32;
    let mut memory = MEMORYSTATUSEX { dwLength: len, ..Default::default() };
    // SAFETY: the result has the length that it names.
    let known = unsafe { GlobalMemoryStatusEx(&raw mut memory) };
    if known == 0 { 0 } else { memory.ullTotalPhys }
}

// Maps. On Windows a mapped file cannot be truncated, and so no page of a map is lost.

/// Watches one map, on systems where pages of it may be lost.
#[derive(Debug)]
pub(crate) struct Watch;

impl Watch {
    pub(crate) fn new(_: Range<usize>, _: bool) -> Option<Watch> {
        Some(Watch)
    }

    pub(crate) fn lost(&self) -> Option<usize> {
        None
    }
}

pub(crate) fn advise_map(_: &Mmap, _: usize, _: usize, _: Advice) -> IoResult<()> {
    Ok(())
}

pub(crate) fn expect_anywhere(_: &MmapRaw) {}

pub(crate) fn forget(_: &MmapRaw, _: usize, _: usize) {}

/// Does nothing: there is no such limit.
pub fn raise_open_files() {}

pub(crate) fn open_file_limit() -> u64 {
    1 << 20
}

/// Whether an error means that the process has too many open files.
pub fn is_too_many_open_files(error: &std::io::Error) -> bool {
    error.raw_os_error() == Some(ERROR_TOO_MANY_OPEN_FILES.cast_signed())
}

// Standard streams.

pub(crate) const STDIN: &[&str] = &[];

fn standard(stream: StdStream) -> HANDLE {
    let number = match stream {
        StdStream::Input => STD_INPUT_HANDLE,
        StdStream::Output => STD_OUTPUT_HANDLE,
    };
    // SAFETY: the call takes a number alone.
    unsafe { GetStdHandle(number) }
}

pub(crate) fn closed_at_start(stream: StdStream) -> bool {
    let handle = standard(stream);
    handle.is_null() || handle == INVALID_HANDLE_VALUE
}

/// The width of the console on standard output, in columns; 0 where there is none.
pub fn terminal_columns() -> u64 {
    let mut info = CONSOLE_SCREEN_BUFFER_INFO::default();
    // SAFETY: a handle that is no console is refused, and the result has the expected type.
    let known = unsafe { GetConsoleScreenBufferInfo(standard(StdStream::Output), &raw mut info) };
    let width = i64::from(info.srWindow.Right) - i64::from(info.srWindow.Left) + 1;
    if known == 0 { 0 } else { u64::try_from(width).unwrap_or(0) }
}

pub(crate) fn wait_to_read(_: impl AsHandle) -> IoResult<()> {
    Ok(())
}

/// A writer to a handle, which also writes UTF-8 to consoles.
#[derive(Debug)]
pub struct Waiting<Handle>(pub Handle);

impl<Handle: AsHandle> Write for Waiting<Handle> {
    fn write(&mut self, bytes: &[u8]) -> IoResult<usize> {
        let handle = self.0.as_handle();
        let mut mode = 0;
        // SAFETY: a handle that is no console is refused, and the result has the expected type.
        if unsafe { GetConsoleMode(handle.as_raw_handle(), &raw mut mode) } == 0 {
            let written = duplicate(handle)?.write(&bytes[..bytes.len().min(MOST)]);
            return written.map_err(|error| match error.raw_os_error().map(i32::cast_unsigned) {
                // the pipe has no reader; the standard library does not know this number
                Some(ERROR_PIPE_NOT_CONNECTED) => ErrorKind::BrokenPipe.into(),
                _ => error,
            });
        }
        // consoles refuse long writes
        let some = &bytes[..bytes.len().min(4096)];
        let text = match std::str::from_utf8(some) {
            Err(error) if error.valid_up_to() > 0 => &some[..error.valid_up_to()],
            _ => some,
        };
        let wide: Vec<u16> = String::from_utf8_lossy(text).encode_utf16().collect();
        let mut written = 0;
        while written < wide.len() {
            let rest = &wide[written..];
            let mut count = 0;
            // SAFETY: the text has the given length; the handle is open.
            let outcome = unsafe {
                WriteConsoleW(
                    handle.as_raw_handle(),
                    rest.as_ptr(),
                    rest.len() as u32,
                    &raw mut count,
                    std::ptr::null(),
                )
            };
            if outcome == 0 {
                return Err(Errno::last().into());
            }
            written += (count as usize).max(1);
        }
        Ok(text.len())
    }

    fn flush(&mut self) -> IoResult<()> {
        Ok(())
    }
}

// Ctrl-C, Ctrl-Break and the end of the session.

type Clean = Box<dyn FnOnce(&dyn Fn()) + Send>;

static CLEAN: Mutex<Option<Clean>> = Mutex::new(None);

/// The exit status of a program that Ctrl-C ends.
const INTERRUPTED: u32 = 0xc000_013a;

unsafe extern "system" fn on_event(_: u32) -> i32 {
    let clean = CLEAN.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(clean) = clean {
        clean(&|| std::process::exit(INTERRUPTED.cast_signed()));
    }
    // the next handler ends the process
    0
}

/// Call `clean` when the console is about to end the process. Its argument is the function that ends the process.
pub(crate) fn before_end(clean: impl FnOnce(&dyn Fn()) + Send + 'static) -> IoResult<()> {
    *CLEAN.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(clean));
    // SAFETY: the handler is a function, and runs on a thread of its own.
    match unsafe { SetConsoleCtrlHandler(Some(on_event), 1) } {
        0 => Err(Errno::last().into()),
        _ => Ok(()),
    }
}

pub(crate) fn survive_file_limit() {}

/// Does nothing: on Windows the exit status is enough.
pub fn end_by_closed_pipe() {}

/// Always false: on Windows no other program handles Ctrl-C instead.
pub fn note_interrupts() -> Arc<AtomicBool> {
    Arc::default()
}
