//! What the bytes of an item mean that is no structure.

use super::float::FloatFormat;
use crate::dtype::{DType, Endian, Integers, NpyType, NumberKind, TimeKind, TimeUnit};

/// How an item is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// A byte that is 0 or not.
    Bool,
    Integer(Integers),
    Float(FloatFormat, Endian),
    /// Two floats of half the bytes each.
    Complex(FloatFormat, Endian),
    /// So many units, [`NAT`](super::NAT) for none.
    Time(TimeKind, Endian, TimeUnit),
    /// A string of bytes, padded with zeros.
    Bytes,
    /// A string of code points, padded with zeros.
    Unicode(Endian),
    /// Bytes without a meaning.
    Void,
}

impl Meaning {
    /// The meaning of items of a dtype; `None` for structures, and for floats of which several share
    /// a byte.
    #[inline]
    pub(crate) fn of(dtype: &DType) -> Option<Meaning> {
        Some(match *dtype {
            DType::Scalar(scalar, endian) => match scalar.kind() {
                NumberKind::Bool => Meaning::Bool,
                NumberKind::Signed | NumberKind::Unsigned => {
                    Meaning::Integer(Integers::new(dtype)?)
                }
                NumberKind::Float => Meaning::Float(FloatFormat::of(scalar)?, endian),
                NumberKind::Complex => Meaning::Complex(FloatFormat::of(scalar.part()?)?, endian),
            },
            DType::Npy(NpyType::LongDouble(endian)) => {
                Meaning::Float(FloatFormat::EXTENDED, endian)
            }
            DType::Npy(NpyType::ComplexLongDouble(endian)) => {
                Meaning::Complex(FloatFormat::EXTENDED, endian)
            }
            DType::Npy(NpyType::Time(kind, endian, unit)) => Meaning::Time(kind, endian, unit),
            DType::Npy(NpyType::Bytes(_)) => Meaning::Bytes,
            DType::Npy(NpyType::Unicode(_, endian)) => Meaning::Unicode(endian),
            DType::Npy(NpyType::Void(..)) | DType::Blocks(_) => Meaning::Void,
            DType::Npy(NpyType::Structure(_)) => return None,
        })
    }
}
