//! A folder of files as one output: the bytes of each file follow those of the previous one.
//!
//! 1. The folder and the names of its files are examined: a name that cannot be replaced is refused before anything is
//!    written (`target`).
//! 2. Each file is created like a single output (`file`): without a name, allocated in full, with the permissions of
//!    the file that it replaces. A symbolic link is followed, as for a single file.
//! 3. `commit` checks that all files are complete before it names the first one.
//! 4. If possible, it fills a folder whose name begins with `.tslice-`, and exchanges it with the old folder by one
//!    system call (`whole`): the files appear together. The new folder also gets all other files of the old one, as
//!    hard links.
//! 5. Otherwise (the folder has subfolders, links to other places, or rights that cannot be copied) the files are
//!    exchanged one by one. An error undoes all steps. A kill in between leaves a folder without its last file: for a
//!    checkpoint this is the index, without which nobody takes old and new files for one checkpoint.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf, is_separator};
use std::sync::Arc;

use super::file::FileSink;
use super::placed::open_dir;
use super::resolve::{FileAt, Resolved, resolve, resolve_from};
use super::rights::RightsOf;
use super::several::{FileInSpace, Files};
use super::temp_name::without_signals;
use super::{
    Draft, InPlaceFile, PlacedOutputs, Replaced, Sink, SinkError, SinkOptions, SinkResult, Targets,
};
use crate::os::fd::OwnedFd;
use crate::os::fs::{Access, AtFlags, CWD, FileType, Mode, accessat, statat};
use crate::os::io::Errno;
use crate::os::{name_of, names_in};

mod tree;
mod whole;

pub(super) use tree::Subfolders;
pub use tree::{FileTree, FolderTree};

#[derive(Debug)]
pub struct FolderSink {
    path: PathBuf,
    files: Files<FileSink>,
    target: FolderTarget,
    /// The folder that it replaces as a whole.
    replaced: Option<ExistingFolder>,
    /// The names of old files that are removed when the new files are in place.
    removed: Vec<String>,
    options: SinkOptions,
}

impl FolderSink {
    /// Create a folder at `path` with these files: for each, a name, a length in bytes, and permissions
    /// where given. The last file is the one that names the others, such as the index of a checkpoint. Old files with the
    /// names `old` are removed, unless they are replaced.
    pub fn create(
        path: &Path,
        files: &[(&str, u64, Option<u32>)],
        old: &[String],
        options: SinkOptions,
    ) -> SinkResult<Self> {
        let target = FolderTarget::find(path, options)?;
        FolderSink::begin(path, files, old, target, options)
    }

    /// Create the sink of a folder that replaces an existing folder as a whole. The existing folder must be empty, or
    /// `goes` must be true of it. Names are paths in the folder.
    pub fn create_whole(
        path: &Path,
        files: &[(&str, u64, Option<u32>)],
        goes: fn(&Path) -> bool,
        options: SinkOptions,
    ) -> SinkResult<Self> {
        let (target, replaced) = whole_target(path, goes, options)?;
        let sink = FolderSink::begin(path, files, &[], target, options)?;
        Ok(FolderSink { replaced, ..sink })
    }

    fn begin(
        path: &Path,
        files: &[(&str, u64, Option<u32>)],
        old: &[String],
        target: FolderTarget,
        options: SinkOptions,
    ) -> SinkResult<Self> {
        let entries = target.entries(path, files.iter().map(|(name, ..)| *name))?;
        claim(path, &target, &entries, &mut Targets::default())?;
        let names: HashSet<&str> = files.iter().map(|(name, ..)| *name).collect();
        let mut removed = Vec::new();
        let mut neighbour = None;
        for name in old {
            if target.has(name).map_err(|error| in_folder(path, name, error))? {
                neighbour = neighbour.or(Some(name));
                if !names.contains(&**name) {
                    removed.push(name.clone());
                }
            }
        }
        let mut all = Files::new(false);
        for (&(_, len, mode), (name, entry)) in files.iter().zip(entries) {
            let rights = match (&target, neighbour) {
                (FolderTarget::Existing(folder), Some(old)) if mode.is_none() => {
                    Some(RightsOf::neighbour(&folder.fd, old.as_ref()))
                }
                _ => None,
            };
            let options = SinkOptions { len: Some(len), mode, ..options };
            all.push(name.into(), Box::new(FileSink::beside(entry, options, rights)?), len)?;
        }
        let path = path.to_owned();
        Ok(FolderSink { path, files: all, target, replaced: None, removed, options })
    }

