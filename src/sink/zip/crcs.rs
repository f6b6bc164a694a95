//! The CRC-32s of the members of an archive, put together from their pieces in any order.
//!
//! Processes that write pieces of one member can add theirs up, too.

use super::ZipLayout;
use crate::crc::PiecesCrc;
use crate::sink::SinkError;

/// The CRC-32 of each member, over the bytes that were added so far.
#[derive(Debug)]
pub(in crate::sink) struct MemberCrcs(Vec<PiecesCrc>);

impl MemberCrcs {
    /// No bytes yet.
    pub(in crate::sink) fn new(layout: &ZipLayout) -> MemberCrcs {
        MemberCrcs((0..layout.count()).map(|_| PiecesCrc::default()).collect())
    }

    /// Add the first bytes of each member, which are not written by the caller.
    pub(super) fn add_heads(&self, layout: &ZipLayout) {
        for number in 0..layout.count() {
            let member = layout.member(number);
            self.add_piece(number, member.head, member.data_len());
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
        self.add_piece(number, bytes, follow);
        Ok(Some(number))
    }

    /// Add what another process counted.
    pub(in crate::sink) fn add(&self, member: usize, crc: u32) {
        if let Some(sum) = self.0.get(member) {
            sum.add_sum(crc);
        }
    }

    fn add_piece(&self, member: usize, piece: &[u8], follow: u64) {
        if let Some(sum) = self.0.get(member) {
            sum.add(piece, follow);
        }
    }

    /// The CRC of a member.
    pub(super) fn get(&self, member: usize) -> u32 {
        self.0.get(member).map_or(0, PiecesCrc::get)
    }

    /// The members with a CRC other than 0, and their CRCs.
    pub(in crate::sink) fn sums(&self) -> Vec<(usize, u32)> {
        let all = (0..self.0.len()).map(|member| (member, self.get(member)));
        all.filter(|(_, crc)| *crc != 0).collect()
    }
}
