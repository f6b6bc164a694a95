//! The float formats of 8 and 16 bits: what their codes are worth, and the nearest code to a decimal
//! text. The nearest code to a number is found by `cast`.
//!
//! Rounding through a double could round twice; so where a double lies on a tie, the decimal text
//! itself is compared with it.

use std::cmp::Ordering;

use crate::dtype::Scalar;

/// A float format of 8 or 16 bits, as IEEE 754, the OCP specifications and `ml_dtypes` define it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SmallFloat {
    /// Bits of the mantissa that are stored.
    pub(crate) mantissa: u32,
    /// The exponent of the least normal number.
    pub(crate) least: i32,
    /// The exponent of the greatest finite number.
    pub(crate) top: i32,
    /// The code of the greatest finite number.
    pub(crate) greatest: u32,
    /// The code of infinity, where there is one.
    pub(crate) infinity: Option<u32>,
    /// A code of NaN.
    pub(crate) nan: u32,
    /// The sign bit; `None` for the format that has neither a sign nor a 0.
    pub(crate) sign: Option<u32>,
    /// Whether the code of -0 means NaN.
    pub(crate) one_zero: bool,
}

impl SmallFloat {
    /// The format of a dtype; `None` for dtypes that are no floats of 8 or 16 bits.
    pub(crate) const fn of(scalar: Scalar) -> Option<SmallFloat> {
        let (mantissa, least, top, greatest, infinity, nan, sign) = match scalar {
            Scalar::F16 => (10, -14, 15, 0x7bff, Some(0x7c00), 0x7e00, Some(0x8000)),
            Scalar::BF16 => (7, -126, 127, 0x7f7f, Some(0x7f80), 0x7fc0, Some(0x8000)),
            Scalar::F8E4M3 => (3, -6, 8, 0x7e, None, 0x7f, Some(0x80)),
            Scalar::F8E5M2 => (2, -14, 15, 0x7b, Some(0x7c), 0x7e, Some(0x80)),
            Scalar::F8E4M3Fnuz => (3, -7, 7, 0x7f, None, 0x80, Some(0x80)),
            Scalar::F8E5M2Fnuz => (2, -15, 15, 0x7f, None, 0x80, Some(0x80)),
            Scalar::F8E8M0 => (0, -127, 127, 0xfe, None, 0xff, None),
            _ => return None,
        };
        let one_zero = matches!(scalar, Scalar::F8E4M3Fnuz | Scalar::F8E5M2Fnuz);
        Some(SmallFloat { mantissa, least, top, greatest, infinity, nan, sign, one_zero })
    }

    /// The number that a code means, exactly.
    pub(crate) const fn decode(self, code: u32) -> f64 {
        let magnitude = match self.sign {
            Some(sign) => code & (sign - 1),
            None => code,
        };
        let negative = magnitude != code;
        let is_infinite = match self.infinity {
            Some(infinity) => magnitude == infinity,
            None => false,
        };
        let is_nan = if self.one_zero { code == self.nan } else { magnitude > self.greatest };
        let value = if is_infinite {
            f32::INFINITY
        } else if is_nan {
            f32::NAN
        } else if self.sign.is_none() {
            power_of_two(self.least + code as i32)
        } else {
            let block = magnitude >> self.mantissa;
            let fraction = magnitude & ((1 << self.mantissa) - 1);
            let (exponent, hidden) =
                if block == 0 { (0, 0) } else { (block as i32 - 1, 1 << self.mantissa) };
            (hidden + fraction) as f32 * power_of_two(self.least + exponent - self.mantissa as i32)
        };
        (if negative { -value } else { value }) as f64
    }

