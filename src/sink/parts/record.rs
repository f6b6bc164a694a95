//! What processes tell each other of a job: the job itself, what is complete, which file is the output.

use std::collections::BTreeMap;
use std::fmt;
use std::fmt::Write;

use serde::{Deserialize, Serialize};

use super::Difference;

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

/// What the parts are parts of.
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

/// Which file of the folder is the output.
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
