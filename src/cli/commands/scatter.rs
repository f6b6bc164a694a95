//! `tslice scatter TARGET --indices FILE --values FILE`: write slices at positions of an index
//! tensor.

use std::path::Path;

use tslice::error::Error;
use tslice::execute::{ExecuteError, FillError};
use tslice::gather::GatherError;
use tslice::job::ScatterOptions;
use tslice::scatter::ScatterError;

use super::edit::{names, open, perform, refuse_unused};
use super::operand::NamedTensor;
use super::{index, output};
use crate::cli::args::ScatterArgs;
use crate::cli::report::Failure;

pub(super) fn run(args: &ScatterArgs) -> Result<(), Failure> {
    if args.indices == Path::new("-") && args.values == args.indices {
        return Err(Failure::usage("--indices and --values cannot both be standard input"));
    }
    let name = args.indices_tensor.as_ref();
    let workers = output::workers(args.to.threads);
    let path = &args.indices;
    let flag = "--indices-tensor";
    let unpack = args.from.unpack;
    let indices = NamedTensor { path, flag, name, workers: &workers, unpack, scaling: None };
    let typed = indices.typed()?;
    let casts = index::casts(&args.cast)?;
    let options =
        ScatterOptions { axis: args.axis.clone(), out_of_range: args.out_of_range, casts };
    let mut job = open(&args.target, &args.from, &args.reshape, &args.to, &workers)?;
    let indices = typed.map_or_else(|| indices.indices(args.from.io, args.to.quiet), Ok)?;
    let name = args.values_tensor.as_ref();
    let path = &args.values;
    let flag = "--values-tensor";
    let scaling = index::scaling(&args.cast);
    let values = NamedTensor { path, flag, name, workers: &workers, unpack, scaling };
    let values = values.for_each(&names(&job), args.from.io, args.to.quiet)?;
    refuse_unused(&options.casts, &values)?;
    for (number, value) in values.into_iter().enumerate() {
        job.scatter(number, indices.clone(), value, &options).map_err(advised)?;
    }
    perform(&mut job, &args.to, advised)
}

/// Word the error of a scatter, whose target takes the place of gather's params.
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
    let failure = if of_params {
        Failure { message: failure.message.replace("params", "target"), ..failure }
    } else {
        failure
    };
    let rows = is_flat.then_some("one position a row is an index tensor of shape [N, 1]");
    failure.hint_if(rows)
}
