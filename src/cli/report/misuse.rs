//! clap's errors about a command line, in the program's own words.
//!
//! clap's reports span several lines, with a heading, tips and a pointer to the help. Here they
//! become like every other error: one line, and a hint or the usage if that helps.

use std::error::Error;
use std::ffi::OsString;
use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use tslice::formats::outputs;

use super::failure::Failure;
use super::peers;
use crate::cli::args::{
    COMMANDS, HelpOrVersion, PartedList, SLICE, command, parted_list, unquoted,
};

/// Word clap's error about `args` (program name first), and guess what was meant: a command, a list or an index
/// that the shell took apart. `Ok` if it is not an error, but help or version were asked for.
pub(crate) fn failure(error: &clap::Error, args: &[OsString]) -> Result<HelpOrVersion, Failure> {
    match error.kind() {
        ErrorKind::DisplayHelp => return Ok(HelpOrVersion::Help),
        ErrorKind::DisplayVersion => return Ok(HelpOrVersion::Version),
        _ => {}
    }
    if let Some(PartedList { typed, hint }) = parted_list(args) {
        let failure = Failure::usage(format_args!("{typed}: a list must not contain blanks"));
        return Err(failure.hint_if((!hint.is_empty()).then_some(hint)));
    }
    let index = unquoted(args.iter().skip(1).filter_map(|word| word.to_str()));
    Err(match (error.kind(), index) {
        (ErrorKind::InvalidSubcommand, _) => unknown_command(args),
        (ErrorKind::UnknownArgument, Some(index)) => {
            unexpected(&texts_of(error, ContextKind::InvalidArg).concat()).hint(quote(&index))
        }
        _ => with_hint(worded(error), error, args),
    })
}

fn unexpected(argument: &str) -> Failure {
    Failure::usage(format_args!("unexpected argument '{argument}'"))
}

fn worded(error: &clap::Error) -> Failure {
    let typed = texts_of(error, ContextKind::InvalidArg);
    let args = shown(&typed);
    let arg = match args.join(" and ") {
        // messages begin with a small letter
        arg if arg.starts_with(char::is_uppercase) => format!("the argument {arg}"),
        arg => arg,
    };
    match error.kind() {
        ErrorKind::UnknownArgument => misplaced(unexpected(&typed.concat()), &typed.concat()),
        ErrorKind::MissingRequiredArgument => {
            let be = if args.len() == 1 { "is" } else { "are" };
            Failure::usage(format_args!("{arg} {be} missing"))
        }
        ErrorKind::ArgumentConflict => match shown(&texts_of(error, ContextKind::PriorArg)) {
            prior if prior == args => Failure::usage(format_args!("{arg} is given twice")),
            prior => {
                let prior = prior.join(" and ");
                Failure::usage(format_args!("{arg} cannot be used with {prior}"))
            }
        },
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => {
            match texts_of(error, ContextKind::InvalidValue).concat() {
                value if value.is_empty() => Failure::usage(format_args!("{arg} needs a value")),
                value => {
                    let reason = error.source().map(|why| format!(": {}", without_range(why)));
                    let reason = reason.unwrap_or_default();
                    Failure::usage(format_args!("invalid value '{value}' for {arg}{reason}"))
                }
            }
        }
        ErrorKind::TooManyValues => Failure::usage(format_args!("{arg} takes no value")),
        _ => {
            let report = error.render().to_string();
            let line = report.lines().next().unwrap_or_default();
            Failure::usage(line.strip_prefix("error: ").unwrap_or(line))
        }
    }
}

/// Word clap's "0 is not in 1..=9" as "a number from 1 to 9 is needed".
fn without_range(reason: &dyn Error) -> String {
    let reason = reason.to_string();
    let range = reason.split_once(" is not in ").and_then(|(_, range)| range.split_once("..="));
    match range {
        Some((least, most)) => format!("a number from {least} to {most} is needed"),
        None => reason,
    }
}

