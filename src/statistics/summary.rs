//! Summaries of any number of elements, in a few hundred bytes each.

use super::exact_sum::{ExactSum, Moments, Quotient, Terms, deviation};
use super::{Fold, Keys};
use crate::dtype::{Endian, NumberKind, Scalar};
use crate::element::FloatFormat;

/// Counts, extremes and exact sums of real numbers.
#[derive(Clone, Debug)]
pub struct Summary {
    pub(super) scalar: Scalar,
    endian: Endian,
    pub(super) keys: Keys,
    /// Number of elements, and how many of them are NaN, infinite and zero.
    pub count: u64,
    pub nan: u64,
    pub infinite: u64,
    pub zero: u64,
    /// The smallest and the largest element, infinities included; `None` if all are NaN.
    pub range: Option<(Extreme, Extreme)>,
    sum: Option<ExactSum>,
    squares: Option<ExactSum>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Extreme {
    pub(super) key: u64,
    pub bits: u64,
    /// Number of the first element with this value.
    pub place: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sums {
    None,
    Plain,
    Squares,
}

/// Take each element with its number.
macro_rules! each {
    ($type:ty, $this:expr, $bytes:expr, $first:expr, $take:expr) => {{
        for (place, item) in ($first..).zip($bytes.as_chunks::<{ size_of::<$type>() }>().0) {
            let value = match $this.endian {
                Endian::Little => <$type>::from_le_bytes(*item),
                Endian::Big => <$type>::from_be_bytes(*item),
            };
            $take(value, place);
        }
    }};
}

macro_rules! signed {
    ($type:ty, $this:expr, $bytes:expr, $first:expr, $seen:expr) => {
        each!($type, $this, $bytes, $first, |value: $type, place| {
            let bits = i64::from(value);
            $seen($this.integer(bits < 0, bits.unsigned_abs(), bits as u64, place));
        })
    };
}

macro_rules! unsigned {
    ($type:ty, $this:expr, $bytes:expr, $first:expr, $seen:expr) => {
        each!($type, $this, $bytes, $first, |value: $type, place| {
            let bits = u64::from(value);
            $seen($this.integer(false, bits, bits, place));
        })
    };
}

macro_rules! float {
    ($bits:ty, $scalar:ident, $this:expr, $bytes:expr, $first:expr, $seen:expr) => {{
        const FORMAT: Option<FloatFormat> = FloatFormat::of(Scalar::$scalar);
        let Some(format) = FORMAT else { return };
        each!($bits, $this, $bytes, $first, |bits: $bits, place| {
            let value = format.value(u128::from(bits));
            // a double holds the square of such a float exactly
            let key = $this.float(value, u64::from(bits), place, |sum| sum.add(value * value));
            key.into_iter().for_each(&mut *$seen);
        });
    }};
}

impl Summary {
    /// `None` if elements are not real numbers of whole bytes.
    pub fn new(scalar: Scalar, endian: Endian, sums: Sums) -> Option<Summary> {
        let keys = match scalar.kind() {
            NumberKind::Signed => Keys::Signed,
            NumberKind::Bool | NumberKind::Unsigned => Keys::Unsigned,
            NumberKind::Float if scalar.bits() >= 8 => Keys::Float,
            NumberKind::Float | NumberKind::Complex => return None,
        };
        let terms = match FloatFormat::of(scalar) {
            Some(format) => {
                Terms { lowest: format.least - format.mantissa as i32, below: format.top + 1 }
            }
            None => Terms { lowest: 0, below: 64 },
        };
        Some(Summary {
            scalar,
            endian,
            keys,
            count: 0,
            nan: 0,
            infinite: 0,
            zero: 0,
            range: None,
            sum: (sums >= Sums::Plain).then(|| ExactSum::new(terms)),
            squares: (sums >= Sums::Squares).then(|| ExactSum::new(terms.squared())),
        })
    }

    pub fn bytes(&self) -> usize {
        let sums = [&self.sum, &self.squares].into_iter().flatten();
        size_of::<Summary>() + sums.map(ExactSum::bytes).sum::<usize>()
    }

    pub fn add(&mut self, bytes: &[u8], first: u64) {
        self.add_with(bytes, first, &mut |_| {});
    }

    /// Add elements, and tell `seen` the key of each that is not NaN.
    pub(super) fn add_with(&mut self, bytes: &[u8], first: u64, seen: &mut impl FnMut(u64)) {
        match self.scalar {
            Scalar::Bool => each!(u8, self, bytes, first, |value: u8, place| {
                let bits = u64::from(value != 0);
                seen(self.integer(false, bits, bits, place));
            }),
            Scalar::I8 => signed!(i8, self, bytes, first, seen),
            Scalar::I16 => signed!(i16, self, bytes, first, seen),
            Scalar::I32 => signed!(i32, self, bytes, first, seen),
            Scalar::I64 => signed!(i64, self, bytes, first, seen),
            Scalar::U8 => unsigned!(u8, self, bytes, first, seen),
            Scalar::U16 => unsigned!(u16, self, bytes, first, seen),
            Scalar::U32 => unsigned!(u32, self, bytes, first, seen),
            Scalar::U64 => unsigned!(u64, self, bytes, first, seen),
            Scalar::F16 => float!(u16, F16, self, bytes, first, seen),
            Scalar::BF16 => float!(u16, BF16, self, bytes, first, seen),
            Scalar::F8E4M3 => float!(u8, F8E4M3, self, bytes, first, seen),
            Scalar::F8E5M2 => float!(u8, F8E5M2, self, bytes, first, seen),
            Scalar::F8E8M0 => float!(u8, F8E8M0, self, bytes, first, seen),
            Scalar::F8E4M3Fnuz => float!(u8, F8E4M3Fnuz, self, bytes, first, seen),
            Scalar::F8E5M2Fnuz => float!(u8, F8E5M2Fnuz, self, bytes, first, seen),
            Scalar::F32 => float!(u32, F32, self, bytes, first, seen),
            Scalar::F64 => each!(f64, self, bytes, first, |value: f64, place| {
                let key = self.float(value, value.to_bits(), place, |sum| sum.add_square(value));
                key.into_iter().for_each(&mut *seen);
            }),
            // `new` makes no summaries of these
            Scalar::C64 | Scalar::C128 | Scalar::F6E2M3 | Scalar::F6E3M2 | Scalar::F4 => {}
        }
    }

    #[inline]
    fn integer(&mut self, negative: bool, magnitude: u64, bits: u64, place: u64) -> u64 {
        self.count += 1;
        self.zero += u64::from(magnitude == 0);
        if let Some(sum) = &mut self.sum {
            sum.add_integer(negative, magnitude);
        }
        if let Some(squares) = &mut self.squares {
            squares.add_integer_square(magnitude, 0);
        }
        self.key(self.keys.of_integer(bits), bits, place)
    }

    #[inline]
    fn float(
        &mut self,
        value: f64,
        bits: u64,
        place: u64,
        add_square: impl Fn(&mut ExactSum),
    ) -> Option<u64> {
        self.count += 1;
        if value.is_nan() {
            self.nan += 1;
            return None;
        }
        self.zero += u64::from(value == 0.0);
        if value.is_finite() {
            if let Some(sum) = &mut self.sum {
                sum.add(value);
            }
            if let Some(squares) = &mut self.squares {
                add_square(squares);
            }
        } else {
            self.infinite += 1;
        }
        Some(self.key(Keys::of_float(value), bits, place))
    }

    #[inline]
    fn key(&mut self, key: u64, bits: u64, place: u64) -> u64 {
        let found = Extreme { key, bits, place };
        let (least, greatest) = self.range.get_or_insert((found, found));
        if key < least.key || key == least.key && place < least.place {
            *least = found;
        }
        if key > greatest.key || key == greatest.key && place < greatest.place {
            *greatest = found;
        }
        key
    }

    pub fn merge(&mut self, other: Summary) {
        self.count += other.count;
        self.nan += other.nan;
        self.infinite += other.infinite;
        self.zero += other.zero;
        for (ours, theirs) in [(&mut self.sum, other.sum), (&mut self.squares, other.squares)] {
            if let (Some(ours), Some(theirs)) = (ours, theirs) {
                ours.merge(theirs);
            }
        }
        self.range = match (self.range, other.range) {
            (Some(ours), Some(theirs)) => Some((
                std::cmp::min_by_key(ours.0, theirs.0, |it| (it.key, it.place)),
                std::cmp::min_by_key(ours.1, theirs.1, |it| (!it.key, it.place)),
            )),
            (ours, theirs) => ours.or(theirs),
        };
    }

    pub fn is_float(&self) -> bool {
        self.keys == Keys::Float
    }

    pub fn finite(&self) -> u64 {
        self.count - self.nan - self.infinite
    }

    pub fn value(&self, extreme: &Extreme) -> f64 {
        self.keys.value(extreme.key)
    }

    /// The mean of the finite elements, rounded once; `None` if there are none, or no sums.
    pub fn mean(&self) -> Option<f64> {
        self.exact_mean().map(Quotient::nearest)
    }

    /// The standard deviation of the finite elements, as np.std has it, rounded once; `None` if
    /// there are none, or no sums of squares.
    pub fn deviation(&self) -> Option<f64> {
        self.exact_deviation().map(Quotient::nearest)
    }

    pub(super) fn exact_mean(&self) -> Option<Quotient> {
        let sum = self.sum.as_ref().filter(|_| self.finite() > 0)?;
        Some(sum.divided(self.finite()))
    }

    pub(super) fn exact_deviation(&self) -> Option<Quotient> {
        let sums = self.exact_sums()?;
        (self.finite() > 0).then(|| deviation(&[sums], self.finite()))
    }

    pub(super) fn exact_sums(&self) -> Option<Moments<'_>> {
        Some(Moments { sum: self.sum.as_ref()?, squares: self.squares.as_ref()? })
    }

    pub(super) fn exact_sum(&self) -> Option<&ExactSum> {
        self.sum.as_ref()
    }
}

/// Complex elements that are taken apart at once, into numbers of each part.
const PORTION: usize = 512;

/// Counts and sums of both parts of complex numbers, and the extremes in NumPy's order: by the real
/// part, then by the imaginary one.
#[derive(Clone, Debug)]
pub struct ComplexSummary {
    pub(super) parts: [Summary; 2],
    part: Scalar,
    endian: Endian,
    pub(super) zero: u64,
    /// The first element with a part that is NaN.
    pub(super) nan: Option<ComplexElement>,
    pub(super) range: Option<(ComplexElement, ComplexElement)>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct ComplexElement {
    keys: [u64; 2],
    pub(super) bits: [u64; 2],
    place: u64,
}

impl ComplexSummary {
    pub(super) fn new(scalar: Scalar, endian: Endian, sums: Sums) -> Option<ComplexSummary> {
        let part = scalar.part()?;
        let summary = Summary::new(part, Endian::Little, sums)?;
        let parts = [summary.clone(), summary];
        Some(ComplexSummary { parts, part, endian, zero: 0, nan: None, range: None })
    }

