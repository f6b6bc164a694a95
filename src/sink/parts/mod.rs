//! One output written by several processes, on any machines that see its folder.
//!
//! Each process writes one *part*: a range of the output's element bytes. All write one shared file.
//!
//! ```text
//!   out.npy                      appears last, whole
//!   .tslice-parts-out.npy/       there as long as the job is
//!       job                      what the parts are parts of
//!       data                     the output, of its final length
//!       writer.PLACE.RANDOM      somebody has data open to write, or was killed while it had
//!       part.3                   part 3 is complete
//!       join.1.1                 one of parts 2 and 3 was the first to come here
//!       closed                   data, when nobody can open it to write any more
//!       copy.RANDOM              its bytes, in a file that nobody else ever had open
//!       chosen                   which of the two is the output
//!       changed                  an input changed: there will be no output
//! ```
//!
//! The protocol, version 2:
//!
//! 1. **Begin.** Whoever finds no folder makes one under a temporary name, with `job` and `data` in
//!    it, and renames it to its place. Of several only the first rename succeeds, since a folder that
//!    is not empty is never replaced; the others go on with the first one's folder. So a folder
//!    that has its name is complete. From here on it is reached by an open descriptor, never by its
//!    name, so that the folder of a later job is not mistaken for it. Temporary names tell the output:
//!    whoever made the folder, completes or discards the job removes what killed runs left
//!    (`remove_leftovers`). Each is renamed before, so that its owner, if it lives, cannot put it in place half
//!    removed: the owner's own rename fails, and it begins again.
//! 2. **Compare.** Whoever finds a folder reads `job`. One of another job is refused. A folder
//!    without `job` is what was left when a run ended during step 8: it is removed, and 1 begins
//!    again. If the output is in place, 8 follows. A part whose `part.I` is there goes to 5.
//! 3. **Write.** The part makes its marker, `writer.…`, and then opens `data`, never the other way
//!    round. It shares with the input what blocks of its range it can, allocates the range if it can
//!    share none, and writes the rest by position. It writes no other byte, and the same bytes each
//!    time, as long as the inputs are the same: so it does not matter whether it runs twice, also at
//!    the same time, or over a range that was half written.
//! 4. **Record.** If an input is not what it was when the part began, `changed` is made, and the part
//!    fails. `data` is brought to the disk and closed; then the marker is removed. Then the part's
//!    record (how many bytes, and the sums that a zip archive needs) is written to a temporary name,
//!    brought to the disk, and linked to `part.I`; the folder is brought to the disk. The part is
//!    complete.
//! 5. **Climb.** The parts are the leaves of a binary tree. At each `join.LEVEL.NUMBER` the record of
//!    all parts below, on the side that this process comes from, is linked to that name. If that
//!    succeeds, the other side is not complete: whoever completes it comes by, and this process is
//!    done. If the name exists and holds the other side's record, both sides are complete: their
//!    records are added, and the sum is taken to the next join. If it holds the own side's, the
//!    process is done too.
//! 6. **Finish.** Who passes the last join has the sum of all records:
//!    1. It opens `data` as in 3, with a marker, and writes what stands around the elements (headers;
//!       the directory of an archive). These bytes too are the same whoever writes them. Where the
//!       file system has extended attributes, the file gets one that names the job, by which a part that
//!       is run once more, when all is over, knows that it is complete. It is brought to the disk and
//!       closed, the marker is removed.
//!    2. `data` is renamed to `closed`. Without `data`, both were done by another process.
//!    3. It lists the markers. Where none is left, `closed` is its candidate. So it is where all that are
//!       left were made on this very machine since it started, on this mount of this file system, no
//!       network is in between, and the kernel grants a lease to read, which it does only if no process
//!       has the file open to write: they are those of killed processes. Else the candidate is a new
//!       file, `copy.…`: blocks are shared, or copied by the file system's server, or read and written.
//!    4. It looks at all inputs again, anew. If one is not what it was, `changed` is made. If `changed`
//!       is there, the job fails for good: `--part discard` alone helps.
//!    5. A record that names the candidate is linked to `chosen`. Whoever finds that name taken goes on
//!       with the file that it names.
//! 7. **Place.** The chosen file is linked to the output's name, which fails if the name is taken; with
//!    `force` it is renamed instead. A name taken by this very file is success.
//! 8. **Remove.** `job` is unlinked first, then all else, then the folder. Discarding a job is this
//!    step alone.
//!
//! **Why the output appears once, and only whole:** a join is passed by a process that has one side
//! complete and reads the other side's record, so the last join is passed only when all parts are
//! complete. When every part has run to its end, at each join the second to come has gone on: so
//! some process passes the last one. A process that is killed between 4 and 8 leaves a part that is
//! complete, but may not have climbed on; running it again does that, from 5. Each step of 6 is found
//! done or is done again: the bytes of 6.1 are the same, the rename of 6.2 happens once since `data` is
//! made once, candidates of 6.3 are many, and one is chosen. A file is chosen once, by the first link to
//! that name, and everybody places that one. Its name, too, is made once. So the rename of 7 succeeds
//! once; a second process, however late, finds no such name.
//!
//! **Why nothing changes the output once it is in place:** the chosen file has no descriptor that can
//! write, and never gets one from a process of this job.
//! - *A copy:* its maker alone had it open, under a name that nobody else knew, and closed it before it
//!   was chosen.
//! - *`closed`:* it is opened to write by the name `data` alone. Whoever opened it had a marker before,
//!   and removes that after its descriptor is closed and its bytes have reached the file. Since 6.2 the
//!   name `data` leads nowhere: a marker made later protects nothing. One made earlier, whose process
//!   still has the descriptor, is there during the whole listing of 6.3, and is listed. Signals do not
//!   remove markers, since other threads write until the process ends; nor does a part whose bytes could
//!   not be brought to the disk, since the kernel may still be sending them. So where no marker is listed,
//!   nobody writes. Where some are, and all of this kernel and mount, descriptors that they stand for
//!   are of the one inode that this kernel has of the file, and the lease counts them.
//!
//! Attributes are set in 6.1 and 6.3 on files that are protected so, permissions in 7 by a name that the
//! file loses when it is in place. What a late process may still do is in the folder, by its descriptor: if
//! that is gone, all calls fail, and it ends well if the output is this job's, by its attribute or number.
//!
//! **Why no bytes of another version of an input are in it:** who wrote them had read them by then. At
//! 4 it sees that the input is another one, and makes `changed` before it removes its marker. If it was
//! killed before, or still writes, whoever finishes sees the input itself, after the candidate's bytes can
//! change no more. What is not seen: an input that was changed and changed back, to the same size, time
//! and sampled bytes (`source::sample`), between two looks, while a part that was killed or is not yet
//! through wrote; and a change that leaves size, time and all sampled bytes as they were.
//!
//! **What it costs:** a part makes a fixed number of calls, and three links on average, at most one
//! more than the tree has levels (15 for 10,000 parts). Nobody lists the folder or looks at all parts,
//! but for steps 6.3 and 8, which are done once, and for `status`. The copy of 6.3 is needed where a
//! duplicate of a part still runs, and on network file systems also where one was killed. It shares blocks
//! where the file system can; else it takes the space of the output once more, until 8.
//!
//! **What it relies on:** that of several links or renames to one name the first succeeds and the
//! others fail; that rename is atomic; that what was brought to the disk and then opened anew is seen
//! by all (close-to-open). NFS gives that. A client may remember a name that is gone: but it forgets
//! when it makes a name in the folder, as the marker of 3 before `data` is opened, and it notices then
//! that others made names there. There are no locks between machines, and no clock is compared with
//! another. After a refused link, the record behind the name is waited for as long as an NFS client may
//! believe that the name does not exist.
//!
//! **What it does not do:** two runs with `--force` are two jobs where the first is over and its output
//! was changed since: a duplicate that has not looked at the folder by then begins anew, and all its
//! parts together would replace the output.
//!
//! **An output that is a folder** (of Zarr) goes the same steps, with a folder `data`, which several things are
//! simpler for:
//! - *3, 4:* its files are written under temporary names in the folder of the job, brought to the disk, and linked
//!   into `data`. A name that is taken is that of the same bytes, and is let be. There are no markers.
//! - *6:* who passes the last join adds the files that are no elements, looks at the inputs, and makes `chosen`, which
//!   names `data`; there is nothing to choose from.
//! - *7:* `data` is renamed to the output's name, which fails if something is there that is not an empty folder, with
//!   `force` too. So it has no name in the folder of the job any more: that the output is in place is told by that.
//! - *Late processes:* what they write comes into the folder of the job, which is gone, so that they fail there. What
//!   was written before finds its name taken, since all parts are complete.

