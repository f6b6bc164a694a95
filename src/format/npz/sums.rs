//! Where an archive says the CRC-32 of a member, so that it can be put right after the member's bytes
//! were changed where they lie. While they are changed, the two that it says differ.
//!
//! ```text
//! local header .. CRC │ data │ (descriptor: CRC) │ ..   central directory: .. entry .. CRC ..
//! ```

use std::ops::Range;

use super::{
    DEFLATED, DESCRIPTOR, Directory, DirectoryEntry, FormatError, LOCAL, MemberFault, MemberPlace,
    Members, Source, find_directory, members, read_at, u16_at, u32_at, u64_at,
};
use crate::crc::PiecesCrc;

/// Where an archive says the CRC-32 of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberSums {
    pub name: String,
    /// The range of the member's bytes in the archive.
    pub data: Range<u64>,
    /// Where its CRC-32 stands, in 4 bytes, low ones first; that in the central directory, which readers
    /// go by, is the last.
    pub places: Vec<u64>,
    /// The CRC-32s that stand there, which may be wrong.
    pub crcs: Vec<u32>,
}

impl MemberSums {
    pub fn agree(&self) -> bool {
        self.crcs.windows(2).all(|two| two[0] == two[1])
    }
}

/// What stands in place of a CRC-32 while a member is written: a number that tells one change from others.
pub fn mark(change: &[u8]) -> u32 {
    let mark = PiecesCrc::default();
    mark.add(change, 0);
    mark.get()
}

/// Where the CRC-32s of those members are that hold these positions of the archive, which ascend; and the
/// name of another stored member whose CRC-32s differ from each other, if there is one.
pub fn sums(
    archive: &dyn Source,
    positions: &[u64],
) -> Result<(Vec<MemberSums>, Option<String>), FormatError> {
    let Members { mut places, .. } = members(archive)?;
    // what cannot be read may be said to lie anywhere
    places.retain(|place| place.refused.is_none());
    let directory = find_directory(archive)?;
    let mut found = Vec::new();
    let mut other = None;
    directory.entries(archive, |at, entry| {
        let number = places.partition_point(|place| place.offset < entry.offset);
        let Some(MemberPlace { data, offset, .. }) = places.get(number) else { return Ok(()) };
        if entry.method == DEFLATED || *offset != entry.offset {
            return Ok(());
        }
        let first = positions.partition_point(|&position| position < data.start);
        let is_asked = positions.get(first).is_some_and(|position| data.contains(position));
        let next = places.get(number + 1).map(|next| next.offset);
        let mut places = match entry.local_sums(archive, *offset, data, next, &directory) {
            // nobody needs it
            Err(FormatError::Npz(_)) if !is_asked => return Ok(()),
            places => places?,
        };
        places.push(at + 16);
        let crc = |&place: &u64| Ok::<_, FormatError>(u32_at(&read_at(archive, place, 4)?, 0));
        let crcs = places.iter().map(crc).collect::<Result<_, _>>()?;
        let sums = MemberSums { name: entry.name, data: data.clone(), places, crcs };
        if is_asked {
            found.push(sums);
        } else if !sums.agree() {
            other.get_or_insert(sums.name);
        }
        Ok(())
    })?;
    found.sort_unstable_by_key(|sums: &MemberSums| sums.data.start);
    Ok((found, other))
}

impl DirectoryEntry {
    /// The CRC-32s beside the data of a member, behind which the `next` one begins, or the directory.
    fn local_sums(
        &self,
        archive: &dyn Source,
        offset: u64,
        data: &Range<u64>,
        next: Option<u64>,
        directory: &Directory,
    ) -> Result<Vec<u64>, FormatError> {
        let local = read_at(archive, offset, LOCAL)?;
        let mut places = Vec::new();
        let has_descriptor = u16_at(&local, 6) & DESCRIPTOR != 0;
        // 0 where it was not known yet
        if !has_descriptor || u32_at(&local, 14) != 0 {
            places.push(offset + 14);
        }
        if has_descriptor {
            let room = next.unwrap_or(directory.range.start).saturating_sub(data.end);
            let behind = read_at(archive, data.end, room.min(24))?;
            let at = self.descriptor_sum(&behind);
            places.push(data.end + at.ok_or_else(|| self.fault(MemberFault::Descriptor))?);
        }
        Ok(places)
    }

    /// Where the CRC-32 is in a descriptor, by the two sizes that follow it: they have 32 or 64 bits, and
    /// a signature may stand before.
    fn descriptor_sum(&self, behind: &[u8]) -> Option<u64> {
        let sizes = |at: usize| {
            let short = behind.len() >= at + 8
                && u64::from(u32_at(behind, at)) == self.stored
                && u64::from(u32_at(behind, at + 4)) == self.size;
            let long = behind.len() >= at + 16
                && u64_at(behind, at) == self.stored
                && u64_at(behind, at + 8) == self.size;
            short || long
        };
        match behind.starts_with(b"PK\x07\x08") {
            true if sizes(8) => Some(4),
            _ => sizes(4).then_some(0),
        }
    }
}
