//! Sums without any rounding, so that the order of the terms and the number of threads do not
//! matter: a sum is a fixed-point number, wide enough for every term.

use num_bigint::BigUint;

/// The range of a sum's terms, in powers of two: the lowest bit, and an exclusive upper bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Terms {
    pub(super) lowest: i32,
    pub(super) below: i32,
}

impl Terms {
    pub(super) fn squared(self) -> Terms {
        Terms { lowest: 2 * self.lowest, below: 2 * self.below }
    }

    /// The number of 64-bit digits for a sum of 2^64 such terms, and its sign.
    fn digits(self) -> usize {
        (self.below - self.lowest + 64) as usize / 64 + 1
    }
}

/// A sum of doubles, of 64-bit integers, or of the squares of either.
#[derive(Clone, Debug)]
pub(super) struct ExactSum {
    /// Digits of 64 bits in two's complement, lowest first.
    digits: Box<[u64]>,
    lowest: i32,
}

/// The value of a sum: `number * 2^exponent`, or its negative.
struct Total {
    negative: bool,
    number: BigUint,
    exponent: i32,
}

/// The sign of a finite double, its mantissa, and the power of two of the mantissa's lowest bit.
fn parts(value: f64) -> (bool, u64, i32) {
    let bits = value.to_bits();
    let fraction = bits & ((1 << 52) - 1);
    let exponent = (bits >> 52 & 0x7ff) as i32;
    let mantissa = if exponent > 0 { fraction | 1 << 52 } else { fraction };
    (value.is_sign_negative(), mantissa, exponent.max(1) - 1075)
}

impl ExactSum {
    pub(super) fn new(terms: Terms) -> ExactSum {
        let digits = vec![0; terms.digits()].into_boxed_slice();
        ExactSum { digits, lowest: terms.lowest }
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.digits)
    }

    /// Add `value`, which must be finite.
    pub(super) fn add(&mut self, value: f64) {
        let (negative, mantissa, exponent) = parts(value);
        self.add_bits::<2>(negative, mantissa.into(), exponent);
    }

    /// Add the square of `value`, which must be finite.
    pub(super) fn add_square(&mut self, value: f64) {
        let (_, mantissa, exponent) = parts(value);
        self.add_bits::<3>(false, u128::from(mantissa).pow(2), 2 * exponent);
    }

    /// Add `number * 2^exponent`.
    pub(super) fn add_integer(&mut self, number: i128, exponent: i32) {
        self.add_bits::<3>(number < 0, number.unsigned_abs(), exponent);
    }

    /// Add `number * 2^exponent`, or its negative. The number has at most 64 * (`DIGITS` - 1) bits.
    #[inline]
    fn add_bits<const DIGITS: usize>(&mut self, negative: bool, mut number: u128, exponent: i32) {
        if number == 0 {
            return;
        }
        let mut position = exponent - self.lowest;
        if position < 0 {
            // only zeros are shifted out: no term has bits below the lowest
            number = number.checked_shr(position.unsigned_abs()).unwrap_or(0);
            position = 0;
        }
        let position = position as usize;
        let shift = position % 64;
        let low = number << shift;
        let terms = [low as u64, (low >> 64) as u64, (number >> 1 >> (127 - shift)) as u64];
        // digit - term is !(!digit + term)
        let flip = if negative { u64::MAX } else { 0 };
        let mut carry = false;
        let mut digits = self.digits[position / 64..].iter_mut();
        for (term, digit) in terms[..DIGITS].iter().zip(digits.by_ref()) {
            let (sum, more) = (*digit ^ flip).carrying_add(*term, carry);
            (*digit, carry) = (sum ^ flip, more);
        }
        for digit in digits {
            if !carry {
                break;
            }
            let (sum, more) = (*digit ^ flip).overflowing_add(1);
            (*digit, carry) = (sum ^ flip, more);
        }
    }

    /// Add a sum of terms of an equal range.
    pub(super) fn merge(&mut self, other: &ExactSum) {
        let mut carry = false;
        for (digit, theirs) in self.digits.iter_mut().zip(&other.digits) {
            (*digit, carry) = digit.carrying_add(*theirs, carry);
        }
    }

    fn is_negative(&self) -> bool {
        self.digits.last().is_some_and(|last| last >> 63 == 1)
    }

    /// The sum as `number * 2^exponent`, if few digits are not 0.
    fn short(&self) -> Option<(i128, i32)> {
        let first = self.digits.iter().position(|digit| *digit != 0).unwrap_or(0);
        let sign = if self.is_negative() { u64::MAX } else { 0 };
        let (low, above) = self.digits[first..].split_first()?;
        let (high, above) = above.split_first().unwrap_or((&sign, &[]));
        let number = i128::from(*high as i64) << 64 | i128::from(*low);
        let is_whole = above.iter().all(|digit| *digit == sign) && (number < 0) == (sign > 0);
        is_whole.then(|| (number, self.lowest + 64 * first as i32))
    }

    fn total(&self) -> Total {
        let negative = self.is_negative();
        // most sums have few digits that are not 0
        let zeros = self.digits.iter().take_while(|digit| **digit == 0).count();
        let mut halves = Vec::with_capacity(2 * (self.digits.len() - zeros));
        let mut carry = negative;
        for &digit in &self.digits[zeros..] {
            let digit = if negative { !digit } else { digit };
            let (sum, more) = digit.carrying_add(0, carry);
            carry = more;
            halves.extend([sum as u32, (sum >> 32) as u32]);
        }
        let exponent = self.lowest + 64 * zeros as i32;
        Total { negative, number: BigUint::new(halves), exponent }
    }

    pub(super) fn divided(&self, count: u64) -> Quotient {
        if let Some((number, exponent)) = self.short() {
            return Quotient::of_short(number, exponent, count);
        }
        let Total { negative, number, exponent } = self.total();
        Quotient::new(negative, number, exponent, count)
    }

    /// The lowest 64 bits of a sum of integers: the result of wrapping addition.
    pub(super) fn wrapped(&self) -> u64 {
        self.digits[0]
    }
}