use std::collections::BTreeMap;
use std::fmt;
use std::fmt::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};

use folder::{Folder, any_output_at, part_of_name, remove_leftovers};

use super::SinkResult;

mod folder;
mod output;
mod sink;

pub use output::{Look, PartJob, Unchanged};
pub use sink::{Begun, FixedFrame};

/// How far the parts of an output are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartsStatus {
    pub count: u64,
    /// The numbers of those that are not complete, ascending.
    pub missing: Vec<u64>,
}

/// How far the parts of the output at `path` are; `None` where none are begun. Lists the folder.
pub fn status(path: &Path) -> SinkResult<Option<PartsStatus>> {
    let Some(folder) = Folder::open(&any_output_at(path)?)? else { return Ok(None) };
    let Some(job) = folder.job()? else { return Ok(None) };
    folder.check_unspoiled()?;
    let names = folder.names()?;
    let mut complete: Vec<u64> =
        names.iter().filter_map(|name| part_of_name(name.to_bytes())).collect();
    complete.sort_unstable();
    let missing = (0..job.parts).filter(|index| complete.binary_search(index).is_err());
    Ok(Some(PartsStatus { count: job.parts, missing: missing.collect() }))
}

/// Remove what was begun of the output at `path`; false where nothing was.
pub fn discard(path: &Path) -> SinkResult<bool> {
    let entry = any_output_at(path)?;
    remove_leftovers(&entry);
    match Folder::open(&entry)? {
        Some(folder) => folder.remove(&entry).map(|()| true),
        None => Ok(false),
    }
}

