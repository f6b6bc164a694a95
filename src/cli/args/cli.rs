//! The command line as a whole: subcommands and their help, and how a line is parsed.

use std::ffi::OsString;
use std::mem::ManuallyDrop;
use std::path::Path;

use clap::builder::PossibleValuesParser;
use clap::error::ErrorKind;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};

use super::assign::AssignArgs;
use super::diff::DiffArgs;
use super::explain::ExplainArgs;
use super::gather::GatherArgs;
use super::info::InfoArgs;
use super::join::JoinArgs;
use super::manual;
use super::merge::MergeArgs;
use super::normalize::{SLICE, normalize, parted_list};
use super::scatter::ScatterArgs;
use super::slice::SliceArgs;
use super::split::SplitArgs;
use super::view::ViewArgs;

/// Cut pieces out of tensor files (.npy, .npz, .safetensors, .pt, .gguf) of any size.
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
    override_usage = "tslice INPUT [INDEX] [-o OUTPUT]\n       tslice COMMAND ...",
    after_help = "More flags (--to, --reshape, --rearrange, --field, --unpack, ...) and examples: --help",
    after_long_help = manual::SLICE
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    slice: Option<SliceArgs>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Write the selected elements of a tensor to a new file (the default)
    #[command(name = SLICE, hide = true, override_usage = "tslice INPUT [INDEX] [-o OUTPUT]", after_long_help = manual::SLICE)]
    Slice(SliceArgs),
    /// Take slices at the positions of an index tensor (gather_nd; with --axis gather)
    #[command(
        override_usage = "tslice gather [PARAMS] --indices FILE [-o OUTPUT]",
        after_long_help = manual::GATHER
    )]
    Gather(GatherArgs),
    /// Write a value into a slice of a tensor: TARGET[INDEX] = VALUE
    #[command(
        override_usage = "tslice assign TARGET [INDEX] --value FILE [-o OUTPUT | --in-place]\n       \
                          tslice assign TARGET [INDEX] --fill NUMBER [-o OUTPUT | --in-place]",
        after_long_help = manual::ASSIGN
    )]
    Assign(AssignArgs),
    /// Write slices at the positions of an index tensor (TensorScatterUpdate)
    #[command(
        override_usage = "tslice scatter TARGET --indices FILE --values FILE [-o OUTPUT | --in-place]",
        after_long_help = manual::SCATTER
    )]
    Scatter(ScatterArgs),
    /// Join tensors along one of their axes (np.concatenate)
    #[command(
        override_usage = "tslice concat INPUT... [--axis A] [-o OUTPUT]\n       \
                          tslice concat --files-from FILE [--axis A] [-o OUTPUT]\n       \
                          tslice concat --append-to FILE.npy INPUT...",
        after_long_help = manual::CONCAT
    )]
    Concat(JoinArgs),
    /// Join tensors of one shape along a new axis (np.stack)
    #[command(
        override_usage = "tslice stack INPUT... [--axis A] [-o OUTPUT]\n       \
                          tslice stack --files-from FILE [--axis A] [-o OUTPUT]",
        after_long_help = manual::STACK,
        mut_arg("append_to", |arg| arg.hide(true))
    )]
    Stack(JoinArgs),
    /// Put the tensors of several files into one
    #[command(
        override_usage = "tslice merge INPUT... -o OUTPUT\n       \
                          tslice merge --files-from FILE -o OUTPUT",
        after_long_help = manual::MERGE
    )]
    Merge(MergeArgs),
    /// Cut a tensor into several files along an axis (np.array_split, np.split)
    #[command(
        override_usage = "tslice split INPUT [INDEX] --parts N -o PATTERN\n       \
                          tslice split INPUT [INDEX] (--sizes | --at) LIST -o PATTERN\n       \
                          tslice split INPUT [INDEX] --every N -o PATTERN",
        after_long_help = manual::SPLIT,
        mut_arg("output", |output| {
            output
                .value_name("PATTERN")
                .help("The files to write: {} is the number of the part, from 0 on, {:04} with four digits")
        })
    )]
    Split(SplitArgs),
    /// Print values as NumPy prints them
    #[command(
        override_usage = "tslice view INPUT [INDEX]\n       \
                          tslice view --stats --files-from FILE",
        after_long_help = manual::VIEW
    )]
    View(ViewArgs),
    /// Compare two files, and show where they differ
    #[command(override_usage = "tslice diff A B [INDEX]", after_long_help = manual::DIFF)]
    Diff(DiffArgs),
    /// List the tensors of files: names, dtypes, shapes
    #[command(
        override_usage = "tslice info INPUT...\n       tslice info --files-from FILE",
        after_long_help = manual::INFO
    )]
    Info(InfoArgs),
    /// Explain an index, in NumPy's words and as StridedSlice's numbers
    #[command(
        override_usage = "tslice explain INPUT [INDEX]\n       tslice explain INDEX --shape 5,6,7",
        after_long_help = manual::EXPLAIN,
        mut_arg("shape", |shape| {
            shape
                .help("Explain against this shape, without a file; with --dtype, the shape of raw bytes")
                .long_help(None)
                .hide_short_help(false)
        })
    )]
    Explain(ExplainArgs),
    /// Print a completion script for a shell
    #[command(
        override_usage = "tslice completions bash|elvish|fish|powershell|zsh",
        after_long_help = manual::COMPLETIONS
    )]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the help of a command, as its --help does
    #[command(override_usage = "tslice help [COMMAND]", after_long_help = manual::HELP)]
    Help(TopicArgs),
    /// Show the manual page of a command
    #[command(override_usage = "tslice man [COMMAND]", after_long_help = manual::MAN)]
    Man(TopicArgs),
}

