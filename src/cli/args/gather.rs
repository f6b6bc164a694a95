//! The arguments of `gather`.

use std::path::PathBuf;

use clap::Args;
use tslice::gather::OutOfRange;
use tslice::shape::AskedAxis;

use super::input::InputArgs;
use super::output::OutputArgs;
use super::parsers::{Choice, one_axis, one_of};
use super::slice::{CastArgs, FieldArgs, ReshapeArgs, TransposeArgs};

#[derive(Args, Clone, Debug)]
pub(crate) struct GatherArgs {
    /// The file to gather from; standard input when left out or `-`
    pub(crate) params: Option<PathBuf>,
    /// The positions: a file of integers, a list '[[0, 1], [2, 3]]', or 'shuffle(42)'
    ///
    /// The file may also be a text (.txt, .csv); `-` is standard input. With --axis, 'shuffle(SEED)' is all positions
    /// of the axis in random order; 'shuffle(SEED)[:8000]' the first 8000 of these.
    #[arg(long, value_name = "FILE")]
    pub(crate) indices: PathBuf,
    /// Gather along this axis, each index by itself
    ///
    /// Negative values count from the end; a dimension may be named.
    #[arg(long, value_name = "AXIS", value_parser = one_axis)]
    pub(crate) axis: Option<AskedAxis>,
    /// Number of first axes that params and indices have in common
    ///
    /// With --axis, a negative number counts from the rank of the indices.
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true, value_parser = integer)]
    pub(crate) batch_dims: i64,
    /// With --axis: one element for each index, as np.take_along_axis
    ///
    /// The indices have the rank of the params, and negative ones count from the end.
    #[arg(long, requires = "axis", conflicts_with_all = ["batch_dims", "negative"])]
    pub(crate) elements: bool,
    /// Negative indices count from the end, as in np.take
    ///
    /// Without it they are out of range.
    #[arg(long)]
    pub(crate) negative: bool,
    /// What to do with indices out of range
    #[arg(long, value_parser = one_of(OUTSIDE), default_value = "error", value_name = "WHAT")]
    pub(crate) out_of_range: OutOfRange,
    #[command(flatten)]
    pub(crate) field: FieldArgs,
    #[command(flatten)]
    pub(crate) reshape: ReshapeArgs,
    #[command(flatten)]
    pub(crate) transpose: TransposeArgs,
    #[command(flatten)]
    pub(crate) cast: CastArgs,
    #[command(flatten)]
    pub(crate) from: InputArgs,
    /// The tensor of the indices, in a file of several
    #[arg(long, value_name = "NAME", help_heading = "Choose and name tensors")]
    pub(crate) indices_tensor: Option<String>,
    #[command(flatten)]
    pub(crate) to: OutputArgs,
}

const OUTSIDE: [Choice<OutOfRange>; 4] = [
    ("error", "It is an error that names the first one", OutOfRange::Error),
    ("zero", "Its slice is zeros (TensorFlow on GPU)", OutOfRange::Drop),
    ("clip", "It is the nearest position, 0 for a negative one (NumPy's mode)", OutOfRange::Clip),
    ("wrap", "It counts on from the other end (NumPy's mode)", OutOfRange::Wrap),
];

fn integer(text: &str) -> Result<i64, &'static str> {
    text.parse().map_err(|_| "an integer is needed")
}