/// Why a part cannot be written, besides what keeps any output from being written.
#[derive(Debug, thiserror::Error)]
pub enum PartsError {
    #[error("parts of another job are begun for it: {0}")]
    OtherJob(Difference),
    #[error("its parts were discarded while this one was being written")]
    Discarded,
    #[error("changed while a part of the output was made from it")]
    InputChanged,
    #[error("an input changed while its parts were written, which may hold bytes of both versions")]
    Spoiled,
    #[error("parts can only be written to a file")]
    NotAFile,
    /// Parts replace no folder, which no call of the system does at once with what others may write.
    #[error("is a folder that is not empty, and parts replace none: remove it first")]
    FolderExists,
    #[error("{0} of its parts is damaged")]
    Damaged(String),
    #[error("{0} of its parts exists, but does not appear on this machine")]
    Invisible(String),
}

/// In what two jobs differ.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Difference {
    #[error("it is cut into {theirs} parts there, and into {ours} here")]
    Parts { theirs: u64, ours: u64 },
    #[error("version {theirs} began them, and this is version {ours}")]
    Version { theirs: String, ours: String },
    #[error("they are of other inputs")]
    Inputs,
    #[error("the input {0} had another size or another time of last change")]
    Input(String),
    #[error("the input {0} had the same size and time of last change, but other content")]
    Content(String),
    #[error("the index, or another flag that changes the output, is another one")]
    Work,
}

// What processes tell each other of a job: the job itself, what is complete, which file is the output.

const PROTOCOL: u32 = 2;

pub const MAX_PARTS: u64 = 1_000_000;

/// A version of an input file, as all machines see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputId {
    /// The name of the file, without the folders that may have another path elsewhere.
    pub name: String,
    pub size: u64,
    /// When it was last changed: seconds since 1970, and nanoseconds.
    pub mtime: (i64, i64),
    /// A number for some of its bytes; empty in jobs of protocol 1.
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
            let only_content = (ours.size, ours.mtime) == (theirs.size, theirs.mtime);
            Some(if only_content { Difference::Content(name) } else { Difference::Input(name) })
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
        let mut crcs = BTreeMap::new();
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

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ChosenRecord {
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
        let a = record(2, 5, &[(0, 6), (3, 1)]);
        let b = record(3, 7, &[(0, 5)]);
        assert_eq!(a.add(&b), Some(record(2, 12, &[(0, 3), (3, 1)])));
        assert_eq!(a.add(&b), b.add(&a));
        assert_eq!(a.add(&record(0, u64::MAX, &[])), None);
    }
}
