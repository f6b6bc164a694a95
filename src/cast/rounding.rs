//! Rounding to floats of 8 and 16 bits.

use crate::element::SmallFloat;

impl SmallFloat {
    /// The code of the nearest number, ties to even.
    ///
    /// A power of two is added that leaves as many bits of the sum as the mantissa has, so that
    /// the addition rounds; what was added is taken away again as an integer.
    #[inline(always)]
    pub(super) fn round(self, value: f64) -> u32 {
        let (bits, magnitude) = (value.to_bits(), value.abs());
        let exponent = ((magnitude.to_bits() >> 52) as i32 - 1023).max(self.least);
        let exponent = exponent.min(self.top + 1);
        let quantum = exponent - self.mantissa as i32;
        let power = f64::from_bits(((quantum + 52 + 1023) as u64) << 52);
        let count = (magnitude + power).to_bits().wrapping_sub(power.to_bits());
        let block = ((exponent - self.least) as u64) << self.mantissa;
        self.code(block + count, (bits >> 63) as u32, magnitude.is_nan(), magnitude)
    }

    /// The same for the floats of 8 bits with a sign, by arithmetic of single precision.
    #[inline(always)]
    pub(super) fn round_f32(self, value: f32) -> u32 {
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
        let overflow = match self.infinity {
            Some(infinity) => infinity,
            None => self.nan,
        };
        let Some(sign) = self.sign else {
            // the codes begin with the least power of two instead of 0
            let code = steps.saturating_sub(1);
            let first = f64::from_bits(((self.least + 1023) as u64) << 52);
            let code = if code == 0 && magnitude > first { 1 } else { code };
            let has_none = is_nan || negative != 0 || magnitude == 0.0;
            return if has_none || code > u64::from(self.greatest) {
                self.nan
            } else {
                code as u32
            };
        };
        let code = if steps > u64::from(self.greatest) { overflow } else { steps as u32 };
        let code = if is_nan { self.nan } else { code };
        if self.one_zero && code == 0 { 0 } else { code | (negative * sign) }
    }
}
