//! `tslice concat INPUT...` and `tslice stack INPUT...`: join files to one.

use std::path::Path;

use tslice::error::Error;
use tslice::execute::Workers;
use tslice::index::resolve::Rules;
use tslice::input::{Location, OpenOptions};
use tslice::job::{
    Along, AppendFault, Appending, Copying, GroupOptions, JoinOptions, MergeOptions,
};
use tslice::output::Output;
use tslice::sink::{Destination, InPlaceFile};

use super::index::Index;
use super::output::Dry;
use super::{index, input, output, part};
use crate::cli::args::{CopyArgs, JoinArgs, OutputArgs};
use crate::cli::report::{Failure, hint_in_append, hint_in_group};

pub(super) fn run(args: &JoinArgs, along: Along) -> Result<(), Failure> {
    let CopyArgs { from, field, cast, to } = &args.through;
    let Some(share) = part::share(to)? else { return Ok(()) };
    let rules = Rules { keepdims: args.keepdims, outer: args.outer, ..Rules::default() };
    let index = Index::of_text(args.index.as_deref(), rules)?;
    if let Some(list) = &args.inputs.names.files_from {
        index.refuse_stdin("--files-from", list)?;
    }
    let workers = output::workers(to.threads);
    let mut locations = input::locations(&args.inputs)?;
    let (output, held) = open_output(args, along, &mut locations, &workers)?;
    if locations.contains(&Location::Stdin) {
        index.refuse_stdin("INPUT", Path::new("-"))?;
    }
    let index = index.open_lists(from, &workers, to.quiet)?;
    let axes = input::axes(&args.axis)?;
    if let (Along::New, Some(name)) = (along, axes.name()) {
        let message = format!("--axis {name}: the new axis of a stack is named by no dimension");
        return Err(Failure::usage(message).hint("--axis takes its number"));
    }
    let casts = index::casts(cast)?;
    let transform = index::transform(Some(field), &args.reshape, Some(cast))?;
    let open = input::options_of_several(from, field.field.as_deref(), &workers)?;
    let failed = |error| {
        let hint = if args.append_to.is_some() { hint_in_append } else { hint_in_group };
        let hint = hint(&error);
        index.failure(error).hint_if(hint)
    };
    let mut job = if let (Some(pattern), Some(into)) = (&args.group, &args.into) {
        let index = index.of_job();
        let keep_rest = args.keep_rest;
        let group = Some(GroupOptions { pattern, into, along, axes, index, keep_rest });
        let options =
            MergeOptions { open, transform, casts, group, workers, ..MergeOptions::default() };
        Copying::merge(&locations, options, output.in_shards(SHARD_BYTES)).map_err(failed)?
    } else {
        let options = JoinOptions {
            along,
            axes,
            open: OpenOptions { rest: args.keep_rest, ..open },
            transform,
            index: index.of_job(),
            casts,
            workers,
        };
        Copying::join(&locations, options, output).map_err(failed)?
    };
    if let Some(file) = &args.append_to {
        let mut job = Appending::new(job, file, held, to.force, to.fsync).map_err(advised)?;
        let dry = Dry::of(to.dry_run, to.json);
        return output::perform(&mut job, &share, dry, to.quiet, failed);
    }
    output::run(&mut job, to, &share, failed)
}

/// The output. A file that rows are appended to is the first input too, and locked before it is
/// read.
fn open_output(
    args: &JoinArgs,
    along: Along,
    locations: &mut Vec<Location>,
    workers: &Workers,
) -> Result<(Output, Option<InPlaceFile>), Failure> {
    let to = &args.through.to;
    let Some(file) = &args.append_to else {
        let first = locations.first().unwrap_or(&Location::Stdin);
        return Ok((output::open(to, first, workers)?, None));
    };
    locations.insert(0, Location::Path(file.clone()));
    append_to(file, to, along, workers)
}

/// The output for appending to a file in place, and the file.
fn append_to(
    file: &Path,
    to: &OutputArgs,
    along: Along,
    workers: &Workers,
) -> Result<(Output, Option<InPlaceFile>), Failure> {
    if along == Along::New {
        return Err(Failure::usage("--append-to is for concat"));
    }
    let held = if to.dry_run { None } else { Some(Appending::hold(file)?) };
    let options = output::options(to, workers)?.force(true);
    Ok((Output::new(Destination::Path(file.to_owned()), options)?, held))
}

/// Word the error of appending, with the flag that helps.
fn advised(error: Error) -> Failure {
    let hint = match error.cause.downcast_ref() {
        Some(AppendFault::Following(_)) => Some("--force overwrites them"),
        Some(AppendFault::NoRoom(_)) => Some(
            "-o FILE makes a new file, whose header has room: tslice concat FILE INPUT... -o FILE --force",
        ),
        Some(AppendFault::Axis | AppendFault::Fortran | AppendFault::DType { .. }) => {
            Some("tslice concat FILE INPUT... -o OUTPUT makes a new file")
        }
        _ => None,
    };
    Failure::from(error).hint_if(hint)
}

/// The bytes of a shard without --shard-size: the default of save_pretrained.
pub(super) const SHARD_BYTES: u64 = 5_000_000_000;
