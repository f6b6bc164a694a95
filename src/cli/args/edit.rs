//! The arguments of `assign` and `scatter`, which change a file.

use std::path::PathBuf;

use clap::Args;
use tslice::gather::OutOfRange;
use tslice::shape::AskedAxis;

use super::input::InputArgs;
use super::output::MetadataArgs;
use super::parsers::{Choice, one_axis, one_of};
use super::slice::{CastArgs, IndexArgs, ReshapeArgs};

#[derive(Args, Clone, Debug)]
pub(crate) struct AssignArgs {
    /// The file to change
    pub(crate) target: PathBuf,
    /// Where to write, as in NumPy: '[1, 2:4, ..., ::-1]'
    ///
    /// Everywhere when left out. `tslice --help` says what may stand in it.
    #[arg(value_name = "INDEX", conflicts_with = "begin")]
    pub(crate) text: Option<String>,
    #[command(flatten)]
    pub(crate) what: WhatArgs,
    /// The tensor to take, in a value file of several
    #[arg(long, value_name = "NAME", conflicts_with = "fill")]
    pub(crate) value_tensor: Option<String>,
    /// Stretch the value to the slice's shape, as NumPy does
    #[arg(long, conflicts_with = "fill")]
    pub(crate) broadcast: bool,
    #[command(flatten)]
    pub(crate) index: IndexArgs,
    #[command(flatten)]
    pub(crate) from: InputArgs,
    #[command(flatten)]
    pub(crate) cast: CastArgs,
    #[command(flatten)]
    pub(crate) to: EditArgs,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct ScatterArgs {
    /// The file to change
    pub(crate) target: PathBuf,
    /// The positions: a file of integers, or a list: '[[0, 1], [2, 3]]'
    ///
    /// The file may also be a text (.txt, .csv); `-` is standard input.
    #[arg(long, value_name = "FILE")]
    pub(crate) indices: PathBuf,
    /// The file whose slices are written; `-` is standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) values: PathBuf,
    /// With --elements: the axis of the positions
    ///
    /// Its number, a negative one counted from the end, or the name of its dimension.
    #[arg(long, value_name = "AXIS", requires = "elements", value_parser = one_axis)]
    pub(crate) axis: Option<AskedAxis>,
    /// With --axis: one element for each index, as np.put_along_axis
    ///
    /// The indices have the rank of the target, negative ones count from the end, and the values
    /// are broadcast.
    #[arg(long, requires = "axis")]
    pub(crate) elements: bool,
    /// What to do with positions out of range, negative ones included
    #[arg(long, value_parser = one_of(BEYOND), default_value = "error", value_name = "WHAT")]
    pub(crate) out_of_range: OutOfRange,
    /// The tensor of the indices, in a file of several
    #[arg(long, value_name = "NAME", help_heading = "Input")]
    pub(crate) indices_tensor: Option<String>,
    /// The tensor of the values, in a file of several
    #[arg(long, value_name = "NAME", help_heading = "Input")]
    pub(crate) values_tensor: Option<String>,
    #[command(flatten)]
    pub(crate) reshape: ReshapeArgs,
    #[command(flatten)]
    pub(crate) from: InputArgs,
    #[command(flatten)]
    pub(crate) cast: CastArgs,
    #[command(flatten)]
    pub(crate) to: EditArgs,
}

const BEYOND: [Choice<OutOfRange>; 2] = [
    ("error", "It is an error that names the first one", OutOfRange::Error),
    ("skip", "Nothing is written there", OutOfRange::Drop),
];

#[derive(Args, Clone, Debug)]
#[group(required = true, multiple = false)]
pub(crate) struct WhatArgs {
    /// The file whose elements are written, of the slice's shape
    ///
    /// `-` is standard input.
    #[arg(long, value_name = "FILE")]
    pub(crate) value: Option<PathBuf>,
    /// A number that is written everywhere: -1, 0x10, 1.5e-3, nan, -inf, 1+2j, true
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true, conflicts_with_all = ["cast", "casting"])]
    pub(crate) fill: Option<String>,
}

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Output")]
pub(crate) struct EditArgs {
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    #[command(flatten)]
    pub(crate) metadata: MetadataArgs,
    /// Replace the output if it exists
    #[arg(short, long, conflicts_with = "in_place")]
    pub(crate) force: bool,
    /// Wait until the disk has the output
    #[arg(long)]
    pub(crate) fsync: bool,
    /// Number of threads [default: one a core]
    #[arg(short = 'j', long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) threads: Option<u16>,
    /// Check everything, print what would be written, write nothing
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
    /// With --dry-run: print JSON
    #[arg(long, requires = "dry_run")]
    pub(crate) json: bool,
    /// Show no progress
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// A changed copy, or the file itself.
#[derive(Args, Clone, Debug)]
#[group(required = true, multiple = false)]
pub(crate) struct PlaceArgs {
    /// The file to write, a copy of TARGET with the change in it
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Change TARGET itself
    #[arg(long)]
    pub(crate) in_place: bool,
}
