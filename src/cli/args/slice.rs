//! The arguments of the main job.

use std::path::PathBuf;

use clap::Args;

use super::index::IndexArgs;
use super::input::InputArgs;
use super::output::OutputArgs;
use super::result::{CastArgs, FieldArgs, TransposeArgs};

#[derive(Args, Clone, Debug)]
pub(crate) struct SliceArgs {
    /// The file to read; `-` is standard input, https://... and s3://... are remote files
    pub(crate) input: PathBuf,
    /// What to select, as in NumPy: '[1, 2:4, None, ..., ::-1]'
    ///
    /// Everything when left out. Its items are listed below.
    #[arg(value_name = "INDEX", conflicts_with = "begin")]
    pub(crate) text: Option<String>,
    #[command(flatten)]
    pub(crate) index: IndexArgs,
    #[command(flatten)]
    pub(crate) field: FieldArgs,
    #[command(flatten)]
    pub(crate) transpose: TransposeArgs,
    #[command(flatten)]
    pub(crate) cast: CastArgs,
    #[command(flatten)]
    pub(crate) from: InputArgs,
    #[command(flatten)]
    pub(crate) to: OutputArgs,
    /// Copy the tensors that -t does not choose as they are (.safetensors, .npz)
    #[arg(long, help_heading = "Output")]
    pub(crate) keep_rest: bool,
    /// Give a tensor another name in the output: 'model.layers.*=blk.*'
    ///
    /// A * in OLD stands for any text, which the * in NEW carries over. Several are applied in turn.
    #[arg(long, value_name = "OLD=NEW", help_heading = "Output")]
    pub(crate) rename: Vec<String>,
}

impl SliceArgs {
    /// Whether the tensors are only converted, copied or renamed.
    pub(crate) fn takes_whole_tensors(&self) -> bool {
        let SliceArgs { text, index, transpose, .. } = self;
        let transposes = transpose.transpose.is_some() || transpose.reverse_axes;
        text.is_none() && index.strided.begin.is_none() && !index.keepdims && !transposes
    }
}
