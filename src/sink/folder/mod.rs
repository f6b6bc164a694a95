//! A folder of files as one output: the bytes of each file follow those of the one before.
//!
//! 1. The folder is found, and whatever stands under the names of the files in it: a name that
//!    cannot be replaced is refused before anything is written (`place`).
//! 2. Each file is created as any output is (`file`): without a name, allocated in full, with the
//!    permissions of the file that it replaces. A symbolic link is followed, as for a single file.
//! 3. `commit` checks that all files are complete before it names the first one.
//! 4. If it can, it fills a folder whose own name begins with `.tslice-` and puts it in the place of
//!    the other one by one system call (`whole`): the files appear together. Files of other names
//!    are in the new folder too, as hard links.
//! 5. Where that cannot be, for a folder with other folders, links to other places, or rights that
//!    cannot be copied, the files are exchanged one by one (`one_by_one`). An error undoes what was
//!    done. A kill in between leaves a folder without its last file: of a checkpoint that is the
//!    index, without which nobody takes old and new files for one checkpoint.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Access, AtFlags, CWD, Dir, FileType, Mode, accessat, statat};
use rustix::io::{Errno, retry_on_intr};

use super::file::FileSink;
use super::placed::open_dir;
use super::resolve::{FileAt, Resolved, resolve, resolve_from};
use super::temp_name::without_signals;
use super::{Draft, Old, Placed, Sink, SinkError, SinkOptions, Targets};

mod tree;
mod whole;

pub(super) use tree::Subfolders;
pub use tree::{FileTree, FolderTree};

/// A folder that is being written.
#[derive(Debug)]
pub struct FolderSink {
    /// For errors.
    path: PathBuf,
    files: Vec<PendingFile>,
    place: FolderPlace,
    /// The names of files that go when the new ones are there.
    removed: Vec<String>,
    options: SinkOptions,
}

impl FolderSink {
    /// Create a folder for `path` with these files, each a name, a length in bytes, and the permissions that
    /// it has where those are given. The last one is that by which the others are found, such as the index of a checkpoint. Files with the names of
    /// `old` go, unless they are replaced.
    ///
    /// # Errors
    /// [`SinkError::FolderNotEmpty`] if it is not empty and `force` is not set,
    /// [`SinkError::File`] for a name that cannot be replaced, [`SinkError::Os`].
    pub fn create(
        path: &Path,
        files: &[(&str, u64, Option<u32>)],
        old: &[String],
        options: SinkOptions,
    ) -> Result<Self, SinkError> {
        let place = FolderPlace::find(path, options)?;
        let entries = files
            .iter()
            .map(|(name, ..)| place.entry(name).map_err(|error| in_folder(path, name, error)));
        let entries: Vec<FileAt> = entries.collect::<Result<_, _>>()?;
        let names = files.iter().map(|(name, ..)| *name);
        claim(path, &place, names.zip(&entries), &mut Targets::default())?;
        let is_new = |old: &str| files.iter().any(|(name, ..)| *name == old);
        let mut removed = Vec::new();
        for name in old.iter().filter(|name| !is_new(name)) {
            if place.has(name).map_err(|error| in_folder(path, name, error))? {
                removed.push(name.clone());
            }
        }
        let mut start = 0;
        let mut pending = Vec::with_capacity(files.len());
        for (&(name, len, mode), entry) in files.iter().zip(entries) {
            let options = SinkOptions { len: Some(len), mode, ..options };
            let sink = FileSink::at(entry.clone(), options)?;
            pending.push(PendingFile { name: name.to_owned(), start, entry, sink });
            start += len;
        }
        Ok(FolderSink { path: path.to_owned(), files: pending, place, removed, options })
    }

    /// Make the checks of [`FolderSink::create`] without creating anything. `targets` are those of the
    /// outputs that are written together with it.
    ///
    /// # Errors
    /// Those of [`FolderSink::create`].
    pub fn check<'a>(
        path: &Path,
        names: impl IntoIterator<Item = &'a str>,
        options: SinkOptions,
        targets: &mut Targets,
    ) -> Result<(), SinkError> {
        let place = FolderPlace::find(path, options)?;
        let entry = |name: &'a str| match place.entry(name) {
            Ok(entry) => Ok((name, entry)),
            Err(error) => Err(in_folder(path, name, error)),
        };
        let entries: Vec<_> = names.into_iter().map(entry).collect::<Result<_, _>>()?;
        place.check_writable()?;
        claim(path, &place, entries.iter().map(|(name, entry)| (*name, entry)), targets)
    }

    /// The file that holds a position.
    fn file_at(&self, offset: u64) -> Option<&PendingFile> {
        let at = self.files.partition_point(|file| file.start <= offset);
        self.files[..at].last()
    }
}

