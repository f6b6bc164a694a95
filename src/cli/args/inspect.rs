//! The arguments of `info` and `explain`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::index::IndexArgs;
use super::input::InputArgs;
use super::result::{FieldArgs, TransposeArgs};

#[derive(Args, Clone, Debug)]
pub(crate) struct InfoArgs {
    /// The files to look at; `-` is standard input
    #[arg(required = true, value_name = "INPUT")]
    pub(crate) inputs: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) from: InputArgs,
    /// Print JSON
    ///
    /// A file whose name is not UTF-8 has also `file_percent`, its name with %XX for each byte that is
    /// no letter or digit.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct ExplainArgs {
    /// The file whose shape counts, or with --shape the index itself
    #[arg(value_hint = ValueHint::AnyPath)]
    pub(crate) input: Option<String>,
    /// The index, as in NumPy; everything when left out
    ///
    /// `tslice --help` says what may stand in it.
    #[arg(value_name = "INDEX", conflicts_with = "begin")]
    pub(crate) text: Option<String>,
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
