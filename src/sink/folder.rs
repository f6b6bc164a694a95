//! A folder of files as one output: the bytes of each file follow those of the one before.
//!
//! 1. Each file is created as any output is (`file`): without a name, allocated in full.
//! 2. `commit` checks that all files are complete before it names the first one.
//! 3. If the folder is new or empty, the files get their names in a folder whose own name begins
//!    with `.tslice-`, which is then renamed: all files appear at once.
//! 4. If the folder holds files, `force` replaces those of the same names, one by one in the given
//!    order, and keeps the others. Of a checkpoint the index is last, so that a run that is killed
//!    leaves the old index, never a new one that names missing files.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, RenameFlags, mkdirat, openat, renameat, renameat_with, statat,
};
use rustix::io::{Errno, retry_on_intr};

use super::file::{FileSink, Naming, sync_dir};
use super::resolve::FileAt;
use super::temp_name::TempName;
use super::{Sink, SinkError, SinkOptions, WriteOrder};

/// A folder that is being written.
#[derive(Debug)]
pub struct FolderSink {
    files: Vec<PendingFile>,
    folder: FolderAt,
    options: SinkOptions,
}

#[derive(Debug)]
struct PendingFile {
    name: String,
    /// The position of its first byte.
    start: u64,
    sink: FileSink,
}

/// The folder that the files go to.
#[derive(Debug)]
enum FolderAt {
    /// A folder that does not exist or is empty: its name in an open directory.
    New { dir: Arc<OwnedFd>, name: OsString },
    /// A folder that is not empty.
    Existing(Arc<OwnedFd>),
}

impl FolderSink {
    /// Create a folder for `path` with these files, each a name and a length in bytes.
    ///
    /// # Errors
    /// [`SinkError::FolderNotEmpty`] if it is not empty and `force` is not set, [`SinkError::Os`].
    pub fn create(
        path: &Path,
        files: &[(&str, u64)],
        options: SinkOptions,
    ) -> Result<Self, SinkError> {
        let folder = FolderAt::find(path, options)?;
        let dir = match &folder {
            FolderAt::New { dir, .. } | FolderAt::Existing(dir) => dir,
        };
        let mut start = 0;
        let mut parts = Vec::with_capacity(files.len());
        for &(name, len) in files {
            let old_mode =
                statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).ok().filter(|_| folder.is_existing());
            let old_mode = old_mode.map(|stat| Mode::from_raw_mode(stat.st_mode & 0o777));
            let entry = FileAt { dir: Arc::clone(dir), name: name.into(), old_mode };
            let sink =
                FileSink::at(entry, SinkOptions { len: Some(len), ..options }, Naming::Unnamed)?;
            parts.push(PendingFile { name: name.to_owned(), start, sink });
            start += len;
        }
        Ok(FolderSink { files: parts, folder, options })
    }

    /// Make the checks of [`FolderSink::create`] without creating anything.
    ///
    /// # Errors
    /// Those of [`FolderSink::create`].
    pub fn check(path: &Path, options: SinkOptions) -> Result<(), SinkError> {
        FolderAt::find(path, options).map(drop)
    }
}

impl FolderAt {
    fn is_existing(&self) -> bool {
        matches!(self, FolderAt::Existing(_))
    }

    fn find(path: &Path, options: SinkOptions) -> Result<FolderAt, SinkError> {
        let failed = SinkError::os::<std::io::Error>("cannot be created");
        match path.read_dir() {
            Ok(mut entries) => {
                let real = path.canonicalize().map_err(&failed)?;
                match entries.next() {
                    Some(_) if !options.force => Err(SinkError::FolderNotEmpty),
                    Some(_) => Ok(FolderAt::Existing(open(&real)?)),
                    None => FolderAt::new(&real),
                }
            }
            Err(error) if error.kind() == ErrorKind::NotFound => FolderAt::new(path),
            Err(error) if error.kind() == ErrorKind::Interrupted => FolderAt::find(path, options),
            Err(error) => Err(failed(error)),
        }
    }

    fn new(path: &Path) -> Result<FolderAt, SinkError> {
        let Some(name) = path.file_name() else {
            return Err(SinkError::os("cannot be created")(Errno::INVAL));
        };
        let parent = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        Ok(FolderAt::New { dir: open(parent)?, name: name.to_owned() })
    }
}

fn open(dir: &Path) -> Result<Arc<OwnedFd>, SinkError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let dir = retry_on_intr(|| openat(CWD, dir, flags, Mode::empty()));
    dir.map(Arc::new).map_err(SinkError::os("cannot be created"))
}

impl Sink for FolderSink {
    fn order(&self) -> WriteOrder {
        WriteOrder::Any
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), SinkError> {
        let at = self.files.partition_point(|file| file.start <= offset);
        match self.files[..at].last() {
            Some(file) => file.sink.write_at(offset - file.start, bytes),
            None => Ok(()),
        }
    }

    fn seal(&mut self) -> Result<(), SinkError> {
        self.files.iter().try_for_each(|file| file.sink.check_complete())
    }

    fn commit(self: Box<Self>) -> Result<(), SinkError> {
        self.files.iter().try_for_each(|file| file.sink.check_complete())?;
        let Self { files, folder, options } = *self;
        match folder {
            FolderAt::Existing(_) => {
                files.into_iter().try_for_each(|file| Box::new(file.sink).commit())
            }
            FolderAt::New { dir, name } => place_new(files, &dir, &name, options),
        }
    }
}

/// Step 3.
fn place_new(
    files: Vec<PendingFile>,
    dir: &Arc<OwnedFd>,
    name: &OsString,
    options: SinkOptions,
) -> Result<(), SinkError> {
    let failed = SinkError::os::<std::io::Error>("cannot be put in place");
    let names = files.iter().map(|file| file.name.clone()).collect();
    let make = |name: &str| mkdirat(dir, name, Mode::from_raw_mode(0o777));
    let temp_name = TempName::create_folder(dir, names, make).map_err(&failed)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = retry_on_intr(|| openat(dir, temp_name.name(), flags, Mode::empty()));
    let folder = Arc::new(folder.map_err(|error| failed(error.into()))?);
    for PendingFile { sink, name, .. } in files {
        let entry = FileAt { dir: Arc::clone(&folder), name: name.into(), old_mode: None };
        sink.commit_as(&entry)?;
    }
    // `renameat` replaces an empty folder, and fails on anything else.
    temp_name
        .persist(|old| match renameat_with(dir, old, dir, name, RenameFlags::NOREPLACE) {
            Ok(()) => Ok(()),
            Err(_) => renameat(dir, old, dir, name),
        })
        .map_err(|error| match error.raw_os_error() {
            Some(libc::EEXIST | libc::ENOTEMPTY | libc::ENOTDIR) => SinkError::FolderNotEmpty,
            _ => failed(error),
        })?;
    match options.fsync {
        true => sync_dir(dir.try_clone().map_err(&failed)?)
            .map_err(SinkError::os("is in place, but its name cannot be brought to the disk")),
        false => Ok(()),
    }
}