impl Sink for FolderSink {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), SinkError> {
        match self.file_at(offset) {
            Some(file) => file.sink.write_at(offset - file.start, bytes),
            None => Ok(()),
        }
    }

    fn share(&self, offset: u64, file: &File, range: Range<u64>) -> Range<u64> {
        match self.file_at(offset) {
            Some(target) => target.sink.share(offset - target.start, file, range),
            None => range.start..range.start,
        }
    }

    fn settle(&self, range: Range<u64>, wait: bool) -> Result<(), SinkError> {
        let Some(file) = self.file_at(range.start) else { return Ok(()) };
        file.sink.settle(range.start - file.start..range.end - file.start, wait)
    }

    fn expect(&self, range: Range<u64>) {
        if let Some(file) = self.file_at(range.start) {
            file.sink.expect(range.start - file.start..range.end - file.start);
        }
    }
}

impl Draft for FolderSink {
    fn seal(&mut self) -> Result<(), SinkError> {
        self.files.iter().try_for_each(|file| file.sink.check_complete())
    }

    fn place(self: Box<Self>, _: Old) -> Result<Placed, SinkError> {
        let Self { path, files, place, removed, options } = *self;
        match place {
            FolderPlace::New(at) => whole::place_new(files, at, options),
            FolderPlace::Existing(folder) => {
                let linked = files.iter().any(|file| !Arc::ptr_eq(&file.entry.dir, &folder.fd));
                match if linked { None } else { whole::prepare(&folder, &files, &removed)? } {
                    Some(prepared) => whole::replace(files, folder, prepared, removed, options),
                    None => replace(files, &folder, &removed, options, |name, error| {
                        in_folder(&path, name, error)
                    }),
                }
            }
        }
    }
}

/// Refuse a folder, or a file of it, that another output is to have, too.
fn claim<'a>(
    path: &Path,
    place: &FolderPlace,
    mut entries: impl Iterator<Item = (&'a str, &'a FileAt)>,
    targets: &mut Targets,
) -> Result<(), SinkError> {
    match place {
        FolderPlace::New(at) => targets.add(path, Resolved::File(at.clone())),
        FolderPlace::Existing(_) => entries.try_for_each(|(name, entry)| {
            let added = targets.add(&path.join(name), Resolved::File(entry.clone()));
            added.map_err(|error| in_folder(path, name, error))
        }),
    }
}

/// The error of a file of a folder.
fn in_folder(folder: &Path, name: &str, error: SinkError) -> SinkError {
    error.of_file(folder.join(name))
}

// Files of a folder that are exchanged one by one, where the folder cannot be exchanged.
//
// The last old file, by which the others are found, is taken away, the others are exchanged, and the
// last new one takes its place, without a signal in between; those that are to go are taken away. Each can be taken back (`placed`), so that
// an error undoes all of it.

/// Give all files their names; `in_folder` says which one could not have its own.
pub(super) fn replace(
    files: Vec<PendingFile>,
    folder: &ExistingFolder,
    removed: &[String],
    options: SinkOptions,
    in_folder: impl Fn(&str, SinkError) -> SinkError,
) -> Result<Placed, SinkError> {
    let Some(last) = files.last().map(|file| (file.name.clone(), file.entry.clone())) else {
        return Ok(Placed::default());
    };
    without_signals(|| {
        let mut placed = Placed::default();
        let (name, entry) = last;
        if entry.old_mode.is_some() && options.force {
            let away = Placed::take_away(entry).map_err(SinkError::os("cannot be put in place"));
            placed = away.map_err(|error| in_folder(&name, error))?;
        }
        let placed = removed.iter().try_fold(placed, |placed, name| {
            let (dir, name) = (Arc::clone(&folder.fd), OsString::from(name));
            let away = Placed::take_away(FileAt { dir, name: name.clone(), old_mode: None });
            let away = away.map_err(SinkError::os("cannot be put in place"));
            placed.and(away).map_err(|error| in_folder(&name.to_string_lossy(), error))
        })?;
        files.into_iter().try_fold(placed, |placed, PendingFile { name, mut sink, .. }| {
            let one = sink.seal().and_then(|()| Box::new(sink).place(Old::Kept));
            placed.and(one).map_err(|error| in_folder(&name, error))
        })
    })
}

/// A file that has no name in its folder yet.
#[derive(Debug)]
pub(super) struct PendingFile {
    pub(super) name: String,
    /// The position of its first byte.
    pub(super) start: u64,
    /// Where it goes; in another folder, where a link leads there.
    pub(super) entry: FileAt,
    pub(super) sink: FileSink,
}

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
pub(super) fn folder_at(path: &Path) -> Result<FileAt, SinkError> {
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
