//! What a user may type: all of clap, but for its errors (`misuse.rs`).
//!
//! The main job has no subcommand of its own (`tslice data.npy '[::2]'`), and an index may begin
//! with a minus sign. Both are settled before clap looks ([`normalize`]), so that clap itself is
//! strict, and its suggestions for mistyped flags stay right.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use tslice::shape::Order;

/// Cut pieces out of tensor files (.npy, .safetensors) of any size.
///
/// Takes a file and an index written as in NumPy, and writes the selected elements to a new file:
/// in parallel, without loading the tensor.
#[derive(Debug, Parser)]
#[command(
    name = "tslice",
    version,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    disable_help_subcommand = true,
    max_term_width = 100,
    override_usage = "tslice INPUT [INDEX] [-o OUTPUT]\n       \
                      tslice gather [PARAMS] --indices FILE [-o OUTPUT]\n       \
                      tslice assign TARGET [INDEX] --value FILE [-o OUTPUT | --in-place]\n       \
                      tslice scatter TARGET --indices FILE --values FILE [-o OUTPUT | --in-place]\n       \
                      tslice info INPUT...\n       \
                      tslice explain INPUT [INDEX]\n       tslice explain INDEX --shape 5,6,7\n       \
                      tslice completions SHELL",
    after_help = EXAMPLES
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    slice: Option<SliceArgs>,
}

const EXAMPLES: &str = "\
Examples:
  tslice data.npy '[1, 2:4, None, ..., :-3:-1, :]' -o out.npy
  tslice model.safetensors -t embed.weight '[:32000]' -o embed.npy
  tslice gather params.npy --indices rows.npy -o rows-of-params.npy
  cat big.npy | tslice - '[::4]' | tslice - '[..., 0]' > out.npy";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Write the selected elements of a tensor to a new file (the default)
    #[command(name = SLICE, hide = true, override_usage = "tslice INPUT [INDEX] [-o OUTPUT]")]
    Slice(SliceArgs),
    /// Take the slices that an index tensor names (gather_nd; with --axis gather)
    #[command(
        override_usage = "tslice gather [PARAMS] --indices FILE [-o OUTPUT]",
        after_help = GATHER_HELP
    )]
    Gather(GatherArgs),
    /// Write a value into a slice of a tensor: TARGET[INDEX] = VALUE
    #[command(
        override_usage = "tslice assign TARGET [INDEX] --value FILE [-o OUTPUT | --in-place]\n       \
                          tslice assign TARGET [INDEX] --fill NUMBER [-o OUTPUT | --in-place]",
        after_help = ASSIGN_HELP
    )]
    Assign(AssignArgs),
    /// Write slices at the positions that an index tensor names (TensorScatterUpdate)
    #[command(
        override_usage = "tslice scatter TARGET --indices FILE --values FILE [-o OUTPUT | --in-place]",
        after_help = SCATTER_HELP
    )]
    Scatter(ScatterArgs),
    /// Show what is in files: names, dtypes, shapes
    Info(InfoArgs),
    /// Show what an index means, in NumPy's words and as StridedSlice's numbers
    #[command(
        override_usage = "tslice explain INPUT [INDEX]\n       tslice explain INDEX --shape 5,6,7"
    )]
    Explain(ExplainArgs),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

const GATHER_HELP: &str = "\
With indices of shape (..., N) the output has shape indices.shape[:-1] + params.shape[N:]; with
--axis A, params.shape[:A] + indices.shape + params.shape[A+1:].

Examples:
  tslice gather params.npy --indices positions.npy -o slices.npy
  tslice gather embed.safetensors --axis 0 --indices tokens.npy -o vectors.safetensors
  tslice gather params.npy --indices '[[0, 1], [2, 3]]' -o pair.npy
  tslice a.npy '[::2]' | tslice gather --indices idx.npy > b.npy";

const ASSIGN_HELP: &str = "\
With -o the output is TARGET, all its bytes, but for the slice; it appears when it is complete.
With --in-place the bytes of the slice are written where they stand, after all checks, and no
others are touched: processes may write disjoint slices of one file at a time. A run that was
killed is completed by running it again.

Examples:
  tslice assign volume.npy '[10:20, ..., 0]' --value crop.npy --in-place
  tslice assign model.safetensors -t bias '[:8]' --fill 0 -o patched.safetensors";

