//! Hugging Face's `.safetensors`: named tensors behind one JSON header.
//!
//! ```text
//! length of the JSON (8 bytes, little-endian)
//! {"__metadata__": {..}, "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ..}
//! data: the tensors without gap or overlap, little-endian, in C order
//! ```
//!
//! The rules are those of the format's document; where they are stricter than the `safetensors`
//! package (which lets the last of two tensors of one name win), the document is followed. The tests
//! hold this reader and writer, and the names of dtypes, against that package.
//!
//! **Why no package.** A tensor named twice, holes, and a file longer than its
//! header says are errors of the format that must be found from the header alone.

use crate::shape::MAX_NDIM;

mod read;
mod utf8;
mod write;

pub(crate) use read::{begins, header_len};
pub use read::{metadata_of_json, read};
pub(crate) use write::dtype_of;
pub(super) use write::scalar;
pub use write::{HeaderText, header, longer, stored_dtype};

/// The longest JSON in bytes, as the format has it.
pub(super) const MAX_HEADER: u64 = 100_000_000;

/// The one key that is no tensor.
pub(super) const METADATA: &str = "__metadata__";

/// What is wrong with a `.safetensors` header.
#[derive(Debug, thiserror::Error)]
pub enum SafetensorsError {
    #[error("{0} bytes long, {MAX_HEADER} are allowed")]
    TooLong(u64),
    #[error("it begins with white space, and must begin with '{{'")]
    LeadingSpace,
    #[error("the text is not UTF-8, at byte {0}")]
    Encoding(usize),
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    #[error("tensor '{tensor}' has the unknown dtype '{dtype}'")]
    Dtype { tensor: String, dtype: String },
    #[error("two tensors are named '{0}'")]
    DuplicateName(String),
    #[error("no tensor can be named '{METADATA}'")]
    ReservedName,
    #[error("tensor '{tensor}' has {ndim} axes, at most {MAX_NDIM} are possible")]
    TooManyAxes { tensor: String, ndim: usize },
    #[error("tensor '{tensor}' of shape {shape} is larger than 2^63 - 1 bytes")]
    TooLarge { tensor: String, shape: String },
    #[error("tensor '{tensor}' of dtype {dtype} and shape {shape} does not end at a whole byte")]
    PartialByte { tensor: String, dtype: &'static str, shape: String },
    #[error(
        "tensor '{tensor}' of dtype {dtype} and shape {shape} takes {expected} bytes, \
         its data_offsets [{begin}, {end}] do not give them"
    )]
    Size { tensor: String, dtype: &'static str, shape: String, expected: u64, begin: u64, end: u64 },
    #[error("tensor '{tensor}' begins at byte {begin} of the data, inside tensor '{before}'")]
    Overlap { tensor: String, before: String, begin: u64 },
    #[error("bytes {0} to {1} of the data belong to no tensor, tensor '{2}' begins after them")]
    Hole(u64, u64, String),
}
