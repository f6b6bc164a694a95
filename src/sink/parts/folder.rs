//! The folder of a job and its files: made and begun (step 1), listed, and removed (step 6).

use std::ffi::OsString;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{JobRecord, PartsError};
use crate::os::fd::{AsFd, OwnedFd};
use crate::os::fs::{
    AtFlags, FileType, Mode, OFlags, fstat, ftruncate, linkat, mkdirat, openat, renameat, statat,
};
use crate::os::io::{Errno, Result as OsResult, retry_on_intr};
use crate::os::{FileId, names_in};
use crate::sink::folder::folder_at;
use crate::sink::placed::{open_dir, open_folder, sync_dir};
use crate::sink::resolve::{FileAt, Resolved, resolve};
use crate::sink::temp_name::{TempName, remove_tree};
use crate::sink::{SinkError, SinkResult};

const JOB: &str = "job";
/// The output, while it is written.
pub(super) const DATA: &str = "data";

/// The most bytes of a record: a job of a million inputs has fewer.
const MOST: u64 = 256 << 20;

/// The number of tries for a step that other processes may undo.
pub(super) const TRIES: usize = 100;

const CREATING: &str = "the folder of its parts cannot be created";
const READING: &str = "its parts cannot be read";
const RECORDING: &str = "a part cannot be recorded";
const REMOVING: &str = "the folder of its parts cannot be removed";

/// The folder of the parts of the output that `entry` names.
#[derive(Debug)]
pub(super) struct Folder {
    pub(super) entry: FileAt,
    pub(super) dir: Arc<OwnedFd>,
}

/// The open file or folder that becomes the output.
pub(super) struct Data {
    pub(super) id: FileId,
    pub(super) file: File,
}

/// Resolve the path of an output, which must be a file.
pub(super) fn output_at(path: &Path) -> SinkResult<FileAt> {
    match resolve(path)? {
        Resolved::File(entry) => Ok(entry),
        Resolved::Stdout | Resolved::Special { .. } => Err(PartsError::NotAFile.into()),
    }
}

pub(super) fn any_output_at(path: &Path) -> SinkResult<FileAt> {
    match output_at(path) {
        // a path that ends with a slash need not exist
        Err(SinkError::IsADirectory) => folder_at(path),
        entry => entry,
    }
}

/// The name of the folder of an output's parts.
fn own_name(entry: &FileAt) -> OsString {
    beside(".tslice-parts-", entry)
}

/// The name of the folder during its removal.
fn ended_name(entry: &FileAt) -> OsString {
    beside(".tslice-ended-", entry)
}

fn beside(prefix: &str, entry: &FileAt) -> OsString {
    let mut name = OsString::from(prefix);
    name.push(&entry.name);
    name
}

/// Remove the rest of a folder whose removal was killed.
pub(super) fn remove_ended(entry: &FileAt) -> SinkResult<()> {
    let mut removed = Ok(());
    for _ in 0..TRIES {
        removed = remove_tree(&entry.dir, &ended_name(entry));
        // a part that still runs may have put a file there
        if !matches!(removed, Err(Errno::NOTEMPTY | Errno::EXIST)) {
            break;
        }
    }
    unless_gone(removed, REMOVING).map(|_| ())
}

impl Folder {
    /// Open the folder of an output's parts, if it exists.
    pub(super) fn open(entry: &FileAt) -> SinkResult<Option<Folder>> {
        let dir = open_folder(&entry.dir, own_name(entry));
        let dir = unless_gone(dir, "the folder of its parts cannot be opened")?;
        Ok(dir.map(|dir| Folder { entry: entry.clone(), dir: Arc::new(dir) }))
    }

    /// Make the folder of an output's parts, unless it exists.
    pub(super) fn make(entry: &FileAt) -> SinkResult<()> {
        match mkdirat(&entry.dir, own_name(entry), Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(error) => Err(SinkError::os(CREATING)(error)),
        }
    }

