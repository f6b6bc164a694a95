//! The arguments that say how an input is read, and what text and raw bytes mean.

use clap::Args;
use tslice::input::{MissingChunks, TextFormat};
use tslice::shape::Order;
use tslice::source::IoMode;

use super::parsers::{Choice, one_of};

/// How an input is read.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Input")]
pub(crate) struct InputArgs {
    /// The tensor to take, in a file of several: a name or a glob
    ///
    /// May be given again. docs/checkpoints.md tells what a glob may hold, under "Patterns and new names":
    /// *, ?, {0..11}, {q,k,v}, [a-c].
    #[arg(short, long, value_name = "NAME")]
    pub(crate) tensor: Vec<String>,
    /// Leave out the tensors of this name or glob
    ///
    /// Without -t all others are chosen. May be given again.
    #[arg(long, value_name = "NAME")]
    pub(crate) exclude: Vec<String>,
    /// Read the elements as another dtype of the same size
    ///
    /// No byte is changed: --as bfloat16 is for the V2 of a .npy. Of the tensors that -t names, or of all; with
    /// FROM:TO only of those of one dtype, V2:bfloat16. With --field it is the dtype of the field. Casts come after
    /// it.
    #[arg(long = "as", value_name = "DTYPE", hide_short_help = true)]
    pub(crate) read_as: Option<String>,
    /// Take the values that packed elements stand for, as xarray does
    ///
    /// By the attributes scale_factor, add_offset, _FillValue, missing_value and _Unsigned of Zarr, HDF5 and
    /// netCDF: missing elements become NaN, the dtype is float32 or float64. Of the tensors that -t names, or of
    /// all. Casts come after it.
    #[arg(long)]
    pub(crate) unpack: bool,
    /// How to read
    #[arg(long, value_parser = one_of(HOW), default_value = "auto", value_name = "HOW", hide_short_help = true)]
    pub(crate) io: IoMode,
    /// What to read where a chunk of Zarr is missing
    ///
    /// Zarr need not store chunks that are the fill value as a whole; of a copy that was cut short, others are
    /// missing too.
    #[arg(long, value_parser = one_of(MISSING), default_value = "fill", value_name = "WHAT", hide_short_help = true)]
    pub(crate) missing_chunks: MissingChunks,
    /// Read a pipe to its end
    ///
    /// Otherwise it is closed after the last byte that is needed, as head does, and so is the connection to
    /// a server that sends whole files only. Read to the end, a pipe that is shorter than its header says is
    /// an error, and its writer is not stopped.
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
#[command(next_help_heading = "Checkpoint")]
pub(crate) struct CheckpointArgs {
    /// Refuse a checkpoint whose index does not agree with its shards
    ///
    /// Without it what is there is read: a tensor in several shards is that of the index, one that the index
    /// leaves out is read too, with a note, and one that is missing is an error where it is asked for. With it, what
    /// cannot be read is not left out either.
    #[arg(long, conflicts_with = "no_index", hide_short_help = true)]
    pub(crate) strict: bool,
    /// Read the shards that are there, whatever an index says
    ///
    /// A tensor that two of them hold is an error.
    #[arg(long, hide_short_help = true)]
    pub(crate) no_index: bool,
    /// Leave out the tensors of shards that the index does not name
    #[arg(long, conflicts_with_all = ["strict", "no_index"], hide_short_help = true)]
    pub(crate) index_only: bool,
}

/// What there is to say of a text.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Text")]
pub(crate) struct TextArgs {
    /// Take the input as text, whatever its name
    ///
    /// Files whose names end in .csv, .tsv, .txt and .json are text without it. Of several inputs, those
    /// that are of no other format. The elements are float64 unless --dtype says otherwise; of JSON, int64
    /// or bool where all are.
    #[arg(long = "from", value_parser = one_of(TEXTS), ignore_case = true, value_name = "FORMAT", hide_short_help = true)]
    pub(crate) from_text: Option<TextFormat>,
    /// The character between the columns of csv, tsv and txt
    ///
    /// One character, \t for a tab. Without it a comma in csv, a tab in tsv, white space in txt.
    #[arg(long, value_name = "CHAR", allow_hyphen_values = true, hide_short_help = true)]
    pub(crate) delimiter: Option<String>,
    /// Read cells of these texts as NaN: NA,-
    ///
    /// An empty word among them, as in 'NA,', is the empty cell. Integers have no NaN, and refuse them.
    #[arg(long, value_name = "TEXTS", allow_hyphen_values = true, hide_short_help = true)]
    pub(crate) missing: Option<String>,
    /// Number of lines to skip at the beginning
    ///
    /// One line of names without any number is left out by itself, as are comments (#) and empty lines.
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub(crate) skip_rows: Option<u64>,
    /// Make fields of the columns, named by the first line
    ///
    /// So does --field by itself.
    #[arg(long = "names", hide_short_help = true)]
    pub(crate) names_columns: bool,
    /// Read only these columns, in this order: 1,3
    ///
    /// Numbers as np.loadtxt's usecols: from 0 on, negative ones from the end. Other columns may hold any text,
    /// and rows may differ in length as long as they have these. With --names the columns that are fields.
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        allow_hyphen_values = true,
        hide_short_help = true
    )]
    pub(crate) columns: Option<Vec<String>>,
}

/// What there is to say of an input that does not say it itself.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Raw bytes")]
pub(crate) struct RawArgs {
    /// The dtype of raw bytes or text: float32 or f32, '>i2', bfloat16 or bf16, ...
    ///
    /// Of several inputs, that of each that is raw bytes or text, as are the other three of raw bytes. Of
    /// a file of a void type, the dtype that its items are.
    #[arg(long, value_name = "DTYPE", hide_short_help = true)]
    pub(crate) dtype: Option<String>,
    /// The shape of raw bytes
    ///
    /// One length may be -1; one axis when left out.
    #[arg(long, value_name = "LIST", hide_short_help = true)]
    pub(crate) shape: Option<String>,
    /// Where the elements of raw bytes begin, in bytes
    ///
    /// With it a single input is taken as raw bytes whatever it looks like.
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
