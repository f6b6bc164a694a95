//! Element types: sizes, byte orders, names, and the fields of structures.
//!
//! A dtype is parsed once, where a header or a flag is read; everything else uses the value.
//! [`walk()`] visits the parts of an element, to print, write or compare them. One table lists the
//! scalars with the names that NumPy and the safetensors format have for them.
//!
//! ```
//! use tslice::dtype::{DType, Endian, Scalar};
//! let dtype = DType::Scalar(Scalar::C64, Endian::Big);
//! assert_eq!((dtype.item_bits(), dtype.swap_width()), (64, 4));
//! assert_eq!(dtype.to_string(), ">c8");
//! ```

use std::sync::Arc;

mod literal;
mod walk;

pub(crate) use literal::{CodePoints, write_str};
pub use literal::{is_printable, literal};
pub(crate) use walk::{Shortened, walk_shortened};
pub use walk::{Step, walk};

/// The type of a tensor's elements.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DType {
    Scalar(Scalar, Endian),
    /// A type that only `.npy` has.
    Npy(NpyType),
    /// Elements stored in blocks, such as quantized ones.
    Blocks(&'static BlockType),
}

/// A type that only `.npy` has; lengths are those of one element.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum NpyType {
    /// `S`: a string of so many bytes, padded with zeros.
    Bytes(u64),
    /// `U`: a string of so many code points of 4 bytes, padded with zeros.
    Unicode(u64, Endian),
    /// `V`: so many bytes without a meaning. The byte order is kept where the header has one: `<V2` tells
    /// files of bfloat16 from other items of two bytes.
    Void(u64, Option<Endian>),
    /// An `i64` that counts units; the lowest value is NaT.
    Time(TimeKind, Endian, TimeUnit),
    /// `f16`: the x87 float of 80 bits, in 16 bytes.
    LongDouble(Endian),
    /// `c32`: two x87 floats of 16 bytes each.
    ComplexLongDouble(Endian),
    /// Named fields at fixed offsets.
    Structure(Arc<Structure>),
}

/// The fields of a structured type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Structure {
    /// The fields by ascending offset; bytes between them are padding.
    pub fields: Vec<Field>,
    /// Bytes per element, padding included.
    pub itemsize: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Field {
    /// The name; `f0`, `f1`, ... where the header gives none.
    pub name: String,
    /// Whether the header names the field.
    pub is_named: bool,
    /// The title, where the field has one.
    pub title: Option<String>,
    /// The type of one element of the field.
    pub dtype: DType,
    /// The shape of the subarray, nested ones joined; empty for a single element.
    pub shape: Vec<u64>,
    /// How many axes of `shape` each nesting level has, the outermost first: one number for a plain
    /// subarray, none for a single element.
    pub nesting: Vec<usize>,
    /// The offset in the structure, in bytes.
    pub offset: u64,
}

impl Field {
    /// Whether `name` is the name or the title of the field.
    pub(crate) fn has_name(&self, name: &str) -> bool {
        self.name == name || self.title.as_deref() == Some(name)
    }

    pub(crate) fn count(&self) -> u64 {
        self.shape.iter().fold(1, |count, &len| count.saturating_mul(len))
    }

    pub(crate) fn itemsize(&self) -> u64 {
        self.dtype.item_bits() / 8
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.itemsize().saturating_mul(self.count())
    }
}

impl NpyType {
    /// Bytes per element; 0 for `|S0` and the like.
    pub fn itemsize(&self) -> u64 {
        match self {
            NpyType::Bytes(len) | NpyType::Void(len, _) => *len,
            NpyType::Unicode(len, _) => len.saturating_mul(4),
            NpyType::Time(..) => 8,
            NpyType::LongDouble(_) => 16,
            NpyType::ComplexLongDouble(_) => 32,
            NpyType::Structure(structure) => structure.itemsize,
        }
    }

    /// The number of bytes to reverse together in a conversion to `other`, if the types differ only in byte
    /// order; `None` for any other pair of types.
    pub(crate) fn swap_width_to(&self, other: &NpyType) -> Option<usize> {
        let (swapped, width) = match *self {
            NpyType::Unicode(len, endian) => (NpyType::Unicode(len, endian.swapped()), 4),
            NpyType::Time(kind, endian, unit) => (NpyType::Time(kind, endian.swapped(), unit), 8),
            NpyType::LongDouble(endian) => (NpyType::LongDouble(endian.swapped()), 16),
            NpyType::ComplexLongDouble(endian) => {
                (NpyType::ComplexLongDouble(endian.swapped()), 16)
            }
            NpyType::Bytes(_) | NpyType::Void(..) | NpyType::Structure(_) => return None,
        };
        (swapped == *other).then_some(width)
    }
}

