//! A folder that is exchanged as a whole.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::Arc;

use super::{ExistingFolder, Subfolders};
use crate::os;
use crate::os::FileId;
use crate::os::fd::OwnedFd;
use crate::os::fs::{
    AtFlags, FileType, Mode, OFlags, Stat, fchmod, fstat, linkat, mkdirat, openat, renameat, statat,
};
use crate::os::io::{Errno, retry_on_intr};
use crate::sink::file::FileSink;
use crate::sink::placed::{
    BeforeRemoval, PlacedOutputs, id_of, move_to_free, open_folder, open_to_sync,
};
use crate::sink::resolve::FileAt;
use crate::sink::rights::RightsOf;
use crate::sink::several::FileInSpace;
use crate::sink::temp_name::{PREFIX, TempKind, TempName, without_signals};
use crate::sink::{SinkError, SinkOptions, SinkResult};

/// A folder with a temporary name, beside the folder that it will replace. It has the owner, the rights and all files of
/// the old folder, except for the files to be replaced.
pub(super) struct PreparedFolder {
    temp_name: TempName,
    fd: Arc<OwnedFd>,
    mode: Mode,
    carried: Vec<OsString>,
}

fn failed<E: Into<std::io::Error>>(error: E) -> SinkError {
    SinkError::os("cannot be put in place")(error)
}

pub(super) fn place_new(
    files: Vec<FileInSpace<FileSink>>,
    at: FileAt,
    replaced: Option<ExistingFolder>,
    options: SinkOptions,
) -> SinkResult<PlacedOutputs> {
    let is_tree = replaced.is_some() || files.iter().any(|file| file.name.components().count() > 1);
    let kind = match is_tree {
        true => TempKind::Tree,
        false => TempKind::Folder(files.iter().map(|file| file.name.clone().into()).collect()),
    };
    let dir = Arc::clone(&at.dir);
    let (temp_name, folder) = make(&dir, kind, Mode::from_raw_mode(0o777)).map_err(failed)?;
    let subfolders = Subfolders::default();
    for name in files.iter().filter_map(|file| file.name.to_str()) {
        subfolders.make_for(&folder, name).map_err(failed)?;
    }
    fill(files, &folder)?;
    if options.fsync {
        subfolders.sync(&folder).map_err(failed)?;
    }
    match replaced {
        Some(old) if !old.is_empty => {
            RightsOf::replaced(&dir, &at.name).give(&folder)?;
            exchange(temp_name, &old.fd, at, None, options)
        }
        _ => name_new(temp_name, &folder, at, options),
    }
}

/// Give a complete folder its name, which must be free or an empty folder's.
pub(super) fn name_new(
    temp_name: TempName,
    folder: &OwnedFd,
    at: FileAt,
    options: SinkOptions,
) -> SinkResult<PlacedOutputs> {
    let dir = Arc::clone(&at.dir);
    let open = open_to_sync(&dir, options)?;
    let id = FileId::any(&fstat(folder).map_err(failed)?);
    // `renameat` replaces an empty folder, and fails on anything else
    let named = temp_name.persist(|from, old| match move_to_free(from, old, &at) {
        Ok(()) => Ok(()),
        Err(_) => renameat(from, old, &dir, &at.name),
    });
    named.map_err(|error| match Errno::from_io_error(&error) {
        Some(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR) => SinkError::FolderNotEmpty,
        _ => failed(error),
    })?;
    let mut placed = PlacedOutputs::new(at, id, temp_name.kind());
    open.into_iter().for_each(|open| placed.sync_later(Arc::clone(&dir), open));
    Ok(placed)
}

/// Make a folder that can replace another one. `None` where this is impossible: subfolders, rights
/// that cannot be given, a file system that cannot exchange folders.
pub(super) fn prepare(
    folder: &ExistingFolder,
    files: &[FileInSpace<FileSink>],
    removed: &[String],
) -> SinkResult<Option<PreparedFolder>> {
    let Some(FileAt { dir, name, .. }) = &folder.at else { return Ok(None) };
    let Some(stat) = stands_there(folder, dir, name) else { return Ok(None) };
    // afterwards the old files could not be removed; replacing files one by one reports this as an error
    let replaced = files.iter().map(|file| file.name.as_os_str());
    let goes = replaced.chain(removed.iter().map(OsStr::new));
    if goes.clone().any(|name| os::is_fixed(&folder.fd, name)) {
        return Ok(None);
    }
    let is_ours = |name: &OsString| {
        let temp_name = |sink: &FileSink| sink.temp_name().is_some_and(|it| *it == **name);
        files.iter().any(|it| it.name == *name || temp_name(&it.sink))
    };
    let is_removed = |name: &OsString| removed.iter().any(|removed| **removed == **name);
    let mut carried = folder.names()?;
    carried.retain(|name| !is_ours(name) && !is_removed(name));
    // after the exchange, this kind describes the old folder, with the files to be removed
    let names = goes.map(OsString::from).chain(carried.iter().cloned()).collect();
    // nobody else may look into the folder before it has its rights
    let Ok((temp_name, fd)) = make(dir, TempKind::Folder(names), Mode::from_raw_mode(0o700)) else {
        return Ok(None);
    };
    let mode = Mode::from_raw_mode(stat.st_mode & 0o7777);
    let prepared = PreparedFolder { temp_name, fd, mode, carried };
    let ready = prepared.take_rights(&RightsOf::replaced(dir, name))
        && prepared.carry_over(&folder.fd)
        && (folder.is_empty || exchanges(dir));
    Ok(ready.then_some(prepared))
}