#[derive(Clone, Copy)]
pub(super) struct Moments<'a> {
    pub(super) sum: &'a ExactSum,
    pub(super) squares: &'a ExactSum,
}

/// The standard deviation of `count` numbers with these parts; complex numbers have two parts.
pub(super) fn deviation(parts: &[Moments<'_>], count: u64) -> Quotient {
    let totals = parts.iter().map(|part| (part.sum.total(), part.squares.total()));
    let totals: Vec<(Total, Total)> = totals.collect();
    let lowest = |(sum, squares): &(Total, Total)| squares.exponent.min(2 * sum.exponent);
    let exponent = totals.iter().map(lowest).min().unwrap_or(0);
    let above = |power: i32| (power - exponent) as u32;
    let mut numerator = BigUint::ZERO;
    for (sum, squares) in totals {
        // count * squares - sum * sum, which is never negative, in units of 2^exponent
        numerator += (squares.number * count) << above(squares.exponent);
        numerator -= (&sum.number * &sum.number) << above(2 * sum.exponent);
    }
    Quotient::root(numerator, exponent, count)
}

/// A mantissa of at least 62 bits times a power of two. The lowest bit is set if anything was cut
/// off, so that it can be rounded correctly to any float, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Quotient {
    negative: bool,
    bits: u128,
    power: i32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Rounding {
    /// To the nearest double; ties go to the even one.
    Nearest,
    /// To the neighbour whose last bit is set, so that it can be rounded again.
    Odd,
}

/// The power of two of a double's lowest bit.
const LOWEST: i32 = -1074;

impl Quotient {
    /// `number * 2^power / divisor`; 0 for a divisor of 0.
    pub(super) fn new(negative: bool, number: BigUint, power: i32, divisor: u64) -> Quotient {
        if divisor == 0 {
            return Quotient { negative, bits: 0, power: 0 };
        }
        let more = 128u64.saturating_sub(number.bits());
        let (bits, below, lost) = divided(number << more, divisor.into());
        Quotient { negative, bits: bits | u128::from(lost), power: power - more as i32 + below }
    }

    /// `number * 2^power / divisor` of a signed number; 0 for a divisor of 0.
    fn of_short(number: i128, power: i32, divisor: u64) -> Quotient {
        let magnitude = number.unsigned_abs();
        if divisor == 0 || magnitude == 0 {
            return Quotient { negative: number < 0, bits: 0, power: 0 };
        }
        let more = magnitude.leading_zeros();
        let shifted = magnitude << more;
        let divisor = u128::from(divisor);
        let bits = (shifted / divisor) | u128::from(!shifted.is_multiple_of(divisor));
        Quotient { negative: number < 0, bits, power: power - more as i32 }
    }

    /// `sqrt(number * 2^power) / divisor`; 0 for a divisor of 0.
    pub(super) fn root(number: BigUint, power: i32, divisor: u64) -> Quotient {
        if divisor == 0 || number.bits() == 0 {
            return Quotient { negative: false, bits: 0, power: 0 };
        }
        // 126 bits must remain after the division by the square of the divisor
        let more = (126 + 128u64).saturating_sub(number.bits()) as i32;
        let more = more + (power - more).rem_euclid(2);
        let squared_divisor = u128::from(divisor) * u128::from(divisor);
        let (mut bits, below, mut lost) = divided(number << more, squared_divisor);
        let mut power = power - more + below;
        if power % 2 != 0 {
            lost |= bits & 1 > 0;
            bits >>= 1;
            power += 1;
        }
        let root = bits.isqrt();
        lost |= root * root != bits;
        Quotient { negative: false, bits: root << 1 | u128::from(lost), power: power / 2 - 1 }
    }

    pub(super) fn nearest(self) -> f64 {
        self.double(Rounding::Nearest)
    }

    /// The double that rounds to any float of at most 51 bits as the exact number would.
    pub(super) fn odd(self) -> f64 {
        self.double(Rounding::Odd)
    }

    fn double(self, rounding: Rounding) -> f64 {
        let Quotient { negative, bits, power } = self;
        let sign = if negative { -1.0 } else { 1.0 };
        if bits == 0 {
            return 0.0;
        }
        let top = power + bits.ilog2() as i32;
        if top > 1023 {
            return sign * f64::INFINITY;
        }
        let quantum = (top - 52).max(LOWEST);
        let (mantissa, up) = match u32::try_from(quantum - power) {
            Err(_) | Ok(0) => (bits << (power - quantum), false),
            Ok(drop) => {
                let mantissa = bits.checked_shr(drop).unwrap_or(0);
                let rest = bits - mantissa.checked_shl(drop).unwrap_or(0);
                let half = 1u128.checked_shl(drop - 1);
                let up = match rounding {
                    Rounding::Odd => rest > 0 && mantissa & 1 == 0,
                    Rounding::Nearest => {
                        half.is_some_and(|half| rest > half || rest == half && mantissa & 1 == 1)
                    }
                };
                (mantissa, up)
            }
        };
        // a carry out of the mantissa goes into the exponent
        let code = (((quantum - LOWEST) as u64) << 52) + mantissa as u64 + u64::from(up);
        sign * f64::from_bits(code)
    }
}

/// The highest 128 bits of a quotient, the number of bits below them, and whether these or a remainder are not 0.
fn divided(number: BigUint, divisor: u128) -> (u128, i32, bool) {
    let quotient = &number / divisor;
    let below = quotient.bits().saturating_sub(128);
    let has_rest = &quotient * divisor != number;
    let lost = has_rest || quotient.trailing_zeros().is_some_and(|zeros| zeros < below);
    let digits = (quotient >> below).to_u64_digits();
    let bits = digits.iter().rev().fold(0, |bits, digit| bits << 64 | u128::from(*digit));
    (bits, below as i32, lost)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sums(values: &[f64]) -> (ExactSum, ExactSum) {
        let terms = Terms { lowest: -1074, below: 1024 };
        let mut sum = ExactSum::new(terms);
        let mut squares = ExactSum::new(terms.squared());
        for &value in values {
            sum.add(value);
            squares.add_square(value);
        }
        (sum, squares)
    }

    fn mean(sum: &ExactSum, count: u64) -> f64 {
        sum.divided(count).nearest()
    }

    fn deviation(sum: &ExactSum, squares: &ExactSum, count: u64) -> f64 {
        super::deviation(&[Moments { sum, squares }], count).nearest()
    }

    #[test]
    fn nothing_is_lost() {
        let (sum, _) = sums(&[1e308, 1.0, -1e308, 1e-300, -1.0]);
        assert_eq!(mean(&sum, 1), 1e-300);
        assert_eq!(mean(&sums(&[0.1; 10]).0, 10), 0.1);
        assert_eq!(mean(&sums(&[f64::MAX; 3]).0, 3), f64::MAX);
        assert_eq!(mean(&sums(&[5e-324; 7]).0, 7), 5e-324);
        let mut integers = ExactSum::new(Terms { lowest: 0, below: 64 });
        integers.add_integer(i128::from(u64::MAX), 0);
        integers.add_integer(-1, 0);
        assert_eq!(mean(&integers, 2), (u64::MAX / 2) as f64);
        integers.add_integer(-i128::from(u64::MAX), 0);
        assert_eq!(integers.wrapped(), u64::MAX);
    }

    #[test]
    fn deviations_are_those_of_the_definition() {
        let (sum, squares) = sums(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]);
        assert_eq!(deviation(&sum, &squares, 8), 2.0);
        let far: Vec<f64> = (0..100).map(|it| 1e9 + f64::from(it % 2)).collect();
        let (sum, squares) = sums(&far);
        assert_eq!(deviation(&sum, &squares, 100), 0.5);
        let (sum, squares) = sums(&[1e-200, 3e-200]);
        assert!((deviation(&sum, &squares, 2) / 1e-200 - 1.0).abs() < 1e-15);
        let (sum, squares) = sums(&[5e-324, 0.0, 0.0]);
        assert_eq!((mean(&sum, 3), deviation(&sum, &squares, 3)), (0.0, 0.0));
        let (sum, squares) = sums(&[f64::MAX, -f64::MAX]);
        assert_eq!((mean(&sum, 2), deviation(&sum, &squares, 2)), (0.0, f64::MAX));
    }

    proptest! {
        #[test]
        fn parts_add_up_to_the_whole(values in prop::collection::vec(-1e6f64..1e6, 1..50), at: usize) {
            let (whole, squares) = sums(&values);
            let (first, second) = values.split_at(at % values.len());
            let (mut merged, mut merged_squares) = sums(second);
            let (sum, of_squares) = sums(first);
            merged.merge(&sum);
            merged_squares.merge(&of_squares);
            let count = values.len() as u64;
            prop_assert_eq!(mean(&merged, count), mean(&whole, count));
            prop_assert_eq!(deviation(&merged, &merged_squares, count), deviation(&whole, &squares, count));
            let near = values.iter().sum::<f64>() / count as f64;
            prop_assert!((mean(&whole, count) - near).abs() <= 1e-6);
        }
    }
}
