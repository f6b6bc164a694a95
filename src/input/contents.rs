//! What the header of a file says: its format, its tensors and their metadata.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::TextFormat;
use crate::error::Fault;
use crate::tensor::Tensors;

/// A format that files are read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// NumPy's `.npy`.
    Npy,
    /// NumPy's `.npz`.
    Npz,
    /// Hugging Face's `.safetensors`.
    Safetensors,
    /// PyTorch's `.pt`.
    Torch,
    /// llama.cpp's `.gguf`.
    Gguf,
    /// A checkpoint of several `.safetensors` and an index.
    Sharded,
    /// A checkpoint of several files of torch.save.
    ShardedTorch,
    /// HDF5, with netCDF 4.
    Hdf5,
    /// Arrays of Zarr, in a folder or a zip archive.
    Zarr,
    /// Bytes without a header.
    Raw,
    /// Text, whose elements are kept as bytes once it has been read.
    Text(TextFormat),
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Format::Text(format) => format.name(),
            Format::Npy => "npy",
            Format::Npz => "npz",
            Format::Safetensors => "safetensors",
            Format::Torch => "pytorch",
            Format::Gguf => "gguf",
            Format::Sharded => "sharded safetensors",
            Format::ShardedTorch => "sharded pytorch",
            Format::Hdf5 => "hdf5",
            Format::Zarr => "zarr",
            Format::Raw => "raw",
        })
    }
}

/// What the header of a file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents {
    /// The format of the file.
    pub format: Format,
    /// The tensors, in the order of their bytes in the file.
    pub tensors: Arc<Tensors>,
    /// `__metadata__` of a `.safetensors`; empty elsewhere.
    pub metadata: BTreeMap<String, String>,
    /// Bytes of the header; the data begin after it.
    pub header_len: u64,
}

impl Contents {
    /// Tensors of a file that has no header of its own.
    pub(crate) fn of(format: Format, tensors: Tensors) -> Contents {
        Contents { format, tensors: Arc::new(tensors), metadata: BTreeMap::new(), header_len: 0 }
    }

    /// The length of the file in bytes by its header.
    pub fn expected_len(&self) -> u64 {
        self.tensors.last().map_or(self.header_len, |last| last.data().end)
    }

    /// Whether bytes after the data are ignored, as np.load does, or an error, as in safetensors.
    pub fn allows_trailing_bytes(&self) -> bool {
        self.format != Format::Safetensors
    }

    /// Compare the length of the file (bytes) with [`Contents::expected_len`].
    pub fn check_len(&self, len: u64) -> Result<(), LengthFault> {
        let expected = self.expected_len();
        if len < expected {
            Err(LengthFault::CutShort { expected, found: len })
        } else if len > expected && !self.allows_trailing_bytes() {
            Err(LengthFault::TrailingBytes { expected, found: len })
        } else {
            Ok(())
        }
    }
}

/// The length of a file is not the one that its header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LengthFault {
    /// The file ends before its data does. Lengths in bytes.
    #[error("the file is cut short: its header asks for {expected} bytes, {found} are there")]
    CutShort { expected: u64, found: u64 },
    /// The file goes on after its data. Lengths in bytes.
    #[error("{} bytes follow the data: the header asks for {expected} bytes, {found} are there",
        .found - .expected)]
    TrailingBytes { expected: u64, found: u64 },
}

impl Fault for LengthFault {}
