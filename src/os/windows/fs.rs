//! Files and folders, in functions named like POSIX's calls. As in POSIX, a folder is an open handle. A name in a folder
//! is found by the folder's current path.

#![allow(unsafe_code)]

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::ops::{BitOr, BitOrAssign, Sub};
use std::os::windows::ffi::OsStringExt;
use std::os::windows::fs::{MetadataExt, OpenOptionsExt};
use std::os::windows::io::{AsHandle, AsRawHandle, BorrowedHandle, OwnedHandle};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use windows_sys::Win32::Foundation::{HANDLE, INVALID_HANDLE_VALUE};
use windows_sys::Win32::Storage::FileSystem::{
    BY_HANDLE_FILE_INFORMATION, FILE_ADD_FILE, FILE_FLAG_BACKUP_SEMANTICS,
    FILE_FLAG_OPEN_REPARSE_POINT, FILE_READ_ATTRIBUTES, FILE_STANDARD_INFO, FILE_TYPE_CHAR,
    FILE_TYPE_DISK, FileStandardInfo, GetDiskFreeSpaceExW, GetFileInformationByHandle,
    GetFileInformationByHandleEx, GetFileType, GetFinalPathNameByHandleW,
};

use super::io::{Errno, Result};
use super::path::{Arg, below};

/// A type for the flags of a call, which can be combined.
macro_rules! flags {
    ($(#[$doc:meta])* $type:ident { $($name:ident = $bits:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) struct $type(u32);

        // not every type of flags uses every function
        #[allow(dead_code)]
        impl $type {
            $(pub(crate) const $name: $type = $type($bits);)*

            pub(crate) const fn empty() -> $type {
                $type(0)
            }

            pub(crate) const fn contains(self, other: $type) -> bool {
                self.0 & other.0 == other.0
            }
        }

        impl BitOr for $type {
            type Output = $type;

            fn bitor(self, other: $type) -> $type {
                $type(self.0 | other.0)
            }
        }

        impl BitOrAssign for $type {
            fn bitor_assign(&mut self, other: $type) {
                self.0 |= other.0;
            }
        }
    };
}

flags!(OFlags {
    RDONLY = 0,
    WRONLY = 1,
    RDWR = 2,
    CREATE = 4,
    EXCL = 8,
    APPEND = 16,
    DIRECTORY = 32,
    NOFOLLOW = 64,
    CLOEXEC = 0,
    NOCTTY = 0,
    NONBLOCK = 0,
});

flags!(AtFlags { SYMLINK_NOFOLLOW = 1, REMOVEDIR = 2, EACCESS = 0, });

flags!(Access { WRITE_OK = 2, EXEC_OK = 0, });

flags!(
    /// Permission bits. Windows has only the right to write.
    Mode { RWXU = 0o700, RWXG = 0o070, RWXO = 0o007, }
);

pub(crate) type RawMode = u32;

impl Mode {
    pub(crate) const fn from_raw_mode(bits: RawMode) -> Mode {
        Mode(bits)
    }
}

impl Sub for Mode {
    type Output = Mode;

    fn sub(self, other: Mode) -> Mode {
        Mode(self.0 & !other.0)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Uid;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gid;

impl Uid {
    pub(crate) fn from_raw(_: u32) -> Uid {
        Uid
    }
}

impl Gid {
    pub(crate) fn from_raw(_: u32) -> Gid {
        Gid
    }
}

/// The kind of a file, as POSIX's mode bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileType {
    Fifo,
    CharacterDevice,
    Directory,
    BlockDevice,
    RegularFile,
    Symlink,
}

impl FileType {
    const fn bits(self) -> u32 {
        match self {
            FileType::Fifo => 0o010_000,
            FileType::CharacterDevice => 0o020_000,
            FileType::Directory => 0o040_000,
            FileType::BlockDevice => 0o060_000,
            FileType::RegularFile => 0o100_000,
            FileType::Symlink => 0o120_000,
        }
    }

    pub(crate) fn from_raw_mode(mode: RawMode) -> FileType {
        use FileType::{BlockDevice, CharacterDevice, Directory, Fifo, RegularFile, Symlink};
        let kinds = [CharacterDevice, Directory, BlockDevice, RegularFile, Symlink];
        kinds.into_iter().find(|kind| kind.bits() == mode & 0o170_000).unwrap_or(Fifo)
    }

    pub(crate) fn is_file(self) -> bool {
        self == FileType::RegularFile
    }

    pub(crate) fn is_dir(self) -> bool {
        self == FileType::Directory
    }

    pub(crate) fn is_block_device(self) -> bool {
        self == FileType::BlockDevice
    }
}

/// The status of a file. Owner and group are always 0.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stat {
    pub(crate) st_dev: u64,
    pub(crate) st_ino: u64,
    pub(crate) st_mode: RawMode,
    pub(crate) st_uid: u32,
    pub(crate) st_gid: u32,
    pub(crate) st_size: i64,
    pub(crate) st_blocks: i64,
    pub(crate) st_mtime: i64,
    pub(crate) st_mtime_nsec: i64,
    pub(crate) st_ctime: i64,
    pub(crate) st_ctime_nsec: i64,
}

/// The current folder, where a folder's handle is expected.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CurrentFolder;

pub(crate) const CWD: CurrentFolder = CurrentFolder;

impl AsHandle for CurrentFolder {
    fn as_handle(&self) -> BorrowedHandle<'_> {
        // SAFETY: the value is not an open handle and is never closed; functions here only compare it.
        unsafe { BorrowedHandle::borrow_raw(INVALID_HANDLE_VALUE) }
    }
}

