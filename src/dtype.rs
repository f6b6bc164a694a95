//! Element types: their sizes, byte orders and names.
//!
//! Owns what an element is; the spelling of a type inside a file belongs to the formats. Types
//! that only `.npy` knows (structures, strings, datetimes) are carried as they are written there.

use std::fmt;

/// The type of a tensor's elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DType {
    /// A number type, which more than one format may know.
    Scalar(Scalar, Endian),
    /// A type that only `.npy` has.
    Npy(NpyType),
}

/// A type that only `.npy` has, kept as its header spells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NpyType {
    /// The `descr` entry as a Python literal, in the form that np.save writes.
    pub descr: String,
    /// Bytes an element; may be 0, as for `|S0`.
    pub itemsize: u64,
}

/// The byte order of a scalar of several bytes; `Little` for those of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endian {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
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

impl DType {
    /// Bits an element: a multiple of 8 but for the 4- and 6-bit floats.
    pub fn item_bits(&self) -> u64 {
        let _ = self;
        0
    }

    /// Bytes that change places together when the byte order changes: the item of a real number,
    /// half the item of a complex one, 1 where there is no byte order.
    pub fn swap_width(&self) -> usize {
        1
    }
}

impl fmt::Display for DType {
    /// NumPy's name: `float32`, `>i2`, `bfloat16`, `[('x', '<f4')]`.
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}
