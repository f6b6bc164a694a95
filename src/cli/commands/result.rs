//! From the arguments that change a result to its dtype, its casts and the order of its axes.

use tslice::cast::{Cast, CastError};
use tslice::dtype::DType;
use tslice::format::{NameError, dtype_names, parse_dtype};
use tslice::job::Casts;
use tslice::permutation::Transposition;

use super::index::list;
use crate::cli::args::{CastArgs, TransposeArgs};
use crate::cli::report::{Failure, did_you_mean};

/// Read the dtype in `text`, the value of `flag` or a part of it.
pub(super) fn dtype(flag: &str, text: &str) -> Result<DType, Failure> {
    parse_dtype(text).map_err(|error| {
        let failure = Failure::usage(format_args!("{flag}: {error}"));
        failure.hint_if(match error {
            NameError::TwoMeanings { bits, bytes, name } => {
                let count = &name[1..];
                let count_bytes = format!("{bytes} or '<{name}' ({count} bytes, as in NumPy)");
                Some(format!("{bits} ({count} bits), or {count_bytes}"))
            }
            NameError::Unknown(_) => {
                let names = dtype_names();
                did_you_mean(text.trim(), names.iter().map(String::as_str))
            }
            NameError::Descr(_) => None,
        })
    })
}

/// What becomes of which dtype.
pub(super) fn casts(args: &CastArgs) -> Result<Casts, Failure> {
    let mut rules: Vec<(Option<DType>, DType)> = Vec::with_capacity(args.cast.len());
    let mut to_all = false;
    for text in &args.cast {
        let (from, to) = match text.split_once(':') {
            Some(("all", to)) => {
                to_all = true;
                (None, castable(text, to)?)
            }
            Some((from, to)) => (Some(castable(text, from)?), castable(text, to)?),
            None => (None, castable(text, text)?),
        };
        let is_same = |other: &Option<DType>| match (other, &from) {
            (Some(other), Some(from)) => other.is_type_of(from),
            (other, from) => other.is_none() && from.is_none(),
        };
        if rules.iter().any(|(other, _)| is_same(other)) {
            let twice = match from {
                Some(from) => format!("--cast {text}: {} has a --cast already", from.type_name()),
                None => format!("--cast {text}: there is one for all dtypes already"),
            };
            return Err(Failure::usage(twice));
        }
        rules.push((from, to));
    }
    let mut casts = Casts::new(rules, args.casting.unwrap_or_default());
    casts.to_all = to_all;
    Ok(casts)
}

/// A dtype that can be cast to something.
fn castable(whole: &str, name: &str) -> Result<DType, Failure> {
    let flag = format!("--cast {whole}");
    let dtype = dtype(&flag, name)?;
    match Cast::knows(&dtype) {
        true => Ok(dtype),
        false => Err(Failure::usage(format_args!("{flag}: {}", CastError::NotNumbers(dtype)))),
    }
}

/// The order of the axes.
pub(super) fn transposition(args: &TransposeArgs) -> Result<Transposition, Failure> {
    match args.transpose.as_deref().map(str::trim) {
        None if args.reverse_axes => Ok(Transposition::Reversed),
        None => Ok(Transposition::None),
        Some("") => Ok(Transposition::Reversed),
        Some(text) => list("--transpose", text).map(Transposition::Axes),
    }
}
