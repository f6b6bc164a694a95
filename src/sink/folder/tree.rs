//! A folder of files and subfolders whose names are not known beforehand. It appears as a whole.
//!
//! Each file is written with one call. There is a file for each chunk. Files are written to a folder with a temporary
//! name, which gets its final name at the end. An existing folder is replaced only if it is of the same kind: it must
//! have a file that marks such folders.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use super::super::placed::{open_dir, sync_dir};
use super::{FolderTarget, whole};
use crate::os::fd::{AsFd, OwnedFd};
use crate::os::fs::{Mode, OFlags, fchmod, mkdirat, openat};
use crate::os::io::{Errno, Result as OsResult, retry_on_intr};
use crate::sink::resolve::Resolved;
use crate::sink::rights::RightsOf;
use crate::sink::temp_name::{TempKind, TempName};
use crate::sink::{PlacedOutputs, SinkError, SinkOptions, SinkResult, Targets, sync_file};

pub trait FileTree: Send + Sync {
    /// Write a file. `name` includes the folders that it is in; no other thread writes this name.
    fn write(&self, name: &str, bytes: &[u8]) -> SinkResult<()>;

    /// Give the folder its name; for a folder that several processes write, the last process does so.
    fn place(self: Box<Self>) -> SinkResult<PlacedOutputs>;
}

/// A folder that grows under a temporary name. Dropping it removes all that is in it.
#[derive(Debug)]
pub struct FolderTree {
    temp_name: TempName,
    fd: Arc<OwnedFd>,
    target: FolderTarget,
    /// The mode for the new folder, and the first mark found, if a folder is replaced.
    replaced: Option<(Mode, Option<String>)>,
    options: SinkOptions,
    folders: Subfolders,
}

impl FolderTree {
    pub fn check(
        path: &Path,
        marks: &[&str],
        options: SinkOptions,
        targets: &mut Targets,
    ) -> SinkResult<()> {
        let target = find(path, marks, options)?;
        target.check_writable()?;
        targets.add(path, Resolved::File(target.at()?.clone()))
    }

    /// Begin a folder for `path`. An existing folder that is not empty is replaced with `force`, if it has a file
    /// with one of the names `marks`.
    pub fn create(path: &Path, marks: &[&str], options: SinkOptions) -> SinkResult<FolderTree> {
        let target = find(path, marks, options)?;
        let failed = SinkError::os::<std::io::Error>("cannot be created");
        let at = target.at()?;
        let mode = if target.is_new() { 0o777 } else { 0o700 };
        let made = whole::make(&at.dir, TempKind::Tree, Mode::from_raw_mode(mode));
        let (temp_name, fd) = made.map_err(failed)?;
        let mut replaced = None;
        if !target.is_new() && RightsOf::replaced(&at.dir, &at.name).give(&fd)?.is_some() {
            let mode = whole::hide(&fd).map_err(|error| failed(error.into()))?;
            let mut marks = marks.iter().filter(|mark| target.has(mark).unwrap_or(false));
            replaced = Some((mode, marks.next().map(|mark| (*mark).to_owned())));
        }
        Ok(FolderTree { temp_name, fd, target, replaced, options, folders: Subfolders::default() })
    }

    /// Give a file the rights of its namesake in the replaced folder, or of a file that all such folders have.
    fn take_rights(&self, file: &File, name: &str) -> SinkResult<()> {
        let (FolderTarget::Existing(old), Some((_, mark))) = (&self.target, &self.replaced) else {
            return Ok(());
        };
        let given = RightsOf::replaced(&old.fd, name.as_ref()).give(file)?;
        if let (None, Some(mark)) = (given, mark) {
            RightsOf::neighbour(&old.fd, mark.as_ref()).give(file)?;
        }
        Ok(())
    }
}

impl FileTree for FolderTree {
    fn write(&self, name: &str, bytes: &[u8]) -> SinkResult<()> {
        let failed = SinkError::os::<Errno>("cannot be created");
        self.folders.make_for(&self.fd, name).map_err(&failed)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o666);
        let file = retry_on_intr(|| openat(&self.fd, name, flags, mode));
        let mut file = File::from(file.map_err(failed)?);
        self.take_rights(&file, name)?;
        file.write_all(bytes).map_err(SinkError::Io)?;
        sync_file(&file, self.options.fsync)
    }

    fn place(self: Box<Self>) -> SinkResult<PlacedOutputs> {
        let FolderTree { temp_name, fd, target, replaced, options, folders } = *self;
        if let (FolderTarget::Existing(old), Some((mode, _))) = (&target, replaced) {
            folders.take_rights(&fd, &old.fd)?;
            fchmod(&fd, mode).map_err(SinkError::os("cannot be given its permissions"))?;
        }
        if options.fsync {
            folders.sync(&fd).map_err(SinkError::os("cannot be brought to the disk"))?;
        }
        let at = target.at()?.clone();
        match target {
            FolderTarget::Existing(old) if !old.is_empty => {
                whole::exchange(temp_name, &old.fd, at, None, options)
            }
            _ => whole::name_new(temp_name, &fd, at, options),
        }
    }
}

fn find(path: &Path, marks: &[&str], options: SinkOptions) -> SinkResult<FolderTarget> {
    let target = FolderTarget::find(path, options)?;
    if let FolderTarget::Existing(folder) = &target
        && !folder.is_empty
        && !folder.names()?.iter().any(|name| marks.iter().any(|mark| **name == **mark))
    {
        return Err(SinkError::OtherFolder);
    }
    Ok(target)
}

/// The subfolders that are known to exist, by their relative paths.
#[derive(Debug, Default)]
pub(in crate::sink) struct Subfolders(Mutex<BTreeSet<String>>);

impl Subfolders {
    /// Make the missing folders on the path of a file.
    pub(in crate::sink) fn make_for(&self, fd: impl AsFd, name: &str) -> OsResult<()> {
        let Some((folder, _)) = name.rsplit_once('/') else { return Ok(()) };
        let mut made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if made.contains(folder) {
            return Ok(());
        }
        let ends = folder.match_indices('/').map(|(at, _)| at).chain([folder.len()]);
        for path in ends.map(|end| &folder[..end]) {
            match mkdirat(&fd, path, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error),
            }
            made.insert(path.to_owned());
        }
        Ok(())
    }

    /// Give the subfolders the rights of their namesakes in another folder.
    fn take_rights(&self, fd: &OwnedFd, old: &OwnedFd) -> SinkResult<()> {
        let made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // subfolders before their parents
        for path in made.iter().rev() {
            let folder =
                open_dir(fd, Path::new(path)).map_err(SinkError::os("cannot be created"))?;
            RightsOf::replaced(old, path.as_ref()).give(&folder)?;
        }
        Ok(())
    }

    /// Sync the subfolders, and their parent folder.
    pub(in crate::sink) fn sync(&self, fd: impl AsFd) -> OsResult<()> {
        let made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut paths = made.iter().map(String::as_str).chain(["."]);
        paths.try_for_each(|path| open_dir(&fd, Path::new(path)).and_then(sync_dir))
    }
}
