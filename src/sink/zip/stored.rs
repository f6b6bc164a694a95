//! A zip archive of stored members. Callers write the members' data, in parallel and in any order if
//! the inner sink allows that; headers and directory are written here.
//!
//! ```text
//!   local header │ head │ data ...  │ local header │ head │ data ... │ directory │ end
//!   here           here   write_at    here           here   write_at   commit
//! ```
//!
//! Only the CRC-32s are not known beforehand. A member's CRC is combined from those of its pieces,
//! in any order: it is the exclusive or of the pieces' CRCs, each shifted by the number of bytes that
//! follow the piece. If the inner sink is sequential, the CRC follows the member's data (a data
//! descriptor). Data begin at multiples of 64 bytes, so that a mapped array is aligned. There are no
//! timestamps: equal input gives equal bytes.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use crc32fast::Hasher;

use super::headers::{LOCAL, MemberHeader, Method, directory};
use super::{PlacedMember, ZipLayout};
use crate::sink::{Sink, SinkError, WriteOrder};

/// An archive that is being written.
pub struct ZipSink {
    inner: Box<dyn Sink>,
    layout: ZipLayout,
    /// The CRC-32 of each member, over the bytes written so far.
    crcs: Vec<AtomicU32>,
    /// How many members are begun: everything before their data is written.
    begun: Mutex<usize>,
    sealed: bool,
}

impl ZipSink {
    /// Write an archive of [`ZipLayout::len`] bytes to `inner`.
    ///
    /// # Errors
    /// [`SinkError::OutOfOrder`] if `inner` is sequential and the layout is not made for that.
    pub fn new(inner: Box<dyn Sink>, layout: ZipLayout) -> Result<ZipSink, SinkError> {
        if inner.order() == WriteOrder::Ascending && !layout.forward {
            return Err(SinkError::OutOfOrder { expected: 0, offset: layout.len });
        }
        let crc = |placed: &PlacedMember| {
            let head = crc32fast::hash(&placed.member.head);
            AtomicU32::new(shifted(head, placed.member.data_len))
        };
        let crcs = layout.members.iter().map(crc).collect();
        Ok(ZipSink { inner, layout, crcs, begun: Mutex::new(0), sealed: false })
    }

    /// The header fields of a member; the CRC is final once all its bytes are written.
    fn record(&self, number: usize) -> MemberHeader<'_> {
        let PlacedMember { member, start, .. } = &self.layout.members[number];
        MemberHeader {
            name: &member.name,
            method: Method::Stored,
            forward: self.layout.forward,
            crc: self.crc(number),
            size: member.len(),
            stored: member.len(),
            start: *start,
        }
    }

    /// The bytes before a member's data.
    fn header_bytes(&self, number: usize) -> Vec<u8> {
        let PlacedMember { member, start, data } = &self.layout.members[number];
        let mut record = self.record(number);
        if self.layout.forward {
            record.crc = 0;
        }
        let padding = data - start - member.head.len() as u64 - LOCAL - member.name.len() as u64;
        let mut bytes = record.local(padding as u16);
        bytes.extend(&member.head);
        bytes
    }

    fn crc(&self, number: usize) -> u32 {
        self.crcs[number].load(Ordering::Acquire)
    }

    /// Write the headers before the data of member `number`, and the descriptors of the members
    /// before it. With `number` past the last member: everything but the directory.
    fn advance(&self, begun: &mut usize, number: usize) -> Result<(), SinkError> {
        while *begun <= number {
            if let Some(last) = begun.checked_sub(1) {
                let PlacedMember { member, data, .. } = &self.layout.members[last];
                self.inner.write_at(data + member.data_len, &self.record(last).descriptor())?;
            }
            if *begun < self.layout.members.len() {
                let start = self.layout.members[*begun].start;
                self.inner.write_at(start, &self.header_bytes(*begun))?;
            }
            *begun += 1;
        }
        Ok(())
    }
}

impl Sink for ZipSink {
    fn order(&self) -> WriteOrder {
        self.inner.order()
    }

    fn is_atomic(&self) -> bool {
        self.inner.is_atomic()
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), SinkError> {
        let after = self.layout.members.partition_point(|placed| placed.data <= offset);
        let Some(number) = after.checked_sub(1).filter(|_| !bytes.is_empty()) else {
            return Ok(());
        };
        let PlacedMember { member, data, .. } = &self.layout.members[number];
        let end = offset + bytes.len() as u64;
        let follow = (data + member.data_len).checked_sub(end).ok_or(SinkError::OutOfBounds {
            offset,
            count: bytes.len() as u64,
            len: data + member.data_len,
        })?;
        self.crcs[number].fetch_xor(shifted(crc32fast::hash(bytes), follow), Ordering::AcqRel);
        if self.order() == WriteOrder::Ascending {
            let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
            self.advance(&mut begun, number)?;
        }
        self.inner.write_at(offset, bytes)
    }

    fn seal(&mut self) -> Result<(), SinkError> {
        if std::mem::replace(&mut self.sealed, true) {
            return Ok(());
        }
        // a sink of any order has written no header yet: this writes all of them
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        self.advance(&mut begun, self.layout.members.len())?;
        drop(begun);
        let records = (0..self.layout.members.len()).map(|number| self.record(number));
        self.inner.write_at(self.layout.directory, &directory(records, self.layout.directory))?;
        self.inner.seal()
    }

    fn commit(mut self: Box<Self>) -> Result<(), SinkError> {
        self.seal()?;
        self.inner.commit()
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
