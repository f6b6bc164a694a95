//! Headers of tensor files, read and written. Element data is not touched here.
//!
//! A format is told by the first bytes of a file, not by its name. [`read_contents`] consumes exactly
//! the header of a reader, so that a pipe is at its data afterwards. Memory grows with the bytes that
//! are really there, not with the lengths that a header claims. Errors don't
//! name the file: the caller adds the path.
//!
//! ```
//! use tslice::dtype::{DType, Endian, Scalar};
//! use tslice::format::{npy, read_contents};
//! use tslice::shape::Order;
//!
//! let dtype = DType::Scalar(Scalar::F32, Endian::Little);
//! let mut file = npy::header(&dtype, &[2, 3], Order::C)?;
//! file.extend([0; 24]);
//! let contents = read_contents(&mut file.as_slice(), Some(file.len() as u64))?;
//! assert_eq!(contents.tensors.at(0).shape, [2, 3]);
//! # Ok::<(), tslice::Cause>(())
//! ```

#[cfg(any(feature = "hdf5", feature = "zarr"))]
mod codecs;
mod contents;
mod dtype_names;
mod error;
mod foreign;
pub mod gguf;
#[cfg(feature = "hdf5")]
pub(crate) mod hdf5;
mod header;
pub mod npy;
pub mod npz;
pub mod safetensors;
pub mod shards;
pub mod text;
pub mod torch;
#[cfg(feature = "zarr")]
pub(crate) mod zarr;

pub use contents::{Contents, Format};
pub use dtype_names::{NameError, dtype_names, parse_dtype};
pub use error::FormatError;
pub use foreign::{Foreign, LOOK_LEN, NotRead};
pub use header::{MAGIC_LEN, read_contents};
pub use text::TextFormat;
