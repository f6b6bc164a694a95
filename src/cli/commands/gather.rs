//! `tslice gather [PARAMS] --indices FILE`: gather_nd, and with --axis gather.

use std::path::Path;

use tslice::error::{Error, FileName};
use tslice::execute::{ExecuteError, FillError};
use tslice::gather::{GatherError, Options, OutOfRange, count_batch_dims};
use tslice::job::{Copying, GatherOptions};

use super::assign::NamedTensor;
use super::{index, input, output, part};
use crate::cli::args::GatherArgs;
use crate::cli::report::{Failure, watch};

pub(super) fn run(args: &GatherArgs) -> Result<(), Failure> {
    let Some(share) = part::share(&args.to)? else { return Ok(()) };
    let path = args.params.as_deref().unwrap_or(Path::new("-"));
    if path == Path::new("-") && args.indices == path {
        return Err(Failure::usage("PARAMS and --indices cannot both be standard input"));
    }
    if args.negative && args.out_of_range == OutOfRange::Wrap {
        let message = "--negative has no effect with --out-of-range wrap";
        return Err(Failure::usage(message).hint("wrap counts negative indices from the end"));
    }
    if args.batch_dims < 0 && args.axis.is_none() {
        return Err(Failure::usage("a negative --batch-dims cannot be used without --axis"));
    }
    let name = args.indices_tensor.as_ref();
    let named = NamedTensor { path: &args.indices, flag: "--indices-tensor", name };
    let transpose = index::transposition(&args.transpose)?;
    let casts = index::casts(&args.cast)?;
    let seen = index::seen(Some(&args.field), &args.reshape)?;
    let typed = named.typed()?;
    let workers = output::workers(args.to.threads);
    let output = output::open(&args.to, &input::location(path), &workers)?;
    let options = input::options(&args.from, args.field.field.as_deref())?;
    let mut params = input::open_watched(&input::location(path), &options, args.to.quiet)?;
    let tensor = params.tensor_seen(&options.tensors, &seen)?;
    let indices = typed.map_or_else(|| named.indices(args.from.io, args.to.quiet), Ok)?;
    let batch_dims = count_batch_dims(args.batch_dims, &indices.tensor().shape);
    let how = Options {
        batch_dims: batch_dims.map_err(Failure::new)?,
        elements: args.elements,
        negative: args.negative || args.elements,
        out_of_range: args.out_of_range,
        ..Options::default()
    };
    let options = GatherOptions { axis: args.axis, how, transpose, casts };
    // shapes first: nobody should wait for a pipe to end to hear that they do not fit
    let shapes = options.check_shapes(&tensor, indices.tensor());
    shapes.map_err(|error| misfit(error, indices.file()))?;
    let indices = watch(0, args.to.quiet, |progress| indices.into_indices(&workers, progress))?;
    let mut job = Copying::gather(params, &tensor, &indices, &options, output)?;
    output::run(&mut job, &args.to, &share, advised)
}

fn misfit(error: Error, file: Option<&FileName>) -> Failure {
    match (error.cause.downcast_ref(), file) {
        (Some(error @ GatherError::NotIntegers(_)), Some(file)) => {
            Failure::new(format_args!("{file}: {error}"))
        }
        (Some(GatherError::LongTuples { indices, .. }), _) if indices.len() == 1 => {
            Failure::from(error).hint(ALONG)
        }
        _ => error.into(),
    }
}

/// A hint: what most people mean by a flat list of indices.
const ALONG: &str = "--axis 0 takes each number as a position on the first axis";

/// Word the error of indices, with the flag that would make them right.
fn advised(error: Error) -> Failure {
    let hint = match error.cause.downcast_ref() {
        Some(ExecuteError::Fill { error: FillError::Position(bad), .. }) => match bad {
            bad if bad.fits_first_axis() => Some(ALONG),
            bad if bad.counts_from_the_end() => {
                Some("--negative counts negative indices from the end, as np.take does")
            }
            _ => None,
        },
        _ => None,
    };
    Failure::from(error).hint_if(hint)
}
