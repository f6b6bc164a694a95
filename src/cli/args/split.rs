//! The arguments of `split`.

use std::path::PathBuf;

use clap::Args;
use tslice::job::MAX_PARTS;

use super::parsers::{AxisArg, axis};
use super::slice::{CopyArgs, IndexArgs};

#[derive(Args, Clone, Debug)]
pub(crate) struct SplitArgs {
    /// The file to split; `-` is standard input
    pub(crate) input: PathBuf,
    #[command(flatten)]
    pub(crate) cuts: CutsArgs,
    /// Cut tensors into tensors of one output, by their names: 'h.{l}.qkv.weight'
    ///
    /// {l} stands for any text without a dot. The output needs no {} in its name.
    #[arg(long, value_name = "PATTERN", requires = "into", conflicts_with = "name")]
    pub(crate) group: Option<String>,
    /// The name of each part: 'h.{l}.{p:q,k,v}.weight'
    ///
    /// NAME needs one piece that PATTERN does not have, which names the parts: {e} by numbers from 0 on, {p:q,k,v} by
    /// these texts.
    #[arg(long, value_name = "NAME", requires = "group", conflicts_with = "name")]
    pub(crate) into: Option<String>,
    /// Drop the axis that is cut; each part must have length 1 along it
    #[arg(long)]
    pub(crate) squeeze: bool,
    /// The axis to cut; 0 when left out
    ///
    /// A negative axis counts from the end; a dimension may be named. NAME=AXIS sets the axis of the tensors with this
    /// name or glob, and may be given again: --axis '*.o_proj.weight=1'.
    #[arg(long, value_name = "[NAME=]AXIS", value_parser = axis)]
    pub(crate) axis: Vec<AxisArg>,
    /// Refuse parts of several lengths
    ///
    /// Without it, a note on standard error says that the parts of --parts are not equal.
    #[arg(long)]
    pub(crate) equal: bool,
    #[command(flatten)]
    pub(crate) index: IndexArgs,
    #[command(flatten)]
    pub(crate) through: CopyArgs,
    /// Copy the tensors that -t or --group do not choose to every output (.safetensors, .npz)
    #[arg(long, help_heading = "Choose and name tensors")]
    pub(crate) keep_rest: bool,
}

#[derive(Args, Clone, Debug)]
#[group(multiple = false)]
pub(crate) struct CutsArgs {
    /// Cut into N parts (np.array_split)
    ///
    /// If they cannot be equal, the first parts are longer. May be left out if --into lists texts.
    #[arg(long, value_name = "N", value_parser = parts)]
    pub(crate) parts: Option<u64>,
    /// Cut into parts of these lengths, which must add up to the axis: 10,20,30 or 70%,20%,10%
    #[arg(long, value_name = "LIST")]
    pub(crate) sizes: Option<String>,
    /// Cut before these positions (np.split), or percents of the axis: 10,30 or 80%
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    pub(crate) at: Option<String>,
    /// Cut into parts of N positions; the last one may be shorter
    #[arg(long, value_name = "N", value_parser = count)]
    pub(crate) every: Option<u64>,
}

fn parts(text: &str) -> Result<u64, String> {
    match count(text)? {
        count if count <= MAX_PARTS => Ok(count),
        _ => Err(format!("from 1 to {MAX_PARTS} parts are possible")),
    }
}

fn count(text: &str) -> Result<u64, &'static str> {
    let number = text.parse().ok().filter(|&number| number > 0);
    number.ok_or("a number from 1 on is needed")
}
