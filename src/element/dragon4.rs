//! Decimal digits of binary floats as NumPy prints them, by the Dragon4 algorithm.
//!
//! This is Steele and White's algorithm in the form of Burger and Dybvig. It finds the fewest digits that
//! distinguish a float from its neighbours, or more or fewer digits on request, rounded from the exact value,
//! ties to even. NumPy's `format_float_positional` and `format_float_scientific` are the reference. (Cutting the
//! shortest decimal to a precision afterwards would round twice.)
//!
//! **Why no package.** The standard library gives either the shortest digits of an `f32` or `f64`, or a number
//! of digits of the exact value, but not both rules at once, as NumPy's columns need them; and it lacks float16
//! and long doubles.

use std::cmp::Ordering;
use std::fmt::Write;

use super::float::{BinaryFloat, Magnitude};

/// How zeros at the end of the fraction are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trim {
    /// Zeros stay, and more are added up to `min_digits`.
    Keep,
    /// Zeros are removed; the point stays: `1.`.
    Zeros,
    /// Zeros are removed, except one after the point: `1.0`.
    LeaveOneZero,
    /// Zeros are removed, and then a point without digits too: `1`.
    PointToo,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Decimal {
    /// The most digits of the fraction; `None` for no limit.
    pub(crate) precision: Option<i32>,
    /// The fewest digits of the fraction; `None` for no minimum.
    pub(crate) min_digits: Option<i32>,
    pub(crate) trim: Trim,
    /// Whether positive numbers get a `+`.
    pub(crate) plus: bool,
    /// The fewest characters before the point, padded with spaces.
    pub(crate) pad_left: i32,
    /// The fewest characters after the point, padded with spaces; not used with an exponent.
    pub(crate) pad_right: i32,
    /// The fewest digits of the exponent.
    pub(crate) exponent_digits: i32,
}

impl Default for Decimal {
    fn default() -> Decimal {
        let precision = None;
        let min_digits = None;
        let pad_left = -1;
        let pad_right = -1;
        let exponent_digits = 2;
        let trim = Trim::Zeros;
        let plus = false;
        Decimal { precision, min_digits, trim, plus, pad_left, pad_right, exponent_digits }
    }
}

impl Decimal {
    /// Append a finite float as `12.5`; appends nothing for other floats.
    pub(crate) fn positional(&self, out: &mut String, float: &BinaryFloat) {
        let cutoff = self.precision.map(Cutoff::Fraction);
        let Some((digits, first)) = digits(float, cutoff, self.min_digits) else { return };
        self.begin(out, float, (first + 1).max(1));
        let whole = digits.len().min((first + 1).max(0) as usize);
        if whole == 0 {
            out.push('0');
        }
        out.push_str(&digits[..whole]);
        out.extend(std::iter::repeat_n('0', (first + 1 - whole as i32).max(0) as usize));
        let zeros = if first < 0 { (-first - 1) as usize } else { 0 };
        let fraction = format!("{}{}", "0".repeat(zeros), &digits[whole..]);
        let shown = self.fraction(out, fraction);
        out.extend(std::iter::repeat_n(' ', (self.pad_right - shown).max(0) as usize));
    }

    /// Append a finite float as `1.25e+01`; appends nothing for other floats.
    pub(crate) fn scientific(&self, out: &mut String, float: &BinaryFloat) {
        let cutoff = self.precision.map(|digits| Cutoff::Total(digits + 1));
        let least = self.min_digits.map(|digits| digits + 1);
        let Some((digits, first)) = digits(float, cutoff, least) else { return };
        self.begin(out, float, 1);
        out.push_str(&digits[..1]);
        self.fraction(out, digits[1..].to_owned());
        let width = self.exponent_digits.clamp(0, 5) as usize;
        let sign = if first < 0 { '-' } else { '+' };
        // writing to a string cannot fail
        let _ = write!(out, "e{sign}{:0width$}", first.unsigned_abs());
    }

    /// Append the sign, after padding for a whole part of `whole_digits` digits.
    fn begin(&self, out: &mut String, float: &BinaryFloat, whole_digits: i32) {
        let sign = match (float.negative, self.plus) {
            (true, _) => "-",
            (false, true) => "+",
            (false, false) => "",
        };
        let pad = self.pad_left - whole_digits - sign.len() as i32;
        out.extend(std::iter::repeat_n(' ', pad.max(0) as usize));
        out.push_str(sign);
    }

