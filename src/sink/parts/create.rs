//! Step 1: making the folder of a job, and removing what killed runs of that step left.
//!
//! ```text
//!   .tslice-begin-OUTPUT.RANDOM/     until it is renamed; OUTPUT is the fingerprint of the output's name
//! ```

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::sync::Arc;

use rustix::fs::{Mode, ftruncate, mkdirat, renameat};
use rustix::io::{Errno, retry_on_intr};

use super::fingerprint::Fingerprint;
use super::folder::{DATA, Folder, JOB, folder_name, names_in, open_dir, sync_parent};
use super::own::{create_own, is_gone, write_record};
use super::record::JobRecord;
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
