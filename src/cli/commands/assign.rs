//! `tslice assign TARGET [INDEX] --value FILE`: NumPy's `target[index] = value`.

use std::path::Path;

use tslice::internals::dtype::DType;
use tslice::internals::element::{self, ElementError};
use tslice::internals::job::Operand;
use tslice::internals::region::IndexTensor;

use super::index::Index;
use super::output::Dry;
use super::part::Share;
use super::target::{self, NamedTensor};
use super::{output, result};
use crate::cli::args::AssignArgs;
use crate::cli::report::{Exit, Failure};

/// Write a value, or a number, into a slice, or at listed positions.
pub(super) fn run(args: &AssignArgs) -> Result<(), Failure> {
    let index = Index::parse(args.text.as_deref(), &args.index)?;
    if let Some(value) = args.what.value.as_deref() {
        index.refuse_stdin("--value", value)?;
    }
    let workers = output::workers(args.to.threads);
    let index = index.open(args.from.io, &workers, args.to.quiet, "TARGET", &args.target)?;
    let casts = result::casts(&args.cast)?;
    let original = target::open(&args.target, &args.from, &args.to, &workers)?;
    let tensor = original.input().tensor(&args.from.tensor)?;
    let failed = |error| index.failure(error);
    let slice = original.slice(tensor, index.of_job()).map_err(failed)?;
    let value = value(args, &slice.tensor().dtype)?;
    let broadcast = args.broadcast || args.what.fill.is_some();
    let mut job = slice.assign(value, &casts, broadcast).map_err(failed)?;
    output::perform(
        &mut job,
        &Share::Whole,
        Dry::of(args.to.dry_run, args.to.json),
        args.to.quiet,
        failed,
    )
}

/// What is written: the elements of a file, or one number everywhere.
fn value(args: &AssignArgs, target: &DType) -> Result<Operand, Failure> {
    if let Some(text) = &args.what.fill {
        return Ok(IndexTensor::element(number(text, target)?, target).into());
    }
    let path = args.what.value.as_deref().unwrap_or(Path::new(""));
    let named = NamedTensor { path, flag: "--value-tensor", name: args.value_tensor.as_ref() };
    // a number is not read from a file of that name
    let number = path.to_str().filter(|text| element::parse(text, target).is_ok());
    let number = number.filter(|_| !path.exists());
    let hint =
        number.map(|number| format!("--value names a file; --fill {number} writes the number"));
    named.open(args.from.io, false, args.to.quiet).map_err(|failure| failure.hint_if(hint))
}

/// The element of the target's dtype that `--fill` asks for.
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
