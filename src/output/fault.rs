//! Why an output cannot hold what is to be written.

use crate::dtype::DType;
use crate::error::Fault;
use crate::format::text::MAX_EMPTY_ROWS;
use crate::shape::AsTuple;
use std::fmt;

/// Why an output cannot hold what is to be written.
#[derive(Debug, thiserror::Error)]
pub enum LayoutFault {
    /// The extension belongs to no output format.
    #[error("the extension .{0} names no format that can be written")]
    Extension(String),
    /// There is no extension.
    #[error("the name has no extension that tells the format")]
    NoExtension,
    /// An option does not apply to the format.
    #[error("{option} has no effect: an output of format {format} {}", .option.why_not())]
    NoEffect {
        /// The option.
        option: FormatOption,
        /// The format of the output.
        format: &'static str,
    },
    /// Outputs are files of this machine.
    #[error("outputs are not written to remote addresses")]
    Remote,
    /// A folder is written for a sharded checkpoint, or where shards have a size.
    #[error("is a directory")]
    Directory,
    /// A folder would be written to standard output.
    #[error("an output of format {format} is a folder, which needs a name")]
    Folder {
        /// The format of the output.
        format: &'static str,
    },
    /// The output would not fit into 63 bits.
    #[error("the output would have 2^63 bytes or more")]
    TooLarge,
    /// A build that does not write the format.
    #[error("this build writes no {format}: build it with --features {feature}")]
    NotBuilt {
        /// The format.
        format: &'static str,
        /// The feature that it needs.
        feature: &'static str,
    },
    /// A name that no tensor of the format can have.
    #[error("a tensor of format {format} cannot be named {name:?}: {reason}")]
    TensorName {
        /// The format of the output.
        format: &'static str,
        /// The name.
        name: String,
        /// What is wrong with the name.
        reason: &'static str,
    },
    /// The format has no such type.
    #[error("dtype {dtype} has no counterpart in the {format} format")]
    DType {
        /// The type.
        dtype: DType,
        /// The format of the output.
        format: &'static str,
    },
    /// More axes than the format has.
    #[error("an output of format {format} has at most {most} axes, and the result has {ndim}")]
    Axes {
        /// The format of the output.
        format: &'static str,
        /// How many it has at most.
        most: usize,
        /// How many there are.
        ndim: usize,
    },
    /// Rows without elements, beyond what makes sense as text.
    #[error(
        "shape {} without elements would be {rows} empty rows, an output of format {format} has at \
         most {MAX_EMPTY_ROWS}",
        AsTuple(shape)
    )]
    EmptyRows {
        /// The format of the output.
        format: &'static str,
        /// The shape of the tensor.
        shape: Vec<u64>,
        /// How many rows it would have.
        rows: u64,
    },
    /// More tensors than the format holds.
    #[error("an output of format {format} holds one tensor, not {count}")]
    Count {
        /// The format of the output.
        format: &'static str,
        /// How many there are.
        count: usize,
    },
}

impl Fault for LayoutFault {}

/// Options that apply to some output formats only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FormatOption {
    /// A name for the tensor.
    Name,
    /// New names for tensors.
    Rename,
    /// Compression.
    Deflate,
    /// Fortran order.
    OrderF,
    /// Texts of metadata.
    Metadata,
    /// The size of shards.
    ShardSize,
    /// Chunks, shards and how they are compressed.
    Chunking,
    /// Files beside those of the tensors.
    Files,
}

impl FormatOption {
    /// What is true of formats without it.
    pub fn why_not(self) -> &'static str {
        match self {
            FormatOption::Name | FormatOption::Rename => "names no tensor",
            FormatOption::Deflate => "is never compressed",
            FormatOption::OrderF => "is always in C order",
            FormatOption::Metadata => "has no metadata",
            FormatOption::ShardSize | FormatOption::Files => "is one file",
            FormatOption::Chunking => "has no chunks",
        }
    }
}

impl fmt::Display for FormatOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FormatOption::Name => "a name",
            FormatOption::Rename => "a new name",
            FormatOption::Deflate => "compression",
            FormatOption::OrderF => "order F",
            FormatOption::Metadata => "metadata",
            FormatOption::ShardSize => "a size of shards",
            FormatOption::Files => "a file beside it",
            FormatOption::Chunking => "a shape of chunks",
        })
    }
}
