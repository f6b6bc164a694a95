//! Statistics of the elements of a tensor, in one pass and bounded memory.
//!
//! [`Statistics`] take elements in any portions, and those of several threads are
//! [merged](Statistics::merge). Nothing depends on how elements were divided: sums are exact and
//! rounded once at the end, and the bins of values are as wide as the values ask for.
//!
//! ```
//! use tslice::internals::dtype::{Endian, Scalar};
//! use tslice::internals::statistics::Statistics;
//! let mut statistics = Statistics::new(Scalar::F32, Endian::Little).unwrap();
//! let bytes: Vec<u8> = [1.0f32, f32::NAN, 4.0].iter().flat_map(|it| it.to_le_bytes()).collect();
//! statistics.add(&bytes, 0);
//! assert_eq!((statistics.mean(), statistics.deviation()), (Some(2.5), Some(1.5)));
//! assert_eq!((statistics.count, statistics.nan), (3, 1));
//! assert_eq!(statistics.quantiles(&[0.5])[0].value, 2.5);
//! ```

mod exact_sum;
mod key;
mod quantile;
mod tally;

use crate::dtype::{Endian, NumberKind, Scalar};
use crate::element::FloatFormat;
use exact_sum::{ExactSum, deviation};
use key::Keys;
pub use quantile::{Bar, Quantile};
use tally::Tally;

/// Statistics of real numbers.
#[derive(Clone, Debug)]
pub struct Statistics {
    scalar: Scalar,
    endian: Endian,
    keys: Keys,
    /// How many elements there are, and how many of them are NaN, infinite, zero.
    pub count: u64,
    /// Elements that are not a number.
    pub nan: u64,
    /// Elements that are infinite.
    pub infinite: u64,
    /// Elements that are zero.
    pub zero: u64,
    /// The smallest and the largest element that is a number, infinities included.
    pub range: Option<(Extreme, Extreme)>,
    sum: ExactSum,
    squares: ExactSum,
    tally: Tally,
}

/// The smallest or the largest element.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Extreme {
    key: u64,
    /// The bits of the element, little-endian.
    pub bits: u64,
    /// The number of the first element of this value.
    pub place: u64,
}

impl Statistics {
    /// `None` for elements that are no real numbers of whole bytes.
    pub fn new(scalar: Scalar, endian: Endian) -> Option<Statistics> {
        let keys = match scalar.kind() {
            NumberKind::Signed => Keys::Signed,
            NumberKind::Bool | NumberKind::Unsigned => Keys::Unsigned,
            NumberKind::Float if scalar.bits() >= 8 => Keys::Float,
            NumberKind::Float | NumberKind::Complex => return None,
        };
        Some(Statistics {
            scalar,
            endian,
            keys,
            count: 0,
            nan: 0,
            infinite: 0,
            zero: 0,
            range: None,
            sum: ExactSum::default(),
            squares: ExactSum::default(),
            tally: Tally::default(),
        })
    }

