//! Causes of errors that containers find themselves.

use std::fmt;

use crate::dtype::DType;
use crate::format::text::MAX_EMPTY_ROWS;
use crate::format::{Format, shortened};
use crate::shape::AsTuple;

/// Why the files of a sharded checkpoint cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum ShardsFault {
    /// A folder is no checkpoint.
    #[error("is a directory without the index of a sharded checkpoint (*.safetensors.index.json)")]
    NoIndex,
    /// A folder holds several indexes, and none of the usual name.
    #[error("the folder holds several indexes: {}", .0.join(", "))]
    SeveralIndexes(Vec<String>),
    /// The index comes through a pipe, which lies in no folder.
    #[error("the index of a sharded checkpoint has to be opened by its name")]
    NoFolder,
    /// A shard is in another format.
    #[error("a shard has to be a .safetensors file")]
    NotSafetensors,
    /// A shard is a link to somewhere else.
    #[error("the shard lies outside of the folder of its index")]
    Outside,
}

/// Why bytes cannot be what was said of them.
#[derive(Debug, thiserror::Error)]
pub enum RawFault {
    /// A shape or an order was given for a file that tells its own.
    #[error("{given} is for raw bytes, and the input is of format {format}")]
    NotRaw {
        /// What was given.
        given: Given,
        /// The format of the file.
        format: Format,
    },
    /// The size of the data does not fit into 63 bits.
    #[error("shape: shape {} has 2^63 bytes or more", AsTuple(.0))]
    TooLarge(Vec<u64>),
    /// The file is shorter than what was said; lengths in bytes.
    #[error("{asked} bytes are asked for by shape and offset, {found} are there")]
    Short {
        /// The length that the file should have.
        asked: u64,
        /// The length that it has.
        found: u64,
    },
    /// The length of the open axis is not a whole number.
    #[error(
        "the {bytes} bytes{} are no whole number of {}",
        if *offset > 0 { format!(" from byte {offset} on") } else { String::new() },
        if known.is_empty() { format!("{dtype} elements") }
        else { format!("slabs of shape {} and dtype {dtype}", AsTuple(known)) }
    )]
    NotWhole {
        /// How many bytes there are.
        bytes: u64,
        /// Where they begin in the file.
        offset: u64,
        /// The lengths of the other axes.
        known: Vec<u64>,
        /// The type of the elements.
        dtype: DType,
    },
    /// The file names another dtype.
    #[error("dtype {given}: the file says {theirs}")]
    OtherDType {
        /// The dtype that was given.
        given: DType,
        /// The dtype of the file.
        theirs: DType,
    },
    /// The elements of the file have another size.
    #[error(
        "dtype {given}: its elements have {} bits, those of the file's {theirs} {}",
        given.item_bits(),
        theirs.item_bits()
    )]
    OtherSize {
        /// The dtype that was given.
        given: DType,
        /// The dtype of the file.
        theirs: DType,
    },
}

/// What a caller can say about raw bytes besides their dtype.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Given {
    /// The shape.
    Shape,
    /// The memory order.
    Order,
    /// Where the elements begin.
    Offset,
}

impl fmt::Display for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Given::Shape => "a shape",
            Given::Order => "an order",
            Given::Offset => "an offset",
        })
    }
}

