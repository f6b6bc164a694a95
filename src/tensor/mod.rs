//! Descriptions of a file's tensors, whatever its format: dtype, shape and place of one tensor
//! ([`TensorInfo`]), all tensors in little memory ([`Tensors`]), chunks, attributes, and packed values.
//!
//! ```
//! use tslice::dtype::{DType, Endian, Scalar};
//! use tslice::shape::Order;
//! use tslice::tensor::TensorInfo;
//!
//! let dtype = DType::Scalar(Scalar::F32, Endian::Little);
//! let tensor = TensorInfo::new(dtype, vec![2, 3], Order::C, 128);
//! assert_eq!(tensor.data(), 128..152);
//! ```

mod chunks;
mod info;
mod packing;
mod printable;
mod scaling;
mod tensors;

#[cfg(any(feature = "hdf5", feature = "zarr"))]
pub(crate) use chunks::cut;
pub use chunks::{ChunkCodec, ChunkFile, Chunks, EncodeChunks, StoredChunks};
pub use info::{
    Annotations, LazyAnnotations, Storage, StorageKind, TensorInfo, axis_number, number,
};
pub(crate) use info::{FILL_VALUE, IN_PIECES, data_bytes};
pub(crate) use packing::{
    ADD_OFFSET, Differing, MISSING_VALUE, SCALE_FACTOR, UNSIGNED, differing, element, plain, stated,
};
pub use packing::{PackingFault, Stated, Unpacking};
pub(crate) use printable::brief;
pub use printable::{printable, shortened, write_printable_json};
pub use scaling::{Scaling, ScalingFault};
pub use tensors::Tensors;
pub(crate) use tensors::first_repeated;
