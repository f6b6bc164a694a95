//! Where a folder goes: what stands there, and under the names of its files.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{Access, AtFlags, CWD, Dir, FileType, Mode, accessat, statat};
use rustix::io::{Errno, retry_on_intr};

use crate::sink::placed::open_dir;
use crate::sink::resolve::{FileAt, Resolved, resolve, resolve_from};
use crate::sink::{SinkError, SinkOptions};

/// The place of a folder.
#[derive(Debug)]
pub(super) enum FolderPlace {
    /// A name in an open directory, where nothing stands.
    New(FileAt),
    /// A folder that is there.
    Existing(ExistingFolder),
}

/// A folder that is there.
#[derive(Debug)]
pub(super) struct ExistingFolder {
    pub(super) fd: Arc<OwnedFd>,
    /// The directory that it lies in, and its name there; `None` for a root.
    pub(super) at: Option<FileAt>,
    pub(super) is_empty: bool,
}

impl FolderPlace {
    /// Find out what stands at `path`, and refuse a folder that is not empty without `force`.
    pub(super) fn find(path: &Path, options: SinkOptions) -> Result<FolderPlace, SinkError> {
        let failed = SinkError::os::<Errno>("cannot be created");
        match open_dir(CWD, path) {
            Ok(fd) => {
                let folder = ExistingFolder::new(path, fd)?;
                match folder.is_empty || options.force {
                    true => Ok(FolderPlace::Existing(folder)),
                    false => Err(SinkError::FolderNotEmpty),
                }
            }
            // a link that leads to nothing is followed, as for a single file
            Err(Errno::NOENT) => match resolve(without_slash(path))? {
                Resolved::File(at) if at.old_mode.is_none() => Ok(FolderPlace::New(at)),
                _ => Err(failed(Errno::NOTDIR)),
            },
            Err(error) => Err(failed(error)),
        }
    }

    /// The place of a file of the folder.
    pub(super) fn entry(&self, name: &str) -> Result<FileAt, SinkError> {
        match self {
            FolderPlace::New(at) => Ok(FileAt { name: name.into(), ..at.clone() }),
            FolderPlace::Existing(folder) => folder.entry(name),
        }
    }

    /// Whether something has this name in it.
    pub(super) fn has(&self, name: &str) -> Result<bool, SinkError> {
        let FolderPlace::Existing(folder) = self else { return Ok(false) };
        match statat(&folder.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(SinkError::os("cannot be replaced")(error)),
        }
    }

    /// Check that names can be made there.
    pub(super) fn check_writable(&self) -> Result<(), SinkError> {
        let (FolderPlace::New(FileAt { dir, .. })
        | FolderPlace::Existing(ExistingFolder { fd: dir, .. })) = self;
        accessat(dir, ".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS)
            .map_err(SinkError::os("cannot be created"))
    }
}

impl ExistingFolder {
    fn new(path: &Path, fd: OwnedFd) -> Result<ExistingFolder, SinkError> {
        let failed = SinkError::os::<std::io::Error>("cannot be created");
        let real = path.canonicalize().map_err(&failed)?;
        let at = match (real.parent(), real.file_name()) {
            (Some(parent), Some(name)) => {
                let parent = open_dir(CWD, parent).map_err(|error| failed(error.into()))?;
                Some(FileAt { dir: Arc::new(parent), name: name.to_owned(), old_mode: None })
            }
            _ => None,
        };
        let mut folder = ExistingFolder { fd: Arc::new(fd), at, is_empty: false };
        folder.is_empty = folder.names()?.is_empty();
        Ok(folder)
    }

    /// The names of all that lies in it.
    pub(super) fn names(&self) -> Result<Vec<OsString>, SinkError> {
        let failed = SinkError::os::<Errno>("cannot be created");
        let mut names = Vec::new();
        for entry in retry_on_intr(|| Dir::read_from(&self.fd)).map_err(&failed)? {
            let entry = match entry {
                Err(Errno::INTR) => continue,
                entry => entry.map_err(&failed)?,
            };
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name != "." && name != ".." {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    /// The place of a file in it: where a symbolic link of that name leads.
    fn entry(&self, name: &str) -> Result<FileAt, SinkError> {
        let failed = SinkError::os("cannot be created");
        let here = |old_mode| FileAt { dir: Arc::clone(&self.fd), name: name.into(), old_mode };
        let stat = match statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(here(None)),
            Err(error) => return Err(failed(error)),
        };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Ok(here(Some(Mode::from_raw_mode(stat.st_mode & 0o777)))),
            FileType::Directory => Err(SinkError::IsADirectory),
            FileType::Symlink => match resolve_from(&self.fd, name.as_ref())? {
                Resolved::File(entry) => Ok(entry),
                Resolved::Stdout | Resolved::Special { .. } => Err(SinkError::NotRegularFile),
            },
            _ => Err(SinkError::NotRegularFile),
        }
    }
}

/// The name of a folder that need not be there. One that is, and is not empty, has a mode, as a file that is
/// there has.
pub(in crate::sink) fn folder_at(path: &Path) -> Result<FileAt, SinkError> {
    match FolderPlace::find(path, SinkOptions { force: true, ..SinkOptions::default() })? {
        FolderPlace::New(at) => Ok(at),
        FolderPlace::Existing(ExistingFolder { at: Some(at), is_empty, .. }) => {
            Ok(FileAt { old_mode: (!is_empty).then(Mode::empty), ..at })
        }
        FolderPlace::Existing(_) => Err(SinkError::os("cannot be replaced")(Errno::BUSY)),
    }
}

/// A path without the slashes at its end, which name a folder that need not be there.
fn without_slash(path: &Path) -> &Path {
    let bytes = path.as_os_str().as_bytes();
    let end = bytes.iter().rposition(|&byte| byte != b'/').map_or(0, |last| last + 1);
    Path::new(OsStr::from_bytes(&bytes[..end]))
}
