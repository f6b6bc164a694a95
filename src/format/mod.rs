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

mod chunks;
#[cfg(any(feature = "hdf5", feature = "zarr"))]
mod codecs;
mod dtype_names;
mod error;
mod foreign;
pub mod gguf;
#[cfg(feature = "hdf5")]
pub(crate) mod hdf5;
mod header;
pub mod npy;
pub mod npz;
mod packing;
pub mod safetensors;
pub mod shards;
mod tensor;
mod tensors;
pub mod text;
pub mod torch;
#[cfg(feature = "zarr")]
pub(crate) mod zarr;

#[cfg(any(feature = "hdf5", feature = "zarr"))]
pub(crate) use chunks::spare_bytes;
pub use chunks::{ChunkCodec, ChunkFile, Chunks, EncodeChunks, StoredChunks};
pub(crate) use chunks::{drop_spare, keep_spare};
pub use dtype_names::{NameError, dtype_names, parse_dtype};
pub use error::{FormatError, is_printable, printable, shortened, write_printable_json};
pub use foreign::{Foreign, LOOK_LEN};
pub(crate) use header::first_repeated;
pub use header::{MAGIC_LEN, read_contents};
pub(crate) use packing::{
    ADD_OFFSET, Differing, MISSING_VALUE, SCALE_FACTOR, UNSIGNED, differing, element, plain, stated,
};
pub use packing::{PackingFault, Stated, Unpacking};
pub(crate) use tensor::FILL_VALUE;
pub use tensor::{Annotated, Annotations, Storage, StorageKind, TensorInfo, axis_number, number};
pub use tensors::{Contents, Format, Tensors};
pub use text::TextFormat;
