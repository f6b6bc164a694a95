//! The arguments of `view`.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{ArgGroup, Args};
use tslice::job::Bound;
use tslice::picture::COLOUR_MAPS;
use tslice::statistics::Reduction;

use super::input::InputArgs;
use super::output::{FormatArgs, MetadataArgs, threads};
use super::parsers::{Choice, one_of};
use super::slice::{FieldArgs, IndexArgs, TransposeArgs};

#[derive(Args, Clone, Debug)]
#[command(group = ArgGroup::new("work").multiple(true))]
pub(crate) struct ViewArgs {
    /// The file to look at; `-` is standard input
    #[arg(required_unless_present = "files_from", conflicts_with = "files_from")]
    pub(crate) input: Option<PathBuf>,
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
    #[command(flatten)]
    pub(crate) format: FormatArgs,
    #[command(flatten)]
    pub(crate) metadata: MetadataArgs,
    /// Number of threads [default: one a core]
    #[arg(short = 'j', long, value_name = "N", value_parser = threads, requires = "work")]
    pub(crate) threads: Option<u16>,
    /// Show no progress
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

impl ViewArgs {
    /// Whether a picture is drawn, of elements or of what they are reduced to.
    pub(crate) fn draws(&self) -> bool {
        let PictureArgs { output, image, .. } = &self.picture;
        let is_png = |path: &PathBuf| {
            path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("png"))
        };
        if self.stats.reduce.is_none() {
            return *image || output.is_some();
        }
        *image || self.format.to.is_none() && output.as_ref().is_some_and(is_png)
    }

    /// The error of flags that do not fit each other.
    pub(crate) fn fault(&self) -> Option<String> {
        let ViewArgs { stats, values, picture, .. } = self;
        let writes = stats.reduce.is_some() && picture.output.is_some() && !self.draws();
        let drawn = [
            ("--colormap", picture.colormap.is_some()),
            ("--range", picture.range.is_some()),
            ("--width", picture.width.is_some()),
        ];
        let drawn = drawn.into_iter().find_map(|(flag, is_given)| is_given.then_some(flag));
        match (self.of_a_tensor(), drawn) {
            (Some(flag), _) if stats.reduce.is_none() => {
                Some(format!("{flag} has no effect without --reduce"))
            }
            (Some(flag), _) if !writes => {
                Some(format!("{flag} has no effect without a file of tensors, -o FILE"))
            }
            (_, Some(flag)) if writes => Some(format!("{flag} has no effect without a picture")),
            _ if stats.stats && values.full && stats.axis.is_none() => {
                Some("--full has no effect on --stats without --axis".to_owned())
            }
            _ => None,
        }
    }

    /// The first flag that needs an output with a tensor, if one is given.
    fn of_a_tensor(&self) -> Option<&'static str> {
        let ViewArgs { format, metadata, .. } = self;
        let given = [
            ("--to", format.to.is_some()),
            ("--deflate", format.deflate),
            ("--order", format.order.is_some()),
            ("--name", format.name.is_some()),
            ("--metadata", !metadata.metadata.is_empty()),
            ("--metadata-from", metadata.metadata_from.is_some()),
            ("--no-metadata", metadata.no_metadata),
        ];
        given.into_iter().find_map(|(flag, is_given)| is_given.then_some(flag))
    }
}

/// Statistics in place of values.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Compute statistics")]
pub(crate) struct StatsArgs {
    /// Print statistics: of one tensor with a histogram, of several as a table
    ///
    /// The numbers of NaN, infinite and zero elements, the extremes and their positions, mean and standard deviation,
    /// quantiles.
    #[arg(long, groups = ["work", "measured", "sliced"], conflicts_with_all = ["edge", "precision"])]
    pub(crate) stats: bool,
    /// Compute along these axes, with a row for each position of the other axes
    ///
    /// Negative axes count from the end; dimensions may be named. Without it --reduce reduces all axes.
    #[arg(long, value_name = "A[,B...]", requires = "sliced")]
    pub(crate) axis: Option<String>,
    /// Sort the tensors by columns of the table: nan,max
    ///
    /// Names and dtypes ascend, numbers descend.
    #[arg(long, value_name = "COLUMN", value_delimiter = ',', value_parser = one_of(COLUMNS), requires = "measured", conflicts_with = "axis")]
    pub(crate) sort: Vec<Column>,
    /// Name the tensors that have such elements, and exit with 1: nan,inf,zero
    #[arg(long, value_name = "WHAT", value_delimiter = ',', value_parser = one_of(FAULTS), requires = "measured")]
    pub(crate) fail_on: Vec<Column>,
    /// Print one table of the tensors of many files, whose names are read from a file, one a line
    ///
    /// `-` is standard input. Without -t all tensors count.
    #[arg(
        long,
        value_name = "FILE",
        requires = "stats",
        conflicts_with_all = ["axis", "edge", "precision", "reduce", "output", "image"]
    )]
    pub(crate) files_from: Option<PathBuf>,
    /// The names of --files-from end with NUL bytes, as find -print0 writes them
    #[arg(
        short = '0',
        long,
        requires = "files_from",
        conflicts_with_all = ["input", "axis", "edge", "precision", "reduce", "output", "image"]
    )]
    pub(crate) null: bool,
    /// Print the statistics as JSON, a line for each tensor or row
    #[arg(long, requires = "measured")]
    pub(crate) json: bool,
    /// Reduce axes as NumPy's functions do
    ///
    /// The result is printed, written (-o FILE) or drawn (-o x.png). Sums and means are exact, and rounded once.
    /// --keepdims keeps the axes, with length 1.
    #[arg(long, value_name = "HOW", value_parser = one_of(REDUCTIONS), groups = ["work", "sliced"], conflicts_with_all = ["stats"])]
    pub(crate) reduce: Option<Reduction>,
}

