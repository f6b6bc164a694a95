//! One subcommand alone: the start of the program without the definitions of all others.
//!
//! To make the whole definition, help texts of all subcommands included, takes longer than to slice a
//! small file. A command line that is right needs the flags of its own subcommand only. Of one that is
//! not, or asks for help, nothing is said here: it is parsed again, by the whole definition.

use std::ffi::OsString;
use std::mem::ManuallyDrop;

use clap::{Args, FromArgMatches};

use super::cli::{Command, may_be_misspelled};
use super::diff::DiffArgs;
use super::edit::{AssignArgs, ScatterArgs};
use super::gather::GatherArgs;
use super::inspect::{ExplainArgs, InfoArgs};
use super::join::{JoinArgs, MergeArgs, SplitArgs};
use super::normalize::{SLICE, normalize, parted_list};
use super::slice::SliceArgs;
use super::view::ViewArgs;

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

/// The subcommands that are typed: all but that of the main job.
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
pub(super) fn parse_alone(args: &[OsString]) -> Option<Command> {
    let first = args.get(1)?.to_str()?;
    let named = SUBCOMMANDS.iter().find(|(name, _)| *name == first && *name != SLICE);
    let is_input = !first.starts_with('-') || first == "-";
    let (name, arguments) = match named {
        Some(subcommand) => subcommand,
        None if is_input && !may_be_misspelled(first) => &SUBCOMMANDS[0],
        None => return None,
    };
    let subcommand = (*arguments)?(clap::Command::new(*name));
    if parted_list(&subcommand, &args[if named.is_some() { 2 } else { 1 }..]).is_some() {
        return None;
    }
    let definition = clap::Command::new("tslice").subcommand(subcommand);
    let args = normalize(&definition, args.iter().cloned());
    // never dropped: to free all of it one by one takes as long as to parse a line by it
    let mut definition = ManuallyDrop::new(definition);
    let matches = ManuallyDrop::new(definition.try_get_matches_from_mut(args).ok()?);
    Command::from_arg_matches(&matches).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args::command;

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