    /// Make the checks of [`FolderSink::create`] without creating anything. `targets` holds the outputs that
    /// are written together with it.
    pub fn check<'a>(
        path: &Path,
        names: impl IntoIterator<Item = &'a str>,
        options: SinkOptions,
        targets: &mut Targets,
    ) -> SinkResult<()> {
        let target = FolderTarget::find(path, options)?;
        let entries = target.entries(path, names)?;
        target.check_writable()?;
        claim(path, &target, &entries, targets)
    }

    /// Make the checks of [`FolderSink::create_whole`].
    pub fn check_whole(
        path: &Path,
        goes: fn(&Path) -> bool,
        options: SinkOptions,
        targets: &mut Targets,
    ) -> SinkResult<()> {
        let (target, _) = whole_target(path, goes, options)?;
        target.check_writable()?;
        targets.add(path, Resolved::File(target.at()?.clone()))
    }
}

/// The target of a folder that is replaced as a whole, and the existing folder.
fn whole_target(
    path: &Path,
    goes: fn(&Path) -> bool,
    options: SinkOptions,
) -> SinkResult<(FolderTarget, Option<ExistingFolder>)> {
    match FolderTarget::find(path, options)? {
        FolderTarget::Existing(folder) if !folder.is_empty && !goes(path) => {
            Err(SinkError::OtherFolder)
        }
        target @ FolderTarget::New(_) => Ok((target, None)),
        target => {
            let at = target.at()?.clone();
            match target {
                FolderTarget::Existing(folder) => Ok((FolderTarget::New(at), Some(folder))),
                FolderTarget::New(_) => Ok((target, None)),
            }
        }
    }
}

impl Sink for FolderSink {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> SinkResult<()> {
        self.files.write_at(offset, bytes)
    }

    fn share(&self, offset: u64, file: &File, range: Range<u64>) -> Range<u64> {
        self.files.share(offset, file, range)
    }

    fn keep_holes(&self) {
        self.files.keep_holes();
    }

    fn settle(&self, range: Range<u64>, wait: bool) -> SinkResult<()> {
        self.files.settle(range, wait)
    }

    fn expect(&self, range: Range<u64>) {
        self.files.expect(range);
    }
}

impl Draft for FolderSink {
    fn seal(&mut self) -> SinkResult<()> {
        self.files.files.iter().try_for_each(|file| file.sink.check_complete())
    }

    fn patch(&self, file: usize) -> SinkResult<InPlaceFile> {
        self.files.files.get(file).ok_or(SinkError::NotRegularFile)?.sink.patch()
    }

    fn place(self: Box<Self>, _: Replaced) -> SinkResult<PlacedOutputs> {
        let Self { path, files: Files { files, .. }, target, replaced, removed, options } = *self;
        let folder = match target {
            FolderTarget::New(at) => return whole::place_new(files, at, replaced, options),
            FolderTarget::Existing(folder) => folder,
        };
        let linked = files.iter().any(|file| !Arc::ptr_eq(&file.sink.entry.dir, &folder.fd));
        match if linked { None } else { whole::prepare(&folder, &files, &removed)? } {
            Some(prepared) => whole::replace(files, folder, prepared, removed, options),
            None => replace(files, &folder, &removed, options, |name, error| {
                in_folder(&path, name, error)
            }),
        }
    }
}

fn claim(
    path: &Path,
    target: &FolderTarget,
    entries: &[(&str, FileAt)],
    targets: &mut Targets,
) -> SinkResult<()> {
    match target {
        FolderTarget::New(at) => targets.add(path, Resolved::File(at.clone())),
        FolderTarget::Existing(_) => entries.iter().try_for_each(|(name, entry)| {
            let added = targets.add(&path.join(name), Resolved::File(entry.clone()));
            added.map_err(|error| in_folder(path, name, error))
        }),
    }
}

fn in_folder(folder: &Path, name: impl AsRef<Path>, error: SinkError) -> SinkError {
    error.of_file(folder.join(name))
}

// The exchange of a folder's files one by one, where the folder as a whole cannot be exchanged.
//
// The last old file, which names the others (an index), is moved aside. Then the other files are exchanged or moved
// aside, and the last new file gets its name. No signal comes in between. Each step can be undone (`placed`), and an
// error undoes all of them.

/// Give all files their names. `in_folder` adds to an error the name of the file at fault.
fn replace(
    files: Vec<FileInSpace<FileSink>>,
    folder: &ExistingFolder,
    removed: &[String],
    options: SinkOptions,
    in_folder: impl Fn(&Path, SinkError) -> SinkError,
) -> SinkResult<PlacedOutputs> {
    let Some(FileInSpace { name, sink, .. }) = files.last() else {
        return Ok(PlacedOutputs::default());
    };
    let last = name.clone();
    let entry = sink.entry.clone();
    let take_away =
        |at: FileAt| PlacedOutputs::take_away(at).map_err(SinkError::os("cannot be put in place"));
    without_signals(|| {
        let mut placed = PlacedOutputs::default();
        if entry.old_mode.is_some() && options.force {
            placed = take_away(entry).map_err(|error| in_folder(&last, error))?;
        }
        let placed = removed.iter().try_fold(placed, |placed, name| {
            let at = FileAt { dir: Arc::clone(&folder.fd), name: name.into(), old_mode: None };
            placed.and(take_away(at)).map_err(|error| in_folder(name.as_ref(), error))
        })?;
        files.into_iter().try_fold(placed, |placed, FileInSpace { name, mut sink, .. }| {
            let one = sink.seal().and_then(|()| sink.place(Replaced::Saved));
            placed.and(one).map_err(|error| in_folder(&name, error))
        })
    })
}