    /// Begin a job, unless one is begun; returns the job that is begun.
    pub(super) fn begin(&self, job: &JobRecord, is_folder: bool) -> SinkResult<JobRecord> {
        if is_folder {
            match mkdirat(&self.dir, DATA, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(failed(CREATING)(error.into())),
            }
        } else {
            let (name, data) = self.create(CREATING)?;
            retry_on_intr(|| ftruncate(&data, job.len)).map_err(SinkError::os(CREATING))?;
            data.sync_all().map_err(SinkError::os(CREATING))?;
            self.link(&name, &self.dir, DATA, CREATING)?;
        }
        self.record(JOB, job)?;
        sync_parent(&self.entry).map_err(SinkError::os(CREATING))?;
        self.job()?.ok_or_else(|| PartsError::Discarded.into())
    }

    /// The record of the job; `None` where none is begun.
    pub(super) fn job(&self) -> SinkResult<Option<JobRecord>> {
        let job: Option<JobRecord> = self.read(JOB)?;
        match job {
            Some(job) if !job.is_possible() => Err(damaged(JOB)),
            job => Ok(job),
        }
    }

    /// Open the data that parts write: a file of `len` bytes, or a folder without a length. `None` where it has
    /// become the output.
    pub(super) fn open_data(&self, len: Option<u64>) -> SinkResult<Option<Data>> {
        let file = match len {
            // without the right to read: an NFS client would read pages that others are writing, and cache them
            Some(_) => self.open_file(DATA, OFlags::WRONLY)?,
            None => match open_folder(&self.dir, DATA) {
                Err(Errno::NOTDIR | Errno::LOOP) => return Err(damaged(DATA)),
                opened => unless_gone(opened, READING)?.map(File::from),
            },
        };
        let Some(file) = file else { return Ok(None) };
        let stat = fstat(&file).map_err(SinkError::os(READING))?;
        let found = u64::try_from(stat.st_size).unwrap_or_default();
        match len.filter(|&len| len != found) {
            Some(len) => Err(PartsError::OtherLen { found, len }.into()),
            None => Ok(Some(Data { id: FileId::any(&stat), file })),
        }
    }

