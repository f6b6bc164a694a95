//! Resolution of output paths: symbolic links are followed to an existing file or a free name.
//!
//! An output replaces the file that a link points to, not the link, even if that file does not exist yet. The
//! result is a name in an open directory, so that later changes to the path's directories don't matter. A
//! link into a cache whose files are named by their content is refused: the file would be named by its old
//! content, for all readers of the cache.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf, is_separator};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::{Destination, SinkError, SinkOptions, SinkResult};
use crate::os;
use crate::os::FileId;
use crate::os::fd::{AsFd, OwnedFd};
use crate::os::fs::{AtFlags, CWD, FileType, Mode, Stat, fstat, statat};
use crate::os::io::Errno;

/// The most links that are followed, as in the kernel.
const LINKS: usize = 40;

const REPLACING: &str = "cannot be replaced";

/// The target of an output path.
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
    /// The permission bits of the existing file.
    pub(super) old_mode: Option<Mode>,
}

impl FileAt {
    /// The identity of the file or folder that has the name now.
    pub(super) fn id(&self) -> Option<FileId> {
        let there = statat(&self.dir, &self.name, AtFlags::SYMLINK_NOFOLLOW);
        there.ok().as_ref().map(FileId::any)
    }

    /// The words for an error in making a file of this name.
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

/// Resolve a path that is relative to the directory `from`.
pub(super) fn resolve_from(from: impl AsFd, path: &Path) -> SinkResult<Resolved> {
    let resolved = follow(&from, path)?;
    if let Resolved::File(FileAt { dir, name, .. }) = &resolved
        && holds_blobs(dir)
        && goes_through_link(from, path)
    {
        return Err(SinkError::NamedByContent { target: Path::new("blobs").join(name) });
    }
    Ok(resolved)
}

/// Refuse a file to be changed in resolved, if a link leads to it into a cache whose files are named by their
/// content. Other faults show when the file is opened.
pub(super) fn check_in_place(path: &Path) -> SinkResult<()> {
    match resolve(path) {
        Err(error @ SinkError::NamedByContent { .. }) => Err(error),
        _ => Ok(()),
    }
}

/// Whether a directory is the `blobs` beside `snapshots`, in which Hugging Face's cache stores files by the
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

/// Whether a path, or one of its directories as typed, is a link.
fn goes_through_link(from: impl AsFd, path: &Path) -> bool {
    let is_link = |path: &Path| {
        let stat = statat(&from, path, AtFlags::SYMLINK_NOFOLLOW);
        stat.is_ok_and(|it| FileType::from_raw_mode(it.st_mode) == FileType::Symlink)
    };
    path.ancestors().filter(|path| !path.as_os_str().is_empty()).any(is_link)
}

/// The target of a path that goes through links: the path of a file or folder, without links, which need not
/// exist. `None` for a path without links, and where links lead to a stream or nowhere.
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
                let link = os::link_text(&dir, &name).map_err(&failed)?;
                (dir, name) = step(dir, &link)?;
            }
            _ => return Ok(Resolved::Special { dir, name }),
        }
    }
    Err(failed(Errno::LOOP))
}

/// Open the parent directory of `path`, which is relative to `from`; return the directory and the last name.
fn step(from: impl AsFd, path: &Path) -> SinkResult<(OwnedFd, OsString)> {
    let failed = SinkError::os("cannot be created");
    let bytes = path.as_os_str().as_encoded_bytes();
    if bytes.is_empty() {
        return Err(failed(Errno::NOENT));
    }
    // `Path` ignores a trailing slash or dot, the kernel does not.
    let end = bytes.strip_suffix(b".").unwrap_or(bytes).last();
    if end.is_some_and(|&end| is_separator(end.into())) {
        return Err(SinkError::IsADirectory);
    }
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(SinkError::IsADirectory);
    };
    let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    let dir = os::open_place(from, parent).map_err(failed)?;
    Ok((dir, name.to_owned()))
}

/// Share the descriptor of the previous output's directory, where it is the same one: thousands of outputs in
/// one directory take one descriptor.
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

/// Resolve a link in a folder of descriptors, where `/dev/stdout` and `/dev/fd/3` lead. It stands for an open
/// descriptor, whatever its text is.
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
// Two paths may lead to one name: through symbolic links, linked folders, `..`. So each path is resolved to
// its directory, by device and inode, and its name there, which need not exist. All outputs are added before
// the first one is created.

/// The targets of outputs that are written together: for each, the folder and the name in it. A FIFO, a
/// device or an open descriptor has its own identity and no name; standard output has no identity either.
#[derive(Debug, Default)]
pub struct Targets(HashMap<(Option<FileId>, OsString), PathBuf>);

impl Targets {
    pub(super) fn add(&mut self, path: &Path, resolved: Resolved) -> SinkResult<()> {
        let target = match resolved {
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