const SCATTER_HELP: &str = "\
With indices of shape (..., N) the values have shape indices.shape[:-1] + target.shape[N:]. With a
position given twice the last one wins. All positions are checked before the first byte is written.

Examples:
  tslice scatter table.npy --indices rows.npy --values new-rows.npy --in-place
  tslice scatter table.npy --indices '[[7], [0]]' --values two-rows.npy -o changed.npy";

/// The name under which [`normalize`] hands the main job to clap; nobody types it.
const SLICE: &str = "slice";

#[derive(Args, Clone, Debug)]
pub(crate) struct SliceArgs {
    /// The file to read; `-` is standard input
    pub(crate) input: PathBuf,
    /// What to select, as in NumPy: '[1, 2:4, None, ..., ::-1]'; everything when left out
    #[arg(value_name = "INDEX", conflicts_with = "begin")]
    pub(crate) text: Option<String>,
    #[command(flatten)]
    pub(crate) index: IndexArgs,
    #[command(flatten)]
    pub(crate) from: InputArgs,
    #[command(flatten)]
    pub(crate) raw: RawArgs,
    #[command(flatten)]
    pub(crate) to: OutputArgs,
    /// Copy the tensors that -t does not choose as they are (.safetensors, .npz)
    #[arg(long, help_heading = "Output")]
    pub(crate) keep_rest: bool,
    /// Give a tensor another name in the output; may be given again
    #[arg(long, value_name = "OLD=NEW", help_heading = "Output")]
    pub(crate) rename: Vec<String>,
}

/// An index as StridedSlice's numbers, in place of NumPy's text; and how to take either.
#[derive(Args, Clone, Debug)]
pub(crate) struct IndexArgs {
    #[command(flatten)]
    pub(crate) strided: StridedArgs,
    /// Keep the axes that integers index, with length 1
    #[arg(long)]
    pub(crate) keepdims: bool,
}

/// The arguments of TensorFlow's and MindSpore's StridedSlice.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "StridedSlice (in place of INDEX)")]
pub(crate) struct StridedArgs {
    /// First positions, a comma list; '' is the empty list
    #[arg(long, value_name = "LIST", requires = "end")]
    pub(crate) begin: Option<String>,
    /// One past the last positions, as long as --begin
    #[arg(long, value_name = "LIST", requires = "begin")]
    pub(crate) end: Option<String>,
    /// Steps, as long as --begin; 1s when left out
    #[arg(long, value_name = "LIST", requires = "begin")]
    pub(crate) strides: Option<String>,
    /// Bit i: ignore begin[i], take the fullest range (decimal, 0x.., 0b.., or 1<<4|1<<5)
    #[arg(long, value_name = "MASK", requires = "begin")]
    pub(crate) begin_mask: Option<String>,
    /// Bit i: ignore end[i], take the fullest range
    #[arg(long, value_name = "MASK", requires = "begin")]
    pub(crate) end_mask: Option<String>,
    /// Bit i: item i is an ellipsis
    #[arg(long, value_name = "MASK", requires = "begin")]
    pub(crate) ellipsis_mask: Option<String>,
    /// Bit i: item i is a new axis of length 1
    #[arg(long, value_name = "MASK", requires = "begin")]
    pub(crate) new_axis_mask: Option<String>,
    /// Bit i: item i is the integer begin[i], and its axis goes
    #[arg(long, value_name = "MASK", requires = "begin")]
    pub(crate) shrink_axis_mask: Option<String>,
}

/// How an input is read.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Input")]
pub(crate) struct InputArgs {
    /// The tensor to take, in a file of several: a name or a glob; may be given again
    #[arg(short, long, value_name = "NAME")]
    pub(crate) tensor: Vec<String>,
    /// How to read: map local files, or read by position (for network file systems)
    #[arg(long, value_enum, default_value_t, value_name = "HOW")]
    pub(crate) io: Io,
}

