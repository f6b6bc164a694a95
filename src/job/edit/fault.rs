//! Why a file cannot be changed.

use crate::dtype::DType;
use crate::error::{Fault, FileName};
use crate::format::Format;
use crate::output::layout::OutputFormat;
use crate::shape::AsTuple;

/// Why a file cannot be changed.
#[derive(Debug, thiserror::Error)]
pub enum EditFault {
    /// Not a regular file.
    #[error("only a regular file can be changed")]
    NotAFile,
    /// A file behind a network.
    #[error("a remote file cannot be changed, nor copied with a change")]
    Remote,
    /// A file of a format that is not written.
    #[error("a file of format {0} cannot be changed, nor copied with a change")]
    ReadOnly(Format),
    /// A member of an archive that has other bytes than its elements.
    #[error("an array that is deflated cannot be changed where it lies")]
    Deflated,
    /// An index of several files.
    #[error("a sharded checkpoint cannot be changed as a whole")]
    Sharded,
    /// A text, whose elements are no bytes of the file.
    #[error("a text cannot be changed")]
    Text,
    /// What is to be changed is a field of a tensor, or the file is not what it was.
    #[error("the file does not hold this tensor: it is a field of one, or the file was changed")]
    OtherTensor,
    /// A copy whose name tells another format than that of the file.
    #[error("the output is a copy of {original}, in the {} format", format.name)]
    CopyName {
        /// The file that it is a copy of.
        original: FileName,
        /// The format of both.
        format: &'static OutputFormat,
    },
    /// A member of an archive whose change is not complete.
    #[error("member {member:?} is half written, by a run that was killed or still goes on")]
    HalfWritten {
        /// The name of its array.
        member: String,
    },
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
    /// The value has another shape than the slice.
    #[error("the value has shape {}, the slice has shape {}", AsTuple(value), AsTuple(slice))]
    Shape {
        /// The shape of the value.
        value: Vec<u64>,
        /// The shape of the slice.
        slice: Vec<u64>,
        /// Whether NumPy would stretch the value to it.
        stretches: bool,
    },
    /// The value cannot be broadcast to what is written.
    #[error(
        "could not broadcast input array from shape {:#} into shape {:#}",
        AsTuple(value),
        AsTuple(written)
    )]
    NotBroadcast {
        /// The shape of the value.
        value: Vec<u64>,
        /// The shape of what is written.
        written: Vec<u64>,
    },
    /// Values that share bytes are not broadcast.
    #[error("elements of dtype {0} cannot be broadcast")]
    BroadcastParts(DType),
    /// Values that share bytes are not cast where they are assigned.
    #[error("values of dtype {0} cannot be cast here: they are smaller than a byte")]
    PartsOfBytes(DType),
}

impl Fault for EditFault {}
