//! Outputs put in place: finished files get their names, and can lose them again when another output fails.
//!
//! One output of several becomes visible by the same steps for files and folders:
//!
//! 1. Where the name is free, the new file gets it by a call that fails if the name was taken.
//! 2. Where the name is taken, the new file, under a temporary name, and the old file exchange their names by one call
//!    (`renameat2`). Where the file system lacks this call, the old file gets a second, temporary name (`linkat`), and
//!    the new file is renamed over it. Without hard links, the old file is renamed to a temporary name first, so that
//!    for an instant its name is free. A folder that cannot be renamed (of a lower layer of overlayfs) is emptied into
//!    a new one, file by file, and removed.
//! 3. [`PlacedOutputs::keep`], when all outputs are in place, removes the old files. [`PlacedOutputs::and`], after an error, and
//!    dropping take the names back in reverse order.
//!
//! Undoing removes only the file that was placed, which is identified by device and inode. The file that has the name is
//! moved aside and examined first; a file that another program has put there stays. An old file that cannot get its
//! name back has a temporary name. SIGKILL can leave nothing worse than old files under temporary names.

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::resolve::FileAt;
use super::rights::RightsOf;
use super::temp_name::{PREFIX, TempKind, TempName};
use super::{SinkError, SinkOptions, SinkResult};
use crate::os::fd::{AsFd, OwnedFd};
use crate::os::fs::{
    AtFlags, FileType, Mode, OFlags, Stat, fsync, linkat, mkdirat, openat, renameat, statat,
    unlinkat,
};
use crate::os::io::{Errno, Result as OsResult, retry_on_intr};
use crate::os::path::Arg;
use crate::os::{self, FileId, path_of};

/// What becomes of the file that an output replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replaced {
    Removed,
    Saved,
}

/// Outputs in their places, each of which can be taken back. Other outputs, such as streams, stay.
#[derive(Default)]
pub struct PlacedOutputs {
    names: Vec<ReplacedName>,
    dirs: Vec<(Arc<OwnedFd>, OwnedFd)>,
}

struct ReplacedName {
    at: FileAt,
    /// The new file; `None` where the old file was only taken away.
    new: Option<NewFile>,
    old: Option<TempName>,
    /// A step before the old folder is removed; false if it must not be removed.
    before_removal: Option<BeforeRemoval>,
}

struct NewFile {
    id: FileId,
    kind: TempKind,
}

/// A step that gets the name of the folder to be removed.
pub(super) type BeforeRemoval = Box<dyn FnOnce(&TempName) -> bool + Send>;

impl PlacedOutputs {
    /// A new file under a name that was free.
    pub(super) fn new(at: FileAt, id: FileId, kind: TempKind) -> PlacedOutputs {
        let new = Some(NewFile { id, kind });
        PlacedOutputs::one(ReplacedName { at, new, old: None, before_removal: None })
    }

