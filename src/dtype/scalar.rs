//! Number types and byte orders.

/// The byte order of a scalar; `Little` for scalars of one byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Endian {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
}

impl Endian {
    /// The other one.
    pub const fn swapped(self) -> Endian {
        match self {
            Endian::Little => Endian::Big,
            Endian::Big => Endian::Little,
        }
    }

    /// The unsigned number that 1, 2, 4, 8 or 16 bytes are.
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

impl Scalar {
    /// All scalars, in the order of declaration.
    pub const ALL: [Scalar; 23] = [
        Scalar::Bool,
        Scalar::I8,
        Scalar::I16,
        Scalar::I32,
        Scalar::I64,
        Scalar::U8,
        Scalar::U16,
        Scalar::U32,
        Scalar::U64,
        Scalar::F16,
        Scalar::F32,
        Scalar::F64,
        Scalar::C64,
        Scalar::C128,
        Scalar::BF16,
        Scalar::F8E4M3,
        Scalar::F8E5M2,
        Scalar::F8E8M0,
        Scalar::F8E4M3Fnuz,
        Scalar::F8E5M2Fnuz,
        Scalar::F6E2M3,
        Scalar::F6E3M2,
        Scalar::F4,
    ];

    /// Bits an element.
    pub const fn bits(self) -> u64 {
        match self {
            Scalar::F4 => 4,
            Scalar::F6E2M3 | Scalar::F6E3M2 => 6,
            Scalar::Bool | Scalar::I8 | Scalar::U8 => 8,
            Scalar::F8E4M3 | Scalar::F8E5M2 | Scalar::F8E8M0 => 8,
            Scalar::F8E4M3Fnuz | Scalar::F8E5M2Fnuz => 8,
            Scalar::I16 | Scalar::U16 | Scalar::F16 | Scalar::BF16 => 16,
            Scalar::I32 | Scalar::U32 | Scalar::F32 => 32,
            Scalar::I64 | Scalar::U64 | Scalar::F64 | Scalar::C64 => 64,
            Scalar::C128 => 128,
        }
    }

    /// NumPy's name, or that of the `ml_dtypes` package for types that NumPy lacks.
    pub const fn name(self) -> &'static str {
        match self {
            Scalar::Bool => "bool",
            Scalar::I8 => "int8",
            Scalar::I16 => "int16",
            Scalar::I32 => "int32",
            Scalar::I64 => "int64",
            Scalar::U8 => "uint8",
            Scalar::U16 => "uint16",
            Scalar::U32 => "uint32",
            Scalar::U64 => "uint64",
            Scalar::F16 => "float16",
            Scalar::F32 => "float32",
            Scalar::F64 => "float64",
            Scalar::C64 => "complex64",
            Scalar::C128 => "complex128",
            Scalar::BF16 => "bfloat16",
            Scalar::F8E4M3 => "float8_e4m3fn",
            Scalar::F8E5M2 => "float8_e5m2",
            Scalar::F8E8M0 => "float8_e8m0fnu",
            Scalar::F8E4M3Fnuz => "float8_e4m3fnuz",
            Scalar::F8E5M2Fnuz => "float8_e5m2fnuz",
            Scalar::F6E2M3 => "float6_e2m3fn",
            Scalar::F6E3M2 => "float6_e3m2fn",
            Scalar::F4 => "float4_e2m1fn",
        }
    }

    /// Kind and size as in an array-interface type string (`f4`); `None` for types that NumPy
    /// lacks.
    pub const fn type_string(self) -> Option<&'static str> {
        Some(match self {
            Scalar::Bool => "b1",
            Scalar::I8 => "i1",
            Scalar::I16 => "i2",
            Scalar::I32 => "i4",
            Scalar::I64 => "i8",
            Scalar::U8 => "u1",
            Scalar::U16 => "u2",
            Scalar::U32 => "u4",
            Scalar::U64 => "u8",
            Scalar::F16 => "f2",
            Scalar::F32 => "f4",
            Scalar::F64 => "f8",
            Scalar::C64 => "c8",
            Scalar::C128 => "c16",
            _ => return None,
        })
    }

    /// The type of the real and the imaginary part of a complex number.
    pub(crate) const fn part(self) -> Option<Scalar> {
        match self {
            Scalar::C64 => Some(Scalar::F32),
            Scalar::C128 => Some(Scalar::F64),
            _ => None,
        }
    }

    /// The kind of the numbers.
    pub(crate) const fn kind(self) -> NumberKind {
        match self {
            Scalar::Bool => NumberKind::Bool,
            Scalar::U8 | Scalar::U16 | Scalar::U32 | Scalar::U64 => NumberKind::Unsigned,
            Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64 => NumberKind::Signed,
            Scalar::C64 | Scalar::C128 => NumberKind::Complex,
            _ => NumberKind::Float,
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
