//! Blocks of numbers as doubles, examined by loops that become vector instructions.
//!
//! The sum of a block is exact. Each term is divided into a high part and a small rest. The high part is a multiple of
//! a power of two, which is so large that the high parts of a block add up without rounding. The rests add up without
//! rounding for the same reason. If the exponents in a block lie too far apart, there is no such sum.

use super::exact_sum::Terms;

/// The elements of a block: 8 KiB as doubles, which stay in the first cache.
pub(super) const BLOCK: usize = 1 << SUM_BITS;

/// The bits that a block's sum needs beyond the bits of its terms.
pub(super) const SUM_BITS: i32 = 10;

/// The number of values that are folded side by side, so that no addition waits for another.
const LANES: usize = 16;

/// The bits of a double's mantissa.
pub(super) const DOUBLE: i32 = 53;

/// The bits that the terms of a sum may span, from the highest to the lowest: twice the bits that a double has
/// beyond `SUM_BITS`, and one more, as the rest is rounded to the nearest.
const TERM_BITS: i32 = 2 * (DOUBLE - SUM_BITS) + 1;

/// The smallest and the largest value of a block, and its number of NaN.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub(super) nan: u64,
    pub(super) least: f64,
    pub(super) greatest: f64,
}

#[inline(always)]
fn fold<T: Copy>(
    values: &[f64],
    start: T,
    step: impl Fn(T, f64) -> T,
    join: impl Fn(T, T) -> T,
) -> T {
    if values.len() < LANES {
        return values.iter().fold(start, |folded, &value| step(folded, value));
    }
    let mut lanes = [start; LANES];
    let (chunks, rest) = values.as_chunks::<LANES>();
    for chunk in chunks {
        for (lane, &value) in lanes.iter_mut().zip(chunk) {
            *lane = step(*lane, value);
        }
    }
    for (lane, &value) in lanes.iter_mut().zip(rest) {
        *lane = step(*lane, value);
    }
    lanes.into_iter().fold(start, join)
}

/// The lesser number; `one` where `other` is NaN.
#[inline(always)]
fn lesser(one: f64, other: f64) -> f64 {
    if other < one { other } else { one }
}

#[inline(always)]
fn greater(one: f64, other: f64) -> f64 {
    if other > one { other } else { one }
}

/// The number of values that are counted; the counter is a double, so that vectors have the width of the
/// values.
#[inline(always)]
pub(super) fn count(values: &[f64], is_counted: impl Fn(f64) -> bool) -> u64 {
    sum(values, |value| if is_counted(value) { 1.0 } else { 0.0 }) as u64
}

#[inline(always)]
pub(super) fn are_finite(values: &[f64]) -> bool {
    // infinities and NaN become NaN
    sum(values, |value| value * 0.0) == 0.0
}

#[inline(always)]
fn sum(values: &[f64], term: impl Fn(f64) -> f64) -> f64 {
    fold(values, 0.0, |sum, value| sum + term(value), |one, other| one + other)
}

#[inline(always)]
pub(super) fn has_nan_or_minus_zero(values: &[f64]) -> bool {
    let changed =
        |value: f64| (value + 0.0).to_bits() ^ value.to_bits() | (value * 0.0 + 0.0).to_bits();
    fold(values, 0, |all, value| all | changed(value), |one, other| one | other) != 0
}

impl Block {
    #[inline(always)]
    pub(super) fn of(values: &[f64]) -> Block {
        Block {
            nan: count(values, f64::is_nan),
            least: fold(values, f64::INFINITY, lesser, lesser),
            greatest: fold(values, f64::NEG_INFINITY, greater, greater),
        }
    }

    pub(super) fn has_infinite(&self) -> bool {
        self.least == f64::NEG_INFINITY || self.greatest == f64::INFINITY
    }
}

