//! The types of the format, and its names for them.

use ::safetensors::Dtype;
use serde::Deserialize;
use serde::de::value::StrDeserializer;

use crate::dtype::{DType, Endian, Scalar};

/// The name that the format has for a type: `F32`, `F8_E4M3`; `None` where it lacks the type or
/// its byte order.
pub fn dtype_name(dtype: &DType) -> Option<String> {
    known(dtype).map(|(_, dtype)| dtype.to_string())
}

/// A type that the format has, and the package's type for it.
pub(super) fn known(dtype: &DType) -> Option<(Scalar, Dtype)> {
    let DType::Scalar(scalar, Endian::Little) = dtype else { return None };
    DTYPES.iter().copied().find(|(known, _)| known == scalar)
}

/// The type in which elements of a `dtype` are stored, always little-endian; `None` where the
/// format has none.
pub fn stored_dtype(dtype: &DType) -> Option<DType> {
    match dtype {
        DType::Scalar(scalar, _) => {
            let stored = DType::Scalar(*scalar, Endian::Little);
            known(&stored).map(|_| stored)
        }
        DType::Npy(_) => None,
    }
}

/// The type of that name, as the format spells it.
pub(in crate::format) fn scalar(name: &str) -> Option<Scalar> {
    parse_dtype(name).map(|(scalar, _)| scalar)
}

/// The names that the format has for types.
pub(in crate::format) fn dtype_names() -> impl Iterator<Item = String> {
    DTYPES.iter().map(|(_, dtype)| dtype.to_string())
}

/// The same, and the package's type.
pub(super) fn parse_dtype(name: &str) -> Option<(Scalar, Dtype)> {
    let name = StrDeserializer::<serde::de::value::Error>::new(name);
    let found = Dtype::deserialize(name).ok()?;
    DTYPES.iter().copied().find(|(_, dtype)| *dtype == found)
}

/// The types of the format.
pub(super) const DTYPES: [(Scalar, Dtype); 22] = [
    (Scalar::Bool, Dtype::BOOL),
    (Scalar::I8, Dtype::I8),
    (Scalar::I16, Dtype::I16),
    (Scalar::I32, Dtype::I32),
    (Scalar::I64, Dtype::I64),
    (Scalar::U8, Dtype::U8),
    (Scalar::U16, Dtype::U16),
    (Scalar::U32, Dtype::U32),
    (Scalar::U64, Dtype::U64),
    (Scalar::F16, Dtype::F16),
    (Scalar::F32, Dtype::F32),
    (Scalar::F64, Dtype::F64),
    (Scalar::C64, Dtype::C64),
    (Scalar::BF16, Dtype::BF16),
    (Scalar::F8E4M3, Dtype::F8_E4M3),
    (Scalar::F8E5M2, Dtype::F8_E5M2),
    (Scalar::F8E8M0, Dtype::F8_E8M0),
    (Scalar::F8E4M3Fnuz, Dtype::F8_E4M3FNUZ),
    (Scalar::F8E5M2Fnuz, Dtype::F8_E5M2FNUZ),
    (Scalar::F6E2M3, Dtype::F6_E2M3),
    (Scalar::F6E3M2, Dtype::F6_E3M2),
    (Scalar::F4, Dtype::F4),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_dtypes_have_the_sizes_of_the_package() {
        for (scalar, dtype) in DTYPES {
            assert_eq!(scalar.bits(), dtype.bitsize() as u64);
            assert_eq!(parse_dtype(&dtype.to_string()), Some((scalar, dtype)));
        }
    }
}
