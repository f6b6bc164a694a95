//! The parts of an element that are compared: the element itself, or the fields of a structure at
//! any depth.

use std::ops::Range;

use crate::dtype::{DType, Endian, NpyType, Step, Walk};
use crate::element::{FloatFormat, Magnitude, Meaning, NAT};

/// A part of an element: one item, or `count` of them in a subarray.
#[derive(Clone, Debug)]
pub(super) struct Leaf {
    /// In bytes, from the beginning of the element.
    offset: usize,
    size: usize,
    pub(super) count: usize,
    meaning: Meaning,
}

/// The value of an item, in a form that can be compared.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum LeafValue<'a> {
    Integer(i128),
    Float(Float),
    Complex(Float, Float),
    Bytes(&'a [u8]),
    /// Big-endian code points, made little-endian.
    Owned(Vec<u8>),
}

/// A float with its bits, which tell one NaN from another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Float {
    /// Rounded, if it is a long double.
    pub(super) value: f64,
    pub(super) bits: u128,
    pub(super) format: FloatFormat,
}

/// List the parts of an element; `None` if its elements are not whole bytes.
pub(super) fn leaves(dtype: &DType) -> Option<Vec<Leaf>> {
    let mut found = Vec::new();
    for step in Walk::new(dtype) {
        if let Step::Leaf { dtype, offset, count, .. } = step {
            add(dtype, offset as usize, count as usize, &mut found)?;
        }
    }
    Some(found)
}

/// List the types of the parts, each with one item at offset 0. `None` as for [`leaves`].
pub(super) fn types(dtype: &DType) -> Option<Vec<Leaf>> {
    let mut found = Vec::new();
    dtype.leaves().into_iter().try_for_each(|dtype| add(dtype, 0, 1, &mut found))?;
    Some(found)
}

/// List the parts that begin in a byte range of an element, with offsets from the start of that
/// range. Strings are taken apart into bytes or code points.
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

fn add(dtype: &DType, offset: usize, count: usize, found: &mut Vec<Leaf>) -> Option<()> {
    let size = (dtype.item_bits() / 8) as usize;
    let meaning = Meaning::of(dtype)?;
    found.push(Leaf { offset, size, count, meaning });
    Some(())
}

impl Leaf {
    /// `Little` if the type has none.
    pub(super) fn endian(&self) -> Endian {
        match self.meaning {
            Meaning::Integer(integers) => integers.endian,
            Meaning::Float(_, endian) | Meaning::Complex(_, endian) => endian,
            Meaning::Time(_, endian, _) => endian,
            Meaning::Unicode(endian) => endian,
            Meaning::Bool | Meaning::Bytes | Meaning::Void => Endian::Little,
        }
    }

    /// Whether the type has values that are not equal to themselves: NaN, or NaT.
    pub(super) fn has_nan(&self) -> bool {
        matches!(self.meaning, Meaning::Float(..) | Meaning::Complex(..) | Meaning::Time(..))
    }

    pub(super) fn is_alone(&self, itemsize: usize) -> bool {
        self.count == 1 && self.size == itemsize
    }

    /// Whether the item is neither NaN, NaT nor infinite.
    pub(super) fn is_finite(&self, element: &[u8], item: usize) -> bool {
        if !self.has_nan() {
            return true;
        }
        match self.value(element, item) {
            // of all integers, only times have such a value
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
        // an x87 float has ten bytes, which are stored in sixteen
        let bits = if format.mantissa == 63 { bits & ((1 << 80) - 1) } else { bits };
        Float { value: format.value(bits), bits, format }
    }

    fn is_finite(&self) -> bool {
        // the double is infinite for many long doubles that are not
        self.value.is_finite()
            || matches!(self.format.decode(self.bits).magnitude, Magnitude::Finite { .. })
    }
}