#[derive(Debug)]
pub(super) enum FolderTarget {
    /// A name in an open directory that is free.
    New(FileAt),
    Existing(ExistingFolder),
}

#[derive(Debug)]
pub(super) struct ExistingFolder {
    pub(super) fd: Arc<OwnedFd>,
    /// The parent directory, and the folder's name in it; `None` for a root.
    pub(super) at: Option<FileAt>,
    pub(super) is_empty: bool,
}

impl FolderTarget {
    /// Examine `path`; without `force`, refuse a folder that is not empty.
    pub(super) fn find(path: &Path, options: SinkOptions) -> SinkResult<FolderTarget> {
        let failed = SinkError::os::<Errno>("cannot be created");
        match open_dir(CWD, path) {
            Ok(fd) => {
                let folder = ExistingFolder::new(path, fd)?;
                if !folder.is_empty && !options.force {
                    return Err(SinkError::FolderNotEmpty);
                }
                Ok(FolderTarget::Existing(folder))
            }
            // a link that leads nowhere is followed, as for a single file
            Err(Errno::NOENT) => match resolve(&without_slash(path))? {
                Resolved::File(at) if at.old_mode.is_none() => Ok(FolderTarget::New(at)),
                _ => Err(failed(Errno::NOTDIR)),
            },
            Err(error) => Err(failed(error)),
        }
    }

    /// The parent directory, and the folder's name in it; an error for a root.
    fn at(&self) -> SinkResult<&FileAt> {
        match self {
            FolderTarget::New(at) | FolderTarget::Existing(ExistingFolder { at: Some(at), .. }) => {
                Ok(at)
            }
            FolderTarget::Existing(_) => Err(SinkError::os("cannot be replaced")(Errno::BUSY)),
        }
    }

    fn entries<'a>(
        &self,
        path: &Path,
        names: impl IntoIterator<Item = &'a str>,
    ) -> SinkResult<Vec<(&'a str, FileAt)>> {
        let entry = |name: &'a str| match self {
            FolderTarget::New(at) => Ok((name, FileAt { name: name.into(), ..at.clone() })),
            FolderTarget::Existing(folder) => match folder.entry(name) {
                Ok(entry) => Ok((name, entry)),
                Err(error) => Err(in_folder(path, name, error)),
            },
        };
        names.into_iter().map(entry).collect()
    }

    fn is_new(&self) -> bool {
        matches!(self, FolderTarget::New(_))
    }

    fn has(&self, name: &str) -> SinkResult<bool> {
        let FolderTarget::Existing(folder) = self else { return Ok(false) };
        match statat(&folder.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(SinkError::os("cannot be replaced")(error)),
        }
    }

    pub(super) fn check_writable(&self) -> SinkResult<()> {
        let (FolderTarget::New(FileAt { dir, .. })
        | FolderTarget::Existing(ExistingFolder { fd: dir, .. })) = self;
        accessat(dir, ".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS)
            .map_err(SinkError::os("cannot be created"))
    }
}

impl ExistingFolder {
    fn new(path: &Path, fd: OwnedFd) -> SinkResult<ExistingFolder> {
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

    pub(super) fn names(&self) -> SinkResult<Vec<OsString>> {
        names_in(&*self.fd).map_err(SinkError::os("cannot be created"))
    }

    /// The target of a file in the folder: a symbolic link of that name is followed.
    fn entry(&self, name: &str) -> SinkResult<FileAt> {
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

/// The entry of a folder that need not exist. An existing folder that is not empty has a mode, as an
/// existing file has.
pub(super) fn folder_at(path: &Path) -> SinkResult<FileAt> {
    let target = FolderTarget::find(path, SinkOptions { force: true, ..SinkOptions::default() })?;
    let at = target.at()?.clone();
    let is_full = matches!(target, FolderTarget::Existing(ExistingFolder { is_empty: false, .. }));
    Ok(FileAt { old_mode: is_full.then(Mode::empty), ..at })
}

/// A path without trailing slashes, which may end the name of a folder that does not exist yet.
fn without_slash(path: &Path) -> PathBuf {
    let bytes = path.as_os_str().as_encoded_bytes();
    let end = bytes.iter().rposition(|&byte| !is_separator(byte.into()));
    name_of(bytes[..end.map_or(0, |last| last + 1)].to_vec()).into()
}
