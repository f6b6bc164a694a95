//! The records of a zip archive (APPNOTE.TXT 6.3.10): local header, data descriptor (only in
//! sequential outputs), entry of the central directory, end of the directory. Sizes and offsets are
//! always written in 64 bits (zip64).

use crate::sink::{Sink, SinkError};

/// The fields of a member's headers.
#[derive(Clone, Debug)]
pub(super) struct MemberHeader<'a> {
    /// Its name, of less than 65536 bytes.
    pub(super) name: &'a str,
    /// Its compression method.
    pub(super) method: Method,
    /// Whether a data descriptor with CRC and sizes follows its bytes.
    pub(super) forward: bool,
    /// The CRC-32 of its bytes.
    pub(super) crc: u32,
    /// Its length in bytes.
    pub(super) size: u64,
    /// How many bytes it takes in the archive.
    pub(super) stored: u64,
    /// Where its local header begins, in bytes.
    pub(super) start: u64,
}

/// The compression methods that are written, with zip's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    /// Not compressed.
    Stored = 0,
    /// Deflated.
    Deflated = 8,
}

/// Bytes of a local header without name and padding: 30, 20 of sizes in 64 bits, 4 before padding.
pub(super) const LOCAL: u64 = 30 + 20 + 4;
/// Bytes of a descriptor.
pub(super) const DESCRIPTOR: u64 = 24;
/// Bytes of an entry of the directory without its name: 46, and 28 of sizes and place in 64 bits.
pub(super) const ENTRY: u64 = 46 + 28;
/// Bytes of the end in 64 bits, its locator, and the end.
pub(super) const ENDS: u64 = 56 + 20 + 22;
/// 1980-01-01, the first date of zip.
const DATE: u16 = 1 << 5 | 1;

impl MemberHeader<'_> {
    /// The local header, with as many zeros as `padding` says at its end.
    pub(super) fn local(&self, padding: u16) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(b"PK\x03\x04");
        self.describe(&mut bytes);
        put16(&mut bytes, 20 + 4 + padding);
        bytes.extend(self.name.as_bytes());
        // sizes in 64 bits: the uncompressed, then the compressed one
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

/// How much of a directory is written at a time, in bytes.
const PIECE: usize = 256 << 10;

/// Write the central directory, which begins at byte `start` of the archive, with its end records.
pub(super) fn write_directory<'a>(
    archive: &dyn Sink,
    records: impl Iterator<Item = MemberHeader<'a>>,
    start: u64,
) -> Result<(), SinkError> {
    let (mut bytes, mut count, mut at) = (Vec::new(), 0u64, start);
    for record in records {
        record.entry(&mut bytes);
        count += 1;
        if bytes.len() >= PIECE {
            archive.write_at(at, &bytes)?;
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
    archive.write_at(at, &bytes)
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
