//! Binary floats: decoding, and rounding to a format. One model serves IEEE 754, the OCP formats,
//! `ml_dtypes` and x87.

use std::cmp::Ordering;

use crate::dtype::Scalar;

/// A binary float format: a sign, an exponent, and a mantissa without its leading bit (which only
/// x87 stores), from the highest bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FloatFormat {
    /// The bits of the mantissa after the leading one.
    pub(crate) mantissa: u32,
    /// The exponent of the smallest normal number.
    pub(crate) least: i32,
    pub(crate) top: i32,
    pub(crate) specials: Specials,
    /// False for float8_e8m0fnu, which has neither a sign nor a 0.
    pub(crate) signed: bool,
}

/// The codes that do not stand for finite numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Specials {
    /// Infinity at the exponent above the largest, and NaN after it.
    Exponent,
    /// The last code is NaN.
    Last,
    /// The code of -0 is NaN.
    MinusZero,
    None,
}

impl FloatFormat {
    pub(crate) const HALF: FloatFormat = FloatFormat::ieee(10, 15);
    pub(crate) const SINGLE: FloatFormat = FloatFormat::ieee(23, 127);
    pub(crate) const DOUBLE: FloatFormat = FloatFormat::ieee(52, 1023);

    pub(crate) const EXTENDED: FloatFormat = FloatFormat::ieee(63, 16383);

    /// float4_e2m1fn; not in [`of`](FloatFormat::of), since two numbers share a byte.
    pub(crate) const F4: FloatFormat = FloatFormat::ieee(1, 2).with(0, Specials::None);

    const fn ieee(mantissa: u32, top: i32) -> FloatFormat {
        FloatFormat { mantissa, least: 1 - top, top, specials: Specials::Exponent, signed: true }
    }

    const fn with(self, least: i32, specials: Specials) -> FloatFormat {
        FloatFormat { least, specials, ..self }
    }

    /// The format of a scalar; `None` for scalars that are not real floats of whole bytes.
    pub(crate) const fn of(scalar: Scalar) -> Option<FloatFormat> {
        Some(match scalar {
            Scalar::F16 => FloatFormat::HALF,
            Scalar::F32 => FloatFormat::SINGLE,
            Scalar::F64 => FloatFormat::DOUBLE,
            Scalar::BF16 => FloatFormat::ieee(7, 127),
            Scalar::F8E5M2 => FloatFormat::ieee(2, 15),
            Scalar::F8E4M3 => FloatFormat::ieee(3, 8).with(-6, Specials::Last),
            Scalar::F8E8M0 => FloatFormat {
                signed: false,
                ..FloatFormat::ieee(0, 127).with(-127, Specials::Last)
            },
            Scalar::F8E4M3Fnuz => FloatFormat::ieee(3, 7).with(-7, Specials::MinusZero),
            Scalar::F8E5M2Fnuz => FloatFormat::ieee(2, 15).with(-15, Specials::MinusZero),
            _ => return None,
        })
    }

    const fn stored(self) -> u32 {
        self.mantissa + (self.mantissa == FloatFormat::EXTENDED.mantissa) as u32
    }

    /// The first code after the finite numbers: infinity, where the format has one.
    const fn end(self) -> u128 {
        ((self.top - self.least + 2) as u128) << self.stored()
    }

    /// The code of infinity; `None` for formats without infinities.
    pub(crate) const fn infinity(self) -> Option<u128> {
        match self.specials {
            Specials::Exponent => Some(self.end()),
            _ => None,
        }
    }

    pub(crate) const fn greatest(self) -> u128 {
        match self.specials {
            Specials::Last => self.end() - 2,
            _ => self.end() - 1,
        }
    }

    /// A code of NaN; only for formats that have one.
    pub(crate) const fn nan(self) -> u128 {
        match self.specials {
            Specials::Exponent => self.end() | 1 << (self.mantissa - 1),
            Specials::Last => self.end() - 1,
            Specials::MinusZero | Specials::None => self.end(),
        }
    }

    /// The sign bit; for the format without a sign, the bit above all codes.
    pub(crate) const fn sign(self) -> u128 {
        match self.specials {
            Specials::Exponent => self.end() + (1 << self.stored()),
            _ => self.end(),
        }
    }

    /// The code without the sign; it grows with the absolute value.
    pub(crate) const fn magnitude(self, bits: u128) -> u128 {
        bits & (self.sign() - 1)
    }

    /// The exact value; for x87, the nearest double.
    #[inline]
    pub(crate) fn value(self, bits: u128) -> f64 {
        match self.mantissa {
            23 => f64::from(f32::from_bits(bits as u32)),
            52 => f64::from_bits(bits as u64),
            _ => self.decode(bits).value(),
        }
    }

