//! The parts of an element that are compared: the element itself, or the fields of a structure at
//! any depth.

use std::ops::Range;

use crate::dtype::{DType, Endian, NpyType, Step, Walk};
use crate::element::{FloatFormat, Magnitude, Meaning, NAT};

/// A part of an element, several times over in a subarray.
#[derive(Clone, Debug)]
pub(super) struct Leaf {
    /// Where it begins in the element, in bytes.
    offset: usize,
    /// Bytes of one of its items.
    size: usize,
    pub(super) count: usize,
    meaning: Meaning,
}

/// What an item is worth.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum LeafValue<'a> {
    Integer(i128),
    Float(Float),
    Complex(Float, Float),
    Bytes(&'a [u8]),
    /// Bytes in the other order, made comparable.
    Owned(Vec<u8>),
}

/// A float with its bits, which tell one NaN from another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Float {
    /// Rounded to a double where it is a long double.
    pub(super) value: f64,
    pub(super) bits: u128,
    pub(super) format: FloatFormat,
}

/// The parts of an element; `None` for a dtype whose elements are no whole bytes.
pub(super) fn leaves(dtype: &DType) -> Option<Vec<Leaf>> {
    let mut found = Vec::new();
    for step in Walk::new(dtype) {
        if let Step::Leaf { dtype, offset, count, .. } = step {
            add(dtype, offset as usize, count as usize, &mut found)?;
        }
    }
    Some(found)
}

/// The types of the parts, each once where it stands in a subarray; `None` as for [`leaves`].
pub(super) fn types(dtype: &DType) -> Option<Vec<Leaf>> {
    let mut found = Vec::new();
    dtype.leaves().into_iter().try_for_each(|dtype| add(dtype, 0, 1, &mut found))?;
    Some(found)
}

/// The parts that begin in a range of the bytes of an element, with their places in that range, the
/// units of a string each for themselves.
pub(super) fn leaves_within(dtype: &DType, range: &Range<u64>) -> Option<Vec<Leaf>> {
    let mut found = Vec::new();
    for step in Walk::within(dtype, range.clone()) {
        let Step::Leaf { dtype, offset, count, .. } = step else { continue };
        let size = dtype.item_bits() / 8;
        let unit = match dtype {
            DType::Npy(NpyType::Bytes(_) | NpyType::Void(..)) | DType::Blocks(_) => 1,
            DType::Npy(NpyType::Unicode(..)) => 4,
            _ => size,
        };
        let until = |place: u64| place.saturating_sub(offset).div_ceil(unit.max(1));
        let first = until(range.start);
        let units = until(range.end).min(size * count / unit.max(1)).saturating_sub(first);
        if units == 0 {
            continue;
        }
        let place = (offset + first * unit - range.start) as usize;
        if unit == size {
            add(dtype, place, units as usize, &mut found)?
        } else {
            add(dtype, place, 1, &mut found)?;
            if let Some(leaf) = found.last_mut() {
                leaf.size = (units * unit) as usize;
            }
        }
    }
    Some(found)
}

/// Add items that are no structures.
fn add(dtype: &DType, offset: usize, count: usize, found: &mut Vec<Leaf>) -> Option<()> {
    let size = (dtype.item_bits() / 8) as usize;
    let meaning = Meaning::of(dtype)?;
    found.push(Leaf { offset, size, count, meaning });
    Some(())
}

impl Leaf {
    /// The byte order; `Little` where there is none.
    pub(super) fn endian(&self) -> Endian {
        match self.meaning {
            Meaning::Integer(integers) => integers.endian,
            Meaning::Float(_, endian) | Meaning::Complex(_, endian) => endian,
            Meaning::Time(_, endian, _) => endian,
            Meaning::Unicode(endian) => endian,
            Meaning::Bool | Meaning::Bytes | Meaning::Void => Endian::Little,
        }
    }

    /// Whether there are values that are not equal to themselves.
    pub(super) fn has_nan(&self) -> bool {
        matches!(self.meaning, Meaning::Float(..) | Meaning::Complex(..) | Meaning::Time(..))
    }

    /// Whether it is all of an element.
    pub(super) fn is_alone(&self, itemsize: usize) -> bool {
        self.count == 1 && self.size == itemsize
    }

    /// Whether an item in an element is neither NaN or NaT nor an infinity.
    pub(super) fn is_finite(&self, element: &[u8], item: usize) -> bool {
        if !self.has_nan() {
            return true;
        }
        match self.value(element, item) {
            // the one kind of integers that has such is that of times
            LeafValue::Integer(value) => value != i128::from(NAT),
            LeafValue::Float(float) => float.is_finite(),
            LeafValue::Complex(real, imaginary) => real.is_finite() && imaginary.is_finite(),
            LeafValue::Bytes(_) | LeafValue::Owned(_) => true,
        }
    }

    pub(super) fn value<'a>(&self, element: &'a [u8], item: usize) -> LeafValue<'a> {
        let start = self.offset + item * self.size;
        let bytes = &element[start..start + self.size];
        match self.meaning {
            Meaning::Bool => LeafValue::Integer(i128::from(bytes != [0])),
            Meaning::Integer(integers) => LeafValue::Integer(integers.value(bytes)),
            Meaning::Time(_, endian, _) => {
                LeafValue::Integer(i128::from(endian.bits(bytes) as i64))
            }
            Meaning::Float(format, endian) => {
                LeafValue::Float(Float::new(format, endian.bits(bytes)))
            }
            Meaning::Complex(format, endian) => {
                let (real, imaginary) = bytes.split_at(self.size / 2);
                let part = |bytes| Float::new(format, endian.bits(bytes));
                LeafValue::Complex(part(real), part(imaginary))
            }
            Meaning::Unicode(Endian::Big) => {
                let mut swapped = bytes.to_vec();
                swapped.chunks_exact_mut(4).for_each(<[u8]>::reverse);
                LeafValue::Owned(swapped)
            }
            Meaning::Unicode(Endian::Little) | Meaning::Bytes | Meaning::Void => {
                LeafValue::Bytes(bytes)
            }
        }
    }
}

impl Float {
    fn new(format: FloatFormat, bits: u128) -> Float {
        // of the sixteen bytes of an x87 float ten count
        let bits = if format.mantissa == 63 { bits & ((1 << 80) - 1) } else { bits };
        Float { value: format.value(bits), bits, format }
    }

    fn is_finite(&self) -> bool {
        // a double has no value for some long doubles
        self.value.is_finite()
            || matches!(self.format.decode(self.bits).magnitude, Magnitude::Finite { .. })
    }
}