    pub(super) fn count(&self) -> u64 {
        self.parts[0].count
    }

    /// The standard deviation, as np.std has it; `None` if a part is infinite or NaN, or there are
    /// no elements or no sums of squares.
    pub(super) fn exact_deviation(&self) -> Option<Quotient> {
        let [real, imaginary] = &self.parts;
        let sums = [real.exact_sums()?, imaginary.exact_sums()?];
        let is_finite = real.finite() + imaginary.finite() == 2 * self.count();
        (is_finite && self.count() > 0).then(|| deviation(&sums, self.count()))
    }

    fn portion<const WIDTH: usize>(
        &mut self,
        items: &[u8],
        first: u64,
        value: impl Fn(u64) -> f64,
    ) {
        let mut parts = [[0; 8 * PORTION]; 2];
        let mut count = 0;
        for (place, item) in (first..).zip(items.chunks_exact(2 * WIDTH)) {
            let mut bits = [0; 2];
            for (number, bytes) in item.as_chunks::<WIDTH>().0.iter().enumerate() {
                let mut bytes = *bytes;
                if self.endian == Endian::Big {
                    bytes.reverse();
                }
                parts[number][count * WIDTH..][..WIDTH].copy_from_slice(&bytes);
                let mut wide = [0; 8];
                wide[..WIDTH].copy_from_slice(&bytes);
                bits[number] = u64::from_le_bytes(wide);
            }
            count += 1;
            self.element(bits, bits.map(&value), place);
        }
        for (summary, bytes) in self.parts.iter_mut().zip(&parts) {
            summary.add(&bytes[..count * WIDTH], first);
        }
    }

