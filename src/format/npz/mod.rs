//! NumPy's `.npz`: a zip archive of `.npy` files, one a tensor.
//!
//! ```text
//! local header, a.npy │ local header, b.npy │ .. │ central directory │ its end
//! ```
//!
//! The members are listed in the central directory at the end of the archive. Only the part of zip
//! that NumPy writes and reads is supported (APPNOTE.TXT 6.3.10, with zip64), and every offset and
//! size is checked against the length of the file. Stored members are read in place, deflated ones
//! must be inflated first.
//!
//! **Why no package.** `zip` 9 (by its source) wants `Seek`, which a map
//! shared by threads has not, and keeps entries in a map by name, where a second member of one
//! name replaces the first. `rawzip` 0.5 reads lazily, and a version of `npz::members` on top of
//! it took 100 lines instead of 190. Both were run on 29,000 archives (each kind of lie once, and
//! random changes to those). `rawzip` never panicked, but accepted 1,180 archives that are refused
//! here: those that say they are one of several disks, those whose directory is longer or shorter
//! than the end record says, and those with bytes before the first member, which it skips. It has no
//! accessor for the disk numbers, the directory's size or the skipped bytes, so a caller cannot add
//! these checks. It also refused 220 good archives, because it takes the last `PK\5\6` for the end record
//! even inside a comment. Encrypted members, methods, names, local headers, overlaps and
//! duplicates are the caller's checks either way.

use std::collections::HashSet;
use std::io;
use std::io::Read;
use std::ops::Range;

use super::error::FormatError;
use super::header::{first_repeated, read_more};
use crate::source::{Reader, Source};

mod error;
mod sums;

pub use error::{MemberFault, NpzError};
pub use sums::{MemberSums, mark, sums};

/// Whether a file that begins with these bytes is a zip archive.
pub(crate) fn begins(first: &[u8]) -> bool {
    first.starts_with(b"PK\x03\x04") || first.starts_with(b"PK\x05\x06")
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member<'a> {
    /// The name of the member, with `.npy`.
    pub name: &'a str,
    /// The range of its (possibly compressed) bytes in the archive.
    pub data: Range<u64>,
    pub len: u64,
    pub crc: u32,
    pub deflated: bool,
    /// Whether its local header has another CRC-32 than the directory.
    pub two_sums: bool,
    /// Why they cannot be read, while those of others can.
    pub refused: Option<&'a MemberFault>,
}

/// The members of an archive, each of which takes its name and some 50 bytes.
#[derive(Default)]
pub struct Members {
    /// Their names, one after the other.
    names: String,
    places: Vec<MemberPlace>,
}

/// A member without its name.
struct MemberPlace {
    /// Where its name begins in that of all.
    name: usize,
    name_len: u32,
    deflated: bool,
    two_sums: bool,
    refused: Option<Box<MemberFault>>,
    crc: u32,
    len: u64,
    /// Where its local header begins, and the range of its bytes; an empty one where the header is not there.
    offset: u64,
    data: Range<u64>,
}

/// The members of an archive, in the order of their bytes. One that contradicts itself is among them, with the
/// reason why it cannot be read.
pub fn members(archive: &dyn Source) -> Result<Members, FormatError> {
    let directory = find_directory(archive)?;
    let mut all = Members::default();
    directory.entries(archive, |_, mut entry| {
        // what macOS keeps beside files of the same names
        if entry.name.starts_with("__MACOSX/") {
            return Ok(());
        }
        let (data, crc) = match entry.locate(archive, directory.range.start) {
            Ok(LocalHeader { data, crc }) => (data, crc),
            Err(FormatError::Member(fault)) => {
                entry.refused.get_or_insert(fault);
                (entry.offset..entry.offset, None)
            }
            Err(error) => return Err(error),
        };
        all.push(&entry, data, crc.is_some_and(|crc| crc != entry.crc));
        Ok(())
    })?;
    all.sort();
    Ok(all)
}

fn is_array(name: &str) -> bool {
    name.ends_with(".npy")
}

impl MemberPlace {
    fn member<'a>(&'a self, names: &'a str) -> Member<'a> {
        let MemberPlace { ref data, len, crc, deflated, two_sums, ref refused, .. } = *self;
        let name = self.name(names);
        let refused = refused.as_deref();
        Member { name, data: data.clone(), len, crc, deflated, two_sums, refused }
    }

    fn name<'a>(&self, names: &'a str) -> &'a str {
        &names[self.name..self.name + self.name_len as usize]
    }
}

impl Members {
    pub fn len(&self) -> usize {
        self.places.len()
    }

    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Whether one of them is an array.
    pub fn has_arrays(&self) -> bool {
        self.iter().any(|member| is_array(member.name))
    }

    pub fn keep_arrays(&mut self) {
        let Members { names, places, .. } = self;
        places.retain(|place| is_array(place.name(names)));
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = Member<'_>> + Clone {
        self.places.iter().map(|place| place.member(&self.names))
    }

