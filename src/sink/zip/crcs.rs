//! The CRC-32s of the members of an archive, put together from their pieces in any order.
//!
//! A member's CRC is the exclusive or of the pieces' CRCs, each shifted by the number of bytes that
//! follow the piece. So processes that write pieces of one member can add theirs up, too.

use std::sync::atomic::{AtomicU32, Ordering};

use crc32fast::Hasher;

use super::ZipLayout;
use crate::sink::SinkError;

/// The CRC-32 of each member, over the bytes that were added so far.
#[derive(Debug)]
pub(in crate::sink) struct MemberCrcs(Vec<AtomicU32>);

impl MemberCrcs {
    /// No bytes yet.
    pub(in crate::sink) fn new(layout: &ZipLayout) -> MemberCrcs {
        MemberCrcs((0..layout.count()).map(|_| AtomicU32::new(0)).collect())
    }

    /// Add the first bytes of each member, which are not written by the caller.
    pub(super) fn add_heads(&self, layout: &ZipLayout) {
        for number in 0..layout.count() {
            let member = layout.member(number);
            self.add(number, shifted(crc32fast::hash(member.head), member.data_len()));
        }
    }

    /// Add bytes of data at a position of the archive: the number of their member; `None` for no
    /// bytes.
    pub(in crate::sink) fn add_bytes(
        &self,
        layout: &ZipLayout,
        offset: u64,
        bytes: &[u8],
    ) -> Result<Option<usize>, SinkError> {
        let found = layout.find(offset).filter(|_| !bytes.is_empty());
        let Some(number) = found else { return Ok(None) };
        let len = layout.member(number).data.end;
        let count = bytes.len() as u64;
        let follow = len.checked_sub(offset + count);
        let follow = follow.ok_or(SinkError::OutOfBounds { offset, count, len })?;
        self.add(number, shifted(crc32fast::hash(bytes), follow));
        Ok(Some(number))
    }

    /// Add what another process counted.
    pub(in crate::sink) fn add(&self, member: usize, crc: u32) {
        if let Some(sum) = self.0.get(member) {
            sum.fetch_xor(crc, Ordering::AcqRel);
        }
    }

    /// The CRC of a member.
    pub(super) fn get(&self, member: usize) -> u32 {
        self.0.get(member).map_or(0, |crc| crc.load(Ordering::Acquire))
    }

    /// The members with a CRC other than 0, and their CRCs.
    pub(in crate::sink) fn sums(&self) -> Vec<(usize, u32)> {
        let all = (0..self.0.len()).map(|member| (member, self.get(member)));
        all.filter(|(_, crc)| *crc != 0).collect()
    }
}

/// What a piece with this CRC-32 contributes to the CRC-32 of the whole, if `follow` bytes come
/// after it.
fn shifted(crc: u32, follow: u64) -> u32 {
    let mut hasher = Hasher::new_with_initial_len(crc, 0);
    hasher.combine(&Hasher::new_with_initial_len(0, follow));
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_crc_of_a_whole_comes_from_its_pieces_in_any_order() {
        let whole: Vec<u8> = (0..1000u32).map(|i| (i * i % 251) as u8).collect();
        let mut crc = 0;
        for range in [300..700, 0..1, 999..1000, 700..999, 1..300] {
            crc ^= shifted(crc32fast::hash(&whole[range.clone()]), (1000 - range.end) as u64);
        }
        assert_eq!(crc, crc32fast::hash(&whole));
    }
}
