//! What completes the value of each argument.

use std::ffi::{OsStr, OsString};
use std::sync::Arc;

use clap::builder::StyledStr;
use clap::{Arg, ArgMatches, Command, ValueHint};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use tslice::dtype::Scalar;
use tslice::format::{dtype_names, is_printable};

use super::names::{self, NameAndMeaning};

/// The mark of a candidate that stands for the names of files, behind the text that it holds.
pub(super) const FILES: &str = "files";

/// The mark of a candidate that stands for any text, such as an index.
pub(super) const TEXT: &str = "text";

/// The mark of a candidate behind which the value goes on.
pub(super) const PART: &str = "part";

/// Give each argument of a command what completes its values; `given` are those that the line
/// holds.
pub(super) fn with_completers(command: Command, given: &ArgMatches) -> Command {
    let paths = Paths::of(given);
    command.mut_args(|arg| match completer(&arg, &paths) {
        Some(completer) => arg.add(completer),
        None => arg,
    })
}

/// The files that a line names, by what they are for.
struct Paths {
    inputs: Arc<[OsString]>,
    value: Arc<[OsString]>,
    indices: Arc<[OsString]>,
}

impl Paths {
    fn of(given: &ArgMatches) -> Paths {
        // enough of a join: its inputs hold the same names
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
        "tensor" | "exclude" => of(&paths.inputs, names::tensors, ""),
        "rename" => of(&paths.inputs, names::tensors, "="),
        "axis" if arg.get_value_names().is_some_and(|names| names[0].contains("NAME")) => {
            of(&paths.inputs, names::tensors, "=")
        }
        "value_tensor" | "values_tensor" => of(&paths.value, names::tensors, ""),
        "indices_tensor" => of(&paths.indices, names::tensors, ""),
        "field" => of(&paths.inputs, names::fields, ""),
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

/// The shell knows best how to complete names of files.
fn files(_: &OsStr) -> Vec<CompletionCandidate> {
    vec![CompletionCandidate::new("").id(Some(FILES.to_owned()))]
}

/// Nobody knows what will be typed.
fn text(_: &OsStr) -> Vec<CompletionCandidate> {
    vec![CompletionCandidate::new("").id(Some(TEXT.to_owned()))]
}

/// The names that begin as what is typed, with what follows them in the value.
fn named(typed: &OsStr, names: Vec<NameAndMeaning>, more: &str) -> Vec<CompletionCandidate> {
    let Some(typed) = typed.to_str() else { return Vec::new() };
    let candidate = |(name, about): NameAndMeaning| {
        // the answer is made of lines and columns
        let shown = name.starts_with(typed) && name.chars().all(is_printable);
        let about = StyledStr::from(about.replace(|char| !is_printable(char), " "));
        let candidate = CompletionCandidate::new(format!("{name}{more}")).help(Some(about));
        let mark = (!more.is_empty()).then(|| format!("{PART} {name}"));
        shown.then(|| candidate.id(mark))
    };
    names.into_iter().filter_map(candidate).collect()
}

/// The usual names of dtypes; others where none of those begins as what is typed.
fn dtypes(typed: &OsStr) -> Vec<CompletionCandidate> {
    let names = |names: Vec<String>| names.into_iter().map(|name| (name, String::new())).collect();
    let usual = Scalar::ALL.iter().map(|scalar| scalar.name().to_owned()).collect();
    match named(typed, names(usual), "") {
        found if found.is_empty() => named(typed, names(dtype_names()), ""),
        found => found,
    }
}

/// `[FROM:]DTYPE`.
fn cast(typed: &OsStr) -> Vec<CompletionCandidate> {
    match typed.to_str().and_then(|typed| typed.split_once(':')) {
        Some((from, typed)) => {
            let candidates = dtypes(typed.as_ref()).into_iter();
            candidates.map(|candidate| candidate.add_prefix(format!("{from}:"))).collect()
        }
        None => dtypes(typed),
    }
}

/// The words that `--part` knows beside numbers.
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
