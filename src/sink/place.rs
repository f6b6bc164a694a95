//! Where a path leads: symbolic links followed, the kind of thing at their end found out.
//!
//! An output replaces what its name stands for, so a link goes on pointing: the name that is
//! written is the last one of the chain, also when nothing is there yet. From here on that is a
//! name in an open directory, which nobody can exchange under us.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, fstat, fstatfs, openat, readlinkat, statat,
};
use rustix::io::Errno;

use super::{Options, SinkError, retry};

/// How many links are followed, as in the kernel.
const LINKS: usize = 40;

/// What a path leads to.
pub(super) enum Place {
    /// This process's standard output, under one of its names.
    Stdout,
    /// A FIFO or device that exists, or whatever another open descriptor stands for.
    Stream(Stream),
    /// A regular file, or nothing yet.
    File(Entry),
}

/// Something that is written as it stands.
pub(super) struct Stream {
    pub(super) dir: OwnedFd,
    pub(super) name: OsString,
}

/// A name in a directory, for a regular file.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) dir: Arc<OwnedFd>,
    pub(super) name: OsString,
    /// The permission bits of the file that has the name now.
    pub(super) old: Option<Mode>,
}

impl Entry {
    /// Refuse to replace what was not to be replaced.
    pub(super) fn may_be_written(&self, options: Options) -> Result<(), SinkError> {
        if self.old.is_some() && !options.force { Err(SinkError::Exists) } else { Ok(()) }
    }
}

/// Follow `path` to its end.
pub(super) fn resolve(path: &Path) -> Result<Place, SinkError> {
    let failed = SinkError::os::<Errno>("cannot be created");
    let (mut dir, mut name) = step(CWD, path)?;
    for _ in 0..LINKS {
        let stat = match statat(&dir, &name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => {
                return Ok(Place::File(Entry { dir: Arc::new(dir), name, old: None }));
            }
            Err(error) => return Err(failed(error)),
        };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => return Err(SinkError::Directory),
            FileType::RegularFile => {
                let old = Some(Mode::from_raw_mode(stat.st_mode & 0o777));
                return Ok(Place::File(Entry { dir: Arc::new(dir), name, old }));
            }
            FileType::Symlink if is_proc(&dir) => return descriptor(dir, name),
            FileType::Symlink => {
                let link = readlinkat(&dir, &name, Vec::new()).map_err(&failed)?;
                let link = PathBuf::from(OsString::from_vec(link.into_bytes()));
                (dir, name) = step(dir, &link)?;
            }
            _ => return Ok(Place::Stream(Stream { dir, name })),
        }
    }
    Err(failed(Errno::LOOP))
}

/// Open the directory of `path`, which starts at `from`, and give the name that is left.
fn step(from: impl AsFd, path: &Path) -> Result<(OwnedFd, OsString), SinkError> {
    let failed = SinkError::os("cannot be created");
    let bytes = path.as_os_str().as_bytes();
    if bytes.is_empty() {
        return Err(failed(Errno::NOENT));
    }
    // `Path` overlooks what stands at the end here, the kernel does not.
    if bytes.ends_with(b"/") || bytes.ends_with(b"/.") {
        return Err(SinkError::Directory);
    }
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(SinkError::Directory);
    };
    let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    // Not opened for reading, which is a right of its own that a drop-box doesn't grant.
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let dir = retry(|| openat(&from, parent, flags, Mode::empty())).map_err(failed)?;
    Ok((dir, name.to_owned()))
}

/// The links of `/proc/self/fd`, to which `/dev/stdout` and `/dev/fd/3` lead, stand for open
/// descriptors, whatever their text says.
fn descriptor(dir: OwnedFd, name: OsString) -> Result<Place, SinkError> {
    let stat = statat(&dir, &name, AtFlags::empty()).map_err(SinkError::os("cannot be opened"))?;
    let stdout = fstat(std::io::stdout()).ok();
    if name == OsStr::new("1")
        && stdout.is_some_and(|stdout| (stdout.st_dev, stdout.st_ino) == (stat.st_dev, stat.st_ino))
    {
        return Ok(Place::Stdout);
    }
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => Err(SinkError::Directory),
        _ => Ok(Place::Stream(Stream { dir, name })),
    }
}

fn is_proc(dir: &OwnedFd) -> bool {
    const PROC: u32 = 0x9fa0;
    fstatfs(dir).is_ok_and(|fs| fs.f_type as u32 == PROC)
}
