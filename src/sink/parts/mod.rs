//! One output written by several processes, on any machines that see its folder.
//!
//! Each process writes one *part*: a range of the output's element bytes. All write one shared file.
//!
//! ```text
//!   out.npy                      appears last, whole
//!   .tslice-parts-out.npy/       exists as long as the job
//!       job                      the job that the parts belong to
//!       data                     the output, of its final length
//!       part.3                   part 3 is complete
//!   .tslice-ended-out.npy/       the folder during its removal
//! ```
//!
//! The protocol, version 3:
//!
//! 1. **Begin.** The folder is made, unless it exists. From here on the process uses an open descriptor of it, and so
//!    never mistakes the folder of a later job for it. Where the folder has no `job`, `data` is made, and then `job`.
//!    Each file of the folder is written under a temporary name, synced, and linked to its own name: so a name means a
//!    whole file, and only one of several processes can give it.
//! 2. **Compare.** Where `job` names another job, the part is refused. Where `data` is gone or has become the output,
//!    step 6 follows; where `data` has another length than at first, the part is refused. A part with a `part.I`
//!    continues with step 4.
//! 3. **Write.** The part shares blocks of its range with the input where possible; if it can share none, it allocates
//!    the range. It writes the other bytes of its range by position, and no byte outside. Equal inputs give equal
//!    bytes: so a part may run twice, even at the same time. Then the inputs are checked for changes, `data` is synced,
//!    and `part.I` is made, with the number of bytes, and the CRCs that a zip archive needs.
//! 4. **Finish.** The process of the last part finds the records of all others. It writes the bytes around the elements
//!    (headers; the directory of an archive). Where the file system has extended attributes, one of them names the job
//!    in `data`: by it a part that is run again knows that it is complete.
//! 5. **Place.** `data` is renamed to the output's name, if this is free; with `force` in any case.
//! 6. **Remove.** The folder is renamed, and then removed. To discard a job is this step alone.
//!
//! **Why the output appears once, and only whole:** the process that finishes has read the records of all parts, and
//! `data` is made once and renamed once. Two processes that complete the last two parts at the same time may both
//! finish: they write equal bytes, and the second one finds `data` gone and the output in place. A process that is
//! killed in step 4, 5 or 6 leaves its part complete; running any part again continues there.
//!
//! **What the protocol relies on:** of several links to one name, the first succeeds and the others fail; rename is atomic;
//! bytes that were synced are visible to all who open the file later (close-to-open). NFS guarantees this. A client
//! may remember that a name is missing, but forgets it when it makes a name in the folder, as step 3 does before
//! step 4. There are no locks, and clocks are never compared.
//!
//! **Limits:** a duplicate of a part that still runs when the output is in place has it open for writing. It writes
//! the bytes that are there already, as long as neither its input nor the output is changed.
//!
//! **A folder as an output** (Zarr) takes the same steps, with a folder `data`: its files are written in the folder
//! of the job and linked into `data`. An existing name has equal bytes, and stays. `data` replaces only an empty
//! folder, even with `force`.

use std::fmt;
use std::fmt::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};

use folder::{Folder, any_output_at, remove_ended};

use super::SinkResult;

mod folder;
mod sink;

pub use sink::{Begun, FixedLayout, PartJob};

/// The progress of the parts of an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartsStatus {
    pub count: u64,
    /// The numbers of the incomplete parts, ascending.
    pub missing: Vec<u64>,
}

/// The progress of the parts of the output at `path`; `None` where none is begun. Lists the folder.
pub fn status(path: &Path) -> SinkResult<Option<PartsStatus>> {
    let Some(folder) = Folder::open(&any_output_at(path)?)? else { return Ok(None) };
    let Some(job) = folder.job()? else { return Ok(None) };
    Ok(Some(PartsStatus { count: job.parts, missing: folder.missing(job.parts)? }))
}

