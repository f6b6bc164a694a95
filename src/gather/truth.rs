//! The test which elements are true: all but 0, or those that satisfy a comparison with a number,
//! the mask that NumPy's `a == 3` is.
//!
//! Elements are tested as keys, which are integers in the order of the numbers: those that satisfy
//! a comparison are an interval of keys, or all others. A comparison follows NumPy 2: integers and
//! integers are compared exactly, integers and a float as doubles; compared with floats, the number
//! has their type.

use std::cmp::Ordering;

use crate::cast::vectorized;
use crate::dtype::{DType, Endian, Integers, Scalar};
use crate::element::FloatFormat;
use crate::index::{Comparison, Number, Sign};

/// A test that tells true elements from false ones.
#[derive(Clone, Debug)]
pub struct Truth {
    kind: Kind,
    endian: Endian,
    /// The bytes of an element.
    pub(super) width: u64,
    /// Whether the elements outside of `kind` are the true ones.
    opposite: bool,
}

#[derive(Clone, Debug)]
enum Kind {
    /// The keys from `first` on, and `more` after it.
    Within {
        first: u64,
        more: u64,
        is_float: bool,
    },
    /// The result for each value of a byte.
    Bytes(Box<[bool; 256]>),
    Complex(Sign, f64),
}

impl Truth {
    /// The test of a mask's elements: everything but 0 is true.
    pub fn of_mask() -> Truth {
        let kind = Kind::Within { first: 0, more: 0, is_float: false };
        Truth { kind, endian: Endian::Little, width: 1, opposite: true }
    }

    /// The test of a comparison; `None` for elements that are not numbers or booleans of whole
    /// bytes.
    pub fn new(dtype: &DType, comparison: Comparison) -> Option<Truth> {
        let DType::Scalar(scalar, endian) = *dtype else { return None };
        let Comparison { sign, number } = comparison;
        let bits = scalar.part().unwrap_or(scalar).bits();
        let (kind, opposite) = match (Integers::new(dtype), FloatFormat::of(scalar)) {
            _ if bits < 8 => return None,
            (Some(integers), _) => {
                let order = |key: i128| integer_to_number(key, number);
                within(integers.range(), sign, false, order)
            }
            (None, Some(format)) if bits > 8 => {
                let number = format.nearest(number.float());
                let code =
                    |key: i128| if key < 0 { format.sign() | !key as u128 } else { key as u128 };
                let last = format.infinity().unwrap_or_else(|| format.greatest()) as i128;
                let order = |key: i128| format.value(code(key)).partial_cmp(&number);
                within((!last, last), sign, true, |key| order(key).unwrap_or(Ordering::Equal))
            }
            (None, Some(format)) => {
                let number = format.nearest(number.float());
                let holds =
                    |code: usize| sign.holds(format.value(code as u128).partial_cmp(&number));
                (Kind::Bytes(Box::new(std::array::from_fn(holds))), false)
            }
            (None, None) => match scalar.part().and_then(FloatFormat::of) {
                Some(part) => (Kind::Complex(sign, part.nearest(number.float())), false),
                None if scalar != Scalar::Bool => return None,
                None => {
                    let holds = |byte: usize| {
                        sign.holds(Some(integer_to_number((byte != 0).into(), number)))
                    };
                    (Kind::Bytes(Box::new(std::array::from_fn(holds))), false)
                }
            },
        };
        Some(Truth { kind, endian, width: scalar.bits() / 8, opposite })
    }

    pub(super) fn opposite(self) -> Truth {
        Truth { opposite: !self.opposite, ..self }
    }

    /// Whether elements are bytes of a mask, which are their own results.
    fn is_of_mask(&self) -> bool {
        self.opposite
            && matches!(self.kind, Kind::Within { first: 0, more: 0, is_float: false })
            && self.width == 1
    }

