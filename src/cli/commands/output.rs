//! From the arguments of an output to its place, its description, its progress.

use std::fmt::Write;
use std::io::{self, IsTerminal};
use std::path::Path;

use tslice::error::{ContainerError, FileName};
use tslice::execute::{Announced, Progress, Workers};
use tslice::format::printable;
use tslice::input::Input;
use tslice::job::Parts;
use tslice::output::{Output, Prepared, WriteOptions};
use tslice::region::Take;
use tslice::shape::AsTuple;
use tslice::sink::{Destination, Part};
use tslice::source::remote;

use super::part::{self, Share};
use crate::cli::args::{OrderArg, OutputArgs};
use crate::cli::report::{Failure, human_bytes, watch};

/// Where a path of the command line leads: `-` is standard output.
pub(super) fn target(path: &Path) -> Destination {
    match path.to_str() {
        Some("-") => Destination::Stdout,
        _ => Destination::Path(path.to_owned()),
    }
}

/// Understand the flags, and refuse contradictions among them.
pub(super) fn open(args: &OutputArgs, workers: &Workers) -> Result<Output, Failure> {
    let target = args.output.as_deref().map_or(Destination::Stdout, target);
    Ok(Output::new(target, options(args, workers))?)
}

/// Understand the flags that say how an output is written.
pub(super) fn options(args: &OutputArgs, workers: &Workers) -> WriteOptions {
    let mut options = WriteOptions::default()
        .force(args.force)
        .fsync(args.fsync)
        .deflate(args.deflate)
        .order(args.order.map(OrderArg::order).unwrap_or_default())
        .workers(workers);
    (options.format, options.name) = (args.to, args.name.clone());
    options
}

/// The threads of the run: as many as there are cores, unless a number was asked for.
pub(super) fn workers(asked: Option<u16>) -> Workers {
    Workers::new(asked.map_or(0, usize::from))
}

/// Make all the checks that writing would fail at, and say what would be written. `advised` words
/// what can go wrong.
pub(super) fn describe(
    output: &Output,
    prepared: &Prepared,
    (input, takes): (&mut Input, &[Take]),
    share: &Share,
    advised: impl Fn(ContainerError) -> Failure,
) -> Result<String, Failure> {
    tslice::job::check(output, prepared, input, takes).map_err(&advised)?;
    if let Share::Part(one) = *share {
        let parts = Parts::of_takes(output, prepared, (input, takes), one.count);
        let parts = parts.map_err(&advised)?;
        return planned_part(&parts, one).map_err(advised);
    }
    let shared = tslice::job::shared_bytes(output, prepared, input, takes);
    let mut text = planned(output, prepared, shared);
    text.push_str(&requests(|| tslice::job::announced(input, takes)).map_err(&advised)?);
    Ok(text)
}

/// What part of an output would be written, and shared.
pub(super) fn planned_part(parts: &Parts<'_>, one: Part) -> Result<String, ContainerError> {
    Ok(part::describe(parts, one) + &shared(parts.shared(one.index)?))
}

/// How many bytes would be shared with the input, in words.
fn shared(bytes: Option<u64>) -> String {
    bytes.map_or_else(String::new, |bytes| {
        let size = human_bytes(bytes);
        format!("{bytes} bytes ({size}) would be shared with the input, not copied\n")
    })
}

/// What a dry run says of the requests for remote inputs, which `count` counts.
pub(super) fn requests(
    count: impl FnOnce() -> Result<Option<Announced>, ContainerError>,
) -> Result<String, ContainerError> {
    let network = network(count)?;
    Ok(network.map_or_else(String::new, |network| format!("would read {network}\n")))
}

/// How many requests for remote inputs `count` counts, in words. What it asks for itself would be asked
/// for again.
pub(super) fn network(
    count: impl FnOnce() -> Result<Option<Announced>, ContainerError>,
) -> Result<Option<String>, ContainerError> {
    let before = remote::traffic();
    let Some(Announced { mut requests, mut bytes }) = count()? else {
        return Ok(None);
    };
    if let (Some(before), Some(after)) = (before, remote::traffic()) {
        requests += after.0.saturating_sub(before.0);
        bytes += after.1.saturating_sub(before.1);
    }
    let plural = if requests == 1 { "" } else { "s" };
    let mut text = format!("{} in {requests} request{plural}", human_bytes(bytes));
    if let Some((requests, bytes)) = before {
        let plural = if requests == 1 { "" } else { "s" };
        let _ = write!(text, ", after {} in {requests} request{plural} so far", human_bytes(bytes));
    }
    Ok(Some(text))
}

/// What would be written, of which so many bytes would be shared.
pub(super) fn planned(output: &Output, prepared: &Prepared, bytes: Option<u64>) -> String {
    let format = output.format();
    let what = match prepared.tensors.only() {
        Some(only) => format!("shape {}, dtype {}", AsTuple(&only.shape), only.dtype),
        None => format!("{} tensors", prepared.tensors.len()),
    };
    let whole = match prepared.frame.size() {
        Some(bytes) => format!("{} with the header", human_bytes(bytes)),
        None if format.is_text => "before they become text".to_owned(),
        None => "before they are deflated".to_owned(),
    };
    format!(
        "would write {}: {what}, {} bytes of elements ({whole}), format {}\n{}",
        printable(&FileName::from(output.destination()).to_string()),
        prepared.bytes,
        format.name,
        shared(bytes),
    )
}

/// Keep what is left of a pipe, and show how far it is.
pub(super) fn spool(input: &mut Input, quiet: bool) -> Result<(), Failure> {
    let progress = Progress::default();
    watch(&progress, 0, quiet, || input.spool_watched(&progress))?;
    Ok(())
}

/// Write it, and show how far it is. `advised` words what can go wrong.
pub(super) fn write(
    output: &Output,
    prepared: &Prepared,
    (input, takes): (&mut Input, &[Take]),
    (share, quiet): (&Share, bool),
    advised: impl Fn(ContainerError) -> Failure,
) -> Result<(), Failure> {
    refuse_binary_terminal(output)?;
    let count = match *share {
        Share::Whole => {
            let progress = Progress::default();
            let write = || tslice::job::write(output, prepared, input, takes, &progress);
            return watch(&progress, prepared.bytes, quiet, write).map_err(&advised);
        }
        Share::Part(Part { count, .. }) | Share::Plan(count) => count,
    };
    let parts = Parts::of_takes(output, prepared, (input, takes), count).map_err(&advised)?;
    part::run(parts, share, quiet, advised)
}

/// Refuse to write what is no text to a terminal.
pub(super) fn refuse_binary_terminal(output: &Output) -> Result<(), Failure> {
    match output.format().is_text {
        true => Ok(()),
        false => refuse_terminal(output.destination()),
    }
}

/// Refuse to write elements to a terminal.
pub(super) fn refuse_terminal(target: &Destination) -> Result<(), Failure> {
    if *target == Destination::Stdout && io::stdout().is_terminal() {
        return Err(Failure::new("standard output is a terminal, and the output is binary")
            .hint("write it to a file with -o FILE, or show the values with tslice view"));
    }
    Ok(())
}
