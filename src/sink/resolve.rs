//! Resolving an output path: follow symbolic links and find out what is there.
//!
//! An output replaces the file that a link points to, not the link, also if that file does not
//! exist yet. The result is a name in an open directory, so that later changes to the path's
//! directories don't matter. A link into a cache whose files are named by their content is refused: the
//! file would keep the name of what it held before, for all that read the cache.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use rustix::fs::{AtFlags, CWD, FileType, Mode, Stat, fstat, readlinkat, statat};
use rustix::io::Errno;

use super::{Destination, SinkError, SinkOptions, SinkResult};
use crate::os;
use crate::os::FileId;

/// How many links are followed, as in the kernel.
const LINKS: usize = 40;

const REPLACING: &str = "cannot be replaced";

/// What an output path stands for.
pub(super) enum Resolved {
    /// This process's standard output, by a name such as `/dev/stdout`.
    Stdout,
    /// An existing FIFO or device, or another open descriptor (`/dev/fd/3`).
    Special { dir: OwnedFd, name: OsString },
    /// A regular file, or a name that does not exist.
    File(FileAt),
}

/// A name in a directory, for a regular file.
#[derive(Clone, Debug)]
pub(super) struct FileAt {
    pub(super) dir: Arc<OwnedFd>,
    pub(super) name: OsString,
    /// The permission bits of the file that has the name now.
    pub(super) old_mode: Option<Mode>,
}

impl FileAt {
    /// What has the name now.
    pub(super) fn id(&self) -> Option<FileId> {
        let there = statat(&self.dir, &self.name, AtFlags::SYMLINK_NOFOLLOW);
        there.ok().as_ref().map(FileId::any)
    }

    /// What is said where no file can be made for the name.
    pub(super) fn making(&self) -> &'static str {
        if self.old_mode.is_some() { REPLACING } else { "cannot be created" }
    }

    pub(super) fn check_overwrite(&self, options: SinkOptions) -> SinkResult<()> {
        if self.old_mode.is_some() && !options.force {
            Err(SinkError::AlreadyExists)
        } else {
            Ok(())
        }
    }
}

pub(super) fn resolve(path: &Path) -> SinkResult<Resolved> {
    resolve_from(CWD, path)
}

/// The same for a path that is relative to the directory `from`.
pub(super) fn resolve_from(from: impl AsFd, path: &Path) -> SinkResult<Resolved> {
    let place = follow(&from, path)?;
    if let Resolved::File(FileAt { dir, name, .. }) = &place
        && holds_blobs(dir)
        && goes_through_link(from, path)
    {
        return Err(SinkError::NamedByContent { target: Path::new("blobs").join(name) });
    }
    Ok(place)
}

/// Refuse a file that is to be changed where it lies, if a link leads to it into a cache whose files are
/// named by their content. What else is wrong with it shows when it is opened.
pub(super) fn check_in_place(path: &Path) -> SinkResult<()> {
    match resolve(path) {
        Err(error @ SinkError::NamedByContent { .. }) => Err(error),
        _ => Ok(()),
    }
}

/// Whether a directory is the `blobs` beside `snapshots`, in which Hugging Face's cache keeps files by the
/// digests of their content.
fn holds_blobs(dir: &OwnedFd) -> bool {
    let beside = |name: &str| statat(dir, name, AtFlags::empty()).ok();
    let id = |stat: Option<Stat>| stat.map(|stat| FileId::any(&stat));
    let blobs = id(beside("../blobs"));
    blobs.is_some()
        && id(fstat(dir).ok()) == blobs
        && beside("../snapshots")
            .is_some_and(|it| FileType::from_raw_mode(it.st_mode) == FileType::Directory)
}

/// Whether a path or one of its directories, as it was typed, is a link.
fn goes_through_link(from: impl AsFd, path: &Path) -> bool {
    let is_link = |path: &Path| {
        let stat = statat(&from, path, AtFlags::SYMLINK_NOFOLLOW);
        stat.is_ok_and(|it| FileType::from_raw_mode(it.st_mode) == FileType::Symlink)
    };
    path.ancestors().filter(|path| !path.as_os_str().is_empty()).any(is_link)
}

/// What a path leads to that goes through links: the path of a file or a folder, without links, that need not
/// be there. `None` for a path without links, and where they lead to a stream or nowhere.
pub fn link_target(target: &Destination) -> Option<PathBuf> {
    let Destination::Path(path) = target else { return None };
    if !goes_through_link(CWD, path) || target.is_stream() {
        return None;
    }
    let mut at = path.clone();
    for _ in 0..LINKS {
        let Ok(link) = std::fs::read_link(&at) else { break };
        at = at.parent().unwrap_or(Path::new("")).join(link);
    }
    let parent = at.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new(".")).canonicalize().ok();
    at.canonicalize().ok().or_else(|| Some(parent?.join(at.file_name()?)))
}

