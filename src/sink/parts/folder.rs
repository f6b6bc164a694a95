//! The folder of a job: made (step 1), opened, listed, and removed (step 8); files and records in it.
//!
//! ```text
//!   .tslice-begin-OUTPUT.RANDOM/     until it is renamed; OUTPUT is the fingerprint of the output's name
//! ```

use std::ffi::{CStr, CString, OsStr, OsString};
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, fstat, ftruncate, linkat, mkdirat, openat, renameat,
    statat, unlinkat,
};
use rustix::io::{Errno, Result as OsResult, retry_on_intr};
use rustix::path::Arg;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Fingerprint, JobRecord, PartsError};
use crate::os::{FileId, rename_to_free};
use crate::sink::folder::folder_at;
use crate::sink::placed::{lacks_flags, open_dir as open_parent, sync_dir};
use crate::sink::resolve::{FileAt, Resolved, resolve};
use crate::sink::temp_name::{RANDOM, TempKind, TempName, random_name, remove_tree};
use crate::sink::{SinkError, SinkResult};

const JOB: &str = "job";
/// The output, while it is written.
pub(super) const DATA: &str = "data";
/// The output, when nobody may open it to write any more.
pub(super) const CLOSED: &str = "closed";
/// Says that an input changed while parts were written.
const CHANGED: &str = "changed";

/// How long a record may stay invisible after its name was refused, in seconds: NFS clients keep
/// names that did not exist for up to 60 (`acdirmax`).
const INVISIBLE: u32 = 90;

/// The most bytes of a record: a job of a million inputs has fewer.
const MOST: u64 = 256 << 20;

/// How often a file is tried that another machine holds, ten times a second: servers ask it to let
/// go, and take it away after less than that.
const HELD: u32 = 900;

const CREATING: &str = "the folder of its parts cannot be created";
const READING: &str = "its parts cannot be read";
const RECORDING: &str = "a part cannot be recorded";

#[derive(Debug)]
pub(super) struct Folder {
    pub(super) dir: Arc<OwnedFd>,
}

pub(super) struct Stored(TempName);

/// Where the output at a path is, which has to be a file.
pub(super) fn output_at(path: &Path) -> SinkResult<FileAt> {
    match resolve(path)? {
        Resolved::File(entry) => Ok(entry),
        Resolved::Stdout | Resolved::Special { .. } => Err(PartsError::NotAFile.into()),
    }
}

pub(super) fn any_output_at(path: &Path) -> SinkResult<FileAt> {
    match output_at(path) {
        // one that ends with a slash need not be there
        Err(SinkError::IsADirectory) => folder_at(path),
        entry => entry,
    }
}

fn folder_name(entry: &FileAt) -> OsString {
    let mut name = OsString::from(".tslice-parts-");
    name.push(&entry.name);
    name
}

/// Make the folder of a job, whose output is a file or a folder. False where another process was faster, or
/// took this one away: whoever finds that begins again.
pub(super) fn create(entry: &FileAt, job: &JobRecord, is_folder: bool) -> SinkResult<bool> {
    let kind =
        if is_folder { TempKind::Tree } else { TempKind::Folder(vec![JOB.into(), DATA.into()]) };
    let make = |name: &str| mkdirat(&entry.dir, name, Mode::from_raw_mode(0o777));
    let (temp_name, ()) = TempName::create_as(&entry.dir, &prefix(entry), kind, make)
        .map_err(SinkError::os(CREATING))?;
    let name = &folder_name(entry);
    let place = |dir: &OwnedFd, old: &str| match rename_to_free(dir, old, dir, name) {
        // never replaces a folder that is not empty
        Err(error) if lacks_flags(error) => renameat(dir, old, dir, name),
        result => result,
    };
    let placed = fill(entry, &temp_name, job, is_folder)
        .and_then(|()| temp_name.persist(place).map_err(SinkError::os(CREATING)));
    match placed {
        Ok(()) => {
            sync_parent(entry).map_err(SinkError::os(CREATING))?;
            remove_leftovers(entry);
            Ok(true)
        }
        Err(error) => match error.io().and_then(Errno::from_io_error) {
            Some(Errno::EXIST | Errno::NOTEMPTY) => Ok(false),
            Some(errno) if is_gone(errno) => Ok(false),
            _ => Err(error),
        },
    }
}

