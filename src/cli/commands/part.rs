//! `--part`: one part of an output, the plan of all, and what there is of them.

use std::ffi::OsString;
use std::ops::Range;
use std::path::Path;

use serde_json::json;
use tslice::error::{Error, FileName};
use tslice::execute::OutOfCore;
use tslice::format::printable;
use tslice::job::Parts;
use tslice::sink;
use tslice::sink::Part;
use tslice::source::remote::mask_secrets;

use super::{output, scheduler};
use crate::cli::args::{OutputArgs, PartArg};
use crate::cli::report::{Failure, Json, counted, print, quoted};

/// What a run writes of an output.
pub(super) enum Share {
    Whole,
    Part(Part),
    /// Nothing: the plan for so many parts is printed.
    Plan(u64),
}

/// What is asked for. `None` where it is done already: `--part status` and `--part discard` look at
/// the output alone.
pub(super) fn share(args: &OutputArgs) -> Result<Option<Share>, Failure> {
    let Some(part) = args.part else { return Ok(Some(Share::Whole)) };
    let path = match args.output.as_deref() {
        Some(path) if path != Path::new("-") => path,
        _ => {
            let message = "--part needs an output that is a file";
            return Err(Failure::usage(message).hint("-o FILE names it"));
        }
    };
    let writes = matches!(part, PartArg::One(_) | PartArg::Auto);
    if args.dry_run && !writes {
        return Err(Failure::usage("--dry-run has no effect: this --part writes no element"));
    }
    match part {
        PartArg::One(part) => Ok(Some(Share::Part(part))),
        PartArg::Auto => Ok(Some(Share::Part(scheduler::part()?))),
        PartArg::Plan(count) => Ok(Some(Share::Plan(count))),
        PartArg::Status => status(path).map(|()| None),
        PartArg::Discard => discard(path).map(|()| None),
    }
}

fn status(path: &Path) -> Result<(), Failure> {
    let found = sink::status(path).map_err(|error| Failure::file(path, error))?;
    print(&match found {
        None => {
            let there = if path.exists() { "the file is in place, and " } else { "" };
            format!("{}: {there}no parts are begun\n", name(path))
        }
        Some(status) => {
            let complete = status.count - status.missing.len() as u64;
            let rest = match status.missing.as_slice() {
                [] => "it is put in place when they are run again".to_owned(),
                missing => format!("missing {}", ranges(missing)),
            };
            let file = name(path);
            format!("{file}: {complete} of {} parts are complete, {rest}\n", status.count)
        }
    })
}

fn discard(path: &Path) -> Result<(), Failure> {
    let found = sink::discard(path).map_err(|error| Failure::file(path, error))?;
    let done = if found { "its parts are discarded" } else { "no parts are begun" };
    print(&format!("{}: {done}\n", name(path)))
}

/// The output, in a line.
fn name(path: &Path) -> String {
    printable(&FileName::from(path).to_string()).into_owned()
}

/// Ascending numbers as schedulers write them: `2,5-7`.
fn ranges(numbers: &[u64]) -> String {
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for &number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let range = |&(first, last): &(u64, u64)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    ranges.iter().map(range).collect::<Vec<_>>().join(",")
}

/// What a dry run says of a part.
pub(super) fn describe(parts: &Parts<'_>, part: Part) -> String {
    let Range { start, end } = parts.range(part.index);
    let bytes = parts.bytes(part.index);
    format!(
        "would write part {} of {}: {} of elements, within bytes {start} to {end} of \
         the file\n",
        part.index,
        part.count,
        counted(bytes, "byte")
    )
}

/// The same for programs.
pub(super) fn describe_json(
    parts: &Parts<'_>,
    part: Part,
    shared: Option<u64>,
    plan: Option<&OutOfCore>,
) -> String {
    let Range { start, end } = parts.range(part.index);
    let mut value = json!({
        "part": format!("{}/{}", part.index, part.count),
        "output": [start, end],
        "writes": parts.bytes(part.index),
    });
    if let Some(bytes) = shared {
        value["shared_bytes"] = bytes.into();
    }
    output::add_out_of_core(&mut value, plan);
    format!("{}\n", Json(&value))
}

/// Print a line of JSON for each of `count` parts. `advised` words what can go wrong.
pub(super) fn plan(
    parts: &Parts<'_>,
    count: u64,
    advised: impl Fn(Error) -> Failure,
) -> Result<(), Failure> {
    let args: Option<Vec<String>> =
        std::env::args_os().map(|arg| OsString::into_string(arg).ok()).collect();
    let args = args.ok_or_else(|| {
        Failure::new("--part plan: the command line is not valid UTF-8, which JSON needs")
    })?;
    if let Some(secret) = args.iter().find(|arg| mask_secrets(arg) != **arg) {
        let message = format!("--part plan would show the secrets of {}", mask_secrets(secret));
        return Err(Failure::new(message));
    }
    for index in 0..count {
        let part = format!("{index}/{count}");
        let argv = with_part(&args, &part);
        let command = argv.iter().map(|arg| quoted(arg)).collect::<Vec<_>>().join(" ");
        let Range { start, end } = parts.range(index);
        let line = json!({
            "part": part,
            "output": [start, end],
            "writes": parts.bytes(index),
            "reads": parts.reads(index).map_err(&advised)?,
            "command": command,
            "argv": argv,
        });
        print(&format!("{}\n", Json(&line)))?;
    }
    Ok(())
}

/// The command line with another value of --part.
fn with_part(args: &[String], part: &str) -> Vec<String> {
    let mut before = "";
    let replaced = args.iter().map(|arg| {
        let is_value = before == "--part";
        before = arg;
        match arg.starts_with("--part=") {
            true => format!("--part={part}"),
            false if is_value => part.to_owned(),
            false => arg.clone(),
        }
    });
    replaced.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_ranges() {
        assert_eq!(ranges(&[2, 5, 6, 7, 9]), "2,5-7,9");
        assert_eq!(ranges(&[0]), "0");
    }

    #[test]
    fn commands_are_quoted_for_a_shell() {
        let args = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(
            with_part(&args("tslice a --part plan/4 -o b"), "3/4"),
            args("tslice a --part 3/4 -o b")
        );
        assert_eq!(with_part(&args("tslice --part=plan/4"), "3/4"), args("tslice --part=3/4"));
    }
}
