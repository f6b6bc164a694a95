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

use num_bigint::BigUint;

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
        let digit = next_digit(&mut value, &scale);
        let high = (&low << u8::from(unequal_margins)) + &value;
        let below = value.cmp(&low);
        let above = high.cmp(&scale);
        let below = below.is_lt() || is_even && below.is_eq();
        let above = above.is_gt() || is_even && above.is_eq();
        if (below || above) && power <= enough || power <= last {
            break (digit, below, above);
        }
        digits.push(char::from(b'0' + digit));
        value *= 10u8;
        low *= 10u8;
    };
    let down = if below == above { rounds_down(&(value << 1), &scale, digit) } else { below };
    digits.push(char::from(b'0' + digit));
    let carried = !down && increment(&mut digits);
    Some((digits, first + i32::from(carried)))
}

/// A float as the fraction `value / scale`, whose next digit is before the point. Half the distance to each
/// neighbour is `low / scale`; twice that to the upper neighbour where the margins are unequal.
struct Scaled {
    value: BigUint,
    scale: BigUint,
    low: BigUint,
    /// One more than the power of ten of the next digit.
    power: i32,
}

impl Scaled {
    fn new(mantissa: u64, exponent: i32, unequal_margins: bool, cutoff: Option<Cutoff>) -> Scaled {
        let up = exponent.max(0) as u32;
        let down = (-exponent).max(0) as u32;
        let more = u32::from(unequal_margins);
        let one = BigUint::from(1u8);
        let mut value = BigUint::from(mantissa) << (up + 1 + more);
        let mut scale = &one << (down + 1 + more);
        let mut low = one << up;
        let bits = 63 - mantissa.leading_zeros() as i32;
        let estimate = f64::from(bits + exponent) * std::f64::consts::LOG10_2 - 0.69;
        let mut power = estimate.ceil() as i32;
        if let Some(Cutoff::Fraction(digits)) = cutoff {
            power = power.max(1 - digits);
        }
        let tens = BigUint::from(10u8).pow(power.unsigned_abs());
        if power >= 0 {
            scale *= tens;
        } else {
            value *= &tens;
            low *= tens;
        }
        if value >= scale {
            power += 1;
        } else {
            value *= 10u8;
            low *= 10u8;
        }
        Scaled { value, scale, low, power }
    }
}

/// The digit before the point of `value / scale`, which is less than 10; `value` becomes the rest.
fn next_digit(value: &mut BigUint, scale: &BigUint) -> u8 {
    let mut digit = 0;
    while *value >= *scale {
        *value -= scale;
        digit += 1;
    }
    digit
}

/// Whether a digit is rounded down, before a rest of half of `doubled / scale`: ties go to the even digit.
fn rounds_down(doubled: &BigUint, scale: &BigUint, digit: u8) -> bool {
    match doubled.cmp(scale) {
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

#[cfg(test)]
mod tests {
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
}
