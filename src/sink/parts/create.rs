//! Step 1: making the folder of a job, and removing what killed runs of that step left.
//!
//! ```text
//!   .tslice-begin-OUTPUT.RANDOM/     until it is renamed; OUTPUT is the fingerprint of the output's name
//! ```

use std::ffi::OsString;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rustix::fs::{FileType, Mode, OFlags, fstat, ftruncate, mkdirat, openat, renameat};
use rustix::io::{Errno, retry_on_intr};
use serde::Serialize;

use super::PartsError;
use super::folder::{
    DATA, Fingerprint, Folder, JOB, JobRecord, folder_name, names_in, open_dir, sync_parent,
};
use crate::os::rename_to_free;
use crate::sink::SinkError;
use crate::sink::placed::{lacks_flags, open_dir as open_parent, sync_dir};
use crate::sink::resolve::FileAt;
use crate::sink::temp_name::{RANDOM, TempKind, TempName, random_name};

/// What could not be done.
const CREATING: &str = "the folder of its parts cannot be created";

/// Make the folder of a job, whose output is a file or a folder. False where another process was faster, or
/// took this one away: whoever finds that begins again.
pub(super) fn create(entry: &FileAt, job: &JobRecord, is_folder: bool) -> Result<bool, SinkError> {
    let kind = match is_folder {
        true => TempKind::Tree,
        false => TempKind::Folder(vec![JOB.into(), DATA.into()]),
    };
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

/// Write the files of a new job.
fn fill(
    entry: &FileAt,
    temp_name: &TempName,
    job: &JobRecord,
    is_folder: bool,
) -> Result<(), SinkError> {
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

/// Whether it is a random name with that prefix.
fn is_random(name: &[u8], prefix: &[u8]) -> bool {
    let digits = name.strip_prefix(prefix);
    digits.is_some_and(|it| it.len() == RANDOM && it.iter().all(u8::is_ascii_hexdigit))
}

// Files in the folder of a job, which are opened by names of this program's own making.
//
// Whatever stands there instead, opening it never waits, follows no link and reads no more than a
// record can have: it is an error that names the file.

/// The most bytes of a record: a job of a million inputs has fewer.
pub(super) const MOST: u64 = 256 << 20;

/// How often a file is tried that another machine holds, ten times a second: servers ask it to let
/// go, and take it away after less than that.
const HELD: u32 = 900;

/// Whether the error says that a file, or the folder that it was in, is gone.
pub(super) fn is_gone(error: Errno) -> bool {
    matches!(error, Errno::NOENT | Errno::STALE)
}

/// The error of a call in the folder, which may have been removed.
pub(super) fn discarded_if_gone(error: SinkError) -> SinkError {
    match error.io().and_then(Errno::from_io_error) {
        Some(errno) if is_gone(errno) => PartsError::Discarded.into(),
        _ => error,
    }
}

/// Open a file to read or to write; `None` where it is gone. `what` says what could not be done.
pub(super) fn open_own(
    dir: &OwnedFd,
    name: &str,
    access: OFlags,
    what: &'static str,
) -> Result<Option<File>, SinkError> {
    let flags = access | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
    let mut tries = 0;
    let file = loop {
        match retry_on_intr(|| openat(dir, name, flags, Mode::empty())) {
            Ok(file) => break file,
            Err(error) if is_gone(error) => return Ok(None),
            // an NFS server's clients have a word in it
            Err(Errno::AGAIN) if tries < HELD => {
                tries += 1;
                thread::sleep(Duration::from_millis(100));
            }
            // a link, a folder, a FIFO without a reader, a socket
            Err(Errno::LOOP | Errno::ISDIR | Errno::NXIO) => return Err(damaged(name)),
            Err(error) => return Err(SinkError::os(what)(error)),
        }
    };
    let stat = fstat(&file).map_err(SinkError::os(what))?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok(Some(File::from(file))),
        _ => Err(damaged(name)),
    }
}

/// Write a record to a new file, and bring it to the disk.
pub(super) fn write_record(mut file: File, record: &impl Serialize) -> Result<(), SinkError> {
    let bytes = serde_json::to_vec(record).map_err(|error| SinkError::Io(error.into()))?;
    if bytes.len() as u64 > MOST {
        return Err(SinkError::Io(ErrorKind::FileTooLarge.into()));
    }
    file.write_all(&bytes).and_then(|()| file.sync_all()).map_err(SinkError::Io)
}

/// Make a new file, to write.
pub(super) fn create_own(dir: &OwnedFd, name: &str) -> rustix::io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(0o666);
    retry_on_intr(|| openat(dir, name, flags, mode)).map(File::from)
}

/// The error of a file that no run of this program wrote.
pub(super) fn damaged(name: &str) -> SinkError {
    PartsError::Damaged(name.to_owned()).into()
}
