//! `tslice scatter TARGET --indices FILE --values FILE`: TensorFlow's TensorScatterUpdate.

use std::path::Path;

use tslice::error::Error;
use tslice::execute::{ExecuteError, FillError};
use tslice::gather::GatherError;
use tslice::job::ScatterOptions;
use tslice::scatter::ScatterError;

use super::output::Dry;
use super::part::Share;
use super::target::{self, NamedTensor};
use super::{output, result};
use crate::cli::args::ScatterArgs;
use crate::cli::report::Failure;

/// Write slices at the positions that the indices name.
pub(super) fn run(args: &ScatterArgs) -> Result<(), Failure> {
    if args.indices == Path::new("-") && args.values == args.indices {
        return Err(Failure::usage("--indices and --values cannot both be standard input"));
    }
    let name = args.indices_tensor.as_ref();
    let indices = NamedTensor { path: &args.indices, flag: "--indices-tensor", name };
    let typed = indices.typed()?;
    let casts = result::casts(&args.cast)?;
    let options = ScatterOptions { axis: args.axis, out_of_range: args.out_of_range, casts };
    let workers = output::workers(args.to.threads);
    let mut job = target::open(&args.target, &args.from, &args.to, &workers)?;
    let indices = typed.map_or_else(|| indices.indices(args.from.io, args.to.quiet), Ok)?;
    let name = args.values_tensor.as_ref();
    let values = NamedTensor { path: &args.values, flag: "--values-tensor", name };
    let values = values.for_each(&target::names(&job), args.from.io, args.to.quiet)?;
    target::refuse_unused(&options.casts, &values)?;
    for (number, value) in values.into_iter().enumerate() {
        job.scatter(number, indices.clone(), value, &options).map_err(advised)?;
    }
    output::perform(
        &mut job,
        &Share::Whole,
        Dry::of(args.to.dry_run, args.to.json),
        args.to.quiet,
        advised,
    )
}

/// The error of a scatter; what gather says of its params holds of the target here.
fn advised(error: Error) -> Failure {
    let (is_flat, of_params) = match (error.cause.downcast_ref(), error.cause.downcast_ref()) {
        (Some(ScatterError::Indices(GatherError::LongTuples { indices, .. })), _) => {
            (indices.len() == 1, true)
        }
        (Some(_), _) => (false, error.file.is_none()),
        (_, Some(ExecuteError::Fill { error: FillError::Position(_), .. })) => (false, true),
        _ => (false, false),
    };
    let failure = Failure::from(error);
    let failure = match of_params {
        true => Failure { message: failure.message.replace("params", "target"), ..failure },
        false => failure,
    };
    let rows = is_flat.then_some("one position a row is an index tensor of shape [N, 1]");
    failure.hint_if(rows)
}
