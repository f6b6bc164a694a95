//! Errors of headers of any format. Other errors of a header are errors of its format.

use crate::dtype::DType;
use crate::error::{ErrorKind, Fault};

/// The extensions of files that are recognised, as a message lists them.
const EXTENSIONS: &str = ".npy, .npz, .safetensors, .pt or .gguf";

/// Why a header cannot be read or written, whatever its format.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// The file has no bytes.
    #[error("the file is empty")]
    Empty,
    /// The file is of no known format.
    #[error("not a {EXTENSIONS} file, nor the index of a sharded checkpoint")]
    Unrecognised,
    /// The file ends before its header does. Lengths in bytes.
    #[error(
        "the file is cut short inside its header: {expected} bytes are needed, the file has {found}"
    )]
    HeaderCutShort {
        /// The bytes that the header needs, as far as known.
        expected: u64,
        found: u64,
    },
    /// The format does not have this type.
    #[error("dtype {dtype} has no equivalent in {format}")]
    Unsupported { dtype: DType, format: &'static str },
}

impl Fault for FormatError {
    fn kind(&self) -> ErrorKind {
        match self {
            FormatError::Empty | FormatError::HeaderCutShort { .. } => ErrorKind::Damaged,
            FormatError::Unrecognised => ErrorKind::Unsupported,
            FormatError::Unsupported { .. } => ErrorKind::DType,
        }
    }
}