    /// Take whole elements into account, of which the first is number `first` of the tensor.
    pub fn add(&mut self, bytes: &[u8], first: u64) {
        macro_rules! each {
            ($type:ty, $take:expr) => {{
                let items = bytes.as_chunks::<{ size_of::<$type>() }>().0;
                for (place, item) in (first..).zip(items) {
                    let value = match self.endian {
                        Endian::Little => <$type>::from_le_bytes(*item),
                        Endian::Big => <$type>::from_be_bytes(*item),
                    };
                    $take(&mut *self, value, place);
                }
            }};
        }
        macro_rules! signed {
            ($type:ty) => {
                each!($type, |this: &mut Statistics, value: $type, place| {
                    let bits = i64::from(value);
                    this.integer(bits < 0, bits.unsigned_abs(), bits as u64, place);
                })
            };
        }
        macro_rules! unsigned {
            ($type:ty) => {
                each!($type, |this: &mut Statistics, value: $type, place| {
                    let bits = u64::from(value);
                    this.integer(false, bits, bits, place);
                })
            };
        }
        macro_rules! float {
            ($bits:ty, $scalar:ident) => {{
                const FORMAT: Option<FloatFormat> = FloatFormat::of(Scalar::$scalar);
                let Some(format) = FORMAT else { return };
                each!($bits, |this: &mut Statistics, bits: $bits, place| {
                    let value = format.value(u128::from(bits));
                    // the square of such a float fits into a double
                    this.float(value, u64::from(bits), place, |sum| sum.add(value * value));
                });
            }};
        }
        match self.scalar {
            Scalar::Bool => each!(u8, |this: &mut Statistics, value: u8, place| {
                let bits = u64::from(value != 0);
                this.integer(false, bits, bits, place);
            }),
            Scalar::I8 => signed!(i8),
            Scalar::I16 => signed!(i16),
            Scalar::I32 => signed!(i32),
            Scalar::I64 => signed!(i64),
            Scalar::U8 => unsigned!(u8),
            Scalar::U16 => unsigned!(u16),
            Scalar::U32 => unsigned!(u32),
            Scalar::U64 => unsigned!(u64),
            Scalar::F16 => float!(u16, F16),
            Scalar::BF16 => float!(u16, BF16),
            Scalar::F8E4M3 => float!(u8, F8E4M3),
            Scalar::F8E5M2 => float!(u8, F8E5M2),
            Scalar::F8E8M0 => float!(u8, F8E8M0),
            Scalar::F8E4M3Fnuz => float!(u8, F8E4M3Fnuz),
            Scalar::F8E5M2Fnuz => float!(u8, F8E5M2Fnuz),
            Scalar::F32 => float!(u32, F32),
            Scalar::F64 => each!(f64, |this: &mut Statistics, value: f64, place| {
                this.float(value, value.to_bits(), place, |sum| sum.add_square(value));
            }),
            // none that statistics are made of
            Scalar::C64 | Scalar::C128 | Scalar::F6E2M3 | Scalar::F6E3M2 | Scalar::F4 => {}
        }
    }

    #[inline]
    fn integer(&mut self, negative: bool, magnitude: u64, bits: u64, place: u64) {
        self.count += 1;
        self.zero += u64::from(magnitude == 0);
        self.sum.add_integer(negative, magnitude);
        self.squares.add_integer_square(magnitude, 0);
        self.key(self.keys.of_integer(bits), bits, place);
    }

    #[inline]
    fn float(&mut self, value: f64, bits: u64, place: u64, add_square: impl Fn(&mut ExactSum)) {
        self.count += 1;
        if value.is_nan() {
            self.nan += 1;
            return;
        }
        self.zero += u64::from(value == 0.0);
        if value.is_finite() {
            self.sum.add(value);
            add_square(&mut self.squares);
        } else {
            self.infinite += 1;
        }
        self.key(Keys::of_float(value), bits, place);
    }

    #[inline]
    fn key(&mut self, key: u64, bits: u64, place: u64) {
        self.tally.add(key);
        let found = Extreme { key, bits, place };
        let (least, greatest) = self.range.get_or_insert((found, found));
        if key < least.key || key == least.key && place < least.place {
            *least = found;
        }
        if key > greatest.key || key == greatest.key && place < greatest.place {
            *greatest = found;
        }
    }

    /// Add the statistics of other elements of the same tensor.
    pub fn merge(&mut self, other: Statistics) {
        self.count += other.count;
        self.nan += other.nan;
        self.infinite += other.infinite;
        self.zero += other.zero;
        self.sum.merge(other.sum);
        self.squares.merge(other.squares);
        self.tally.merge(other.tally);
        self.range = match (self.range, other.range) {
            (Some(ours), Some(theirs)) => Some((
                std::cmp::min_by_key(ours.0, theirs.0, |it| (it.key, it.place)),
                std::cmp::min_by_key(ours.1, theirs.1, |it| (!it.key, it.place)),
            )),
            (ours, theirs) => ours.or(theirs),
        };
    }

    /// Whether elements are floats, and not integers.
    pub fn is_float(&self) -> bool {
        self.keys == Keys::Float
    }

    /// How many elements are finite numbers.
    pub fn finite(&self) -> u64 {
        self.count - self.nan - self.infinite
    }

    /// The mean of the finite elements, rounded once; `None` without any.
    pub fn mean(&self) -> Option<f64> {
        (self.finite() > 0).then(|| self.sum.mean(self.finite()))
    }

    /// The standard deviation of the finite elements around their mean, as np.std has it.
    pub fn deviation(&self) -> Option<f64> {
        (self.finite() > 0).then(|| deviation(&self.sum, &self.squares, self.finite()))
    }
}
