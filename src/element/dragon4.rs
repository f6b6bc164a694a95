//! Decimal digits of binary floats as NumPy prints them, by the Dragon4 algorithm.
//!
//! This is Steele and White's algorithm in the form of Burger and Dybvig. It finds the fewest
//! digits that tell a float from its neighbours, or more or fewer where the caller says so, rounded
//! from the exact value, ties to even. NumPy's `format_float_positional` and
//! `format_float_scientific` are the reference for every choice. (Cutting the shortest decimal to a
//! precision afterwards would round twice.)
//!
//! **Why no package.** The standard library gives either the shortest digits of an `f32` or `f64`,
//! or a number of digits of the exact value, but not both rules at once, as NumPy's columns need
//! them; and it has nothing for float16 and long doubles.

use std::cmp::Ordering;
use std::fmt::Write;

use super::big::Big;
use super::float::{BinaryFloat, Magnitude};

/// What happens to zeros at the end of the fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trim {
    /// They stay, and more are added up to `min_digits`.
    Keep,
    /// They are removed; the point stays: `1.`.
    Zeros,
    /// They are removed, but one stays behind a bare point: `1.0`.
    LeaveOneZero,
    /// They are removed, and a bare point too: `1`.
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
    /// Append a finite float as `12.5`; nothing is appended for others.
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

    /// Append a finite float as `1.25e+01`; nothing is appended for others.
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

    /// Append the point and the fraction; returns how many digits it has.
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

/// The last digit that may be produced.
#[derive(Clone, Copy)]
enum Cutoff {
    /// Counted after the point.
    Fraction(i32),
    /// Counted from the first digit.
    Total(i32),
}

/// A bound that no float reaches: the longest exact decimals, of x87 floats, are shorter.
const MOST_DIGITS: i32 = 20_000;

/// The digits of a finite float, and the power of ten of the first. `least` counts as `cutoff`
/// does. `None` for NaN and infinities.
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
    // the value is `value / scale`; half the distances to its neighbours are `low / scale` and,
    // where that is another one, `high / scale`
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
    match power {
        0.. => scale.multiply_power_of_ten(power as u32),
        _ => {
            value.multiply_power_of_ten(power.unsigned_abs());
            low.multiply_power_of_ten(power.unsigned_abs());
        }
    }
    if value.cmp(&scale).is_ge() {
        power += 1;
    } else {
        value.multiply(10);
        low.multiply(10);
    }
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
    let down = if below == above {
        value.multiply(2);
        match value.cmp(&scale) {
            Ordering::Less => true,
            Ordering::Equal => digit % 2 == 0,
            Ordering::Greater => false,
        }
    } else {
        below
    };
    digits.push(char::from(b'0' + digit));
    let carried = !down && increment(&mut digits);
    Some((digits, first + i32::from(carried)))
}
/// Add one to the last digit, dropping nines; returns whether all were nines, which become a 1.
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

    /// The expected texts are what NumPy 2.4's format_float_positional gives.
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
                // two shortest ones may be equally near: NumPy takes the even one, Rust the other
                let (our_digits, our_exponent) = digits(&ours);
                let (rust_digits, rust_exponent) = digits(&rust);
                proptest::prop_assert_eq!((ours.len(), our_exponent), (rust.len(), rust_exponent));
                let is_tie = our_digits % 2 == 0 && our_digits.abs_diff(rust_digits) == 1;
                proptest::prop_assert!(ours == rust || is_tie, "{} {}", ours, rust);
            }
        }
    }
}