impl DType {
    /// Bits per element, or per block: a multiple of 8 except for 4- and 6-bit floats; can be 0
    /// (`|S0`).
    pub fn item_bits(&self) -> u64 {
        match self {
            DType::Scalar(scalar, _) => scalar.bits(),
            DType::Npy(npy) => npy.itemsize().saturating_mul(8),
            DType::Blocks(block) => block.bytes * 8,
        }
    }

    /// The number of bytes to reverse together when the byte order changes: the whole element of a real
    /// number, half of a complex one, 1 for types of one byte and for types that only `.npy` has.
    pub fn swap_width(&self) -> usize {
        match self {
            DType::Scalar(scalar, _) => {
                (scalar.part().unwrap_or(*scalar).bits() / 8).max(1) as usize
            }
            DType::Npy(_) | DType::Blocks(_) => 1,
        }
    }

    /// The number of bytes to reverse together in a conversion to `other`, if the types differ at most in byte
    /// order; `None` for any other pair of types.
    pub(crate) fn swap_width_to(&self, other: &DType) -> Option<usize> {
        match (self, other) {
            (DType::Scalar(ours, from), DType::Scalar(theirs, to)) => {
                (ours == theirs).then(|| if from == to { 1 } else { self.swap_width() })
            }
            (DType::Npy(ours), DType::Npy(theirs)) if ours != theirs => ours.swap_width_to(theirs),
            _ => (self == other).then_some(1),
        }
    }

    /// The name of the type without its byte order.
    pub fn type_name(&self) -> String {
        match self {
            DType::Scalar(scalar, _) => scalar.name().to_owned(),
            DType::Npy(_) | DType::Blocks(_) => self.to_string(),
        }
    }

    /// Whether two dtypes are equal except for their byte order.
    pub fn is_type_of(&self, other: &DType) -> bool {
        match (self, other) {
            (DType::Scalar(ours, _), DType::Scalar(theirs, _)) => ours == theirs,
            (DType::Npy(NpyType::Void(ours, _)), DType::Npy(NpyType::Void(theirs, _))) => {
                ours == theirs
            }
            (DType::Npy(ours), DType::Npy(theirs)) => {
                ours == theirs || ours.swap_width_to(theirs).is_some()
            }
            (DType::Blocks(ours), DType::Blocks(theirs)) => ours == theirs,
            _ => false,
        }
    }

    /// The block type, where elements are stored in blocks.
    pub fn blocks(&self) -> Option<&'static BlockType> {
        match self {
            DType::Blocks(block) => Some(block),
            _ => None,
        }
    }

    /// The structure, where the dtype is one.
    pub fn structure(&self) -> Option<&Structure> {
        match self {
            DType::Npy(NpyType::Structure(structure)) => Some(structure),
            _ => None,
        }
    }

    /// Whether the elements are bytes without a known meaning.
    pub fn is_void(&self) -> bool {
        matches!(self, DType::Npy(NpyType::Void(..)))
    }
}

/// The type and byte order in which NumPy stores elements. Floats that NumPy lacks become little-endian void
/// types, as when `ml_dtypes` arrays are saved; blocks become void types too; other types stay. `None` for
/// floats of less than a byte.
pub fn stored_by_numpy(dtype: &DType) -> Option<DType> {
    let void = |itemsize, endian| Some(DType::Npy(NpyType::Void(itemsize, endian)));
    match dtype {
        DType::Scalar(Scalar::BF16, _) => void(2, Some(Endian::Little)),
        DType::Scalar(scalar, _) => match (scalar.type_string(), scalar.bits()) {
            (Some(_), _) => Some(dtype.clone()),
            (None, 8) => void(1, None),
            (None, _) => None,
        },
        DType::Npy(_) => Some(dtype.clone()),
        DType::Blocks(block) => void(block.bytes, None),
    }
}

/// Elements stored in blocks: a number of neighbours along the last axis is encoded together, so that no
/// element has bytes of its own. The encoding is not known here.
///
/// In a tensor of blocks, an item is a block, and the last axis counts blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockType {
    /// The block's name in its format, such as `Q4_K`.
    pub name: &'static str,
    /// Elements per block; at least 1.
    pub elements: u64,
    /// Bytes per block.
    pub bytes: u64,
}

