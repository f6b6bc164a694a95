//! From the arguments of a transposition to an order of axes.

use tslice::internals::permutation::Transposition;

use super::index::list;
use crate::cli::args::TransposeArgs;
use crate::cli::report::Failure;

/// Understand the arguments.
pub(super) fn parse(args: &TransposeArgs) -> Result<Transposition, Failure> {
    match args.transpose.as_deref().map(str::trim) {
        None if args.reverse_axes => Ok(Transposition::Reversed),
        None => Ok(Transposition::None),
        Some("") => Ok(Transposition::Reversed),
        Some(text) => list("--transpose", text).map(Transposition::Axes),
    }
}
