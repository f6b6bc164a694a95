//! The type of an element: a number, or what only `.npy` has, structures with their fields among it.

use std::sync::Arc;

use super::literal::write_str;
use super::scalar::{Endian, Scalar};

/// The type of a tensor's elements.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum DType {
    /// A number type.
    Scalar(Scalar, Endian),
    /// A type that only `.npy` has.
    Npy(NpyType),
    /// Blocks of elements.
    Blocks(&'static BlockType),
}

/// A type that only `.npy` has.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum NpyType {
    /// `S`: so many bytes, padded with zeros.
    Bytes(u64),
    /// `U`: so many code points of 4 bytes, padded with zeros.
    Unicode(u64, Endian),
    /// `V`: so many bytes without a meaning. `<V2` is how files of bfloat16 are told from other
    /// items of two bytes, so that a byte order is kept where the header has one.
    Void(u64, Option<Endian>),
    /// An `i64` of so many units; the least one is NaT.
    Time(TimeKind, Endian, TimeUnit),
    /// `f16`: the x87 float of 80 bits, in 16 bytes.
    LongDouble(Endian),
    /// `c32`: two of them.
    ComplexLongDouble(Endian),
    /// Fields at their places.
    Structure(Arc<Structure>),
}

/// What a structure consists of.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Structure {
    /// The fields in their order, which is that of their places; bytes between them are padding.
    pub fields: Vec<Field>,
    /// Bytes of all of it.
    pub itemsize: u64,
}

/// A field of a structure.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Field {
    /// The name of the field; `f0`, `f1`, ... where the header has none.
    pub name: String,
    /// Whether the header has a name for it.
    pub is_named: bool,
    /// The title of the field as a Python literal, where it has one.
    pub title: Option<String>,
    /// The type of an element of it.
    pub dtype: DType,
    /// The shape of a subarray, those of subarrays of subarrays joined; empty for one element.
    pub shape: Vec<u64>,
    /// How many of these axes each subarray has, the outermost first: one number where subarrays
    /// are not nested, none for one element.
    pub nesting: Vec<usize>,
    /// Where it begins in the structure, in bytes.
    pub offset: u64,
}

impl Field {
    /// Whether that is its name, or its title.
    pub(crate) fn has_name(&self, name: &str) -> bool {
        let is_title = |title: &String| {
            let mut literal = String::new();
            write_str(&mut literal, name);
            *title == literal
        };
        self.name == name || self.title.as_ref().is_some_and(is_title)
    }

    /// How many elements it has.
    pub(crate) fn count(&self) -> u64 {
        self.shape.iter().fold(1, |count, &len| count.saturating_mul(len))
    }

    /// Bytes of an element.
    pub(crate) fn itemsize(&self) -> u64 {
        self.dtype.item_bits() / 8
    }

    /// How many bytes the field has: those of all its elements.
    pub(crate) fn bytes(&self) -> u64 {
        self.itemsize().saturating_mul(self.count())
    }
}

impl NpyType {
    /// Bytes an element; 0 for `|S0` and the like.
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

    /// The width in bytes of the units to reverse when converting to `other`, if that is the same
    /// type in the other byte order: a datetime, a UCS-4 string, a long double. `None` for any
    /// other pair of types.
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
    /// Bits an element, or a block of them: a multiple of 8 except for 4- and 6-bit floats; 0 for `|S0` and
    /// the like.
    pub fn item_bits(&self) -> u64 {
        match self {
            DType::Scalar(scalar, _) => scalar.bits(),
            DType::Npy(npy) => npy.itemsize().saturating_mul(8),
            DType::Blocks(block) => block.bytes * 8,
        }
    }

    /// The width in bytes of the units to reverse when the byte order changes: the whole element of
    /// a real number, half of a complex one, 1 for types of one byte and for types that only `.npy`
    /// has.
    pub fn swap_width(&self) -> usize {
        match self {
            DType::Scalar(scalar, _) => {
                (scalar.part().unwrap_or(*scalar).bits() / 8).max(1) as usize
            }
            DType::Npy(_) | DType::Blocks(_) => 1,
        }
    }

    /// The name of the type of the elements, in any byte order.
    pub fn type_name(&self) -> String {
        match self {
            DType::Scalar(scalar, _) => scalar.name().to_owned(),
            DType::Npy(_) | DType::Blocks(_) => self.to_string(),
        }
    }

    /// Whether the elements are of one type, but for their byte order.
    pub fn is_type_of(&self, other: &DType) -> bool {
        match (self, other) {
            (DType::Scalar(ours, _), DType::Scalar(theirs, _)) => ours == theirs,
            (DType::Npy(ours), DType::Npy(theirs)) => {
                ours == theirs || ours.swap_width_to(theirs).is_some()
            }
            (DType::Blocks(ours), DType::Blocks(theirs)) => ours == theirs,
            _ => false,
        }
    }

    /// The blocks that elements of the last axis are stored in, if they are.
    pub fn blocks(&self) -> Option<&'static BlockType> {
        match self {
            DType::Blocks(block) => Some(block),
            _ => None,
        }
    }

    /// The fields and the size, where this is a structure.
    pub fn structure(&self) -> Option<&Structure> {
        match self {
            DType::Npy(NpyType::Structure(structure)) => Some(structure),
            _ => None,
        }
    }

    /// Whether its elements are bytes of which nothing says what they mean.
    pub fn is_void(&self) -> bool {
        matches!(self, DType::Npy(NpyType::Void(..)))
    }
}

/// Elements that are stored together, and have no bytes of their own: so many neighbours along the last
/// axis in so many bytes, of which nothing here says what they mean.
///
/// A tensor of such blocks has a block in place of an item, and its last axis counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockType {
    /// The name in its format, such as `Q4_K`.
    pub name: &'static str,
    /// Elements of a block; at least 1.
    pub elements: u64,
    /// Bytes of a block.
    pub bytes: u64,
}

/// Units of time from the longest to the shortest, behind the generic one: NumPy's names, and the
/// words that its scalars are printed with.
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

/// What a count of units of time is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimeKind {
    /// `M8`: a point in time, counted from 1970 on.
    Datetime,
    /// `m8`: a length of time.
    Timedelta,
}

/// A unit of time: `[25s]` is 25 of `s`. It takes few bytes, since an output keeps a conversion for
/// each of its tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TimeUnit {
    /// How many of the named units one step is.
    pub count: i32,
    /// The place of its name among [`UNITS`].
    number: u8,
}

impl TimeUnit {
    /// The unit of which nothing is known.
    pub(crate) const GENERIC: TimeUnit = TimeUnit { count: 1, number: 0 };

    /// So many of the unit that NumPy calls so, `Y` to `as`, or nothing for the generic one.
    pub fn new(count: i32, name: &str) -> Option<TimeUnit> {
        let number = UNITS.iter().position(|(known, _)| *known == name)?;
        Some(TimeUnit { count, number: number as u8 })
    }

    /// NumPy's name of the unit; empty for the generic one.
    pub fn name(self) -> &'static str {
        UNITS[usize::from(self.number)].0
    }

    /// The name of several of them.
    pub(crate) fn plural(self) -> &'static str {
        UNITS[usize::from(self.number)].1
    }

    /// Its place among all from years on, the longest; the generic one has none.
    pub(crate) fn rank(self) -> Option<usize> {
        usize::from(self.number).checked_sub(1)
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
}
