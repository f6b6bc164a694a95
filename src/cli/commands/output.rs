//! From the output arguments to an output, its description and its progress.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::io;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tslice::error::{Error, FileName};
use tslice::execute::Workers;
use tslice::formats::safetensors::metadata_of_json;
use tslice::input::{Input, Location, SmallFiles, is_in_folder, small_files};
use tslice::job::{Job, OutputKind, Planned, PlannedTensor};
use tslice::output::{Chunking, MetadataChange, Output, WriteOptions};
use tslice::shape::AsTuple;
use tslice::sink;
use tslice::sink::Destination;
use tslice::tensor::printable;

use super::super::report::{Json, percent_encoded};
use super::part::Share;
use super::{input, part, tensors};
use crate::cli::args::{FormatArgs, Lengths, MetadataArg, MetadataArgs, OutputArgs, Part};
use crate::cli::report::{Failure, counted, human_bytes, print, watch};

/// The destination that a path of the command line names; `-` is standard output.
pub(super) fn target(path: &Path) -> Destination {
    match path.to_str() {
        Some("-") => Destination::Stdout,
        _ => Destination::Path(path.to_owned()),
    }
}

fn destination(args: &OutputArgs) -> Destination {
    args.output.as_deref().map_or(Destination::Stdout, target)
}

