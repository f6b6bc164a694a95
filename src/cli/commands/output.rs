//! From the arguments of an output to its place, its description, its progress.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::{self, IsTerminal};
use std::path::Path;

use tslice::error::Error;
use tslice::execute::{Announced, Workers};
use tslice::format::safetensors::metadata_of_json;
use tslice::input::{Input, Location, SmallFiles, is_in_folder, small_files};
use tslice::job::Job;
use tslice::output::{Chunking, MetadataChange, Output, WriteOptions};
use tslice::sink::{Destination, Part};
use tslice::source::remote;

use super::part::{self, Share};
use super::{input, planned, said};
use crate::cli::args::{FormatArgs, Lengths, MetadataArg, MetadataArgs, OutputArgs};
use crate::cli::report::{Failure, counted, human_bytes, print, watch};

/// Where a path of the command line leads: `-` is standard output.
pub(super) fn target(path: &Path) -> Destination {
    match path.to_str() {
        Some("-") => Destination::Stdout,
        _ => Destination::Path(path.to_owned()),
    }
}

fn destination(args: &OutputArgs) -> Destination {
    args.output.as_deref().map_or(Destination::Stdout, target)
}

/// Understand the flags, and refuse contradictions among them. `input` is the one whose folder holds the
/// small files that go with a checkpoint.
pub(super) fn open(
    args: &OutputArgs,
    input: &Location,
    workers: &Workers,
) -> Result<Output, Failure> {
    let output = Output::new(destination(args), options(args, workers)?)?;
    match output.destination() {
        _ if args.with_files && input.path().is_none() => {
            Err(Failure::usage("--with-files needs an input that lies in a folder"))
        }
        _ if args.with_files => {
            let SmallFiles { files, hidden, links } = small_files(input)?;
            let output = output.with_files(files)?;
            if let Some(names) = and_more(&hidden) {
                Failure::new(format_args!("{names} hidden, and not copied")).print_note();
            }
            if let Some(names) = and_more(&links) {
                let note = Failure::new(format_args!("{names} behind links, and not copied"));
                note.hint("`cp -L` copies what a link leads to").print_note();
            }
            Ok(output)
        }
        Destination::Path(path) if args.shard_size.is_some() && !is_in_folder(input, path) => {
            let names: Vec<_> = small_files(input)?.files.into_iter().map(|it| it.name).collect();
            if let Some(names) = and_more(&names) {
                Failure::new(format_args!("{names} beside the input, and not copied"))
                    .hint("--with-files copies the small files of its folder")
                    .print_note();
            }
            Ok(output)
        }
        _ => Ok(output),
    }
}

/// The first of these names, and how many more there are, with their verb; `None` where there are none.
fn and_more(names: &[String]) -> Option<String> {
    let (first, others) = names.split_first()?;
    Some(match others.len() {
        0 => format!("{first} is"),
        1 => format!("{first} and 1 more file are"),
        count => format!("{first} and {count} more files are"),
    })
}

/// Understand the flags that say how an output is written.
pub(super) fn options(args: &OutputArgs, workers: &Workers) -> Result<WriteOptions, Failure> {
    let options = of_format(&args.format, &args.metadata)?;
    let mut options = options.force(args.force).fsync(args.fsync).workers(workers);
    options.shard_size = args.shard_size;
    Ok(options)
}

/// Understand the flags of the format and of what only some formats have.
pub(super) fn of_format(
    args: &FormatArgs,
    metadata_args: &MetadataArgs,
) -> Result<WriteOptions, Failure> {
    let FormatArgs { to, deflate, order, name, chunks, shards, codec } = args;
    let mut options = WriteOptions::default().deflate(*deflate).order(order.unwrap_or_default());
    (options.format, options.name) = (*to, name.clone());
    let lens = |lens: &Option<Lengths>| lens.as_ref().map(|Lengths(lens)| lens.clone());
    options.chunking = Chunking { chunks: lens(chunks), shards: lens(shards), codec: *codec };
    options.metadata = metadata(metadata_args)?;
    Ok(options)
}

/// What becomes of the metadata of the inputs.
pub(super) fn metadata(args: &MetadataArgs) -> Result<MetadataChange, Failure> {
    let mut add = BTreeMap::new();
    for MetadataArg { key, value } in &args.metadata {
        if add.insert(key.clone(), value.clone()).is_some() {
            return Err(Failure::usage(format_args!("--metadata {key}=... is given twice")));
        }
    }
    if let Some(path) = &args.metadata_from {
        let failed =
            |error: &dyn Display| Failure::file(path, format_args!("--metadata-from: {error}"));
        let text = input::read_text(path).map_err(|error| failed(&error))?;
        for (key, value) in metadata_of_json(&text).map_err(|error| failed(&error))? {
            add.entry(key).or_insert(value);
        }
    }
    Ok(MetadataChange { drop: args.no_metadata, add })
}

/// The threads of the run: as many as there are cores, unless a number was asked for.
pub(super) fn workers(asked: Option<u16>) -> Workers {
    Workers::new(asked.map_or(0, usize::from))
}

