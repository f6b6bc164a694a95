//! NumPy's `.npz`: a zip archive of `.npy` files, one for each tensor.
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
//! **Why no package.** `zip` 9 (by its source) requires `Seek`, which a map shared by threads lacks. It has entries in a
//! map by name, where a second member of one name replaces the first. `rawzip` 0.5 reads lazily,
//! and a version of `npz::members` on top of it took 100 lines instead of 190. Both were run on 29,000
//! archives (each kind of false field once, and random changes). `rawzip` never panicked, but accepted 1,180
//! archives that are refused here: archives that claim to be one of several disks, archives whose directory is
//! longer or shorter than the end record says, and archives with bytes before the first member, which it
//! skips. It has no accessor for the disk numbers, the directory's size or the skipped bytes, so a caller
//! cannot add these checks. It also refused 220 good archives, because it takes the last `PK\5\6` for the end
//! record even inside a comment. Encrypted members, methods, names, local headers, overlaps and duplicates
//! remain the caller's checks.

use std::collections::HashSet;
use std::ops::Range;

use directory::{DEFLATED, DirectoryEntry, LocalHeader, find_directory};

use crate::error::{Cause, ErrorKind, Fault};
use crate::source::Source;
use crate::tensor::{brief, first_repeated};

mod directory;
mod open;
mod output;

pub(crate) use open::FORMAT;
pub(crate) use output::OUTPUT;

pub use directory::{MemberSums, sums};

/// Whether a file that begins with these bytes is a zip archive.
pub(crate) fn begins(first: &[u8]) -> bool {
    first.starts_with(b"PK\x03\x04") || first.starts_with(b"PK\x05\x06")
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member<'a> {
    /// The name of the member, with `.npy`.
    pub name: &'a str,
    /// The range of the member's (possibly compressed) bytes in the archive.
    pub data: Range<u64>,
    pub len: u64,
    pub crc: u32,
    pub deflated: bool,
    /// Whether the local header and the directory have different CRC-32s.
    pub two_sums: bool,
    /// Why the member cannot be read.
    pub refused: Option<&'a MemberFault>,
}

/// The members of an archive, each of which takes its name and some 50 bytes.
#[derive(Default)]
pub struct Members {
    /// The names of the members, one after the other.
    names: String,
    records: Vec<MemberRecord>,
}

/// A member without its name.
struct MemberRecord {
    /// The offset of the member's name in `names`.
    name: usize,
    name_len: u32,
    deflated: bool,
    two_sums: bool,
    refused: Option<Box<MemberFault>>,
    crc: u32,
    len: u64,
    /// The offset of the local header, and the range of the member's bytes; an empty range where the header is
    /// missing.
    offset: u64,
    data: Range<u64>,
}

/// The members of an archive, in the order of their bytes. A member that contradicts itself is included, with
/// the reason why it cannot be read.
pub fn members(archive: &dyn Source) -> Result<Members, Cause> {
    let directory = find_directory(archive)?;
    let mut all = Members::default();
    directory.entries(archive, |_, mut entry| {
        // macOS adds such members beside files of the same names
        if entry.name.starts_with("__MACOSX/") {
            return Ok(());
        }
        let (data, crc) = match entry.locate(archive, directory.range.start) {
            Ok(LocalHeader { data, crc }) => (data, crc),
            Err(cause) => {
                entry.refused.get_or_insert(cause.downcast()?);
                (entry.offset..entry.offset, None)
            }
        };
        all.push(&entry, data, crc.is_some_and(|crc| crc != entry.crc));
        Ok(())
    })?;
    all.sort();
    Ok(all)
}

/// Whether the name of a member marks it as an array.
pub(crate) fn is_array(name: &str) -> bool {
    name.ends_with(".npy")
}

impl MemberRecord {
    fn member<'a>(&'a self, names: &'a str) -> Member<'a> {
        let MemberRecord { ref data, len, crc, deflated, two_sums, ref refused, .. } = *self;
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
        self.records.len()
    }

    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    pub fn has_arrays(&self) -> bool {
        self.iter().any(|member| is_array(member.name))
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = Member<'_>> + Clone {
        self.records.iter().map(|record| record.member(&self.names))
    }