/// What there is to say of an input that does not say it itself.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Raw bytes")]
pub(crate) struct RawArgs {
    /// The dtype of raw bytes, or of a file's void type: float32, '>i2', bfloat16, ...
    #[arg(long, value_name = "DTYPE")]
    pub(crate) dtype: Option<String>,
    /// The shape of raw bytes; one length may be -1; one axis when left out
    #[arg(long, value_name = "LIST", requires = "dtype")]
    pub(crate) shape: Option<String>,
    /// Where the elements of raw bytes begin, in bytes
    #[arg(long, value_name = "BYTES", requires = "dtype")]
    pub(crate) offset: Option<u64>,
    /// The order of the elements of raw bytes
    #[arg(long, value_enum, value_name = "ORDER", requires = "dtype")]
    pub(crate) input_order: Option<OrderArg>,
}

/// Ways to read an input.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum Io {
    /// Map local files, read those of network file systems
    #[default]
    Auto,
    /// Map the file
    Mmap,
    /// Read the file by position, in large pieces
    Read,
}

/// Where and how the output is written.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// The file to write, its format by its name; standard output when left out or `-`
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// The format of the output, whatever its name
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) to: Option<To>,
    /// Replace the output if it exists
    #[arg(short, long)]
    pub(crate) force: bool,
    /// Wait until the disk has the output
    #[arg(long)]
    pub(crate) fsync: bool,
    /// Compress the arrays of the output, as np.savez_compressed does (.npz)
    #[arg(long)]
    pub(crate) deflate: bool,
    /// The order of the output's elements (.npy, raw)
    #[arg(long, value_enum, value_name = "ORDER")]
    pub(crate) order: Option<OrderArg>,
    /// The name of the tensor in the output (.safetensors)
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// How many threads work; as many as the machine has cores when left out
    #[arg(short = 'j', long, value_name = "N", value_parser = threads)]
    pub(crate) threads: Option<u16>,
    /// Check everything, print what would be written, write nothing
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
    /// Show no progress
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// Formats that an output may have.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum To {
    /// NumPy's .npy
    Npy,
    /// NumPy's .npz
    Npz,
    /// .safetensors
    Safetensors,
    /// The bytes of the elements alone (.bin, .raw)
    Raw,
    /// Text, columns parted by commas
    Csv,
    /// Text, columns parted by spaces
    Txt,
    /// Text, nested lists
    Json,
}

/// Memory orders.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum OrderArg {
    /// Row-major
    #[value(name = "C", alias = "c")]
    C,
    /// Column-major, Fortran's
    #[value(name = "F", alias = "f")]
    F,
}

impl OrderArg {
    pub(crate) fn order(self) -> Order {
        match self {
            OrderArg::C => Order::C,
            OrderArg::F => Order::F,
        }
    }
}

#[derive(Args, Clone, Debug)]
pub(crate) struct GatherArgs {
    /// The file to gather from; standard input when left out or `-`
    pub(crate) params: Option<PathBuf>,
    /// The positions: a file of integers, `-` for standard input, or a list: '[[0, 1], [2, 3]]'
    #[arg(long, value_name = "FILE")]
    pub(crate) indices: PathBuf,
    /// Gather along this axis, each index by itself; negative values count from the end
    #[arg(long, value_name = "AXIS", value_parser = integer)]
    pub(crate) axis: Option<i64>,
    /// The first axes of params and indices go together, so many of them
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub(crate) batch_dims: u8,
    /// What becomes of indices out of range, negative ones included
    #[arg(long, value_enum, default_value_t, value_name = "WHAT")]
    pub(crate) out_of_range: Outside,
    /// The tensor to gather from, in a file of several
    #[arg(short, long, value_name = "NAME", help_heading = "Input")]
    pub(crate) tensor: Option<String>,
    /// The tensor of the indices, in a file of several
    #[arg(long, value_name = "NAME", help_heading = "Input")]
    pub(crate) indices_tensor: Option<String>,
    /// How to read: map local files, or read by position (for network file systems)
    #[arg(long, value_enum, default_value_t, value_name = "HOW", help_heading = "Input")]
    pub(crate) io: Io,
    #[command(flatten)]
    pub(crate) to: OutputArgs,
}

/// What becomes of an index out of range.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum Outside {
    /// It is an error that names the first one
    #[default]
    Error,
    /// Its slice is zeros (TensorFlow on GPU)
    Zero,
    /// It is the nearest position, 0 for a negative one (NumPy's mode)
    Clip,
    /// It counts on from the other end (NumPy's mode)
    Wrap,
}

/// An integer.
fn integer(text: &str) -> Result<i64, &'static str> {
    text.parse().map_err(|_| "an integer is needed")
}

