//! The arguments that say how an input is read, and what text and raw bytes mean.

use clap::Args;
use tslice::input::{MissingChunks, TextFormat};
use tslice::shape::Order;
use tslice::source::IoMode;

use super::parsers::{Choice, one_of};

/// How an input is read.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Read the input")]
pub(crate) struct InputArgs {
    /// The tensor to take, in a file of several: a name or a glob
    ///
    /// May be given again. Globs: *, ?, {0..11}, {q,k,v}, [a-c] (docs/checkpoints.md, "Patterns and new names").
    #[arg(short, long, value_name = "NAME")]
    pub(crate) tensor: Vec<String>,
    /// Leave out the tensors of this name or glob
    ///
    /// Without -t all others are chosen. May be given again.
    #[arg(long, value_name = "NAME", help_heading = "Choose and name tensors")]
    pub(crate) exclude: Vec<String>,
    /// Read the elements as another dtype of the same size
    ///
    /// No byte is changed: --as bfloat16 is for the V2 of a .npy. It applies to the tensors that -t names, or to all;
    /// FROM:TO (V2:bfloat16) applies only to tensors of dtype FROM. With --field it is the dtype of the field. Casts
    /// come after it.
    #[arg(
        long = "as",
        value_name = "DTYPE",
        hide_short_help = true,
        help_heading = "Convert elements"
    )]
    pub(crate) read_as: Option<String>,
    /// Unpack values, as xarray does
    ///
    /// The attributes scale_factor, add_offset, _FillValue, missing_value and _Unsigned of Zarr, HDF5 and netCDF say
    /// how. Missing elements become NaN, and the dtype becomes float32 or float64. It applies to the tensors that -t
    /// names, or to all. Casts come after it.
    #[arg(long, help_heading = "Convert elements", hide_short_help = true)]
    pub(crate) unpack: bool,
    /// How to read
    #[arg(long, value_parser = one_of(HOW), default_value = "auto", value_name = "HOW", hide_short_help = true)]
    pub(crate) io: IoMode,
    /// What to read for a missing chunk of Zarr
    ///
    /// Zarr need not store chunks that hold only the fill value; an incomplete copy lacks other chunks, too.
    #[arg(long, value_parser = one_of(MISSING), default_value = "fill", value_name = "WHAT", hide_short_help = true)]
    pub(crate) missing_chunks: MissingChunks,
    /// Read a pipe to its end
    ///
    /// Without it the pipe, or the connection to a server without ranges, is closed after the last byte that is
    /// needed, as by head. With it the writer of the pipe is not stopped, and a pipe that is shorter than its header
    /// says is an error.
    #[arg(long, hide_short_help = true)]
    pub(crate) drain: bool,
    #[command(flatten)]
    pub(crate) index: CheckpointArgs,
    #[command(flatten)]
    pub(crate) text: TextArgs,
    #[command(flatten)]
    pub(crate) raw: RawArgs,
}

/// How a checkpoint of several files is read.
#[derive(Args, Clone, Copy, Debug, Default)]
#[command(next_help_heading = "Read a checkpoint")]
pub(crate) struct CheckpointArgs {
    /// Refuse a checkpoint whose index does not agree with its shards
    ///
    /// Without it, a tensor in several shards is read from the shard that the index names. A tensor that is not in the
    /// index is read with a note. A missing tensor is an error if it is chosen. With --strict each of these is an error,
    /// and so is a tensor that cannot be read.
    #[arg(long, conflicts_with = "no_index", hide_short_help = true)]
    pub(crate) strict: bool,
    /// Read all shards in the folder, whatever an index says
    ///
    /// A tensor in two shards is an error.
    #[arg(long, hide_short_help = true)]
    pub(crate) no_index: bool,
    /// Leave out the tensors of shards that the index does not name
    #[arg(long, conflicts_with_all = ["strict", "no_index"], hide_short_help = true)]
    pub(crate) index_only: bool,
}

