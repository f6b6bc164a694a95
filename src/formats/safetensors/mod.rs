//! Hugging Face's `.safetensors`: named tensors after one JSON header.
//!
//! ```text
//! length of the JSON (8 bytes, little-endian)
//! {"__metadata__": {..}, "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ..}
//! data: the tensors without gap or overlap, little-endian, in C order
//! ```
//!
//! The rules come from the format's document; where they are stricter than the `safetensors` package
//! (which lets the last of two tensors of one name win), the document is followed. The tests compare
//! this reader and writer, and the names of dtypes, with that package.
//!
//! **Why no package.** A tensor named twice, holes, and a file longer than its
//! header says are errors of the format that must be found from the header alone.

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, MapAccess, Visitor};

use crate::dtype::Scalar;
use crate::error::Fault;
use crate::formats::recognise::open_headed;
use crate::input::Format;
use crate::shape::{AsList, MAX_NDIM};
use crate::tensor::{brief, data_bytes};

mod json_text;
mod output;
mod read;
mod write;

pub(crate) use output::{OUTPUT, SafetensorsHeader};

pub use read::read;
pub(crate) use read::{begins, header_len};
pub(crate) use write::dtype_of;
pub(super) use write::scalar;
pub use write::{HeaderText, header, longer, stored_dtype};

/// Hugging Face's `.safetensors`.
pub static FORMAT: Format =
    Format { ends_with_data: true, ..Format::new("safetensors", begins, open_headed) };

/// The longest JSON that the format allows, in bytes.
pub(super) const MAX_HEADER: u64 = 100_000_000;

/// The only key that is not a tensor.
pub(super) const METADATA: &str = "__metadata__";

/// A fault of a `.safetensors` header.
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

impl Fault for SafetensorsError {
    const OF: &'static str = "safetensors header";
}

/// The texts of a JSON object, such as `__metadata__`.
pub fn metadata_of_json(json: &[u8]) -> Result<BTreeMap<String, String>, serde_json::Error> {
    texts_of_json(json).map(BTreeMap::from_iter)
}

/// The keys and texts of a JSON object, in its order.
pub fn texts_of_json(json: &[u8]) -> Result<Vec<(String, String)>, serde_json::Error> {
    serde_json::from_slice(json).map(|Texts(texts)| texts)
}

/// A map from text to text, without repeated keys.
#[derive(Default)]
struct Texts(Vec<(String, String)>);

impl<'de> Deserialize<'de> for Texts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextsVisitor;

        impl<'de> Visitor<'de> for TextsVisitor {
            type Value = Texts;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of strings")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut texts = Vec::new();
                let mut keys = HashSet::new();
                while let Some((key, value)) = map.next_entry::<String, String>()? {
                    if !keys.insert(key.clone()) {
                        let key = brief(&key);
                        return Err(A::Error::custom(format_args!("'{key}' occurs twice")));
                    }
                    texts.push((key, value));
                }
                Ok(Texts(texts))
            }
        }

        deserializer.deserialize_map(TextsVisitor)
    }
}

/// The number of bytes on which type, shape and offsets agree.
fn checked_bytes(
    name: &str,
    scalar: Scalar,
    lens: &[u64],
    offsets: [u64; 2],
) -> Result<u64, SafetensorsError> {
    let tensor = || brief(name);
    let shape = || AsList(lens).to_string();
    let dtype = scalar.safetensors_name().unwrap_or(scalar.name());
    let Some(bytes) = data_bytes(lens, scalar.bits()) else {
        return Err(SafetensorsError::TooLarge { tensor: tensor(), shape: shape() });
    };
    if !ends_at_byte(lens, scalar.bits()) {
        return Err(SafetensorsError::PartialByte { tensor: tensor(), dtype, shape: shape() });
    }
    let [begin, end] = offsets;
    if end.checked_sub(begin) != Some(bytes) {
        return Err(SafetensorsError::Size {
            tensor: tensor(),
            dtype,
            shape: shape(),
            expected: bytes,
            begin,
            end,
        });
    }
    Ok(bytes)
}

/// Whether the bits of a tensor are whole bytes.
fn ends_at_byte(shape: &[u64], item_bits: u64) -> bool {
    shape.iter().fold(item_bits % 8, |rest, &len| rest * (len % 8) % 8) == 0
}
