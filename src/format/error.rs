//! Why a header cannot be read or written.

use std::io;

use super::foreign::Foreign;
use super::gguf::GgufError;
use super::npy::NpyError;
use super::npz::{MemberFault, NpzError};
use super::safetensors::SafetensorsError;
use super::shards::ShardsError;
use super::torch::TorchError;
use crate::dtype::DType;
use crate::error::Fault;

/// The extensions of the files that are recognised by how they begin.
const EXTENSIONS: &str = ".npy, .npz, .safetensors, .pt or .gguf";

/// Why a header cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    /// The reader failed.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The file has no bytes.
    #[error("the file is empty")]
    Empty,
    /// The file is of no known format.
    #[error("not a {EXTENSIONS} file, nor the index of a sharded checkpoint")]
    Unrecognised,
    /// The file is of a kind that is known, and not read.
    #[error("{kind}, {why}", kind = .0, why = .0.not_read())]
    Foreign(Foreign),
    /// The file ends before its header does. Lengths in bytes.
    #[error(
        "the file is cut short inside its header: {expected} bytes are needed, {found} are there"
    )]
    HeaderCutShort {
        /// Bytes that the header takes, as far as is known.
        expected: u64,
        found: u64,
    },
    /// The file ends before its data does. Lengths in bytes.
    #[error("the file is cut short: its header asks for {expected} bytes, {found} are there")]
    CutShort { expected: u64, found: u64 },
    /// The file goes on after its data. Lengths in bytes.
    #[error("{} bytes follow the data: the header asks for {expected} bytes, {found} are there",
        .found - .expected)]
    TrailingBytes { expected: u64, found: u64 },
    /// A `.npy` header is invalid or not supported.
    #[error("npy header: {0}")]
    Npy(#[from] NpyError),
    /// A `.safetensors` header is invalid or not supported.
    #[error("safetensors header: {0}")]
    Safetensors(#[from] SafetensorsError),
    /// A `.npz` archive cannot be read.
    #[error("zip: {0}")]
    Npz(#[from] NpzError),
    /// A member of an archive cannot be read.
    #[error(transparent)]
    Member(#[from] MemberFault),
    /// A file of torch.save cannot be read.
    #[error("pytorch: {0}")]
    Torch(#[from] TorchError),
    /// A file of HDF5, or a dataset of it, cannot be read.
    #[cfg(feature = "hdf5")]
    #[error("hdf5: {0}")]
    Hdf5(#[from] super::hdf5::Hdf5Error),
    /// An array of Zarr cannot be read.
    #[cfg(feature = "zarr")]
    #[error("zarr: {0}")]
    Zarr(#[from] super::zarr::ZarrError),
    /// A `.gguf` cannot be read.
    #[error("gguf: {0}")]
    Gguf(#[from] GgufError),
    /// The index of a sharded checkpoint is invalid.
    #[error("checkpoint index: {0}")]
    Shards(#[from] ShardsError),
    /// The format has no such type.
    #[error("dtype {dtype} has no counterpart in the {format} format")]
    Unsupported { dtype: DType, format: &'static str },
}

impl Fault for FormatError {}
