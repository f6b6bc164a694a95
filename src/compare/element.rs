//! The parts of an element that are compared (the element itself, or the fields of a structure at any
//! depth), and the rule for equal values.

use std::borrow::Cow;

use half::f16;

use crate::dtype::{DType, Endian, Step, walk};
use crate::element::{FloatFormat, Magnitude, Meaning, NAT};

/// A part of an element: one item, or `count` items of a subarray.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaf {
    /// The offset in the element, in bytes.
    offset: usize,
    size: usize,
    pub(super) count: usize,
    meaning: Meaning,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum LeafValue<'a> {
    Integer(i128),
    Float(Float),
    Complex(Float, Float),
    /// Bytes as they are stored; code points converted from big-endian to little-endian.
    Bytes(Cow<'a, [u8]>),
}

/// A float with its bits, which distinguish NaNs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Float {
    /// The value as a double; rounded, if the float is a long double.
    pub(super) value: f64,
    pub(super) bits: u128,
    pub(super) format: FloatFormat,
}

/// The types of the parts of an element, each with one item at offset 0. `None` if the items of a part are not
/// whole bytes.
pub(super) fn types(dtype: &DType) -> Option<Vec<Leaf>> {
    let leaf = |dtype: &DType| {
        let size = (dtype.item_bits() / 8) as usize;
        Some(Leaf { offset: 0, size, count: 1, meaning: Meaning::of(dtype)? })
    };
    dtype.leaves().into_iter().map(leaf).collect()
}

/// Whether a condition holds for all parts of elements of `dtype`, given the types of the parts on both sides.
pub(super) fn all_parts(
    dtype: &DType,
    types: &[(Leaf, Leaf)],
    mut holds: impl FnMut(&Leaf, &Leaf) -> bool,
) -> bool {
    let walked = walk(dtype, &mut |step| {
        let Step::Leaf { number, offset, count, .. } = step else { return Ok(()) };
        let place = |leaf| Leaf { offset: offset as usize, count: count as usize, ..leaf };
        let (a, b) = types[number];
        if holds(&place(a), &place(b)) { Ok(()) } else { Err(()) }
    });
    walked.is_ok()
}

impl Leaf {
    /// The byte order of the part; `Little` for types without one.
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

    pub(super) fn is_finite(&self, element: &[u8], item: usize) -> bool {
        if !self.has_nan() {
            return true;
        }
        match self.value(element, item) {
            // of all integers, only times have a value that is not finite
            LeafValue::Integer(value) => value != i128::from(NAT),
            LeafValue::Float(float) => float.is_finite(),
            LeafValue::Complex(real, imaginary) => real.is_finite() && imaginary.is_finite(),
            LeafValue::Bytes(_) => true,
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
                LeafValue::Bytes(swapped.into())
            }
            Meaning::Unicode(Endian::Little) | Meaning::Bytes | Meaning::Void => {
                LeafValue::Bytes(bytes.into())
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
        // the double is infinite for many finite long doubles
        self.value.is_finite()
            || matches!(self.format.decode(self.bits).magnitude, Magnitude::Finite { .. })
    }

    /// Whether floats are equal by NumPy's `==`; long doubles that round to one double are compared by
    /// their bits.
    fn equals(&self, other: &Float) -> bool {
        self.value == other.value
            && (self.bits == other.bits || self.value == 0.0 || self.bits >> 64 == 0)
    }
}

/// How values are compared: as by NumPy's `==`, except that NaN equals NaN of the same bits; or within a
/// tolerance, as by np.allclose.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rule {
    /// The absolute and the relative tolerance: `|a - b| <= absolute + relative * |b|`.
    pub tolerance: Option<(f64, f64)>,
    pub equal_nan: bool,
}

impl Rule {
    pub(super) fn same_nan_is_equal(&self) -> bool {
        self.equal_nan || self.tolerance.is_none()
    }

    pub(super) fn same(&self, a: &LeafValue<'_>, b: &LeafValue<'_>) -> bool {
        match (a, b) {
            (LeafValue::Integer(a), LeafValue::Integer(b)) => {
                // NumPy converts integers to doubles here
                let x = *a as f64;
                let y = *b as f64;
                a == b || self.within((x - y).abs(), y.abs(), FloatFormat::DOUBLE)
            }
            (LeafValue::Float(a), LeafValue::Float(b)) => self.same_floats(&[*a], &[*b]),
            (LeafValue::Complex(ar, ai), LeafValue::Complex(br, bi)) => {
                self.same_floats(&[*ar, *ai], &[*br, *bi])
            }
            (a, b) => a == b,
        }
    }

