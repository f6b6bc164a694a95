//! The arguments of `info`.

use std::ffi::OsStr;
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Arg, Args, Command};

use super::input::InputArgs;
use super::join::InputsArgs;
use super::output::threads;
use super::parsers::{Choice, one_of, size};

#[derive(Args, Clone, Debug)]
#[command(mut_arg("columns", listing_columns), mut_arg("inputs", looked_at))]
pub(crate) struct InfoArgs {
    #[command(flatten)]
    pub(crate) inputs: InputsArgs,
    #[command(flatten)]
    pub(crate) from: InputArgs,
    /// Write an index that agrees with the shards, and then look at the folder
    ///
    /// The new index replaces the old one, in one step. If the old index names shards that do not exist, all shards in
    /// the folder count.
    #[arg(long, conflicts_with_all = ["tensor", "strict"], help_heading = "Read a checkpoint")]
    pub(crate) reindex: bool,
    /// Print JSON
    ///
    /// A file whose name is not UTF-8 also has `file_percent`: its name with %XX for each byte that is not a letter or
    /// a digit.
    #[arg(long)]
    pub(crate) json: bool,
    /// Print a digest of each tensor and its name, in place of the listing
    ///
    /// BLAKE3 of the dtype, the shape and the elements in C order: the same for a tensor in every format, byte order
    /// and memory order. With --json in the field `digest`.
    #[arg(long, group = "hashes", conflicts_with = "columns", help_heading = "Compute digests")]
    pub(crate) digest: bool,
    /// Compare the tensors with the digests in a file that --digest has printed
    ///
    /// Missing, extra and different tensors are named, and the exit status is 1. It is 0 if all agree. `-` is standard
    /// input.
    #[arg(
        long,
        value_name = "MANIFEST",
        group = "hashes",
        conflicts_with_all = ["columns", "json", "sort", "min_bytes"],
        help_heading = "Compute digests"
    )]
    pub(crate) check: Option<PathBuf>,
    /// Show the names as a tree by their dots
    ///
    /// Neighbours share a line if the names, dtypes and shapes below them are the same: layers.{0..31}.
    #[arg(
        long,
        conflicts_with_all = ["columns", "json", "sort", "hashes"],
        help_heading = "List tensors"
    )]
    pub(crate) tree: bool,
    /// Number of threads [default: one a core]
    #[arg(short = 'j', long, value_name = "N", value_parser = threads, requires = "hashes", help_heading = "Compute digests")]
    pub(crate) threads: Option<u16>,
    /// Show no progress
    #[arg(short, long, requires = "hashes", help_heading = "Compute digests")]
    pub(crate) quiet: bool,
    /// The order of the tensors: bytes descend, the others ascend
    #[arg(long, value_name = "COLUMN", value_parser = one_of(SORTED), help_heading = "List tensors")]
    pub(crate) sort: Option<InfoColumn>,
    /// Leave out tensors of fewer bytes: 4096, 5GB, 500MiB
    #[arg(long, value_name = "SIZE", value_parser = size, help_heading = "List tensors")]
    pub(crate) min_bytes: Option<u64>,
}

impl InfoArgs {
    /// The names of the inputs, once the list of `--files-from` was read.
    pub(crate) fn paths(&self) -> &[PathBuf] {
        &self.inputs.names.inputs
    }

    /// The named columns, of the listing, and the numbered columns, of text inputs.
    pub(crate) fn split_columns(&mut self) -> Vec<InfoColumn> {
        let words = self.from.text.columns.as_deref().unwrap_or_default();
        let named = |word: &String| {
            let choice = COLUMNS.iter().find(|(name, ..)| name.eq_ignore_ascii_case(word));
            choice.map(|(.., column)| *column)
        };
        let columns: Vec<InfoColumn> = words.iter().filter_map(named).collect();
        if columns.len() == words.len() {
            self.from.text.columns = None;
        }
        columns
    }
}

/// The inputs of `info`.
fn looked_at(arg: Arg) -> Arg {
    arg.help("The files to look at; `-` is standard input")
}

/// `--columns` of `info`: the name of a column of the listing, or the number of a column of a text.
fn listing_columns(arg: Arg) -> Arg {
    arg.help("The columns to show, in this order: name,shape")
        .long_help(
            "The columns to show, in this order: name,shape\n\nNumbers are those of the columns of text \
             inputs that are read, as in the other commands: 1,3",
        )
        .value_parser(ColumnParser)
        .hide_short_help(false)
        .help_heading("List tensors")
}

/// Reads the names of columns, and numbers.
#[derive(Clone)]
struct ColumnParser;

impl TypedValueParser for ColumnParser {
    type Value = String;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        let number = value.to_str().filter(|text| text.parse::<i64>().is_ok());
        match number {
            Some(number) => Ok(number.to_owned()),
            None => {
                let names = PossibleValuesParser::new(COLUMNS.map(|(name, ..)| name));
                names.parse_ref(command, arg, value)
            }
        }
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let value = |(name, about, _): &Choice<InfoColumn>| PossibleValue::new(*name).help(*about);
        Some(Box::new(COLUMNS.iter().map(value)))
    }
}

/// A column of the table, by its number.
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

const SORTED: [Choice<InfoColumn>; 4] = [
    ("bytes", "The largest first", InfoColumn::Bytes),
    ("name", "", InfoColumn::Name),
    ("dtype", "By its name", InfoColumn::DType),
    ("shape", "By the first axis, then the second one, and so on", InfoColumn::Shape),
];

const COLUMNS: [Choice<InfoColumn>; 7] = [
    ("name", "", InfoColumn::Name),
    ("dtype", "", InfoColumn::DType),
    ("shape", "", InfoColumn::Shape),
    ("bytes", "How many its elements take", InfoColumn::Bytes),
    ("order", "The memory order, C or F", InfoColumn::Order),
    ("offset", "Where in the file the elements begin, in bytes", InfoColumn::Offset),
    ("file", "The file of a sharded checkpoint", InfoColumn::File),
];
