//! What is wrong with a file of torch.save.

use super::super::error::brief;
use crate::format::npz::NpzError;
use crate::shape::AsTuple;

/// What is wrong with a file of torch.save.
#[derive(Clone, Debug, thiserror::Error)]
pub enum TorchError {
    /// The pickle ends before its end mark, or holds what no pickle holds.
    #[error("its pickle is damaged: {0}")]
    Damaged(&'static str),
    /// The pickle is longer than what is read; lengths in bytes.
    #[error("its pickle has {len} bytes, and at most {most} are read")]
    Long {
        /// How long it is.
        len: u64,
        /// How long it may be.
        most: u64,
    },
    /// The pickle makes more than is kept in memory.
    #[error("its pickle makes more than {0} objects")]
    Many(usize),
    /// The pickle makes objects that take more memory than that, in bytes.
    #[error("its pickle makes objects that take more than {} MiB of memory", .0 >> 20)]
    Large(usize),
    /// Objects in objects in objects.
    #[error("its objects are nested deeper than {0} levels")]
    Deep(usize),
    /// An instruction that torch.save does not write.
    #[error("opcode {0:#04x} of its pickle is not read")]
    Opcode(u8),
    /// A function that is known, with arguments that it does not take.
    #[error("the file calls `{0}` with arguments that it does not take")]
    Arguments(&'static str),
    /// A tensor whose elements are to be changed whenever they are read.
    #[error("it is marked as conjugated or negated, so that its elements are not those stored")]
    Lazy,
    /// A tensor of elements that are no numbers here.
    #[error("its dtype is {0}, which is not read")]
    DType(&'static str),
    /// Paths that are one name.
    #[error("{0} tensors of the file have this name")]
    Twice(usize),
    /// The names of all tensors together are too long, as where lists hold the same lists again.
    #[error("the names of its tensors have more than {0} bytes")]
    Names(usize),
    /// Neither little nor big.
    #[error("its byte order is {:?}, neither little nor big", brief(.0))]
    ByteOrder(String),
    /// A tensor that is not in its storage.
    #[error(transparent)]
    Tensor(#[from] TensorFault),
    /// Not what torch.save wrote before 1.6.
    #[error("what follows its pickles are no storages: {0}")]
    Storages(&'static str),
}

/// Why a tensor cannot be where a pickle says.
#[derive(Clone, Debug, thiserror::Error)]
pub enum TensorFault {
    /// The storage is not in the file.
    #[error("its storage, {:?}, is not in the file", brief(.0))]
    NoStorage(String),
    /// The member of the archive that is the storage cannot be read.
    #[error("its storage cannot be read: {0}")]
    Member(#[from] NpzError),
    /// The storage has fewer bytes than are said.
    #[error("its storage is said to have {said} bytes, and has {found}")]
    ShortStorage {
        /// Bytes by the pickle.
        said: u64,
        /// Bytes of the member.
        found: u64,
    },
    /// Elements outside of the storage.
    #[error("its shape, strides and offset lead out of its storage of {0} bytes")]
    Outside(u64),
    /// A shape of 2^63 bytes or more.
    #[error("shape {} has 2^63 bytes or more", AsTuple(.0))]
    TooLarge(Vec<u64>),
}
