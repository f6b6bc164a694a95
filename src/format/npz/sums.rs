//! Where an archive says the CRC-32 of a member, so that it can be put right after the member's bytes
//! were changed where they lie.
//!
//! ```text
//! local header .. CRC │ data │ (descriptor: CRC) │ ..   central directory: .. entry .. CRC ..
//! ```

use std::ops::Range;

use super::{
    DESCRIPTOR, Directory, DirectoryEntry, FormatError, LOCAL, MemberFault, MemberPlace, Members,
    Source, find_directory, members, read_at, u16_at, u32_at, u64_at,
};

/// Where an archive says the CRC-32 of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberSums {
    /// The range of the member's bytes in the archive.
    pub data: Range<u64>,
    /// Where its CRC-32 stands, in 4 bytes, low ones first; that in the central directory, which readers
    /// go by, is the last.
    pub places: Vec<u64>,
}

/// Where the CRC-32s of those members are that hold these positions of the archive, which ascend. They may
/// be wrong, and differ from each other.
///
/// # Errors
/// Those of [`members`]; [`MemberFault::Descriptor`].
pub fn sums(archive: &dyn Source, positions: &[u64]) -> Result<Vec<MemberSums>, FormatError> {
    let Members { places, .. } = members(archive)?;
    let directory = find_directory(archive)?;
    let mut found = Vec::new();
    directory.entries(archive, |at, entry| {
        let number = places.partition_point(|place| place.offset < entry.offset);
        let Some(MemberPlace { data, offset, .. }) = places.get(number) else { return Ok(()) };
        let first = positions.partition_point(|&position| position < data.start);
        if positions.get(first).is_some_and(|position| data.contains(position)) {
            let next = places.get(number + 1).map(|next| next.offset);
            let mut places = entry.local_sums(archive, *offset, data, next, &directory)?;
            places.push(at + 16);
            found.push(MemberSums { data: data.clone(), places });
        }
        Ok(())
    })?;
    found.sort_unstable_by_key(|sums: &MemberSums| sums.data.start);
    Ok(found)
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
            let room = next.unwrap_or(directory.range.start) - data.end;
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
