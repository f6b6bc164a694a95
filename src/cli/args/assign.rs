//! The arguments of `assign`.

use std::path::PathBuf;

use clap::Args;

use super::edit::EditArgs;
use super::input::InputArgs;
use super::slice::{CastArgs, IndexArgs};

#[derive(Args, Clone, Debug)]
pub(crate) struct AssignArgs {
    /// The file to change
    pub(crate) target: PathBuf,
    #[command(flatten)]
    pub(crate) what: ValueArgs,
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
#[group(required = true, multiple = false)]
pub(crate) struct ValueArgs {
    /// The file whose elements are written, of the slice's shape
    ///
    /// `-` is standard input.
    #[arg(long, value_name = "FILE")]
    pub(crate) value: Option<PathBuf>,
    /// A number that is written everywhere: -1, 0x10, 1.5e-3, nan, -inf, 1+2j, true
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true, conflicts_with_all = ["cast", "casting"])]
    pub(crate) fill: Option<String>,
}
