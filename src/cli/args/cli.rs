//! The command line as a whole: subcommands and their help.

use std::ffi::OsString;
use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser, Subcommand};

use super::completions::Shell;
use super::diff::DiffArgs;
use super::edit::{AssignArgs, ScatterArgs};
use super::gather::GatherArgs;
use super::inspect::{ExplainArgs, InfoArgs};
use super::join::JoinArgs;
use super::normalize::{SLICE, normalize};
use super::slice::SliceArgs;
use super::split::SplitArgs;
use super::unquoted::unquoted;
use super::view::ViewArgs;

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
                      tslice concat INPUT... [--axis A] [-o OUTPUT]\n       \
                      tslice stack INPUT... [--axis A] [-o OUTPUT]\n       \
                      tslice split INPUT [INDEX] --parts N -o PATTERN\n       \
                      tslice view INPUT [INDEX]\n       \
                      tslice diff A B [INDEX]\n       \
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
    /// Join tensors along an axis that they have (np.concatenate)
    #[command(
        override_usage = "tslice concat INPUT... [--axis A] [-o OUTPUT]\n       \
                          tslice concat --files-from FILE [--axis A] [-o OUTPUT]",
        after_help = CONCAT_HELP
    )]
    Concat(JoinArgs),
    /// Join tensors of one shape along a new axis (np.stack)
    #[command(
        override_usage = "tslice stack INPUT... [--axis A] [-o OUTPUT]\n       \
                          tslice stack --files-from FILE [--axis A] [-o OUTPUT]",
        after_help = STACK_HELP
    )]
    Stack(JoinArgs),
    /// Cut a tensor into several files along an axis (np.array_split, np.split)
    #[command(
        override_usage = "tslice split INPUT [INDEX] --parts N -o PATTERN\n       \
                          tslice split INPUT [INDEX] (--sizes | --at) LIST -o PATTERN\n       \
                          tslice split INPUT [INDEX] --every N -o PATTERN",
        after_help = SPLIT_HELP,
        mut_arg("output", |output| {
            output
                .value_name("PATTERN")
                .help("The files to write: {} stands for the number of the part, from 0 on, {:04} for four digits")
        })
    )]
    Split(SplitArgs),
    /// Print values as NumPy prints them
    #[command(override_usage = "tslice view INPUT [INDEX]", after_help = VIEW_HELP)]
    View(ViewArgs),
    /// Tell whether two files hold the same, and where not
    #[command(override_usage = "tslice diff A B [INDEX]", after_help = DIFF_HELP)]
    Diff(DiffArgs),
    /// Show what is in files: names, dtypes, shapes
    Info(InfoArgs),
    /// Show what an index means, in NumPy's words and as StridedSlice's numbers
    #[command(
        override_usage = "tslice explain INPUT [INDEX]\n       tslice explain INDEX --shape 5,6,7"
    )]
    Explain(ExplainArgs),
    /// Print a completion script for a shell
    #[command(override_usage = "tslice completions bash|elvish|fish|powershell|zsh")]
    Completions {
        /// The shell
        shell: Shell,
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
killed is completed by running it again; so a value that lies in these bytes is refused.

Examples:
  tslice assign volume.npy '[10:20, ..., 0]' --value crop.npy --in-place
  tslice assign model.safetensors -t bias '[:8]' --fill 0 -o patched.safetensors";

const SCATTER_HELP: &str = "\
With indices of shape (..., N) the values have shape indices.shape[:-1] + target.shape[N:]. With a
position given twice the last one wins. All positions are checked before the first byte is written.
In place, indices and values that lie in the bytes to be written are refused, so that a run that was
killed can be completed by running it again.

Examples:
  tslice scatter table.npy --indices rows.npy --values new-rows.npy --in-place
  tslice scatter table.npy --indices '[[7], [0]]' --values two-rows.npy -o changed.npy";

const CONCAT_HELP: &str = "\
All shapes must agree but along the axis, and all dtypes but for the byte order, which is that of
the first input. In files of several tensors -t chooses, and those of one name are joined.

Examples:
  tslice concat 2024-*.npy -o year.npy
  tslice concat left.npy right.npy --axis -1 -o wide.npy
  tslice concat rank-?.safetensors -t '*_proj.weight' --axis '*.o_proj.weight=1' --keep-rest \
      -o model.safetensors
  find samples -name '*.npy' -print0 | sort -z | tslice concat --files-from - -0 -o all.npy";

const STACK_HELP: &str = "\
All shapes must be equal, and all dtypes but for the byte order, which is that of the first input.
In files of several tensors -t chooses, and those of one name are joined.

Examples:
  tslice stack frame-*.npy -o video.npy
  tslice stack red.npy green.npy blue.npy --axis -1 -o image.npy
  tslice stack --files-from samples.txt --index '[..., :224, :224]' -o batch.npy";

const SPLIT_HELP: &str = "\
All outputs are checked before the first is written, and appear together when all are complete. In
files of several tensors -t chooses those that are cut.

Examples:
  tslice split samples.npy --every 1000 -o 'samples-{:04}.npy'
  tslice split volume.npy --axis -1 --sizes 100,28 -o 'part-{}.npy'
  tslice split model.safetensors -t '*_proj.weight' --axis '*.o_proj.weight=1' --keep-rest \
      --parts 4 -o 'rank-{}.safetensors'
  cat samples.npy | tslice split - --parts 8 -o 'shard-{}.npy'";

const VIEW_HELP: &str = "\
Values are printed as NumPy's print(a) does; below them the name, the shape and the dtype.

Examples:
  tslice view data.npy
  tslice view model.safetensors -t embed.weight '[:4]' --precision 3
  tslice view data.npy '[0, :, ::-1]' --full | less -S
  tslice view data.npy --stats
  tslice view volume.npy '[::16]' -o sheet.png --range p1,p99
  tslice view volume.npy 40 --image";

const DIFF_HELP: &str = "\
Tensors of one name are compared with each other, and the only tensors of two files whatever their
names, if one has none. Byte order, memory order and container make no difference. Elements are
compared by value, NaN equal to NaN of the same bits; with --atol or --rtol as np.allclose does.

Exit status: 0 the same, 1 different, 2 trouble.

Examples:
  tslice diff old.safetensors new.safetensors
  tslice diff a.npy b.npz '[:100]' --rtol 1e-5 --atol 1e-8 --equal-nan";

/// Parse a command line, program name first.
///
/// # Errors
///
/// What is to be printed in place of work: a usage error, the help, the version.
pub(crate) fn parse(args: impl Iterator<Item = OsString>) -> Result<Command, clap::Error> {
    let (definition, args) = (Cli::command(), Vec::from_iter(args));
    refuse_unknown_command(&definition, &args)?;
    let cli = Cli::try_parse_from(normalize(&definition, args.iter().cloned()))
        .map_err(|error| with_unquoted(error, &args))?;
    cli.command.ok_or_else(|| {
        Cli::command().error(clap::error::ErrorKind::MissingSubcommand, "an input is needed")
    })
}

/// The error of an argument too many, with the index that it is a part of, where the shell took one
/// apart.
fn with_unquoted(mut error: clap::Error, args: &[OsString]) -> clap::Error {
    let words = args.iter().skip(1).filter_map(|word| word.to_str());
    if let (ErrorKind::UnknownArgument, Some(index)) = (error.kind(), unquoted(words)) {
        error.insert(ContextKind::TrailingArg, ContextValue::String(index));
    }
    error
}

/// Refuse a first argument that looks like a command, and is none, and no file either.
fn refuse_unknown_command(
    definition: &clap::Command,
    args: &[OsString],
) -> Result<(), clap::Error> {
    let Some(word) = args.get(1).and_then(|word| word.to_str()) else { return Ok(()) };
    let commands = || definition.get_subcommands().filter(|command| !command.is_hide_set());
    let names: Vec<&str> = commands().map(clap::Command::get_name).collect();
    let looks_like_one = word.len() > 1 && word.bytes().all(|byte| byte.is_ascii_lowercase());
    if !looks_like_one || names.contains(&word) || Path::new(word).symlink_metadata().is_ok() {
        return Ok(());
    }
    let mut error = clap::Error::new(ErrorKind::InvalidSubcommand).with_cmd(definition);
    error.insert(ContextKind::InvalidSubcommand, ContextValue::String(word.to_owned()));
    let names = names.into_iter().map(str::to_owned).collect();
    error.insert(ContextKind::ValidSubcommand, ContextValue::Strings(names));
    if let Some(next) = args.get(2).and_then(|next| next.to_str()) {
        error.insert(ContextKind::TrailingArg, ContextValue::String(next.to_owned()));
    }
    Err(error)
}

/// The definition, for help pages and completions.
pub(crate) fn command() -> clap::Command {
    Cli::command()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_holds_together() {
        Cli::command().debug_assert();
    }
}
