//! The formats: a folder or a file each, which reads headers, opens inputs and lays out outputs; and which there are.
//!
//! A format is told by the first bytes of a file, not by its name. [`read_contents`] consumes exactly
//! the header of a reader, so that a pipe is at its data afterwards. Memory grows with the bytes that
//! are really there, not with the lengths that a header claims. Errors don't
//! name the file: the caller adds the path.
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
pub mod npy;
pub mod npz;
mod open;
mod output;
mod raw;
pub mod safetensors;
pub mod shards;
pub mod text;
pub mod torch;
mod zarr;

pub use dtype_names::{NameError, dtype_names, parse_dtype};
pub use error::FormatError;
pub use foreign::{Foreign, LOOK_LEN, NotRead};
pub use header::{MAGIC_LEN, read_contents};
pub(crate) use open::{RecognisedFile, first_bytes, recognise, unrecognised};
pub use open::{open, open_watched};
pub use output::FORMATS;
pub(crate) use output::{by_extension, of_plain};
pub use raw::ForeignBytes;
pub(crate) use raw::open as open_raw;
pub(crate) use zarr::is_folder as is_zarr_folder;