    /// Decode a float; bits beyond the format are ignored.
    #[inline]
    pub(crate) const fn decode(self, bits: u128) -> BinaryFloat {
        let code = self.magnitude(bits);
        let negative = bits & self.sign() != 0;
        // the codes of the format without a sign begin with the least power of two instead of 0
        let steps = if self.signed { code } else { code + 1 };
        let leading = 1u64 << self.mantissa;
        let fraction = (steps & ((1 << self.stored()) - 1)) as u64;
        let biased = (steps >> self.stored()) as i32;
        let is_power = fraction & (leading - 1) == 0;
        let magnitude = if code > self.greatest() {
            match self.specials {
                Specials::Exponent if is_power => Magnitude::Infinite,
                _ => Magnitude::Nan,
            }
        } else if negative && code == 0 && matches!(self.specials, Specials::MinusZero) {
            Magnitude::Nan
        } else {
            let (mantissa, biased) =
                if biased > 0 { (fraction | leading, biased) } else { (fraction, 1) };
            Magnitude::Finite {
                mantissa,
                exponent: biased - 1 + self.least - self.mantissa as i32,
                unequal_margins: biased > 1 && is_power,
            }
        };
        BinaryFloat { negative, magnitude }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BinaryFloat {
    pub(crate) negative: bool,
    pub(crate) magnitude: Magnitude,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Magnitude {
    Nan,
    Infinite,
    /// `mantissa * 2^exponent`.
    Finite {
        mantissa: u64,
        exponent: i32,
        /// Whether the next smaller float is only half as far away as the next larger one.
        unequal_margins: bool,
    },
}

impl BinaryFloat {
    /// The exact value; for x87, the nearest double.
    #[inline]
    pub(crate) const fn value(self) -> f64 {
        let magnitude = match self.magnitude {
            Magnitude::Nan => f64::NAN,
            Magnitude::Infinite => f64::INFINITY,
            // in two steps, as the power alone may be too small for a double
            Magnitude::Finite { mantissa, exponent, .. } => {
                mantissa as f64 * power_of_two(exponent / 2) * power_of_two(exponent - exponent / 2)
            }
        };
        if self.negative { -magnitude } else { magnitude }
    }

    pub(crate) fn is_positive_zero(&self) -> bool {
        !self.negative && matches!(self.magnitude, Magnitude::Finite { mantissa: 0, .. })
    }
}

/// 2^`exponent`; 0 or infinity where this is not a normal double.
const fn power_of_two(exponent: i32) -> f64 {
    match exponent {
        -1022..=1023 => f64::from_bits(((exponent + 1023) as u64) << 52),
        ..=-1023 => 0.0,
        1024.. => f64::INFINITY,
    }
}

impl FloatFormat {
    /// The bits of the nearest number, ties to even, of doubles too.
    #[inline]
    pub(crate) fn bits(self, value: f64) -> u64 {
        match self.mantissa {
            52 => value.to_bits(),
            _ => self.round(value).into(),
        }
    }

    /// The nearest number of the format.
    pub(crate) fn nearest(self, value: f64) -> f64 {
        self.value(self.bits(value).into())
    }

    /// The code of the nearest number, ties to even; not for doubles.
    ///
    /// This adds a power of two that leaves as many bits of the sum as the mantissa has, so that
    /// the addition rounds, and then subtracts it as an integer.
    #[inline(always)]
    pub(crate) fn round(self, value: f64) -> u32 {
        let bits = value.to_bits();
        let magnitude = value.abs();
        let exponent = ((magnitude.to_bits() >> 52) as i32 - 1023).max(self.least);
        let exponent = exponent.min(self.top + 1);
        let quantum = exponent - self.mantissa as i32;
        let power = f64::from_bits(((quantum + 52 + 1023) as u64) << 52);
        let count = (magnitude + power).to_bits().wrapping_sub(power.to_bits());
        let block = ((exponent - self.least) as u64) << self.mantissa;
        self.code(block + count, (bits >> 63) as u32, magnitude.is_nan(), magnitude)
    }

    /// [`round`](FloatFormat::round) in single precision, for float16 and signed floats of 8 bits.
    #[inline(always)]
    pub(crate) fn round_f32(self, value: f32) -> u32 {
        let bits = value.to_bits();
        let magnitude = value.abs();
        let exponent = ((magnitude.to_bits() >> 23) as i32 - 127).max(self.least);
        let exponent = exponent.min(self.top + 1);
        let quantum = exponent - self.mantissa as i32;
        let power = f32::from_bits(((quantum + 23 + 127) as u32) << 23);
        let count = (magnitude + power).to_bits().wrapping_sub(power.to_bits());
        let block = ((exponent - self.least) as u32) << self.mantissa;
        self.code(u64::from(block + count), bits >> 31, magnitude.is_nan(), f64::from(magnitude))
    }

    /// The code of a sign and a magnitude. `steps` counts codes from 0; any higher number is too
    /// large.
    #[inline(always)]
    fn code(self, steps: u64, negative: u32, is_nan: bool, magnitude: f64) -> u32 {
        let nan = self.nan() as u32;
        let greatest = self.greatest() as u64;
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

/// The double to use for a decimal text that is then rounded to a float of at most 51 bits, so that
/// the result is rounded once: the nearest double if it is exact, otherwise the neighbour of the
/// text whose last bit is set.
pub(super) fn rounded_to_odd(text: &str, nearest: f64) -> f64 {
    match compare(text, nearest) {
        Ordering::Greater if nearest.to_bits() & 1 == 0 => nearest.next_up(),
        Ordering::Less if nearest.to_bits() & 1 == 0 => nearest.next_down(),
        _ => nearest,
    }
}

fn compare(text: &str, value: f64) -> Ordering {
    // 1074 decimal places are enough to print any double exactly
    let ours = digits(text);
    let theirs = digits(&format!("{value:.1074}"));
    match (ours.0.is_empty(), theirs.0.is_empty()) {
        (true, true) => Ordering::Equal,
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
        (false, false) => ours.1.cmp(&theirs.1).then_with(|| ours.0.cmp(&theirs.0)),
    }
}

/// The significant digits of a decimal text (none for 0), and its exponent: `0.d1d2... *
/// 10^exponent`.
fn digits(text: &str) -> (String, i64) {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    // exponents beyond 64 bits saturate: the float is 0 or infinite anyway
    let end = if exponent.starts_with('-') { i64::MIN / 2 } else { i64::MAX / 2 };
    let exponent =
        exponent.parse::<i64>().map_or(end, |exponent| exponent.clamp(-(1 << 60), 1 << 60));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = [whole, fraction].concat();
    let leading = all.len() - all.trim_start_matches('0').len();
    let power = whole.len() as i64 - leading as i64 + exponent;
    (all.trim_matches('0').to_owned(), power)
}
