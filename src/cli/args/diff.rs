//! The arguments of `diff`.

use std::path::PathBuf;

use clap::Args;

use super::input::InputArgs;
use super::output::threads;
use super::slice::{FieldArgs, IndexArgs};

#[derive(Args, Clone, Debug)]
pub(crate) struct DiffArgs {
    /// A file; `-` is standard input
    #[arg(value_name = "A")]
    pub(crate) first: PathBuf,
    /// The file to compare it with
    #[arg(value_name = "B")]
    pub(crate) second: PathBuf,
    #[command(flatten)]
    pub(crate) index: IndexArgs,
    #[command(flatten)]
    pub(crate) field: FieldArgs,
    #[command(flatten)]
    pub(crate) from: InputArgs,
    /// The name in B of a tensor of A: OLD=NEW
    ///
    /// {l} in OLD stands for any text without a dot, {p:q,k} for one of these, * for any text; NEW may use them. May be
    /// given again. -t takes the new names.
    #[arg(long, value_name = "OLD=NEW")]
    pub(crate) rename: Vec<String>,
    /// Read new names from a file: OLD=NEW a line, or a JSON object (applied before --rename)
    ///
    /// `-` is standard input.
    #[arg(long, value_name = "FILE")]
    pub(crate) rename_from: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) rule: RuleArgs,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Number of threads [default: one a core]
    #[arg(short = 'j', long, value_name = "N", value_parser = threads)]
    pub(crate) threads: Option<u16>,
    /// Show no progress
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// When elements count as equal.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Tolerate differences")]
pub(crate) struct RuleArgs {
    /// Take elements as equal up to this difference
    ///
    /// 0 when only --rtol is given.
    #[arg(long, value_name = "NUMBER", value_parser = tolerance)]
    pub(crate) atol: Option<f64>,
    /// Take elements as equal up to this fraction of the value in B
    ///
    /// 0 when only --atol is given.
    #[arg(long, value_name = "NUMBER", value_parser = tolerance)]
    pub(crate) rtol: Option<f64>,
    /// With --atol or --rtol: dtypes must be the same, too
    ///
    /// Without it, tolerances apply to the exact values of different dtypes.
    #[arg(long)]
    pub(crate) dtypes: bool,
    /// Take all NaN as equal
    #[arg(long)]
    pub(crate) equal_nan: bool,
}

fn tolerance(text: &str) -> Result<f64, &'static str> {
    let number = text.parse().ok().filter(|&number: &f64| number >= 0.0);
    number.ok_or("a number that is not negative is needed")
}
