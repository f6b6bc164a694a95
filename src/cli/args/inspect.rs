//! The arguments of `info` and `explain`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::choice::{Choice, one_of};
use super::index::IndexArgs;
use super::input::InputArgs;
use super::result::{FieldArgs, TransposeArgs};
use super::size::size;

#[derive(Args, Clone, Debug)]
pub(crate) struct InfoArgs {
    /// The files to look at; `-` is standard input
    #[arg(required = true, value_name = "INPUT")]
    pub(crate) inputs: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) from: InputArgs,
    /// Write an index that agrees with the shards, and then look at the folder
    ///
    /// Beside the shards, in place of an index that is there; whole or not at all. Where shards that the index
    /// names are not there, those that are there count, whatever it says of them.
    #[arg(long, conflicts_with_all = ["tensor", "strict"], help_heading = "Checkpoint")]
    pub(crate) reindex: bool,
    /// Print JSON
    ///
    /// A file whose name is not UTF-8 has also `file_percent`, its name with %XX for each byte that is
    /// no letter or digit.
    #[arg(long)]
    pub(crate) json: bool,
    /// The order of the tensors: bytes descend, the others ascend
    #[arg(long, value_name = "COLUMN", value_parser = one_of(SORTED), help_heading = "Listing")]
    pub(crate) sort: Option<InfoColumn>,
    /// Leave out tensors of fewer bytes: 4096, 5GB, 500MiB
    #[arg(long, value_name = "SIZE", value_parser = size, help_heading = "Listing")]
    pub(crate) min_bytes: Option<u64>,
    /// The columns to show, in this order: name,shape
    #[arg(long, value_name = "LIST", value_parser = one_of(COLUMNS), value_delimiter = ',', conflicts_with = "json", help_heading = "Listing")]
    pub(crate) columns: Vec<InfoColumn>,
}

/// A column of the table, by its place in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InfoColumn {
    Name,
    DType,
    Shape,
    Bytes,
    Order,
    Offset,
    File,
}

/// The columns by which tensors are sorted.
const SORTED: [Choice<InfoColumn>; 4] = [
    ("bytes", "The largest first", InfoColumn::Bytes),
    ("name", "", InfoColumn::Name),
    ("dtype", "By its name", InfoColumn::DType),
    ("shape", "By the first axis, then the second one, and so on", InfoColumn::Shape),
];

/// All columns.
const COLUMNS: [Choice<InfoColumn>; 7] = [
    ("name", "", InfoColumn::Name),
    ("dtype", "", InfoColumn::DType),
    ("shape", "", InfoColumn::Shape),
    ("bytes", "How many its elements take", InfoColumn::Bytes),
    ("order", "The memory order, C or F", InfoColumn::Order),
    ("offset", "Where in the file the elements begin, in bytes", InfoColumn::Offset),
    ("file", "The file of a sharded checkpoint", InfoColumn::File),
];

#[derive(Args, Clone, Debug)]
pub(crate) struct ExplainArgs {
    /// The file whose shape counts, or with --shape the index itself
    #[arg(value_hint = ValueHint::AnyPath)]
    pub(crate) input: Option<String>,
    /// The index, as in NumPy; everything when left out
    ///
    /// `tslice --help` says what may stand in it.
    #[arg(value_name = "INDEX", conflicts_with = "begin")]
    pub(crate) text: Option<String>,
    #[command(flatten)]
    pub(crate) index: IndexArgs,
    #[command(flatten)]
    pub(crate) field: FieldArgs,
    #[command(flatten)]
    pub(crate) transpose: TransposeArgs,
    #[command(flatten)]
    pub(crate) from: InputArgs,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
