//! A folder of files that appears whole or not at all.
//!
//! To whoever writes it is one output: the bytes of each file follow those of the one before.
//!
//! 1. Each file begins as any output does (`file`): without a name, with room for all its bytes.
//! 2. `commit` counts every file's bytes before it names one.
//! 3. Where the folder is new, or empty, its files get their names in a folder whose own name
//!    begins with `.tslice-`, which is then renamed: all files appear at once.
//! 4. Where the folder holds files, `force` replaces those of the same names, one by one, and leaves
//!    the others alone. The last file comes last: of a checkpoint, that is the index, so that a run
//!    that is killed leaves an old index, never a new one that names files that are not there.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, RenameFlags, mkdirat, openat, renameat, renameat_with, statat,
};
use rustix::io::Errno;

use super::file::{FileSink, Naming, sync_dir};
use super::litter::Litter;
use super::place::Entry;
use super::{Options, Sink, SinkError, WriteOrder, retry};

/// A folder, on its way to its name.
#[derive(Debug)]
pub struct FolderSink {
    files: Vec<Part>,
    place: Place,
    options: Options,
}

#[derive(Debug)]
struct Part {
    name: String,
    /// The position of its first byte.
    start: u64,
    sink: FileSink,
}

/// Where the files go.
#[derive(Debug)]
enum Place {
    /// A folder that is not there, or empty: its name, in an open directory.
    New { dir: Arc<OwnedFd>, name: OsString },
    /// A folder that holds files.
    Old(Arc<OwnedFd>),
}

impl FolderSink {
    /// Begin a folder at `path` that is to hold these files, each a name and a length in bytes.
    ///
    /// # Errors
    /// [`SinkError::FolderExists`] where there are files and they are not to be replaced, and the
    /// operating system's.
    pub fn create(path: &Path, files: &[(&str, u64)], options: Options) -> Result<Self, SinkError> {
        let place = Place::find(path, options)?;
        let dir = match &place {
            Place::New { dir, .. } | Place::Old(dir) => dir,
        };
        let mut start = 0;
        let mut parts = Vec::with_capacity(files.len());
        for &(name, len) in files {
            let old = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).ok().filter(|_| place.is_old());
            let old = old.map(|stat| Mode::from_raw_mode(stat.st_mode & 0o777));
            let entry = Entry { dir: Arc::clone(dir), name: name.into(), old };
            let sink = FileSink::at(entry, Options { len: Some(len), ..options }, Naming::Unnamed)?;
            parts.push(Part { name: name.to_owned(), start, sink });
            start += len;
        }
        Ok(FolderSink { files: parts, place, options })
    }

    /// What [`FolderSink::create`] would find wrong, without creating anything.
    ///
    /// # Errors
    /// As there.
    pub fn check(path: &Path, options: Options) -> Result<(), SinkError> {
        Place::find(path, options).map(drop)
    }
}

impl Place {
    fn is_old(&self) -> bool {
        matches!(self, Place::Old(_))
    }

    fn find(path: &Path, options: Options) -> Result<Place, SinkError> {
        let failed = SinkError::os::<std::io::Error>("cannot be created");
        match path.read_dir() {
            Ok(mut entries) => {
                let real = path.canonicalize().map_err(&failed)?;
                match entries.next() {
                    Some(_) if !options.force => Err(SinkError::FolderExists),
                    Some(_) => Ok(Place::Old(open(&real)?)),
                    None => Place::new(&real),
                }
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Place::new(path),
            Err(error) if error.kind() == ErrorKind::Interrupted => Place::find(path, options),
            Err(error) => Err(failed(error)),
        }
    }

    fn new(path: &Path) -> Result<Place, SinkError> {
        let Some(name) = path.file_name() else {
            return Err(SinkError::os("cannot be created")(Errno::INVAL));
        };
        let parent = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        Ok(Place::New { dir: open(parent)?, name: name.to_owned() })
    }
}

fn open(dir: &Path) -> Result<Arc<OwnedFd>, SinkError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let dir = retry(|| openat(CWD, dir, flags, Mode::empty()));
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

    fn commit(self: Box<Self>) -> Result<(), SinkError> {
        self.files.iter().try_for_each(|file| file.sink.check_complete())?;
        let Self { files, place, options } = *self;
        match place {
            Place::Old(_) => files.into_iter().try_for_each(|file| Box::new(file.sink).commit()),
            Place::New { dir, name } => place_new(files, &dir, &name, options),
        }
    }
}

/// Step 3.
fn place_new(
    files: Vec<Part>,
    dir: &Arc<OwnedFd>,
    name: &OsString,
    options: Options,
) -> Result<(), SinkError> {
    let failed = SinkError::os::<std::io::Error>("cannot be put in place");
    let names = files.iter().map(|file| file.name.clone()).collect();
    let make = |name: &str| mkdirat(dir, name, Mode::from_raw_mode(0o777));
    let litter = Litter::create_folder(dir, names, make).map_err(&failed)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = retry(|| openat(dir, litter.name(), flags, Mode::empty()));
    let folder = Arc::new(folder.map_err(|error| failed(error.into()))?);
    for Part { sink, name, .. } in files {
        let entry = Entry { dir: Arc::clone(&folder), name: name.into(), old: None };
        sink.commit_as(&entry)?;
    }
    // An empty folder makes way for another, anything else does not.
    litter
        .settle(|old| match renameat_with(dir, old, dir, name, RenameFlags::NOREPLACE) {
            Ok(()) => Ok(()),
            Err(_) => renameat(dir, old, dir, name),
        })
        .map_err(|error| match error.raw_os_error() {
            Some(libc::EEXIST | libc::ENOTEMPTY | libc::ENOTDIR) => SinkError::FolderExists,
            _ => failed(error),
        })?;
    match options.fsync {
        true => sync_dir(dir.try_clone().map_err(&failed)?)
            .map_err(SinkError::os("is in place, but its name cannot be brought to the disk")),
        false => Ok(()),
    }
}