/// The units of time: NumPy's names, and the words that NumPy prints. First the generic unit, then from the
/// longest to the shortest.
const UNITS: [(&str, &str); 14] = [
    ("", "generic time units"),
    ("Y", "years"),
    ("M", "months"),
    ("W", "weeks"),
    ("D", "days"),
    ("h", "hours"),
    ("m", "minutes"),
    ("s", "seconds"),
    ("ms", "milliseconds"),
    ("us", "microseconds"),
    ("ns", "nanoseconds"),
    ("ps", "picoseconds"),
    ("fs", "femtoseconds"),
    ("as", "attoseconds"),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimeKind {
    /// `M8`: a point in time, counted from 1970 on.
    Datetime,
    /// `m8`: a length of time.
    Timedelta,
}

/// A unit of time: `[25s]` is a count of 25 and the unit `s`. It is small (8 bytes), since an output keeps a
/// conversion for each of its tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TimeUnit {
    /// The number of named units in one step.
    pub count: i32,
    number: u8,
}

impl TimeUnit {
    pub(crate) const GENERIC: TimeUnit = TimeUnit { count: 1, number: 0 };

    /// Make a unit from NumPy's name: `Y` to `as`, or empty for the generic one.
    pub fn new(count: i32, name: &str) -> Option<TimeUnit> {
        let number = UNITS.iter().position(|(known, _)| *known == name)?;
        Some(TimeUnit { count, number: number as u8 })
    }

    /// NumPy's name; empty for the generic unit.
    pub fn name(self) -> &'static str {
        UNITS[usize::from(self.number)].0
    }

    /// The word that NumPy prints behind a count, such as `seconds`.
    pub(crate) fn plural(self) -> &'static str {
        UNITS[usize::from(self.number)].1
    }

    /// The unit's position in the order from years (0) to the shortest; `None` for the generic unit.
    pub(crate) fn rank(self) -> Option<usize> {
        usize::from(self.number).checked_sub(1)
    }
}

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

/// Kinds of numbers, in the order of NumPy's casts: each can be cast to the later ones.
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
#[non_exhaustive]
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

/// A row of the scalar table: the scalar, its kind, its bits per element, its name in NumPy or `ml_dtypes`,
/// its kind and size in a type string, its name in the safetensors format.
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

    /// The kind and size in a type string of NumPy (`f4`); `None` for types that NumPy lacks.
    pub const fn type_string(self) -> Option<&'static str> {
        TABLE[self as usize].4
    }

    pub(crate) const fn is_numpys(self) -> bool {
        self.type_string().is_some()
    }

    /// The name in the safetensors format (`F32`, `F8_E4M3`); `None` for types that the format lacks.
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

/// How the integers of a dtype are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Integers {
    pub(crate) width: usize,
    pub(crate) signed: bool,
    pub(crate) endian: Endian,
}

impl Integers {
    /// The integers of a dtype; `None` for dtypes that are not integers, and for booleans.
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
    fn only_halves_of_complex_numbers_swap() {
        let width = |scalar| DType::Scalar(scalar, Endian::Big).swap_width();
        assert_eq!(width(Scalar::C128), 8);
        assert_eq!(width(Scalar::F64), 8);
        assert_eq!(width(Scalar::BF16), 2);
        assert_eq!(width(Scalar::F4), 1);
    }

    #[test]
    fn types_of_npy_alone_swap_as_a_whole_or_not_at_all() {
        use Endian::{Big, Little};
        let unit = |count, name| TimeUnit::new(count, name).unwrap();
        let time = |endian, unit| NpyType::Time(TimeKind::Datetime, endian, unit);
        let seconds = unit(25, "s");
        assert_eq!(time(Big, seconds).swap_width_to(&time(Little, seconds)), Some(8));
        assert_eq!(time(Big, seconds).swap_width_to(&time(Little, unit(25, "ms"))), None);
        let text = NpyType::Unicode;
        assert_eq!(text(3, Little).swap_width_to(&text(3, Big)), Some(4));
        assert_eq!(text(3, Little).swap_width_to(&text(4, Big)), None);
        let complex = NpyType::ComplexLongDouble;
        assert_eq!(complex(Big).swap_width_to(&complex(Little)), Some(16));
        let void = |endian| NpyType::Void(2, Some(endian));
        assert_eq!(void(Big).swap_width_to(&void(Little)), None);
    }

    #[test]
    fn all_holds_every_scalar_once() {
        for (position, scalar) in Scalar::ALL.into_iter().enumerate() {
            assert_eq!(scalar as usize, position);
        }
        assert_eq!(Scalar::F4 as usize + 1, Scalar::ALL.len());
    }
}
