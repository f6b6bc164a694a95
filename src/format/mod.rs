//! Headers of tensor files, read and written. Element data is not touched here.
//!
//! A format is told by the first bytes of a file, not by its name. [`read_contents`] consumes exactly
//! the header of a reader, so that a pipe is at its data afterwards. Memory grows with the bytes that
//! are really there, not with the lengths that a header claims. Messages of [`FormatError`] don't
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
//! # Ok::<(), tslice::format::FormatError>(())
//! ```

mod annotations;
mod chunks;
#[cfg(any(feature = "hdf5", feature = "zarr"))]
mod codecs;
mod error;
mod foreign;
pub mod gguf;
#[cfg(any(feature = "hdf5", feature = "zarr"))]
mod guarded;
#[cfg(feature = "hdf5")]
pub(crate) mod hdf5;
mod header;
#[cfg(any(feature = "hdf5", feature = "zarr"))]
mod inflated;
mod named;
pub mod npy;
pub mod npz;
pub mod safetensors;
pub mod shards;
pub(crate) mod spare;
mod tensor;
mod tensors;
pub mod text;
pub mod torch;
#[cfg(feature = "zarr")]
pub(crate) mod zarr;

#[cfg(any(feature = "hdf5", feature = "zarr"))]
pub(crate) use annotations::FILL_VALUE;
pub use annotations::{Annotated, Annotations, number};
pub use chunks::{ChunkCodec, ChunkFile, Chunks, EncodeChunks};
pub use error::{FormatError, is_printable, printable, shortened, write_printable_json};
pub use foreign::{Foreign, LOOK_LEN};
pub(crate) use header::first_repeated;
pub use header::{MAGIC_LEN, read_contents};
pub use named::{NameError, dtype_names, parse_dtype};
pub use tensor::{Storage, StorageKind, TensorInfo};
pub use tensors::{Contents, Format, Tensors};
pub use text::TextFormat;
