//! The central directory at the end of an archive: its entries, their local headers, and the two offsets of a
//! member's CRC-32.
//!
//! ```text
//! local header .. CRC │ data │ (descriptor: CRC) │ ..   central directory: .. entry .. CRC ..
//! ```

use std::io;
use std::io::Read;
use std::ops::Range;

use super::{MemberFault, MemberRecord, Members, NpzError, leads_out, members, of_member};
use crate::error::Cause;
use crate::formats::FormatError;
use crate::formats::header::read_more;
use crate::source::{Reader, Source};

pub(super) struct Directory {
    pub(super) range: Range<u64>,
    count: u64,
}

impl Directory {
    /// Read the entries of the directory, each with its position.
    pub(super) fn entries(
        &self,
        archive: &dyn Source,
        mut take: impl FnMut(u64, DirectoryEntry) -> Result<(), Cause>,
    ) -> Result<(), Cause> {
        let Range { start, end } = self.range;
        let mut reader = Reader::at(archive, start).take(end - start);
        for _ in 0..self.count {
            let at = end - reader.limit();
            take(at, DirectoryEntry::read(&mut reader)?)?;
        }
        match reader.limit() {
            0 => Ok(()),
            _ => Err(damaged("its central directory has more entries than its end says")),
        }
    }
}

pub(super) const END: u64 = 22;
const LOCATOR: u64 = 20;
const END64: u64 = 56;
const LOCAL: u64 = 30;

/// The number of the compression method deflate; stored is 0.
pub(super) const DEFLATED: u16 = 8;

/// Flags of a member: encrypted, strongly encrypted or with a masked header; sizes and CRC after the data; a patch
/// to another file; a name in UTF-8.
const ENCRYPTED: u16 = 1 | 1 << 6 | 1 << 13;
const DESCRIPTOR: u16 = 1 << 3;
const PATCH: u16 = 1 << 5;
const UTF8: u16 = 1 << 11;

pub(super) fn find_directory(archive: &dyn Source) -> Result<Directory, Cause> {
    let len = archive.len();
    let tail_start = len.saturating_sub(END + 0xffff);
    let tail = read_at(archive, tail_start, len - tail_start)?;
    // a comment may follow, so the search goes backwards
    let at = (0..=tail.len().saturating_sub(END as usize)).rev().find(|&at| {
        let end = &tail[at..];
        end.starts_with(b"PK\x05\x06")
            && end.len() >= END as usize
            && usize::from(u16_at(end, 20)) == end.len() - END as usize
    });
    let Some(at) = at else { return Err(NpzError::NoEnd.into()) };
    let end = &tail[at..];
    let end_at = tail_start + at as u64;
    let mut count = u64::from(u16_at(end, 10));
    let mut size = u64::from(u32_at(end, 12));
    let mut start = u64::from(u32_at(end, 16));
    let mut parts = [u32::from(u16_at(end, 4)), u32::from(u16_at(end, 6))];
    let mut after = end_at;
    if let Some(locator_at) = end_at.checked_sub(LOCATOR) {
        let locator = read_at(archive, locator_at, LOCATOR)?;
        if locator.starts_with(b"PK\x06\x07") {
            after = u64_at(&locator, 8);
            let inside = after.checked_add(END64).is_some_and(|end| end <= locator_at);
            let end = if inside { read_at(archive, after, END64)? } else { Vec::new() };
            if !end.starts_with(b"PK\x06\x06") {
                return Err(damaged(
                    "the end of its zip64 directory is not where it is said to be",
                ));
            }
            parts = [u32_at(&end, 16), u32_at(&end, 20)];
            count = u64_at(&end, 32);
            size = u64_at(&end, 40);
            start = u64_at(&end, 48);
        }
    }
    if parts != [0, 0] {
        return Err(NpzError::MultiDisk.into());
    }
    match start.checked_add(size) {
        Some(end) if end == after => Ok(Directory { range: start..end, count }),
        _ => Err(damaged("the central directory is not where it is said to be")),
    }
}

pub(super) struct LocalHeader {
    pub(super) data: Range<u64>,
    /// The CRC-32; `None` where a descriptor after the data has it.
    pub(super) crc: Option<u32>,
}

pub(super) struct DirectoryEntry {
    pub(super) name: String,
    flags: u16,
    pub(super) method: u16,
    pub(super) refused: Option<MemberFault>,
    pub(super) crc: u32,
    /// The compressed size in bytes.
    stored: u64,
    pub(super) size: u64,
    pub(super) offset: u64,
}

