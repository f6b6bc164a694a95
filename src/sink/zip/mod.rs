//! Zip archives being written: their members, and the offsets of their bytes.
//!
//! A [`ZipLayout`] is computed before anything is written. [`ZipSink`] then takes the data of stored
//! members at their final positions; [`DeflatedZipSink`] takes the same positions, in order, and
//! writes the members deflated.
//!
//! **Why no package.** `zip` and `rawzip` write members one after the other. Here several threads write the members'
//! data at their final positions, the CRC of a member is combined from the CRCs of its pieces, and data begin at
//! multiples of 64 bytes.

use std::ops::Range;
use std::sync::Arc;

use super::{Draft, SinkError, SinkResult, WriteOrder};

mod deflated;
mod stored;

pub use deflated::DeflatedZipSink;
pub(super) use stored::MemberCrcs;
pub use stored::ZipSink;

/// The offsets of everything in an archive.
#[derive(Clone, Debug)]
pub struct ZipLayout {
    members: Vec<MemberLayout>,
    /// The names of the members, one after the other.
    names: String,
    /// Whether each member's CRC follows its data.
    forward: bool,
    /// The offset of the next member; at last, of the directory.
    end: u64,
}

/// The facts of a member that its layout cannot be computed without.
#[derive(Clone, Debug)]
struct MemberLayout {
    /// The offset of the member's local header.
    start: u64,
    /// The end of the member's name in `names`.
    name_end: usize,
    /// The member's first bytes: the header of an array, which many members may share.
    head: Arc<[u8]>,
}

struct ZipMember<'a> {
    name: &'a str,
    head: &'a [u8],
    /// The offset of the member's local header.
    start: u64,
    /// The range of the member's data, after `head`.
    data: Range<u64>,
}

const ALIGN: u64 = 64;

impl ZipLayout {
    /// An empty archive with room for `count` members; `forward` for a sequential output.
    pub fn new(count: usize, forward: bool) -> ZipLayout {
        let members = Vec::with_capacity(count);
        ZipLayout { members, names: String::new(), forward, end: 0 }
    }

    /// Add a member after the others: its first bytes `head`, and `data_len` bytes of data after them. `None`, as it
    /// cannot be written, if the archive would take 2^63 bytes or more, or the name is too long for zip (65535
    /// bytes).
    #[must_use]
    pub fn push(&mut self, name: &str, head: &Arc<[u8]>, data_len: u64) -> Option<()> {
        u16::try_from(name.len()).ok()?;
        let start = self.end;
        let data = data_start(start, name, head)?;
        let end = data.checked_add(data_len)?.checked_add(self.descriptor())?;
        self.names.push_str(name);
        let name_end = self.names.len();
        self.members.push(MemberLayout { start, name_end, head: Arc::clone(head) });
        self.end = end;
        let len = end.checked_add(self.directory_len())?;
        i64::try_from(len).ok().map(|_| ())
    }

    /// The bytes of the whole archive.
    pub fn bytes(&self) -> u64 {
        self.end + self.directory_len()
    }

    /// The offset of each member's data in the archive, in bytes.
    pub fn data(&self) -> impl Iterator<Item = u64> {
        (0..self.count()).map(|number| self.member(number).data.start)
    }

    fn directory_len(&self) -> u64 {
        self.members.len() as u64 * ENTRY + self.names.len() as u64 + ENDS
    }

    /// The bytes after the data of each member.
    fn descriptor(&self) -> u64 {
        if self.forward { DESCRIPTOR } else { 0 }
    }

    fn count(&self) -> usize {
        self.members.len()
    }

    /// The header fields of a member that are known before its bytes.
    fn header(&self, number: usize, method: Method) -> MemberHeader<'_> {
        let member = self.member(number);
        let name = member.name;
        let size = member.len();
        let start = member.start;
        MemberHeader { name, method, forward: self.forward, crc: 0, size, stored: size, start }
    }

    /// Refuse an archive whose bytes come in another order than the sink takes them.
    fn check_order(&self, inner: &dyn Draft) -> SinkResult<()> {
        match inner.order() {
            WriteOrder::Ascending if !self.forward => {
                Err(SinkError::OutOfOrder { expected: 0, offset: self.bytes() })
            }
            _ => Ok(()),
        }
    }

    fn member(&self, number: usize) -> ZipMember<'_> {
        let MemberLayout { start, name_end, ref head } = self.members[number];
        let name_start = number.checked_sub(1).map_or(0, |before| self.members[before].name_end);
        let name = &self.names[name_start..name_end];
        let next = self.members.get(number + 1).map_or(self.end, |next| next.start);
        // computed without an overflow when the member was added
        let data = data_start(start, name, head).unwrap_or(next);
        ZipMember { name, head, start, data: data..next - self.descriptor() }
    }

    /// The number of the last member whose data begins at or before a position.
    fn find(&self, position: u64) -> Option<usize> {
        let begun = self.members.partition_point(|placed| placed.start <= position);
        let last = begun.checked_sub(1)?;
        if self.member(last).data.start <= position { Some(last) } else { last.checked_sub(1) }
    }
}

/// The offset of a member's data, for a local header at `start`.
fn data_start(start: u64, name: &str, head: &[u8]) -> Option<u64> {
    let head_at = start.checked_add(LOCAL + name.len() as u64)?;
    head_at.checked_next_multiple_of(ALIGN)?.checked_add(head.len() as u64)
}

impl ZipMember<'_> {
    fn data_len(&self) -> u64 {
        self.data.end - self.data.start
    }

    fn len(&self) -> u64 {
        self.head.len() as u64 + self.data_len()
    }
}

