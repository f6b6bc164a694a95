//! Natural numbers of any size, with the arithmetic that the digits of floats need.

use std::cmp::Ordering;

/// A natural number: digits of 32 bits, the lowest first, without zeros at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Big(Vec<u32>);

impl From<u64> for Big {
    fn from(value: u64) -> Big {
        let mut big = Big(vec![value as u32, (value >> 32) as u32]);
        big.trim();
        big
    }
}

impl Big {
    fn trim(&mut self) {
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
    }

    /// Make a number of digits of 32 bits, the lowest first.
    pub(crate) fn of_digits(digits: Vec<u32>) -> Big {
        let mut big = Big(digits);
        big.trim();
        big
    }

    pub(crate) fn shifted(&self, bits: u32) -> Big {
        let words = (bits / 32) as usize;
        let bits = bits % 32;
        let mut digits = vec![0; words];
        let mut carry = 0u64;
        for &digit in &self.0 {
            carry |= u64::from(digit) << bits;
            digits.push(carry as u32);
            carry >>= 32;
        }
        digits.push(carry as u32);
        let mut big = Big(digits);
        big.trim();
        big
    }

    pub(crate) fn multiply(&mut self, factor: u32) {
        let mut carry = 0u64;
        for digit in &mut self.0 {
            carry += u64::from(*digit) * u64::from(factor);
            *digit = carry as u32;
            carry >>= 32;
        }
        if carry > 0 {
            self.0.push(carry as u32);
        }
        self.trim();
    }

    pub(crate) fn times(&self, other: &Big) -> Big {
        let mut product = Big(Vec::new());
        for &digit in other.0.iter().rev() {
            product = product.shifted(32);
            let mut part = self.clone();
            part.multiply(digit);
            product.add(&part);
        }
        product.trim();
        product
    }

    pub(crate) fn multiply_power_of_ten(&mut self, mut power: u32) {
        while power >= 9 {
            self.multiply(1_000_000_000);
            power -= 9;
        }
        self.multiply(10u32.pow(power));
    }

    pub(crate) fn add(&mut self, other: &Big) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        let mut carry = 0u64;
        for (at, digit) in self.0.iter_mut().enumerate() {
            carry += u64::from(*digit) + u64::from(other.0.get(at).copied().unwrap_or(0));
            *digit = carry as u32;
            carry >>= 32;
        }
        if carry > 0 {
            self.0.push(carry as u32);
        }
    }

    /// Divide by a number that fits into this one at most nine times; `self` becomes the remainder.
    pub(crate) fn divide(&mut self, by: &Big) -> u8 {
        let mut quotient = 0;
        while (*self).cmp(by).is_ge() {
            self.subtract(by);
            quotient += 1;
        }
        quotient
    }

    /// Divide by any number but 0; `self` becomes the quotient, the remainder is returned.
    pub(crate) fn divide_by(&mut self, by: u64) -> u64 {
        let by = u128::from(by);
        let mut rest = 0u128;
        for digit in self.0.iter_mut().rev() {
            rest = rest << 32 | u128::from(*digit);
            *digit = (rest / by) as u32;
            rest %= by;
        }
        self.trim();
        rest as u64
    }

    /// The highest 128 bits, how many bits are below them, and whether any of those is set.
    pub(crate) fn leading(&self) -> (u128, u32, bool) {
        let below = self.bits().saturating_sub(128) as u32;
        let words = (below / 32) as usize;
        let bits = below % 32;
        let digit = |at: usize| u128::from(self.0.get(words + at).copied().unwrap_or(0));
        // five digits where the bits begin within one
        let high = (0..4).fold(0, |high, at| high | digit(at) << (32 * at));
        let top = match bits {
            0 => high,
            _ => high >> bits | digit(4) << (128 - bits),
        };
        let lost = self.0.iter().take(words).any(|&digit| digit > 0)
            || self.0.get(words).is_some_and(|digit| digit & ((1 << bits) - 1) > 0);
        (top, below, lost)
    }

    pub(crate) fn bits(&self) -> u64 {
        let last = self.0.last().map_or(0, |last| u64::from(32 - last.leading_zeros()));
        (self.0.len() as u64).saturating_sub(1) * 32 + last
    }

    /// Subtract a number that is not larger.
    pub(crate) fn subtract(&mut self, other: &Big) {
        let mut borrow = 0i64;
        for (at, digit) in self.0.iter_mut().enumerate() {
            borrow += i64::from(*digit) - i64::from(other.0.get(at).copied().unwrap_or(0));
            *digit = borrow as u32;
            borrow >>= 32;
        }
        self.trim();
    }
}

impl PartialOrd for Big {
    fn partial_cmp(&self, other: &Big) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Big {
    fn cmp(&self, other: &Big) -> Ordering {
        let lengths = self.0.len().cmp(&other.0.len());
        lengths.then_with(|| self.0.iter().rev().cmp(other.0.iter().rev()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn value(big: &Big) -> u128 {
        big.0.iter().rev().fold(0, |value, &digit| value << 32 | u128::from(digit))
    }

    proptest! {
        #[test]
        fn arithmetic_is_that_of_128_bits(a: u64, b: u64, shift in 0u32..60, factor in 0u32..1000) {
            let big_a = Big::from(a);
            let big_b = Big::from(b);
            prop_assert_eq!(big_a.cmp(&big_b), a.cmp(&b));
            let shifted = big_a.shifted(shift);
            prop_assert_eq!(value(&shifted), u128::from(a) << shift);
            let mut sum = shifted.clone();
            sum.add(&big_b);
            prop_assert_eq!(value(&sum), (u128::from(a) << shift) + u128::from(b));
            let mut product = big_a.clone();
            product.multiply(factor);
            if factor > 0 {
                prop_assert_eq!(value(&product), u128::from(a) * u128::from(factor));
            }
            prop_assert_eq!(value(&big_a.times(&big_b)), u128::from(a) * u128::from(b));
            let mut divided = shifted.clone();
            if b > 0 {
                prop_assert_eq!(divided.divide_by(b), (value(&shifted) % u128::from(b)) as u64);
                prop_assert_eq!(value(&divided), value(&shifted) / u128::from(b));
            }
            let long = big_a.times(&big_b).shifted(shift);
            let (top, below, lost) = long.leading();
            let mut again = Big::of_digits((0..4).map(|at| (top >> (32 * at)) as u32).collect());
            again = again.shifted(below);
            prop_assert_eq!(again.bits(), long.bits());
            prop_assert_eq!(lost, again != long);
            let mut dividend = big_b.clone();
            dividend.multiply(factor % 10);
            if factor % 10 > 0 && b > a % 1000 {
                dividend.add(&Big::from(a % 1000));
                prop_assert_eq!(u32::from(dividend.divide(&big_b)), factor % 10);
                prop_assert_eq!(value(&dividend), u128::from(a % 1000));
            }
        }
    }
}