    /// Member `number`; `None` if there are fewer.
    pub fn get(&self, number: usize) -> Option<Member<'_>> {
        self.records.get(number).map(|record| record.member(&self.names))
    }

    fn push(&mut self, entry: &DirectoryEntry, data: Range<u64>, two_sums: bool) {
        let DirectoryEntry { ref name, method, refused, crc, size: len, offset, .. } = *entry;
        // the directory has lengths of 16 bits, and text that is not UTF-8 becomes three times as long
        let name_len = name.len() as u32;
        let record = MemberRecord {
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
        self.records.push(record);
        self.names.push_str(name);
    }

    /// Sort the members by their bytes. Of several with one name, the last in the directory counts, as for
    /// np.load; members that share bytes cannot be read.
    fn sort(&mut self) {
        let Members { names, records, .. } = self;
        if first_repeated(records.iter().map(|record| record.name(names))).is_some() {
            let mut seen = HashSet::new();
            records.reverse();
            records.retain(|record| seen.insert(record.name(names)));
        }
        records.sort_unstable_by_key(|record| (record.offset, record.data.end));
        let mut longest: Option<usize> = None;
        for at in 0..records.len() {
            // a member without a local header has no record of its bytes
            if records[at].data.start == records[at].offset {
                continue;
            }
            match longest {
                Some(before) if records[before].data.end > records[at].offset => {
                    for both in [before, at] {
                        records[both].refused.get_or_insert(Box::new(MemberFault::Overlap));
                    }
                    if records[at].data.end > records[before].data.end {
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

/// Refuse the name of a member that would be extracted outside the target folder.
pub fn check_name(name: &str) -> Result<(), Cause> {
    if leads_out(name) { Err(of_member(name, MemberFault::Path)) } else { Ok(()) }
}

fn leads_out(name: &str) -> bool {
    let climbs = name.split(['/', '\\']).any(|part| part == "..");
    climbs || name.starts_with(['/', '\\']) || name.contains('\0')
}

impl Member<'_> {
    /// The error for bytes whose CRC-32 differs from the directory's.
    pub fn damaged(name: &str) -> Cause {
        of_member(name, MemberFault::Crc)
    }

    /// Compare the member's size with the size of the array in it, in bytes, header included.
    pub fn check_array(&self, array: u64) -> Result<(), MemberFault> {
        let size = self.len;
        if array == size { Ok(()) } else { Err(MemberFault::Array { array, size }) }
    }

    /// The error of a member that cannot be read.
    pub fn refusal(&self) -> Option<NpzError> {
        Some(NpzError::Member { name: self.name.to_owned(), fault: *self.refused? })
    }
}

fn of_member(name: &str, fault: MemberFault) -> Cause {
    NpzError::Member { name: name.to_owned(), fault }.into()
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum NpzError {
    #[error("the archive is cut short or damaged: it has no end of a central directory")]
    NoEnd,
    #[error("archives of several files are not read")]
    MultiDisk,
    #[error("the archive is damaged: {0}")]
    Damaged(&'static str),
    #[error("member \"{}\": {fault}", brief(.name))]
    Member { name: String, fault: MemberFault },
}

impl Fault for NpzError {
    const OF: &'static str = "zip";

    fn kind(&self) -> ErrorKind {
        match self {
            NpzError::MultiDisk => ErrorKind::Unsupported,
            NpzError::Member { fault, .. } => fault.kind(),
            NpzError::NoEnd | NpzError::Damaged(_) => ErrorKind::Damaged,
        }
    }
}

/// Why a member of an archive cannot be read. Other members can.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemberFault {
    #[error("encrypted members are not read")]
    Encrypted,
    #[error("patches to other files are not read")]
    Patch,
    #[error("compression method {number}{name} is not read, only stored (0) and deflated (8)",
        name = method(*.number))]
    Method { number: u16 },
    #[error("its name is not UTF-8")]
    Name,
    #[error("the name leads out of the archive")]
    Path,
    #[error("its bytes overlap another member")]
    Overlap,
    #[error("its zip64 field is too short")]
    Zip64,
    #[error("its local header is not where the central directory says")]
    LocalHeader,
    #[error("its {0} differs between the local header and the central directory")]
    OtherHeader(&'static str),
    #[error("its bytes are damaged: the CRC-32 does not match")]
    Crc,
    #[error(
        "zip: its CRC-32 differs between the local header and the central directory, as after a change that was \
         killed: run that change again"
    )]
    TwoSums,
    #[error("its data descriptor does not follow its bytes")]
    Descriptor,
    #[error("it is stored in {stored} bytes and said to have {size}")]
    Size { stored: u64, size: u64 },
    #[error("it is not a .npy file")]
    NoArray,
    #[error(
        "it ends inside the header of its array: {expected} bytes are needed, the file has {found}"
    )]
    Header { expected: u64, found: u64 },
    #[error("its compressed bytes are damaged")]
    Deflated,
    #[error("the array in it takes {array} bytes with its header, the member has {size}")]
    Array { array: u64, size: u64 },
}

impl Fault for MemberFault {
    fn kind(&self) -> ErrorKind {
        match self {
            MemberFault::Encrypted | MemberFault::Patch | MemberFault::Method { .. } => {
                ErrorKind::Unsupported
            }
            _ => ErrorKind::Damaged,
        }
    }
}

/// The name of a compression method in brackets, if it is known.
fn method(number: u16) -> &'static str {
    match number {
        9 => " (deflate64)",
        12 => " (bzip2)",
        14 => " (LZMA)",
        93 => " (zstd)",
        95 => " (xz)",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::directory::END;
    use super::*;
    use crate::source::MemorySource;

    /// An archive of stored members, from names and data.
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
            (4, 1, "several files"),
            (6, 1, "several files"),
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

    /// The comment may contain a false end record.
    #[test]
    fn the_end_is_the_one_whose_comment_ends_the_file() {
        let mut bytes = archive(&[("a.npy", b"x")]);
        let len = bytes.len();
        let comment = [b"PK\x05\x06".as_slice(), &[0xff; 18]].concat();
        bytes[len - 2] = comment.len() as u8;
        assert_eq!(read([bytes, comment].concat()), Ok(1));
    }
}
