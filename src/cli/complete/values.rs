//! Completions for the value of each argument; names of tensors and fields come from the files of the line.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::builder::StyledStr;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint, value_parser};
use clap_complete::engine;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use tslice::dtype::{Field, Scalar, is_printable};
use tslice::formats::{self, dtype_names};
use tslice::input::{Input, Location, OpenOptions, TextFormat};
use tslice::shape::AsTuple;
use tslice::tensor::TensorInfo;

use super::super::args::{SLICE, command, insert_slice, normalize};
use super::super::report::Failure;
use super::line::TypedLine;

const FILES: &str = "files";

/// The id of a candidate for any text, such as an index.
pub(super) const TEXT: &str = "text";

/// The id of a candidate that is only the beginning of a value.
const PART: &str = "part";

fn with_completers(command: Command, given: &ArgMatches) -> Command {
    let paths = Paths::of(given);
    command.mut_args(|arg| match completer(&arg, &paths) {
        Some(completer) => arg.add(completer),
        None => arg,
    })
}

struct Paths {
    inputs: Arc<[OsString]>,
    value: Arc<[OsString]>,
    indices: Arc<[OsString]>,
}

impl Paths {
    fn of(given: &ArgMatches) -> Paths {
        // enough for a join, whose inputs hold the same names
        const MOST: usize = 2;
        let values = |ids: &[&str]| -> Arc<[OsString]> {
            let values = ids.iter().filter_map(|id| given.try_get_raw(id).ok().flatten());
            values.flatten().take(MOST).map(OsStr::to_owned).collect()
        };
        Paths {
            inputs: values(&["input", "inputs", "params", "target", "first", "second"]),
            value: values(&["value", "values"]),
            indices: values(&["indices"]),
        }
    }
}

fn completer(arg: &Arg, paths: &Paths) -> Option<ArgValueCompleter> {
    type Names = fn(&[OsString]) -> Vec<NameAndMeaning>;
    let of = |paths: &Arc<[OsString]>, find: Names, more: &'static str| {
        let paths = Arc::clone(paths);
        Some(ArgValueCompleter::new(move |typed: &OsStr| named(typed, find(&paths), more)))
    };
    match arg.get_id().as_str() {
        "tensor" | "exclude" | "group" => of(&paths.inputs, tensor_names, ""),
        "rename" => of(&paths.inputs, tensor_names, "="),
        "axis" if arg.get_value_names().is_some_and(|names| names[0].contains("NAME")) => {
            of(&paths.inputs, tensor_names, "=")
        }
        "value_tensor" | "values_tensor" => of(&paths.value, tensor_names, ""),
        "indices_tensor" => of(&paths.indices, tensor_names, ""),
        "field" => of(&paths.inputs, field_names, ""),
        "dtype" | "read_as" => Some(ArgValueCompleter::new(dtypes)),
        "cast" => Some(ArgValueCompleter::new(cast)),
        "part" => Some(ArgValueCompleter::new(part)),
        _ if arg.get_value_hint() == ValueHint::AnyPath => Some(ArgValueCompleter::new(files)),
        _ if arg.is_positional() && arg.get_possible_values().is_empty() => {
            Some(ArgValueCompleter::new(text))
        }
        _ => None,
    }
}

/// The shell completes names of files best.
fn files(_: &OsStr) -> Vec<CompletionCandidate> {
    vec![CompletionCandidate::new("").id(Some(FILES.to_owned()))]
}

fn text(_: &OsStr) -> Vec<CompletionCandidate> {
    vec![CompletionCandidate::new("").id(Some(TEXT.to_owned()))]
}

/// The names that begin with what is typed, each followed by `more`.
fn named(typed: &OsStr, names: Vec<NameAndMeaning>, more: &str) -> Vec<CompletionCandidate> {
    let Some(typed) = typed.to_str() else { return Vec::new() };
    let candidate = |(name, about): NameAndMeaning| {
        // the answer has lines and columns
        let shown = name.starts_with(typed) && name.chars().all(is_printable);
        let about = StyledStr::from(about.replace(|char| !is_printable(char), " "));
        let candidate = CompletionCandidate::new(format!("{name}{more}")).help(Some(about));
        let mark = (!more.is_empty()).then(|| format!("{PART} {name}"));
        shown.then(|| candidate.id(mark))
    };
    names.into_iter().filter_map(candidate).collect()
}

/// The usual names of dtypes, or if none of these fits, all others.
fn dtypes(typed: &OsStr) -> Vec<CompletionCandidate> {
    let names = |names: Vec<String>| names.into_iter().map(|name| (name, String::new())).collect();
    let usual = Scalar::ALL.iter().map(|scalar| scalar.name().to_owned()).collect();
    match named(typed, names(usual), "") {
        found if found.is_empty() => named(typed, names(dtype_names()), ""),
        found => found,
    }
}

fn cast(typed: &OsStr) -> Vec<CompletionCandidate> {
    match typed.to_str().and_then(|typed| typed.split_once(':')) {
        Some((from, typed)) => {
            let candidates = dtypes(typed.as_ref()).into_iter();
            candidates.map(|candidate| candidate.add_prefix(format!("{from}:"))).collect()
        }
        None => dtypes(typed),
    }
}