/// Small files that go with a checkpoint are taken from the folder of `input`.
pub(super) fn open(
    args: &OutputArgs,
    input: &Location,
    workers: &Workers,
) -> Result<Output, Failure> {
    let output = Output::new(destination(args), options(args, workers)?)?;
    match output.destination() {
        _ if args.with_files && input.path().is_none() => {
            Err(Failure::usage("--with-files needs an input in a folder"))
        }
        _ if args.with_files => with_small_files(output, input),
        Destination::Path(path) if output.is_of_folders() && !is_in_folder(input, path) => {
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

/// Copy the small files of the folder of `input` into an output that is a folder.
pub(super) fn with_small_files(output: Output, input: &Location) -> Result<Output, Failure> {
    let SmallFiles { files, hidden, links } = small_files(input)?;
    let output = output.with_files(files)?;
    if let Some(names) = and_more(&hidden) {
        Failure::new(format_args!("{names} hidden, and not copied")).print_note();
    }
    if let Some(names) = and_more(&links) {
        let note = Failure::new(format_args!("{names} reached by links, and not copied"));
        note.hint("`cp -L` copies what a link leads to").print_note();
    }
    Ok(output)
}

fn and_more(names: &[String]) -> Option<String> {
    let (first, others) = names.split_first()?;
    Some(match others.len() {
        0 => format!("{first} is"),
        1 => format!("{first} and 1 more file are"),
        count => format!("{first} and {count} more files are"),
    })
}

pub(super) fn options(args: &OutputArgs, workers: &Workers) -> Result<WriteOptions, Failure> {
    let options = of_format(&args.format, &args.metadata)?;
    let mut options = options.force(args.force).fsync(args.fsync).workers(workers);
    options.shard_size = args.shard_size;
    Ok(options)
}

pub(super) fn of_format(
    args: &FormatArgs,
    metadata_args: &MetadataArgs,
) -> Result<WriteOptions, Failure> {
    let FormatArgs { to, deflate, order, name, chunks, shards, codec } = args;
    let mut options = WriteOptions::default().deflate(*deflate).order(order.unwrap_or_default());
    (options.format, options.name) = (*to, name.clone());
    options.is_shown = io::stdout().is_terminal();
    let lens = |lens: &Option<Lengths>| lens.as_ref().map(|Lengths(lens)| lens.clone());
    options.chunking = Chunking { chunks: lens(chunks), shards: lens(shards), codec: *codec };
    options.metadata = metadata(metadata_args)?;
    Ok(options)
}

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

pub(super) fn workers(asked: Option<u16>) -> Workers {
    Workers::new(asked.map_or(0, usize::from))
}

/// Do a job that makes new outputs. `advised` words its errors.
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

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Dry {
    No,
    Text,
    Json,
}

impl Dry {
    pub(super) fn of(dry_run: bool, json: bool) -> Dry {
        match (dry_run, json) {
            (false, _) => Dry::No,
            (true, false) => Dry::Text,
            (true, true) => Dry::Json,
        }
    }
}

/// Do a job or a part of it, or describe it for a dry run. `advised` words its errors.
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

/// Do a job without the note on tensors that a cast leaves unchanged.
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
    let omissions = if quiet { Vec::new() } else { job.omissions() };
    if let (&Share::Part(Part { index, count }), false) = (share, dry != Dry::No) {
        let mut parts = job.parts(count).map_err(&advised)?;
        let bytes = parts.bytes(index);
        watch(bytes, quiet, |progress| parts.write(index, progress)).map_err(advised)?;
        tensors::note_omissions(&omissions);
        return Ok(());
    }
    let bytes = job.looked_at().map_err(&advised)?;
    watch(bytes, quiet, |progress| job.look(progress)).map_err(&advised)?;
    if dry != Dry::No {
        print(&described(job, share, dry == Dry::Json).map_err(&advised)?)?;
    } else {
        watch(job.bytes(), quiet, |progress| job.write(progress)).map_err(advised)?;
    }
    tensors::note_omissions(&omissions);
    Ok(())
}

fn described(job: &mut dyn Job, share: &Share, json: bool) -> Result<String, Error> {
    job.check()?;
    if let Share::Part(one) = share {
        let parts = job.parts(one.count)?;
        let temporary_bytes = parts.temporary_bytes(one.index)?;
        return Ok(if json {
            part::describe_json(&parts, *one, temporary_bytes)
        } else {
            part::describe(&parts, *one) + &by_way_of(temporary_bytes)
        });
    }
    // first, since describing may open inputs again
    let network = network(job.network_bytes()?);
    let outputs = job.describe()?;
    Ok(if json { as_json(&outputs, network) } else { as_text(&outputs, network) })
}

/// Word the bytes of remote inputs that are fetched; `None` if there are none.
pub(super) fn network(bytes: u64) -> Option<String> {
    (bytes > 0).then(|| format!("about {}", human_bytes(bytes)))
}

pub(super) fn spool(input: &mut Input, quiet: bool) -> Result<(), Failure> {
    watch(0, quiet, |progress| input.spool_watched(progress))?;
    Ok(())
}

pub(super) fn refuse_terminal(target: &Destination) -> Result<(), Failure> {
    if *target == Destination::Stdout && io::stdout().is_terminal() {
        return Err(Failure::new("standard output is a terminal, and the output is binary")
            .hint("write it to a file with -o FILE, or show the values with tslice view"));
    }
    Ok(())
}

pub(super) fn as_text(outputs: &[Planned], network: Option<String>) -> String {
    let network = network.map(|network| format!("would read {network} through the network\n"));
    outputs.iter().map(output_as_text).chain(network).collect()
}

pub(super) fn as_json(outputs: &[Planned], network: Option<String>) -> String {
    let mut value = json!({ "outputs": outputs.iter().map(output_as_json).collect::<Vec<_>>() });
    if let Some(network) = network {
        value["network"] = network.into();
    }
    format!("{}\n", Json(&value))
}

/// Word the scratch of a copy; `None` if it needs none.
pub(super) fn temporary_files(bytes: u64) -> Option<String> {
    let folder = std::env::temp_dir();
    let folder = printable(&folder.display().to_string()).to_string();
    let size = human_bytes(bytes);
    (bytes > 0).then(|| format!("{bytes} bytes ({size}) of temporary files in {folder}"))
}

fn by_way_of(temporary_bytes: u64) -> String {
    let files = temporary_files(temporary_bytes);
    files.map_or_else(String::new, |files| format!("by way of {files}\n"))
}

fn output_as_text(output: &Planned) -> String {
    let Planned { format, .. } = output;
    let mut destination = output.destination.to_string();
    if let Some(target) = link_target(output) {
        destination = format!("{destination} (a link to {})", target.display());
    }
    let (place, into) = match &output.kind {
        OutputKind::New => (destination, ""),
        OutputKind::EditedCopy(original) => {
            (format!("{destination}, a copy of {original}"), " into")
        }
        OutputKind::InPlace => (format!("{destination}, in place"), " into"),
    };
    let what = match &output.tensors {
        Ok(PlannedTensor { shape, dtype }) => format!("shape {}, dtype {dtype}", AsTuple(shape)),
        Err(count) => counted(*count as u64, "tensor"),
    };
    let whole = match output.size {
        Some(bytes) => format!("{} with the header", human_bytes(bytes)),
        None if !into.is_empty() => human_bytes(output.bytes),
        None if format.is_text => "before they become text".to_owned(),
        None => "before they are compressed".to_owned(),
    };
    format!(
        "would write{into} {}: {what}, {} of elements ({whole}), format {}\n{}",
        printable(&place),
        counted(output.bytes, "byte"),
        format.name,
        by_way_of(output.temporary_bytes),
    )
}

/// The target of a link through which an output is written.
fn link_target(output: &Planned) -> Option<PathBuf> {
    let FileName::Path(path) = &output.destination else { return None };
    sink::link_target(&Destination::Path(path.clone()))
}

/// Describe an output; unknown facts are left out.
fn output_as_json(output: &Planned) -> Value {
    let name = |file: &FileName| match file {
        FileName::Stdout => "-".to_owned(),
        file => file.to_string(),
    };
    let Planned { destination, format, bytes, .. } = output;
    let mut value = json!({ "file": name(destination), "format": format.name, "bytes": bytes });
    if let FileName::Path(path) = destination
        && let Some(encoded) = percent_encoded(path)
    {
        value["file_percent"] = encoded.into();
    }
    if let Some(target) = link_target(output) {
        value["link_target"] = target.display().to_string().into();
    }
    match &output.kind {
        OutputKind::New => {}
        OutputKind::EditedCopy(original) => value["copy_of"] = name(original).into(),
        OutputKind::InPlace => value["in_place"] = true.into(),
    }
    match &output.tensors {
        Ok(PlannedTensor { shape, dtype }) => {
            value["tensors"] = 1.into();
            (value["shape"], value["dtype"]) = (json!(shape), dtype.to_string().into());
        }
        Err(count) => value["tensors"] = (*count).into(),
    }
    if output.temporary_bytes > 0 {
        value["temporary_bytes"] = output.temporary_bytes.into();
    }
    if let Some(bytes) = output.size {
        value["file_bytes"] = bytes.into();
    }
    value
}
