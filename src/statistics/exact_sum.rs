//! Sums without any rounding: they come out the same in whatever order and by however many threads
//! their terms were added.

use crate::element::Big;

/// The position of the lowest bit: that of the square of the smallest double.
const LOWEST: i32 = -2 * 1074;

/// Digits of 32 bits, up to the squares of the largest doubles and 2^64 times as far.
const DIGITS: usize = 137;

/// So many terms may be added before the digits could overflow.
const CARRY_EVERY: u32 = 1 << 30;

/// A sum of doubles, of 64-bit integers, or of the squares of either.
#[derive(Clone, Debug)]
pub(super) struct ExactSum {
    /// Digits of 32 bits from the lowest on, each with room for many carries.
    digits: Box<[i64; DIGITS]>,
    /// How many terms were added since the last carry.
    pending: u32,
}

impl Default for ExactSum {
    fn default() -> ExactSum {
        ExactSum { digits: Box::new([0; DIGITS]), pending: 0 }
    }
}

/// A finite double: whether it is negative, its mantissa, and the power of two of its lowest bit.
fn parts(value: f64) -> (bool, u64, i32) {
    let bits = value.to_bits();
    let (fraction, exponent) = (bits & ((1 << 52) - 1), (bits >> 52 & 0x7ff) as i32);
    let mantissa = if exponent > 0 { fraction | 1 << 52 } else { fraction };
    (value.is_sign_negative(), mantissa, exponent.max(1) - 1075)
}

impl ExactSum {
    /// Add a finite double.
    pub(super) fn add(&mut self, value: f64) {
        let (negative, mantissa, exponent) = parts(value);
        self.add_bits(negative, mantissa, exponent);
    }

    /// Add the square of a finite double.
    pub(super) fn add_square(&mut self, value: f64) {
        let (_, mantissa, exponent) = parts(value);
        self.add_integer_square(mantissa, 2 * exponent);
    }

    /// Add an integer.
    pub(super) fn add_integer(&mut self, negative: bool, magnitude: u64) {
        self.add_bits(negative, magnitude, 0);
    }

    /// Add the square of an integer, times 2 to the power of `exponent`.
    pub(super) fn add_integer_square(&mut self, magnitude: u64, exponent: i32) {
        let square = u128::from(magnitude) * u128::from(magnitude);
        self.add_bits(false, square as u64, exponent);
        if square >> 64 > 0 {
            self.add_bits(false, (square >> 64) as u64, exponent + 64);
        }
    }

    /// Add a number times 2 to the power of `exponent`.
    fn add_bits(&mut self, negative: bool, number: u64, exponent: i32) {
        let position = (exponent - LOWEST) as usize;
        let shifted = u128::from(number) << (position % 32);
        let sign = if negative { -1 } else { 1 };
        let mask = u128::from(u32::MAX);
        let digits = &mut self.digits[position / 32..position / 32 + 3];
        digits[0] += sign * (shifted & mask) as i64;
        digits[1] += sign * (shifted >> 32 & mask) as i64;
        digits[2] += sign * (shifted >> 64) as i64;
        self.pending += 1;
        if self.pending >= CARRY_EVERY {
            self.carry();
        }
    }

    /// Bring all digits but the last, which has the sign, into `0..2^32`.
    fn carry(&mut self) {
        let mut carry = 0;
        let (last, digits) = match self.digits.split_last_mut() {
            Some(split) => split,
            None => return,
        };
        for digit in digits {
            let sum = *digit + carry;
            *digit = sum & i64::from(u32::MAX);
            carry = sum >> 32;
        }
        *last += carry;
        self.pending = 1;
    }

    /// Add another sum.
    pub(super) fn merge(&mut self, mut other: ExactSum) {
        other.carry();
        self.carry();
        for (digit, theirs) in self.digits.iter_mut().zip(other.digits.iter()) {
            *digit += theirs;
        }
        self.pending = 2;
    }

    /// Whether it is negative, and its magnitude in units of 2^[`LOWEST`].
    fn magnitude(&self) -> (bool, Big) {
        let mut sum = self.clone();
        sum.carry();
        let negative = sum.digits[DIGITS - 1] < 0;
        if negative {
            sum.digits.iter_mut().for_each(|digit| *digit = -*digit);
            sum.carry();
        }
        let mut value = Big::from(0);
        for &digit in sum.digits.iter().rev() {
            value = value.shifted(32);
            value.add(&Big::from(digit as u64));
        }
        (negative, value)
    }

