//! Names of element types, as people write them.

use super::{npy, safetensors};
use crate::dtype::{DType, Endian};

/// The type that people mean by a text, little-endian where it does not say: a name or type string
/// of NumPy, a name of `ml_dtypes`, or a name of the safetensors format in any case (`f32`, `bf16`,
/// `i64`, `f8_e4m3`).
///
/// What NumPy reads in lower case keeps NumPy's meaning: the number in `i8`, `u8` and `f16` counts
/// bytes, and `I8`, `U8` and `F16`, which would be other types, are refused.
///
/// # Errors
/// [`npy::DescrError`] where it is none of them, or means Python objects.
///
/// ```
/// # use tslice::format::parse_dtype;
/// assert_eq!(parse_dtype("f32"), parse_dtype("float32"));
/// assert_eq!(parse_dtype("u8"), parse_dtype("uint64"));
/// ```
pub fn parse_dtype(text: &str) -> Result<DType, npy::DescrError> {
    npy::parse_dtype(text).or_else(|error| {
        let in_numpy = npy::parse_dtype(&text.to_ascii_lowercase()).is_ok();
        let scalar = safetensors::scalar(&text.to_ascii_uppercase()).filter(|_| !in_numpy);
        scalar.map(|scalar| DType::Scalar(scalar, Endian::Little)).ok_or(error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::Scalar;

    #[test]
    fn dtypes_have_names_of_both_formats() {
        for (name, scalar) in [
            ("f32", Scalar::F32),
            ("F32", Scalar::F32),
            ("f64", Scalar::F64),
            ("bf16", Scalar::BF16),
            ("i16", Scalar::I16),
            ("i64", Scalar::I64),
            ("u32", Scalar::U32),
            ("c64", Scalar::C64),
            ("f8_e4m3", Scalar::F8E4M3),
            // NumPy's come first
            ("i8", Scalar::I64),
            ("u8", Scalar::U64),
            ("f4", Scalar::F32),
            ("uint8", Scalar::U8),
            ("bfloat16", Scalar::BF16),
        ] {
            let dtype = DType::Scalar(scalar, Endian::Little);
            assert_eq!(parse_dtype(name), Ok(dtype), "{name}");
        }
        for name in ["F16", "I8", "F4", "f33", "bf32", ""] {
            assert!(parse_dtype(name).is_err(), "{name}");
        }
    }
}
