//! `tslice concat INPUT...` and `tslice stack INPUT...`: files into one.

use std::path::Path;

use tslice::index::resolve::Rules;
use tslice::input::{Location, OpenOptions};
use tslice::job::{Along, JoinOptions, Joining};

use super::index::Index;
use super::{input, output, part, result};
use crate::cli::args::{JoinArgs, ThroughArgs};
use crate::cli::report::Failure;

/// Join along an axis that the inputs have, or a new one.
pub(super) fn run(args: &JoinArgs, along: Along) -> Result<(), Failure> {
    let ThroughArgs { from, field, cast, to } = &args.through;
    let Some(share) = part::share(to)? else { return Ok(()) };
    let rules = Rules { keepdims: args.keepdims, outer: args.outer, block: None };
    let index = Index::of_text(args.index.as_deref(), rules)?;
    if let Some(list) = &args.inputs.names.files_from {
        index.refuse_stdin("--files-from", list)?;
    }
    let workers = output::workers(to.threads);
    let locations = input::locations(&args.inputs)?;
    let output = output::open(to, locations.first().unwrap_or(&Location::Stdin), &workers)?;
    if locations.contains(&Location::Stdin) {
        index.refuse_stdin("INPUT", Path::new("-"))?;
    }
    let index = index.open_lists(from.io, &workers, to.quiet)?;
    let options = JoinOptions {
        along,
        axes: input::axes(&args.axis)?,
        open: OpenOptions {
            rest: args.keep_rest,
            ..input::options_of_several(from, field.field.as_deref())?
        },
        fields: field.field.clone(),
        index: index.of_job(),
        casts: result::casts(cast)?,
        workers,
    };
    let failed = |error| index.failure(error);
    let mut job = Joining::new(&locations, options, output).map_err(failed)?;
    output::run(&mut job, to, &share, failed)
}