fn part(typed: &OsStr) -> Vec<CompletionCandidate> {
    let whole = [
        ("auto", "the part that the scheduler's variables name"),
        ("status", "which parts are missing"),
        ("discard", "remove what was begun"),
    ];
    let owned = |(name, about): (&str, &str)| (name.to_owned(), about.to_owned());
    let mut candidates = named(typed, whole.map(owned).into(), "");
    let plan = owned(("plan", "print a line for each of N parts"));
    candidates.extend(named(typed, vec![plan], "/"));
    candidates
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) kind: CandidateKind,
    /// The whole word; for files, what is typed before their names.
    pub(super) text: String,
    pub(super) about: String,
}

/// The kind of a candidate, as the letter that the scripts use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum CandidateKind {
    Files = b'f',
    Command = b'c',
    Flag = b'o',
    Value = b'v',
    /// The beginning of a value: no space follows.
    Part = b'p',
}

/// List the candidates at the cursor, in the order of the help.
pub(super) fn candidates(line: &TypedLine) -> Result<Vec<Candidate>, Failure> {
    let mut definition = command();
    let mut words: Vec<OsString> = line.before.iter().map(OsString::from).collect();
    let given = given(&definition, &words, &line.after);
    // the first word may become a subcommand or a file
    insert_slice(&definition, &mut words);
    definition = match words.get(1).and_then(|name| name.to_str()).map(str::to_owned) {
        Some(name) => definition.mut_subcommand(name, |sub| with_completers(sub, &given)),
        None => with_completers(definition, &given),
    };

    let typed = line.current.text.as_str();
    let mut found = engine(&mut definition, &words, typed)?;
    if typed == "-" {
        // flags by their long names, unless they have none
        let mut long = engine(&mut definition, &words, "--")?;
        found.retain(|short| long.iter().all(|long| long.get_id() != short.get_id()));
        long.append(&mut found);
        found = long;
    }
    let is_flag = |candidate: &CompletionCandidate| kind(candidate) == CandidateKind::Flag;
    let sub = words.get(1).and_then(|name| definition.find_subcommand(name));
    let flags = sub.unwrap_or(&definition);
    found.retain(|candidate| !is_flag(candidate) || !is_used(candidate, flags, &given));
    // flags are many: show them if one is begun, or if nothing else can follow
    if typed.is_empty() && !found.iter().all(is_flag) {
        found.retain(|candidate| !is_flag(candidate));
    }
    let main_job = format!("command::{SLICE}");
    let is_none = |id: &String| *id == main_job || id == TEXT;
    found.retain(|candidate| !candidate.get_id().is_some_and(is_none));
    Ok(found.into_iter().map(shown).collect())
}

/// List the words that clap allows after `words`, beginning with the typed text.
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

/// The arguments in the line, as far as they can be parsed.
fn given(definition: &Command, before: &[OsString], after: &[String]) -> ArgMatches {
    if before.len() < 2 {
        return ArgMatches::default();
    }
    // the word at the cursor is a value: of the flag before it, if there is one
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

/// Whether a flag is in the line already and may be given only once.
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

type NameAndMeaning = (String, String);

fn tensor_names(paths: &[OsString]) -> Vec<NameAndMeaning> {
    names_in(paths, |tensor| {
        let about = format!("{} {}", tensor.dtype, AsTuple(&tensor.element_shape()));
        Some((tensor.name?, about))
    })
}

fn field_names(paths: &[OsString]) -> Vec<NameAndMeaning> {
    names_in(paths, |tensor| {
        let fields = tensor.dtype.structure().map_or(&[][..], |structure| &structure.fields);
        let about = |field: &Field| (field.name.clone(), field.dtype.to_string());
        fields.iter().map(about).collect::<Vec<_>>()
    })
}

fn names_in<I: IntoIterator<Item = NameAndMeaning>>(
    paths: &[OsString],
    of: impl Fn(TensorInfo) -> I,
) -> Vec<NameAndMeaning> {
    let mut named = Vec::new();
    for input in paths.iter().filter_map(|path| open(Path::new(path))) {
        named.extend(input.contents().tensors.iter().flat_map(&of));
    }
    named.sort();
    named.dedup_by(|one, other| one.0 == other.0);
    named
}

/// Open a file or folder, if that needs no waiting.
fn open(path: &Path) -> Option<Input> {
    let path = from_home(path)?;
    let name = path.file_name()?.to_string_lossy().to_lowercase();
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    if TextFormat::by_extension(extension).is_some() && !name.ends_with(".index.json") {
        // a text would have to be read whole, and holds no names
        return None;
    }
    let metadata = path.metadata().ok()?;
    if !metadata.is_file() && !metadata.is_dir() {
        return None;
    }
    formats::open(&Location::Path(path), &OpenOptions::default()).ok()
}

/// Expand `~/`, which the shell has not done yet.
fn from_home(path: &Path) -> Option<PathBuf> {
    match path.strip_prefix("~") {
        Ok(rest) => Some(std::env::home_dir()?.join(rest)),
        Err(_) => Some(path.to_owned()),
    }
}
