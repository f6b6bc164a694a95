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

use super::record::{DESCRIPTOR, ENDS, ENTRY, LOCAL, Method, Record, directory};
use super::{Sink, SinkError, WriteOrder};

/// A member that is to be: its name, its first bytes, and how many follow.
#[derive(Clone, Debug)]
pub struct ZipMember {
    /// Its name.
    pub name: String,
    /// Its first bytes: the header of an array.
    pub head: Vec<u8>,
    /// How many bytes follow: its data.
    pub data_len: u64,
}

/// Where everything in an archive goes.
#[derive(Clone, Debug)]
pub struct ZipLayout {
    pub(super) members: Vec<Placed>,
    /// Whether each member's CRC follows its data.
    pub(super) forward: bool,
    directory: u64,
    len: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Placed {
    pub(super) member: ZipMember,
    /// Where its local header begins.
    start: u64,
    /// Where its data begin.
    pub(super) data: u64,
}

const ALIGN: u64 = 64;

impl ZipLayout {
    /// Lay the members out, one after the other; `forward` for an output that goes forward only.
    /// `None` where it takes 2^63 bytes or more, or a name is too long for a zip archive.
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
            placed.push(Placed { member, start, data });
            start = end.checked_add(if forward { DESCRIPTOR } else { 0 })?;
        }
        let len = start.checked_add(directory_len).filter(|&len| i64::try_from(len).is_ok())?;
        Some(ZipLayout { members: placed, forward, directory: start, len })
    }

    /// Bytes of the whole archive.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are no bytes, which cannot be.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Where the data of each member begin, in bytes from the beginning of the archive.
    pub fn data(&self) -> impl Iterator<Item = u64> {
        self.members.iter().map(|placed| placed.data)
    }
}

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
        let crc = |placed: &Placed| {
            let head = crc32fast::hash(&placed.member.head);
            AtomicU32::new(shifted(head, placed.member.data_len))
        };
        let crcs = layout.members.iter().map(crc).collect();
        Ok(ZipSink { inner, layout, crcs, begun: Mutex::new(0) })
    }

    /// What the archive says of a member, whose CRC is right once its bytes are written.
    fn record(&self, number: usize) -> Record<'_> {
        let Placed { member, start, .. } = &self.layout.members[number];
        Record {
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
        let Placed { member, start, data } = &self.layout.members[number];
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
                let Placed { member, data, .. } = &self.layout.members[last];
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
        let Placed { member, data, .. } = &self.layout.members[number];
        let end = offset + bytes.len() as u64;
        let follow = (data + member.data_len).checked_sub(end).ok_or(SinkError::Beyond {
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

impl ZipMember {
    /// Bytes of the whole member.
    pub(super) fn len(&self) -> u64 {
        self.head.len() as u64 + self.data_len
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
