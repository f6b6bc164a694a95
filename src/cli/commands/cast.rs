//! From the arguments of a cast to what becomes of which dtype.

use tslice::cast::{Cast, CastError, Casting};
use tslice::dtype::DType;
use tslice::error::ContainerError;
use tslice::job::Casts;

use super::dtype;
use crate::cli::args::CastArgs;
use crate::cli::report::Failure;

/// Understand the arguments.
pub(super) fn parse(args: &CastArgs) -> Result<Casts, Failure> {
    let mut rules: Vec<(Option<DType>, DType)> = Vec::with_capacity(args.cast.len());
    for text in &args.cast {
        let (from, to) = match text.split_once(':') {
            Some((from, to)) => (Some(castable(text, from)?), castable(text, to)?),
            None => (None, castable(text, text)?),
        };
        let is_same = |other: &Option<DType>| match (other, &from) {
            (Some(other), Some(from)) => other.is_type_of(from),
            (other, from) => other.is_none() && from.is_none(),
        };
        if rules.iter().any(|(other, _)| is_same(other)) {
            let twice = match from {
                Some(from) => format!("--cast {text}: {} has a --cast already", name(&from)),
                None => format!("--cast {text}: there is one for all dtypes already"),
            };
            return Err(Failure::usage(twice));
        }
        rules.push((from, to));
    }
    Ok(Casts::new(rules, args.casting.unwrap_or_default().into()))
}

/// A dtype that can be cast to something.
fn castable(whole: &str, name: &str) -> Result<DType, Failure> {
    let flag = format!("--cast {whole}");
    let dtype = dtype::parse(&flag, name)?;
    match Cast::knows(&dtype) {
        true => Ok(dtype),
        false => Err(Failure::usage(format_args!("{flag}: {}", CastError::NotNumbers(dtype)))),
    }
}

/// The name of a type in any byte order.
fn name(dtype: &DType) -> String {
    match dtype {
        DType::Scalar(scalar, _) => scalar.name().to_owned(),
        DType::Npy(_) => dtype.to_string(),
    }
}

/// Refuse a `--cast FROM:TO` that is for no tensor.
pub(super) fn refuse_unused(
    casts: &Casts,
    dtypes: impl Iterator<Item = DType> + Clone,
) -> Result<(), Failure> {
    match casts.without_use(dtypes) {
        Some(from) => {
            let from = name(from);
            Err(Failure::new(format_args!("--cast {from}:... has no effect: no tensor is {from}")))
        }
        None => Ok(()),
    }
}

/// The error of a job, with the flag that would allow the cast that it refuses.
pub(super) fn advised(error: ContainerError) -> Failure {
    match error.cause.downcast_ref() {
        Some(error) => failed(error),
        _ => error.into(),
    }
}

/// A cast that cannot be done, with the flag that would allow it.
pub(super) fn failed(error: &CastError) -> Failure {
    let failure = Failure::new(format_args!("--cast: {error}"));
    match error {
        CastError::Refused { casting: Casting::Safe, .. } => {
            failure.hint("without --casting safe, casts within a kind are allowed")
        }
        CastError::Refused { .. } => failure.hint("--casting unsafe allows every cast"),
        CastError::NotNumbers(dtype) if dtype.is_void() => {
            failure.hint("--dtype says what the bytes of a void type mean: --dtype bfloat16")
        }
        _ => failure,
    }
}