#[derive(Args, Clone, Debug)]
pub(crate) struct AssignArgs {
    /// The file to change
    pub(crate) target: PathBuf,
    /// Where to write, as in NumPy: '[1, 2:4, ..., ::-1]'; everywhere when left out
    #[arg(value_name = "INDEX", conflicts_with = "begin")]
    pub(crate) text: Option<String>,
    #[command(flatten)]
    pub(crate) what: WhatArgs,
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
    pub(crate) to: EditArgs,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct ScatterArgs {
    /// The file to change
    pub(crate) target: PathBuf,
    /// The positions: a file of integers, `-` for standard input, or a list: '[[0, 1], [2, 3]]'
    #[arg(long, value_name = "FILE")]
    pub(crate) indices: PathBuf,
    /// The file whose slices are written; `-` is standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) values: PathBuf,
    /// What becomes of positions out of range, negative ones included
    #[arg(long, value_enum, default_value_t, value_name = "WHAT")]
    pub(crate) out_of_range: Beyond,
    /// The tensor of the indices, in a file of several
    #[arg(long, value_name = "NAME", help_heading = "Input")]
    pub(crate) indices_tensor: Option<String>,
    /// The tensor of the values, in a file of several
    #[arg(long, value_name = "NAME", help_heading = "Input")]
    pub(crate) values_tensor: Option<String>,
    #[command(flatten)]
    pub(crate) from: InputArgs,
    #[command(flatten)]
    pub(crate) to: EditArgs,
}

/// What becomes of a position out of range that is to be written to.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum Beyond {
    /// It is an error that names the first one
    #[default]
    Error,
    /// Nothing is written there
    Skip,
}

/// What is assigned.
#[derive(Args, Clone, Debug)]
#[group(required = true, multiple = false)]
pub(crate) struct WhatArgs {
    /// The file whose elements are written, of the slice's shape; `-` is standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) value: Option<PathBuf>,
    /// A number that is written everywhere: -1, 0x10, 1.5e-3, nan, -inf, 1+2j, true
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
    pub(crate) fill: Option<String>,
}

