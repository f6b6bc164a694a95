//! The arguments of `concat` and `stack`, and what names several inputs.

use std::path::PathBuf;

use clap::Args;

use super::axis::{AxisArg, axis};
use super::result::ThroughArgs;

/// The inputs, in the order in which they are taken.
#[derive(Args, Clone, Debug)]
pub(crate) struct InputsArgs {
    #[command(flatten)]
    pub(crate) names: NamesArgs,
    /// The names of --files-from end with NUL bytes, as find -print0 writes them
    #[arg(short = '0', long, requires = "list", help_heading = "Input")]
    pub(crate) null: bool,
}

/// Their names.
#[derive(Args, Clone, Debug)]
#[group(id = "names", required = true, multiple = false)]
pub(crate) struct NamesArgs {
    /// The files to join, in this order; `-` is standard input
    #[arg(value_name = "INPUT")]
    pub(crate) inputs: Vec<PathBuf>,
    /// Read the names of the inputs from a file, one a line
    ///
    /// `-` is standard input.
    #[arg(long, value_name = "FILE", help_heading = "Input", group = "list")]
    pub(crate) files_from: Option<PathBuf>,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct JoinArgs {
    #[command(flatten)]
    pub(crate) inputs: InputsArgs,
    /// The axis to join along; 0 when left out
    ///
    /// A negative one counts from the end. With a name or glob before it, it is the axis of those
    /// tensors, which may be given again: --axis '*.o_proj.weight=1'.
    #[arg(long, value_name = "[NAME=]AXIS", value_parser = axis)]
    pub(crate) axis: Vec<AxisArg>,
    /// What to take of every input first, as in NumPy: '[1, 2:4, ..., ::-1]'
    #[arg(long, value_name = "INDEX", allow_hyphen_values = true)]
    pub(crate) index: Option<String>,
    /// Keep the axes that integers of --index select, with length 1
    #[arg(long, requires = "index")]
    pub(crate) keepdims: bool,
    /// Take each list of --index along its own axis, as np.ix_ does
    #[arg(long, requires = "index")]
    pub(crate) outer: bool,
    #[command(flatten)]
    pub(crate) through: ThroughArgs,
    /// Take the tensors that -t does not choose once
    ///
    /// They must be the same in all inputs.
    #[arg(long, help_heading = "Output")]
    pub(crate) keep_rest: bool,
}
