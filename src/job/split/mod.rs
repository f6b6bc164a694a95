//! One input as several outputs: NumPy's split and array_split, to files that appear together, or
//! to tensors of one file (`by_name`).
//!
//! 1. [`Cuts`] say where the axis is cut, [`PartNames`] how the files are named.
//!
//! 2. [`Split::check`] prepares every output and makes all the checks that writing would fail at,
//!    before the first one is begun.
//!
//! 3. [`Split::write`] copies a slice for each part, all in one job, to outputs that are put in
//!    place together at the end ([`SeveralSinks`](crate::sink::SeveralSinks)).

use crate::error::{ErrorKind, Fault};

mod by_name;
mod cuts;
mod file_names;
mod outputs;

pub use cuts::{Cuts, Extent, MAX_PARTS, WHOLE_AXIS};
pub use file_names::PartNames;
pub use outputs::{PartsTo, Split, SplitOptions};

/// Why an input cannot be split.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SplitFault {
    /// File names without a place for the part's number.
    #[error("the name has no {{}} for the number of the part")]
    NoPlace,
    /// The result has no such axis.
    #[error("axis {axis} is out of bounds for array of dimension {ndim}")]
    Axis {
        /// The axis that was asked for.
        axis: i64,
        /// How many axes there are.
        ndim: usize,
    },
    /// Lengths that do not add up to the length of the axis.
    #[error("the sizes of the parts add up to {sum}, and the axis has size {len}")]
    Sizes {
        /// The sum of the lengths.
        sum: u128,
        /// The length of the axis.
        len: u64,
    },
    /// Lengths that are all shares of the axis, and do not add up to it.
    #[error("the sizes of the parts add up to {0}% of the axis, not to 100%")]
    Shares(f64),
    /// Cuts within blocks of elements.
    #[error(
        "the axis is stored in blocks of {block} elements: a cut at {number} would divide a block"
    )]
    PartOfBlock {
        /// A length or a position.
        number: u64,
        /// Elements of a block.
        block: u64,
    },
    /// More parts than can be made.
    #[error("the axis would be cut into {count} parts, and at most {most} are possible")]
    Parts {
        /// The number of parts.
        count: u64,
        /// How many there can be.
        most: u64,
    },
    /// Parts of different lengths, where equal lengths are required.
    #[error(
        "the axis has size {len}, and its {count} parts have sizes from {shortest} to {longest}"
    )]
    Uneven {
        /// The length of the axis.
        len: u64,
        /// The number of parts.
        count: u64,
        /// The length of the shortest part.
        shortest: u64,
        /// The length of the longest one.
        longest: u64,
    },
    /// A number of parts that is not the number of texts that name them.
    #[error("the axis would be cut into {count} parts, and the list in the name has {texts} texts")]
    Texts {
        /// The number of parts.
        count: u64,
        /// The number of texts.
        texts: u64,
        /// Whether the user asked for this number of parts, whatever is cut.
        is_asked: bool,
    },
    /// The axis is to be dropped, but this part does not have exactly one position.
    #[error("a part has size {0} along the axis, and only size 1 can be dropped")]
    Squeeze(u64),
    /// Tensors that would be cut into different numbers of parts.
    #[error("the axis would be cut into {count} parts, and tensor {first_name:?} into {first}")]
    Counts {
        /// The number of parts.
        count: u64,
        /// The name of the first tensor.
        first_name: String,
        /// The number of its parts.
        first: u64,
    },
}

impl Fault for SplitFault {
    fn kind(&self) -> ErrorKind {
        if let SplitFault::Axis { .. } = self { ErrorKind::Index } else { ErrorKind::Invalid }
    }
}
