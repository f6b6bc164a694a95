//! The arguments of `view`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;
use tslice::internals::job::Bound;
use tslice::internals::picture::COLOUR_MAPS;

use super::index::IndexArgs;
use super::input::InputArgs;
use super::output::threads;
use super::result::{FieldArgs, TransposeArgs};

#[derive(Args, Clone, Debug)]
pub(crate) struct ViewArgs {
    /// The file to look at; `-` is standard input
    pub(crate) input: PathBuf,
    /// What to look at, as in NumPy: '[0, ::-1]'
    ///
    /// Everything when left out. `tslice --help` says what may stand in it.
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
    #[command(flatten)]
    pub(crate) values: ValuesArgs,
    #[command(flatten)]
    pub(crate) stats: StatsArgs,
    #[command(flatten)]
    pub(crate) picture: PictureArgs,
    /// How many threads work [default: one a core]
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
    /// Print statistics and a histogram
    ///
    /// How many elements are NaN, infinite and zero, the extremes and their places, mean and
    /// standard deviation, quantiles.
    #[arg(long, groups = ["work", "measured"], conflicts_with_all = ["full", "edge", "precision"])]
    pub(crate) stats: bool,
    /// Print the statistics as JSON
    #[arg(long, requires = "measured")]
    pub(crate) json: bool,
}

/// How values are printed.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Values")]
pub(crate) struct ValuesArgs {
    /// Print all values
    ///
    /// Above 1000 elements the middle of long axes is left out otherwise.
    #[arg(long)]
    pub(crate) full: bool,
    /// How many items to print at each end of a long axis [default: 3]
    #[arg(long, value_name = "N", conflicts_with = "full", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) edge: Option<u32>,
    /// The most digits behind the point [default: 8]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(0..=1000))]
    pub(crate) precision: Option<u16>,
}

/// A picture in place of values.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Picture")]
pub(crate) struct PictureArgs {
    /// Write a picture
    ///
    /// Two axes are drawn in colours, (H, W, 3 or 4) of uint8 as it is, more axes as a contact
    /// sheet; one pixel an element.
    #[arg(short, long, value_name = "PICTURE.png", groups = ["work", "drawn", "written"], conflicts_with_all = ["full", "edge", "precision", "stats"])]
    pub(crate) output: Option<PathBuf>,
    /// Draw the picture in the terminal, with half blocks
    #[arg(long, groups = ["work", "drawn"], conflicts_with_all = ["full", "edge", "precision", "stats", "output"])]
    pub(crate) image: bool,
    /// The colours [default: viridis]
    #[arg(long, value_name = "NAME", requires = "drawn", value_parser = colour_maps())]
    pub(crate) colormap: Option<String>,
    /// The numbers at the ends of the colours, or percentiles: 0,1 or p1,p99
    ///
    /// The smallest and the largest when left out.
    #[arg(long, value_name = "LO,HI", requires = "drawn", value_parser = range, allow_hyphen_values = true)]
    pub(crate) range: Option<[Bound; 2]>,
    /// Pixels a row: means of elements, or elements repeated
    #[arg(long, value_name = "PIXELS", requires = "drawn", value_parser = clap::value_parser!(u32).range(1..=65_535))]
    pub(crate) width: Option<u32>,
    /// Replace the picture if it exists
    #[arg(short, long, requires = "written")]
    pub(crate) force: bool,
    /// Wait until the disk has the picture
    #[arg(long, requires = "written")]
    pub(crate) fsync: bool,
    /// Check everything, print what would be written, write nothing
    #[arg(short = 'n', long, requires = "written")]
    pub(crate) dry_run: bool,
}

fn range(text: &str) -> Result<[Bound; 2], &'static str> {
    let bound = |text: &str| match text.trim().strip_prefix('p') {
        Some(percent) => {
            percent.parse().ok().filter(|it| (0.0..=100.0).contains(it)).map(Bound::Percentile)
        }
        None => text.trim().parse().ok().filter(|it: &f64| it.is_finite()).map(Bound::Value),
    };
    let bounds = text.split_once(',').and_then(|(low, high)| Some([bound(low)?, bound(high)?]));
    match bounds {
        Some(
            [Bound::Value(low), Bound::Value(high)]
            | [Bound::Percentile(low), Bound::Percentile(high)],
        ) if low >= high => Err("the first number has to be the smaller one"),
        Some(bounds) => Ok(bounds),
        None => Err("two numbers are needed, LO,HI, or percentiles, p1,p99"),
    }
}

fn colour_maps() -> PossibleValuesParser {
    PossibleValuesParser::new(COLOUR_MAPS.map(|(name, _)| name))
}
