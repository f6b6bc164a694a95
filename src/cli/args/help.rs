//! The texts of `-h`, `--help` and `--version`.
//!
//! `--help` has the layout of clap's `-h`, a flag on a line or two, but with all flags and their full
//! help; examples and the items of an index come first, rarely needed flags last.

use std::ffi::OsString;

use clap::{Arg, Command, CommandFactory};

use super::cli::COMMANDS;
use super::cli::Cli;
use super::manual::Notes;

/// A text that a command line asks for instead of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HelpOrVersion {
    Help,
    Version,
}

/// The text for `what`: `-h` and `-V` give it in short.
pub(crate) fn text_of(what: HelpOrVersion, args: &[OsString]) -> String {
    let mut words = args.iter().skip(1).take_while(|word| *word != "--");
    match what {
        HelpOrVersion::Help => {
            let named = args.get(1).and_then(|word| word.to_str());
            let named = named.filter(|word| COMMANDS.contains(word));
            help(named, words.any(|word| word == "--help"))
        }
        HelpOrVersion::Version => version(words.any(|word| word == "--version")),
    }
}

/// The help of a command; without a name, the help of the main job.
pub(crate) fn help(name: Option<&str>, is_long: bool) -> String {
    let mut definition = command();
    if is_long {
        definition = in_full(definition).mut_subcommands(in_full);
    }
    definition.build();
    let named = name.and_then(|name| definition.find_subcommand_mut(name).cloned());
    let help = named.unwrap_or(definition).render_help().to_string();
    // clap writes its hint wherever -h and --help differ
    if is_long { help.replace(" (see more with '--help')", " (-h: in short)") } else { help }
}

fn version(is_long: bool) -> String {
    let version = concat!("tslice ", env!("CARGO_PKG_VERSION"), "\n");
    if !is_long {
        return version.to_owned();
    }
    let features = [
        ("hdf5", cfg!(feature = "hdf5")),
        ("remote", cfg!(feature = "remote")),
        ("zarr", cfg!(feature = "zarr")),
    ];
    let features = features.into_iter().filter_map(|(name, is_on)| is_on.then_some(name));
    let features = listed(&Vec::from_iter(features));
    let instructions = listed(&tslice::execute::pack::instructions());
    format!("{version}features: {features}\ninstructions: {instructions}\n")
}

fn listed(words: &[&str]) -> String {
    if words.is_empty() { "none".to_owned() } else { words.join(", ") }
}

pub(crate) fn command() -> Command {
    ordered(Cli::command()).mut_subcommands(ordered)
}

/// The flags to list first for every command: what it cannot do without, and what is used daily.
const FIRST: [&str; 15] = [
    "inputs", "indices", "values", "value", "fill", "parts", "sizes", "at", "every", "output",
    "in_place", "tensor", "cast", "stats", "reduce",
];

/// The flags that all commands have, to be listed behind their own.
const LAST: [&str; 5] = ["force", "dry_run", "json", "threads", "quiet"];

/// The headings that several commands have, in the order of the help.
const HEADINGS: [&str; 10] = [
    "Choose and name tensors",
    "Select elements",
    "Change shape and axes",
    "Convert elements",
    "Write the output",
    "Read the input",
    "Read a checkpoint",
    "Read text",
    "Read raw bytes",
    "StridedSlice (in place of INDEX)",
];

fn ordered(command: Command) -> Command {
    let id = |arg: &Arg| arg.get_id().to_string();
    let ids: Vec<String> =
        command.get_arguments().filter(|arg| !arg.is_positional()).map(id).collect();
    let command = ids.iter().enumerate().fold(command, |command, (at, id)| {
        let first = FIRST.iter().position(|first| first == id);
        let last = LAST.iter().position(|last| last == id);
        command.mut_arg(id, |arg| match (first, last) {
            (Some(first), _) => arg.help_heading(None::<&str>).display_order(first),
            (_, Some(last)) => arg.help_heading(None::<&str>).display_order(500 + last),
            _ => arg.display_order(100 + at),
        })
    });
    // headings come in the order of their first flags, and a changed flag goes to the end
    HEADINGS.iter().fold(command, |command, heading| {
        let is_below = |arg: &&Arg| arg.get_help_heading() == Some(heading);
        let ids: Vec<String> = command.get_arguments().filter(is_below).map(id).collect();
        ids.iter().fold(command, |command, id| command.mut_arg(id, |arg| arg))
    })
}

/// clap's layout, but with examples and notes before the flags.
const TEMPLATE: &str =
    "{about-with-newline}\n{usage-heading} {usage}\n\n{before-help}{all-args}{after-help}";

/// Make `-h` of the command show all that its `--help` would.
fn in_full(command: Command) -> Command {
    let text = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
    let notes = Notes::of(&text);
    let examples = format!("Examples:\n{}", notes.examples.trim_end());
    let before = [&[examples.as_str()], &notes.before[..]].concat().join("\n\n");
    let behind = notes.behind.iter().filter(|note| !note.starts_with(SCHEDULERS));
    let behind: Vec<&str> = behind.copied().collect();
    let about = command.get_long_about().or(command.get_about()).cloned();
    command
        .mut_args(described)
        .about(about.unwrap_or_default())
        .help_template(TEMPLATE)
        .before_help(before)
        .after_help(behind.join("\n\n"))
}

/// The section that only the manual page has; docs/parts.md tells more.
const SCHEDULERS: &str = "Environment of schedulers:";

/// Put all that is known of a flag into one paragraph, and its values below.
fn described(arg: Arg) -> Arg {
    let text = arg.get_long_help().or(arg.get_help()).map(ToString::to_string);
    let paragraphs: Vec<String> = text
        .iter()
        .flat_map(|text| text.split("\n\n"))
        .map(|text| text.trim().to_owned())
        .collect();
    let mut text = String::new();
    for paragraph in paragraphs {
        if !text.is_empty() {
            text += if text.ends_with('.') { " " } else { ". " };
        }
        text += &paragraph;
    }
    let values = if arg.get_action().takes_values() { arg.get_possible_values() } else { vec![] };
    let texts: Vec<String> = values
        .iter()
        .filter(|value| !value.is_hide_set())
        .filter_map(|value| {
            let about = value.get_help().map(ToString::to_string).unwrap_or_default();
            (!about.is_empty()).then(|| format!("\n- {}: {about}", value.get_name()))
        })
        .collect();
    let all_have_text = !texts.is_empty() && texts.len() == values.len();
    if all_have_text {
        text.extend(texts);
    }
    let arg = arg.hide_short_help(false).hide_possible_values(all_have_text);
    if text.is_empty() { arg } else { arg.help(text).long_help(None::<&str>) }
}
