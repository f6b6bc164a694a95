//! The types of the format, and its names for them.

use crate::dtype::{DType, Endian, Scalar};

/// A type that the format has, and its name for it.
pub(super) fn known(dtype: &DType) -> Option<(Scalar, &'static str)> {
    let DType::Scalar(scalar, Endian::Little) = *dtype else { return None };
    Some((scalar, scalar.safetensors_name()?))
}

/// The type in which elements of a `dtype` are stored, always little-endian; `None` where the
/// format has none.
pub fn stored_dtype(dtype: &DType) -> Option<DType> {
    let DType::Scalar(scalar, _) = *dtype else { return None };
    scalar.safetensors_name().map(|_| DType::Scalar(scalar, Endian::Little))
}

/// The type of that name, as the format spells it.
pub(in crate::format) fn scalar(name: &str) -> Option<Scalar> {
    Scalar::ALL.into_iter().find(|scalar| scalar.safetensors_name() == Some(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::safetensors::Dtype;

    #[test]
    fn all_dtypes_have_the_sizes_of_the_package() {
        for scalar in Scalar::ALL {
            let Some(name) = scalar.safetensors_name() else { continue };
            let dtype: Dtype = serde_json::from_value(name.into()).unwrap();
            assert_eq!(scalar.bits(), dtype.bitsize() as u64);
            assert_eq!(dtype.to_string(), name);
        }
    }
}
