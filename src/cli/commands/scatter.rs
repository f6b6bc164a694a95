//! `tslice scatter TARGET --indices FILE --values FILE`: TensorFlow's TensorScatterUpdate.

use std::path::Path;

use tslice::execute::{ExecuteError, FillError, Transfer};
use tslice::format::Tensor;
use tslice::gather::{GatherError, Indexed, Options, OutOfRange};
use tslice::index::resolve::Selection;
use tslice::region::layout_of;
use tslice::scatter::{Scatter, ScatterError};
use tslice::sink::SinkError;
use tslice::source::{Source, SourceError};
use tslice::view::View;

use super::indices::Indices;
use super::target::{Target, Value, failed_value, not_broadcast, written};
use super::{cast, output};
use crate::cli::args::{Beyond, ScatterArgs};
use crate::cli::report::{Failure, print};

/// Write slices at the positions that the indices name.
pub(super) fn run(args: &ScatterArgs) -> Result<(), Failure> {
    if args.indices == Path::new("-") && args.values == args.indices {
        return Err(Failure::usage("--indices and --values cannot both be standard input"));
    }
    let named = (args.indices.as_path(), args.indices_tensor.as_ref());
    let typed = Indices::typed(named)?;
    let casts = cast::parse(&args.cast)?;
    let workers = output::workers(args.to.threads);
    let target = Target::open(&args.target, &args.from, &args.to, workers)?;
    let tensor = target.tensor(&args.from.tensor)?;
    let indices = typed.map_or_else(|| Indices::open(named, args.from.io, args.to.quiet), Ok)?;
    let name = ("--values-tensor", args.values_tensor.as_ref());
    let value = Value::open(&args.values, name, args.from.io, (&tensor, &casts))?;
    let (values, conversion) = (value.tensor.clone(), value.conversion);

    let out_of_range = match args.out_of_range {
        Beyond::Error => OutOfRange::Error,
        Beyond::Skip => OutOfRange::Drop,
    };
    // shapes first: nobody waits for a pipe to end to hear that they do not fit
    let (to, from) = (layout_of(&tensor), layout_of(&values));
    let mut shape = values.shape.clone();
    let scatter = match args.axis {
        None => Scatter::new(&to, &indices.layout(), &from, out_of_range, conversion)
            .map_err(|error| failed_shapes(args, &error))?,
        Some(axis) => {
            let negative = true;
            let options = Options { negative, out_of_range, ..Options::default() };
            let indexed = Indexed::elements(&to, &indices.layout(), axis, &options);
            let indexed = indexed.map_err(|error| failed_shapes(args, &error.into()))?;
            shape = indexed.shape();
            let view = spread(args, &values, &shape)?;
            Scatter::of(&to, indexed, view.runs(), conversion).map_err(Failure::new)?
        }
    };
    let written = written(&tensor, scatter.bytes());
    let indices = indices.into_kept(&target.original, &written)?;
    let indices = indices.as_ref();
    let source = value.into_kept(&target, &written)?;
    scatter.check(&[indices], target.workers()).map_err(|error| match error {
        ExecuteError::Fill { error, .. } => failed_indices(args, indices, error),
        error => Failure::new(error),
    })?;
    let positions = scatter.positions(&[indices], target.workers());
    let positions = positions.map_err(|error| failed_indices(args, indices, error))?;
    indices.verify().map_err(|error| unread_indices(args, error))?;
    if args.to.dry_run {
        return print(&target.describe(&tensor, &shape, scatter.bytes())?);
    }
    let pieces = scatter.pieces(source.as_ref(), target.workers());
    let (pieces, spooled) = pieces.map_err(|error| failed_value(&args.values, error))?;
    let target = target.begin()?;
    let source = spooled.as_deref().unwrap_or(source.as_ref());
    let transfer = Transfer { source, pieces: &pieces, conversion, at: 0 };
    let sink = scatter.sink(target.patch(), &positions);
    let written = target.run(transfer, &sink, &args.values);
    // they were read again: indices that were cut short are the reason for whatever else went wrong
    indices.verify().map_err(|error| unread_indices(args, error))?;
    written.map_err(|error| match error.cause.downcast_ref() {
        Some(SinkError::Positions(reason)) => Failure::file(&args.indices, reason),
        _ => Failure::from(error),
    })?;
    target.finish()
}

/// The values broadcast to the shape of the elements that are written.
fn spread(args: &ScatterArgs, values: &Tensor, shape: &[u64]) -> Result<View, Failure> {
    let view =
        View::new(&layout_of(values), &Selection::whole(&values.shape)).map_err(Failure::new)?;
    if !values.dtype.item_bits().is_multiple_of(8) && values.shape == shape {
        // their axes are runs of elements here; one after the other, only where they begin counts
        return Ok(view);
    }
    view.broadcast(shape).ok_or_else(|| not_broadcast(&args.values, &values.shape, shape))
}

/// Indices that are bad, or could not be read.
fn failed_indices(args: &ScatterArgs, indices: &dyn Source, error: FillError) -> Failure {
    match (indices.verify(), error) {
        // a file that was cut short is the reason for whatever else is wrong with it
        (Err(error), _) | (Ok(()), FillError::Indices { error, .. } | FillError::Source(error)) => {
            unread_indices(args, error)
        }
        (Ok(()), error) => in_target(Failure::new(error)),
    }
}

fn unread_indices(args: &ScatterArgs, error: SourceError) -> Failure {
    Failure::file(&args.indices, error)
}

fn failed_shapes(args: &ScatterArgs, error: &ScatterError) -> Failure {
    match error {
        ScatterError::Indices(GatherError::NotIntegers(_)) => Failure::file(&args.indices, error),
        ScatterError::Indices(GatherError::LongTuples { indices, .. }) if indices.len() == 1 => {
            in_target(Failure::new(error))
                .hint("one position a row is an index tensor of shape [N, 1]")
        }
        error => in_target(Failure::new(error)),
    }
}

/// What gather says of its params holds of the target here.
fn in_target(failure: Failure) -> Failure {
    Failure { message: failure.message.replace("params", "target"), ..failure }
}
