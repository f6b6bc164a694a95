//! The folder of a job: opened, listed, and removed; records in it.

use std::ffi::{CString, OsStr, OsString};
use std::fmt::Write;
use std::io::{ErrorKind, Read};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, thread};

use rustix::fs::{AtFlags, Dir, Mode, OFlags, fstat, linkat, openat, statat, unlinkat};
use rustix::io::{Errno, retry_on_intr};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::create::{MOST, create_own, damaged, is_gone, open_own, write_record};
use super::{Difference, PartsError};
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

/// The version of the protocol.
const PROTOCOL: u32 = 2;

/// The most parts of an output.
pub const MAX_PARTS: u64 = 1_000_000;

/// One part of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The number of the part, from 0 on.
    pub index: u64,
    /// How many parts there are.
    pub count: u64,
}

/// A version of an input file, as all machines see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputId {
    /// The name of the file, without the folders that may have another path elsewhere.
    pub name: String,
    /// The length of the file in bytes.
    pub size: u64,
    /// When it was last changed: seconds since 1970, and nanoseconds.
    pub mtime: (i64, i64),
    /// A number for some of its bytes; empty in jobs of protocol 1.
    #[serde(default)]
    pub sample: String,
}

/// What the parts are parts of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobRecord {
    protocol: u32,
    /// The version of the program.
    version: String,
    /// How many parts there are.
    pub(super) parts: u64,
    /// The length of the output in bytes.
    pub(super) len: u64,
    inputs: Vec<InputId>,
    /// A number for all else that decides the bytes of the output.
    work: String,
}

impl JobRecord {
    /// A job of `parts` parts for an output of `len` bytes. `work` stands for all else that decides
    /// which bytes the output has.
    pub fn new(parts: u64, len: u64, inputs: Vec<InputId>, work: String) -> JobRecord {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        JobRecord { protocol: PROTOCOL, version, parts, len, inputs, work }
    }

    /// Whether a run of this program can have written it.
    pub(super) fn is_possible(&self) -> bool {
        (1..=MAX_PARTS).contains(&self.parts)
    }

    /// A number for the whole job.
    pub(super) fn id(&self) -> Fingerprint {
        let mut id = Fingerprint::default();
        // never fails
        let _ = write!(id, "{self:?}");
        id
    }

    /// In what another job differs from this one.
    pub(super) fn difference(&self, theirs: &JobRecord) -> Option<Difference> {
        let version = |job: &JobRecord| match job.protocol {
            PROTOCOL => job.version.clone(),
            protocol => format!("{} (protocol {protocol})", job.version),
        };
        let names = |job: &JobRecord| -> Vec<String> {
            job.inputs.iter().map(|input| input.name.clone()).collect()
        };
        let changed = self.inputs.iter().zip(&theirs.inputs).find(|(ours, theirs)| ours != theirs);
        if self == theirs {
            None
        } else if (self.protocol, &self.version) != (theirs.protocol, &theirs.version) {
            Some(Difference::Version { theirs: version(theirs), ours: version(self) })
        } else if names(self) != names(theirs) {
            Some(Difference::Inputs)
        } else if let Some((ours, theirs)) = changed {
            let name = ours.name.clone();
            match (ours.size, ours.mtime) == (theirs.size, theirs.mtime) {
                true => Some(Difference::Content(name)),
                false => Some(Difference::Input(name)),
            }
        } else if self.parts != theirs.parts {
            Some(Difference::Parts { theirs: theirs.parts, ours: self.parts })
        } else {
            Some(Difference::Work)
        }
    }
}

/// What is complete: one part, or all parts below a join.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct DoneRecord {
    /// The first of these parts.
    pub(super) first: u64,
    /// Bytes of elements that they wrote.
    pub(super) written: u64,
    /// Of an archive: numbers of members, and what these parts contribute to the CRC-32 of each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) crcs: Vec<(usize, u32)>,
}

impl DoneRecord {
    /// The record of the parts of both; `None` for sums that no parts have.
    pub(super) fn add(&self, other: &DoneRecord) -> Option<DoneRecord> {
        let mut crcs = std::collections::BTreeMap::new();
        for (member, crc) in self.crcs.iter().chain(&other.crcs) {
            *crcs.entry(*member).or_insert(0) ^= crc;
        }
        Some(DoneRecord {
            first: self.first.min(other.first),
            written: self.written.checked_add(other.written)?,
            crcs: crcs.into_iter().collect(),
        })
    }
}

/// Which file of the folder is the output.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ChosenRecord {
    /// Its name.
    pub(super) file: String,
}

/// The hash of all text that was written to it.
///
/// ```
/// use std::fmt::Write;
/// let mut hash = tslice::sink::Fingerprint::default();
/// write!(hash, "{}", "a").unwrap();
/// assert_eq!(hash.to_string(), "d228cb696f1a8caf78912b704e4a8964");
/// ```
#[derive(Clone, Debug)]
pub struct Fingerprint(u128);

impl Default for Fingerprint {
    fn default() -> Fingerprint {
        Fingerprint(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }
}

impl Fingerprint {
    /// Add bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u128::from(*byte)).wrapping_mul((1 << 88) + 0x13b);
        }
    }
}

impl fmt::Write for Fingerprint {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.add(text.as_bytes());
        Ok(())
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_says_in_what_another_differs() {
        let input =
            |size| InputId { name: "a.npy".into(), size, mtime: (7, 8), sample: "s".into() };
        let job =
            |parts, size, work: &str| JobRecord::new(parts, 9, vec![input(size)], work.into());
        let ours = job(4, 5, "w");
        assert_eq!(ours.difference(&ours.clone()), None);
        assert_eq!(
            ours.difference(&job(8, 5, "w")).unwrap().to_string(),
            "it is cut into 8 parts there, and into 4 here"
        );
        assert_eq!(ours.difference(&job(4, 6, "w")), Some(Difference::Input("a.npy".into())));
        let other = InputId { sample: "t".into(), ..input(5) };
        assert_eq!(
            ours.difference(&JobRecord::new(4, 9, vec![other], "w".into())),
            Some(Difference::Content("a.npy".into()))
        );
        assert_eq!(ours.difference(&job(4, 5, "v")), Some(Difference::Work));
        assert_eq!(
            ours.difference(&JobRecord::new(4, 9, vec![], "w".into())),
            Some(Difference::Inputs)
        );
        let later = JobRecord { protocol: 3, ..ours.clone() };
        assert!(matches!(ours.difference(&later), Some(Difference::Version { .. })));
    }

    #[test]
    fn jobs_of_the_first_protocol_are_read_and_refused() {
        let ours = JobRecord::new(2, 9, vec![], "w".into());
        let first = r#"{"protocol": 1, "version": "0.1.0", "parts": 2, "len": 9,
            "inputs": [{"name": "a.npy", "size": 5, "mtime": [7, 8]}], "work": "w"}"#;
        let first = serde_json::from_str(first).unwrap();
        assert_eq!(
            ours.difference(&first).unwrap().to_string(),
            format!("version 0.1.0 (protocol 1) began them, and this is version {}", ours.version)
        );
    }

    #[test]
    fn records_add_up_in_any_order() {
        let record = |first, written, crcs: &[_]| DoneRecord { first, written, crcs: crcs.into() };
        let (a, b) = (record(2, 5, &[(0, 6), (3, 1)]), record(3, 7, &[(0, 5)]));
        assert_eq!(a.add(&b), Some(record(2, 12, &[(0, 3), (3, 1)])));
        assert_eq!(a.add(&b), b.add(&a));
        assert_eq!(a.add(&record(0, u64::MAX, &[])), None);
    }
}
