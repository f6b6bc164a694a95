//! Why a file cannot be changed.

use crate::dtype::DType;
use crate::error::Fault;

/// Why a file cannot be changed.
#[derive(Debug, thiserror::Error)]
pub enum EditFault {
    /// Not a regular file.
    #[error("only a regular file can be changed")]
    NotAFile,
    /// A file behind a network.
    #[error("a remote file cannot be changed, nor copied with a change")]
    Remote,
    /// An archive, whose checksums would be wrong.
    #[error("a .npz archive cannot be changed")]
    Archive,
    /// An index of several files.
    #[error("a sharded checkpoint cannot be changed as a whole")]
    Sharded,
    /// What is written is read from the bytes that it overwrites.
    #[error(
        "its bytes are to be overwritten: a run that is killed could not be completed by running \
         it again"
    )]
    Overlap,
    /// The value has another dtype.
    #[error("the value has dtype {value}, the target has {target}")]
    DType {
        /// The dtype of the value.
        value: DType,
        /// The dtype of the target.
        target: DType,
    },
    /// Values that share bytes are not cast where they are assigned.
    #[error("values of dtype {0} cannot be cast here: they are smaller than a byte")]
    PartsOfBytes(DType),
}

impl Fault for EditFault {}