/// The options of a text.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Read text")]
pub(crate) struct TextArgs {
    /// Read the input as text, whatever its name
    ///
    /// Files whose names end in .csv, .tsv, .txt and .json are read as text without it. Of several inputs, it applies to
    /// inputs of no known format. Elements are float64 unless --dtype says otherwise. In JSON they are int64 if all
    /// numbers are integers, and bool if all elements are booleans.
    #[arg(long = "from", value_parser = one_of(TEXTS), ignore_case = true, value_name = "FORMAT", hide_short_help = true)]
    pub(crate) from_text: Option<TextFormat>,
    /// The character between the columns of csv, tsv and txt
    ///
    /// One character, \t for a tab. Without it a comma in csv, a tab in tsv, white space in txt.
    #[arg(long, value_name = "CHAR", allow_hyphen_values = true, hide_short_help = true)]
    pub(crate) delimiter: Option<String>,
    /// Read cells of these texts as NaN: NA,-
    ///
    /// An empty text among them, as in 'NA,', is the empty cell. Integers have no NaN: they are an error.
    #[arg(long, value_name = "TEXTS", allow_hyphen_values = true, hide_short_help = true)]
    pub(crate) missing: Option<String>,
    /// Number of lines to skip at the beginning
    ///
    /// A line of names without a number, comments (#) and empty lines are skipped anyway.
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub(crate) skip_rows: Option<u64>,
    /// Make fields of the columns, named by the first line
    ///
    /// --field implies it.
    #[arg(long = "names", hide_short_help = true)]
    pub(crate) names_columns: bool,
    /// Read only these columns, in this order: 1,3
    ///
    /// Numbers count from 0, negative ones from the end, as in np.loadtxt's usecols. Other columns may hold any text,
    /// and rows may have different lengths if they have these columns. With --names, only these columns become fields.
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        allow_hyphen_values = true,
        hide_short_help = true
    )]
    pub(crate) columns: Option<Vec<String>>,
}

/// The options of raw bytes.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Read raw bytes")]
pub(crate) struct RawArgs {
    /// The dtype of raw bytes or text: float32 or f32, '>i2', bfloat16 or bf16, ...
    ///
    /// Of several inputs, it applies to inputs of raw bytes and text; --shape, --offset and --input-order to raw bytes.
    /// For a file of void items (V2), it is the dtype of the items.
    #[arg(long, value_name = "DTYPE", hide_short_help = true)]
    pub(crate) dtype: Option<String>,
    /// The shape of raw bytes
    ///
    /// One length may be -1; one axis when left out.
    #[arg(long, value_name = "LIST", hide_short_help = true)]
    pub(crate) shape: Option<String>,
    /// The offset of the elements of raw bytes, in bytes
    ///
    /// With it a single input is read as raw bytes whatever its format.
    #[arg(long, value_name = "BYTES", hide_short_help = true)]
    pub(crate) offset: Option<u64>,
    /// The order of the elements of raw bytes
    #[arg(long, value_parser = one_of(ORDERS), ignore_case = true, value_name = "ORDER", hide_short_help = true)]
    pub(crate) input_order: Option<Order>,
}

const HOW: [Choice<IoMode>; 3] = [
    ("auto", "Map local files, read those of network file systems", IoMode::Auto),
    ("mmap", "Map the file", IoMode::Mmap),
    ("read", "Read the file by position, in large pieces", IoMode::Read),
];

const MISSING: [Choice<MissingChunks>; 2] = [
    ("fill", "The fill value of their array", MissingChunks::Fill),
    ("error", "An error", MissingChunks::Error),
];

const TEXTS: [Choice<TextFormat>; 4] = [
    ("csv", "Columns separated by commas", TextFormat::Csv),
    ("tsv", "Columns separated by tabs", TextFormat::Tsv),
    ("txt", "Columns separated by white space", TextFormat::Txt),
    ("json", "Nested lists", TextFormat::Json),
];

pub(super) const ORDERS: [Choice<Order>; 2] =
    [("C", "Row-major", Order::C), ("F", "Column-major, Fortran's", Order::F)];