/// Where and how a file is changed.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Output")]
pub(crate) struct EditArgs {
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    /// Replace the output if it exists
    #[arg(short, long, conflicts_with = "in_place")]
    pub(crate) force: bool,
    /// Wait until the disk has the output
    #[arg(long)]
    pub(crate) fsync: bool,
    /// How many threads work; as many as the machine has cores when left out
    #[arg(short = 'j', long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) threads: Option<u16>,
    /// Check everything, print what would be written, write nothing
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
    /// Show no progress
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// A changed copy, or the file itself.
#[derive(Args, Clone, Debug)]
#[group(required = true, multiple = false)]
pub(crate) struct PlaceArgs {
    /// The file to write, a copy of TARGET with the change in it
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Change TARGET itself
    #[arg(long)]
    pub(crate) in_place: bool,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct InfoArgs {
    /// The files to look at; `-` is standard input
    #[arg(required = true, value_name = "INPUT")]
    pub(crate) inputs: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct ExplainArgs {
    /// The file whose shape counts, or with --shape the index itself
    pub(crate) input: Option<String>,
    /// The index, as in NumPy; everything when left out
    #[arg(value_name = "INDEX", conflicts_with = "begin")]
    pub(crate) text: Option<String>,
    #[command(flatten)]
    pub(crate) index: IndexArgs,
    /// Explain against this shape, without a file
    #[arg(long, value_name = "LIST", conflicts_with = "io")]
    pub(crate) shape: Option<String>,
    #[command(flatten)]
    pub(crate) from: InputArgs,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Parse a command line, program name first.
///
/// # Errors
///
/// What is to be printed in place of work: a usage error, the help, the version.
pub(crate) fn parse(args: impl Iterator<Item = OsString>) -> Result<Command, clap::Error> {
    let cli = Cli::try_parse_from(normalize(args))?;
    cli.command.ok_or_else(|| {
        Cli::command().error(clap::error::ErrorKind::MissingSubcommand, "an input is needed")
    })
}

/// A number of threads.
fn threads(text: &str) -> Result<u16, &'static str> {
    let number = text.parse().ok().filter(|&number| number > 0);
    number.ok_or("a number from 1 to 65535 is needed")
}

/// The definition, for help pages and completions.
pub(crate) fn command() -> clap::Command {
    Cli::command()
}

/// Make the two liberties of the command line explicit: where the first argument is no
/// subcommand, the main job's is put before it; an argument that begins with a minus sign and a
/// digit is no flag, but the value of the flag before it (`--end -3` becomes `--end=-3`) or else
/// an index, and goes behind a `--`, with whatever else is no flag from there on.
fn normalize(args: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut args: Vec<OsString> = args.collect();
    let command = Cli::command();
    let top_level = |first: &str| {
        matches!(first, "-h" | "--help" | "-V" | "--version")
            || command.get_subcommands().any(|sub| sub.get_name() == first && first != SLICE)
    };
    if args.get(1).is_some_and(|first| !first.to_str().is_some_and(top_level)) {
        args.insert(1, SLICE.into());
    }
    let Some(subcommand) = args.get(1).and_then(|name| command.find_subcommand(name)) else {
        return args;
    };
    let takes_value = |flag: &OsString| {
        let is_flag = |arg: &clap::Arg| match flag.as_encoded_bytes() {
            [b'-', b'-', long @ ..] => arg.get_long().is_some_and(|name| name.as_bytes() == long),
            [b'-', short] => arg.get_short() == Some(char::from(*short)),
            _ => false,
        };
        subcommand.get_arguments().any(|arg| arg.get_action().takes_values() && is_flag(arg))
    };
    let (mut flags, mut behind) = (Vec::<OsString>::new(), Vec::new());
    let mut args = args.into_iter();
    while let Some(arg) = args.next() {
        let negative =
            matches!(arg.as_encoded_bytes(), [b'-', digit, ..] if digit.is_ascii_digit());
        let is_flag = arg.as_encoded_bytes().starts_with(b"-") && arg != "-" && !negative;
        match flags.last_mut() {
            _ if arg == "--" => behind.extend(args.by_ref()),
            Some(flag) if negative && takes_value(flag) => {
                if flag.as_encoded_bytes().starts_with(b"--") {
                    flag.push("=");
                }
                flag.push(arg);
            }
            Some(flag) if !behind.is_empty() && !is_flag && !takes_value(flag) => behind.push(arg),
            _ if negative => behind.push(arg),
            _ => flags.push(arg),
        }
    }
    if !behind.is_empty() {
        flags.push("--".into());
        flags.extend(behind);
    }
    flags
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_holds_together() {
        Cli::command().debug_assert();
    }

    fn normalized(line: &str) -> String {
        let args = line.split(' ').map(OsString::from);
        normalize(args).join(" ".as_ref()).into_string().unwrap()
    }

    #[test]
    fn the_main_job_needs_no_subcommand() {
        assert_eq!(normalized("tslice a.npy :"), "tslice slice a.npy :");
        assert_eq!(normalized("tslice -f a.npy"), "tslice slice -f a.npy");
        assert_eq!(normalized("tslice slice"), "tslice slice slice");
        assert_eq!(normalized("tslice info a.npy"), "tslice info a.npy");
        assert_eq!(normalized("tslice --help"), "tslice --help");
    }

    #[test]
    fn a_minus_sign_and_a_digit_begin_no_flag() {
        for (typed, meant) in [
            ("a.npy -3:", "a.npy -- -3:"),
            ("a.npy -3: -o b.npy -f", "a.npy -o b.npy -f -- -3:"),
            ("a.npy -3 4 -j 2 -5", "a.npy -j 2 -- -3 4 -5"),
            ("a.npy -o b.npy -- -3: -f", "a.npy -o b.npy -- -3: -f"),
            ("a.npy --begin 1 --end -3,4", "a.npy --begin 1 --end=-3,4"),
            ("a.npy --end=-3 -1", "a.npy --end=-3 -- -1"),
            ("a.npy -o -3.npy --name -1", "a.npy -o-3.npy --name=-1"),
            ("a.npy --begin --end 3", "a.npy --begin --end 3"),
            ("- -1 -", "- -- -1 -"),
        ] {
            assert_eq!(normalized(&format!("tslice {typed}")), format!("tslice slice {meant}"));
        }
        assert_eq!(
            normalized("tslice explain -1 --shape -5,6"),
            "tslice explain --shape=-5,6 -- -1"
        );
    }
}