    /// The sum divided by a count, as a double.
    pub(super) fn mean(&self, count: u64) -> f64 {
        let (negative, sum) = self.magnitude();
        let mean = quotient(&sum, &Big::from(count), LOWEST);
        if negative { -mean } else { mean }
    }
}

/// The standard deviation of `count` numbers of that sum and that sum of squares.
pub(super) fn deviation(sum: &ExactSum, squares: &ExactSum, count: u64) -> f64 {
    let ((_, sum), (_, squares)) = (sum.magnitude(), squares.magnitude());
    let count = Big::from(count);
    // count * squares - sum * sum, in units of 2^(2 * LOWEST): never negative
    let mut numerator = squares.times(&count).shifted(LOWEST.unsigned_abs());
    numerator.subtract(&sum.times(&sum));
    // in units of 2^(2 * LOWEST), whose root is exact; scaled so that no double overflows
    let divisor = count.times(&count);
    let scale = (numerator.bits() as i32 - divisor.bits() as i32) & !1;
    quotient(&numerator, &divisor, -scale).sqrt() * scale_by(scale / 2 + LOWEST)
}

/// A power of two, also of those that only subnormal numbers reach.
fn scale_by(power: i32) -> f64 {
    2f64.powi(power / 2) * 2f64.powi(power - power / 2)
}

/// `numerator / divisor * 2^exponent`, rounded to a double; 0 for a divisor of 0.
fn quotient(numerator: &Big, divisor: &Big, exponent: i32) -> f64 {
    if numerator.bits() == 0 || divisor.bits() == 0 {
        return 0.0;
    }
    // so many bits of the quotient that rounding them to a double is rounding the quotient
    let excess = 66 - (numerator.bits() as i32 - divisor.bits() as i32);
    let (mut rest, mut divisor) = match excess {
        0.. => (numerator.shifted(excess as u32), divisor.clone()),
        _ => (numerator.clone(), divisor.shifted(excess.unsigned_abs())),
    };
    let most = (rest.bits().saturating_sub(divisor.bits()) + 1) as u32;
    divisor = divisor.shifted(most);
    let mut quotient = 0u128;
    for _ in 0..=most {
        quotient <<= 1;
        if rest.cmp(&divisor).is_ge() {
            rest.subtract(&divisor);
            quotient |= 1;
        }
        rest.multiply(2);
    }
    // what is left decides ties only
    quotient |= u128::from(rest.bits() > 0);
    let power = exponent - excess;
    // in two steps, so that both powers of two are normal
    quotient as f64 * 2f64.powi(power / 2) * 2f64.powi(power - power / 2)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sums(values: &[f64]) -> (ExactSum, ExactSum) {
        let (mut sum, mut squares) = (ExactSum::default(), ExactSum::default());
        for &value in values {
            sum.add(value);
            squares.add_square(value);
        }
        (sum, squares)
    }

    #[test]
    fn nothing_is_lost() {
        let (sum, _) = sums(&[1e308, 1.0, -1e308, 1e-300, -1.0]);
        assert_eq!(sum.mean(1), 1e-300);
        assert_eq!(sums(&[0.1; 10]).0.mean(10), 0.1);
        assert_eq!(sums(&[f64::MAX; 3]).0.mean(3), f64::MAX);
        assert_eq!(sums(&[5e-324; 7]).0.mean(7), 5e-324);
        let mut integers = ExactSum::default();
        integers.add_integer(false, u64::MAX);
        integers.add_integer(true, 1);
        assert_eq!(integers.mean(2), (u64::MAX / 2) as f64);
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
    }

    proptest! {
        #[test]
        fn parts_add_up_to_the_whole(values in prop::collection::vec(-1e6f64..1e6, 1..50), at: usize) {
            let (whole, squares) = sums(&values);
            let (first, second) = values.split_at(at % values.len());
            let (mut merged, mut merged_squares) = sums(second);
            let (sum, of_squares) = sums(first);
            merged.merge(sum);
            merged_squares.merge(of_squares);
            let count = values.len() as u64;
            prop_assert_eq!(merged.mean(count), whole.mean(count));
            prop_assert_eq!(deviation(&merged, &merged_squares, count), deviation(&whole, &squares, count));
            let mean = values.iter().sum::<f64>() / count as f64;
            prop_assert!((whole.mean(count) - mean).abs() <= 1e-6);
        }
    }
}
