//! A zip archive of stored members. Callers write the members' data, in parallel and in any order if
//! the inner sink allows that; headers and directory are written here.
//!
//! ```text
//!   local header │ head │ data ...  │ local header │ head │ data ... │ directory │ end
//!   here           here   write_at    here           here   write_at   commit
//! ```
//!
//! Only the CRC-32s are not known beforehand: they are added up from those of the pieces (`crcs`). If
//! the inner sink is sequential, the CRC follows the member's data (a data descriptor). Data begin at
//! multiples of 64 bytes, so that a mapped array is aligned. There are no timestamps: equal input
//! gives equal bytes.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use super::super::end_within;
use super::{LOCAL, MemberHeader, Method, ZipLayout, ZipMember, write_directory};
use crate::crc::PiecesCrc;
use crate::sink::{Draft, Old, Placed, Sink, SinkError, WriteOrder};

/// An archive that is being written.
pub struct ZipSink {
    inner: Box<dyn Draft>,
    layout: Arc<ZipLayout>,
    crcs: MemberCrcs,
    /// How many members are begun: everything before their data is written.
    begun: Mutex<usize>,
}

impl ZipSink {
    /// Write an archive of [`ZipLayout::bytes`] bytes to `inner`.
    ///
    /// # Errors
    /// [`SinkError::OutOfOrder`] if `inner` is sequential and the layout is not made for that.
    pub fn new(inner: Box<dyn Draft>, layout: Arc<ZipLayout>) -> Result<ZipSink, SinkError> {
        layout.check_order(inner.as_ref())?;
        let crcs = MemberCrcs::new(&layout);
        crcs.add_heads();
        Ok(ZipSink { inner, layout, crcs, begun: Mutex::new(0) })
    }

    /// Take data as written whose CRCs are these: each the number of a member and its sum.
    pub(in crate::sink) fn count_written(&self, sums: &[(usize, u32)]) {
        sums.iter().for_each(|&(member, crc)| self.crcs.add(member, crc));
    }

    /// The header fields of a member; the CRC is final once all its bytes are written.
    fn record(&self, number: usize) -> MemberHeader<'_> {
        MemberHeader { crc: self.crcs.get(number), ..self.layout.header(number, Method::Stored) }
    }

    /// The bytes before a member's data.
    fn header_bytes(&self, number: usize) -> Vec<u8> {
        let ZipMember { name, head, start, data } = self.layout.member(number);
        let record = match self.layout.forward {
            true => self.layout.header(number, Method::Stored),
            false => self.record(number),
        };
        let padding = data.start - start - head.len() as u64 - LOCAL - name.len() as u64;
        let mut bytes = record.local(padding as u16);
        bytes.extend(head);
        bytes
    }

    /// Write the headers before the data of member `number`, and the descriptors of the members
    /// before it. With `number` past the last member: everything but the directory.
    fn advance(&self, begun: &mut usize, number: usize) -> Result<(), SinkError> {
        while *begun <= number {
            if let Some(last) = begun.checked_sub(1) {
                let end = self.layout.member(last).data.end;
                self.inner.write_at(end, &self.record(last).descriptor())?;
            }
            if *begun < self.layout.count() {
                let start = self.layout.member(*begun).start;
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
        let Some(number) = self.crcs.add_bytes(offset, bytes)? else {
            return Ok(());
        };
        if self.order() == WriteOrder::Ascending {
            let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
            self.advance(&mut begun, number)?;
        }
        self.inner.write_at(offset, bytes)
    }

    fn settle(&self, range: Range<u64>, wait: bool) -> Result<(), SinkError> {
        self.inner.settle(range, wait)
    }

    fn expect(&self, range: Range<u64>) {
        self.inner.expect(range);
    }
}

impl Draft for ZipSink {
    fn seal(&mut self) -> Result<(), SinkError> {
        // a sink of any order has written no header yet: this writes all of them
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        self.advance(&mut begun, self.layout.count())?;
        drop(begun);
        let records = (0..self.layout.count()).map(|number| self.record(number));
        write_directory(self.inner.as_ref(), records, self.layout.end)?;
        self.inner.seal()
    }

    fn park(&mut self) -> Result<(), SinkError> {
        self.inner.park()
    }

    fn place(self: Box<Self>, old: Old) -> Result<Placed, SinkError> {
        self.inner.place(old)
    }
}

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
