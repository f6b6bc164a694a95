//! The arguments of `explain`.

use clap::{Args, ValueHint};

use super::input::InputArgs;
use super::slice::{FieldArgs, IndexArgs, TransposeArgs};

#[derive(Args, Clone, Debug)]
pub(crate) struct ExplainArgs {
    /// The file that the index is for; with --shape, the index itself
    #[arg(value_hint = ValueHint::AnyPath)]
    pub(crate) input: Option<String>,
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