/// Follow the symbolic links of a path that is relative to the directory `from`.
fn follow(from: impl AsFd, path: &Path) -> SinkResult<Resolved> {
    let failed = SinkError::os::<Errno>("cannot be created");
    let (mut dir, mut name) = step(from, path)?;
    for _ in 0..LINKS {
        let stat = match statat(&dir, &name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => {
                return Ok(Resolved::File(FileAt { dir: shared(dir), name, old_mode: None }));
            }
            Err(error) => return Err(failed(error)),
        };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => return Err(SinkError::IsADirectory),
            FileType::RegularFile => {
                let old_mode = Some(Mode::from_raw_mode(stat.st_mode & 0o777));
                return Ok(Resolved::File(FileAt { dir: shared(dir), name, old_mode }));
            }
            FileType::Symlink if os::is_descriptors(&dir) => return descriptor(dir, name),
            FileType::Symlink => {
                let link = readlinkat(&dir, &name, Vec::new()).map_err(&failed)?;
                let link = PathBuf::from(OsString::from_vec(link.into_bytes()));
                (dir, name) = step(dir, &link)?;
            }
            _ => return Ok(Resolved::Special { dir, name }),
        }
    }
    Err(failed(Errno::LOOP))
}

/// Open the parent directory of `path`, which is relative to `from`; return it and the last name.
fn step(from: impl AsFd, path: &Path) -> SinkResult<(OwnedFd, OsString)> {
    let failed = SinkError::os("cannot be created");
    let bytes = path.as_os_str().as_bytes();
    if bytes.is_empty() {
        return Err(failed(Errno::NOENT));
    }
    // `Path` ignores a trailing slash or dot, the kernel does not.
    if bytes.ends_with(b"/") || bytes.ends_with(b"/.") {
        return Err(SinkError::IsADirectory);
    }
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(SinkError::IsADirectory);
    };
    let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    let dir = os::open_place(from, parent).map_err(failed)?;
    Ok((dir, name.to_owned()))
}

/// The descriptor of a directory, which is that of the output before where both are in one: thousands of
/// outputs in one directory take one descriptor for it.
fn shared(dir: OwnedFd) -> Arc<OwnedFd> {
    static LAST: Mutex<Weak<OwnedFd>> = Mutex::new(Weak::new());
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    let id = |dir: &OwnedFd| fstat(dir).ok().map(|stat| FileId::any(&stat));
    match last.upgrade() {
        Some(old) if id(&old).is_some() && id(&old) == id(&dir) => old,
        _ => {
            let dir = Arc::new(dir);
            *last = Arc::downgrade(&dir);
            dir
        }
    }
}

/// A link in a folder of descriptors (`/dev/stdout` and `/dev/fd/3` lead there) stands for an open one,
/// whatever its text says.
fn descriptor(dir: OwnedFd, name: OsString) -> SinkResult<Resolved> {
    let stat = statat(&dir, &name, AtFlags::empty()).map_err(SinkError::os("cannot be opened"))?;
    let stdout = fstat(std::io::stdout()).ok();
    if name == OsStr::new("1") && stdout.is_some_and(|it| FileId::any(&it) == FileId::any(&stat)) {
        return Ok(Resolved::Stdout);
    }
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => Err(SinkError::IsADirectory),
        _ => Ok(Resolved::Special { dir, name }),
    }
}

// Whether several outputs are several files.
//
// Two paths may lead to one name: through symbolic links, linked folders, `..`. So each is resolved to
// the directory that it is in, by device and inode, and the name there, which need not exist. All are
// added before the first output is created.

/// Where outputs go that are written together: of each the folder and the name in it. A FIFO, a device or an
/// open descriptor is itself, without a name, and so is standard output, which is nowhere.
#[derive(Debug, Default)]
pub struct Targets(HashMap<(Option<FileId>, OsString), PathBuf>);

impl Targets {
    pub(super) fn add(&mut self, path: &Path, place: Resolved) -> SinkResult<()> {
        let target = match place {
            Resolved::File(FileAt { dir, name, .. }) => {
                let dir = fstat(dir).map_err(SinkError::os("cannot be created"))?;
                (Some(FileId::any(&dir)), name)
            }
            Resolved::Stdout => (None, OsString::new()),
            Resolved::Special { dir, name } => {
                let stat = statat(dir, name, AtFlags::empty());
                let stat = stat.map_err(SinkError::os("cannot be opened"))?;
                (Some(FileId::any(&stat)), OsString::new())
            }
        };
        match self.0.entry(target) {
            Entry::Occupied(other) => Err(SinkError::SameFile { other: other.get().clone() }),
            Entry::Vacant(free) => {
                free.insert(path.to_owned());
                Ok(())
            }
        }
    }
}