    /// Append the point and the fraction; returns the number of its digits.
    fn fraction(&self, out: &mut String, mut digits: String) -> i32 {
        match self.trim {
            Trim::Keep => {
                let missing = self.min_digits.unwrap_or(0) - digits.len() as i32;
                digits.extend(std::iter::repeat_n('0', missing.max(0) as usize));
            }
            Trim::Zeros | Trim::LeaveOneZero | Trim::PointToo => {
                digits.truncate(digits.trim_end_matches('0').len());
                if digits.is_empty() && self.trim == Trim::LeaveOneZero {
                    digits.push('0');
                }
            }
        }
        if !digits.is_empty() || self.trim != Trim::PointToo {
            out.push('.');
        }
        out.push_str(&digits);
        digits.len() as i32
    }
}

/// The position of the last digit that may be produced.
#[derive(Clone, Copy)]
enum Cutoff {
    /// Digits after the point.
    Fraction(i32),
    /// Digits from the first digit.
    Total(i32),
}

/// The limit on digits, which no float reaches: the longest exact decimals, of x87 floats, are shorter.
const MOST_DIGITS: i32 = 20_000;

/// The digits of a finite float, and the power of ten of the first digit. `least` counts as `cutoff` does.
/// `None` for NaN and infinities.
fn digits(
    float: &BinaryFloat,
    cutoff: Option<Cutoff>,
    least: Option<i32>,
) -> Option<(String, i32)> {
    let Magnitude::Finite { mantissa, exponent, unequal_margins } = float.magnitude else {
        return None;
    };
    if mantissa == 0 {
        return Some(("0".to_owned(), 0));
    }
    let Scaled { mut value, scale, mut low, mut power } =
        Scaled::new(mantissa, exponent, unequal_margins, cutoff);
    let first = power - 1;
    let last = match cutoff {
        None => power - MOST_DIGITS,
        Some(Cutoff::Total(digits)) => power - digits,
        Some(Cutoff::Fraction(digits)) => -digits,
    };
    let enough = match (cutoff, least) {
        (_, None) => power,
        (Some(Cutoff::Total(_)), Some(digits)) => power.min(power - digits),
        (_, Some(digits)) => power.min(-digits),
    };
    let is_even = mantissa.is_multiple_of(2);
    let mut digits = String::new();
    let (digit, below, above) = loop {
        power -= 1;
        let digit = value.divide(&scale);
        let mut high = low.clone();
        if unequal_margins {
            high.multiply(2);
        }
        high.add(&value);
        let below = value.cmp(&low);
        let above = high.cmp(&scale);
        let below = below.is_lt() || is_even && below.is_eq();
        let above = above.is_gt() || is_even && above.is_eq();
        if (below || above) && power <= enough || power <= last {
            break (digit, below, above);
        }
        digits.push(char::from(b'0' + digit));
        value.multiply(10);
        low.multiply(10);
    };
    let down = if below == above { rounds_down(value, &scale, digit) } else { below };
    digits.push(char::from(b'0' + digit));
    let carried = !down && increment(&mut digits);
    Some((digits, first + i32::from(carried)))
}

/// A float as the fraction `value / scale`, whose next digit is before the point. Half the distance to each
/// neighbour is `low / scale`; twice that to the upper neighbour where the margins are unequal.
struct Scaled {
    value: Big,
    scale: Big,
    low: Big,
    /// One more than the power of ten of the next digit.
    power: i32,
}

impl Scaled {
    fn new(mantissa: u64, exponent: i32, unequal_margins: bool, cutoff: Option<Cutoff>) -> Scaled {
        let up = exponent.max(0) as u32;
        let down = (-exponent).max(0) as u32;
        let more = u32::from(unequal_margins);
        let mut value = Big::from(mantissa).shifted(up + 1 + more);
        let mut scale = Big::from(1).shifted(down + 1 + more);
        let mut low = Big::from(1).shifted(up);
        let bits = 63 - mantissa.leading_zeros() as i32;
        let estimate = f64::from(bits + exponent) * std::f64::consts::LOG10_2 - 0.69;
        let mut power = estimate.ceil() as i32;
        if let Some(Cutoff::Fraction(digits)) = cutoff {
            power = power.max(1 - digits);
        }
        if power >= 0 {
            scale.multiply_power_of_ten(power as u32);
        } else {
            value.multiply_power_of_ten(power.unsigned_abs());
            low.multiply_power_of_ten(power.unsigned_abs());
        }
        if value.cmp(&scale).is_ge() {
            power += 1;
        } else {
            value.multiply(10);
            low.multiply(10);
        }
        Scaled { value, scale, low, power }
    }
}