    /// A byte for each element, 0 for false ones: `elements` themselves, or in `results`.
    pub(super) fn run<'a>(&self, elements: &'a [u8], results: &'a mut Vec<u8>) -> &'a [u8] {
        if self.is_of_mask() {
            return elements;
        }
        results.resize(elements.len() / self.width as usize, 0);
        let opposite = u8::from(self.opposite);
        match &self.kind {
            Kind::Bytes(table) => {
                for (result, byte) in results.iter_mut().zip(elements) {
                    *result = u8::from(table[usize::from(*byte)]) ^ opposite;
                }
            }
            Kind::Complex(sign, number) => {
                let half = self.width as usize / 2;
                for (result, element) in results.iter_mut().zip(elements.chunks_exact(2 * half)) {
                    let (real, imaginary) = element.split_at(half);
                    let part = |bytes: &[u8]| match half {
                        4 => FloatFormat::SINGLE.value(self.endian.bits(bytes)),
                        _ => FloatFormat::DOUBLE.value(self.endian.bits(bytes)),
                    };
                    let holds = complex_holds(*sign, part(real), part(imaginary), *number);
                    *result = u8::from(holds) ^ opposite;
                }
            }
            Kind::Within { first, more, is_float } => {
                let test = match self.width {
                    1 => test_1,
                    2 => test_2,
                    4 => test_4,
                    _ => test_8,
                };
                let is_big = self.endian == Endian::Big;
                test(elements, results, is_big, *is_float, *first, *more, opposite);
            }
        }
        results
    }
}

/// The order of an integer, or a boolean as one, relative to a number.
fn integer_to_number(integer: i128, number: Number) -> Ordering {
    match number {
        Number::Integer(number) => integer.cmp(&number),
        // a number is not NaN
        Number::Float(_) => {
            (integer as f64).partial_cmp(&number.float()).unwrap_or(Ordering::Equal)
        }
    }
}

/// The keys in a range that satisfy a comparison; `order` compares a key with the number.
fn within(
    (least, greatest): (i128, i128),
    sign: Sign,
    is_float: bool,
    order: impl Fn(i128) -> Ordering,
) -> (Kind, bool) {
    let below = first_key(least, greatest, |key| order(key).is_ge());
    let above = first_key(least, greatest, |key| order(key).is_gt());
    let (first, end) = match sign {
        Sign::Equal | Sign::Different => (below, above),
        Sign::Less => (least, below),
        Sign::LessOrEqual => (least, above),
        Sign::Greater => (above, greatest + 1),
        Sign::GreaterOrEqual => (below, greatest + 1),
    };
    let different = sign == Sign::Different;
    if first == end {
        // all keys, or none
        return (Kind::Within { first: 0, more: u64::MAX, is_float }, !different);
    }
    let more = (end - first - 1) as u64;
    (Kind::Within { first: first as u64, more, is_float }, different)
}

/// The first key from `least` to `greatest` that is far enough, or the one after them.
fn first_key(least: i128, greatest: i128, is_far: impl Fn(i128) -> bool) -> i128 {
    let (mut low, mut high) = (least, greatest + 1);
    while low < high {
        let middle = low + (high - low) / 2;
        if is_far(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

/// The comparison of complex numbers in NumPy: by real parts, then by imaginary ones, except for
/// NaN.
fn complex_holds(sign: Sign, real: f64, imaginary: f64, number: f64) -> bool {
    let imaginary_order = imaginary.partial_cmp(&0.0);
    match real.partial_cmp(&number) {
        Some(Ordering::Equal) => sign.holds(imaginary_order),
        order => sign.holds(order.filter(|_| imaginary_order.is_some())),
    }
}

/// Declare a loop that tests elements of the width of a type by their keys.
macro_rules! tests {
    ($(fn $name:ident($type:ty);)*) => {$(
        vectorized! {
            fn $name(elements: &[u8], results: &mut [u8], is_big: bool, is_float: bool, first: u64, more: u64, opposite: u8) {
                let elements = elements.as_chunks::<{ size_of::<$type>() }>().0;
                let (first, more) = (first as $type, more as $type);
                for (result, bytes) in results.iter_mut().zip(elements) {
                    let bits = <$type>::from_le_bytes(*bytes);
                    let bits = if is_big { bits.swap_bytes() } else { bits };
                    // a negative float has the opposite bits, without its sign
                    let sign = bits.cast_signed() >> (<$type>::BITS - 1);
                    let key = if is_float { bits ^ sign.cast_unsigned() >> 1 } else { bits };
                    *result = u8::from(key.wrapping_sub(first) <= more) ^ opposite;
                }
            }
        }
    )*};
}

tests! {
    fn test_1(u8);
    fn test_2(u16);
    fn test_4(u32);
    fn test_8(u64);
}