#[derive(Args, Clone, Debug)]
pub(crate) struct TopicArgs {
    /// The command; tslice itself if omitted
    #[arg(value_name = "COMMAND", value_parser = PossibleValuesParser::new(COMMANDS))]
    pub(crate) topic: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shell {
    Bash,
    Elvish,
    Fish,
    #[value(alias = "pwsh")]
    Powershell,
    Zsh,
}

// To make the whole definition, help texts of all subcommands included, takes longer than to slice a
// small file. A command line that is right needs the flags of its own subcommand only. Of one that is
// not, or asks for help, nothing is said by these: it is parsed again, by the whole definition.

/// Parse a command line, program name first. `Err` also has what to print instead of work: the
/// help, or the version.
pub(crate) fn parse(args: &[OsString]) -> Result<Command, clap::Error> {
    let command = parse_alone(args).map_or_else(|| parse_by_all(args), Ok)?;
    match parted_list(args) {
        None => Ok(command),
        Some(_) => Err(clap::Error::new(ErrorKind::UnknownArgument)),
    }
}

/// Adds the arguments of a subcommand; `None` for one that is left to the whole definition.
type Arguments = Option<fn(clap::Command) -> clap::Command>;

/// All subcommands, by their names.
const SUBCOMMANDS: [(&str, Arguments); 15] = [
    (SLICE, Some(SliceArgs::augment_args)),
    ("gather", Some(GatherArgs::augment_args)),
    ("assign", Some(AssignArgs::augment_args)),
    ("scatter", Some(ScatterArgs::augment_args)),
    ("concat", Some(JoinArgs::augment_args)),
    ("stack", Some(JoinArgs::augment_args)),
    ("merge", Some(MergeArgs::augment_args)),
    ("split", Some(SplitArgs::augment_args)),
    ("view", Some(ViewArgs::augment_args)),
    ("diff", Some(DiffArgs::augment_args)),
    ("info", Some(InfoArgs::augment_args)),
    ("explain", Some(ExplainArgs::augment_args)),
    ("completions", None),
    ("help", None),
    ("man", None),
];

/// The subcommands that are typed: all except the main job's.
pub(crate) const COMMANDS: [&str; 14] = {
    let mut names = [""; SUBCOMMANDS.len() - 1];
    let mut at = 0;
    while at < names.len() {
        names[at] = SUBCOMMANDS[at + 1].0;
        at += 1;
    }
    names
};

/// Parse a command line, program name first; `None` if the whole definition must say what it is.
fn parse_alone(args: &[OsString]) -> Option<Command> {
    let first = args.get(1)?.to_str()?;
    let named = SUBCOMMANDS.iter().find(|(name, _)| *name == first && *name != SLICE);
    let is_input = !first.starts_with('-') || first == "-";
    let (name, arguments) = match named {
        Some(subcommand) => subcommand,
        None if is_input && !may_be_misspelled(first) => &SUBCOMMANDS[0],
        None => return None,
    };
    let subcommand = (*arguments)?(clap::Command::new(*name));
    let definition = clap::Command::new("tslice").subcommand(subcommand);
    let args = normalize(&definition, args.iter().cloned());
    // never dropped: to free all of it one by one takes as long as to parse a line by it
    let mut definition = ManuallyDrop::new(definition);
    let matches = ManuallyDrop::new(definition.try_get_matches_from_mut(args).ok()?);
    Command::from_arg_matches(&matches).ok()
}

fn parse_by_all(args: &[OsString]) -> Result<Command, clap::Error> {
    let definition = Cli::command();
    let first = args.get(1).and_then(|word| word.to_str());
    let is_command =
        |word| definition.get_subcommands().any(|it| !it.is_hide_set() && it.get_name() == word);
    if first.is_some_and(|word| !is_command(word) && may_be_misspelled(word)) {
        return Err(clap::Error::new(ErrorKind::InvalidSubcommand));
    }
    let cli = Cli::try_parse_from(normalize(&definition, args.iter().cloned()))?;
    let missing = || Cli::command().error(ErrorKind::MissingSubcommand, "an input is needed");
    cli.command.ok_or_else(missing)
}

/// Whether the first word looks like a command, and there is no such file either.
pub(super) fn may_be_misspelled(word: &str) -> bool {
    let looks_like_one = word.len() > 1 && word.bytes().all(|byte| byte.is_ascii_lowercase());
    looks_like_one && Path::new(word).symlink_metadata().is_err()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args::command;

    #[test]
    fn the_definition_holds_together() {
        Cli::command().debug_assert();
    }

    /// clap accepts a flag without the flag that it requires, if the required flag conflicts with a third flag
    /// that is given: `-0` beside INPUT, which excludes the --files-from that `-0` requires. It
    /// would be accepted, and do nothing. A group, however, is always required.
    #[test]
    fn what_a_flag_requires_is_required_beside_all_that_it_may_stand_with() {
        let mut definition = Cli::command();
        definition.build();
        let mut seen = 0;
        let mut ignored = Vec::new();
        for command in definition.get_subcommands() {
            let find = |id: &String| command.get_arguments().find(|arg| *arg.get_id() == **id);
            for flag in command.get_arguments() {
                seen += requirements(flag).len();
                for required in requirements(flag).iter().filter_map(find) {
                    let others = command.get_arguments().filter(|it| it.get_id() != flag.get_id());
                    let waives = |third: &&clap::Arg| {
                        conflict(command, required, third) && !conflict(command, flag, third)
                    };
                    ignored.extend(others.filter(waives).map(|third| {
                        let ids = (flag.get_id(), required.get_id(), third.get_id());
                        format!(
                            "{}: {} without {}, beside {}",
                            command.get_name(),
                            ids.0,
                            ids.1,
                            ids.2
                        )
                    }));
                }
            }
        }
        assert!(seen > 40, "{seen}");
        assert_eq!(ignored, [""; 0]);
    }

    /// The arguments and groups that an argument requires; clap tells them only in debug output.
    fn requirements(arg: &clap::Arg) -> Vec<String> {
        let text = format!("{arg:?}");
        let (_, list) = text.split_once(", requires: [").unwrap();
        let (list, _) = list.split_once(']').unwrap();
        list.split('"').skip(1).step_by(2).map(str::to_owned).collect()
    }

    fn conflict(command: &clap::Command, one: &clap::Arg, other: &clap::Arg) -> bool {
        let excludes = |one: &clap::Arg, other: &clap::Arg| {
            command.get_arg_conflicts_with(one).iter().any(|arg| arg.get_id() == other.get_id())
        };
        let together = command.get_groups().any(|group| {
            let holds = |arg: &clap::Arg| group.get_args().any(|id| id == arg.get_id());
            !group.clone().is_multiple() && holds(one) && holds(other)
        });
        one.get_id() != other.get_id() && (excludes(one, other) || excludes(other, one) || together)
    }

    /// No subcommand is missing, and each has its arguments of the whole definition.
    #[test]
    fn each_subcommand_is_that_of_the_whole_definition() {
        let whole = command();
        assert_eq!(whole.get_subcommands().count(), SUBCOMMANDS.len());
        for (name, arguments) in SUBCOMMANDS {
            let theirs = whole.find_subcommand(name).unwrap();
            let Some(arguments) = arguments else { continue };
            let ours = arguments(clap::Command::new(name));
            let described = |command: &clap::Command| -> Vec<String> {
                let describe = |arg: &clap::Arg| {
                    let is =
                        (arg.get_long(), arg.get_short(), arg.get_action(), arg.get_num_args());
                    format!("{} {is:?} {}", arg.get_id(), arg.is_required_set())
                };
                let mut described: Vec<String> = command.get_arguments().map(describe).collect();
                described.sort_unstable();
                described
            };
            assert_eq!(described(&ours), described(theirs), "{name}");
            let groups = |command: &clap::Command| command.get_groups().count();
            assert_eq!(groups(&ours), groups(theirs), "{name}");
        }
    }

    #[test]
    fn what_is_wrong_or_asks_for_help_is_left_to_the_whole_definition() {
        for line in
            ["", "-h", "--version", "gather --help", "no-such-flag.npy --zap", "gathre a.npy"]
        {
            let args: Vec<OsString> = std::iter::once("tslice")
                .chain(line.split_whitespace())
                .map(OsString::from)
                .collect();
            assert!(parse_alone(&args).is_none(), "{line}");
        }
        for line in ["a.npy [::2]", "- -1 -o b.npy", "gather a.npy --indices i.npy", "info a.npy"] {
            let args: Vec<OsString> = std::iter::once("tslice")
                .chain(line.split_whitespace())
                .map(OsString::from)
                .collect();
            assert!(parse_alone(&args).is_some(), "{line}");
        }
    }
}