    /// The member of this number; `None` if there are not that many.
    pub fn get(&self, number: usize) -> Option<Member<'_>> {
        self.places.get(number).map(|place| place.member(&self.names))
    }

    fn push(&mut self, entry: &DirectoryEntry, data: Range<u64>, two_sums: bool) {
        let DirectoryEntry { ref name, method, refused, crc, size: len, offset, .. } = *entry;
        // the directory says the length in 16 bits, and what is not UTF-8 is three times as long
        let name_len = name.len() as u32;
        let place = MemberPlace {
            name: self.names.len(),
            name_len,
            deflated: method == DEFLATED,
            two_sums,
            refused: refused.map(Box::new),
            crc,
            len,
            offset,
            data,
        };
        self.places.push(place);
        self.names.push_str(name);
    }

    /// Put them in the order of their bytes. Of several with one name the last in the directory counts, as
    /// for np.load; those that share bytes cannot be read.
    fn sort(&mut self) {
        let Members { names, places, .. } = self;
        if first_repeated(places.iter().map(|place| place.name(names))).is_some() {
            let mut seen = HashSet::new();
            places.reverse();
            places.retain(|place| seen.insert(place.name(names)));
        }
        places.sort_unstable_by_key(|place| (place.offset, place.data.end));
        let mut longest: Option<usize> = None;
        for at in 0..places.len() {
            // without a local header it has no place
            if places[at].data.start == places[at].offset {
                continue;
            }
            match longest {
                Some(before) if places[before].data.end > places[at].offset => {
                    for both in [before, at] {
                        places[both].refused.get_or_insert(Box::new(MemberFault::Overlap));
                    }
                    if places[at].data.end > places[before].data.end {
                        longest = Some(at);
                    }
                }
                _ => longest = Some(at),
            }
        }
    }
}

impl PartialEq for Members {
    fn eq(&self, other: &Members) -> bool {
        self.iter().eq(other.iter())
    }
}