fn raw(handle: &impl AsHandle) -> HANDLE {
    handle.as_handle().as_raw_handle()
}

/// The path of an open file, without links; empty for the current folder.
pub(super) fn path_of_handle(handle: &impl AsHandle) -> Result<PathBuf> {
    let handle = raw(handle);
    if handle == INVALID_HANDLE_VALUE {
        return Ok(PathBuf::new());
    }
    let mut wide = vec![0u16; 512];
    loop {
        // SAFETY: the buffer has the given length, and the handle is open.
        let len =
            unsafe { GetFinalPathNameByHandleW(handle, wide.as_mut_ptr(), wide.len() as u32, 0) }
                as usize;
        match len {
            0 => return Err(Errno::last()),
            len if len < wide.len() => return Ok(OsString::from_wide(&wide[..len]).into()),
            len => wide.resize(len + 1, 0),
        }
    }
}

fn place(dir: &impl AsHandle, name: &impl Arg) -> Result<PathBuf> {
    let name = name.as_path();
    let folder = if name.is_absolute() { PathBuf::new() } else { path_of_handle(dir)? };
    Ok(below(folder, name))
}

pub(crate) fn openat(
    dir: impl AsHandle,
    name: impl Arg,
    flags: OFlags,
    _: Mode,
) -> Result<OwnedHandle> {
    let path = place(&dir, &name)?;
    let mut options = OpenOptions::new();
    let is_new = flags.contains(OFlags::CREATE | OFlags::EXCL);
    let appends = flags.contains(OFlags::APPEND);
    let reads = !flags.contains(OFlags::WRONLY);
    let writes = flags.contains(OFlags::WRONLY) || flags.contains(OFlags::RDWR);
    options.read(reads).write(writes && !appends).append(appends).create_new(is_new);
    // folders open with this flag alone
    let folder = if writes { 0 } else { FILE_FLAG_BACKUP_SEMANTICS };
    let itself = if flags.contains(OFlags::NOFOLLOW) { FILE_FLAG_OPEN_REPARSE_POINT } else { 0 };
    let file = options.custom_flags(folder | itself).open(path)?;
    if flags.contains(OFlags::DIRECTORY) || flags.contains(OFlags::NOFOLLOW) {
        let kind = file.metadata()?.file_type();
        if kind.is_symlink() {
            return Err(Errno::LOOP);
        }
        if flags.contains(OFlags::DIRECTORY) && !kind.is_dir() {
            return Err(Errno::NOTDIR);
        }
    }
    Ok(file.into())
}

pub(crate) fn statat(dir: impl AsHandle, name: impl Arg, flags: AtFlags) -> Result<Stat> {
    status(&place(&dir, &name)?, flags)
}

pub(crate) fn stat(path: impl Arg) -> Result<Stat> {
    status(path.as_path(), AtFlags::empty())
}

fn status(path: &Path, flags: AtFlags) -> Result<Stat> {
    let itself = flags.contains(AtFlags::SYMLINK_NOFOLLOW);
    let flags = if itself { FILE_FLAG_OPEN_REPARSE_POINT } else { 0 };
    let mut options = OpenOptions::new();
    options.access_mode(FILE_READ_ATTRIBUTES).custom_flags(flags | FILE_FLAG_BACKUP_SEMANTICS);
    fstat(options.open(path)?)
}

