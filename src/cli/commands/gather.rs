//! `tslice gather [PARAMS] --indices FILE`: gather_nd, and with --axis gather.

use std::path::Path;

use tslice::error::ContainerError;
use tslice::execute::{ExecuteError, FillError};
use tslice::format::Tensor;
use tslice::gather::{GatherError, Options, OutOfRange, count_batch_dims};
use tslice::input::OpenOptions;
use tslice::output::Item;
use tslice::region::Take;
use tslice::shape::Order;

use super::indices::Indices;
use super::transpose::Transpose;
use super::{cast, input, output, part};
use crate::cli::args::{GatherArgs, Outside};
use crate::cli::report::{Failure, print};

/// Write the slabs at the positions that the indices name to the output.
pub(super) fn run(args: &GatherArgs) -> Result<(), Failure> {
    let Some(share) = part::share(&args.to)? else { return Ok(()) };
    let path = args.params.as_deref().unwrap_or(Path::new("-"));
    if path == Path::new("-") && args.indices == path {
        return Err(Failure::usage("PARAMS and --indices cannot both be standard input"));
    }
    if args.negative && matches!(args.out_of_range, Outside::Wrap) {
        let message = "--negative has no effect with --out-of-range wrap";
        return Err(Failure::usage(message).hint("wrap counts negative indices from the end"));
    }
    if args.batch_dims < 0 && args.axis.is_none() {
        return Err(Failure::usage("a negative --batch-dims cannot be used without --axis"));
    }
    let named = (args.indices.as_path(), args.indices_tensor.as_ref());
    let transpose = Transpose::parse(&args.transpose)?;
    let casts = cast::parse(&args.cast)?;
    let typed = Indices::typed(named)?;
    let workers = output::workers(args.to.threads);
    let output = output::open(&args.to, &workers)?;
    let fields = args.field.field.clone();
    let options = OpenOptions { fields, ..input::options(&args.from)? };
    let mut params = input::open_watched(&input::location(path), &options, args.to.quiet)?;
    let tensor = params.tensor(&options.tensors)?;
    cast::refuse_unused(&casts, std::iter::once(tensor.dtype.clone()))?;
    let indices = typed.map_or_else(|| Indices::open(named, args.from.io, args.to.quiet), Ok)?;
    let order = output.options().order;
    let (shape, options) = gathered(args, &tensor, &indices, &transpose, order)?;
    let item = Item {
        name: &output.tensor_name(&tensor, params.location(), true),
        dtype: &tensor.dtype,
        shape,
        cast: casts.of(&tensor.dtype).map_err(|error| cast::failed(&error))?,
        part: tensor.part,
        number: 0,
    };
    let prepared = output.prepare(&[item], &params.contents().metadata)?;

    let region = indices.into_tensor(&workers)?.region(&tensor, args.axis, &options);
    let region = region.map_err(Failure::new)?;
    let takes = prepared.places().map(|(to, at)| Take {
        part: tensor.part,
        region: region.clone(),
        conversion: to.conversion,
        at,
    });
    let takes: Vec<Take> = takes.collect();
    if args.to.dry_run {
        let described =
            output::describe(&output, &prepared, (&mut params, &takes), &share, advised);
        return print(&described?);
    }
    output::spool(&mut params, args.to.quiet)?;
    let share = (&share, args.to.quiet);
    output::write(&output, &prepared, (&mut params, &takes), share, advised)
}

/// The shape of what the arguments ask for, and how it is gathered.
fn gathered(
    args: &GatherArgs,
    tensor: &Tensor,
    indices: &Indices,
    transpose: &Transpose,
    order: Order,
) -> Result<(Vec<u64>, Options), Failure> {
    let out_of_range = match args.out_of_range {
        Outside::Error => OutOfRange::Error,
        Outside::Zero => OutOfRange::Drop,
        Outside::Clip => OutOfRange::Clip,
        Outside::Wrap => OutOfRange::Wrap,
    };
    let batch_dims = count_batch_dims(args.batch_dims, &indices.tensor.shape);
    let mut options = Options {
        batch_dims: batch_dims.map_err(Failure::new)?,
        elements: args.elements,
        negative: args.negative || args.elements,
        out_of_range,
        order,
        ..Options::default()
    };
    let shape = |options: &Options| {
        let shape = tslice::region::gathered_shape(tensor, &indices.tensor, args.axis, options);
        shape.map_err(|error| match (&error, &indices.file) {
            (GatherError::NotIntegers(_), Some(file)) => {
                Failure::new(format_args!("{file}: {error}"))
            }
            (GatherError::LongTuples { indices, .. }, _) if indices.len() == 1 => {
                Failure::new(error).hint(ALONG)
            }
            _ => Failure::new(error),
        })
    };
    // the axes of the result are known only when all else fits
    options.transpose = Some(transpose.permutation(shape(&options)?.len())?);
    Ok((shape(&options)?, options))
}

/// What most people mean by a flat list of indices.
const ALONG: &str = "--axis 0 takes each number as a position on the first axis";

/// The error of indices, with the flag that would make them right.
fn advised(error: ContainerError) -> Failure {
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
    let failure = Failure::from(error);
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
