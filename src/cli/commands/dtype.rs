//! The dtypes that are typed: one reading for all flags, with what helps where it fails.

use tslice::internals::dtype::DType;
use tslice::internals::format::{NameError, dtype_names, parse_dtype};

use crate::cli::report::{Failure, did_you_mean, nearest};

/// Read the dtype in `text`, the value of `flag` or a part of it.
pub(super) fn parse(flag: &str, text: &str) -> Result<DType, Failure> {
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
                did_you_mean(&nearest(text.trim(), names.iter().map(String::as_str)))
            }
            NameError::Descr(_) => None,
        })
    })
}