/// Do a job that makes new outputs. `advised` words what can go wrong.
pub(super) fn run(
    job: &mut dyn Job,
    args: &OutputArgs,
    share: &Share,
    advised: impl Fn(Error) -> Failure,
) -> Result<(), Failure> {
    if !args.dry_run && !args.format.to.is_some_and(|format| format.is_text) {
        refuse_terminal(&destination(args))?;
    }
    perform(job, share, Dry::of(args.dry_run, args.json), args.quiet, advised)
}

/// What is done in place of writing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Dry {
    /// Nothing: outputs are written.
    No,
    /// It is said what would be written.
    Text,
    /// The same for programs.
    Json,
}

impl Dry {
    /// What the flags ask for.
    pub(super) fn of(dry_run: bool, json: bool) -> Dry {
        match (dry_run, json) {
            (false, _) => Dry::No,
            (true, false) => Dry::Text,
            (true, true) => Dry::Json,
        }
    }
}

/// Do a job: all of it or a part, or say what it would do. `advised` words what can go wrong.
pub(super) fn perform(
    job: &mut dyn Job,
    share: &Share,
    dry: Dry,
    quiet: bool,
    advised: impl Fn(Error) -> Failure,
) -> Result<(), Failure> {
    let left = job.left_uncast() as u64;
    perform_quietly(job, share, dry, quiet, advised)?;
    if left > 0 && !quiet {
        let are = if left == 1 { "is left as it is" } else { "are left as they are" };
        let tensors = counted(left, "tensor");
        let note = format!("{tensors} of integers or booleans {are}");
        Failure::new(note)
            .hint("--cast all:DTYPE converts integers and booleans, too")
            .print_note();
    }
    Ok(())
}

/// The same, without a word about what is left as it is.
fn perform_quietly(
    job: &mut dyn Job,
    share: &Share,
    dry: Dry,
    quiet: bool,
    advised: impl Fn(Error) -> Failure,
) -> Result<(), Failure> {
    if let Share::Plan(count) = *share {
        return part::plan(&job.parts(count).map_err(&advised)?, count, advised);
    }
    if let (&Share::Part(Part { index, count }), false) = (share, dry != Dry::No) {
        let mut parts = job.parts(count).map_err(&advised)?;
        let bytes = parts.bytes(index);
        return watch(bytes, quiet, |progress| parts.write(index, progress)).map_err(advised);
    }
    let bytes = job.looked_at().map_err(&advised)?;
    watch(bytes, quiet, |progress| job.look(progress)).map_err(&advised)?;
    if dry != Dry::No {
        return print(&described(job, share, dry == Dry::Json).map_err(&advised)?);
    }
    let unsaid = job.unsaid();
    watch(job.bytes(), quiet, |progress| job.write(progress)).map_err(advised)?;
    said::note_unsaid(&unsaid);
    Ok(())
}

/// What a job, or a part of it, would do.
fn described(job: &mut dyn Job, share: &Share, json: bool) -> Result<String, Error> {
    job.check()?;
    if let Share::Part(one) = share {
        let parts = job.parts(one.count)?;
        let (shared, plan) = (parts.shared(one.index)?, parts.out_of_core(one.index)?);
        return Ok(match json {
            true => part::describe_json(&parts, *one, shared, plan.as_ref()),
            false => {
                let notes = planned::in_common(shared) + &planned::too_large(plan.as_ref());
                part::describe(&parts, *one) + &notes
            }
        });
    }
    // first, since describing may open inputs again
    let network = network(|| job.requests())?;
    let outputs = job.describe()?;
    Ok(match json {
        true => planned::as_json(&outputs, network),
        false => planned::as_text(&outputs, network),
    })
}

/// How many requests for remote inputs `count` counts, in words. What it asks for itself would be asked
/// for again.
pub(super) fn network(
    count: impl FnOnce() -> Result<Option<Announced>, Error>,
) -> Result<Option<String>, Error> {
    let before = remote::traffic();
    let Some(Announced { mut requests, mut bytes }) = count()? else {
        return Ok(None);
    };
    if let (Some(before), Some(after)) = (before, remote::traffic()) {
        requests += after.0.saturating_sub(before.0);
        bytes += after.1.saturating_sub(before.1);
    }
    let amount =
        |requests, bytes| format!("{} in {}", human_bytes(bytes), counted(requests, "request"));
    let before = before.map(|(requests, bytes)| amount(requests, bytes));
    let before = before.map(|before| format!(", after {before} so far")).unwrap_or_default();
    Ok(Some(amount(requests, bytes) + &before))
}

/// Keep what is left of a pipe, and show how far it is.
pub(super) fn spool(input: &mut Input, quiet: bool) -> Result<(), Failure> {
    watch(0, quiet, |progress| input.spool_watched(progress))?;
    Ok(())
}

/// Refuse to write elements to a terminal.
pub(super) fn refuse_terminal(target: &Destination) -> Result<(), Failure> {
    if *target == Destination::Stdout && io::stdout().is_terminal() {
        return Err(Failure::new("standard output is a terminal, and the output is binary")
            .hint("write it to a file with -o FILE, or show the values with tslice view"));
    }
    Ok(())
}
