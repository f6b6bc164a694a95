//! What is wrong with an archive.

use super::super::error::brief;
use super::{DEFLATED, ENCRYPTED, PATCH};

/// What is wrong with an archive.
#[derive(Clone, Debug, thiserror::Error)]
pub enum NpzError {
    #[error("the archive is cut short or damaged: it has no end of a central directory")]
    NoEnd,
    #[error("archives of several parts are not read")]
    MultiDisk,
    #[error("the archive is damaged: {0}")]
    Damaged(&'static str),
    #[error(
        "its local header has another CRC-32 than the central directory, as where a change of it was \
         killed: run that again"
    )]
    TwoSums,
    #[error("member \"{}\": {fault}", brief(.name))]
    Member { name: String, fault: MemberFault },
}

/// Why a member of an archive cannot be read. The others can.
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
    #[error("its bytes are those of another member too")]
    Overlap,
    #[error("its zip64 field is too short")]
    Zip64,
    #[error("its local header is not where the central directory says")]
    LocalHeader,
    #[error("its local header has another {0} than the central directory")]
    OtherHeader(&'static str),
    #[error("its bytes are damaged: the CRC-32 is another one than was announced")]
    Crc,
    #[error("the data descriptor is not behind its bytes")]
    Descriptor,
    #[error("it is stored in {stored} bytes and said to have {size}")]
    Size { stored: u64, size: u64 },
    #[error("it is not a .npy file")]
    NoArray,
    #[error(
        "it ends inside the header of its array: {expected} bytes are needed, {found} are there"
    )]
    Header { expected: u64, found: u64 },
    #[error("its compressed bytes are damaged")]
    Deflated,
    #[error("the array in it takes {array} bytes with its header, the member has {size}")]
    Array { array: u64, size: u64 },
}

impl MemberFault {
    /// That of a member with these flags and this compression method, if there is one.
    pub(super) fn of(flags: u16, method: u16) -> Option<MemberFault> {
        match (flags, method) {
            _ if flags & ENCRYPTED != 0 => Some(MemberFault::Encrypted),
            _ if flags & PATCH != 0 => Some(MemberFault::Patch),
            (_, 0 | DEFLATED) => None,
            (_, number) => Some(MemberFault::Method { number }),
        }
    }
}

/// The name of a compression method in brackets, where it has one that is known.
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
