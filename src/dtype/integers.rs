//! Integers of any width, sign and byte order.

use super::scalar::{Endian, NumberKind};
use super::types::DType;

/// How integers lie in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Integers {
    /// Bytes a number, at most 8.
    pub(crate) width: usize,
    pub(crate) signed: bool,
    pub(crate) endian: Endian,
}

impl Integers {
    /// Those of a dtype; `None` for dtypes that are no integers. Booleans are none.
    pub(crate) fn new(dtype: &DType) -> Option<Integers> {
        let DType::Scalar(scalar, endian) = *dtype else { return None };
        let kind = scalar.kind();
        let is_integer = matches!(kind, NumberKind::Signed | NumberKind::Unsigned);
        let (width, signed) = ((scalar.bits() / 8) as usize, kind == NumberKind::Signed);
        is_integer.then_some(Integers { width, signed, endian })
    }

    /// The same numbers cast to 64-bit signed integers: of uint64 those from 2^63 on are negative.
    pub(crate) fn wrapped(self) -> Integers {
        Integers { signed: self.signed || self.width == 8, ..self }
    }

    /// The smallest and the largest number.
    pub(crate) fn range(self) -> (i128, i128) {
        let count = 1i128 << (8 * self.width);
        if self.signed { (-count / 2, count / 2 - 1) } else { (0, count - 1) }
    }

    /// The exact value of one number.
    #[inline]
    pub(crate) fn value(self, bytes: &[u8]) -> i128 {
        let number = self.endian.bits(&bytes[..self.width.min(bytes.len())]) as u64;
        let spare = 64 - 8 * self.width as u32;
        if self.signed {
            i128::from(((number << spare) as i64) >> spare)
        } else {
            i128::from(number)
        }
    }
}