#[derive(Clone, Debug)]
pub(super) struct MemberHeader<'a> {
    /// The member's name, of less than 65536 bytes.
    pub(super) name: &'a str,
    pub(super) method: Method,
    /// Whether a data descriptor with CRC and sizes follows the member's bytes.
    pub(super) forward: bool,
    /// The CRC-32 of the member's bytes.
    pub(super) crc: u32,
    /// The member's length in bytes.
    pub(super) size: u64,
    /// The member's length in the archive, in bytes.
    pub(super) stored: u64,
    /// The offset of the member's local header.
    pub(super) start: u64,
}

/// The compression methods for writing, with zip's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    Stored = 0,
    Deflated = 8,
}

/// The bytes of a local header without name and padding: 30, 20 for sizes in 64 bits, 4 before padding.
pub(super) const LOCAL: u64 = 30 + 20 + 4;
pub(super) const DESCRIPTOR: u64 = 24;
/// The bytes of a directory entry without its name: 46, and 28 for sizes and offset in 64 bits.
pub(super) const ENTRY: u64 = 46 + 28;
/// The bytes of the end record in 64 bits, its locator, and the end record.
pub(super) const ENDS: u64 = 56 + 20 + 22;
/// 1980-01-01, the first date of zip.
const DATE: u16 = 1 << 5 | 1;

impl MemberHeader<'_> {
    /// The local header, with `padding` zeros at its end.
    pub(super) fn local(&self, padding: u16) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(b"PK\x03\x04");
        self.describe(&mut bytes);
        put16(&mut bytes, 20 + 4 + padding);
        bytes.extend(self.name.as_bytes());
        // sizes in 64 bits: the uncompressed one, then the compressed one
        put16(&mut bytes, 1);
        put16(&mut bytes, 16);
        put64(&mut bytes, self.size);
        put64(&mut bytes, self.stored);
        // padding, under a field id that readers skip
        put16(&mut bytes, 0xa11e);
        put16(&mut bytes, padding);
        bytes.resize(bytes.len() + usize::from(padding), 0);
        bytes
    }

    /// The data descriptor; empty unless `forward`.
    pub(super) fn descriptor(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        if self.forward {
            bytes.extend(b"PK\x07\x08");
            put32(&mut bytes, self.crc);
            put64(&mut bytes, self.stored);
            put64(&mut bytes, self.size);
        }
        bytes
    }

    fn entry(&self, bytes: &mut Vec<u8>) {
        bytes.extend(b"PK\x01\x02");
        put16(bytes, 3 << 8 | 45);
        self.describe(bytes);
        put16(bytes, 28);
        bytes.extend([0; 6]);
        put32(bytes, 0o100_644 << 16);
        put32(bytes, u32::MAX);
        bytes.extend(self.name.as_bytes());
        put16(bytes, 1);
        put16(bytes, 24);
        put64(bytes, self.size);
        put64(bytes, self.stored);
        put64(bytes, self.start);
    }

    /// The fields that a local header and an entry of the directory share, up to the name's length.
    fn describe(&self, bytes: &mut Vec<u8>) {
        let names_are_utf8 = if self.name.is_ascii() { 0 } else { 1 << 11 };
        let crc_follows = if self.forward { 1 << 3 } else { 0 };
        put16(bytes, 45);
        put16(bytes, names_are_utf8 | crc_follows);
        put16(bytes, self.method as u16);
        put16(bytes, 0);
        put16(bytes, DATE);
        put32(bytes, self.crc);
        put32(bytes, u32::MAX);
        put32(bytes, u32::MAX);
        put16(bytes, self.name.len() as u16);
    }
}

/// The bytes of a directory that are written at a time.
const PIECE: usize = 256 << 10;

/// A function that writes bytes at a position of an archive.
pub(super) type WriteAt<'a> = dyn Fn(u64, &[u8]) -> SinkResult<()> + 'a;

/// Write the central directory, which begins at byte `start` of the archive, with its end records.
pub(super) fn write_directory<'a>(
    write: &WriteAt<'_>,
    records: impl Iterator<Item = MemberHeader<'a>>,
    start: u64,
) -> SinkResult<()> {
    let mut bytes = Vec::new();
    let mut count = 0u64;
    let mut at = start;
    for record in records {
        record.entry(&mut bytes);
        count += 1;
        if bytes.len() >= PIECE {
            write(at, &bytes)?;
            at += bytes.len() as u64;
            bytes.clear();
        }
    }
    let size = at - start + bytes.len() as u64;
    bytes.extend(b"PK\x06\x06");
    put64(&mut bytes, 44);
    put16(&mut bytes, 3 << 8 | 45);
    put16(&mut bytes, 45);
    put64(&mut bytes, 0);
    for value in [count, count, size, start] {
        put64(&mut bytes, value);
    }
    bytes.extend(b"PK\x06\x07");
    put32(&mut bytes, 0);
    put64(&mut bytes, start + size);
    put32(&mut bytes, 1);
    bytes.extend(b"PK\x05\x06");
    bytes.extend([0; 4]);
    for value in [count, count] {
        put16(&mut bytes, value.min(0xffff) as u16);
    }
    for value in [size, start] {
        put32(&mut bytes, value.min(0xffff_ffff) as u32);
    }
    put16(&mut bytes, 0);
    write(at, &bytes)
}

fn put16(bytes: &mut Vec<u8>, value: u16) {
    bytes.extend(value.to_le_bytes());
}

fn put32(bytes: &mut Vec<u8>, value: u32) {
    bytes.extend(value.to_le_bytes());
}

fn put64(bytes: &mut Vec<u8>, value: u64) {
    bytes.extend(value.to_le_bytes());
}
