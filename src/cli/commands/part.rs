//! `--part`: write one part of an output, plan all parts, show which are complete, or discard them.
//!
//! `--part auto`: the part that a scheduler's variables name.
//!
//! Two kinds of variables tell a process its number among several:
//!
//! - an *array* (or an indexed job) runs a script many times: Slurm, Kubernetes, PBS, LSF, SGE;
//! - *ranks* are the processes of one step: Open MPI, PMI (MPICH, Intel MPI), Slurm's srun.
//!
//! Of several ranks, the first in this list counts: mpirun starts its processes in a step of Slurm, which sets variables
//! too. An array and a rank, or two arrays, must not contradict each other. A source with only one process is ignored if
//! there is another source. Any two other sources that say different things are an error.
//!
//! [`COUNT`] is the number of parts if the scheduler does not tell it (Kubernetes, PBS), or if an array runs again for
//! some parts only (Slurm's `--array=2,5`). The number of the task is then the number of the part.

use std::ffi::OsString;
use std::fmt;
use std::ops::Range;
use std::path::Path;

use serde_json::json;
use tslice::error::{Error, FileName};
use tslice::job::Parts;
use tslice::sink;
use tslice::sink::MAX_PARTS;
use tslice::source::remote::mask_secrets;
use tslice::tensor::printable;

use crate::cli::args::{OutputArgs, Part, PartArg};
use crate::cli::report::{Failure, Json, counted, print, quoted};

pub(super) enum Share {
    Whole,
    Part(Part),
    /// Nothing: the plan for this many parts is printed.
    Plan(u64),
}

/// The part that the flags ask for. `None` if all is done: `--part status` and `--part discard`
/// need no job.
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
        return Err(Failure::usage(
            "--dry-run has no effect: this action of --part writes no elements",
        ));
    }
    match part {
        PartArg::One(part) => Ok(Some(Share::Part(part))),
        PartArg::Auto => Ok(Some(Share::Part(scheduled(&|name| std::env::var(name).ok())?))),
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
                [] => "it appears when they are run again".to_owned(),
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

fn name(path: &Path) -> String {
    printable(&FileName::from(path).to_string()).into_owned()
}

/// Write ascending numbers as schedulers do: `2,5-7`.
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

/// The JSON about a part, whether it is to be written or planned.
fn facts(parts: &Parts<'_>, part: Part) -> serde_json::Value {
    let Range { start, end } = parts.range(part.index);
    json!({
        "part": format!("{}/{}", part.index, part.count),
        "output": [start, end],
        "writes": parts.bytes(part.index),
    })
}

pub(super) fn describe_json(parts: &Parts<'_>, part: Part, temporary_bytes: u64) -> String {
    let mut value = facts(parts, part);
    if temporary_bytes > 0 {
        value["temporary_bytes"] = temporary_bytes.into();
    }
    format!("{}\n", Json(&value))
}

/// Print a line of JSON for each of `count` parts. `advised` words errors.
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
        let argv = with_part(&args, &format!("{index}/{count}"));
        let mut line = facts(parts, Part { index, count });
        line["reads"] = parts.reads(index).map_err(&advised)?.into();
        line["command"] = argv.iter().map(|arg| quoted(arg)).collect::<Vec<_>>().join(" ").into();
        line["argv"] = argv.into();
        print(&format!("{}\n", Json(&line)))?;
    }
    Ok(())
}

fn with_part(args: &[String], part: &str) -> Vec<String> {
    let mut before = "";
    let replaced = args.iter().map(|arg| {
        let is_value = before == "--part";
        before = arg;
        if arg.starts_with("--part=") {
            format!("--part={part}")
        } else if is_value {
            part.to_owned()
        } else {
            arg.clone()
        }
    });
    replaced.collect()
}

/// The variable that users set to the number of parts.
const COUNT: &str = "TSLICE_PARTS";

