//! Why an index is invalid, or does not match a shard.

use crate::format::brief::brief;

/// The longest index in bytes: as long as the longest header of a `.safetensors`.
pub const MAX_INDEX: u64 = 100_000_000;

/// Why an index is invalid, or does not match a shard.
#[derive(Debug, thiserror::Error)]
pub enum ShardsError {
    /// Longer than [`MAX_INDEX`].
    #[error("more than {MAX_INDEX} bytes long")]
    TooLong,
    /// A JSON object without a `weight_map`.
    #[error("it has no \"weight_map\"")]
    NoIndex,
    /// Not JSON, or not of the expected form.
    #[error("{}", brief(&.0.to_string()))]
    Json(#[from] serde_json::Error),
    /// A tensor is listed twice.
    #[error("two tensors are named '{}'", brief(.0))]
    DuplicateName(String),
    /// A file name that is not a plain name.
    #[error("\"{}\" is not the name of a file in the folder of the index", brief(.0))]
    FileName(String),
    /// A tensor that is listed but not in its shard.
    #[error(
        "{} does not hold tensor '{}', which the index places there",
        brief(.file), brief(.tensor)
    )]
    Missing {
        /// The shard.
        file: String,
        /// The tensor.
        tensor: String,
    },
    /// A tensor that two shards hold.
    #[error("tensor '{}' is in both {} and {}", brief(.tensor), brief(.first), brief(.second))]
    Several {
        /// The tensor.
        tensor: String,
        /// A shard.
        first: String,
        /// Another one.
        second: String,
    },
    /// A tensor in a shard that the index leaves out.
    #[error(
        "{} holds tensor '{}', which the index leaves out",
        brief(.file), brief(.tensor)
    )]
    Unlisted {
        /// The shard.
        file: String,
        /// The tensor.
        tensor: String,
    },
}