/// The range of the values except NaN, which have `bits` bits, none below `2^lowest`. With infinite values,
/// the range is too wide for a sum in doubles.
#[inline(always)]
pub(super) fn terms(values: &[f64], bits: i32, lowest: i32) -> Terms {
    let smaller = |least: f64, value: f64| {
        let magnitude = if value == 0.0 { f64::INFINITY } else { value.abs() };
        lesser(least, magnitude)
    };
    let largest = fold(values, 0.0, |most, value| greater(most, value.abs()), greater);
    if largest == 0.0 {
        return Terms { lowest: 0, below: 0 };
    }
    let smallest = fold(values, f64::INFINITY, smaller, lesser);
    let lowest = lowest.max(exponent(smallest) + 1 - bits);
    Terms { lowest, below: exponent(largest) + 1 }
}

fn exponent(value: f64) -> i32 {
    (value.to_bits() >> 52 & 0x7ff).max(1) as i32 - 1023
}

/// A number that rounds doubles below half of it to multiples of `2^lowest`, when it is added and then
/// subtracted.
pub(super) fn rounder(lowest: i32) -> f64 {
    1.5 * power(lowest + DOUBLE - 1)
}

/// `2^exponent`, which must be a normal double.
pub(super) fn power(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

impl Terms {
    /// Whether one double holds the sum of a block.
    pub(super) fn are_short(self) -> bool {
        self.below - self.lowest + SUM_BITS <= DOUBLE
    }

    /// Whether the terms can be divided without an overflow.
    pub(super) fn are_in_reach(self) -> bool {
        self.lowest >= -1022 && self.below <= 900
    }
}

/// The exact sum of the values as two doubles; `None` if two do not hold it. NaN where a value is NaN.
#[inline(always)]
pub(super) fn exact_sum(values: &[f64], terms: Terms) -> Option<[f64; 2]> {
    in_two_parts(values, terms, |value| value)
}

/// The exact sum of the squares, if these doubles hold it; a value has `bits` bits.
#[inline(always)]
pub(super) fn exact_squares(values: &[f64], terms: Terms, bits: i32) -> Option<[f64; 6]> {
    if 2 * bits.min(terms.below - terms.lowest) <= DOUBLE {
        let [high, low] = in_two_parts(values, terms.squared(), |value| value * value)?;
        return Some([high, low, 0.0, 0.0, 0.0, 0.0]);
    }
    // a value is divided into two halves, whose products a double holds
    let Terms { lowest, below } = terms;
    if below - lowest > 2 * HALF {
        return None;
    }
    let middle = lowest + HALF.min((below - lowest + 1) / 2);
    let cut = Terms { lowest: middle, below }.are_in_reach().then(|| rounder(middle))?;
    let high = |value: f64| (value + cut) - cut;
    let low = |value: f64| value - high(value);
    let squares = Terms { lowest: 2 * middle, below: 2 * below + 1 };
    let [a, b] = in_two_parts(values, squares, |value| high(value) * high(value))?;
    let mixed = Terms { lowest: middle + lowest + 1, below: below + middle + 1 };
    let [c, d] = in_two_parts(values, mixed, |value| 2.0 * high(value) * low(value))?;
    let rests = Terms { lowest: 2 * lowest, below: 2 * middle };
    let [e, f] = in_two_parts(values, rests, |value| low(value) * low(value))?;
    Some([a, b, c, d, e, f])
}

/// The bits of half a value: the product of two halves, and twice that, is a double.
const HALF: i32 = 26;

#[inline(always)]
fn in_two_parts(values: &[f64], terms: Terms, term: impl Fn(f64) -> f64) -> Option<[f64; 2]> {
    let Terms { lowest, below } = terms;
    if below - lowest > TERM_BITS || !terms.are_in_reach() {
        return None;
    }
    if terms.are_short() {
        return Some([sum(values, term), 0.0]);
    }
    let cut = rounder((below + SUM_BITS - DOUBLE).max(lowest));
    let high = sum(values, |value| (term(value) + cut) - cut);
    let low = sum(values, |value| {
        let term = term(value);
        term - ((term + cut) - cut)
    });
    Some([high, low])
}
