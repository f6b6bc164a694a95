//! Element types: their sizes, byte orders and names.
//!
//! The names of types inside files belong to the formats. Types that only `.npy` has (structures,
//! strings, datetimes) are kept as its header writes them.
//!
//! ```
//! use tslice::dtype::{DType, Endian, Scalar};
//! let dtype = DType::Scalar(Scalar::C64, Endian::Big);
//! assert_eq!((dtype.item_bits(), dtype.swap_width()), (64, 4));
//! assert_eq!(dtype.to_string(), ">c8");
//! ```

use std::fmt;

/// The type of a tensor's elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DType {
    /// A number type.
    Scalar(Scalar, Endian),
    /// A type that only `.npy` has.
    Npy(NpyType),
}

/// A type that only `.npy` has, as its header writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NpyType {
    /// The `descr` entry as a Python literal, in the form that np.save writes.
    pub descr: String,
    /// Bytes an element; 0 for `|S0` and the like.
    pub itemsize: u64,
}

impl NpyType {
    /// The width in bytes of the units to reverse when converting to `other`, if that is the same
    /// type in the other byte order: a datetime, a UCS-4 string, a long double. `None` for any
    /// other pair of types.
    pub fn swap_width_to(&self, other: &NpyType) -> Option<usize> {
        let (ours, theirs) = (self.descr.trim_matches('\''), other.descr.trim_matches('\''));
        let swapped = match ours.split_at_checked(1)? {
            ("<", kind) => theirs.strip_prefix('>')? == kind,
            (">", kind) => theirs.strip_prefix('<')? == kind,
            _ => false,
        };
        let width = match ours.as_bytes().get(1).filter(|_| swapped)? {
            b'M' | b'm' => 8,
            b'U' => 4,
            b'f' => self.itemsize,
            b'c' => self.itemsize / 2,
            _ => return None,
        };
        usize::try_from(width).ok()
    }
}

/// The byte order of a scalar; `Little` for scalars of one byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endian {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
}

impl Endian {
    /// At most 16 bytes as one unsigned number.
    pub(crate) fn bits(self, bytes: &[u8]) -> u128 {
        let join = |bits: u128, &byte: &u8| bits << 8 | u128::from(byte);
        match self {
            Endian::Little => bytes.iter().rev().fold(0, join),
            Endian::Big => bytes.iter().fold(0, join),
        }
    }
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

    /// Whether its elements have a real and an imaginary part.
    pub const fn is_complex(self) -> bool {
        matches!(self, Scalar::C64 | Scalar::C128)
    }
}

impl DType {
    /// Bits an element: a multiple of 8 except for 4- and 6-bit floats; 0 for `|S0` and the like.
    pub fn item_bits(&self) -> u64 {
        match self {
            DType::Scalar(scalar, _) => scalar.bits(),
            DType::Npy(npy) => npy.itemsize.saturating_mul(8),
        }
    }

    /// The width in bytes of the units to reverse when the byte order changes: the whole element of
    /// a real number, half of a complex one, 1 for types of one byte and for types that only `.npy`
    /// has.
    pub fn swap_width(&self) -> usize {
        match self {
            DType::Scalar(scalar, _) => {
                let parts = if scalar.is_complex() { 2 } else { 1 };
                (scalar.bits() / 8 / parts).max(1) as usize
            }
            DType::Npy(_) => 1,
        }
    }
}

impl fmt::Display for DType {
    /// NumPy's name: `float32`, `>i2`, `bfloat16`, `|S5`, `[('x', '<f4')]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DType::Scalar(scalar, Endian::Big) if self.swap_width() > 1 => {
                write!(f, ">{}", scalar.type_string().unwrap_or(scalar.name()))
            }
            DType::Scalar(scalar, _) => f.write_str(scalar.name()),
            DType::Npy(NpyType { descr, .. }) => {
                let bare = descr.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
                f.write_str(bare.unwrap_or(descr))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_print_as_numpy_names_them() {
        let scalar = |scalar, endian| DType::Scalar(scalar, endian).to_string();
        assert_eq!(scalar(Scalar::F32, Endian::Little), "float32");
        assert_eq!(scalar(Scalar::F32, Endian::Big), ">f4");
        assert_eq!(scalar(Scalar::C128, Endian::Big), ">c16");
        assert_eq!(scalar(Scalar::U8, Endian::Big), "uint8");
        assert_eq!(scalar(Scalar::BF16, Endian::Big), ">bfloat16");
        let npy =
            |descr: &str| DType::Npy(NpyType { descr: descr.into(), itemsize: 5 }).to_string();
        assert_eq!(npy("'|S5'"), "|S5");
        assert_eq!(npy("[('a', '|S5')]"), "[('a', '|S5')]");
    }

    #[test]
    fn only_halves_of_complex_numbers_swap() {
        let width = |scalar| DType::Scalar(scalar, Endian::Big).swap_width();
        assert_eq!(width(Scalar::C128), 8);
        assert_eq!(width(Scalar::F64), 8);
        assert_eq!(width(Scalar::BF16), 2);
        assert_eq!(width(Scalar::F4), 1);
    }

    #[test]
    fn types_of_npy_alone_swap_as_a_whole_or_not_at_all() {
        let npy = |descr: &str, itemsize| NpyType { descr: descr.into(), itemsize };
        let width =
            |ours, theirs, itemsize| npy(ours, itemsize).swap_width_to(&npy(theirs, itemsize));
        assert_eq!(width("'>M8[25s]'", "'<M8[25s]'", 8), Some(8));
        assert_eq!(width("'<U3'", "'>U3'", 12), Some(4));
        assert_eq!(width("'>c32'", "'<c32'", 32), Some(16));
        assert_eq!(width("'>M8[s]'", "'<M8[ms]'", 8), None);
        assert_eq!(width("'>V2'", "'<V2'", 2), None);
        assert_eq!(width("[('x', '<f4')]", "[('x', '>f4')]", 4), None);
    }

    #[test]
    fn all_holds_every_scalar_once() {
        for (position, scalar) in Scalar::ALL.into_iter().enumerate() {
            assert_eq!(scalar as usize, position);
        }
        assert_eq!(Scalar::F4 as usize + 1, Scalar::ALL.len());
    }
}