impl MemberFault {
    /// The fault of a member with these flags and this compression method, if any.
    fn of(flags: u16, method: u16) -> Option<MemberFault> {
        match (flags, method) {
            _ if flags & ENCRYPTED != 0 => Some(MemberFault::Encrypted),
            _ if flags & PATCH != 0 => Some(MemberFault::Patch),
            (_, 0 | DEFLATED) => None,
            (_, number) => Some(MemberFault::Method { number }),
        }
    }
}

impl DirectoryEntry {
    /// An entry from its fields from the flags on, which local headers have too.
    fn of(name: String, fields: &[u8], offset: u32) -> DirectoryEntry {
        let flags = u16_at(fields, 0);
        let method = u16_at(fields, 2);
        DirectoryEntry {
            name,
            flags,
            method,
            refused: MemberFault::of(flags, method),
            crc: u32_at(fields, 8),
            stored: u32_at(fields, 12).into(),
            size: u32_at(fields, 16).into(),
            offset: offset.into(),
        }
    }

    fn read(reader: &mut dyn Read) -> Result<DirectoryEntry, Cause> {
        let mut more = |len: u64| {
            let mut bytes = Vec::new();
            read_more(reader, &mut bytes, len).map_err(|cause| match cause.downcast_ref() {
                Some(FormatError::HeaderCutShort { .. }) => {
                    damaged("its central directory is too short")
                }
                _ => cause,
            })?;
            Ok::<_, Cause>(bytes)
        };
        let fixed = more(46)?;
        if !fixed.starts_with(b"PK\x01\x02") {
            return Err(damaged("an entry of its central directory is damaged"));
        }
        let name = more(u16_at(&fixed, 28).into())?;
        let extra = more(u16_at(&fixed, 30).into())?;
        more(u16_at(&fixed, 32).into())?;
        let (name, is_text) = match String::from_utf8(name) {
            Ok(name) => (name, true),
            Err(error) => (String::from_utf8_lossy(error.as_bytes()).into_owned(), false),
        };
        let mut entry = DirectoryEntry::of(name, &fixed[8..], u32_at(&fixed, 42));
        let widened = entry.widen(&extra);
        let stored = entry.stored;
        let size = entry.size;
        let fault = match widened {
            _ if !is_text => Some(MemberFault::Name),
            _ if leads_out(&entry.name) => Some(MemberFault::Path),
            Err(fault) => Some(fault),
            _ if entry.method == 0 && stored != size => Some(MemberFault::Size { stored, size }),
            Ok(()) => None,
        };
        entry.refused = entry.refused.or(fault);
        Ok(entry)
    }

    /// Replace fields of 0xffffffff by the fields of the zip64 extra field.
    fn widen(&mut self, mut extra: &[u8]) -> Result<(), MemberFault> {
        const FULL: u64 = u32::MAX as u64;
        while let Some((head, rest)) = extra.split_at_checked(4) {
            let len = usize::from(u16_at(head, 2));
            let Some((mut field, rest)) = rest.split_at_checked(len) else { break };
            extra = rest;
            if u16_at(head, 0) != 1 {
                continue;
            }
            for value in [&mut self.size, &mut self.stored, &mut self.offset] {
                if *value == FULL {
                    let Some((wide, rest)) = field.split_at_checked(8) else {
                        return Err(MemberFault::Zip64);
                    };
                    (*value, field) = (u64_at(wide, 0), rest);
                }
            }
        }
        Ok(())
    }

    /// Find the range of the member's bytes by its local header, which must agree with the directory. The range
    /// must end at or before `end`.
    pub(super) fn locate(&self, archive: &dyn Source, end: u64) -> Result<LocalHeader, Cause> {
        let misplaced = || Cause::from(MemberFault::LocalHeader);
        let after = self.offset.checked_add(LOCAL).filter(|&after| after <= end);
        let after = after.ok_or_else(misplaced)?;
        let local = read_at(archive, self.offset, LOCAL)?;
        let name_len = u64::from(u16_at(&local, 26));
        let extra_len = u64::from(u16_at(&local, 28));
        let start = after + name_len + extra_len;
        let stop = start.checked_add(self.stored).filter(|&stop| stop <= end);
        let stop = stop.ok_or_else(misplaced)?;
        if !local.starts_with(b"PK\x03\x04") {
            return Err(misplaced());
        }
        let names = read_at(archive, after, name_len + extra_len)?;
        let (name, extra) = names.split_at(name_len as usize);
        let crc = self.compare(&local, name, extra)?;
        Ok(LocalHeader { data: start..stop, crc })
    }

