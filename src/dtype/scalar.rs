//! Number types and byte orders.

use super::types::DType;

/// The byte order of a scalar; `Little` for scalars of one byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Endian {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
}

impl Endian {
    /// The opposite byte order.
    pub const fn swapped(self) -> Endian {
        match self {
            Endian::Little => Endian::Big,
            Endian::Big => Endian::Little,
        }
    }

    /// Read 1, 2, 4, 8 or 16 bytes as an unsigned number; 0 for any other length.
    #[inline]
    pub(crate) fn bits(self, bytes: &[u8]) -> u128 {
        macro_rules! read {
            ($($type:ty),*) => {$(
                if let Ok(bytes) = bytes.try_into() {
                    return u128::from(match self {
                        Endian::Little => <$type>::from_le_bytes(bytes),
                        Endian::Big => <$type>::from_be_bytes(bytes),
                    });
                }
            )*};
        }
        read!(u8, u16, u32, u64, u128);
        0
    }
}

/// Kinds of number types, in the order of NumPy's casts: each can be cast to those after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)] // each is named as what it holds
pub enum NumberKind {
    Bool,
    Unsigned,
    Signed,
    Float,
    Complex,
}

/// The number types of NumPy and of the safetensors format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // each is named as in its format
pub enum Scalar {
    Bool,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F16,
    F32,
    F64,
    C64,
    C128,
    BF16,
    F8E4M3,
    F8E5M2,
    F8E8M0,
    F8E4M3Fnuz,
    F8E5M2Fnuz,
    F6E2M3,
    F6E3M2,
    F4,
}

/// A scalar, its kind, bits per element, and three names: that of NumPy or `ml_dtypes`, kind and
/// size in a type string, that of the safetensors format.
type ScalarRow =
    (Scalar, NumberKind, u64, &'static str, Option<&'static str>, Option<&'static str>);

const TABLE: [ScalarRow; 23] = [
    (Scalar::Bool, NumberKind::Bool, 8, "bool", Some("b1"), Some("BOOL")),
    (Scalar::I8, NumberKind::Signed, 8, "int8", Some("i1"), Some("I8")),
    (Scalar::I16, NumberKind::Signed, 16, "int16", Some("i2"), Some("I16")),
    (Scalar::I32, NumberKind::Signed, 32, "int32", Some("i4"), Some("I32")),
    (Scalar::I64, NumberKind::Signed, 64, "int64", Some("i8"), Some("I64")),
    (Scalar::U8, NumberKind::Unsigned, 8, "uint8", Some("u1"), Some("U8")),
    (Scalar::U16, NumberKind::Unsigned, 16, "uint16", Some("u2"), Some("U16")),
    (Scalar::U32, NumberKind::Unsigned, 32, "uint32", Some("u4"), Some("U32")),
    (Scalar::U64, NumberKind::Unsigned, 64, "uint64", Some("u8"), Some("U64")),
    (Scalar::F16, NumberKind::Float, 16, "float16", Some("f2"), Some("F16")),
    (Scalar::F32, NumberKind::Float, 32, "float32", Some("f4"), Some("F32")),
    (Scalar::F64, NumberKind::Float, 64, "float64", Some("f8"), Some("F64")),
    (Scalar::C64, NumberKind::Complex, 64, "complex64", Some("c8"), Some("C64")),
    (Scalar::C128, NumberKind::Complex, 128, "complex128", Some("c16"), None),
    (Scalar::BF16, NumberKind::Float, 16, "bfloat16", None, Some("BF16")),
    (Scalar::F8E4M3, NumberKind::Float, 8, "float8_e4m3fn", None, Some("F8_E4M3")),
    (Scalar::F8E5M2, NumberKind::Float, 8, "float8_e5m2", None, Some("F8_E5M2")),
    (Scalar::F8E8M0, NumberKind::Float, 8, "float8_e8m0fnu", None, Some("F8_E8M0")),
    (Scalar::F8E4M3Fnuz, NumberKind::Float, 8, "float8_e4m3fnuz", None, Some("F8_E4M3FNUZ")),
    (Scalar::F8E5M2Fnuz, NumberKind::Float, 8, "float8_e5m2fnuz", None, Some("F8_E5M2FNUZ")),
    (Scalar::F6E2M3, NumberKind::Float, 6, "float6_e2m3fn", None, Some("F6_E2M3")),
    (Scalar::F6E3M2, NumberKind::Float, 6, "float6_e3m2fn", None, Some("F6_E3M2")),
    (Scalar::F4, NumberKind::Float, 4, "float4_e2m1fn", None, Some("F4")),
];

impl Scalar {
    /// All scalars, in the order of declaration.
    pub const ALL: [Scalar; TABLE.len()] = {
        let mut all = [Scalar::Bool; TABLE.len()];
        let mut at = 0;
        while at < all.len() {
            all[at] = TABLE[at].0;
            at += 1;
        }
        all
    };

    pub(crate) const fn kind(self) -> NumberKind {
        TABLE[self as usize].1
    }

    /// Bits per element.
    pub const fn bits(self) -> u64 {
        TABLE[self as usize].2
    }

    /// The name in NumPy, or in the `ml_dtypes` package for types that NumPy lacks.
    pub const fn name(self) -> &'static str {
        TABLE[self as usize].3
    }

    /// Kind and size as in a type string of NumPy (`f4`); `None` for types that NumPy lacks.
    pub const fn type_string(self) -> Option<&'static str> {
        TABLE[self as usize].4
    }

    pub(crate) const fn is_numpys(self) -> bool {
        self.type_string().is_some()
    }

    /// `F32`, `F8_E4M3`; `None` for types that the safetensors format lacks.
    pub(crate) const fn safetensors_name(self) -> Option<&'static str> {
        TABLE[self as usize].5
    }

    /// The type of the real and the imaginary part; `None` for types that are not complex.
    pub(crate) const fn part(self) -> Option<Scalar> {
        match self {
            Scalar::C64 => Some(Scalar::F32),
            Scalar::C128 => Some(Scalar::F64),
            _ => None,
        }
    }
}

/// How integers are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Integers {
    pub(crate) width: usize,
    pub(crate) signed: bool,
    pub(crate) endian: Endian,
}

impl Integers {
    /// `None` for dtypes that are no integers, booleans included.
    pub(crate) fn new(dtype: &DType) -> Option<Integers> {
        let DType::Scalar(scalar, endian) = *dtype else { return None };
        let kind = scalar.kind();
        let is_integer = matches!(kind, NumberKind::Signed | NumberKind::Unsigned);
        let width = (scalar.bits() / 8) as usize;
        let signed = kind == NumberKind::Signed;
        is_integer.then_some(Integers { width, signed, endian })
    }

    /// The numbers as 64-bit signed integers: uint64 from 2^63 on becomes negative.
    pub(crate) fn wrapped(self) -> Integers {
        Integers { signed: self.signed || self.width == 8, ..self }
    }

    pub(crate) fn range(self) -> (i128, i128) {
        let count = 1i128 << (8 * self.width);
        if self.signed { (-count / 2, count / 2 - 1) } else { (0, count - 1) }
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_holds_every_scalar_once() {
        for (position, scalar) in Scalar::ALL.into_iter().enumerate() {
            assert_eq!(scalar as usize, position);
        }
        assert_eq!(Scalar::F4 as usize + 1, Scalar::ALL.len());
    }
}