fn fill(entry: &FileAt, temp_name: &TempName, job: &JobRecord, is_folder: bool) -> SinkResult<()> {
    let failed = SinkError::os::<Errno>(CREATING);
    let dir = open_dir(&entry.dir, temp_name.name()).map_err(failed)?;
    write_record(create_own(&dir, JOB).map_err(failed)?, job)?;
    if is_folder {
        mkdirat(&dir, DATA, Mode::from_raw_mode(0o777)).map_err(failed)?;
    } else {
        let data = create_own(&dir, DATA).map_err(failed)?;
        retry_on_intr(|| ftruncate(&data, job.len)).map_err(failed)?;
        data.sync_all().map_err(SinkError::Io)?;
    }
    sync_dir(dir).map_err(failed)
}

/// Remove what processes that were killed in `create` left for this output. Each is renamed first: from
/// then on its owner, should one live, cannot put it in place, and begins again. What cannot be removed,
/// or not be listed, is let be.
pub(super) fn remove_leftovers(entry: &FileAt) {
    let prefix = prefix(entry);
    let Ok(names) = open_parent(&entry.dir, ".".as_ref()).and_then(|dir| names_in(&dir)) else {
        return;
    };
    let names = names.into_iter().map(|name| OsString::from_vec(name.into_bytes()));
    for name in names.filter(|name| is_random(name.as_bytes(), prefix.as_bytes())) {
        let is_folder = open_dir(&entry.dir, &name).is_ok();
        let taken = random_name(&prefix);
        if !is_folder || renameat(&entry.dir, &name, &entry.dir, &taken).is_err() {
            continue;
        }
        if let Ok(dir) = open_dir(&entry.dir, taken.as_str()) {
            let _ = Folder { dir: Arc::new(dir) }.remove_named(entry, taken.as_ref());
        }
    }
}

/// How the temporary names of folders for an output begin. All are of one length, so that a name that
/// is nearly as long as a name can be has them too.
fn prefix(entry: &FileAt) -> String {
    let mut output = Fingerprint::default();
    output.add(entry.name.as_bytes());
    format!(".tslice-begin-{output}.")
}

fn is_random(name: &[u8], prefix: &[u8]) -> bool {
    let digits = name.strip_prefix(prefix);
    digits.is_some_and(|it| it.len() == RANDOM && it.iter().all(u8::is_ascii_hexdigit))
}

impl Folder {
    /// Open the folder of an output's parts, where there is one.
    pub(super) fn open(entry: &FileAt) -> SinkResult<Option<Folder>> {
        let dir = open_dir(&entry.dir, folder_name(entry));
        let dir = unless_gone(dir, "the folder of its parts cannot be opened")?;
        Ok(dir.map(|dir| Folder { dir: Arc::new(dir) }))
    }

    /// What the job is; `None` in a folder that is being removed.
    pub(super) fn job(&self) -> SinkResult<Option<JobRecord>> {
        let job: Option<JobRecord> = self.read(JOB)?;
        match job {
            Some(job) if !job.is_possible() => Err(damaged(JOB)),
            job => Ok(job),
        }
    }

    pub(super) fn open_file(&self, name: &str) -> SinkResult<Option<File>> {
        open_own(&self.dir, name, OFlags::RDONLY, READING)
    }

