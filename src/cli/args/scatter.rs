//! The arguments of `scatter`.

use std::path::PathBuf;

use clap::Args;
use tslice::gather::OutOfRange;
use tslice::shape::AskedAxis;

use super::edit::EditArgs;
use super::input::InputArgs;
use super::parsers::{Choice, one_axis, one_of};
use super::slice::{CastArgs, ReshapeArgs};

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
    /// A number, from the end if negative, or the name of a dimension.
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
    #[arg(long, value_name = "NAME", help_heading = "Choose and name tensors")]
    pub(crate) indices_tensor: Option<String>,
    /// The tensor of the values, in a file of several
    #[arg(long, value_name = "NAME", help_heading = "Choose and name tensors")]
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