    /// Open a file that this program has made; `None` where it is gone. This never waits and follows no link;
    /// anything else under the name is an error that names it.
    pub(super) fn open_file(&self, name: &str, access: OFlags) -> SinkResult<Option<File>> {
        let flags = access | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = match retry_on_intr(|| openat(&self.dir, name, flags, Mode::empty())) {
            // a link, a folder, a FIFO without a reader, a socket
            Err(Errno::LOOP | Errno::ISDIR | Errno::NXIO) => return Err(damaged(name)),
            opened => unless_gone(opened, "its parts cannot be opened")?,
        };
        let Some(file) = file else { return Ok(None) };
        let stat = fstat(&file).map_err(SinkError::os(READING))?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Ok(Some(File::from(file))),
            _ => Err(damaged(name)),
        }
    }

    /// The content of a record, if it exists.
    pub(super) fn read<T: DeserializeOwned>(&self, name: &str) -> SinkResult<Option<T>> {
        let Some(file) = self.open_file(name, OFlags::RDONLY)? else { return Ok(None) };
        let mut bytes = Vec::new();
        if file.metadata().map_err(SinkError::Io)?.len() > MOST {
            return Err(damaged(name));
        }
        match file.take(MOST).read_to_end(&mut bytes) {
            Ok(_) => serde_json::from_slice(&bytes).map(Some).map_err(|_| damaged(name)),
            Err(error) if error.kind() == ErrorKind::StaleNetworkFileHandle => Ok(None),
            Err(error) => Err(SinkError::Io(error)),
        }
    }

    /// Write a record, whole and synced. An existing record has the same content, and stays.
    pub(super) fn record(&self, name: &str, record: &impl Serialize) -> SinkResult<()> {
        let bytes = serde_json::to_vec(record).map_err(|error| SinkError::Io(error.into()))?;
        if bytes.len() as u64 > MOST {
            return Err(SinkError::Io(ErrorKind::FileTooLarge.into()));
        }
        self.write(&self.dir, name, &bytes, RECORDING)?;
        sync_dir(&self.dir).map_err(SinkError::os(RECORDING))
    }

    /// Write a file into this folder or a subfolder: it grows under a temporary name, and gets its own when it is
    /// synced.
    pub(super) fn write(
        &self,
        to: impl AsFd,
        name: &str,
        bytes: &[u8],
        what: &'static str,
    ) -> SinkResult<()> {
        let (temp_name, mut file) = self.create(what)?;
        file.write_all(bytes).and_then(|()| file.sync_all()).map_err(SinkError::Io)?;
        self.link(&temp_name, to, name, what)
    }

    fn create(&self, what: &'static str) -> SinkResult<(TempName, File)> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o666);
        let make = |name: &str| retry_on_intr(|| openat(&self.dir, name, flags, mode));
        let (name, file) = TempName::create(&self.dir, make).map_err(failed(what))?;
        Ok((name, file.into()))
    }

    /// Give a complete file its name, unless another process has done so.
    fn link(
        &self,
        temp: &TempName,
        to: impl AsFd,
        name: &str,
        what: &'static str,
    ) -> SinkResult<()> {
        match retry_on_intr(|| linkat(&self.dir, temp.name(), &to, name, AtFlags::empty())) {
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(error) => Err(failed(what)(error.into())),
        }
    }

    pub(super) fn has_part(&self, index: u64) -> SinkResult<bool> {
        let stat = statat(&self.dir, part_name(index), AtFlags::SYMLINK_NOFOLLOW);
        unless_gone(stat, READING).map(|part| part.is_some())
    }

    /// The numbers of the parts that are not complete, ascending.
    pub(super) fn missing(&self, count: u64) -> SinkResult<Vec<u64>> {
        let names = unless_gone(names_in(&self.dir), READING)?.unwrap_or_default();
        let number = |name: &OsString| name.to_str()?.strip_prefix("part.")?.parse().ok();
        let mut complete: Vec<u64> = names.iter().filter_map(number).collect();
        complete.sort_unstable();
        Ok((0..count).filter(|index| complete.binary_search(index).is_err()).collect())
    }

    /// Whether the folder still has its name, which it loses before it is removed.
    pub(super) fn is_named(&self) -> bool {
        let named = statat(&self.entry.dir, own_name(&self.entry), AtFlags::SYMLINK_NOFOLLOW);
        let own = fstat(&*self.dir);
        matches!((own, named), (Ok(own), Ok(it)) if FileId::any(&own) == FileId::any(&it))
    }

    /// Step 6.
    pub(super) fn remove(&self) -> SinkResult<()> {
        let failed = SinkError::os(REMOVING);
        for _ in 0..TRIES {
            remove_ended(&self.entry)?;
            if !self.is_named() {
                return Ok(());
            }
            let dir = &self.entry.dir;
            match renameat(dir, own_name(&self.entry), dir, ended_name(&self.entry)) {
                // removed by another process, or not empty since another process is removing files
                Ok(()) | Err(Errno::NOENT | Errno::NOTEMPTY | Errno::EXIST) => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Err(failed(Errno::NOTEMPTY))
    }
}

pub(super) fn part_name(index: u64) -> String {
    format!("part.{index}")
}

/// Sync the directory of the output; a directory that cannot be listed is skipped.
pub(super) fn sync_parent(entry: &FileAt) -> OsResult<()> {
    open_dir(&entry.dir, ".".as_ref()).map_or(Ok(()), sync_dir)
}

/// Whether an error says that a file, or its folder, is gone.
pub(super) fn is_gone(error: Errno) -> bool {
    matches!(error, Errno::NOENT | Errno::STALE)
}

/// The result of a call in the folder; `None` where its subject is gone.
pub(super) fn unless_gone<T>(result: OsResult<T>, what: &'static str) -> SinkResult<Option<T>> {
    match result {
        Err(error) if is_gone(error) => Ok(None),
        result => result.map(Some).map_err(SinkError::os(what)),
    }
}

/// The error of a call in the folder, which may have been removed.
pub(super) fn failed(what: &'static str) -> impl Fn(std::io::Error) -> SinkError {
    move |error| match Errno::from_io_error(&error) {
        Some(errno) if is_gone(errno) => PartsError::Discarded.into(),
        _ => SinkError::os(what)(error),
    }
}

pub(super) fn damaged(name: &str) -> SinkError {
    PartsError::Damaged(name.to_owned()).into()
}
