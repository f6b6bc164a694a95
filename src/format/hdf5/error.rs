//! Why a file of HDF5, or a dataset of it, cannot be read.

/// Why a file or a dataset cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Hdf5Error {
    /// What the reader of the format says.
    #[error("{0}")]
    Damaged(String),
    /// A dtype without a counterpart.
    #[error("elements that are {0} have no counterpart here")]
    DType(String),
    /// A dataset whose elements lie in other datasets.
    #[error("virtual datasets are not read")]
    Virtual,
    /// A filter that is not undone here.
    #[error("its chunks are stored by the filter {0}, which is not read")]
    Filter(String),
    /// A dataset whose elements lie behind the end of the file.
    #[error("its elements lie behind the end of the file")]
    CutShort,
    /// More bytes than can be counted.
    #[error("it is too large: its bytes do not fit in 63 bits")]
    TooLarge,
    /// Groups that lie in themselves.
    #[error(
        "a group lies in itself, or groups lie more than 100 deep in each other, or there are over a million of them"
    )]
    Endless,
}
