//! From the arguments of a cast to what becomes of which dtype.

use tslice::internals::cast::{Cast, CastError};
use tslice::internals::dtype::DType;
use tslice::internals::job::Casts;

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
                Some(from) => format!("--cast {text}: {} has a --cast already", from.type_name()),
                None => format!("--cast {text}: there is one for all dtypes already"),
            };
            return Err(Failure::usage(twice));
        }
        rules.push((from, to));
    }
    Ok(Casts::new(rules, args.casting.unwrap_or_default()))
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
