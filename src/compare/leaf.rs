//! The parts of an element that are compared: the element itself, or the fields of a structure at
//! any depth.

use std::ops::Range;

use crate::dtype::{DType, Endian, NpyType, Scalar, Step, Walk};
use crate::element::{BinaryFloat, FloatFormat, Magnitude, SmallFloat};

/// A part of an element, several times over in a subarray.
#[derive(Clone, Debug)]
pub(super) struct Leaf {
    /// Where it begins in the element, in bytes.
    offset: usize,
    /// Bytes of one of its items.
    size: usize,
    /// How many there are.
    pub(super) count: usize,
    kind: Kind,
    endian: Endian,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Bool,
    Integer {
        signed: bool,
    },
    /// NumPy's time types: an integer, of which the least one is no time.
    Time,
    Float(Scalar),
    Complex(Scalar),
    LongDouble,
    ComplexLongDouble,
    /// Strings and plain bytes, compared in units of so many bytes.
    Bytes {
        unit: usize,
    },
}

/// What an item is worth.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value<'a> {
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
    /// In which type NumPy would calculate with it.
    pub(super) arithmetic: Scalar,
}

/// The parts of an element; `None` for a dtype whose elements are no whole bytes.
pub(super) fn leaves(dtype: &DType) -> Option<Vec<Leaf>> {
    let mut found = Vec::new();
    for step in Walk::new(dtype) {
        if let Step::Leaf { dtype, offset, count } = step {
            add(dtype, offset as usize, count as usize, &mut found)?;
        }
    }
    Some(found)
}

/// The types of the parts, each once where it stands in a subarray; `None` as for [`leaves`].
pub(super) fn types(dtype: &DType) -> Option<Vec<Leaf>> {
    let mut found = Vec::new();
    match dtype.structure() {
        None => add(dtype, 0, 1, &mut found)?,
        Some(structure) => {
            for field in &structure.fields {
                found.extend(types(&field.dtype)?);
            }
        }
    }
    Some(found)
}

