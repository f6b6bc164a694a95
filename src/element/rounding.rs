//! Rounding to floats of at most 32 bits, of numbers and of decimal texts.

use std::cmp::Ordering;

use super::float::{FloatFormat, Specials};

impl FloatFormat {
    /// The code of the nearest number, ties to even.
    ///
    /// A power of two is added that leaves as many bits of the sum as the mantissa has, so that
    /// the addition rounds; what was added is taken away again as an integer.
    #[inline(always)]
    pub(crate) fn round(self, value: f64) -> u32 {
        let (bits, magnitude) = (value.to_bits(), value.abs());
        let exponent = ((magnitude.to_bits() >> 52) as i32 - 1023).max(self.least);
        let exponent = exponent.min(self.top + 1);
        let quantum = exponent - self.mantissa as i32;
        let power = f64::from_bits(((quantum + 52 + 1023) as u64) << 52);
        let count = (magnitude + power).to_bits().wrapping_sub(power.to_bits());
        let block = ((exponent - self.least) as u64) << self.mantissa;
        self.code(block + count, (bits >> 63) as u32, magnitude.is_nan(), magnitude)
    }

    /// The code of the nearest number of a float of 8 bits with a sign, or of float16, by arithmetic of
    /// single precision.
    #[inline(always)]
    pub(crate) fn round_f32(self, value: f32) -> u32 {
        let (bits, magnitude) = (value.to_bits(), value.abs());
        let exponent = ((magnitude.to_bits() >> 23) as i32 - 127).max(self.least);
        let exponent = exponent.min(self.top + 1);
        let quantum = exponent - self.mantissa as i32;
        let power = f32::from_bits(((quantum + 23 + 127) as u32) << 23);
        let count = (magnitude + power).to_bits().wrapping_sub(power.to_bits());
        let block = ((exponent - self.least) as u32) << self.mantissa;
        self.code(u64::from(block + count), bits >> 31, magnitude.is_nan(), f64::from(magnitude))
    }

    /// Put sign and magnitude together; the magnitude is the number of steps from 0, or any
    /// greater number for what is too large.
    #[inline(always)]
    fn code(self, steps: u64, negative: u32, is_nan: bool, magnitude: f64) -> u32 {
        let (nan, greatest) = (self.nan() as u32, self.greatest() as u64);
        if !self.signed {
            // the codes begin with the least power of two instead of 0
            let code = steps.saturating_sub(1);
            let first = f64::from_bits(((self.least + 1023) as u64) << 52);
            let code = if code == 0 && magnitude > first { 1 } else { code };
            let has_none = is_nan || negative != 0 || magnitude == 0.0;
            return if has_none || code > greatest { nan } else { code as u32 };
        }
        let overflow = match self.infinity() {
            Some(infinity) => infinity as u32,
            None => nan,
        };
        let code = if steps > greatest { overflow } else { steps as u32 };
        let code = if is_nan { nan } else { code };
        let has_minus_zero = self.specials != Specials::MinusZero;
        if code == 0 && !has_minus_zero { 0 } else { code | (negative * self.sign() as u32) }
    }
}

/// The double from which a decimal text is rounded to any float of at most 51 bits as from the text
/// itself: of the two around it the one with the last bit set, unless it is a double.
pub(super) fn rounded_to_odd(text: &str, nearest: f64) -> f64 {
    match compare(text, nearest) {
        Ordering::Greater if nearest.to_bits() & 1 == 0 => nearest.next_up(),
        Ordering::Less if nearest.to_bits() & 1 == 0 => nearest.next_down(),
        _ => nearest,
    }
}

/// Compare a decimal text exactly with the double that it was rounded to.
fn compare(text: &str, value: f64) -> Ordering {
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
