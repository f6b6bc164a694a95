//! The folder of a job: opened, listed, and removed; records in it.

use std::ffi::{CString, OsStr, OsString};
use std::io::{ErrorKind, Read};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rustix::fs::{AtFlags, Dir, Mode, OFlags, fstat, linkat, openat, statat, unlinkat};
use rustix::io::{Errno, retry_on_intr};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::PartsError;
use super::own::{MOST, create_own, damaged, is_gone, open_own, write_record};
use super::record::JobRecord;
use crate::os::FileId;
use crate::sink::SinkError;
use crate::sink::folder::folder_at;
use crate::sink::placed::{open_dir as open_parent, sync_dir};
use crate::sink::resolve::{FileAt, Resolved, resolve};
use crate::sink::temp_name::{TempName, remove_tree};

/// What the job is.
pub(super) const JOB: &str = "job";
/// The output, while it is written.
pub(super) const DATA: &str = "data";
/// The output, when nobody may open it to write any more.
pub(super) const CLOSED: &str = "closed";
/// Says that an input changed while parts were written.
const CHANGED: &str = "changed";

/// How long a record may stay invisible after its name was refused, in seconds: NFS clients keep
/// names that did not exist for up to 60 (`acdirmax`).
const INVISIBLE: u32 = 90;

/// The open folder of a job.
#[derive(Debug)]
pub(super) struct Folder {
    pub(super) dir: Arc<OwnedFd>,
}

/// A record under a temporary name.
pub(super) struct Stored(TempName);

/// Where the output at a path is, which has to be a file.
pub(super) fn output_at(path: &Path) -> Result<FileAt, SinkError> {
    match resolve(path)? {
        Resolved::File(entry) => Ok(entry),
        Resolved::Stdout | Resolved::Special { .. } => Err(PartsError::NotAFile.into()),
    }
}

/// Where the output at a path is, a file or a folder.
pub(super) fn any_output_at(path: &Path) -> Result<FileAt, SinkError> {
    match output_at(path) {
        // one that ends with a slash need not be there
        Err(SinkError::IsADirectory) => folder_at(path),
        entry => entry,
    }
}

/// The name of the folder for an output.
pub(super) fn folder_name(entry: &FileAt) -> OsString {
    let mut name = OsString::from(".tslice-parts-");
    name.push(&entry.name);
    name
}

impl Folder {
    /// Open the folder of an output's parts, where there is one.
    pub(super) fn open(entry: &FileAt) -> Result<Option<Folder>, SinkError> {
        match open_dir(&entry.dir, folder_name(entry)) {
            Ok(dir) => Ok(Some(Folder { dir: Arc::new(dir) })),
            Err(error) if is_gone(error) => Ok(None),
            Err(error) => Err(SinkError::os("the folder of its parts cannot be opened")(error)),
        }
    }

    /// What the job is; `None` in a folder that is being removed.
    pub(super) fn job(&self) -> Result<Option<JobRecord>, SinkError> {
        let job: Option<JobRecord> = self.read(JOB)?;
        match job {
            Some(job) if !job.is_possible() => Err(damaged(JOB)),
            job => Ok(job),
        }
    }

