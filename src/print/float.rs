//! Floats of an array in columns: NumPy's `FloatingFormat` with the mode `maxprec`.
//!
//! Either all numbers of an array have an exponent or none; the smallest and the largest number
//! decide. This is known only after the last number, so the widths of both forms are tracked.

use num_bigint::BigUint;

use crate::element::{Decimal, FloatFormat, Magnitude, Trim};

/// The floats of an array: [observed](FloatColumn::observe) first, then written.
#[derive(Clone, Debug)]
pub(super) struct FloatColumn {
    format: FloatFormat,
    precision: i32,
    /// Whether positive numbers have a sign, as imaginary parts have.
    plus: bool,
    /// The bits of the smallest and the largest absolute value that is neither zero nor infinite.
    bounds: Option<(u128, u128)>,
    any_finite: bool,
    any_special: bool,
    any_negative_infinity: bool,
    /// The greatest widths with an exponent, and without one.
    scientific: Widths,
    positional: Widths,
    /// The form of all numbers, after [`decide`](FloatColumn::decide).
    decided: Decided,
}

/// The number of characters before the point, after it, and of the exponent without its sign.
#[derive(Clone, Copy, Debug, Default)]
struct Widths {
    left: i32,
    fraction: i32,
    exponent: i32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Decided {
    decimal: Decimal,
    with_exponent: bool,
    width: usize,
}

impl FloatColumn {
    pub(super) fn new(format: FloatFormat, precision: u16, plus: bool) -> FloatColumn {
        FloatColumn {
            format,
            precision: i32::from(precision),
            plus,
            bounds: None,
            any_finite: false,
            any_special: false,
            any_negative_infinity: false,
            scientific: Widths::default(),
            positional: Widths::default(),
            decided: Decided::default(),
        }
    }

    pub(super) fn observe(&mut self, bits: u128) {
        let float = self.format.decode(bits);
        let Magnitude::Finite { mantissa, .. } = float.magnitude else {
            self.any_special = true;
            self.any_negative_infinity |= float.negative && float.magnitude == Magnitude::Infinite;
            return;
        };
        self.any_finite = true;
        if mantissa > 0 {
            let magnitude = self.format.magnitude(bits);
            let (least, greatest) = self.bounds.unwrap_or((magnitude, magnitude));
            self.bounds = Some((least.min(magnitude), greatest.max(magnitude)));
        }
        let decimal = self.first_decimal();
        let mut text = String::new();
        decimal.scientific(&mut text, &float);
        let (number, exponent) = text.split_once('e').unwrap_or((&text, ""));
        self.scientific.widen(number, exponent.len() as i32 - 1);
        text.clear();
        decimal.positional(&mut text, &float);
        self.positional.widen(&text, 0);
    }

    /// The form in which the widths of numbers are measured.
    fn first_decimal(&self) -> Decimal {
        Decimal { precision: Some(self.precision), plus: self.plus, ..Decimal::default() }
    }

    /// Decide the common form, after all numbers were observed.
    pub(super) fn decide(&mut self) {
        let with_exponent = self.needs_exponent();
        let widths = if with_exponent { self.scientific } else { self.positional };
        let mut decimal = Decimal { min_digits: None, ..self.first_decimal() };
        let right;
        if with_exponent {
            decimal.precision = Some(widths.fraction);
            decimal.min_digits = Some(widths.fraction);
            decimal.trim = Trim::Keep;
            decimal.exponent_digits = widths.exponent;
            right = widths.exponent + 2 + widths.fraction;
        } else {
            decimal.min_digits = self.any_finite.then_some(0);
            right = widths.fraction;
        }
        let mut left = widths.left;
        if self.any_special {
            // "nan" and "inf" are as wide as a number with its point
            let negative = i32::from(self.plus || self.any_negative_infinity);
            left = left.max(3 - (right + 1)).max(3 + negative - (right + 1));
        }
        decimal.pad_left = left;
        decimal.pad_right = right;
        self.decided =
            Decided { decimal, with_exponent, width: (left + right + 1).max(0) as usize };
    }

    /// Whether numbers are too large, too small or too different to be written without an exponent.
    fn needs_exponent(&self) -> bool {
        let Some((least, greatest)) = self.bounds else { return false };
        // NumPy's `finfo(dtype).precision`: the decimal digits that any value keeps
        let decimal_digits = self.format.mantissa * 30103 / 100_000;
        let greatest_plain = 10u64.pow(decimal_digits.min(8));
        // bits of the float next to 0.0001, which NumPy rounds to a double first
        let ten_thousandth = match self.format {
            FloatFormat::HALF => 0x068e,
            FloatFormat::SINGLE => u128::from(1e-4f32.to_bits()),
            FloatFormat::DOUBLE => u128::from(1e-4f64.to_bits()),
            _ => 0x3ff1_d1b7_1758_e219_6800,
        };
        let is_small = least < ten_thousandth;
        let least = self.fraction(least);
        let greatest = self.fraction(greatest);
        let is_large = greatest.0 >= &greatest.1 * greatest_plain;
        // NumPy rounds the quotient to the format before it compares with 1000: the quotient is
        // greater where it lies beyond half the distance from 1000 to the next float
        let half = self.format.mantissa - 8;
        let numerator = (greatest.0 * least.1) << half;
        let divisor = least.0 * greatest.1;
        let limit = ((&divisor * 1000u32) << half) + divisor;
        is_large || is_small || numerator > limit
    }

    fn fraction(&self, bits: u128) -> (BigUint, BigUint) {
        match self.format.decode(bits).magnitude {
            Magnitude::Finite { mantissa, exponent, .. } => (
                BigUint::from(mantissa) << exponent.max(0),
                BigUint::from(1u8) << (-exponent).max(0),
            ),
            _ => (BigUint::ZERO, BigUint::from(1u8)),
        }
    }

    pub(super) fn write(&self, out: &mut String, bits: u128) {
        let float = self.format.decode(bits);
        let Decided { decimal, with_exponent, width } = &self.decided;
        let special = match (float.magnitude, float.negative) {
            (Magnitude::Nan, _) => "nan",
            (Magnitude::Infinite, true) => "-inf",
            (Magnitude::Infinite, false) => "inf",
            (Magnitude::Finite { .. }, _) if *with_exponent => {
                return decimal.scientific(out, &float);
            }
            (Magnitude::Finite { .. }, _) => return decimal.positional(out, &float),
        };
        let sign = if self.plus && !special.starts_with('-') { "+" } else { "" };
        let pad = width.saturating_sub(special.len() + sign.len());
        out.extend(std::iter::repeat_n(' ', pad));
        out.push_str(sign);
        out.push_str(special);
    }
}

impl Widths {
    fn widen(&mut self, number: &str, exponent: i32) {
        let (left, fraction) = number.split_once('.').unwrap_or((number, ""));
        self.left = self.left.max(left.len() as i32);
        self.fraction = self.fraction.max(fraction.len() as i32);
        self.exponent = self.exponent.max(exponent);
    }
}
