//! The folder of a job: made, opened, and removed; records in it.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rustix::fs::{
    AtFlags, Dir, Mode, OFlags, RenameFlags, fstat, fsync, ftruncate, linkat, mkdirat, openat,
    renameat, renameat_with, statat, unlinkat,
};
use rustix::io::{Errno, retry_on_intr};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::PartsError;
use super::record::{DoneRecord, JobRecord};
use crate::sink::SinkError;
use crate::sink::placed::sync_dir;
use crate::sink::resolve::FileAt;
use crate::sink::temp_name::TempName;

/// What the job is.
const JOB: &str = "job";
/// The output.
pub(super) const DATA: &str = "data";

/// How long a record may stay invisible after its name was refused, in seconds: NFS clients keep
/// names that did not exist for up to 60 (`acdirmax`).
const INVISIBLE: u32 = 90;

/// The open folder of a job.
#[derive(Debug)]
pub(super) struct Folder {
    dir: Arc<OwnedFd>,
}

/// A record under a temporary name.
pub(super) struct Stored(TempName);

/// The name of the folder for an output.
fn folder_name(entry: &FileAt) -> OsString {
    let mut name = OsString::from(".tslice-parts-");
    name.push(&entry.name);
    name
}

/// Whether the error says that a file, or the folder that it was in, is gone.
pub(super) fn is_gone(error: Errno) -> bool {
    matches!(error, Errno::NOENT | Errno::STALE)
}

impl Folder {
    /// Open the folder of an output's parts, where there is one.
    pub(super) fn open(entry: &FileAt) -> Result<Option<Folder>, SinkError> {
        match open_dir(&entry.dir, &folder_name(entry)) {
            Ok(dir) => Ok(Some(Folder { dir: Arc::new(dir) })),
            Err(error) if is_gone(error) => Ok(None),
            Err(error) => Err(failed("the folder of its parts cannot be opened")(error)),
        }
    }

