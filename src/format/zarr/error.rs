//! Why an array of Zarr cannot be read.

/// Why an array cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ZarrError {
    /// Metadata that break the rules, or want what is not there.
    #[error("{0}")]
    Metadata(String),
    /// A dtype without a counterpart.
    #[error("dtype {0} has no counterpart here")]
    DType(String),
    /// Chunks of different shapes.
    #[error("the chunk grid {0} is not read: only regular ones are")]
    Grid(String),
    /// A value of chunks that are not stored, which the dtype has not.
    #[error("the fill value is none of dtype {0}")]
    Fill(String),
}