    /// The code of the nearest number, ties to even. `value` is the magnitude rounded to a double;
    /// `exact` compares the exact magnitude with it, which decides ties. `None` for a number that
    /// the format cannot hold.
    pub(super) fn encode(
        &self,
        value: f64,
        negative: bool,
        exact: impl Fn() -> Ordering,
    ) -> Option<u32> {
        if value.is_nan() {
            let keeps_sign = negative && !self.one_zero;
            return Some(self.nan | if keeps_sign { self.sign.unwrap_or(0) } else { 0 });
        }
        if negative && self.sign.is_none() {
            return None;
        }
        let code = if value.is_infinite() { self.infinity? } else { self.magnitude(value, exact)? };
        Some(match self.sign {
            Some(sign) if negative && !(self.one_zero && code == 0) => code | sign,
            _ => code,
        })
    }

    /// Whether a code is that of an infinity.
    pub(super) fn is_infinity(&self, code: u32) -> bool {
        self.infinity == Some(code & !self.sign.unwrap_or(0))
    }

    /// The largest finite number, of a format with a sign.
    pub(super) fn largest(&self) -> Option<f64> {
        self.sign?;
        let one = 1 << self.mantissa;
        let exponent = (self.greatest >> self.mantissa) as i32 - 1 + self.least;
        let count = one | (self.greatest & (one - 1));
        Some(f64::from(count) * power(exponent - self.mantissa as i32))
    }

    fn magnitude(&self, value: f64, exact: impl Fn() -> Ordering) -> Option<u32> {
        // the value as a multiple of the distance between neighbouring numbers
        let bits = value.to_bits();
        let exponent = ((bits >> 52) as i32 - 1023).max(self.least);
        let quantum = exponent - self.mantissa as i32;
        // scaled in two steps, so that both powers of two stay normal; this is exact
        let scaled = value * power(-quantum / 2) * power(-quantum - -quantum / 2);
        let (floor, rest) = (scaled.floor(), scaled - scaled.floor());
        let odd = floor % 2.0 == 1.0;
        let up = match rest.partial_cmp(&0.5) {
            Some(Ordering::Greater) => true,
            Some(Ordering::Equal) => match exact() {
                Ordering::Greater => true,
                Ordering::Less => false,
                Ordering::Equal => odd,
            },
            _ => false,
        };
        let count = floor as u32 + u32::from(up);
        // consecutive numbers have consecutive codes, across powers of two as well
        let block = (exponent - self.least) as u32;
        let code = match self.sign {
            Some(_) => (block << self.mantissa) + count,
            // no 0; smaller numbers become the least power of two
            None if value == 0.0 => return None,
            None => (block + count).saturating_sub(1),
        };
        if code <= self.greatest { Some(code) } else { self.infinity }
    }
}

fn power(exponent: i32) -> f64 {
    2f64.powi(exponent)
}

/// Compare a decimal text exactly with the double that it was rounded to.
pub(super) fn compare(text: &str, value: f64) -> Ordering {
    // 1074 decimal places are enough to print any double exactly
    let (ours, theirs) = (digits(text), digits(&format!("{value:.1074}")));
    match (ours.0.is_empty(), theirs.0.is_empty()) {
        (true, true) => Ordering::Equal,
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
        (false, false) => ours.1.cmp(&theirs.1).then_with(|| ours.0.cmp(&theirs.0)),
    }
}

/// The significant digits of a decimal text and its decimal exponent (`0.d1d2... * 10^exponent`);
/// no digits for 0.
fn digits(text: &str) -> (String, i64) {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    // exponents past 64 bits saturate: the float is 0 or infinite anyway
    let end = if exponent.starts_with('-') { i64::MIN / 2 } else { i64::MAX / 2 };
    let exponent =
        exponent.parse::<i64>().map_or(end, |exponent| exponent.clamp(-(1 << 60), 1 << 60));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = [whole, fraction].concat();
    let leading = all.len() - all.trim_start_matches('0').len();
    let power = whole.len() as i64 - leading as i64 + exponent;
    (all.trim_matches('0').to_owned(), power)
}

/// 2 to the power of an exponent from -149 to 127.
const fn power_of_two(exponent: i32) -> f32 {
    if exponent < -126 {
        f32::from_bits(1 << (exponent + 149))
    } else {
        f32::from_bits(((exponent + 127) as u32) << 23)
    }
}