/// The names of a scheduler's variables; a name is empty if there is no such variable.
struct Scheduler {
    name: &'static str,
    task: &'static str,
    /// For an array, the numbers of the first task (1, without a variable) and the last one, and
    /// their distance.
    span: [&'static str; 3],
    count: &'static str,
    /// For an array, the task number of part 0 if [`COUNT`] is set.
    base: u64,
}

const fn scheduler(
    task: &'static str,
    name: &'static str,
    span: [&'static str; 3],
    count: &'static str,
    base: u64,
) -> Scheduler {
    Scheduler { name, task, span, count, base }
}

const NO_SPAN: [&str; 3] = [""; 3];

/// Arrays, then ranks in the order in which they count.
#[rustfmt::skip]
const SCHEDULERS: [Scheduler; 9] = [
    scheduler("SLURM_ARRAY_TASK_ID", "the Slurm array",
        ["SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_MAX", "SLURM_ARRAY_TASK_STEP"], "SLURM_ARRAY_TASK_COUNT", 0),
    scheduler("JOB_COMPLETION_INDEX", "the Kubernetes job", NO_SPAN, "", 0),
    scheduler("PBS_ARRAY_INDEX", "the PBS array", NO_SPAN, "", 0),
    scheduler("PBS_ARRAYID", "the Torque array", NO_SPAN, "", 0),
    scheduler("LSB_JOBINDEX", "the LSF array", ["", "LSB_JOBINDEX_END", "LSB_JOBINDEX_STEP"], "", 1),
    scheduler("SGE_TASK_ID", "the SGE array", ["SGE_TASK_FIRST", "SGE_TASK_LAST", "SGE_TASK_STEPSIZE"], "", 1),
    scheduler("OMPI_COMM_WORLD_RANK", "Open MPI", NO_SPAN, "OMPI_COMM_WORLD_SIZE", 0),
    scheduler("PMI_RANK", "PMI", NO_SPAN, "PMI_SIZE", 0),
    scheduler("SLURM_PROCID", "the Slurm step", NO_SPAN, "SLURM_NTASKS", 0),
];

fn wrong(what: impl fmt::Display) -> Failure {
    Failure::new(format_args!("--part auto: {what}"))
}

fn scheduled(get: &dyn Fn(&str) -> Option<String>) -> Result<Part, Failure> {
    const HINT: &str = "--part I/N names the part, from 0/N on";
    let variables = Variables { get };
    let asked = variables.number(COUNT)?;
    let mut found: Vec<(&Scheduler, Part)> = Vec::new();
    for scheduler in &SCHEDULERS {
        if scheduler.has_ranks() && found.iter().any(|(earlier, _)| earlier.has_ranks()) {
            continue;
        }
        if let Some(part) = scheduler.part(&variables, asked)? {
            found.push((scheduler, part));
        }
    }
    // sources with one process do not count beside others
    let several = || found.iter().filter(|(_, part)| part.count > 1);
    let Some((first, part)) = several().next().or(found.first()) else {
        return Err(wrong("no variables of a scheduler are set").hint(HINT));
    };
    match several().find(|(_, other)| other != part) {
        Some((other, theirs)) => {
            let words = |part: &Part| format!("{} of {}", part.index, part.count);
            let (ours, theirs) = (words(part), words(theirs));
            let (first, other) = (first.name, other.name);
            let what = format!("by {first} this is part {ours}, by {other} part {theirs}");
            Err(wrong(what).hint(HINT))
        }
        None => Ok(*part),
    }
}

impl Scheduler {
    fn has_ranks(&self) -> bool {
        self.span == NO_SPAN && !self.count.is_empty()
    }

    fn part(&self, variables: &Variables<'_>, asked: Option<u64>) -> Result<Option<Part>, Failure> {
        let wrong = |what: &dyn fmt::Display| wrong(format_args!("{}: {what}", self.name));
        // outside of an array SGE says "undefined", and LSF 0
        let text = variables.text(self.task).filter(|task| task != "undefined");
        let Some(task) = text.map(|text| variables.parse(self.task, &text)).transpose()? else {
            return Ok(None);
        };
        let said = variables.number(self.count)?;
        let [first, last, step] = self.span;
        let (index, count) = if self.has_ranks() {
            // the script of a Slurm job has a rank, 0, but a size only where one was asked for
            let Some(count) = said else { return Ok(None) };
            (Some(task), count)
        } else if first.is_empty() && self.base > task {
            return Ok(None);
        } else if let Some(count) = asked {
            (task.checked_sub(self.base), count)
        } else if last.is_empty() {
            let what = format!("--part auto: {} does not say how many tasks it has", self.name);
            return Err(Failure::new(what).hint(format!("set {COUNT} to the number of parts")));
        } else {
            let first = if first.is_empty() { 1 } else { variables.needed(first)? };
            let span = variables.needed(last)?.checked_sub(first);
            let step = variables.number(step)?.unwrap_or(1);
            let even = span.and_then(|span| span.checked_div(step));
            let tasks = even.ok_or_else(|| wrong(&"its variables contradict each other"))? + 1;
            if said.is_some_and(|said| said != tasks) {
                return Err(wrong(&"its tasks are not numbered evenly").hint(format_args!(
                    "number tasks from 0 on, or set {COUNT} to the number of all parts, which \
                     makes the number of a task that of its part"
                )));
            }
            let offset = task.checked_sub(first).filter(|offset| offset % step == 0);
            (offset.map(|offset| offset / step), tasks)
        };
        if !(1..=MAX_PARTS).contains(&count) {
            return Err(wrong(&format_args!("from 1 to {MAX_PARTS} parts are possible")));
        }
        match index.filter(|&index| index < count) {
            Some(index) => Ok(Some(Part { index, count })),
            None => Err(wrong(&format_args!("{} {task} is not one of {count} parts", self.task))),
        }
    }
}

struct Variables<'a> {
    get: &'a dyn Fn(&str) -> Option<String>,
}

impl Variables<'_> {
    fn text(&self, name: &str) -> Option<String> {
        (self.get)(name).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
    }

