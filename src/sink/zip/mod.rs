//! Writing a zip archive: which members it holds, and where their bytes go.
//!
//! A [`ZipLayout`] is computed before anything is written. [`ZipSink`] then takes the data of stored
//! members at their final positions; [`DeflatedZipSink`] takes the same positions, in order, and
//! writes the members deflated.

mod crcs;
mod deflated;
mod headers;
mod stored;

pub(super) use crcs::MemberCrcs;
pub use deflated::DeflatedZipSink;
pub use stored::ZipSink;

use std::ops::Range;
use std::sync::Arc;

use self::headers::{DESCRIPTOR, ENDS, ENTRY, LOCAL, MemberHeader, Method};
use super::{Draft, SinkError, WriteOrder};

/// The offsets of everything in an archive.
#[derive(Clone, Debug)]
pub struct ZipLayout {
    members: Vec<PlacedMember>,
    /// The names of the members, one after the other.
    names: String,
    /// Whether each member's CRC follows its data.
    forward: bool,
    /// Where the next member goes: at last, the directory.
    end: u64,
}

/// A member in a layout: what cannot be computed.
#[derive(Clone, Debug)]
struct PlacedMember {
    /// Where its local header begins.
    start: u64,
    /// Where its name ends in those of all.
    name_end: usize,
    /// Its first bytes: the header of an array, which many members may share.
    head: Arc<[u8]>,
}

/// A member of a layout.
struct ZipMember<'a> {
    name: &'a str,
    head: &'a [u8],
    /// Where its local header begins.
    start: u64,
    /// The range of its data, after `head`.
    data: Range<u64>,
}

const ALIGN: u64 = 64;

impl ZipLayout {
    /// An archive without members, of which so many are to come; `forward` for a sequential output.
    pub fn new(count: usize, forward: bool) -> ZipLayout {
        let members = Vec::with_capacity(count);
        ZipLayout { members, names: String::new(), forward, end: 0 }
    }

    /// Add a member behind the others, whose first bytes are `head`, with so many bytes of data behind
    /// them. `None` if the archive takes 2^63 bytes or more then, or the name is too long for zip
    /// (65535 bytes): it cannot be written.
    #[must_use]
    pub fn push(&mut self, name: &str, head: &Arc<[u8]>, data_len: u64) -> Option<()> {
        u16::try_from(name.len()).ok()?;
        let start = self.end;
        let data = data_start(start, name, head)?;
        let end = data.checked_add(data_len)?.checked_add(self.descriptor())?;
        self.names.push_str(name);
        let name_end = self.names.len();
        self.members.push(PlacedMember { start, name_end, head: Arc::clone(head) });
        self.end = end;
        let len = end.checked_add(self.directory_len())?;
        i64::try_from(len).ok().map(|_| ())
    }

    /// Bytes of the whole archive.
    pub fn bytes(&self) -> u64 {
        self.end + self.directory_len()
    }

    /// Where the data of each member begin, in bytes from the beginning of the archive.
    pub fn data(&self) -> impl Iterator<Item = u64> {
        (0..self.count()).map(|number| self.member(number).data.start)
    }

    fn directory_len(&self) -> u64 {
        self.members.len() as u64 * ENTRY + self.names.len() as u64 + ENDS
    }

    /// Bytes behind the data of each member.
    fn descriptor(&self) -> u64 {
        if self.forward { DESCRIPTOR } else { 0 }
    }

    /// How many members there are.
    fn count(&self) -> usize {
        self.members.len()
    }

    /// The header fields of a member, as far as they are known before its bytes are.
    fn header(&self, number: usize, method: Method) -> MemberHeader<'_> {
        let member = self.member(number);
        let (name, size, start) = (member.name, member.len(), member.start);
        MemberHeader { name, method, forward: self.forward, crc: 0, size, stored: size, start }
    }

    /// Refuse an archive whose bytes come in another order than a sink takes them.
    fn check_order(&self, inner: &dyn Draft) -> Result<(), SinkError> {
        match inner.order() {
            WriteOrder::Ascending if !self.forward => {
                Err(SinkError::OutOfOrder { expected: 0, offset: self.bytes() })
            }
            _ => Ok(()),
        }
    }

    /// ZipMember `number`, of those that there are.
    fn member(&self, number: usize) -> ZipMember<'_> {
        let PlacedMember { start, name_end, ref head } = self.members[number];
        let name_start = number.checked_sub(1).map_or(0, |before| self.members[before].name_end);
        let name = &self.names[name_start..name_end];
        let next = self.members.get(number + 1).map_or(self.end, |next| next.start);
        // it was computed without an overflow when the member was added
        let data = data_start(start, name, head).unwrap_or(next);
        ZipMember { name, head, start, data: data..next - self.descriptor() }
    }

    /// The number of the last member whose data begin at a position or before it.
    fn find(&self, position: u64) -> Option<usize> {
        let begun = self.members.partition_point(|placed| placed.start <= position);
        let last = begun.checked_sub(1)?;
        if self.member(last).data.start <= position { Some(last) } else { last.checked_sub(1) }
    }
}

/// Where the data of a member begin whose local header begins at `start`.
fn data_start(start: u64, name: &str, head: &[u8]) -> Option<u64> {
    let head_at = start.checked_add(LOCAL + name.len() as u64)?;
    head_at.checked_next_multiple_of(ALIGN)?.checked_add(head.len() as u64)
}

impl ZipMember<'_> {
    /// Bytes of its data.
    fn data_len(&self) -> u64 {
        self.data.end - self.data.start
    }

    /// Bytes of the whole member.
    fn len(&self) -> u64 {
        self.head.len() as u64 + self.data_len()
    }
}