impl std::fmt::Debug for Members {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Refuse the name of a member that would be extracted outside of the target folder.
pub fn check_name(name: &str) -> Result<(), FormatError> {
    if leads_out(name) { Err(of_member(name, MemberFault::Path)) } else { Ok(()) }
}

fn leads_out(name: &str) -> bool {
    let climbs = name.split(['/', '\\']).any(|part| part == "..");
    climbs || name.starts_with(['/', '\\']) || name.contains('\0')
}

struct Directory {
    range: Range<u64>,
    count: u64,
}

impl Directory {
    /// Read its entries, each with its position.
    fn entries(
        &self,
        archive: &dyn Source,
        mut take: impl FnMut(u64, DirectoryEntry) -> Result<(), FormatError>,
    ) -> Result<(), FormatError> {
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

const END: u64 = 22;
const LOCATOR: u64 = 20;
const END64: u64 = 56;
const LOCAL: u64 = 30;

/// The number of the compression method that is not 0, stored.
const DEFLATED: u16 = 8;

/// Flags of a member: encrypted, strongly encrypted or with a masked header; sizes and CRC behind the data;
/// a patch to another file; a name in UTF-8.
const ENCRYPTED: u16 = 1 | 1 << 6 | 1 << 13;
const DESCRIPTOR: u16 = 1 << 3;
const PATCH: u16 = 1 << 5;
const UTF8: u16 = 1 << 11;

fn find_directory(archive: &dyn Source) -> Result<Directory, FormatError> {
    let len = archive.len();
    let tail_start = len.saturating_sub(END + 0xffff);
    let tail = read_at(archive, tail_start, len - tail_start)?;
    // a comment may follow it, so it is searched for backwards
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

/// What the local header of a member says of it.
struct LocalHeader {
    data: Range<u64>,
    /// Its CRC-32; `None` where a descriptor behind the data has it.
    crc: Option<u32>,
}

struct DirectoryEntry {
    name: String,
    flags: u16,
    method: u16,
    refused: Option<MemberFault>,
    crc: u32,
    /// Compressed size in bytes.
    stored: u64,
    size: u64,
    /// Where its local header is.
    offset: u64,
}

impl DirectoryEntry {
    /// An entry by the fields from its flags on, which local headers have too.
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

    fn read(reader: &mut dyn Read) -> Result<DirectoryEntry, FormatError> {
        let mut more = |len: u64| {
            let mut bytes = Vec::new();
            read_more(reader, &mut bytes, len).map_err(|error| match error {
                FormatError::HeaderCutShort { .. } => damaged("its central directory is too short"),
                other => other,
            })?;
            Ok::<_, FormatError>(bytes)
        };
        let fixed = more(46)?;
        if !fixed.starts_with(b"PK\x01\x02") {
            return Err(damaged("an entry of its central directory is none"));
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

    /// Replace the fields that are 0xffffffff by those of the zip64 extra field.
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

    /// The range of its bytes, which must end at or before `end`, by its local header, which must say
    /// of the member what the directory says.
    fn locate(&self, archive: &dyn Source, end: u64) -> Result<LocalHeader, FormatError> {
        let misplaced = || FormatError::from(MemberFault::LocalHeader);
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

    /// Compare it with the fixed fields of its local header, and the name and extra fields there; the
    /// CRC-32 there, where it is known.
    fn compare(&self, local: &[u8], name: &[u8], extra: &[u8]) -> Result<Option<u32>, MemberFault> {
        let mut there = DirectoryEntry::of(String::new(), &local[6..], 0);
        let flags = there.flags;
        if let (None, Some(fault)) = (self.refused, MemberFault::of(flags, self.method)) {
            return Err(fault);
        }
        there.widen(extra)?;
        // the encoding of a name is no part of it where all characters are the same in both
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

    fn fault(&self, fault: MemberFault) -> FormatError {
        of_member(&self.name, fault)
    }
}

impl Member<'_> {
    /// The error of bytes whose CRC-32 is not what the directory says.
    pub fn damaged(name: &str) -> FormatError {
        of_member(name, MemberFault::Crc)
    }

    /// Compare its size with that of the array in it (bytes, header included).
    pub fn check_array(&self, array: u64) -> Result<(), MemberFault> {
        let size = self.len;
        if array == size { Ok(()) } else { Err(MemberFault::Array { array, size }) }
    }

    /// The error of this member, if it cannot be read.
    pub fn refusal(&self) -> Option<NpzError> {
        Some(NpzError::Member { name: self.name.to_owned(), fault: *self.refused? })
    }
}

fn of_member(name: &str, fault: MemberFault) -> FormatError {
    NpzError::Member { name: name.to_owned(), fault }.into()
}

fn damaged(what: &'static str) -> FormatError {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::MemorySource;

    /// An archive of stored members, each a name and its data.
    fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut directory = Vec::new();
        for (name, data) in members {
            let offset = bytes.len() as u32;
            let mut shared = vec![20, 0, 0, 0, 0, 0, 0, 0, 0, 0];
            shared.extend(crc32fast::hash(data).to_le_bytes());
            shared.extend([data.len() as u32; 2].map(u32::to_le_bytes).concat());
            shared.extend([name.len() as u16, 0].map(u16::to_le_bytes).concat());
            bytes.extend([b"PK\x03\x04", shared.as_slice(), name.as_bytes(), data].concat());
            directory.extend([b"PK\x01\x02\x14\0", shared.as_slice(), &[0; 10]].concat());
            directory.extend(offset.to_le_bytes());
            directory.extend(name.as_bytes());
        }
        let start = bytes.len() as u32;
        let count = members.len() as u16;
        bytes.extend(&directory);
        bytes.extend([b"PK\x05\x06".as_slice(), &[0; 4]].concat());
        bytes.extend([count; 2].map(u16::to_le_bytes).concat());
        bytes.extend([directory.len() as u32, start].map(u32::to_le_bytes).concat());
        bytes.extend([0; 2]);
        bytes
    }

    fn read(bytes: Vec<u8>) -> Result<usize, String> {
        members(&MemorySource(bytes)).map(|members| members.len()).map_err(|e| e.to_string())
    }

    #[test]
    fn the_end_of_the_directory_must_agree_with_it() {
        let good = archive(&[("a.npy", b"x"), ("b.npy", b"yz")]);
        assert_eq!(read(good.clone()), Ok(2));
        let end = good.len() - END as usize;
        for (field, value, says) in [
            (4, 1, "several parts"),
            (6, 1, "several parts"),
            (10, 0, "more entries than its end says"),
            (10, 1, "more entries than its end says"),
            (10, 3, "too short"),
            (12, 51, "not where it is said to be"),
            (12, 103, "not where it is said to be"),
            (16, 0, "not where it is said to be"),
            (20, 1, "no end of a central directory"),
        ] {
            let mut lie = good.clone();
            lie[end + field] = value;
            let error = read(lie).unwrap_err();
            assert!(error.contains(says), "{field}: {error}");
        }
        let prefixed = [b"PK\x03\x04", good.as_slice()].concat();
        assert!(read(prefixed).unwrap_err().contains("not where it is said to be"));
    }

    /// The comment may hold what looks like an end of the directory.
    #[test]
    fn the_end_is_the_one_whose_comment_ends_the_file() {
        let mut bytes = archive(&[("a.npy", b"x")]);
        let len = bytes.len();
        let comment = [b"PK\x05\x06".as_slice(), &[0xff; 18]].concat();
        bytes[len - 2] = comment.len() as u8;
        assert_eq!(read([bytes, comment].concat()), Ok(1));
    }
}