/// The parts that begin in a range of the bytes of an element, with their places in that range, the
/// units of a string each for themselves.
pub(super) fn leaves_within(dtype: &DType, range: &Range<u64>) -> Option<Vec<Leaf>> {
    let mut found = Vec::new();
    for step in Walk::within(dtype, range.clone()) {
        let Step::Leaf { dtype, offset, count } = step else { continue };
        let size = dtype.item_bits() / 8;
        let unit = match dtype {
            DType::Npy(NpyType::Bytes(_) | NpyType::Void(..)) => 1,
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
        match unit == size {
            true => add(dtype, place, units as usize, &mut found)?,
            false => {
                add(dtype, place, 1, &mut found)?;
                if let Some(leaf) = found.last_mut() {
                    leaf.size = (units * unit) as usize;
                }
            }
        }
    }
    Some(found)
}

/// Add items that are no structures.
fn add(dtype: &DType, offset: usize, count: usize, found: &mut Vec<Leaf>) -> Option<()> {
    let size = (dtype.item_bits() / 8) as usize;
    let mut leaf = |kind, endian| found.push(Leaf { offset, size, count, kind, endian });
    match dtype {
        &DType::Scalar(scalar, endian) => match scalar {
            Scalar::Bool => leaf(Kind::Bool, endian),
            Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64 => {
                leaf(Kind::Integer { signed: true }, endian);
            }
            Scalar::U8 | Scalar::U16 | Scalar::U32 | Scalar::U64 => {
                leaf(Kind::Integer { signed: false }, endian);
            }
            Scalar::F32 | Scalar::F64 => leaf(Kind::Float(scalar), endian),
            Scalar::C64 => leaf(Kind::Complex(Scalar::F32), endian),
            Scalar::C128 => leaf(Kind::Complex(Scalar::F64), endian),
            _ => {
                SmallFloat::of(scalar)?;
                leaf(Kind::Float(scalar), endian);
            }
        },
        DType::Npy(npy) => match *npy {
            NpyType::Bytes(_) | NpyType::Void(..) => leaf(Kind::Bytes { unit: 1 }, Endian::Little),
            NpyType::Unicode(_, endian) => leaf(Kind::Bytes { unit: 4 }, endian),
            NpyType::Datetime(endian, _) | NpyType::Timedelta(endian, _) => {
                leaf(Kind::Time, endian);
            }
            NpyType::LongDouble(endian) => leaf(Kind::LongDouble, endian),
            NpyType::ComplexLongDouble(endian) => leaf(Kind::ComplexLongDouble, endian),
            NpyType::Structure(_) => return None,
        },
    }
    Some(())
}

impl Leaf {
    pub(super) fn endian(&self) -> Endian {
        self.endian
    }

    /// Whether there are values that are not equal to themselves.
    pub(super) fn has_nan(&self) -> bool {
        !matches!(self.kind, Kind::Bool | Kind::Integer { .. } | Kind::Bytes { .. })
    }

    /// Whether it is all of an element.
    pub(super) fn is_alone(&self, itemsize: usize) -> bool {
        self.count == 1 && self.size == itemsize
    }

    /// The value of an item in an element.
    pub(super) fn value<'a>(&self, element: &'a [u8], item: usize) -> Value<'a> {
        let start = self.offset + item * self.size;
        let bytes = &element[start..start + self.size];
        match self.kind {
            Kind::Bool => Value::Integer(i128::from(bytes != [0])),
            Kind::Integer { signed } => {
                let shift = 128 - 8 * self.size as u32;
                let bits = self.bits(bytes);
                Value::Integer(match signed {
                    true => ((bits << shift) as i128) >> shift,
                    false => bits as i128,
                })
            }
            Kind::Time => Value::Integer(i128::from(self.bits(bytes) as i64)),
            Kind::Float(scalar) => Value::Float(float(scalar, self.bits(bytes))),
            Kind::Complex(scalar) => {
                let (real, imaginary) = bytes.split_at(self.size / 2);
                let part = |bytes| float(scalar, self.bits(bytes));
                Value::Complex(part(real), part(imaginary))
            }
            Kind::LongDouble => Value::Float(long_double(self.bits(bytes))),
            Kind::ComplexLongDouble => {
                let (real, imaginary) = bytes.split_at(self.size / 2);
                Value::Complex(long_double(self.bits(real)), long_double(self.bits(imaginary)))
            }
            Kind::Bytes { unit } if unit > 1 && self.endian == Endian::Big => {
                let mut swapped = bytes.to_vec();
                swapped.chunks_exact_mut(unit).for_each(<[u8]>::reverse);
                Value::Owned(swapped)
            }
            Kind::Bytes { .. } => Value::Bytes(bytes),
        }
    }

    fn bits(&self, bytes: &[u8]) -> u128 {
        self.endian.bits(bytes)
    }
}

fn float(scalar: Scalar, bits: u128) -> Float {
    let value = match scalar {
        Scalar::F32 => f64::from(f32::from_bits(bits as u32)),
        Scalar::F64 => f64::from_bits(bits as u64),
        _ => SmallFloat::of(scalar).map_or(f64::NAN, |format| format.decode(bits as u32)),
    };
    Float { value, bits, arithmetic: scalar }
}

fn long_double(bits: u128) -> Float {
    let float = BinaryFloat::from_bits(FloatFormat::Extended, bits);
    let magnitude = match float.magnitude {
        Magnitude::Nan => f64::NAN,
        Magnitude::Infinite => f64::INFINITY,
        // in two steps, as the power alone may be too small for a double
        Magnitude::Finite { mantissa, exponent, .. } => {
            mantissa as f64 * 2f64.powi(exponent / 2) * 2f64.powi(exponent - exponent / 2)
        }
    };
    let value = if float.negative { -magnitude } else { magnitude };
    // ten bytes count; what fills them up to sixteen does not
    Float { value, bits: bits & ((1 << 80) - 1), arithmetic: Scalar::F64 }
}
