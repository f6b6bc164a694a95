//! Quotients and roots, exact but for one rounding.

use crate::element::Big;

/// A number of at least 62 bits, of which the lowest is set where anything is missing below it, times
/// a power of two: enough to round it once to any float.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Quotient {
    negative: bool,
    bits: u128,
    power: i32,
}

/// How a number is rounded to a double.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rounding {
    /// To the nearest one, ties to even.
    Nearest,
    /// To the one of both neighbours whose last bit is set.
    Odd,
}

/// The place of the lowest bit of a double.
const LOWEST: i32 = -1074;

impl Quotient {
    /// `number * 2^power / divisor`; 0 for a divisor of 0.
    pub(super) fn new(negative: bool, number: &Big, power: i32, divisor: u64) -> Quotient {
        if divisor == 0 {
            return Quotient { negative, bits: 0, power: 0 };
        }
        let more = 128u64.saturating_sub(number.bits()) as u32;
        let mut quotient = number.shifted(more);
        let rest = quotient.divide_by(divisor);
        let (bits, below, lost) = quotient.leading();
        let bits = bits | u128::from(rest > 0 || lost);
        Quotient { negative, bits, power: power - more as i32 + below as i32 }
    }

    /// The root of `number * 2^power`, divided by `divisor`; 0 for a divisor of 0.
    pub(super) fn root(number: &Big, power: i32, divisor: u64) -> Quotient {
        if divisor == 0 || number.bits() == 0 {
            return Quotient { negative: false, bits: 0, power: 0 };
        }
        // 126 bits are left when it is divided by the square of the divisor
        let more = (126 + 128u64).saturating_sub(number.bits()) as i32;
        let more = more + (power - more).rem_euclid(2);
        let mut square = number.shifted(more as u32);
        let mut lost = square.divide_by(divisor) > 0;
        lost |= square.divide_by(divisor) > 0;
        let (mut bits, below, dropped) = square.leading();
        let mut power = power - more + below as i32;
        lost |= dropped;
        if power % 2 != 0 {
            lost |= bits & 1 > 0;
            bits >>= 1;
            power += 1;
        }
        let root = bits.isqrt();
        lost |= root * root != bits;
        Quotient { negative: false, bits: root << 1 | u128::from(lost), power: power / 2 - 1 }
    }

    /// The nearest double, ties to even.
    pub(super) fn nearest(self) -> f64 {
        self.double(Rounding::Nearest)
    }

    /// The double from which it is rounded to any float of at most 51 bits as from itself.
    pub(super) fn odd(self) -> f64 {
        self.double(Rounding::Odd)
    }

    fn double(self, rounding: Rounding) -> f64 {
        let Quotient { negative, bits, power } = self;
        let sign = if negative { -1.0 } else { 1.0 };
        if bits == 0 {
            return 0.0;
        }
        let top = power + bits.ilog2() as i32;
        if top > 1023 {
            return sign * f64::INFINITY;
        }
        let quantum = (top - 52).max(LOWEST);
        let (kept, up) = match u32::try_from(quantum - power) {
            Err(_) | Ok(0) => (bits << (power - quantum), false),
            Ok(drop) => {
                let kept = bits.checked_shr(drop).unwrap_or(0);
                let rest = bits - kept.checked_shl(drop).unwrap_or(0);
                let half = 1u128.checked_shl(drop - 1);
                let up = match rounding {
                    Rounding::Odd => rest > 0 && kept & 1 == 0,
                    Rounding::Nearest => {
                        half.is_some_and(|half| rest > half || rest == half && kept & 1 == 1)
                    }
                };
                (kept, up)
            }
        };
        // a carry out of the mantissa is one into the exponent
        let code = (((quantum - LOWEST) as u64) << 52) + kept as u64 + u64::from(up);
        sign * f64::from_bits(code)
    }
}
