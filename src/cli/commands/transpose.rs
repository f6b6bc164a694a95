//! From the arguments of a transposition to a permutation of axes.

use tslice::index::strided_slice::parse_list;
use tslice::permutation::Permutation;

use crate::cli::args::TransposeArgs;
use crate::cli::report::Failure;

/// What becomes of the axes of a result.
pub(super) enum Transpose {
    /// They stay where they are.
    None,
    /// The last one comes first.
    Reversed,
    /// As listed.
    Axes(Vec<i64>),
}

impl Transpose {
    /// Understand the arguments.
    pub(super) fn parse(args: &TransposeArgs) -> Result<Transpose, Failure> {
        match args.transpose.as_deref().map(str::trim) {
            None if args.reverse_axes => Ok(Transpose::Reversed),
            None => Ok(Transpose::None),
            Some("") => Ok(Transpose::Reversed),
            Some(text) => {
                let axes = parse_list(text).map_err(|error| {
                    Failure::usage(format_args!("--transpose: {error}")).at(text, error.span)
                })?;
                Ok(Transpose::Axes(axes))
            }
        }
    }

    /// The order of the axes of a result that has so many.
    pub(super) fn permutation(&self, ndim: usize) -> Result<Permutation, Failure> {
        match self {
            Transpose::None => Ok(Permutation::identity(ndim)),
            Transpose::Reversed => Ok(Permutation::reversed(ndim)),
            Transpose::Axes(axes) => Permutation::new(axes, ndim)
                .map_err(|error| Failure::new(format_args!("--transpose: {error}"))),
        }
    }
}