    /// Compare numbers of different types by their exact values, as NumPy would.
    pub(super) fn same_numbers(&self, a: &LeafValue<'_>, b: &LeafValue<'_>) -> bool {
        let (Some(a), Some(b)) = (a.parts(), b.parts()) else { return false };
        let [a_is_nan, b_is_nan] = [a, b].map(|parts| parts.iter().any(|part| part.is_nan()));
        if a_is_nan || b_is_nan {
            return self.equal_nan && a_is_nan && b_is_nan;
        }
        let (apart, size) = distance(a, b);
        // equal infinities have no distance
        a == b || apart == 0.0 || self.within(apart, size, FloatFormat::DOUBLE)
    }

    /// Compare floats (one part) or complex numbers (two).
    fn same_floats(&self, a: &[Float], b: &[Float]) -> bool {
        let pairs = || a.iter().zip(b);
        if pairs().all(|(a, b)| a.equals(b)) {
            return true;
        }
        let any_nan = |floats: &[Float]| floats.iter().any(|float| float.value.is_nan());
        if any_nan(a) || any_nan(b) {
            let same_bits = || pairs().all(|(a, b)| a.equals(b) || a.bits == b.bits);
            return self.equal_nan && any_nan(a) && any_nan(b)
                || self.tolerance.is_none() && same_bits();
        }
        let format = a[0].format;
        let size = |parts: [f64; 2]| round(magnitude(parts), format);
        let part = |floats: &[Float], at: usize| floats.get(at).map_or(0.0, |float| float.value);
        let difference = |at| round(part(a, at) - part(b, at), format);
        let size_b = size([part(b, 0), part(b, 1)]);
        let distance = size([difference(0), difference(1)]);
        self.within(distance, size_b, format)
    }

    /// Whether a distance is within the tolerance, computed in the type that NumPy would use.
    fn within(&self, distance: f64, size: f64, format: FloatFormat) -> bool {
        let Some((absolute, relative)) = self.tolerance else { return false };
        let absolute = round(absolute, format);
        let relative = round(relative, format);
        let limit = round(absolute + round(relative * size, format), format);
        size.is_finite() && distance <= limit
    }
}

/// Round a result to the type in which NumPy computes with floats of this format: a double for formats
/// that NumPy lacks. A double is precise enough that rounding its result equals arithmetic in the smaller
/// type.
pub(super) fn round(value: f64, format: FloatFormat) -> f64 {
    match format.mantissa {
        10 => f16::from_f64(value).to_f64(),
        23 => f64::from(value as f32),
        _ => value,
    }
}

/// The absolute value of a complex number; the imaginary part of a real one is 0.
fn magnitude([real, imaginary]: [f64; 2]) -> f64 {
    if imaginary == 0.0 { real.abs() } else { real.hypot(imaginary) }
}

/// The distance of two complex numbers, and the absolute value of the second.
fn distance(a: [RealNumber; 2], b: [RealNumber; 2]) -> (f64, f64) {
    let apart = [a[0].distance(b[0]), a[1].distance(b[1])];
    (magnitude(apart), magnitude(b.map(RealNumber::value)))
}

#[derive(Clone, Copy, PartialEq)]
enum RealNumber {
    Integer(i128),
    Float(f64),
}

impl RealNumber {
    fn is_nan(self) -> bool {
        matches!(self, RealNumber::Float(value) if value.is_nan())
    }

    fn value(self) -> f64 {
        match self {
            RealNumber::Integer(value) => value as f64,
            RealNumber::Float(value) => value,
        }
    }

    /// The absolute difference; 0 only for equal numbers, and NaN for equal infinities. It is rounded once, unless
    /// an integer of more than 53 bits meets a fraction.
    fn distance(self, other: RealNumber) -> f64 {
        /// The bound below which the whole part of a double fits in an `i128`.
        const MOST: f64 = 1e30;
        match (self, other) {
            (RealNumber::Integer(a), RealNumber::Integer(b)) => (a - b).unsigned_abs() as f64,
            (RealNumber::Integer(integer), RealNumber::Float(float))
            | (RealNumber::Float(float), RealNumber::Integer(integer))
                if float.abs() < MOST =>
            {
                ((integer - float.trunc() as i128) as f64 - float.fract()).abs()
            }
            (a, b) => (a.value() - b.value()).abs(),
        }
    }
}

impl LeafValue<'_> {
    fn parts(&self) -> Option<[RealNumber; 2]> {
        const NONE: RealNumber = RealNumber::Float(0.0);
        Some(match self {
            LeafValue::Integer(value) => [RealNumber::Integer(*value), NONE],
            LeafValue::Float(float) => [RealNumber::Float(float.value), NONE],
            LeafValue::Complex(real, imaginary) => {
                [RealNumber::Float(real.value), RealNumber::Float(imaginary.value)]
            }
            LeafValue::Bytes(_) => return None,
        })
    }

    /// The absolute difference of two numbers, and the difference relative to `other`.
    pub(super) fn distance(&self, other: &LeafValue<'_>) -> Option<(f64, f64)> {
        let (absolute, size) = distance(self.parts()?, other.parts()?);
        (!absolute.is_nan()).then_some((absolute, absolute / size))
    }
}
