//! `tslice assign TARGET [INDEX] --value FILE`: NumPy's `target[index] = value`.

use std::path::Path;

use tslice::dtype::DType;
use tslice::element;
use tslice::element::ElementError;
use tslice::execute::Workers;
use tslice::job::{Editing, Operand};
use tslice::region::IndexTensor;
use tslice::tensor::TensorInfo;

use super::edit::{names, open, perform, refuse_unused};
use super::index::Index;
use super::operand::NamedTensor;
use super::{index, output};
use crate::cli::args::AssignArgs;
use crate::cli::report::{Exit, Failure};

pub(super) fn run(args: &AssignArgs) -> Result<(), Failure> {
    let index = Index::parse(&args.index)?;
    if let Some(value) = args.what.value.as_deref() {
        index.refuse_stdin("--value", value)?;
    }
    let workers = output::workers(args.to.threads);
    let index = index.open(&args.from, &workers, args.to.quiet, "TARGET", &args.target)?;
    let casts = index::casts(&args.cast)?;
    let mut job = open(&args.target, &args.from, &args.index.reshape, &args.to, &workers)?;
    let failed = |error| index.failure(error);
    let slices = (0..job.tensors().len()).map(|number| job.slice(number, index.of_job()));
    let slices = slices.collect::<Result<Vec<_>, _>>().map_err(failed)?;
    let values = values(args, &job, &workers)?;
    refuse_unused(&casts, &values)?;
    let broadcast = args.broadcast || args.what.fill.is_some();
    for (slice, value) in slices.into_iter().zip(values) {
        job.assign(slice, value, &casts, broadcast).map_err(failed)?;
    }
    perform(&mut job, &args.to, failed)
}

/// The value of each tensor: elements of a file, or one number everywhere.
fn values(args: &AssignArgs, job: &Editing, workers: &Workers) -> Result<Vec<Operand>, Failure> {
    if let Some(text) = &args.what.fill {
        if index::scaling(&args.cast).is_some() {
            let message = "--multiply, --add and --nan have no effect: --fill gives the number";
            return Err(Failure::usage(message));
        }
        let element = |tensor: &TensorInfo| {
            let dtype = &tensor.dtype;
            Ok(IndexTensor::element(number(text, dtype)?, dtype).into())
        };
        return job.tensors().map(element).collect();
    }
    let path = args.what.value.as_deref().unwrap_or(Path::new(""));
    let name = args.value_tensor.as_ref();
    let unpack = args.from.unpack;
    let scaling = index::scaling(&args.cast);
    let named = NamedTensor { path, flag: "--value-tensor", name, workers, unpack, scaling };
    // --value takes no numbers, unless a file has such a name
    let is_number =
        |text: &&str| job.tensors().any(|tensor| element::parse(text, &tensor.dtype).is_ok());
    let number = path.to_str().filter(is_number).filter(|_| !path.exists());
    let hint =
        number.map(|number| format!("--value names a file; --fill {number} writes the number"));
    let values = named.for_each(&names(job), args.from.io, args.to.quiet);
    values.map_err(|failure| failure.hint_if(hint))
}

fn number(text: &str, target: &DType) -> Result<Vec<u8>, Failure> {
    element::parse(text, target).map_err(|error| {
        let failure = Failure::new(format_args!("--fill {text}: {error}"));
        match error {
            ElementError::NotANumber(_) => Failure { exit: Exit::Usage, ..failure },
            ElementError::Range { .. } if element::parse("inf", target).is_ok() => {
                failure.hint("--fill inf writes infinity")
            }
            _ => failure,
        }
    })
}
