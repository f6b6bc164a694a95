//! What can be wrong with outputs, and with inputs that go to one or several of them together.

use std::fmt;

use crate::dtype::DType;
use crate::format::text::MAX_EMPTY_ROWS;
use crate::shape::AsTuple;

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
    /// A folder is written for a sharded checkpoint only.
    #[error("is a directory")]
    Directory,
    /// The output would not fit into 63 bits.
    #[error("the output would have 2^63 bytes or more")]
    TooLarge,
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
}

impl FormatOption {
    /// What is true of formats without it.
    pub fn why_not(self) -> &'static str {
        match self {
            FormatOption::Name | FormatOption::Rename => "names no tensor",
            FormatOption::Deflate => "is never compressed",
            FormatOption::OrderF => "is always in C order",
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
        })
    }
}

/// Why a file cannot be changed.
#[derive(Debug, thiserror::Error)]
pub enum EditFault {
    /// Not a regular file.
    #[error("only a regular file can be changed")]
    NotAFile,
    /// A file behind a network.
    #[error("a remote file cannot be changed, nor copied with a change")]
    Remote,
    /// An archive, whose checksums would be wrong.
    #[error("a .npz archive cannot be changed")]
    Archive,
    /// An index of several files.
    #[error("a sharded checkpoint cannot be changed as a whole")]
    Sharded,
    /// What is written is read from the bytes that it overwrites.
    #[error(
        "its bytes are to be overwritten: a run that is killed could not be completed by running \
         it again"
    )]
    Overlap,
    /// The value has another dtype.
    #[error("the value has dtype {value}, the target has {target}")]
    DType {
        /// The dtype of the value.
        value: DType,
        /// The dtype of the target.
        target: DType,
    },
    /// Values that share bytes are not cast where they are assigned.
    #[error("values of dtype {0} cannot be cast here: they are smaller than a byte")]
    PartsOfBytes(DType),
}

/// Why an output cannot be written in parts.
#[derive(Debug, thiserror::Error)]
pub enum PartFault {
    /// The places of elements in the output depend on other elements.
    #[error("cannot be written in parts: elements have no fixed place in an output of format {0}")]
    NotFixed(&'static str),
    /// The places of compressed elements depend on those before them.
    #[error("cannot be written in parts: compressed elements have no fixed place")]
    Compressed,
    /// A pipe or a device, which other processes cannot read again.
    #[error("is no regular file, and parts are read by several processes")]
    NotAFile,
    /// A remote file: what other machines find there is not compared.
    #[error("is remote, and an output of remote inputs is not written in parts")]
    Remote,
    /// The output would replace what the other parts read.
    #[error("is the output too, which the other parts would read when it is in place")]
    InputIsOutput,
}

/// Why a picture cannot be drawn.
#[derive(Debug, thiserror::Error)]
pub enum PictureFault {
    /// The elements are no real numbers.
    #[error("a picture shows real numbers, and the dtype is {0}")]
    DType(DType),
    /// The encoder of pictures failed.
    #[error("the picture cannot be encoded: {0}")]
    Encoding(String),
}

/// Why inputs do not fit together. The error names the file of the input at fault.
#[derive(Debug, thiserror::Error)]
pub enum JoinFault {
    /// There are no inputs.
    #[error("at least one input is needed")]
    Nothing,
    /// Standard input is named twice.
    #[error("standard input can be only one of the inputs")]
    StdinTwice,
    /// The result has no such axis.
    #[error("axis {axis} is out of bounds for array of dimension {ndim}")]
    Axis {
        /// The axis that was asked for.
        axis: i64,
        /// How many axes there are.
        ndim: usize,
    },
    /// A tensor without axes has none to be joined along.
    #[error("zero-dimensional arrays cannot be concatenated")]
    NoAxes,
    /// Another shape than that of the first input.
    #[error(
        "input {number} has shape {}, which does not fit shape {} of input 0: {}",
        AsTuple(shape), AsTuple(first),
        match axis {
            _ if shape.len() != first.len() => "they need as many axes".to_owned(),
            Some(axis) => format!("they may differ along axis {axis} only"),
            None => "they must be equal".to_owned(),
        }
    )]
    Shape {
        /// The number of the input, from 0.
        number: usize,
        /// The shape of the input, after an index.
        shape: Vec<u64>,
        /// The shape of the first input.
        first: Vec<u64>,
        /// The axis along which they may differ.
        axis: Option<usize>,
    },
    /// Another dtype than that of the first input.
    #[error("input {number} has dtype {dtype}, input 0 has {first}")]
    DType {
        /// The number of the input, from 0.
        number: usize,
        /// The dtype of the input.
        dtype: DType,
        /// The dtype of the first input.
        first: DType,
        /// The dtype that both can be cast to (np.result_type), where there is one.
        common: Option<DType>,
    },
    /// A tensor of the first input is missing.
    #[error("input {number} has no tensor {name:?}, which input 0 has")]
    Missing {
        /// The number of the input, from 0.
        number: usize,
        /// The name.
        name: String,
    },
    /// A tensor that the first input does not have.
    #[error("input {number} has a tensor {name:?}, which input 0 does not have")]
    Surplus {
        /// The number of the input, from 0.
        number: usize,
        /// The name.
        name: String,
    },
    /// A tensor that is to be taken once differs.
    #[error("input {number} has other bytes than input 0, so that it cannot be taken once")]
    Differs {
        /// The number of the input, from 0.
        number: usize,
    },
    /// Elements smaller than a byte, and a part would not begin on a whole byte.
    #[error("input {number} has {item_bits}-bit elements that do not fill whole bytes here")]
    CutsByte {
        /// The number of the input, from 0.
        number: usize,
        /// Bits an element.
        item_bits: u64,
    },
    /// An input is not what it was when its header was read first.
    #[error("the file was changed while it was being read")]
    Changed,
}

/// Why an input cannot be split.
#[derive(Debug, thiserror::Error)]
pub enum SplitFault {
    /// The result has no such axis.
    #[error("axis {axis} is out of bounds for array of dimension {ndim}")]
    Axis {
        /// The axis that was asked for.
        axis: i64,
        /// How many axes there are.
        ndim: usize,
    },
    /// Lengths that do not add up to that of the axis.
    #[error("the sizes of the parts add up to {sum}, and the axis has size {len}")]
    Sizes {
        /// The sum of the lengths.
        sum: u128,
        /// The length of the axis.
        len: u64,
    },
    /// More parts than files are made at a time.
    #[error("it would be cut into {count} parts, and at most {most} are possible")]
    Parts {
        /// The number of parts.
        count: u64,
        /// How many there can be.
        most: u64,
    },
    /// Tensors that would be cut into different numbers of parts.
    #[error("it would be cut into {count} parts, and tensor {first_name:?} into {first}")]
    Counts {
        /// The number of parts.
        count: u64,
        /// The name of the first tensor.
        first_name: String,
        /// The number of its parts.
        first: u64,
    },
}
