//! Writing a zip archive: which members it holds, and where their bytes go.
//!
//! A [`ZipLayout`] is computed before anything is written. [`ZipSink`] then takes the data of stored
//! members at their final positions; [`DeflatedZipSink`] takes the same positions, in order, and
//! writes the members deflated.

mod crcs;
mod deflated;
mod headers;
mod stored;

pub(super) use crcs::MemberCrcs;
pub use deflated::DeflatedZipSink;
pub use stored::ZipSink;

use std::sync::Arc;

use self::headers::{DESCRIPTOR, ENDS, ENTRY, LOCAL};

/// A member to write: its name, its first bytes, and the length of its data.
#[derive(Clone, Debug)]
pub struct ZipMember {
    /// Its name.
    pub name: String,
    /// Its first bytes: the header of an array, which many members may share.
    pub head: Arc<[u8]>,
    /// Bytes of data after `head`.
    pub data_len: u64,
}

/// The offsets of everything in an archive.
#[derive(Clone, Debug)]
pub struct ZipLayout {
    pub(super) members: Vec<PlacedMember>,
    /// Whether each member's CRC follows its data.
    pub(super) forward: bool,
    directory: u64,
    len: u64,
}

#[derive(Clone, Debug)]
pub(super) struct PlacedMember {
    pub(super) member: ZipMember,
    /// Where its local header begins.
    start: u64,
    /// Where its data (after `head`) begin.
    pub(super) data: u64,
}

const ALIGN: u64 = 64;

impl ZipLayout {
    /// Lay out the members one after the other; `forward` for a sequential output. `None` if the
    /// archive takes 2^63 bytes or more, or a name is too long for zip (65535 bytes).
    pub fn new(members: Vec<ZipMember>, forward: bool) -> Option<ZipLayout> {
        let mut start = 0u64;
        let mut directory_len = ENDS;
        let mut placed = Vec::with_capacity(members.len());
        for member in members {
            u16::try_from(member.name.len()).ok()?;
            let name_len = member.name.len() as u64;
            let head_at = start.checked_add(LOCAL + name_len)?.checked_next_multiple_of(ALIGN)?;
            let data = head_at.checked_add(member.head.len() as u64)?;
            let end = data.checked_add(member.data_len)?;
            directory_len = directory_len.checked_add(ENTRY + name_len)?;
            placed.push(PlacedMember { member, start, data });
            start = end.checked_add(if forward { DESCRIPTOR } else { 0 })?;
        }
        let len = start.checked_add(directory_len).filter(|&len| i64::try_from(len).is_ok())?;
        Some(ZipLayout { members: placed, forward, directory: start, len })
    }

    /// Bytes of the whole archive.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Never: an archive has at least the end of its directory.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Where the data of each member begin, in bytes from the beginning of the archive.
    pub fn data(&self) -> impl Iterator<Item = u64> {
        self.members.iter().map(|placed| placed.data)
    }
}

impl ZipMember {
    /// Bytes of the whole member.
    pub(super) fn len(&self) -> u64 {
        self.head.len() as u64 + self.data_len
    }
}
