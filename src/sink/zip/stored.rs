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

use super::crcs::MemberCrcs;
use super::headers::{LOCAL, MemberHeader, Method, write_directory};
use super::{ZipLayout, ZipMember};
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
