//! What is wrong with a `.gguf`.

use crate::format::brief::brief;
use crate::shape::{AsTuple, MAX_NDIM};

/// What is wrong with the header of a `.gguf`.
#[derive(Debug, thiserror::Error)]
pub enum GgufError {
    /// Another version of the format.
    #[error("version {0} is not read, only 2 and 3 are")]
    Version(u32),
    /// More texts than are kept in memory.
    #[error("its {what} have more than {most} bytes")]
    Long {
        /// What has them.
        what: &'static str,
        /// Bytes that they may have.
        most: u64,
    },
    /// A name that is no text.
    #[error("the name of {0} is not UTF-8")]
    NotUtf8(&'static str),
    /// A key or a name that is there twice.
    #[error("two {what} are named {:?}", brief(.name))]
    Twice {
        /// What they are.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// A value of metadata of a type that the format lacks.
    #[error("metadata {:?} has a value of type {number}, which there is not", brief(.key))]
    ValueType {
        /// The key of the value.
        key: String,
        /// The number of the type.
        number: u32,
    },
    /// Lists in lists in lists.
    #[error("metadata {:?} has lists nested deeper than {most} levels", brief(.key))]
    Deep {
        /// The key of the value.
        key: String,
        /// How deep they may be.
        most: u32,
    },
    /// Metadata of the format itself with a value that it cannot have.
    #[error("metadata {key:?} has to be {what}")]
    Value {
        /// The key.
        key: &'static str,
        /// What the value has to be.
        what: &'static str,
    },
    /// A tensor that cannot be as it is described.
    #[error("tensor {:?}: {fault}", brief(.name))]
    Tensor {
        /// The name of the tensor.
        name: String,
        /// What is wrong with it.
        fault: GgufTensorFault,
    },
}

/// Why a tensor cannot be as its header says.
#[derive(Debug, thiserror::Error)]
pub enum GgufTensorFault {
    /// A type that is not known.
    #[error("its elements are of type {0}, which is not known")]
    Type(u32),
    /// More axes than NumPy has.
    #[error("it has {0} axes, and at most {MAX_NDIM} are possible")]
    Axes(u32),
    /// A shape of 2^63 bytes or more.
    #[error("shape {} has 2^63 bytes or more", AsTuple(.0))]
    TooLarge(Vec<u64>),
    /// Rows that are no whole blocks.
    #[error("its rows have {len} elements, which are no whole blocks of {block} ({name})")]
    PartOfBlock {
        /// Elements of a row.
        len: u64,
        /// Elements of a block.
        block: u64,
        /// The type.
        name: &'static str,
    },
    /// It does not begin where tensors may.
    #[error("it begins at byte {offset} of the data, which is no multiple of {alignment}")]
    Unaligned {
        /// Where it begins, behind the header.
        offset: u64,
        /// What that has to be a multiple of.
        alignment: u64,
    },
}