    fn element(&mut self, bits: [u64; 2], values: [f64; 2], place: u64) {
        self.zero += u64::from(values == [0.0; 2]);
        let found = ComplexElement { keys: values.map(Keys::of_float), bits, place };
        if values.iter().any(|value| value.is_nan()) {
            self.nan = earlier(self.nan, Some(found));
            return;
        }
        let (least, greatest) = self.range.get_or_insert((found, found));
        (*least, *greatest) = (lesser(*least, found), greater(*greatest, found));
    }
}

impl Fold for ComplexSummary {
    fn bytes(&self) -> usize {
        size_of::<ComplexSummary>() + self.parts.iter().map(Summary::bytes).sum::<usize>()
    }

    fn add(&mut self, bytes: &[u8], first: u64) {
        let itemsize = (self.part.bits() / 4) as usize;
        for (number, items) in (0..).zip(bytes.chunks(PORTION * itemsize)) {
            let first = first + number * PORTION as u64;
            match self.part {
                Scalar::F32 => {
                    self.portion::<4>(items, first, |bits| f32::from_bits(bits as u32).into());
                }
                _ => self.portion::<8>(items, first, f64::from_bits),
            }
        }
    }

    fn merge(&mut self, other: ComplexSummary) {
        self.zero += other.zero;
        self.nan = earlier(self.nan, other.nan);
        self.range = match (self.range, other.range) {
            (Some(ours), Some(theirs)) => {
                Some((lesser(ours.0, theirs.0), greater(ours.1, theirs.1)))
            }
            (ours, theirs) => ours.or(theirs),
        };
        self.parts.iter_mut().zip(other.parts).for_each(|(ours, theirs)| ours.merge(theirs));
    }
}

fn earlier(one: Option<ComplexElement>, other: Option<ComplexElement>) -> Option<ComplexElement> {
    one.into_iter().chain(other).min_by_key(|element| element.place)
}

fn lesser(one: ComplexElement, other: ComplexElement) -> ComplexElement {
    std::cmp::min_by_key(one, other, |element| (element.keys, element.place))
}

fn greater(one: ComplexElement, other: ComplexElement) -> ComplexElement {
    std::cmp::min_by_key(one, other, |element| (element.keys.map(|key| !key), element.place))
}