/// Whether a digit is rounded down, before a rest of `value / scale`: ties go to the even digit.
fn rounds_down(mut value: Big, scale: &Big, digit: u8) -> bool {
    value.multiply(2);
    match value.cmp(scale) {
        Ordering::Less => true,
        Ordering::Equal => digit.is_multiple_of(2),
        Ordering::Greater => false,
    }
}

/// Add one to the last digit, dropping nines; returns whether all digits were nines, which become a 1.
fn increment(digits: &mut String) -> bool {
    digits.truncate(digits.trim_end_matches('9').len());
    match digits.pop() {
        Some(digit) => {
            digits.push(char::from(digit as u8 + 1));
            false
        }
        None => {
            digits.push('1');
            true
        }
    }
}

/// A natural number: digits of 32 bits, lowest first, without zeros at the end.
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

    /// Make a number of digits of 32 bits, lowest first.
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

    /// Divide by a number that fits in this one at most nine times; `self` becomes the remainder.
    pub(crate) fn divide(&mut self, by: &Big) -> u8 {
        let mut quotient = 0;
        while (*self).cmp(by).is_ge() {
            self.subtract(by);
            quotient += 1;
        }
        quotient
    }

    /// Divide by any number except 0; `self` becomes the quotient, the remainder is returned.
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

    /// The highest 128 bits, the number of bits below them, and whether any lower bit is set.
    pub(crate) fn leading(&self) -> (u128, u32, bool) {
        let below = self.bits().saturating_sub(128) as u32;
        let words = (below / 32) as usize;
        let bits = below % 32;
        let digit = |at: usize| u128::from(self.0.get(words + at).copied().unwrap_or(0));
        // five digits where the highest bit is inside a digit
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
    use crate::element::FloatFormat;

    fn double(value: f64) -> BinaryFloat {
        FloatFormat::DOUBLE.decode(u128::from(value.to_bits()))
    }

    fn positional(value: f64, decimal: Decimal) -> String {
        let mut out = String::new();
        decimal.positional(&mut out, &double(value));
        out
    }

    /// Expected: the texts of NumPy 2.4's format_float_positional.
    #[test]
    fn digits_are_those_of_numpy() {
        let most = |digits| Decimal { precision: Some(digits), ..Decimal::default() };
        assert_eq!(positional(0.1, Decimal::default()), "0.1");
        assert_eq!(positional(-1e22, Decimal::default()), "-10000000000000000000000.");
        assert_eq!(positional(0.001, Decimal { trim: Trim::Keep, ..most(2) }), "0.00");
        assert_eq!(positional(0.006, most(2)), "0.01");
        assert_eq!(positional(0.6, most(0)), "1.");
        assert_eq!(positional(9.996, most(2)), "10.");
        assert_eq!(positional(2.5, Decimal { trim: Trim::PointToo, ..most(0) }), "2");
        let mut out = String::new();
        Decimal::default().scientific(&mut out, &double(f64::MIN_POSITIVE));
        assert_eq!(out, "2.2250738585072014e-308");
        // 1562556004691850.25 lies halfway between two shortest texts
        out.clear();
        Decimal::default().scientific(&mut out, &double(f64::from_bits(0x4316_348b_ae67_be29)));
        assert_eq!(out, "1.5625560046918502e+15");
    }

    /// The digits without their point, and the exponent, of a text such as `1.5e15`.
    fn digits(text: &str) -> (i64, &str) {
        let (digits, exponent) = text.split_once('e').unwrap();
        (digits.replace('.', "").parse().unwrap(), exponent)
    }

    proptest::proptest! {
        #[test]
        fn the_shortest_digits_are_those_of_rust(bits in proptest::num::u64::ANY) {
            let value = f64::from_bits(bits);
            if value.is_finite() {
                let trimmed = Decimal { trim: Trim::PointToo, exponent_digits: 1, ..Decimal::default() };
                let mut out = String::new();
                trimmed.scientific(&mut out, &double(value));
                let ours = out.replace("e+", "e");
                let rust = format!("{value:e}");
                proptest::prop_assert_eq!(ours.parse::<f64>().map(f64::to_bits), Ok(bits));
                // two shortest texts may be equally near: NumPy takes the even one, Rust the other
                let (our_digits, our_exponent) = digits(&ours);
                let (rust_digits, rust_exponent) = digits(&rust);
                proptest::prop_assert_eq!((ours.len(), our_exponent), (rust.len(), rust_exponent));
                let is_tie = our_digits % 2 == 0 && our_digits.abs_diff(rust_digits) == 1;
                proptest::prop_assert!(ours == rust || is_tie, "{} {}", ours, rust);
            }
        }
    }

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
