//! Which dtypes are the same.

use crate::dtype::{DType, Field, NpyType};
use crate::format::npy;

/// Whether two dtypes are the same but for their byte order. What NumPy lacks is the same as the void in
/// which `.npy` stores it.
pub fn same_dtype(a: &DType, b: &DType) -> bool {
    match (a, b) {
        (DType::Scalar(a, _), DType::Scalar(b, _)) => a == b,
        (DType::Scalar(..) | DType::Blocks(_), DType::Npy(_)) => is_stored_as(a, b),
        (DType::Npy(_), DType::Scalar(..) | DType::Blocks(_)) => is_stored_as(b, a),
        (DType::Blocks(a), DType::Blocks(b)) => a == b,
        (DType::Scalar(..), DType::Blocks(_)) | (DType::Blocks(_), DType::Scalar(..)) => false,
        (DType::Npy(a), DType::Npy(b)) => same_type(a, b),
    }
}

/// Whether elements of two dtypes have exact values that can be compared: numbers of any kinds, whole
/// bytes each.
pub(super) fn are_numbers(dtypes: [&DType; 2]) -> bool {
    let is_number = |dtype: &DType| match dtype {
        DType::Scalar(scalar, _) => scalar.bits().is_multiple_of(8),
        DType::Npy(dtype) => {
            matches!(dtype, NpyType::LongDouble(_) | NpyType::ComplexLongDouble(_))
        }
        DType::Blocks(_) => false,
    };
    dtypes.into_iter().all(is_number)
}

/// What the bytes of `dtype` mean, where `other` is the same type and says more.
pub(super) fn with_meaning<'a>(dtype: &'a DType, other: &'a DType) -> &'a DType {
    match (dtype, other) {
        (DType::Npy(_), DType::Scalar(..) | DType::Blocks(_)) => other,
        _ => dtype,
    }
}

fn is_stored_as(dtype: &DType, void: &DType) -> bool {
    dtype != void && void.is_void() && npy::stored_dtype(dtype).as_ref() == Some(void)
}

fn same_type(a: &NpyType, b: &NpyType) -> bool {
    match (a, b) {
        (NpyType::Void(a, _), NpyType::Void(b, _)) => a == b,
        (NpyType::Structure(a), NpyType::Structure(b)) => {
            a.itemsize == b.itemsize
                && a.fields.len() == b.fields.len()
                && a.fields.iter().zip(&b.fields).all(|(a, b)| same_field(a, b))
        }
        (a, b) => a == b || a.swap_width_to(b).is_some(),
    }
}

fn same_field(a: &Field, b: &Field) -> bool {
    a.name == b.name
        && (&a.shape, &a.nesting, a.offset) == (&b.shape, &b.nesting, b.offset)
        && same_dtype(&a.dtype, &b.dtype)
}