/// Remove all parts of the output at `path`; returns false where none was begun.
pub fn discard(path: &Path) -> SinkResult<bool> {
    let entry = any_output_at(path)?;
    match Folder::open(&entry)? {
        Some(folder) => folder.remove().map(|()| true),
        None => remove_ended(&entry).map(|()| false),
    }
}

/// Why a part cannot be written, beyond the errors of any output.
#[derive(Debug, thiserror::Error)]
pub enum PartsError {
    #[error("parts of another job exist: {0}")]
    OtherJob(Difference),
    #[error("the parts were discarded while this part was being written")]
    Discarded,
    #[error("parts can only be written to a file")]
    NotAFile,
    /// Parts never replace a folder: no system call does this at once while others may write.
    #[error("is a folder that is not empty: remove it first")]
    FolderExists,
    #[error("the file {0:?} of its parts is damaged")]
    Damaged(String),
    #[error("the file \"data\" of its parts has {found} bytes, not {len}")]
    OtherLen { found: u64, len: u64 },
}

/// The difference of two jobs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Difference {
    #[error("it has {theirs} parts, not {ours}")]
    Parts { theirs: u64, ours: u64 },
    #[error("version {theirs} made them, this is version {ours}")]
    Version { theirs: String, ours: String },
    #[error("they were made from other inputs")]
    Inputs,
    #[error("the input {0} had a different size or time of last change")]
    Input(String),
    #[error("the input {0} had the same size and time of last change, but different content")]
    Content(String),
    #[error("the index, or another flag that changes the output, differs")]
    Work,
}

// Records by which processes share the state of a job: the job itself, and its complete parts.

const PROTOCOL: u32 = 3;

pub const MAX_PARTS: u64 = 1_000_000;

/// A version of an input file, as all machines see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputId {
    /// The name of the file, without its folders, whose paths may differ elsewhere.
    pub name: String,
    pub size: u64,
    /// The time of the last change: seconds since 1970, and nanoseconds.
    pub mtime: (i64, i64),
    /// A hash of some of the bytes; empty in jobs of protocol 1.
    #[serde(default)]
    pub sample: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobRecord {
    protocol: u32,
    version: String,
    pub(super) parts: u64,
    pub(super) len: u64,
    inputs: Vec<InputId>,
    /// A hash of everything else that decides the bytes of the output.
    work: String,
}

impl JobRecord {
    /// A job of `parts` parts for an output of `len` bytes. `work` is a hash of everything else that decides the
    /// output's bytes.
    pub fn new(parts: u64, len: u64, inputs: Vec<InputId>, work: String) -> JobRecord {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        JobRecord { protocol: PROTOCOL, version, parts, len, inputs, work }
    }

    /// Whether this program can have written the record.
    pub(super) fn is_possible(&self) -> bool {
        (1..=MAX_PARTS).contains(&self.parts)
    }

    pub(super) fn id(&self) -> Fingerprint {
        let mut id = Fingerprint::default();
        // never fails
        let _ = write!(id, "{self:?}");
        id
    }

    /// The difference of another job from this one.
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
            let only_content = (ours.size, ours.mtime) == (theirs.size, theirs.mtime);
            Some(if only_content { Difference::Content(name) } else { Difference::Input(name) })
        } else if self.parts != theirs.parts {
            Some(Difference::Parts { theirs: theirs.parts, ours: self.parts })
        } else {
            Some(Difference::Work)
        }
    }
}

/// The record of a complete part.
#[derive(Debug, Serialize, Deserialize)]
struct PartRecord {
    /// The bytes of elements that the part wrote.
    written: u64,
    /// For an archive: numbers of members, and the part's contribution to the CRC-32 of each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    crcs: Vec<(usize, u32)>,
}

/// The hash of all text written to it.
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
        assert_eq!(ours.difference(&job(8, 5, "w")).unwrap().to_string(), "it has 8 parts, not 4");
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
        let later = JobRecord { protocol: 4, ..ours.clone() };
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
            format!("version 0.1.0 (protocol 1) made them, this is version {}", ours.version)
        );
    }
}