    fn number(&self, name: &str) -> Result<Option<u64>, Failure> {
        self.text(name).map(|text| self.parse(name, &text)).transpose()
    }

    fn needed(&self, name: &str) -> Result<u64, Failure> {
        self.number(name)?.ok_or_else(|| wrong(format_args!("{name} is not set")))
    }

    fn parse(&self, name: &str, text: &str) -> Result<u64, Failure> {
        let failed = |_| wrong(format_args!("{name} is '{text}', and a number is needed"));
        text.parse().map_err(failed)
    }
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

    /// The part by variables in the form `NAME=VALUE NAME=VALUE`, or the error.
    fn found(variables: &str) -> String {
        let get = |name: &str| {
            let mut all = variables.split(' ').filter_map(|it| it.split_once('='));
            all.find(|(key, _)| *key == name).map(|(_, value)| value.to_owned())
        };
        match scheduled(&get) {
            Ok(part) => format!("{}/{}", part.index, part.count),
            Err(failure) => failure.message.replace("--part auto: ", ""),
        }
    }

    #[test]
    fn the_page_of_parts_tells_every_variable() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/parts.md");
        let page = std::fs::read_to_string(page).unwrap();
        let names = SCHEDULERS.iter().flat_map(|it| [it.task, it.count].into_iter().chain(it.span));
        for name in names.chain([COUNT]).filter(|name| !name.is_empty()) {
            assert!(page.contains(&format!("`{name}`")), "{name}");
        }
    }

    #[test]
    fn every_scheduler_is_understood() {
        let slurm = |id, count, min, max, step| {
            found(&format!(
                "SLURM_ARRAY_TASK_ID={id} SLURM_ARRAY_TASK_COUNT={count} \
                 SLURM_ARRAY_TASK_MIN={min} SLURM_ARRAY_TASK_MAX={max} SLURM_ARRAY_TASK_STEP={step}"
            ))
        };
        assert_eq!(slurm(0, 4, 0, 3, 1), "0/4");
        assert_eq!(slurm(11, 4, 5, 11, 2), "3/4");
        assert_eq!(slurm(3, 3, 1, 7, 1), "the Slurm array: its tasks are not numbered evenly");
        assert_eq!(found("SLURM_PROCID=2 SLURM_NTASKS=5"), "2/5");
        assert_eq!(found("JOB_COMPLETION_INDEX=2 TSLICE_PARTS=3"), "2/3");
        assert_eq!(found("PBS_ARRAY_INDEX=0 TSLICE_PARTS=3"), "0/3");
        assert_eq!(found("PBS_ARRAYID=1 TSLICE_PARTS=3"), "1/3");
        assert_eq!(found("LSB_JOBINDEX=4 LSB_JOBINDEX_END=4"), "3/4");
        assert_eq!(found("LSB_JOBINDEX=5 LSB_JOBINDEX_END=9 LSB_JOBINDEX_STEP=2"), "2/5");
        let sge = "SGE_TASK_FIRST=2 SGE_TASK_LAST=10 SGE_TASK_STEPSIZE=4";
        assert_eq!(found(&format!("SGE_TASK_ID=6 {sge}")), "1/3");
        assert_eq!(found("OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2"), "1/2");
        assert_eq!(found("PMI_RANK=1 PMI_SIZE=2"), "1/2");
    }

    #[test]
    fn some_parts_run_again_under_their_own_numbers() {
        let some = "SLURM_ARRAY_TASK_COUNT=2 SLURM_ARRAY_TASK_MIN=2 SLURM_ARRAY_TASK_MAX=5";
        assert_eq!(found(&format!("SLURM_ARRAY_TASK_ID=5 TSLICE_PARTS=8 {some}")), "5/8");
        assert_eq!(found("SGE_TASK_ID=8 TSLICE_PARTS=8"), "7/8");
    }

    #[test]
    fn what_is_no_array_does_not_count() {
        assert_eq!(found(""), "no variables of a scheduler are set");
        assert_eq!(
            found("SGE_TASK_ID=undefined LSB_JOBINDEX=0"),
            "no variables of a scheduler are set"
        );
        assert_eq!(found("SLURM_PROCID=0"), "no variables of a scheduler are set");
        assert_eq!(found("SLURM_PROCID=0 PBS_ARRAY_INDEX=1 TSLICE_PARTS=2"), "1/2");
        let step = "SLURM_PROCID=0 SLURM_NTASKS=1";
        assert_eq!(found(step), "0/1");
        assert_eq!(found(&format!("{step} JOB_COMPLETION_INDEX=1 TSLICE_PARTS=2")), "1/2");
        // mpirun inside of a step
        let rank = "OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=4";
        assert_eq!(found(&format!("SLURM_PROCID=0 SLURM_NTASKS=2 {rank}")), "3/4");
    }

    #[test]
    fn contradictions_are_errors() {
        let rank = "PMI_RANK=1 PMI_SIZE=2";
        assert_eq!(
            found(&format!("{rank} PBS_ARRAY_INDEX=1 TSLICE_PARTS=3")),
            "by the PBS array this is part 1 of 3, by PMI part 1 of 2"
        );
        assert_eq!(found(&format!("{rank} PBS_ARRAY_INDEX=1 TSLICE_PARTS=2")), "1/2");
        assert_eq!(found("PMI_RANK=2 PMI_SIZE=2"), "PMI: PMI_RANK 2 is not one of 2 parts");
        assert_eq!(found("LSB_JOBINDEX=2"), "LSB_JOBINDEX_END is not set");
        assert_eq!(found("PMI_RANK=x PMI_SIZE=2"), "PMI_RANK is 'x', and a number is needed");
        assert_eq!(
            found("JOB_COMPLETION_INDEX=2"),
            "the Kubernetes job does not say how many tasks it has"
        );
        let sge = "SGE_TASK_FIRST=2 SGE_TASK_LAST=10 SGE_TASK_STEPSIZE=0";
        assert_eq!(
            found(&format!("SGE_TASK_ID=6 {sge}")),
            "the SGE array: its variables contradict each other"
        );
    }
}