/// Add the probable meaning, the possible values, or the usage of the command.
fn with_hint(failure: Failure, error: &clap::Error, line: &[OsString]) -> Failure {
    let args = shown(&texts_of(error, ContextKind::InvalidArg));
    let is_unknown = error.kind() == ErrorKind::UnknownArgument;
    let unknown = args.first().filter(|_| is_unknown);
    let peers = |flag: &String| flag_meant(flag, peers::meant(flag)?, line);
    if let Some(hint) = unknown.and_then(peers) {
        return failure.hint(hint);
    }
    // clap also proposes words that have little in common
    let near = |typed, suggested| {
        let typed = texts_of(error, typed).concat();
        texts_of(error, suggested).into_iter().rfind(|suggested| is_near(&typed, suggested))
    };
    let suggested = near(ContextKind::InvalidArg, ContextKind::SuggestedArg)
        .or_else(|| near(ContextKind::InvalidValue, ContextKind::SuggestedValue));
    if let Some(suggested) = suggested {
        return failure.hint(format_args!("did you mean '{suggested}'?"));
    }
    let possible = texts_of(error, ContextKind::ValidValue).join(", ");
    if !possible.is_empty() {
        return failure.hint(format_args!("possible values: {possible}"));
    }
    let are_flags = args.iter().all(|arg| {
        arg.starts_with('-') && !arg[1..].starts_with(|first: char| first.is_ascii_digit())
    });
    match error.kind() {
        ErrorKind::UnknownArgument if are_flags => {
            let elsewhere = unknown.and_then(|flag| flag_meant(flag, flag, line));
            failure.hint(elsewhere.unwrap_or_else(|| "--help lists the flags".to_owned()))
        }
        ErrorKind::UnknownArgument if failure.hint.is_some() => failure,
        ErrorKind::UnknownArgument | ErrorKind::MissingRequiredArgument if !are_flags => {
            failure.usage_lines(&texts_of(error, ContextKind::Usage).concat())
        }
        _ => failure,
    }
}

/// The hint at the flag that an unknown one stands for: one of `flags` that the command has, or the commands that
/// have the first of them.
fn flag_meant(typed: &str, flags: &str, line: &[OsString]) -> Option<String> {
    let definition = command();
    let has = |command: &clap::Command, flag: &str| {
        let is_it = |arg: &clap::Arg| arg.get_long() == flag.strip_prefix("--");
        command.get_arguments().any(|arg| is_it(arg) && !arg.is_hide_set())
    };
    let named = line.get(1).and_then(|word| definition.find_subcommand(word));
    let own = named.or_else(|| definition.find_subcommand(SLICE))?;
    if let Some(flag) = flags.split(' ').find(|flag| *flag != typed && has(own, flag)) {
        return Some(format!("use {flag} here"));
    }
    let flag = flags.split(' ').next().filter(|flag| flag.starts_with("--"))?;
    let commands = definition.get_subcommands().filter(|it| !it.is_hide_set() && has(it, flag));
    let named = Vec::from_iter(commands.map(|command| format!("`tslice {}`", command.get_name())));
    let (last, others) = named.split_last()?;
    Some(match others {
        [] => format!("{flag} is a flag of {last}"),
        others => format!("{flag} is a flag of {} and {last}", others.join(", ")),
    })
}

pub(crate) fn quote(index: &str) -> String {
    format!("quote the index, so that the shell does not take it apart: '{index}'")
}

pub(crate) fn misplaced(failure: Failure, typed: &str) -> Failure {
    let path = Path::new(typed);
    if path.exists() && typed.chars().count() == 1 {
        return failure
            .hint("that is a file: quote the index, so that the shell does not replace it");
    }
    if path.exists() {
        return failure.hint(
            "that is a file, and an index is expected here; `tslice concat`, `stack` and `merge` join files",
        );
    }
    let extension = path.extension().and_then(|extension| extension.to_str());
    let is_output = |known: &str| extension == Some(known);
    if outputs().flat_map(|format| format.extensions).any(|known| is_output(known)) {
        failure.hint(format_args!("an output is given with -o: -o {typed}"))
    } else if is_name(typed) {
        failure.hint(format_args!("-t chooses a tensor by its name: -t {typed}"))
    } else {
        failure
    }
}

fn is_name(word: &str) -> bool {
    let is_part = |char: char| char.is_ascii_alphanumeric() || "_.-/".contains(char);
    word.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && word.chars().all(is_part)
        && !["True", "False"].contains(&word)
}

fn unknown_command(args: &[OsString]) -> Failure {
    let typed = args.get(1).and_then(|it| it.to_str()).unwrap_or("");
    let failure = Failure::usage(format_args!("'{typed}' is neither a command nor a file"));
    let near = || did_you_mean(typed, COMMANDS.iter().copied());
    let hint = peers::meant(typed).map(str::to_owned).or_else(near).unwrap_or_else(|| {
        let commands = COMMANDS.join(", ");
        format!("`tslice INPUT [INDEX]` slices; the commands are {commands}")
    });
    failure.hint(hint)
}

