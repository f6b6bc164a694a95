//! What may stand at the cursor of a line.

use std::ffi::OsString;

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use clap_complete::engine::{self, CompletionCandidate};

use super::line::TypedLine;
use super::values::{FILES, PART, TEXT, with_completers};
use crate::cli::args::{SLICE, command, insert_slice, normalize};
use crate::cli::report::Failure;

/// Something that may stand at the cursor.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) kind: CandidateKind,
    /// The whole word; of files what is typed before their names.
    pub(super) text: String,
    /// What it means; may be empty.
    pub(super) about: String,
}

/// What a candidate is, by the letter that tells it to a shell's script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum CandidateKind {
    /// The names of files, which the shell completes.
    Files = b'f',
    /// A subcommand.
    Command = b'c',
    /// A flag.
    Flag = b'o',
    /// A value.
    Value = b'v',
    /// The beginning of a value; no space follows.
    Part = b'p',
}

/// What may stand at the cursor, in the order of the help.
pub(super) fn candidates(line: &TypedLine) -> Result<Vec<Candidate>, Failure> {
    let mut definition = command();
    let mut words: Vec<OsString> = line.before.iter().map(OsString::from).collect();
    let given = given(&definition, &words, &line.after);
    // while the first word is typed, nobody knows whether it is a subcommand or a file
    insert_slice(&definition, &mut words);
    definition = match words.get(1).and_then(|name| name.to_str()).map(str::to_owned) {
        Some(name) => definition.mut_subcommand(name, |sub| with_completers(sub, &given)),
        None => with_completers(definition, &given),
    };

    let typed = line.current.text.as_str();
    let mut found = engine(&mut definition, &words, typed)?;
    if typed == "-" {
        // flags by their long names, and those that have none
        let mut long = engine(&mut definition, &words, "--")?;
        found.retain(|short| long.iter().all(|long| long.get_id() != short.get_id()));
        long.append(&mut found);
        found = long;
    }
    let is_flag = |candidate: &CompletionCandidate| kind(candidate) == CandidateKind::Flag;
    let sub = words.get(1).and_then(|name| definition.find_subcommand(name));
    let flags = sub.unwrap_or(&definition);
    found.retain(|candidate| !is_flag(candidate) || !is_used(candidate, flags, &given));
    // flags are many: they are shown when one is begun, or when nothing else can follow
    if typed.is_empty() && !found.iter().all(is_flag) {
        found.retain(|candidate| !is_flag(candidate));
    }
    let main_job = format!("command::{SLICE}");
    let is_none = |id: &String| *id == main_job || id == TEXT;
    found.retain(|candidate| !candidate.get_id().is_some_and(is_none));
    Ok(found.into_iter().map(shown).collect())
}

/// What clap finds that may stand behind these words, beginning as what is typed.
fn engine(
    definition: &mut Command,
    words: &[OsString],
    typed: &str,
) -> Result<Vec<CompletionCandidate>, Failure> {
    let mut words = words.to_vec();
    words.push(typed.into());
    let cursor = words.len() - 1;
    engine::complete(definition, words, cursor, None).map_err(Failure::new)
}

/// The arguments that the line holds, as far as they can be understood.
fn given(definition: &Command, before: &[OsString], after: &[String]) -> ArgMatches {
    if before.len() < 2 {
        return ArgMatches::default();
    }
    // something stands at the cursor: the value of a flag, where one is before it
    let words = before.iter().cloned().chain(["_".into()]);
    let words = normalize(definition, words.chain(after.iter().map(OsString::from)));
    let [_, name, words @ ..] = words.as_slice() else { return ArgMatches::default() };
    let Some(command) = definition.find_subcommand(name) else { return ArgMatches::default() };
    let any_text = |arg: Arg| match arg.get_action() {
        ArgAction::Set | ArgAction::Append => arg.value_parser(value_parser!(OsString)),
        _ => arg,
    };
    let lenient = command.clone().no_binary_name(true).ignore_errors(true).mut_args(any_text);
    lenient.try_get_matches_from(words).unwrap_or_default()
}

/// Whether a flag stands in the line already and may not be given again.
fn is_used(candidate: &CompletionCandidate, command: &Command, given: &ArgMatches) -> bool {
    let id = candidate.get_id().and_then(|id| id.strip_prefix("arg::"));
    let arg = command.get_arguments().find(|arg| Some(arg.get_id().as_str()) == id);
    arg.is_some_and(|arg| {
        let once = !matches!(arg.get_action(), ArgAction::Append | ArgAction::Help);
        let id = arg.get_id().as_str();
        let known = given.try_contains_id(id).is_ok();
        let source = known.then(|| given.value_source(id)).flatten();
        once && source == Some(ValueSource::CommandLine)
    })
}

fn kind(candidate: &CompletionCandidate) -> CandidateKind {
    match candidate.get_id().map(String::as_str) {
        Some(FILES) => CandidateKind::Files,
        Some(id) if id.starts_with("command::") => CandidateKind::Command,
        Some(id) if id.starts_with("arg::") => CandidateKind::Flag,
        Some(id) if id.starts_with(PART) => CandidateKind::Part,
        _ => CandidateKind::Value,
    }
}

fn shown(candidate: CompletionCandidate) -> Candidate {
    let about = candidate.get_help().map(ToString::to_string).unwrap_or_default();
    Candidate {
        kind: kind(&candidate),
        text: candidate.get_value().to_string_lossy().into_owned(),
        about: about.lines().next().unwrap_or_default().to_owned(),
    }
}