    /// Replace a file by one that has a temporary name, and preserve the old file: step 2. `accepts`
    /// examines the old file when it cannot change any more.
    pub(super) fn replace(
        temp: TempName,
        at: FileAt,
        accepts: impl Fn(&Stat) -> OsResult<()>,
        before_removal: Option<BeforeRemoval>,
    ) -> io::Result<PlacedOutputs> {
        let id = FileId::any(&statat(temp.dir(), temp.name(), AtFlags::SYMLINK_NOFOLLOW)?);
        let new = NewFile { id, kind: temp.kind() };
        let stands = || statat(&at.dir, &at.name, AtFlags::SYMLINK_NOFOLLOW);
        let exchanged = exchange(&temp, &at).map_err(|error| {
            // the call may be missing: then only `stands` says whether the name is free
            let gone = if lacks_flags(error) { stands().err() } else { None };
            gone.filter(|gone| *gone == Errno::NOENT).unwrap_or(error)
        });
        match exchanged {
            Ok(()) => {
                let old = statat(&at.dir, temp.name(), AtFlags::SYMLINK_NOFOLLOW);
                if let Err(error) = old.and_then(|old| accepts(&old)) {
                    // the old file has the temporary name, which must not be removed
                    if exchange(&temp, &at).is_err() {
                        temp.leave();
                    }
                    return Err(error.into());
                }
                Ok(PlacedOutputs::one(ReplacedName {
                    at,
                    new: Some(new),
                    old: Some(temp),
                    before_removal,
                }))
            }
            Err(error) if lacks_flags(error) => {
                accepts(&stands()?)?;
                PlacedOutputs::replace_in_steps(temp, at, new, before_removal)
            }
            // the old file is gone
            Err(Errno::NOENT) => {
                temp.persist(|dir, name| move_to_free(dir, name, &at))?;
                Ok(PlacedOutputs::one(ReplacedName {
                    at,
                    new: Some(new),
                    old: None,
                    before_removal: None,
                }))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Replace a file as [`replace`](PlacedOutputs::replace) does, without the call that exchanges names.
    fn replace_in_steps(
        temp: TempName,
        at: FileAt,
        new: NewFile,
        before_removal: Option<BeforeRemoval>,
    ) -> io::Result<PlacedOutputs> {
        let link = |old: &str| os::link_aside(&at.dir, &at.name, old);
        let linked = TempName::create(&at.dir, link).ok().map(|(old, ())| old);
        let is_covered = linked.is_some();
        let old = linked.map_or_else(|| move_aside(&at, temp.kind()), Ok)?;
        // an error drops this value, which undoes the step
        let mut placed = PlacedOutputs::one(ReplacedName::taken_away(at.clone(), old));
        temp.persist(|dir, name| {
            if is_covered {
                renameat(dir, name, &at.dir, &at.name)
            } else {
                move_to_free(dir, name, &at)
            }
        })?;
        if let [name] = placed.names.as_mut_slice() {
            name.new = Some(new);
            name.before_removal = before_removal;
        }
        Ok(placed)
    }

    pub(super) fn take_away(at: FileAt) -> io::Result<PlacedOutputs> {
        let old = move_aside(&at, TempKind::File)?;
        Ok(PlacedOutputs::one(ReplacedName::taken_away(at, old)))
    }

    fn one(name: ReplacedName) -> PlacedOutputs {
        PlacedOutputs { names: vec![name], dirs: Vec::new() }
    }

    /// Note a directory to be synced; `open` is its descriptor for that.
    pub(super) fn sync_later(&mut self, dir: Arc<OwnedFd>, open: OwnedFd) {
        if !self.dirs.iter().any(|(known, _)| Arc::ptr_eq(known, &dir)) {
            self.dirs.push((dir, open));
        }
    }

    /// Add outputs that were placed later. Where they could not be placed, all outputs are taken back; the
    /// error also names an old file that could not be put back.
    pub(super) fn and(mut self, later: SinkResult<PlacedOutputs>) -> SinkResult<PlacedOutputs> {
        match later {
            Ok(mut later) => {
                self.names.append(&mut later.names);
                for (dir, open) in std::mem::take(&mut later.dirs) {
                    self.sync_later(dir, open);
                }
                Ok(self)
            }
            Err(error) => Err(match self.take_back() {
                None => error,
                Some(left) => SinkError::NotUndone { error: Box::new(error), left },
            }),
        }
    }

    /// Keep all outputs: wait for the disk where this was asked for, and remove the old files.
    pub fn keep(mut self) -> SinkResult<()> {
        let dirs = std::mem::take(&mut self.dirs).into_iter();
        let synced = dirs.map(|(_, dir)| sync_dir(dir)).fold(Ok(()), Result::and);
        for ReplacedName { old, before_removal, .. } in std::mem::take(&mut self.names) {
            if let (Some(work), Some(old)) = (before_removal, old)
                && !work(&old)
            {
                // leave the folder rather than lose a file
                old.leave();
            }
        }
        synced.map_err(SinkError::os("is in place, but its name cannot be brought to the disk"))
    }

    /// Take all names back. Describes the first file that is left where this fails.
    fn take_back(&mut self) -> Option<String> {
        let names = std::mem::take(&mut self.names).into_iter().rev();
        // all of them, even if one fails
        names.filter_map(ReplacedName::take_back).collect::<Vec<_>>().into_iter().next()
    }
}

impl Drop for PlacedOutputs {
    fn drop(&mut self) {
        self.take_back();
    }
}

impl ReplacedName {
    fn taken_away(at: FileAt, old: TempName) -> ReplacedName {
        ReplacedName { at, new: None, old: Some(old), before_removal: None }
    }

    /// Take the name back. Describes what is left where this fails.
    fn take_back(self) -> Option<String> {
        let ReplacedName { at, new, old, .. } = self;
        match (new, old) {
            (None, None) => None,
            (None, Some(old)) => put_back(&at, old),
            (Some(new), None) => remove(&at, new),
            (Some(new), Some(old)) => match exchange(&old, &at) {
                Ok(()) if id_of(&old) == Some(new.id) => None,
                // another program has replaced the new file: that program's file gets the name again
                Ok(()) => {
                    // the file that now has the temporary name belongs to another program
                    let _ = exchange(&old, &at);
                    Some(leave(old))
                }
                Err(Errno::NOENT) => put_back(&at, old),
                Err(error) if lacks_flags(error) => remove(&at, new).or_else(|| put_back(&at, old)),
                Err(_) => Some(leave(old)),
            },
        }
    }
}

/// Remove the placed file, and nothing else. Describes what is left where this fails.
fn remove(at: &FileAt, new: NewFile) -> Option<String> {
    let stands = statat(&at.dir, &at.name, AtFlags::SYMLINK_NOFOLLOW);
    if !stands.is_ok_and(|stat| FileId::any(&stat) == new.id) {
        return None;
    }
    match move_aside(at, new.kind) {
        Ok(aside) if id_of(&aside) == Some(new.id) => None,
        Ok(aside) => put_back(at, aside),
        Err(_) => {
            let path = path_of(&at.dir).join(&at.name);
            Some(format!("{} cannot be removed", path.display()))
        }
    }
}

/// Give an old file its name again, if the name is free. Otherwise says where the file is.
fn put_back(at: &FileAt, old: TempName) -> Option<String> {
    match old.persist(|dir, name| move_to_free(dir, name, at)) {
        Ok(()) => None,
        Err(_) => {
            // a second name of the file under that name is useless
            let stands = statat(&at.dir, &at.name, AtFlags::SYMLINK_NOFOLLOW);
            let stands = stands.ok().map(|stat| FileId::any(&stat));
            let is_the_same = stands.is_some() && id_of(&old) == stands;
            (!is_the_same).then(|| leave(old))
        }
    }
}

fn leave(old: TempName) -> String {
    let path = path_of(old.dir()).join(old.name());
    old.leave();
    format!("what stood there before is left as {}", path.display())
}

fn move_aside(at: &FileAt, kind: TempKind) -> io::Result<TempName> {
    let is_folder = !matches!(kind, TempKind::File);
    let moved = TempName::create_as(&at.dir, PREFIX, kind, |temp| {
        let to = FileAt { dir: Arc::clone(&at.dir), name: temp.into(), old_mode: None };
        match os::rename_to_free(&at.dir, &at.name, &to.dir, &to.name) {
            Err(error) if lacks_flags(error) => rename_if_free(&at.dir, at.name.as_ref(), &to),
            result => result,
        }
    });
    match moved {
        Err(error) if is_folder && Errno::from_io_error(&error) == Some(Errno::XDEV) => {
            empty_aside(at)
        }
        moved => moved.map(|(temp, ())| temp),
    }
}

/// Move the content of a folder to a new folder with equal rights, and remove the old one. No signal must
/// end the process meanwhile.
fn empty_aside(at: &FileAt) -> io::Result<TempName> {
    let make = |name: &str| mkdirat(&at.dir, name, Mode::RWXU);
    let (aside, ()) = TempName::create_as(&at.dir, PREFIX, TempKind::Tree, make)?;
    let old = open_folder(&at.dir, &at.name)?;
    let new = open_folder(&at.dir, aside.name())?;
    let moved = move_all(&old, &new).and_then(|()| {
        // missing rights do not matter for a folder that will be removed
        let _ = RightsOf::replaced(&at.dir, &at.name).give(&new);
        unlinkat(&at.dir, &at.name, AtFlags::REMOVEDIR)
    });
    if let Err(error) = moved {
        if move_all(&new, &old).is_err() {
            aside.leave();
        }
        return Err(error.into());
    }
    Ok(aside)
}

/// Move the content of a folder to another one; subfolders that cannot be renamed are made anew there.
fn move_all(from: &OwnedFd, to: &OwnedFd) -> OsResult<()> {
    for name in &os::names_in(from)? {
        match renameat(from, name, to, name) {
            Err(Errno::XDEV | Errno::NOTEMPTY | Errno::EXIST) => {
                match mkdirat(to, name, Mode::RWXU) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(error),
                }
                let new = open_folder(to, name)?;
                move_all(&open_folder(from, name)?, &new)?;
                let _ = RightsOf::replaced(from, name).give(&new);
                unlinkat(from, name, AtFlags::REMOVEDIR)?;
            }
            moved => moved?,
        }
    }
    Ok(())
}

pub(super) fn open_folder(dir: &OwnedFd, name: impl Arg) -> OsResult<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(dir, name, flags, Mode::empty())
}

pub(super) fn move_to_free(dir: &OwnedFd, name: &str, at: &FileAt) -> OsResult<()> {
    match os::rename_to_free(dir, name, &at.dir, &at.name) {
        Err(error) if lacks_flags(error) => {}
        result => return result,
    }
    match linkat(dir, name, &at.dir, &at.name, AtFlags::empty()) {
        Ok(()) => {
            // the file is in its place; a second name that cannot be removed is left
            let _ = unlinkat(dir, name, AtFlags::empty());
            return Ok(());
        }
        Err(Errno::PERM | Errno::NOSYS | Errno::OPNOTSUPP) => {}
        Err(error) => return Err(error),
    }
    rename_if_free(dir, name.as_ref(), at)
}

/// Rename a file if the new name is free. A file created between `statat` and `renameat` would be replaced.
fn rename_if_free(dir: &OwnedFd, name: &Path, at: &FileAt) -> OsResult<()> {
    match statat(&at.dir, &at.name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => renameat(dir, name, &at.dir, &at.name),
        Ok(_) => Err(Errno::EXIST),
        Err(error) => Err(error),
    }
}

fn exchange(temp: &TempName, at: &FileAt) -> OsResult<()> {
    os::exchange(temp.dir(), temp.name(), &at.dir, &at.name)
}

/// Whether an error says that the system or file system lacks the call, or cannot apply it to this file.
pub(super) fn lacks_flags(error: Errno) -> bool {
    matches!(error, Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP | Errno::XDEV)
}

/// Refuse to replace a folder by a file, as `rename` does.
pub(super) fn no_folder(stat: &Stat) -> OsResult<()> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => Err(Errno::ISDIR),
        _ => Ok(()),
    }
}

pub(super) fn id_of(temp: &TempName) -> Option<FileId> {
    let stat = statat(temp.dir(), temp.name(), AtFlags::SYMLINK_NOFOLLOW);
    stat.ok().map(|stat| FileId::any(&stat))
}

/// Open a directory to list or sync it: the descriptors in [`FileAt`] are `O_PATH`, which allow neither.
pub(super) fn open_dir(from: impl AsFd, path: &Path) -> OsResult<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    retry_on_intr(|| openat(&from, path, flags, Mode::empty()))
}

/// A descriptor to sync a directory, where this was asked for.
pub(super) fn open_to_sync(dir: &OwnedFd, options: SinkOptions) -> SinkResult<Option<OwnedFd>> {
    let open = options.fsync.then(|| open_dir(dir, ".".as_ref())).transpose();
    open.map_err(SinkError::os("cannot be brought to the disk"))
}

/// Sync a directory. Some network file systems cannot, and write names through anyway.
pub(super) fn sync_dir(dir: impl AsFd) -> OsResult<()> {
    match retry_on_intr(|| fsync(&dir)) {
        Err(Errno::INVAL | Errno::OPNOTSUPP) => Ok(()),
        result => result,
    }
}
