//! A zip archive of stored members. Callers write the members' data, in parallel and in any order if
//! the inner sink allows that; headers and directory are written here.
//!
//! ```text
//!   local header │ head │ data ...  │ local header │ head │ data ... │ directory │ end
//!   here           here   write_at    here           here   write_at   commit
//! ```
//!
//! Only the CRC-32s are not known beforehand: they are combined from the CRCs of the pieces (`crcs`).
//! If the inner sink is sequential, the CRC follows the member's data (a data descriptor). Data begin
//! at multiples of 64 bytes, so that a mapped array is aligned. There are no timestamps: equal input
//! gives equal bytes.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use super::{LOCAL, MemberHeader, Method, WriteAt, ZipLayout, ZipMember, write_directory};
use crate::crc::PiecesCrc;
use crate::sink::{Draft, PlacedOutputs, Replaced, Sink, SinkResult, WriteOrder, end_within};

/// An archive of stored members that is being written.
pub struct ZipSink {
    inner: Box<dyn Draft>,
    crcs: MemberCrcs,
    /// The number of members that are begun: all bytes before their data are written.
    begun: Mutex<usize>,
}

impl ZipSink {
    /// Write an archive of [`ZipLayout::bytes`] bytes to `inner`.
    pub fn new(inner: Box<dyn Draft>, layout: Arc<ZipLayout>) -> SinkResult<ZipSink> {
        layout.check_order(inner.as_ref())?;
        Ok(ZipSink { inner, crcs: MemberCrcs::with_heads(&layout), begun: Mutex::new(0) })
    }
}

impl Sink for ZipSink {
    fn order(&self) -> WriteOrder {
        self.inner.order()
    }

    fn is_atomic(&self) -> bool {
        self.inner.is_atomic()
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> SinkResult<()> {
        let Some(number) = self.crcs.add_bytes(offset, bytes)? else {
            return Ok(());
        };
        if self.order() == WriteOrder::Ascending {
            let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
            let write = |at, bytes: &[u8]| self.inner.write_at(at, bytes);
            self.crcs.write_headers(&mut begun, number, &write)?;
        }
        self.inner.write_at(offset, bytes)
    }

    fn keep_holes(&self) {
        self.inner.keep_holes();
    }

    fn settle(&self, range: Range<u64>, wait: bool) -> SinkResult<()> {
        self.inner.settle(range, wait)
    }

    fn expect(&self, range: Range<u64>) {
        self.inner.expect(range);
    }
}

impl Draft for ZipSink {
    fn seal(&mut self) -> SinkResult<()> {
        // a sink of any order has no header yet: this writes all of them
        let begun = self.begun.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.crcs.write_rest(begun, &|at, bytes| self.inner.write_at(at, bytes))?;
        self.inner.seal()
    }

    fn park(&mut self) -> SinkResult<()> {
        self.inner.park()
    }

    fn place(self: Box<Self>, replaced: Replaced) -> SinkResult<PlacedOutputs> {
        self.inner.place(replaced)
    }
}

/// The CRC-32 of each member, over the bytes added so far.
#[derive(Debug)]
pub(in crate::sink) struct MemberCrcs {
    layout: Arc<ZipLayout>,
    sums: Vec<PiecesCrc>,
}

impl MemberCrcs {
    pub(in crate::sink) fn new(layout: &Arc<ZipLayout>) -> MemberCrcs {
        let sums = (0..layout.count()).map(|_| PiecesCrc::default()).collect();
        MemberCrcs { layout: Arc::clone(layout), sums }
    }

    /// The CRCs of each member's first bytes, which the caller does not write.
    pub(in crate::sink) fn with_heads(layout: &Arc<ZipLayout>) -> MemberCrcs {
        let crcs = MemberCrcs::new(layout);
        for (number, sum) in crcs.sums.iter().enumerate() {
            let member = layout.member(number);
            sum.add(member.head, member.data_len());
        }
        crcs
    }

    /// Add bytes of data at a position of the archive. Returns the number of their member; `None` for
    /// no bytes.
    pub(in crate::sink) fn add_bytes(
        &self,
        offset: u64,
        bytes: &[u8],
    ) -> SinkResult<Option<usize>> {
        let found = self.layout.find(offset).filter(|_| !bytes.is_empty());
        let Some(number) = found else { return Ok(None) };
        let len = self.layout.member(number).data.end;
        let end = end_within(offset, bytes.len() as u64, len)?;
        self.sums[number].add(bytes, len - end);
        Ok(Some(number))
    }

    /// Add a CRC that another process counted for a member.
    pub(in crate::sink) fn add(&self, member: usize, crc: u32) {
        if let Some(sum) = self.sums.get(member) {
            sum.add_sum(crc);
        }
    }

    /// The members with a CRC other than 0, and their CRCs.
    pub(in crate::sink) fn sums(&self) -> Vec<(usize, u32)> {
        let all = self.sums.iter().map(PiecesCrc::get).enumerate();
        all.filter(|(_, crc)| *crc != 0).collect()
    }

    /// The header fields of a member; the CRC is final once all bytes of the member were added.
    fn record(&self, number: usize) -> MemberHeader<'_> {
        let header = self.layout.header(number, Method::Stored);
        MemberHeader { crc: self.sums[number].get(), ..header }
    }

    fn header_bytes(&self, number: usize) -> Vec<u8> {
        let ZipMember { name, head, start, data } = self.layout.member(number);
        let record = if self.layout.forward {
            self.layout.header(number, Method::Stored)
        } else {
            self.record(number)
        };
        let padding = data.start - start - head.len() as u64 - LOCAL - name.len() as u64;
        let mut bytes = record.local(padding as u16);
        bytes.extend(head);
        bytes
    }

    /// Write the headers before the data of member `number`, and the descriptors of the earlier
    /// members. With `number` past the last member: everything but the directory.
    fn write_headers(
        &self,
        begun: &mut usize,
        number: usize,
        write: &WriteAt<'_>,
    ) -> SinkResult<()> {
        while *begun <= number {
            if let Some(last) = begun.checked_sub(1) {
                let end = self.layout.member(last).data.end;
                write(end, &self.record(last).descriptor())?;
            }
            if *begun < self.layout.count() {
                let start = self.layout.member(*begun).start;
                write(start, &self.header_bytes(*begun))?;
            }
            *begun += 1;
        }
        Ok(())
    }

    /// Write everything except data, from the headers of member `begun` on.
    pub(in crate::sink) fn write_rest(
        &self,
        begun: &mut usize,
        write: &WriteAt<'_>,
    ) -> SinkResult<()> {
        self.write_headers(begun, self.layout.count(), write)?;
        let records = (0..self.layout.count()).map(|number| self.record(number));
        write_directory(write, records, self.layout.end)
    }
}
