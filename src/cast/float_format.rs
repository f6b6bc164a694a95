//! Rounding to floats of 8 and 16 bits.

use crate::dtype::Scalar;

/// A float type of 8 or 16 bits, as IEEE 754, the OCP specifications and `ml_dtypes` define it.
///
/// Where `ml_dtypes` 0.6 rounds float64 and large integers to float32 first, numbers are rounded
/// once here. Numbers between the two least ones of float8_e8m0fnu become the upper one, as there.
#[derive(Clone, Copy, Debug)]
pub struct FloatFormat {
    /// Bits of the mantissa that are stored.
    pub mantissa: u32,
    /// The exponent of the least normal number.
    pub least: i32,
    /// The exponent of the greatest finite number.
    pub top: i32,
    /// The code of the greatest finite number.
    pub greatest: u32,
    /// The code of infinity, where there is one.
    pub infinity: Option<u32>,
    /// A code of NaN.
    pub nan: u32,
    /// The sign bit; `None` for the format that has neither a sign nor a 0.
    pub sign: Option<u32>,
    /// Whether the code of -0 means NaN.
    pub one_zero: bool,
}

impl FloatFormat {
    /// The format of a dtype; `None` for dtypes that are no floats of 8 or 16 bits.
    pub const fn of(scalar: Scalar) -> Option<FloatFormat> {
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
        Some(FloatFormat { mantissa, least, top, greatest, infinity, nan, sign, one_zero })
    }

    /// The code of the nearest number, ties to even.
    ///
    /// A power of two is added that leaves as many bits of the sum as the mantissa has, so that
    /// the addition rounds; what was added is taken away again as an integer.
    #[inline(always)]
    pub fn encode(self, value: f64) -> u32 {
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
    pub fn encode_f32(self, value: f32) -> u32 {
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

    /// The number that a code means, exactly.
    pub const fn decode(self, code: u32) -> f32 {
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
        if negative { -value } else { value }
    }
}

/// 2 to the power of an exponent from -149 to 127.
const fn power_of_two(exponent: i32) -> f32 {
    if exponent < -126 {
        f32::from_bits(1 << (exponent + 149))
    } else {
        f32::from_bits(((exponent + 127) as u32) << 23)
    }
}
