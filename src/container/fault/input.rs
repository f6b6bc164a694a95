//! What can be wrong with inputs, and with what is chosen of them.

use std::fmt;

use crate::dtype::DType;
use crate::format::{Foreign, Format, shortened};
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
    /// A dtype was given for a file that is known to be something else.
    #[error("a dtype is for raw bytes, and the input is {0}")]
    Foreign(Foreign),
    /// Something was given of which no input leaves it open.
    #[error("{given} is for raw bytes, and no input is raw bytes")]
    NoneRaw {
        /// What was given.
        given: Given,
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

/// What a caller can say about raw bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Given {
    /// The dtype.
    DType,
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
            Given::DType => "a dtype",
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
        /// The new name as it was given, `OLD=NEW`.
        rename: String,
        /// The old name.
        old: String,
        /// Whether the only tensor has no name at all.
        nameless: bool,
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

/// Why a list of an index cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ListFault {
    /// Neither integers nor booleans.
    #[error("arrays used as indices must be of integer (or boolean) type, not {0}")]
    DType(DType),
    /// An integer past NumPy's.
    #[error("integer index {0} does not fit into 64 bits")]
    Integer(i128),
    /// Two lists are to be read from standard input.
    #[error("standard input can be one list only")]
    SecondStdin,
    /// The file of the list was never opened.
    #[error("the file of a list in the index has not been opened")]
    NotOpened,
}
