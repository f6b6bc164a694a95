//! A zip archive around an output: the members' data are written by whoever makes them, in parallel
//! and in any order where the output allows that; all the rest is written here.
//!
//! ```text
//!   local header │ head │ data ...  │ local header │ head │ data ... │ directory │ end
//!   here           here   write_at    here           here   write_at   commit
//! ```
//!
//! Of the rest only the CRC-32s are not known beforehand. That of a member is put together from
//! those of its pieces, in whatever order they come: the CRC of a whole is the exclusive or of the
//! CRCs of its pieces, each shifted by the number of bytes that follow the piece. Where the output
//! goes forward only, a member's CRC follows its data (a data descriptor). Data begin at multiples
//! of 64 bytes, so that a mapped array is aligned. There are no times: the same bytes every time.

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
    /// The CRC-32 of each member, as far as its bytes have been written.
    crcs: Vec<AtomicU32>,
    /// How many members have been begun: all that stands before their data is written.
    begun: Mutex<usize>,
}

impl ZipSink {
    /// Write an archive to `inner`, which has room for [`ZipLayout::len`] bytes.
    ///
    /// # Errors
    /// [`SinkError::OutOfOrder`] where `inner` goes forward only and the layout is not made for it.
    pub fn new(inner: Box<dyn Sink>, layout: ZipLayout) -> Result<ZipSink, SinkError> {
        if inner.order() == WriteOrder::Ascending && !layout.forward {
            return Err(SinkError::OutOfOrder { expected: 0, offset: layout.len });
        }
        let crc = |placed: &PlacedMember| {
            let head = crc32fast::hash(&placed.member.head);
            AtomicU32::new(shifted(head, placed.member.data_len))
        };
        let crcs = layout.members.iter().map(crc).collect();
        Ok(ZipSink { inner, layout, crcs, begun: Mutex::new(0) })
    }

    /// What the archive says of a member, whose CRC is right once its bytes are written.
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
    fn before(&self, number: usize) -> Vec<u8> {
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

    /// Write what stands before the data of member `number`
    /// and after those of the members before it; of all members, with `number` past the last.
    fn advance(&self, begun: &mut usize, number: usize) -> Result<(), SinkError> {
        while *begun <= number {
            if let Some(last) = begun.checked_sub(1) {
                let PlacedMember { member, data, .. } = &self.layout.members[last];
                self.inner.write_at(data + member.data_len, &self.record(last).descriptor())?;
            }
            if *begun < self.layout.members.len() {
                let start = self.layout.members[*begun].start;
                self.inner.write_at(start, &self.before(*begun))?;
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

    fn commit(self: Box<Self>) -> Result<(), SinkError> {
        // where the order is free, this is all members' turn at once
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        self.advance(&mut begun, self.layout.members.len())?;
        drop(begun);
        let records = (0..self.layout.members.len()).map(|number| self.record(number));
        self.inner.write_at(self.layout.directory, &directory(records, self.layout.directory))?;
        self.inner.commit()
    }
}

/// What a piece's CRC-32 adds to that of a whole in which `follow` bytes come after it.
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
