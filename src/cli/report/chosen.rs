//! Messages about tensors that are chosen by name: the existing names, and the one that may be
//! meant.

use tslice::error::Error;
use tslice::input::SelectFault;
use tslice::tensor::shortened;

use super::failure::Failure;
use super::joins::rename;
use super::misuse::did_you_mean;

pub(super) fn select(
    error: &Error,
    fault: &SelectFault,
    flag: &str,
    failed: &dyn Fn() -> Failure,
) -> Failure {
    let file = error.file.as_ref().map(ToString::to_string).unwrap_or_default();
    let of_file = if file.is_empty() { String::new() } else { format!("{file}: ") };
    match fault {
        SelectFault::NotNamed { names, holds_several, excludes } => {
            let several = (*holds_several).then_some(flag);
            let choice = named(flag, "NAME");
            not_named(&file, &choice, names, several, *excludes)
        }
        SelectFault::Excluded(fault) => select(error, fault, "--exclude", &|| {
            Failure::new(format_args!("{of_file}--exclude: {fault}"))
        }),
        SelectFault::NothingLeft => {
            Failure::new(format_args!("{of_file}--exclude leaves out all chosen tensors"))
        }
        SelectFault::NotFound { pattern, names, links } => {
            // no one file is at fault if there are several inputs
            let hold = if file.is_empty() { "the inputs hold" } else { "it holds" };
            let links = if *links { "; links to other files are not followed" } else { "" };
            failed().hint(near_or_all(hold, pattern, names) + links)
        }
        SelectFault::Several { names, chooses, excludes } => {
            let chosen = format!("{} {} tensors", choosing(flag, *chooses, *excludes), names.len());
            Failure::new(format_args!("{chosen} of {file}, and one is needed"))
                .hint(list("they are", names))
        }
        SelectFault::Nameless { pattern } => {
            let choice = named(flag, pattern);
            Failure::new(format_args!("{choice}: the tensor of {file} has no name"))
        }
        SelectFault::Glob { error, .. } => {
            Failure::usage(named(flag, &fault.to_string())).hint_if(error.hint.as_ref())
        }
        SelectFault::OneName => Failure::new("--name names one tensor, and several are chosen")
            .hint("--rename OLD=NEW names each"),
        SelectFault::HoldsOne { keep_rest, format, .. } => if *keep_rest {
            Failure::usage(format_args!(
                "--keep-rest: an output of format {format} holds one tensor"
            ))
        } else {
            Failure::new(fault)
        }
        .hint(SEVERAL),
        SelectFault::NoRename(_)
        | SelectFault::BadRename { .. }
        | SelectFault::RenameNotFound { .. } => rename(fault),
        SelectFault::NoTensors | SelectFault::SameName(_) | SelectFault::SameNewName(_) => failed(),
    }
}

/// `several` is the flag, if it can choose all tensors.
fn not_named(
    file: &str,
    choice: &str,
    names: &[String],
    several: Option<&str>,
    excludes: bool,
) -> Failure {
    let count = names.len();
    let failure = Failure::new(format_args!(
        "{file}: the file holds {count} tensors, choose one with {choice}"
    ));
    if excludes {
        return failure.hint("--exclude without --keep-rest takes all other tensors");
    }
    let all = several.map(|flag| format!("{flag} '*' chooses all; ")).unwrap_or_default();
    failure.hint(all + &list("it holds", names))
}

pub(super) const SEVERAL: &str = "use a .safetensors or .npz output";

pub(crate) fn choosing(flag: &str, chooses: bool, excludes: bool) -> String {
    match (chooses, excludes) {
        (true, true) => format!("{flag} and --exclude leave"),
        (false, true) => "--exclude leaves".to_owned(),
        (_, false) => format!("{flag} chooses"),
    }
}

/// Spell a name as it is given: after the flag, or after the `#` of a list in an index.
fn named(flag: &str, name: &str) -> String {
    if flag.ends_with('#') { format!("{flag}{name}") } else { format!("{flag} {name}") }
}

/// The most names that are listed; of long ones fewer.
const MOST: usize = 20;
const FEW: usize = 5;

/// Bytes of names that are long together.
const LONG: usize = 1000;

/// List the names similar to a missing one, or a pattern for those that contain it, and all others
/// too if they are few. `hold` begins the sentence.
fn near_or_all(hold: &str, pattern: &str, names: &[String]) -> String {
    let near = did_you_mean(pattern, names.iter().map(String::as_str));
    let is_text = !pattern.is_empty() && !pattern.contains(['*', '?', '[', '{', '\\']);
    let held = || is_text && names.iter().any(|name| name.contains(pattern));
    let near = near.or_else(|| held().then(|| format!("did you mean '*{pattern}*'?")));
    match near {
        Some(near) if names.len() > MOST => near,
        Some(near) => format!("{near} {}", list(hold, names)),
        None => list(hold, names),
    }
}

/// List names, but not more than people read. `hold` begins the sentence.
fn list(hold: &str, names: &[String]) -> String {
    let mut len = 0;
    let is_shown = |(at, name): &(usize, &String)| {
        len += name.len();
        *at < FEW || len < LONG
    };
    let shown = names.iter().take(MOST).enumerate().take_while(is_shown);
    let shown: Vec<_> = shown.map(|(_, name)| shortened(name)).collect();
    match (shown.join(", "), names.len() - shown.len()) {
        (_, 0) if names.is_empty() => format!("{hold} no tensors"),
        (shown, 0) => format!("{hold} {shown}"),
        (shown, others) => format!("{hold} {shown}, and {others} more"),
    }
}