    /// Step 1. Another process that was faster is success too.
    pub(super) fn create(entry: &FileAt, job: &JobRecord) -> Result<(), SinkError> {
        let failed = failed("the folder of its parts cannot be created");
        let files = vec![JOB.into(), DATA.into()];
        let make = |name: &str| mkdirat(&entry.dir, name, Mode::from_raw_mode(0o777));
        let temp_name = TempName::create_folder(&entry.dir, files, make)
            .map_err(SinkError::os("the folder of its parts cannot be created"))?;
        let dir = open_dir(&entry.dir, &temp_name.name().into()).map_err(failed)?;
        write_file(&dir, JOB, &json(job)?).map_err(SinkError::Io)?;
        let data = create_file(&dir, DATA).map_err(failed)?;
        retry_on_intr(|| ftruncate(&data, job.len)).map_err(failed)?;
        data.sync_all().map_err(SinkError::Io)?;
        sync_dir(dir).map_err(failed)?;
        let placed = temp_name.persist(|old| {
            let (dir, name) = (&entry.dir, &folder_name(entry));
            match renameat_with(dir, old, dir, name, RenameFlags::NOREPLACE) {
                Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                    // never replaces a folder that is not empty
                    renameat(dir, old, dir, name)
                }
                result => result,
            }
        });
        match placed {
            Ok(()) => sync_parent(entry).map_err(failed),
            Err(error) => match Errno::from_io_error(&error) {
                Some(Errno::EXIST | Errno::NOTEMPTY) => Ok(()),
                _ => Err(SinkError::os("the folder of its parts cannot be created")(error)),
            },
        }
    }

    /// What the job is; `None` in a folder that is being removed.
    pub(super) fn job(&self) -> Result<Option<JobRecord>, SinkError> {
        self.read(JOB)
    }

    /// Open the shared file to write; `None` where it is in place, or being removed.
    pub(super) fn open_data(&self) -> Result<Option<File>, SinkError> {
        // not to read: an NFS client would read pages that others are writing, and keep them
        let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match retry_on_intr(|| openat(&self.dir, DATA, flags, Mode::empty())) {
            Ok(file) => Ok(Some(File::from(file))),
            Err(error) if is_gone(error) => Ok(None),
            Err(error) => Err(failed("its parts cannot be opened")(error)),
        }
    }

    /// Write a record under a temporary name, and bring it to the disk.
    pub(super) fn store(&self, record: &DoneRecord) -> Result<Stored, SinkError> {
        let make = |name: &str| create_file(&self.dir, name);
        let stored =
            TempName::create(&self.dir, make).map_err(|error| match Errno::from_io_error(&error) {
                Some(errno) if is_gone(errno) => PartsError::Discarded.into(),
                _ => SinkError::os("a part cannot be recorded")(error),
            });
        let (name, mut file) = stored?;
        file.write_all(&json(record)?).and_then(|()| file.sync_all()).map_err(SinkError::Io)?;
        Ok(Stored(name))
    }

    /// Give a record its name. `None` if that succeeds, or else the record that has the name.
    pub(super) fn publish(
        &self,
        stored: &Stored,
        name: &str,
    ) -> Result<Option<DoneRecord>, SinkError> {
        let (dir, from) = (&self.dir, stored.0.name());
        match retry_on_intr(|| linkat(dir, from, dir, name, AtFlags::empty())) {
            Ok(()) => Ok(None),
            Err(Errno::EXIST) => self.wait_for(name).map(Some),
            Err(error) if is_gone(error) => Err(PartsError::Discarded.into()),
            Err(error) => Err(failed("a part cannot be recorded")(error)),
        }
    }

    /// Bring the names of records to the disk.
    pub(super) fn sync(&self) -> Result<(), SinkError> {
        match retry_on_intr(|| fsync(&self.dir)) {
            Ok(()) | Err(Errno::INVAL | Errno::OPNOTSUPP) => Ok(()),
            Err(error) => Err(failed("a part cannot be recorded")(error)),
        }
    }

    /// The record of a part, where it is complete.
    pub(super) fn done(&self, index: u64) -> Result<Option<DoneRecord>, SinkError> {
        self.read(&part_name(index))
    }

    /// A record that is known to exist.
    fn wait_for(&self, name: &str) -> Result<DoneRecord, SinkError> {
        for _ in 0..INVISIBLE {
            if let Some(record) = self.read(name)? {
                return Ok(record);
            }
            if self.job()?.is_none() {
                return Err(PartsError::Discarded.into());
            }
            thread::sleep(Duration::from_secs(1));
        }
        Err(PartsError::Invisible(name.to_owned()).into())
    }

    /// What a file says, where it exists.
    fn read<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, SinkError> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = match retry_on_intr(|| openat(&self.dir, name, flags, Mode::empty())) {
            Ok(file) => file,
            Err(error) if is_gone(error) => return Ok(None),
            Err(error) => return Err(failed("its parts cannot be read")(error)),
        };
        let mut bytes = Vec::new();
        match File::from(file).read_to_end(&mut bytes) {
            Ok(_) => {}
            Err(error) if error.raw_os_error() == Some(libc::ESTALE) => return Ok(None),
            Err(error) => return Err(SinkError::Io(error)),
        }
        let damaged = |_| PartsError::Damaged(name.to_owned());
        Ok(Some(serde_json::from_slice(&bytes).map_err(damaged)?))
    }

    /// Whether the shared file is the one that has the output's name.
    pub(super) fn is_placed(data: &File, entry: &FileAt) -> bool {
        let data = fstat(data);
        let there = statat(&entry.dir, &entry.name, AtFlags::SYMLINK_NOFOLLOW);
        data.is_ok_and(|data| {
            there.is_ok_and(|it| (it.st_dev, it.st_ino) == (data.st_dev, data.st_ino))
        })
    }

    /// Step 7.
    pub(super) fn place(&self, data: &File, entry: &FileAt, force: bool) -> Result<(), SinkError> {
        let placed = if force {
            retry_on_intr(|| renameat(&self.dir, DATA, &entry.dir, &entry.name))
        } else {
            retry_on_intr(|| linkat(&self.dir, DATA, &entry.dir, &entry.name, AtFlags::empty()))
        };
        match placed {
            Ok(()) => sync_parent(entry)
                .map_err(failed("is in place, but its name cannot be brought to the disk")),
            Err(_) if Folder::is_placed(data, entry) => Ok(()),
            Err(Errno::EXIST) => Err(SinkError::AlreadyExists),
            Err(error) if is_gone(error) => Err(PartsError::Discarded.into()),
            Err(error) => Err(failed("cannot be put in place")(error)),
        }
    }

    /// Step 8.
    pub(super) fn remove(self, entry: &FileAt) -> Result<(), SinkError> {
        let failed = failed("the folder of its parts cannot be removed");
        let unlink = |name: &std::ffi::CStr| match unlinkat(&self.dir, name, AtFlags::empty()) {
            Err(error) if !is_gone(error) => Err(failed(error)),
            _ => Ok(()),
        };
        unlink(c"job")?;
        // repeated, since a part that still runs may have put a record there
        for _ in 0..100 {
            self.names()?.iter().try_for_each(|name| unlink(name))?;
            match unlinkat(&entry.dir, folder_name(entry), AtFlags::REMOVEDIR) {
                Err(Errno::NOTEMPTY | Errno::EXIST) => {}
                Err(error) if !is_gone(error) => return Err(failed(error)),
                _ => return Ok(()),
            }
            // the name may by now be that of a new job
            if self.is_unlinked(entry) {
                return Ok(());
            }
        }
        // what an NFS client holds open keeps a name; the next part of any job removes it
        Ok(())
    }

    /// Whether the folder has lost its name.
    fn is_unlinked(&self, entry: &FileAt) -> bool {
        let there = statat(&entry.dir, folder_name(entry), AtFlags::SYMLINK_NOFOLLOW);
        let own = fstat(&*self.dir);
        own.is_ok_and(|own| {
            there.is_ok_and(|it| (it.st_dev, it.st_ino) != (own.st_dev, own.st_ino))
        })
    }

    /// The names of all files in it.
    pub(super) fn names(&self) -> Result<Vec<std::ffi::CString>, SinkError> {
        let failed = failed("the folder of its parts cannot be listed");
        let mut names = Vec::new();
        let entries = match Dir::read_from(&self.dir) {
            Err(error) if is_gone(error) => return Ok(names),
            entries => entries.map_err(failed)?,
        };
        for found in entries {
            match found {
                Ok(found) if matches!(found.file_name().to_bytes(), b"." | b"..") => {}
                Ok(found) => names.push(found.file_name().to_owned()),
                Err(error) if is_gone(error) => break,
                Err(error) => return Err(failed(error)),
            }
        }
        Ok(names)
    }
}