fn texts_of(error: &clap::Error, kind: ContextKind) -> Vec<String> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => vec![text.clone()],
        Some(ContextValue::Strings(texts)) => texts.clone(),
        Some(ContextValue::StyledStr(text)) => vec![text.to_string()],
        _ => Vec::new(),
    }
}

/// Shorten clap's arguments: `--output` for `--output <FILE>`, `INPUT` for `<INPUT>`, and `--output
/// or --in-place` for a group of which one is needed. They are sorted, since clap names missing
/// ones in the order in which they were asked for.
fn shown(args: &[String]) -> Vec<String> {
    let bare = |arg: &str| {
        let word = arg.split(' ').next().unwrap_or_default();
        word.trim_matches(['<', '>', '[', ']', '.']).to_owned()
    };
    let shown = |arg: &String| arg.split('|').map(bare).collect::<Vec<_>>().join(" or ");
    let mut shown: Vec<String> = args.iter().map(shown).collect();
    shown.sort();
    shown
}

/// The known words that are near to a typed one, the nearest first, at most three.
fn nearest<'w>(typed: &str, known: impl Iterator<Item = &'w str>) -> Vec<&'w str> {
    const MOST: usize = 3;
    let mut near: Vec<(usize, &str)> = Vec::new();
    for word in known.take(MOST_KNOWN) {
        let Some(distance) = distance(typed, word) else { continue };
        let at = near.partition_point(|(other, _)| *other <= distance);
        near.insert(at, (distance, word));
        near.truncate(MOST);
    }
    near.into_iter().map(|(_, word)| word).collect()
}

pub(crate) fn is_near(typed: &str, word: &str) -> bool {
    distance(typed.trim_start_matches('-'), word.trim_start_matches('-')).is_some()
}

pub(crate) fn did_you_mean<'w>(
    typed: &str,
    known: impl Iterator<Item = &'w str>,
) -> Option<String> {
    let near = nearest(typed, known).into_iter();
    let quoted: Vec<String> = near.map(|word| format!("'{word}'")).collect();
    let (last, others) = quoted.split_last()?;
    Some(match others {
        [] => format!("did you mean {last}?"),
        others => format!("did you mean {} or {last}?", others.join(", ")),
    })
}

/// Limits to the words that are compared and to their bytes: a hint must not take long.
const MOST_KNOWN: usize = 100_000;
const LONGEST: usize = 200;

/// Number of wrong letters: changed, missing, too many, or two that changed places. `None` if more
/// than a third of them are wrong.
fn distance(typed: &str, word: &str) -> Option<usize> {
    let longer = typed.len().max(word.len());
    let shorter = typed.len().min(word.len());
    let most = (shorter / 3).max(1);
    if longer > LONGEST || longer - shorter > most {
        return None;
    }
    Some(strsim::osa_distance(typed, word))
        .filter(|&distance| distance <= most && distance < shorter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_near_words_are_proposed() {
        for (typed, word) in
            [("gahter", "gather"), ("--outptu", "--output"), ("wrpa", "wrap"), ("inof", "info")]
        {
            assert!(is_near(typed, word), "{typed}");
        }
        for (typed, word) in [
            ("--transpose", "--tensor"),
            ("--strip", "--strides"),
            ("stats", "gather"),
            ("x", "y"),
            ("--x", "--tensor"),
        ] {
            assert!(!is_near(typed, word), "{typed}");
        }
    }

    #[test]
    fn the_nearest_come_first() {
        let names: Vec<String> =
            (0..1000).map(|layer| format!("model.layers.{layer}.mlp.weight")).collect();
        let names = || names.iter().map(String::as_str);
        let near = nearest("model.layer.17.mlp.weight", names());
        assert_eq!(near[0], "model.layers.17.mlp.weight");
        assert_eq!(near.len(), 3);
        assert!(nearest("lm_head", names()).is_empty());
        let words = ["stats", "stat", "state"].into_iter();
        let hint = did_you_mean("stat", words).unwrap();
        assert_eq!(hint, "did you mean 'stat', 'stats' or 'state'?");
        assert_eq!(did_you_mean("stat", [].into_iter()), None);
    }
}
