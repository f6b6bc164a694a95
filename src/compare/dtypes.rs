//! Which dtypes are the same.

use crate::dtype::{DType, Scalar};
use crate::format::npy::{self, Field, NpyKind};

/// Whether two dtypes are the same but for their byte order. A float that NumPy lacks is the same
/// as the void in which `.npy` stores it.
pub fn same_dtype(a: &DType, b: &DType) -> bool {
    match (a, b) {
        (DType::Scalar(a, _), DType::Scalar(b, _)) => a == b,
        (DType::Scalar(scalar, _), DType::Npy(_)) => is_stored_as(*scalar, a, b),
        (DType::Npy(_), DType::Scalar(scalar, _)) => is_stored_as(*scalar, b, a),
        (DType::Npy(a), DType::Npy(b)) => {
            a.itemsize == b.itemsize
                && match (NpyKind::of(a), NpyKind::of(b)) {
                    (Some(a), Some(b)) => same_kind(&a, &b),
                    _ => false,
                }
        }
    }
}

/// What the bytes of `dtype` mean, where `other` is the same type and says more.
pub(super) fn with_meaning<'a>(dtype: &'a DType, other: &'a DType) -> &'a DType {
    match (dtype, other) {
        (DType::Npy(_), DType::Scalar(..)) => other,
        _ => dtype,
    }
}

fn is_stored_as(scalar: Scalar, dtype: &DType, void: &DType) -> bool {
    scalar.type_string().is_none() && npy::stored_dtype(dtype).as_ref() == Some(void)
}

fn same_kind(a: &NpyKind, b: &NpyKind) -> bool {
    match (a, b) {
        (NpyKind::Bytes, NpyKind::Bytes) | (NpyKind::Void, NpyKind::Void) => true,
        (NpyKind::Unicode(_), NpyKind::Unicode(_)) => true,
        (NpyKind::LongDouble(_), NpyKind::LongDouble(_)) => true,
        (NpyKind::ComplexLongDouble(_), NpyKind::ComplexLongDouble(_)) => true,
        (NpyKind::Datetime(_, a), NpyKind::Datetime(_, b)) => a == b,
        (NpyKind::Timedelta(_, a), NpyKind::Timedelta(_, b)) => a == b,
        (NpyKind::Structure(a), NpyKind::Structure(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_field(a, b))
        }
        _ => false,
    }
}

fn same_field(a: &Field, b: &Field) -> bool {
    a.name == b.name && a.shape == b.shape && a.offset == b.offset && same_dtype(&a.dtype, &b.dtype)
}
