//! `tslice scatter TARGET --indices FILE --values FILE`: TensorFlow's TensorScatterUpdate.

use std::path::Path;

use tslice::execute::{Conversion, ExecuteError, Transfer};
use tslice::gather::{GatherError, OutOfRange};
use tslice::scatter::{Scatter, ScatterError};

use super::args::{Beyond, ScatterArgs};
use super::edit::Target;
use super::gather::{Numbers, failed_indices, typed};
use super::print;
use super::report::Failure;
use super::value::{Kept, Value, layout};

/// Write slices at the positions that the indices name.
pub(crate) fn run(args: &ScatterArgs) -> Result<(), Failure> {
    if args.indices == Path::new("-") && args.values == args.indices {
        return Err(Failure::usage("--indices and --values cannot both be standard input"));
    }
    let indices = (args.indices.as_path(), args.indices_tensor.as_ref());
    let numbers = typed(indices)?;
    let target = Target::open(&args.target, &args.to)?;
    let tensor = target.input.tensor(&args.from.tensor)?.clone();
    let numbers = numbers.map_or_else(|| Numbers::open(indices, args.from.io), Ok)?;
    let name = ("--values-tensor", args.values_tensor.as_ref());
    let value = Value::open(&args.values, name, args.from.io, &tensor)?;
    let (values, swap_width) = (value.tensor.clone(), value.swap_width);

    let out_of_range = match args.out_of_range {
        Beyond::Error => OutOfRange::Error,
        Beyond::Skip => OutOfRange::Drop,
    };
    let scatter = |numbers: &Numbers, gone| {
        let (target, values) = (layout(&tensor, 0), layout(&values, gone));
        Scatter::new(&target, &numbers.indices(), &values, out_of_range, swap_width as u64)
            .map_err(|error| failed_shapes(args, &error))
    };
    // shapes first: nobody waits for a pipe to end to hear that they do not fit
    scatter(&numbers, 0)?;
    let numbers = numbers.kept(&target, &tensor)?;
    let Kept { source, gone } = value.keep(&target, &tensor)?;
    let scatter = scatter(&numbers, gone)?;
    let (_, positions) = numbers.into_source()?;
    let positions = positions.as_ref();
    let failed = |error| in_target(failed_indices((&args.indices, positions), error));
    scatter.positions().check(positions, args.to.workers()).map_err(|error| match error {
        ExecuteError::Fill { error, .. } => failed(error),
        error => Failure::new(error),
    })?;
    positions.verify().map_err(|error| failed(error.into()))?;
    if args.to.dry_run {
        return print(&target.describe(&tensor, &values.shape, scatter.bytes())?);
    }
    let edit = target.begin()?;
    let pieces = scatter.pieces();
    let conversion = Conversion::swap_bytes(swap_width);
    let transfer = Transfer { source: source.as_ref(), pieces: &pieces, conversion, at: 0 };
    edit.run(transfer, &scatter.into_target(&edit.patch, positions), &args.values)?;
    edit.finish()
}

fn failed_shapes(args: &ScatterArgs, error: &ScatterError) -> Failure {
    match error {
        ScatterError::Indices(GatherError::NotIntegers(_)) => Failure::file(&args.indices, error),
        error => in_target(Failure::new(error)),
    }
}

/// What gather says of its params holds of the target here.
fn in_target(failure: Failure) -> Failure {
    Failure { message: failure.message.replace("params", "target"), ..failure }
}