/// Why tensors cannot be chosen.
#[derive(Debug, thiserror::Error)]
pub enum SelectFault {
    /// The file holds no tensors.
    #[error("the file holds no tensors")]
    NoTensors,
    /// One tensor is needed, and none was named.
    #[error("the file holds {} tensors, and one has to be named", names.len())]
    NotNamed {
        /// The names that there are.
        names: Vec<String>,
        /// Whether the output could hold all of them.
        holds_several: bool,
    },
    /// One tensor is needed, and several match.
    #[error("{0} tensors match, and one is needed")]
    Several(usize),
    /// A name was asked for in a file that has none.
    #[error("the tensor has no name")]
    Nameless {
        /// The name or glob.
        pattern: String,
    },
    /// No tensor has that name or matches that glob.
    #[error("no tensor is named {pattern:?}")]
    NotFound {
        /// The name or glob.
        pattern: String,
        /// The names that there are.
        names: Vec<String>,
    },
    /// A text that is no name and no glob either.
    #[error("{pattern}: {reason}")]
    Glob {
        /// The text.
        pattern: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Several tensors are to be written under one name.
    #[error("one name is given, and several tensors are chosen")]
    OneName,
    /// More tensors than the output can hold.
    #[error("{count} tensors are chosen, and an output of format {format} holds one")]
    HoldsOne {
        /// How many.
        count: usize,
        /// Whether the others were to be kept.
        keep_rest: bool,
        /// The format of the output.
        format: &'static str,
    },
    /// What is to be left out cannot be chosen.
    #[error("to be left out: {0}")]
    Excluded(Box<SelectFault>),
    /// All that is chosen is left out.
    #[error("every tensor that is chosen is left out")]
    NothingLeft,
    /// A new name that is not written `OLD=NEW`.
    #[error("{0}: OLD=NEW is needed")]
    NoRename(String),
    /// An old and a new name with different numbers of stars.
    #[error("{0}: OLD and NEW must have the same number of '*'")]
    UnevenRename(String),
    /// A new name for a tensor that is not there.
    #[error("{rename}: no tensor of the output is named {old:?} in the input")]
    RenameNotFound {
        /// As it was given.
        rename: String,
        /// The old name.
        old: String,
    },
    /// A second new name for a tensor.
    #[error("{rename}: that tensor is renamed twice")]
    RenamedTwice {
        /// The second one.
        rename: String,
        /// Whether one of the two is a glob, so that it depends on the names of the file.
        by_glob: bool,
    },
    /// Two tensors would have one name.
    #[error("two tensors of the output would be named {:?}", shortened(.0))]
    SameName(String),
}

/// Why fields cannot be taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldFault {
    /// The elements have no fields.
    #[error("dtype {0} has no fields")]
    NotStructured(DType),
    /// No field has that name.
    #[error("no field is named {name:?}; the fields are {}", names.join(", "))]
    NotFound {
        /// The name.
        name: String,
        /// The names that there are.
        names: Vec<String>,
    },
    /// A field is named twice.
    #[error("the field {0:?} is named twice")]
    Twice(String),
    /// The axes of the items and those of the field together are too many.
    #[error("the field would have {0} axes, and at most {max} are possible", max = crate::shape::MAX_NDIM)]
    TooManyAxes(usize),
}

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
    /// The file changed between the beginning and the end of the part.
    #[error("changed while a part of the output was made from it")]
    Changed,
}

/// Why a slice cannot be read into memory.
#[derive(Debug, thiserror::Error)]
pub enum ReadFault {
    /// The elements are of another type.
    #[error("the elements are of dtype {dtype}, and {asked} was asked for")]
    DType {
        /// The type that was asked for.
        asked: &'static str,
        /// The type that they have.
        dtype: DType,
    },
    /// More elements than memory can hold.
    #[error("the elements do not fit into memory")]
    TooLarge,
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

/// Why a text is no index tensor.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IntegersFault {
    /// Something else than an integer.
    #[error("line {line}: '{text}' is not an integer")]
    NotAnInteger {
        /// The line, from 1 on.
        line: u64,
        /// What stands there, its first characters.
        text: String,
    },
    /// An integer past 64 bits.
    #[error("line {line}: {text} does not fit into 64 bits")]
    TooLarge {
        /// The line, from 1 on.
        line: u64,
        /// The integer.
        text: String,
    },
    /// A comma without a number on each side.
    #[error("line {line}: a number is missing beside a comma")]
    Missing {
        /// The line, from 1 on.
        line: u64,
    },
    /// Rows of different lengths.
    #[error("line {line} holds {found} numbers, the lines before it {expected}")]
    Ragged {
        /// The line, from 1 on.
        line: u64,
        /// How many numbers it holds.
        found: u64,
        /// How many the first line holds.
        expected: u64,
    },
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
        /// Its shape, after an index.
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
        /// Its dtype.
        dtype: DType,
        /// The dtype of the first input.
        first: DType,
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
        /// Their sum.
        sum: u128,
        /// The length of the axis.
        len: u64,
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

/// Why a list of an index cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ListFault {
    /// Neither integers nor booleans.
    #[error("arrays used as indices must be of integer (or boolean) type, not {0}")]
    DType(DType),
    /// Two lists are to be read from standard input.
    #[error("standard input can be one list only")]
    SecondStdin,
    /// The file of the list was never opened.
    #[error("the file of a list in the index has not been opened")]
    NotOpened,
}