/// A column of the table of tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    Name,
    DType,
    Shape,
    Nan,
    Infinite,
    Zero,
    Min,
    Max,
    Mean,
    Std,
}

const COLUMNS: [Choice<Column>; 10] = [
    ("name", "The name", Column::Name),
    ("dtype", "The dtype", Column::DType),
    ("shape", "The shape", Column::Shape),
    ("nan", "How many elements are NaN", Column::Nan),
    ("inf", "How many are infinite", Column::Infinite),
    ("zero", "How many are zero", Column::Zero),
    ("min", "The minimum", Column::Min),
    ("max", "The maximum", Column::Max),
    ("mean", "The mean", Column::Mean),
    ("std", "The standard deviation", Column::Std),
];

/// Elements that no tensor should have: NaN, infinite, zero.
const FAULTS: [Choice<Column>; 3] = [COLUMNS[3], COLUMNS[4], COLUMNS[5]];

const REDUCTIONS: [Choice<Reduction>; 7] = [
    ("min", "The smallest; NaN, or NaT, where there is one", Reduction::Min),
    ("max", "The largest; NaN, or NaT, where there is one", Reduction::Max),
    ("sum", "The sum", Reduction::Sum),
    ("mean", "The mean", Reduction::Mean),
    ("std", "The standard deviation", Reduction::Std),
    ("any", "Whether any is not 0", Reduction::Any),
    ("all", "Whether none is 0", Reduction::All),
];

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Print values")]
pub(crate) struct ValuesArgs {
    /// Print all values, or with --stats --axis all rows
    ///
    /// Without it, the middle is left out above 1000 elements or rows.
    #[arg(long)]
    pub(crate) full: bool,
    /// How many items to print at each end of a long axis [default: 3]
    #[arg(long, value_name = "N", conflicts_with = "full", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) edge: Option<u32>,
    /// The most digits after the point [default: 8]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(0..=1000))]
    pub(crate) precision: Option<u16>,
}

/// A picture in place of values.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Draw a picture")]
pub(crate) struct PictureArgs {
    /// Write a picture, or what --reduce makes
    ///
    /// Two axes are drawn in colours, a pixel for each element. A shape of (H, W, 3) or (H, W, 4) is a picture already:
    /// uint8 from 0 to 255, floats from 0 to 1. More axes are drawn as a contact sheet.
    #[arg(short, long, value_name = "FILE", groups = ["work", "drawn", "written"], conflicts_with_all = ["full", "edge", "precision", "stats"])]
    pub(crate) output: Option<PathBuf>,
    /// Draw the picture in the terminal, with half blocks
    #[arg(long, groups = ["work", "drawn"], conflicts_with_all = ["full", "edge", "precision", "stats", "output"])]
    pub(crate) image: bool,
    /// The colours [default: viridis]
    #[arg(long, value_name = "NAME", requires = "drawn", value_parser = colour_maps())]
    pub(crate) colormap: Option<String>,
    /// The values at the ends of the colour map, or percentiles: 0,1 or p1,p99
    ///
    /// The smallest and the largest value when left out.
    #[arg(long, value_name = "LO,HI", requires = "drawn", value_parser = range, allow_hyphen_values = true)]
    pub(crate) range: Option<[Bound; 2]>,
    /// Pixels a row: means of elements, or elements repeated
    #[arg(long, value_name = "PIXELS", requires = "drawn", value_parser = clap::value_parser!(u32).range(1..=65_535))]
    pub(crate) width: Option<u32>,
    /// Replace the output if it exists
    #[arg(short, long, requires = "written")]
    pub(crate) force: bool,
    /// Wait until the disk has the output
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
        ) if low >= high => Err("the first number must be the smaller one"),
        Some(bounds) => Ok(bounds),
        None => Err("two numbers are needed, LO,HI, or percentiles, p1,p99"),
    }
}

fn colour_maps() -> PossibleValuesParser {
    PossibleValuesParser::new(COLOUR_MAPS.map(|(name, _)| name))
}
