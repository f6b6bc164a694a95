//! The contents of a file by its header: its format, its tensors and their metadata.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::Format;
use crate::error::faults;
use crate::tensor::Tensors;

/// The contents of a file, by its header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents {
    /// The format of the file.
    pub format: &'static Format,
    /// The tensors, in the order of their bytes in the file.
    pub tensors: Arc<Tensors>,
    pub metadata: Metadata,
    /// Bytes of the header; the data begin after it.
    pub header_len: u64,
}

/// Metadata of a file, besides its tensors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// `__metadata__` of a `.safetensors`; empty elsewhere.
    pub texts: BTreeMap<String, String>,
    /// Metadata of another kind, such as the typed values of a `.gguf`.
    pub(crate) typed: Option<TypedMetadata>,
}

/// Metadata that only the code of their format can read and write.
#[derive(Clone)]
pub(crate) struct TypedMetadata(pub(crate) Arc<dyn Any + Send + Sync>);

impl fmt::Debug for TypedMetadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TypedMetadata")
    }
}

/// Typed metadata are not compared: contents are equal whatever they are.
impl PartialEq for TypedMetadata {
    fn eq(&self, _: &TypedMetadata) -> bool {
        true
    }
}

impl Eq for TypedMetadata {}

impl From<BTreeMap<String, String>> for Metadata {
    fn from(texts: BTreeMap<String, String>) -> Metadata {
        Metadata { texts, typed: None }
    }
}

impl Contents {
    /// The contents of a file that has no header of its own.
    pub(crate) fn of(format: &'static Format, tensors: Tensors) -> Contents {
        Contents {
            format,
            tensors: Arc::new(tensors),
            metadata: Metadata::default(),
            header_len: 0,
        }
    }

    /// The length of the file in bytes by its header.
    pub fn expected_len(&self) -> u64 {
        self.tensors.last().map_or(self.header_len, |last| last.data().end)
    }

    /// Whether bytes after the data are ignored, as np.load does, or an error, as in safetensors.
    pub fn allows_trailing_bytes(&self) -> bool {
        !self.format.ends_with_data
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

/// The length of a file differs from what its header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LengthFault {
    /// The file ends before its data does. Lengths in bytes.
    #[error("the file is cut short: its header says {expected} bytes, the file has {found}")]
    CutShort { expected: u64, found: u64 },
    /// The file goes on after its data. Lengths in bytes.
    #[error("{} bytes follow the data: the header says {expected} bytes, the file has {found}",
        .found - .expected)]
    TrailingBytes { expected: u64, found: u64 },
}

faults!(Damaged: LengthFault);