    /// What a record says, where it exists.
    pub(super) fn read<T: DeserializeOwned>(&self, name: &str) -> SinkResult<Option<T>> {
        let Some(file) = self.open_file(name)? else { return Ok(None) };
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
    pub(super) fn store(&self, record: &impl Serialize) -> SinkResult<Stored> {
        let stored = TempName::create(&self.dir, |name| create_own(&self.dir, name));
        let (name, file) = stored.map_err(SinkError::os(RECORDING)).map_err(discarded_if_gone)?;
        write_record(file, record)?;
        Ok(Stored(name))
    }

    /// Give a record its name. `None` if that succeeds, or else the record that has the name.
    pub(super) fn publish<T: DeserializeOwned>(
        &self,
        stored: &Stored,
        name: &str,
    ) -> SinkResult<Option<T>> {
        let from = stored.0.name();
        match retry_on_intr(|| linkat(&self.dir, from, &self.dir, name, AtFlags::empty())) {
            Ok(()) => Ok(None),
            Err(Errno::EXIST) => self.wait_for(name).map(Some),
            Err(error) => Err(discarded_if_gone(SinkError::os(RECORDING)(error))),
        }
    }

    pub(super) fn sync(&self) -> SinkResult<()> {
        sync_dir(&self.dir).map_err(SinkError::os(RECORDING))
    }

    fn wait_for<T: DeserializeOwned>(&self, name: &str) -> SinkResult<T> {
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
    pub(super) fn spoil(&self) -> SinkResult<()> {
        match create_own(&self.dir, CHANGED) {
            Err(Errno::EXIST) => Ok(()),
            made => unless_gone(made, RECORDING).map(|_| ()),
        }
    }

    pub(super) fn check_unspoiled(&self) -> SinkResult<()> {
        let changed = statat(&self.dir, CHANGED, AtFlags::SYMLINK_NOFOLLOW);
        unless_gone(changed, READING)?.map_or(Ok(()), |_| Err(PartsError::Spoiled.into()))
    }

    /// Which file it is that has a name in the folder.
    pub(super) fn file_id(&self, name: &str) -> Option<FileId> {
        statat(&self.dir, name, AtFlags::SYMLINK_NOFOLLOW).ok().as_ref().and_then(FileId::from_stat)
    }

    /// The file or the folder that parts write, or wrote.
    pub(super) fn data_id(&self) -> Option<FileId> {
        let id = |name| statat(&self.dir, name, AtFlags::SYMLINK_NOFOLLOW).ok();
        id(DATA).or_else(|| id(CLOSED)).as_ref().map(FileId::any)
    }

    /// Step 8.
    pub(super) fn remove(self, entry: &FileAt) -> SinkResult<()> {
        self.remove_named(entry, &folder_name(entry))
    }

    /// Remove a folder of a name beside the output.
    fn remove_named(self, entry: &FileAt, own: &OsStr) -> SinkResult<()> {
        const REMOVING: &str = "the folder of its parts cannot be removed";
        let removed = |result: OsResult<()>| unless_gone(result, REMOVING).map(|_| ());
        let unlink = |name: &CStr| match unlinkat(&self.dir, name, AtFlags::empty()) {
            // systems other than Linux may not say which it is
            Err(Errno::ISDIR | Errno::PERM) if name.to_bytes() == DATA.as_bytes() => {
                match remove_tree(&self.dir, DATA.as_ref()) {
                    // somebody puts files there still, or removes it too
                    Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(()),
                    result => removed(result),
                }
            }
            Err(Errno::ISDIR) => Err(damaged(&name.to_string_lossy())),
            // what this machine holds open of a file that is gone, on NFS
            Err(Errno::BUSY) => Ok(()),
            result => removed(result),
        };
        unlink(c"job")?;
        // repeated, since a part that still runs may have put a record there
        for _ in 0..100 {
            self.names()?.iter().try_for_each(|name| unlink(name))?;
            match unlinkat(&entry.dir, own, AtFlags::REMOVEDIR) {
                Err(Errno::NOTEMPTY | Errno::EXIST) => {}
                result => return removed(result),
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

    fn is_unlinked(&self, entry: &FileAt, name: &OsStr) -> bool {
        let there = statat(&entry.dir, name, AtFlags::SYMLINK_NOFOLLOW);
        let own = fstat(&*self.dir);
        matches!((own, there), (Ok(own), Ok(it)) if FileId::any(&own) != FileId::any(&it))
    }

    pub(super) fn names(&self) -> SinkResult<Vec<CString>> {
        names_in(&self.dir).map_err(SinkError::os("the folder of its parts cannot be listed"))
    }
}

/// All names in a folder, of which nothing is left where it is gone.
fn names_in(dir: &OwnedFd) -> OsResult<Vec<CString>> {
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

pub(super) fn part_name(index: u64) -> String {
    format!("part.{index}")
}

pub(super) fn part_of_name(name: &[u8]) -> Option<u64> {
    std::str::from_utf8(name).ok()?.strip_prefix("part.")?.parse().ok()
}

pub(super) fn open_dir(dir: &OwnedFd, name: impl Arg) -> OsResult<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // not repeated: a folder is opened without waiting
    openat(dir, name, flags, Mode::empty())
}

/// Bring the names beside the output to the disk; a folder that cannot be listed is let be.
pub(super) fn sync_parent(entry: &FileAt) -> OsResult<()> {
    open_parent(&entry.dir, ".".as_ref()).map_or(Ok(()), sync_dir)
}

/// Whether the error says that a file, or the folder that it was in, is gone.
pub(super) fn is_gone(error: Errno) -> bool {
    matches!(error, Errno::NOENT | Errno::STALE)
}

/// What came of a call in the folder; `None` where what it was about is gone. `what` says what could
/// not be done.
pub(super) fn unless_gone<T>(result: OsResult<T>, what: &'static str) -> SinkResult<Option<T>> {
    match result {
        Err(error) if is_gone(error) => Ok(None),
        result => result.map(Some).map_err(SinkError::os(what)),
    }
}

/// The error of a call in the folder, which may have been removed.
pub(super) fn discarded_if_gone(error: SinkError) -> SinkError {
    match error.io().and_then(Errno::from_io_error) {
        Some(errno) if is_gone(errno) => PartsError::Discarded.into(),
        _ => error,
    }
}

/// Open a file by a name of this program's own making, to read or to write; `None` where it is gone.
/// Whatever stands there instead, this never waits, follows no link, and is an error that names the file.
pub(super) fn open_own(
    dir: &OwnedFd,
    name: &str,
    access: OFlags,
    what: &'static str,
) -> SinkResult<Option<File>> {
    let flags = access | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
    let mut tries = 0;
    let file = loop {
        match retry_on_intr(|| openat(dir, name, flags, Mode::empty())) {
            // an NFS server's clients have a word in it
            Err(Errno::AGAIN) if tries < HELD => {
                tries += 1;
                thread::sleep(Duration::from_millis(100));
            }
            // a link, a folder, a FIFO without a reader, a socket
            Err(Errno::LOOP | Errno::ISDIR | Errno::NXIO) => return Err(damaged(name)),
            opened => break unless_gone(opened, what)?,
        }
    };
    let Some(file) = file else { return Ok(None) };
    let stat = fstat(&file).map_err(SinkError::os(what))?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok(Some(File::from(file))),
        _ => Err(damaged(name)),
    }
}

fn write_record(mut file: File, record: &impl Serialize) -> SinkResult<()> {
    let bytes = serde_json::to_vec(record).map_err(|error| SinkError::Io(error.into()))?;
    if bytes.len() as u64 > MOST {
        return Err(SinkError::Io(ErrorKind::FileTooLarge.into()));
    }
    file.write_all(&bytes).and_then(|()| file.sync_all()).map_err(SinkError::Io)
}

pub(super) fn create_own(dir: &OwnedFd, name: &str) -> OsResult<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(0o666);
    retry_on_intr(|| openat(dir, name, flags, mode)).map(File::from)
}

pub(super) fn damaged(name: &str) -> SinkError {
    PartsError::Damaged(name.to_owned()).into()
}