    /// Compare the entry with the fixed fields, the name and the extra fields of its local header. Returns the
    /// CRC-32 there, where it is known.
    fn compare(&self, local: &[u8], name: &[u8], extra: &[u8]) -> Result<Option<u32>, MemberFault> {
        let mut there = DirectoryEntry::of(String::new(), &local[6..], 0);
        let flags = there.flags;
        if let (None, Some(fault)) = (self.refused, MemberFault::of(flags, self.method)) {
            return Err(fault);
        }
        there.widen(extra)?;
        // the encoding of a name does not matter where all characters are equal in both
        let same_encoding = self.name.is_ascii() || (flags ^ self.flags) & UTF8 == 0;
        // where a descriptor follows the data, these were not known yet
        let known = flags & DESCRIPTOR == 0;
        let other = match &there {
            _ if name != self.name.as_bytes() || !same_encoding => "name",
            there if there.method != self.method => "compression method",
            there if known && (there.stored, there.size) != (self.stored, self.size) => "size",
            there => return Ok(known.then_some(there.crc)),
        };
        Err(MemberFault::OtherHeader(other))
    }

    fn fault(&self, fault: MemberFault) -> Cause {
        of_member(&self.name, fault)
    }
}

/// The offsets of a member's CRC-32 in an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberSums {
    /// The range of the member's bytes in the archive.
    pub data: Range<u64>,
    /// The positions of the CRC-32s, each of 4 bytes, little-endian.
    pub offsets: Vec<u64>,
}

/// The offsets of the CRC-32s of the members that hold these positions of the archive, which ascend.
pub fn sums(archive: &dyn Source, positions: &[u64]) -> Result<Vec<MemberSums>, Cause> {
    let Members { mut records, .. } = members(archive)?;
    // members that cannot be read may claim any bytes
    records.retain(|record| record.refused.is_none());
    let directory = find_directory(archive)?;
    let mut found = Vec::new();
    directory.entries(archive, |at, entry| {
        let number = records.partition_point(|record| record.offset < entry.offset);
        let Some(MemberRecord { data, offset, .. }) = records.get(number) else { return Ok(()) };
        let first = positions.partition_point(|&position| position < data.start);
        let is_asked = positions.get(first).is_some_and(|position| data.contains(position));
        if !is_asked || *offset != entry.offset {
            return Ok(());
        }
        let next = records.get(number + 1).map(|next| next.offset);
        let mut offsets = entry.local_sums(archive, *offset, data, next, &directory)?;
        offsets.push(at + 16);
        found.push(MemberSums { data: data.clone(), offsets });
        Ok(())
    })?;
    Ok(found)
}

impl DirectoryEntry {
    /// The positions of the CRC-32s around the data of a member; `next` is the start of the next member, or of the
    /// directory.
    fn local_sums(
        &self,
        archive: &dyn Source,
        offset: u64,
        data: &Range<u64>,
        next: Option<u64>,
        directory: &Directory,
    ) -> Result<Vec<u64>, Cause> {
        let local = read_at(archive, offset, LOCAL)?;
        let mut offsets = Vec::new();
        let has_descriptor = u16_at(&local, 6) & DESCRIPTOR != 0;
        // 0 where the CRC was not known yet
        if !has_descriptor || u32_at(&local, 14) != 0 {
            offsets.push(offset + 14);
        }
        if has_descriptor {
            let room = next.unwrap_or(directory.range.start).saturating_sub(data.end);
            let behind = read_at(archive, data.end, room.min(24))?;
            let at = self.descriptor_sum(&behind);
            offsets.push(data.end + at.ok_or_else(|| self.fault(MemberFault::Descriptor))?);
        }
        Ok(offsets)
    }

    /// The offset of the CRC-32 in a descriptor, found by the two sizes after it, of 32 or 64 bits; a signature may
    /// precede it.
    fn descriptor_sum(&self, behind: &[u8]) -> Option<u64> {
        let sizes = |at: usize| {
            let short = behind.len() >= at + 8
                && u64::from(u32_at(behind, at)) == self.stored
                && u64::from(u32_at(behind, at + 4)) == self.size;
            let long = behind.len() >= at + 16
                && u64_at(behind, at) == self.stored
                && u64_at(behind, at + 8) == self.size;
            short || long
        };
        match behind.starts_with(b"PK\x07\x08") {
            true if sizes(8) => Some(4),
            _ => sizes(4).then_some(0),
        }
    }
}

fn damaged(what: &'static str) -> Cause {
    NpzError::Damaged(what).into()
}

fn read_at(archive: &dyn Source, start: u64, len: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    Reader::at(archive, start).take(len).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == len { Ok(bytes) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from(u16_at(bytes, at)) | u32::from(u16_at(bytes, at + 2)) << 16
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}