pub(crate) fn fstat(file: impl AsHandle) -> Result<Stat> {
    // SAFETY: the handle is open.
    let kind = match unsafe { GetFileType(raw(&file)) } {
        FILE_TYPE_DISK => None,
        FILE_TYPE_CHAR => Some(FileType::CharacterDevice),
        _ => Some(FileType::Fifo),
    };
    if let Some(kind) = kind {
        return Ok(Stat { st_mode: kind.bits() | 0o666, ..Stat::default() });
    }
    let known = match file_of(&file)?.metadata() {
        Err(error) if Errno::from_io_error(&error) == Some(Errno::BADF) => return inherited(&file),
        known => known?,
    };
    let kind = match known.file_type() {
        kind if kind.is_symlink() => FileType::Symlink,
        kind if kind.is_dir() => FileType::Directory,
        _ => FileType::RegularFile,
    };
    let rights = if known.permissions().readonly() { 0o444 } else { 0o666 };
    let mut id = BY_HANDLE_FILE_INFORMATION::default();
    // SAFETY: the handle is open, and the result has the expected type.
    if unsafe { GetFileInformationByHandle(raw(&file), &raw mut id) } == 0 {
        return Err(Errno::last());
    }
    // units of 100 ns since 1601
    let time = |time: u64| {
        let seconds = (time / 10_000_000) as i64 - 11_644_473_600;
        (seconds, (time % 10_000_000) as i64 * 100)
    };
    let (st_mtime, st_mtime_nsec) = time(known.last_write_time());
    let (st_ctime, st_ctime_nsec) = time(known.creation_time());
    Ok(Stat {
        st_dev: id.dwVolumeSerialNumber.into(),
        st_ino: u64::from(id.nFileIndexHigh) << 32 | u64::from(id.nFileIndexLow),
        st_mode: kind.bits() | rights,
        st_size: known.len().cast_signed(),
        st_blocks: known.len().div_ceil(512).cast_signed(),
        st_mtime,
        st_mtime_nsec,
        st_ctime,
        st_ctime_nsec,
        ..Stat::default()
    })
}

/// The status of a standard stream whose file has no name for this process: under wine, its length.
fn inherited(file: &impl AsHandle) -> Result<Stat> {
    let mut known = FILE_STANDARD_INFO::default();
    // SAFETY: the handle is open, and the result has the length that is given.
    let outcome = unsafe {
        GetFileInformationByHandleEx(
            raw(file),
            FileStandardInfo,
            (&raw mut known).cast(),
            size_of_val(&known) as u32,
        )
    };
    if outcome == 0 {
        return Err(Errno::last());
    }
    let kind = if known.Directory { FileType::Directory } else { FileType::RegularFile };
    // no file has this number
    let st_ino = u64::MAX - raw(file).addr() as u64;
    Ok(Stat { st_mode: kind.bits() | 0o666, st_size: known.EndOfFile, st_ino, ..Stat::default() })
}

fn file_of(file: &impl AsHandle) -> Result<File> {
    Ok(file.as_handle().try_clone_to_owned()?.into())
}

pub(crate) fn mkdirat(dir: impl AsHandle, name: impl Arg, _: Mode) -> Result<()> {
    Ok(fs::create_dir(place(&dir, &name)?)?)
}

pub(crate) fn unlinkat(dir: impl AsHandle, name: impl Arg, flags: AtFlags) -> Result<()> {
    let path = place(&dir, &name)?;
    let is_folder = flags.contains(AtFlags::REMOVEDIR);
    let removed = if is_folder { fs::remove_dir(path) } else { fs::remove_file(path) };
    Ok(removed?)
}

pub(crate) fn linkat(
    from: impl AsHandle,
    old: impl Arg,
    to: impl AsHandle,
    new: impl Arg,
    _: AtFlags,
) -> Result<()> {
    Ok(fs::hard_link(place(&from, &old)?, place(&to, &new)?)?)
}

/// Rename a file or folder, over a file or an empty folder of the new name. A file that this process has open or
/// mapped cannot be replaced in one step: it is renamed first, and removed when it is no longer in use.
pub(crate) fn renameat(
    from: impl AsHandle,
    old: impl Arg,
    to: impl AsHandle,
    new: impl Arg,
) -> Result<()> {
    let (old, new) = (place(&from, &old)?, place(&to, &new)?);
    let Err(error) = fs::rename(&old, &new) else { return Ok(()) };
    let Ok(there) = fs::symlink_metadata(&new) else { return Err(error.into()) };
    if there.is_dir() != old.is_dir() {
        return Err(if there.is_dir() { Errno::ISDIR } else { Errno::NOTDIR });
    }
    if there.is_dir() && fs::read_dir(&new)?.next().is_some() {
        return Err(Errno::NOTEMPTY);
    }
    if there.permissions().readonly() {
        return Err(Errno::ACCES);
    }
    remove_unused();
    let aside = new.with_file_name(format!(".tslice-{:012x}", unique()));
    fs::rename(&new, &aside)?;
    if let Err(error) = fs::rename(&old, &new) {
        fs::rename(&aside, &new)?;
        return Err(error.into());
    }
    later(Later::Remove(aside));
    Ok(())
}