/// Put files into a prepared folder, and exchange it with the old one.
pub(super) fn replace(
    files: Vec<FileInSpace<FileSink>>,
    folder: ExistingFolder,
    prepared: PreparedFolder,
    removed: Vec<String>,
    options: SinkOptions,
) -> SinkResult<PlacedOutputs> {
    let names = files.iter().map(|file| file.name.clone());
    let names: Vec<PathBuf> = names.chain(removed.into_iter().map(PathBuf::from)).collect();
    fill(files, &prepared.fd)?;
    fchmod(&prepared.fd, prepared.mode).map_err(failed)?;
    let PreparedFolder { temp_name, fd, .. } = prepared;
    let old = Arc::clone(&folder.fd);
    let Some(at) = folder.at.clone() else { return Err(failed(Errno::BUSY)) };
    let before_removal: BeforeRemoval = Box::new(move |removed| {
        let is_ours =
            fstat(&folder.fd).is_ok_and(|stat| id_of(removed) == Some(FileId::any(&stat)));
        if is_ours {
            return take_changes(&folder.fd, &fd, &names);
        }
        // the old folder could not be renamed, and its content was moved to another one
        open_folder(removed.dir(), removed.name()).is_ok_and(|old| take_changes(&old, &fd, &names))
    });
    exchange(temp_name, &old, at, Some(before_removal), options)
}

/// Exchange a complete folder with the old folder that was examined.
pub(super) fn exchange(
    temp_name: TempName,
    old: &OwnedFd,
    at: FileAt,
    before_removal: Option<BeforeRemoval>,
    options: SinkOptions,
) -> SinkResult<PlacedOutputs> {
    let dir = Arc::clone(&at.dir);
    let open = open_to_sync(&dir, options)?;
    let ours = FileId::any(&fstat(old).map_err(failed)?);
    // another folder may have been put there meanwhile
    let is_ours = |old: &Stat| if FileId::any(old) == ours { Ok(()) } else { Err(Errno::BUSY) };
    let placed = without_signals(|| PlacedOutputs::replace(temp_name, at, is_ours, before_removal));
    let mut placed = placed.map_err(failed)?;
    open.into_iter().for_each(|open| placed.sync_later(Arc::clone(&dir), open));
    Ok(placed)
}

/// Move the changes that others made in the old folder since it was listed to the new folder;
/// returns false if some cannot be moved.
fn take_changes(old: &OwnedFd, new: &OwnedFd, replaced: &[PathBuf]) -> bool {
    let stat = |dir: &OwnedFd, name: &OsStr| statat(dir, name, AtFlags::SYMLINK_NOFOLLOW);
    os::names_in(old).unwrap_or_default().iter().all(|name| {
        let is_replaced = replaced.iter().any(|it| it == name);
        let stays = matches!(
            (stat(old, name), stat(new, name)),
            (Ok(was), Ok(is)) if FileId::any(&was) == FileId::any(&is)
        );
        is_replaced || stays || renameat(old, name, new, name).is_ok()
    })
}

impl PreparedFolder {
    /// Take over the owner, group and rights of a folder; returns false if some cannot be given.
    fn take_rights(&self, of: &RightsOf<'_>) -> bool {
        let is_given = matches!(of.give(&self.fd), Ok(Some(true)));
        // the kernel drops the setgid bit in silence where the group is not ours
        is_given && hide(&self.fd).is_ok_and(|mode| mode == self.mode)
    }

    /// Link all preserved files into the folder; returns false if one cannot be linked.
    fn carry_over(&self, old: &OwnedFd) -> bool {
        self.carried.iter().all(|name| {
            let is_folder = statat(old, name, AtFlags::SYMLINK_NOFOLLOW)
                .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory);
            !is_folder && linkat(old, name, &self.fd, name, AtFlags::empty()).is_ok()
        })
    }
}

/// Hide a folder from all other users; returns its mode, to be restored.
pub(super) fn hide(folder: &OwnedFd) -> os::io::Result<Mode> {
    let mode = Mode::from_raw_mode(fstat(folder)?.st_mode & 0o7777);
    fchmod(folder, (mode - Mode::RWXG - Mode::RWXO) | Mode::RWXU)?;
    Ok(mode)
}

/// The status of the entry under a folder's name, if it is the folder itself and not a mount point.
fn stands_there(folder: &ExistingFolder, dir: &OwnedFd, name: &OsStr) -> Option<Stat> {
    let there = fstat(os::open_within_mount(dir, name.as_ref()).ok()?).ok()?;
    let ours = fstat(&folder.fd).ok()?;
    (FileId::any(&there) == FileId::any(&ours)).then_some(ours)
}

fn exchanges(dir: &Arc<OwnedFd>) -> bool {
    let mode = Mode::from_raw_mode(0o700);
    let (Ok((one, _)), Ok((other, _))) =
        (make(dir, TempKind::Tree, mode), make(dir, TempKind::Tree, mode))
    else {
        return false;
    };
    os::exchange(dir, one.name(), dir, other.name()).is_ok()
}

pub(super) fn make(
    dir: &Arc<OwnedFd>,
    kind: TempKind,
    mode: Mode,
) -> std::io::Result<(TempName, Arc<OwnedFd>)> {
    let make = |name: &str| mkdirat(dir, name, mode);
    let (temp_name, ()) = TempName::create_as(dir, PREFIX, kind, make)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = retry_on_intr(|| openat(dir, temp_name.name(), flags, Mode::empty()))?;
    Ok((temp_name, Arc::new(folder)))
}

fn fill(files: Vec<FileInSpace<FileSink>>, folder: &Arc<OwnedFd>) -> SinkResult<()> {
    files.into_iter().try_for_each(|FileInSpace { sink, name, .. }| {
        sink.commit_as(&FileAt { dir: Arc::clone(folder), name: name.into(), old_mode: None })
    })
}
