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

mod dtypes;
mod error;
mod info;
mod read;
mod text;
mod write;

pub(super) use dtypes::scalar;
pub use dtypes::stored_dtype;
pub use error::SafetensorsError;
pub(crate) use read::{begins, header_len};
pub use read::{metadata_of_json, read};
pub use write::{HeaderText, header, longer};
