//! The arguments of `concat` and `stack`, and what names several inputs.

use std::path::PathBuf;

use clap::Args;

use super::parsers::{AxisArg, axis};
use super::slice::{CopyArgs, ReshapeArgs};

/// The inputs, in the order in which they are taken.
#[derive(Args, Clone, Debug)]
pub(crate) struct InputsArgs {
    #[command(flatten)]
    pub(crate) names: NamesArgs,
    /// The names of --files-from end with NUL bytes, as find -print0 writes them
    #[arg(short = '0', long, requires = "list", help_heading = "Read the input")]
    pub(crate) null: bool,
}

#[derive(Args, Clone, Debug)]
#[group(id = "names", required = true, multiple = false)]
pub(crate) struct NamesArgs {
    /// The files to join, in this order; `-` is standard input
    #[arg(value_name = "INPUT")]
    pub(crate) inputs: Vec<PathBuf>,
    /// Read the names of the inputs from a file, one a line
    ///
    /// `-` is standard input.
    #[arg(long, value_name = "FILE", help_heading = "Read the input", group = "list")]
    pub(crate) files_from: Option<PathBuf>,
}

/// The flags that do not fit an array that grows in place.
const APPENDED_ELSEWHERE: [&str; 24] = [
    "group",
    "into",
    "output",
    "to",
    "deflate",
    "chunks",
    "shards",
    "codec",
    "order",
    "name",
    "shard_size",
    "with_files",
    "metadata",
    "metadata_from",
    "no_metadata",
    "part",
    "index",
    "reshape",
    "field",
    "group",
    "keep_rest",
    "into",
    "keepdims",
    "outer",
];

#[derive(Args, Clone, Debug)]
pub(crate) struct JoinArgs {
    #[command(flatten)]
    pub(crate) inputs: InputsArgs,
    /// The axis to join along; 0 when left out
    ///
    /// A negative axis counts from the end. The name of a dimension, without -t, joins all tensors that have it, and
    /// takes the others once. NAME=AXIS sets the axis of the tensors with this name or glob, and may be given again:
    /// --axis '*.o_proj.weight=1'.
    #[arg(long, value_name = "[NAME=]AXIS", value_parser = axis)]
    pub(crate) axis: Vec<AxisArg>,
    /// Join tensors of the inputs by their names: 'layers.{l}.experts.{e}.up'
    ///
    /// {l} stands for any text without a dot, {p:q,k,v} for one of these. Tensors that agree in the pieces of --into
    /// are joined. Their order is that of the other pieces: numbers from 0 on, or the listed texts. All inputs are
    /// one set of tensors, as in merge.
    #[arg(long, value_name = "PATTERN", requires = "into", conflicts_with = "name")]
    pub(crate) group: Option<String>,
    /// The name of each joined tensor: 'layers.{l}.experts.up'
    #[arg(long, value_name = "NAME", requires = "group", conflicts_with = "name")]
    pub(crate) into: Option<String>,
    /// What to take of every input first, as in NumPy: '[1, 2:4, ..., ::-1]'
    #[arg(long, value_name = "INDEX", allow_hyphen_values = true)]
    pub(crate) index: Option<String>,
    /// Keep the axes that integers of --index select, with length 1
    #[arg(long, requires = "index")]
    pub(crate) keepdims: bool,
    /// Take each list of --index along its own axis, as np.ix_ does
    #[arg(long, requires = "index")]
    pub(crate) outer: bool,
    /// Append the inputs to the rows of this .npy, in place
    ///
    /// Rows are added along axis 0. The header of the .npy must have room for the new shape. An interrupted run leaves
    /// the old array, followed by bytes that --force overwrites.
    #[arg(
        long,
        value_name = "FILE.npy",
        conflicts_with_all = APPENDED_ELSEWHERE,
        help_heading = "Write the output"
    )]
    pub(crate) append_to: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) reshape: ReshapeArgs,
    #[command(flatten)]
    pub(crate) through: CopyArgs,
    /// Keep the tensors that -t or --group do not choose
    ///
    /// Each is taken once: without --group it must be the same in all inputs.
    #[arg(long, help_heading = "Choose and name tensors")]
    pub(crate) keep_rest: bool,
}
