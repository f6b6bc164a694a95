//! Whether a value fits into a target: the conversion of its elements, or why a file cannot be changed.

use crate::dtype::{DType, Endian, stored_by_numpy};
use crate::error::{Cause, Fault, FileName};
use crate::execute::Conversion;
use crate::input::Format;
use crate::job::select::Casts;
use crate::output::layout::OutputFormat;
use crate::shape::AsTuple;
use crate::tensor::shortened;

/// Why a file cannot be changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EditFault {
    /// Not a regular file.
    #[error("only a regular file can be changed")]
    NotAFile,
    /// A file behind a network.
    #[error("a remote file cannot be changed, nor copied with a change")]
    Remote,
    /// A file of a format that is not written.
    #[error("a file of format {0} cannot be changed, nor copied with a change")]
    ReadOnly(&'static Format),
    /// A compressed member of an archive.
    #[error("a compressed array cannot be changed in place")]
    Deflated,
    /// An index of several files.
    #[error("a sharded checkpoint cannot be changed as a whole")]
    Sharded,
    /// A text file, whose elements are not bytes.
    #[error("a text file cannot be changed")]
    Text,
    /// The tensor is a field of another, or the file changed after its header was read.
    #[error("the file does not hold this tensor: it is a field of one, or the file was changed")]
    OtherTensor,
    /// The name of a copy has the extension of a format other than the file's.
    #[error("the output is a copy of {original}, in the {} format", format.name)]
    CopyName {
        /// The file that is copied.
        original: FileName,
        /// The format of the copy and of the file.
        format: &'static OutputFormat,
    },
    /// An archive, which has checksums of its bytes.
    #[error("an .npz cannot be changed in place")]
    Archive,
    /// The value is read from the bytes that it would overwrite.
    #[error(
        "it is also the target: its bytes would be overwritten, and a killed run could not be repeated"
    )]
    Overlap,
    /// The only tensor of the value has the name of one of several targets.
    #[error(
        "its only tensor, {:?}, has the name of one target, but {:?} is a target too",
        shortened(name),
        shortened(other)
    )]
    OfOne { name: String, other: String },
    /// The value has another dtype than the target.
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
        /// Whether NumPy would broadcast the value to the slice.
        stretches: bool,
    },
    /// The value cannot be broadcast to the written slice.
    #[error(
        "could not broadcast input array from shape {:#} into shape {:#}",
        AsTuple(value),
        AsTuple(written)
    )]
    NotBroadcast {
        /// The shape of the value.
        value: Vec<u64>,
        /// The shape of the written slice.
        written: Vec<u64>,
    },
    /// Values that share bytes are not broadcast.
    #[error("elements of dtype {0} cannot be broadcast")]
    BroadcastParts(DType),
    /// Values that share bytes are not cast when they are assigned.
    #[error("values of dtype {0} cannot be cast here: they are smaller than a byte")]
    PartsOfBytes(DType),
}

impl Fault for EditFault {}

/// The conversion of elements of a value to elements of a target. One of `casts` may apply to the value's dtype.
pub(super) fn cast_conversion(
    value: &DType,
    target: &DType,
    casts: &Casts,
) -> Result<Conversion, Cause> {
    let Some(cast) = casts.of(value)? else { return Ok(conversion(value, target)?) };
    conversion(&cast.to(), target)?;
    if !value.item_bits().is_multiple_of(8) {
        return Err(EditFault::PartsOfBytes(value.clone()).into());
    }
    Ok(match target {
        _ if cast.keeps_type() => conversion(value, target)?,
        _ => Conversion::Cast(cast.with_order_of(target)),
    })
}

/// The conversion between dtypes that differ at most in byte order. `<V2` fits bfloat16, which a `.npy` stores as `<V2`.
pub(in crate::job) fn conversion(value: &DType, target: &DType) -> Result<Conversion, EditFault> {
    let swap_width = match (value, target) {
        (DType::Npy(_), DType::Npy(_)) => value.swap_width_to(target),
        (stored @ DType::Npy(_), other) | (other, stored @ DType::Npy(_)) => {
            let is_stored = stored_by_numpy(other).as_ref() == Some(stored);
            let is_big = matches!(other, DType::Scalar(_, Endian::Big));
            is_stored.then(|| if is_big { other.swap_width() } else { 1 })
        }
        _ => value.swap_width_to(target),
    };
    let conversion = swap_width.map(Conversion::swap_bytes);
    conversion.ok_or_else(|| EditFault::DType { value: value.clone(), target: target.clone() })
}