    /// What a record says, where it exists.
    pub(super) fn read<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, SinkError> {
        let file = open_own(&self.dir, name, OFlags::RDONLY, "its parts cannot be read")?;
        let Some(file) = file else { return Ok(None) };
        let mut bytes = Vec::new();
        if file.metadata().map_err(SinkError::Io)?.len() > MOST {
            return Err(damaged(name));
        }
        match file.take(MOST).read_to_end(&mut bytes) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::StaleNetworkFileHandle => return Ok(None),
            Err(error) => return Err(SinkError::Io(error)),
        }
        serde_json::from_slice(&bytes).map(Some).map_err(|_| damaged(name))
    }

    /// Write a record under a temporary name, and bring it to the disk.
    pub(super) fn store(&self, record: &impl Serialize) -> Result<Stored, SinkError> {
        let make = |name: &str| create_own(&self.dir, name);
        let stored =
            TempName::create(&self.dir, make).map_err(|error| match Errno::from_io_error(&error) {
                Some(errno) if is_gone(errno) => PartsError::Discarded.into(),
                _ => SinkError::os("a part cannot be recorded")(error),
            });
        let (name, file) = stored?;
        write_record(file, record)?;
        Ok(Stored(name))
    }

    /// Give a record its name. `None` if that succeeds, or else the record that has the name.
    pub(super) fn publish<T: DeserializeOwned>(
        &self,
        stored: &Stored,
        name: &str,
    ) -> Result<Option<T>, SinkError> {
        let (dir, from) = (&self.dir, stored.0.name());
        match retry_on_intr(|| linkat(dir, from, dir, name, AtFlags::empty())) {
            Ok(()) => Ok(None),
            Err(Errno::EXIST) => self.wait_for(name).map(Some),
            Err(error) if is_gone(error) => Err(PartsError::Discarded.into()),
            Err(error) => Err(SinkError::os("a part cannot be recorded")(error)),
        }
    }

    /// Bring the names of records to the disk.
    pub(super) fn sync(&self) -> Result<(), SinkError> {
        sync_dir(&self.dir).map_err(SinkError::os("a part cannot be recorded"))
    }

    /// A record that is known to exist.
    fn wait_for<T: DeserializeOwned>(&self, name: &str) -> Result<T, SinkError> {
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

    /// Say that an input changed: the job is never completed.
    pub(super) fn spoil(&self) -> Result<(), SinkError> {
        match create_own(&self.dir, CHANGED) {
            Ok(_) | Err(Errno::EXIST) => Ok(()),
            Err(error) if is_gone(error) => Ok(()),
            Err(error) => Err(SinkError::os("a part cannot be recorded")(error)),
        }
    }

    /// Refuse a job of which an input changed.
    pub(super) fn check_unspoiled(&self) -> Result<(), SinkError> {
        match statat(&self.dir, CHANGED, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => Err(PartsError::Spoiled.into()),
            Err(error) if is_gone(error) => Ok(()),
            Err(error) => Err(SinkError::os("its parts cannot be read")(error)),
        }
    }

    /// Which file it is that has a name in the folder.
    pub(super) fn file_id(&self, name: &str) -> Option<FileId> {
        statat(&self.dir, name, AtFlags::SYMLINK_NOFOLLOW).ok().as_ref().and_then(FileId::from_stat)
    }

    /// Step 8.
    pub(super) fn remove(self, entry: &FileAt) -> Result<(), SinkError> {
        self.remove_named(entry, &folder_name(entry))
    }

    /// Remove a folder of a name beside the output.
    pub(super) fn remove_named(self, entry: &FileAt, own: &OsStr) -> Result<(), SinkError> {
        let failed = SinkError::os::<Errno>("the folder of its parts cannot be removed");
        let unlink = |name: &std::ffi::CStr| match unlinkat(&self.dir, name, AtFlags::empty()) {
            // systems other than Linux may not say which it is
            Err(Errno::ISDIR | Errno::PERM) if name.to_bytes() == DATA.as_bytes() => {
                match remove_tree(&self.dir, DATA.as_ref()) {
                    // somebody puts files there still, or removes it too
                    Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(()),
                    Err(error) if !is_gone(error) => Err(failed(error)),
                    _ => Ok(()),
                }
            }
            Err(Errno::ISDIR) => Err(damaged(&name.to_string_lossy())),
            // what this machine holds open of a file that is gone, on NFS
            Err(Errno::BUSY) => Ok(()),
            Err(error) if !is_gone(error) => Err(failed(error)),
            _ => Ok(()),
        };
        unlink(c"job")?;
        // repeated, since a part that still runs may have put a record there
        for _ in 0..100 {
            self.names()?.iter().try_for_each(|name| unlink(name))?;
            match unlinkat(&entry.dir, own, AtFlags::REMOVEDIR) {
                Err(Errno::NOTEMPTY | Errno::EXIST) => {}
                Err(error) if !is_gone(error) => return Err(failed(error)),
                _ => return Ok(()),
            }
            // the name may by now be that of a new job
            if self.is_unlinked(entry, own) {
                return Ok(());
            }
        }
        // what an NFS client holds open keeps a name; the part that holds it, or the next part of any
        // job, removes it
        Ok(())
    }

    /// Whether the folder has lost its name.
    fn is_unlinked(&self, entry: &FileAt, name: &OsStr) -> bool {
        let there = statat(&entry.dir, name, AtFlags::SYMLINK_NOFOLLOW);
        let own = fstat(&*self.dir);
        matches!((own, there), (Ok(own), Ok(it)) if FileId::any(&own) != FileId::any(&it))
    }

    /// The names of all files in it.
    pub(super) fn names(&self) -> Result<Vec<CString>, SinkError> {
        names_in(&self.dir).map_err(SinkError::os("the folder of its parts cannot be listed"))
    }
}

/// All names in a folder, of which nothing is left where it is gone.
pub(super) fn names_in(dir: &OwnedFd) -> rustix::io::Result<Vec<CString>> {
    let mut names = Vec::new();
    let entries = match Dir::read_from(dir) {
        Err(error) if is_gone(error) => return Ok(names),
        entries => entries?,
    };
    for found in entries {
        match found {
            Ok(found) if matches!(found.file_name().to_bytes(), b"." | b"..") => {}
            Ok(found) => names.push(found.file_name().to_owned()),
            Err(error) if is_gone(error) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(names)
}

/// The name of a part's record.
pub(super) fn part_name(index: u64) -> String {
    format!("part.{index}")
}

/// The part whose record has that name.
pub(super) fn part_of_name(name: &[u8]) -> Option<u64> {
    std::str::from_utf8(name).ok()?.strip_prefix("part.")?.parse().ok()
}

pub(super) fn open_dir(dir: &OwnedFd, name: impl rustix::path::Arg) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // not repeated: a folder is opened without waiting
    openat(dir, name, flags, Mode::empty())
}

/// Bring the names beside the output to the disk; a folder that cannot be listed is let be.
pub(super) fn sync_parent(entry: &FileAt) -> rustix::io::Result<()> {
    open_parent(&entry.dir, ".".as_ref()).map_or(Ok(()), sync_dir)
}
