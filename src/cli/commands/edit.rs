//! The shared part of `assign` and `scatter`: the file that is changed.

use std::path::Path;

use tslice::error::Error;
use tslice::execute::Workers;
use tslice::job::{Casts, Editing, Operand};
use tslice::output::{Output, WriteOptions};
use tslice::source::OpenError;

use super::output::Dry;
use super::part::Share;
use super::{index, input, output};
use crate::cli::args::{EditArgs, InputArgs, ReshapeArgs};
use crate::cli::report::Failure;

pub(super) fn open(
    path: &Path,
    from: &InputArgs,
    reshape: &ReshapeArgs,
    to: &EditArgs,
    workers: &Workers,
) -> Result<Editing, Failure> {
    if path == Path::new("-") {
        return Err(Failure::usage("TARGET must be a file, not standard input"));
    }
    let copy = to.destination.output.as_deref().map(output::target);
    if let (Some(copy), false) = (&copy, to.dry_run) {
        output::refuse_terminal(copy)?;
    }
    let mut options = WriteOptions::default().force(to.force).fsync(to.fsync).workers(workers);
    options.metadata = output::metadata(&to.metadata)?;
    if to.destination.in_place && options.metadata.is_any() {
        let message = "--metadata, --metadata-from and --no-metadata are for a copy, -o FILE: in place \
                       a header stays as it is";
        return Err(Failure::usage(message));
    }
    let transform = index::transform(None, reshape, None)?;
    let open = input::options(from, None, workers)?;
    let folder = copy.as_ref().filter(|copy| Output::is_folder_of_checkpoint(copy, &options));
    let mut job = match folder {
        Some(copy) => {
            let location = input::location(path);
            let output = Output::new(copy.clone(), options)?;
            let output = output::with_small_files(output, &location)?;
            Editing::in_folder(&location, &open, &output)?
        }
        None => {
            let is_copy = copy.is_some();
            Editing::open(path, &open, copy, options).map_err(|error| {
                let is_folder = matches!(error.cause.downcast_ref(), Some(OpenError::IsADirectory));
                let hint = (is_folder && is_copy)
                    .then_some("-o DIR/, with a slash at the end, writes a copy of a checkpoint");
                Failure::from(error).hint_if(hint)
            })?
        }
    };
    job.transform(&transform)?;
    Ok(job)
}

pub(super) fn names(job: &Editing) -> Vec<Option<String>> {
    job.tensors().map(|tensor| tensor.name.clone()).collect()
}

pub(super) fn refuse_unused(casts: &Casts, values: &[Operand]) -> Result<(), Failure> {
    let dtypes = values.iter().map(|value| value.tensor().dtype.clone());
    Ok(casts.refuse_unused(dtypes).map_err(Error::from)?)
}

pub(super) fn perform(
    job: &mut Editing,
    to: &EditArgs,
    failed: impl Fn(Error) -> Failure,
) -> Result<(), Failure> {
    output::perform(job, &Share::Whole, Dry::of(to.dry_run, to.json), to.quiet, failed)
}
