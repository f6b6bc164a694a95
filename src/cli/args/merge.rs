//! The arguments of `merge`.

use std::path::PathBuf;

use clap::Args;

use super::join::InputsArgs;
use super::slice::CopyArgs;

#[derive(Args, Clone, Debug)]
pub(crate) struct MergeArgs {
    #[command(flatten)]
    pub(crate) inputs: InputsArgs,
    /// Take the tensor, and the metadata, of the first input if names or keys repeat
    #[arg(long)]
    pub(crate) first: bool,
    /// Take the tensor of the last input, at the position of the first
    #[arg(long, conflicts_with = "first")]
    pub(crate) last: bool,
    #[command(flatten)]
    pub(crate) through: CopyArgs,
    /// Give a tensor another name in the output: 'model.layers.{l}.w=blk.{l}'
    ///
    /// {l} matches any text without a dot, {p:q,k} one of these, * any; NEW may use them. A number before it names
    /// an input, from 0 on: '1:weight=adapter.weight'. May be given again.
    #[arg(long, value_name = "[N:]OLD=NEW", help_heading = "Choose and name tensors")]
    pub(crate) rename: Vec<String>,
    /// Read new names from a file: OLD=NEW a line, or a JSON object (applied before --rename)
    ///
    /// `-` is standard input.
    #[arg(long, value_name = "FILE", help_heading = "Choose and name tensors")]
    pub(crate) rename_from: Option<PathBuf>,
}
