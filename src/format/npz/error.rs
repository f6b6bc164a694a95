//! What is wrong with an archive.

use super::super::error::brief;
use super::{DEFLATED, ENCRYPTED, PATCH};

/// What is wrong with an archive.
#[derive(Clone, Debug, thiserror::Error)]
pub enum NpzError {
    /// There is no end record of a central directory.
    #[error("the archive is cut short or damaged: it has no end of a central directory")]
    NoEnd,
    /// Over several disks.
    #[error("archives of several parts are not read")]
    MultiDisk,
    /// A record that is not where another one says, or is incomplete.
    #[error("the archive is damaged: {0}")]
    Damaged(&'static str),
    /// A member whose local header has another CRC-32 than the directory.
    #[error(
        "its local header has another CRC-32 than the central directory, as where a change of it was \
         killed: run that again"
    )]
    TwoSums,
    /// One member cannot be read.
    #[error("member \"{}\": {fault}", brief(.name))]
    Member {
        /// The name of the member.
        name: String,
        /// What went wrong.
        fault: MemberFault,
    },
}

/// Why a member of an archive cannot be read. The others can.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemberFault {
    /// An encrypted member.
    #[error("encrypted members are not read")]
    Encrypted,
    /// A patch to another file.
    #[error("patches to other files are not read")]
    Patch,
    /// Neither stored nor deflated.
    #[error("compression method {number}{name} is not read, only stored (0) and deflated (8)",
        name = method(*.number))]
    Method {
        /// Its number in the archive.
        number: u16,
    },
    /// A name that is no text.
    #[error("its name is not UTF-8")]
    Name,
    /// A name that is absolute or has `..` in it.
    #[error("the name leads out of the archive")]
    Path,
    /// Two members share bytes.
    #[error("its bytes are those of another member too")]
    Overlap,
    /// The extra field with the wide sizes ends before these.
    #[error("its zip64 field is too short")]
    Zip64,
    /// The local header is missing.
    #[error("its local header is not where the central directory says")]
    LocalHeader,
    /// The local header says something else of this.
    #[error("its local header has another {0} than the central directory")]
    OtherHeader(&'static str),
    /// The bytes have another CRC-32 than the directory says.
    #[error("its bytes are damaged: the CRC-32 is another one than was announced")]
    Crc,
    /// No data descriptor follows the bytes, which have one.
    #[error("the data descriptor is not behind its bytes")]
    Descriptor,
    /// A stored member whose two sizes differ.
    #[error("it is stored in {stored} bytes and said to have {size}")]
    Size {
        /// Bytes in the archive.
        stored: u64,
        /// Bytes by its uncompressed size.
        size: u64,
    },
    /// No array.
    #[error("it is not a .npy file")]
    NoArray,
    /// It ends before the header of its array does. Lengths in bytes.
    #[error(
        "it ends inside the header of its array: {expected} bytes are needed, {found} are there"
    )]
    Header {
        /// Bytes that the header takes, as far as is known.
        expected: u64,
        /// Bytes that there are.
        found: u64,
    },
    /// The compressed bytes are none, or have a hole.
    #[error("its compressed bytes are damaged")]
    Deflated,
    /// The array's header asks for another number of bytes than the member has.
    #[error("the array in it takes {array} bytes with its header, the member has {size}")]
    Array {
        /// Bytes by the array's header.
        array: u64,
        /// Bytes of the member.
        size: u64,
    },
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
