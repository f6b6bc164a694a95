//! The formats: a folder or a file each, which reads headers, opens inputs and lays out outputs; and which there are.
//!
//! A format is told by the first bytes of a file, not by its name. [`read_contents`] consumes exactly
//! the header of a reader, so that a pipe is at its data afterwards. Memory grows with the bytes that
//! are really there, not with the lengths that a header claims. Errors don't name the file: the caller adds
//! the path.
//!
//! ```
//! use tslice::dtype::{DType, Endian, Scalar};
//! use tslice::formats::{npy, read_contents};
//! use tslice::shape::Order;
//!
//! let dtype = DType::Scalar(Scalar::F32, Endian::Little);
//! let mut file = npy::header(&dtype, &[2, 3], Order::C)?;
//! file.extend([0; 24]);
//! let contents = read_contents(&mut file.as_slice(), Some(file.len() as u64))?;
//! assert_eq!(contents.tensors.at(0).shape, [2, 3]);
//! # Ok::<(), tslice::Cause>(())
//! ```

mod archive;
#[cfg(any(feature = "hdf5", feature = "zarr"))]
mod codecs;
mod dtype_names;
mod error;
mod foreign;
pub mod gguf;
#[cfg(feature = "hdf5")]
mod hdf5;
mod headed;
mod header;
mod netcdf3;
pub mod npy;
pub mod npz;
mod open;
mod output;
pub mod pickle;
pub mod raw;
mod recognise;
pub mod safetensors;
pub mod shards;
pub mod text;
pub mod torch;
pub(crate) mod zarr;
mod zipped;

pub use dtype_names::{NameError, dtype_names, parse_dtype};
pub use error::FormatError;
pub use foreign::{Foreign, LOOK_LEN, NotRead};
pub use header::MAGIC_LEN;
pub(crate) use open::recognise;
pub use open::{open, open_watched};
pub(crate) use output::by_extension;
pub use raw::ForeignBytes;
pub use recognise::read_contents;
pub(crate) use recognise::{first_bytes, unrecognised};

use crate::input::Format;
use crate::output::layout::OutputFormat;

/// A format: for reading, and for writing.
type ReadWrite = (Option<&'static Format>, Option<&'static OutputFormat>);

/// All formats, in the order in which the help lists outputs. No file begins like those of two
/// formats.
static FORMATS: &[ReadWrite] = &[
    (Some(&npy::FORMAT), Some(&npy::OUTPUT)),
    (Some(&npy::FOLDER), Some(&npy::FOLDER_OUTPUT)),
    (Some(&npz::FORMAT), Some(&npz::OUTPUT)),
    (Some(&safetensors::FORMAT), Some(&safetensors::OUTPUT)),
    (Some(&torch::FORMAT), Some(&torch::OUTPUT)),
    (Some(&gguf::FORMAT), Some(&gguf::OUTPUT)),
    (Some(&raw::FORMAT), Some(&raw::OUTPUT)),
    (Some(&text::CSV), Some(&text::output::CSV)),
    (Some(&text::TSV), Some(&text::output::TSV)),
    (Some(&text::TXT), Some(&text::output::TXT)),
    (Some(&text::JSON), Some(&text::output::JSON)),
    (Some(&zarr::FORMAT), Some(&zarr::OUTPUT)),
    (Some(&shards::FORMAT), Some(&shards::OUTPUT)),
    (Some(&shards::OF_TORCH), None),
    (Some(&torch::DISTRIBUTED), None),
    (Some(&pickle::FORMAT), None),
    (Some(&netcdf3::FORMAT), None),
    #[cfg(feature = "hdf5")]
    (Some(&hdf5::FORMAT), None),
];

/// The formats that are read.
fn inputs() -> impl Iterator<Item = &'static Format> {
    FORMATS.iter().filter_map(|(read, _)| *read)
}

/// The formats that are written, in the order of the help.
pub fn outputs() -> impl Iterator<Item = &'static OutputFormat> + Clone {
    FORMATS.iter().filter_map(|(_, written)| *written)
}

/// The format in which a file of this one is written, if its elements are plain bytes, one tensor
/// after the other.
pub(crate) fn of_plain(format: &Format) -> Option<&'static OutputFormat> {
    let written = FORMATS.iter().find(|(read, _)| *read == Some(format))?.1?;
    let is_plain = written.is_editable && !written.has_shards && !written.is_text;
    is_plain.then_some(written)
}
