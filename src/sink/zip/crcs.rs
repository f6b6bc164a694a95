//! The CRC-32s of the members of an archive, put together from their pieces in any order.
//!
//! Processes that write pieces of one member can add theirs up, too.

use std::sync::Arc;

use super::ZipLayout;
use crate::crc::PiecesCrc;
use crate::sink::SinkError;
use crate::sink::error::end_within;

/// The CRC-32 of each member, over the bytes that were added so far.
#[derive(Debug)]
pub(in crate::sink) struct MemberCrcs {
    layout: Arc<ZipLayout>,
    sums: Vec<PiecesCrc>,
}

impl MemberCrcs {
    /// No bytes yet.
    pub(in crate::sink) fn new(layout: &Arc<ZipLayout>) -> MemberCrcs {
        let sums = (0..layout.count()).map(|_| PiecesCrc::default()).collect();
        MemberCrcs { layout: Arc::clone(layout), sums }
    }

    /// Add the first bytes of each member, which are not written by the caller.
    pub(super) fn add_heads(&self) {
        for (number, sum) in self.sums.iter().enumerate() {
            let member = self.layout.member(number);
            sum.add(member.head, member.data_len());
        }
    }

    /// Add bytes of data at a position of the archive: the number of their member; `None` for no
    /// bytes.
    pub(in crate::sink) fn add_bytes(
        &self,
        offset: u64,
        bytes: &[u8],
    ) -> Result<Option<usize>, SinkError> {
        let found = self.layout.find(offset).filter(|_| !bytes.is_empty());
        let Some(number) = found else { return Ok(None) };
        let len = self.layout.member(number).data.end;
        let end = end_within(offset, bytes.len() as u64, len)?;
        self.sums[number].add(bytes, len - end);
        Ok(Some(number))
    }

    /// Add what another process counted.
    pub(super) fn add(&self, member: usize, crc: u32) {
        if let Some(sum) = self.sums.get(member) {
            sum.add_sum(crc);
        }
    }

    /// The CRC of a member.
    pub(super) fn get(&self, member: usize) -> u32 {
        self.sums[member].get()
    }

    /// The members with a CRC other than 0, and their CRCs.
    pub(in crate::sink) fn sums(&self) -> Vec<(usize, u32)> {
        let all = self.sums.iter().map(PiecesCrc::get).enumerate();
        all.filter(|(_, crc)| *crc != 0).collect()
    }
}
