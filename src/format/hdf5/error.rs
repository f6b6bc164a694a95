//! Why a file of HDF5, or a dataset of it, cannot be read.

use super::super::error::brief;

/// Why a file or a dataset cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Hdf5Error {
    /// What is wrong with the file.
    #[error("{0}")]
    Damaged(String),
    /// A file that is shorter than its superblock says.
    #[error("truncated file: it has {found} bytes, and by its superblock {expected}")]
    Truncated {
        /// The bytes that it should have.
        expected: u64,
        /// Those that it has.
        found: u64,
    },
    /// A dtype without a counterpart.
    #[error("elements that are {0} have no counterpart here")]
    DType(String),
    /// A dataset without a shape.
    #[error("it has no elements and no shape (a null dataspace)")]
    Null,
    /// A structure of MATLAB that has none.
    #[error("it is a MATLAB structure without fields, which has no elements")]
    NoFields,
    /// A dataset whose elements lie in other datasets.
    #[error("virtual datasets are not read")]
    Virtual,
    /// A dataset whose elements lie in other files.
    #[error("its elements lie in other files, which are not read")]
    External,
    /// Messages of headers in a table that all objects share.
    #[error("its header is kept in a table of shared messages, which is not read")]
    SharedMessages,
    /// A filter that is not undone here.
    #[error("its chunks are stored by the filter {0}, which is not read")]
    Filter(String),
    /// A filter whose codec this build has not.
    #[error(
        "its chunks are stored by the filter {0}, whose codec this build has not: \
         build it with --features hdf5,zarr"
    )]
    Codec(String),
    /// A dataset whose elements lie behind the end of the file.
    #[error("its elements lie behind the end of the file")]
    CutShort,
    /// More bytes than can be counted.
    #[error("it is too large: its bytes do not fit in 63 bits")]
    TooLarge,
    /// A group that is too deep.
    #[error("its groups lie more than {0} deep in each other")]
    Deep(usize),
    /// Too many names.
    #[error("its groups and links make over {0} names")]
    Endless(usize),
}

/// What is wrong with a file, in one line.
pub(super) fn damaged(what: &str) -> Hdf5Error {
    Hdf5Error::Damaged(brief(what))
}