/// The name of a part's record.
pub(super) fn part_name(index: u64) -> String {
    format!("part.{index}")
}

/// The part whose record has that name.
pub(super) fn part_of_name(name: &[u8]) -> Option<u64> {
    std::str::from_utf8(name).ok()?.strip_prefix("part.")?.parse().ok()
}

fn failed(what: &'static str) -> impl Fn(Errno) -> SinkError + Copy {
    move |error| SinkError::os(what)(error)
}

fn json(value: &impl Serialize) -> Result<Vec<u8>, SinkError> {
    serde_json::to_vec(value).map_err(|error| SinkError::Io(error.into()))
}

fn open_dir(dir: &OwnedFd, name: &OsString) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    retry_on_intr(|| openat(dir, name, flags, Mode::empty()))
}

/// A new file.
fn create_file(dir: &OwnedFd, name: &str) -> rustix::io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(0o666);
    retry_on_intr(|| openat(dir, name, flags, mode)).map(File::from)
}

fn write_file(dir: &OwnedFd, name: &str, bytes: &[u8]) -> io::Result<()> {
    let mut file = create_file(dir, name)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Bring the names beside the output to the disk; a folder that cannot be listed is let be.
fn sync_parent(entry: &FileAt) -> rustix::io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    match retry_on_intr(|| openat(&entry.dir, ".", flags, Mode::empty())) {
        Ok(dir) => sync_dir(dir),
        Err(_) => Ok(()),
    }
}