/// Truncate a file. If this process has mapped it, it is truncated when it is no longer mapped.
pub(crate) fn truncate(file: &File, len: u64) -> std::io::Result<()> {
    match file.set_len(len) {
        Err(error) if Errno::from_io_error(&error) == Some(Errno::MAPPED) => {
            later(Later::Truncate(file.try_clone()?, len));
            Ok(())
        }
        done => done,
    }
}

/// A task that waits until this process has closed a file and its maps.
enum Later {
    Remove(PathBuf),
    Truncate(File, u64),
}

impl Later {
    fn is_left(&self) -> bool {
        let done = match self {
            Later::Remove(path) if path.is_dir() => fs::remove_dir(path),
            Later::Remove(path) => fs::remove_file(path),
            Later::Truncate(file, len) => file.set_len(*len),
        };
        done.is_err_and(|error| error.kind() != std::io::ErrorKind::NotFound)
    }
}

static LATER: Mutex<Vec<Later>> = Mutex::new(Vec::new());

fn later(what: Later) {
    LATER.lock().unwrap_or_else(PoisonError::into_inner).push(what);
    remove_unused();
}

/// Remove the replaced files, and truncate the files, that are no longer in use.
pub fn remove_unused() {
    LATER.lock().unwrap_or_else(PoisonError::into_inner).retain(Later::is_left);
}

fn unique() -> u64 {
    use std::hash::BuildHasher;
    let random = std::collections::hash_map::RandomState::new().hash_one(std::process::id());
    random >> 16
}

/// Rename a file or folder if the new name is free.
pub(crate) fn rename_if_free(
    from: impl AsHandle,
    old: impl Arg,
    to: impl AsHandle,
    new: impl Arg,
) -> Result<()> {
    let wide = |path: PathBuf| -> Vec<u16> {
        use std::os::windows::ffi::OsStrExt;
        path.as_os_str().encode_wide().chain([0]).collect()
    };
    let (old, new) = (wide(place(&from, &old)?), wide(place(&to, &new)?));
    // SAFETY: both paths end with a zero and outlive the call.
    let renamed = unsafe {
        windows_sys::Win32::Storage::FileSystem::MoveFileExW(old.as_ptr(), new.as_ptr(), 0)
    };
    if renamed == 0 { Err(Errno::last()) } else { Ok(()) }
}

/// Write a file to the disk. Folders need no call: NTFS journals them.
pub(crate) fn fsync(file: impl AsHandle) -> Result<()> {
    let file = file_of(&file)?;
    if file.metadata()?.is_dir() { Ok(()) } else { Ok(file.sync_all()?) }
}

pub(crate) fn ftruncate(file: impl AsHandle, len: u64) -> Result<()> {
    Ok(file_of(&file)?.set_len(len)?)
}

/// Does nothing: a file has the rights of its folder.
pub(crate) fn fchmod(_: impl AsHandle, _: Mode) -> Result<()> {
    Ok(())
}

pub(crate) fn fchown(_: impl AsHandle, _: Option<Uid>, _: Option<Gid>) -> Result<()> {
    Ok(())
}

/// Whether this process may create files in a folder, or write a file.
pub(crate) fn accessat(
    dir: impl AsHandle,
    name: impl Arg,
    access: Access,
    _: AtFlags,
) -> Result<()> {
    if !access.contains(Access::WRITE_OK) {
        return Ok(());
    }
    let mut options = OpenOptions::new();
    // of a file, the same bit is the right to write
    options.access_mode(FILE_ADD_FILE).custom_flags(FILE_FLAG_BACKUP_SEMANTICS);
    options.open(place(&dir, &name)?)?;
    Ok(())
}

pub(crate) struct StatVfs {
    pub(crate) f_bavail: u64,
    pub(crate) f_frsize: u64,
    pub(crate) f_bsize: u64,
}

pub(crate) fn fstatvfs(file: impl AsHandle) -> Result<StatVfs> {
    use std::os::windows::ffi::OsStrExt;
    let path = path_of_handle(&file)?;
    let folder = path.parent().unwrap_or(&path);
    let wide: Vec<u16> = folder.as_os_str().encode_wide().chain([0]).collect();
    let mut free = 0;
    // SAFETY: the path ends with a zero; results that are not asked for are null.
    let known = unsafe {
        GetDiskFreeSpaceExW(
            wide.as_ptr(),
            &raw mut free,
            std::ptr::null_mut(),
            std::ptr::null_mut(),
        )
    };
    if known == 0 {
        return Err(Errno::last());
    }
    Ok(StatVfs { f_bavail: free, f_frsize: 1, f_bsize: 4096 })
}
