//! Names of element types, as people write them. All flags and the library read the same names.
//!
//! Four sets of names are understood, which contradict each other only in a few names:
//!
//! | language | examples |
//! |---|---|
//! | NumPy's names and type strings, those of `ml_dtypes` | `float32`, `half`, `>i2`, `f4`, `U5`, `bfloat16` |
//! | PyTorch's, where NumPy lacks them | `cfloat` |
//! | the safetensors format's, in capitals | `BF16`, `F8_E4M3`, `U8` |
//! | short ones that count bits | `f32`, `bf16`, `fp16`, `i64` |
//!
//! `i8`, `u8` and `f16` are refused: one set counts bits, another bytes, and both meanings are types.

use super::npy::{self, DescrError};
use super::safetensors;
use crate::dtype::{DType, Endian, Scalar};
use crate::error::faults;

/// Why a text is not the name of a type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// A name that counts bits in one language, and bytes in another.
    #[error("'{name}' is the name of two dtypes")]
    TwoMeanings { name: &'static str, bits: &'static str, bytes: &'static str },
    /// A text that names no type.
    #[error("{0} is not the name of a dtype")]
    Unknown(String),
    /// A type of Python objects, or of too many bytes.
    #[error(transparent)]
    #[doc(hidden)]
    Descr(DescrError),
}

faults!(DType: NameError);

/// The names with two meanings: the text, the type by its number of bits, the type by its number of
/// bytes.
const AMBIGUOUS: [(&str, Scalar, &str); 3] =
    [("i8", Scalar::I8, "int64"), ("u8", Scalar::U8, "uint64"), ("f16", Scalar::F16, "float128")];

/// Names that neither NumPy, nor `ml_dtypes`, nor the safetensors format has.
const SHORT: [(&str, Scalar); 15] = [
    ("f32", Scalar::F32),
    ("f64", Scalar::F64),
    ("bf16", Scalar::BF16),
    ("fp16", Scalar::F16),
    ("fp32", Scalar::F32),
    ("fp64", Scalar::F64),
    ("i16", Scalar::I16),
    ("i32", Scalar::I32),
    ("i64", Scalar::I64),
    ("u16", Scalar::U16),
    ("u32", Scalar::U32),
    ("u64", Scalar::U64),
    ("c64", Scalar::C64),
    ("c128", Scalar::C128),
    ("cfloat", Scalar::C64),
];

/// The type with a name of NumPy, ml_dtypes, PyTorch or safetensors; little-endian unless the name says otherwise. Names in
/// capitals are safetensors': `U8` is an unsigned integer, and NumPy's string of 8 characters is `<U8`.
///
/// # Errors
/// [`NameError`] for an unknown name, a name with two meanings, or Python objects.
///
/// ```
/// # use tslice::formats::parse_dtype;
/// assert_eq!(parse_dtype("f32"), parse_dtype("float32"));
/// assert_eq!(parse_dtype("BF16"), parse_dtype("bfloat16"));
/// assert_eq!(parse_dtype("<i8"), parse_dtype("int64"));
/// assert!(parse_dtype("i8").is_err());
/// ```
pub fn parse_dtype(text: &str) -> Result<DType, NameError> {
    let text = text.trim();
    if let Some((name, bits, bytes)) = AMBIGUOUS.into_iter().find(|(name, ..)| *name == text) {
        return Err(NameError::TwoMeanings { name, bits: bits.name(), bytes });
    }
    let short = SHORT.iter().find(|(name, _)| *name == text).map(|(_, scalar)| *scalar);
    let little = |scalar| DType::Scalar(scalar, Endian::Little);
    if let Some(scalar) = short.or_else(|| safetensors::scalar(text)) {
        return Ok(little(scalar));
    }
    npy::parse_dtype(text).or_else(|error| match error {
        // `f8_e4m3`, which safetensors writes in capitals
        DescrError::Unknown(shown) => match safetensors::scalar(&text.to_ascii_uppercase()) {
            Some(scalar) => Ok(little(scalar)),
            None => Err(NameError::Unknown(shown)),
        },
        error => Err(NameError::Descr(error)),
    })
}

/// The names of types, the usual one of each first; types with a length, a unit or an order (`U5`,
/// `M8[s]`, `>i2`) are listed without it.
pub fn dtype_names() -> Vec<String> {
    let mut names: Vec<String> = Scalar::ALL.iter().map(|scalar| scalar.name().into()).collect();
    let numpys = npy::dtype_names().filter(|(_, code)| *code != "O").map(|(name, _)| name);
    let codes = Scalar::ALL.iter().filter_map(|scalar| scalar.type_string());
    let short = SHORT.iter().map(|(name, _)| *name);
    let capitals = Scalar::ALL.iter().filter_map(|scalar| scalar.safetensors_name());
    for name in numpys.chain(short).chain(codes).chain(capitals).map(str::to_owned) {
        let has_two_meanings = AMBIGUOUS.iter().any(|(ambiguous, ..)| *ambiguous == name);
        if !has_two_meanings && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dtypes_have_names_of_all_languages() {
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
            ("F8_E4M3", Scalar::F8E4M3),
            ("F16", Scalar::F16),
            ("I8", Scalar::I8),
            ("U8", Scalar::U8),
            ("U64", Scalar::U64),
            ("F4", Scalar::F4),
            ("BOOL", Scalar::Bool),
            // NumPy's number of bytes, if no number of bits can be meant, or a byte order is given
            ("<i8", Scalar::I64),
            ("|u8", Scalar::U64),
            ("f8", Scalar::F64),
            ("f4", Scalar::F32),
            ("c8", Scalar::C64),
            ("i1", Scalar::I8),
            ("uint8", Scalar::U8),
            ("bfloat16", Scalar::BF16),
            ("half", Scalar::F16),
        ] {
            assert_eq!(parse_dtype(name), Ok(DType::Scalar(scalar, Endian::Little)), "{name}");
        }
        for name in ["f33", "bf32", "", ">bf16", "<i16", "i32i", "Float32"] {
            assert!(matches!(parse_dtype(name), Err(NameError::Unknown(_))), "{name}");
        }
        assert!(matches!(parse_dtype("object"), Err(NameError::Descr(DescrError::Object(_)))));
    }

    #[test]
    fn names_with_two_meanings_are_refused() {
        for (text, ours, theirs) in
            [("i8", "int8", "int64"), ("u8", "uint8", "uint64"), ("f16", "float16", "float128")]
        {
            let Err(NameError::TwoMeanings { name, bits, bytes }) = parse_dtype(text) else {
                panic!("{text}")
            };
            assert_eq!((name, bits, bytes), (text, ours, theirs));
            assert_eq!(parse_dtype(&format!("<{text}")), parse_dtype(bytes));
        }
    }

    #[test]
    fn all_names_are_names() {
        let mut seen = std::collections::HashSet::new();
        for name in dtype_names() {
            assert!(parse_dtype(&name).is_ok() && seen.insert(name.clone()), "{name}");
        }
        assert!(seen.len() > 80);
    }
}
