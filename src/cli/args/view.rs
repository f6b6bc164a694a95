//! The arguments of `view`.

use std::path::PathBuf;

use clap::Args;

use super::index::IndexArgs;
use super::input::{InputArgs, RawArgs};
use super::output::threads;
use super::result::TransposeArgs;

#[derive(Args, Clone, Debug)]
pub(crate) struct ViewArgs {
    /// The file to look at; `-` is standard input
    pub(crate) input: PathBuf,
    /// What to look at, as in NumPy: '[0, ::-1]'; everything when left out
    #[arg(value_name = "INDEX", conflicts_with = "begin")]
    pub(crate) text: Option<String>,
    #[command(flatten)]
    pub(crate) index: IndexArgs,
    #[command(flatten)]
    pub(crate) transpose: TransposeArgs,
    #[command(flatten)]
    pub(crate) from: InputArgs,
    #[command(flatten)]
    pub(crate) raw: RawArgs,
    #[command(flatten)]
    pub(crate) values: ValuesArgs,
    #[command(flatten)]
    pub(crate) stats: StatsArgs,
    /// How many threads work; as many as the machine has cores when left out
    #[arg(short = 'j', long, value_name = "N", value_parser = threads, requires = "work")]
    pub(crate) threads: Option<u16>,
    /// Show no progress
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// Statistics in place of values.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Statistics")]
pub(crate) struct StatsArgs {
    /// Print statistics: extremes and their places, mean, deviation, quantiles, a histogram
    #[arg(long, group = "work", conflicts_with_all = ["full", "edge", "precision"])]
    pub(crate) stats: bool,
    /// Print the statistics as JSON
    #[arg(long, requires = "stats")]
    pub(crate) json: bool,
}

/// How values are printed.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Values")]
pub(crate) struct ValuesArgs {
    /// Print all values; above 1000 elements, the middle of long axes is left out otherwise
    #[arg(long)]
    pub(crate) full: bool,
    /// How many items to print at each end of an axis whose middle is left out [default: 3]
    #[arg(long, value_name = "N", conflicts_with = "full", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) edge: Option<u32>,
    /// The most digits behind the point [default: 8]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(0..=1000))]
    pub(crate) precision: Option<u16>,
}
