//! Casts of datetimes and timedeltas between units: the factors, the rules, the loop.
//!
//! Units have a fixed factor between them, except years and months of datetimes, which follow the
//! calendar; for timedeltas a year has the average number of days of 400 years. Results are rounded
//! down, towards the past or the negative; NaT stays NaT. Overflow of 64 bits drops the high bits,
//! as in NumPy 2.4.

use super::Casting;
use crate::dtype::{TimeKind, TimeUnit};
use crate::element::{NAT, civil, days_of_civil};

/// For each unit, by [rank](TimeUnit::rank), how many make the next longer unit.
const COUNTS: [u64; 13] = [1, 12, 1, 7, 24, 60, 60, 1000, 1000, 1000, 1000, 1000, 1000];
const MONTH: usize = 1;
const DAY: usize = 3;
const SECOND: usize = 6;
const DAYS_OF_400_YEARS: u64 = 146_097;

/// How many units of rank `short` make one unit of rank `long`, for ranks with a fixed factor.
/// `None` from 2^56, where NumPy reports an overflow.
fn units_in(long: usize, short: usize) -> Option<u64> {
    let mut factor = 1u64;
    for count in &COUNTS[long + 1..=short] {
        factor = factor.checked_mul(*count).filter(|factor| factor >> 56 == 0)?;
    }
    Some(factor)
}

/// The fraction that converts a count of one unit to another, in lowest terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Scale {
    numerator: i64,
    denominator: i64,
}

/// The factor between two units; `None` where no factor is fixed, or it does not fit in 64 bits.
fn scale(from: TimeUnit, to: TimeUnit) -> Option<Scale> {
    let Some(ours) = from.rank() else { return Some(Scale { numerator: 1, denominator: 1 }) };
    let theirs = to.rank()?;
    let long = ours.min(theirs);
    let short = ours.max(theirs);
    let (many, few) = match (long, short) {
        _ if long == short => (1, 1),
        (0, MONTH) => (12, 1),
        (0 | MONTH, _) => {
            let months = if long == MONTH { 12 } else { 1 };
            if short < DAY {
                (DAYS_OF_400_YEARS, 400 * months * 7)
            } else {
                (DAYS_OF_400_YEARS.checked_mul(units_in(DAY, short)?)?, 400 * months)
            }
        }
        _ => (units_in(long, short)?, 1),
    };
    let (numerator, denominator) = if ours == long { (many, few) } else { (few, many) };
    // NumPy's factor wraps around beyond 64 bits, and is meaningless then
    let numerator = numerator.checked_mul(u64::try_from(from.count).ok()?)?;
    let denominator = denominator.checked_mul(u64::try_from(to.count).ok()?)?;
    let common = common_divisor(numerator, denominator);
    let reduced = |number: u64| i64::try_from(number.checked_div(common)?).ok();
    let scale = Scale { numerator: reduced(numerator)?, denominator: reduced(denominator)? };
    (scale.numerator > 0 && scale.denominator > 0).then_some(scale)
}

fn common_divisor(one: u64, other: u64) -> u64 {
    let mut one = one;
    let mut other = other;
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one
}

/// Whether a cast must go by the calendar, since the years and months of datetimes vary in length.
fn by_calendar(kind: TimeKind, from: TimeUnit, to: TimeUnit) -> bool {
    let has_months = |unit: TimeUnit| unit.rank().is_some_and(|rank| rank <= MONTH);
    kind == TimeKind::Datetime && (has_months(from) || has_months(to))
}

/// Whether a conversion between two units exists, under any rule.
pub(super) fn convertible(kind: TimeKind, from: TimeUnit, to: TimeUnit) -> bool {
    if !by_calendar(kind, from, to) {
        return from == to || scale(from, to).is_some();
    }
    let one = |mut unit: TimeUnit| {
        unit.count = 1;
        unit
    };
    let is_counted = from.rank().is_some() && from.count > 0 && to.count > 0;
    is_counted && scale(one(from), one(to)).is_some()
}

/// Whether a rule allows a cast between two units (np.can_cast).
pub(super) fn can_cast(kind: TimeKind, from: TimeUnit, to: TimeUnit, casting: Casting) -> bool {
    let (Some(ours), Some(theirs)) = (from.rank(), to.rank()) else {
        return casting == Casting::Unsafe || from.rank().is_none();
    };
    // lengths of time: months have no fixed number of days
    let is_fixed = kind == TimeKind::Datetime || (ours <= MONTH) == (theirs <= MONTH);
    match casting {
        Casting::Unsafe => true,
        Casting::SameKind => is_fixed,
        Casting::Safe => is_fixed && ours <= theirs && divides(from, to) || is_same(from, to),
    }
}

/// Whether NumPy treats two units as equally long, such as `[1000us]` and `[ms]`: from seconds on,
/// up to three ranks apart.
fn is_same(from: TimeUnit, to: TimeUnit) -> bool {
    let (Some(ours), Some(theirs)) = (from.rank(), to.rank()) else { return false };
    let is_near = theirs >= SECOND && (1..=3).contains(&ours.saturating_sub(theirs));
    is_near && scale(from, to) == Some(Scale { numerator: 1, denominator: 1 })
}

/// Whether the unit `from` is a whole number of units `to`; `to` is not longer.
fn divides(from: TimeUnit, to: TimeUnit) -> bool {
    let (Some(ours), Some(theirs)) = (from.rank(), to.rank()) else { return from.rank().is_none() };
    if ours <= MONTH && theirs > MONTH {
        // NumPy does not look at the counts here
        return true;
    }
    let (Ok(many), Ok(count)) = (u64::try_from(from.count), u64::try_from(to.count)) else {
        return false;
    };
    // NumPy calls products of 2^56 an overflow
    let many = units_in(ours, theirs).and_then(|factor| many.checked_mul(factor));
    many.filter(|many| many >> 56 == 0).is_some_and(|many| many.checked_rem(count) == Some(0))
}

pub(super) fn run(kind: TimeKind, from: TimeUnit, to: TimeUnit, input: &[u8], output: &mut [u8]) {
    if by_calendar(kind, from, to) {
        return each(input, output, |value| of_calendar(value, from, to));
    }
    // a cast without a scale was refused before
    let Some(Scale { numerator, denominator }) = scale(from, to) else { return };
    each(input, output, |value| {
        // the sign counts before the product overflows
        let down = if value < 0 { denominator - 1 } else { 0 };
        value.wrapping_mul(numerator).wrapping_sub(down).wrapping_div(denominator)
    });
}

fn each(input: &[u8], output: &mut [u8], cast: impl Fn(i64) -> i64) {
    let elements = input.as_chunks::<8>().0.iter().zip(output.as_chunks_mut::<8>().0);
    for (from, to) in elements {
        let value = i64::from_le_bytes(*from);
        *to = if value == NAT { NAT } else { cast(value) }.to_le_bytes();
    }
}

/// Convert a datetime where one of the units is years or months.
fn of_calendar(value: i64, from: TimeUnit, to: TimeUnit) -> i64 {
    let (Some(ours), Some(theirs)) = (from.rank(), to.rank()) else { return NAT };
    let value = value.wrapping_mul(from.count.into());
    let days = if ours < DAY && ours > MONTH {
        i128::from(value.wrapping_mul(7))
    } else if ours >= DAY {
        let a_day = units_in(DAY, ours).map_or(i128::MAX, i128::from);
        i128::from(value).div_euclid(a_day)
    } else {
        0
    };
    let (year, month) = match ours {
        0 => (1970 + i128::from(value), 1),
        MONTH => (1970 + i128::from(value).div_euclid(12), i128::from(value).rem_euclid(12) + 1),
        _ => {
            let (year, month, _) = civil(days);
            (year, month)
        }
    };
    let result = match theirs {
        0 => (year - 1970) as i64,
        MONTH => ((year - 1970) * 12 + month - 1) as i64,
        _ => {
            let days = days_of_civil(year, month) as i64;
            match units_in(DAY.min(theirs), theirs) {
                _ if theirs < DAY => days.div_euclid(7),
                a_day => days.wrapping_mul(a_day.map_or(0, |a_day| a_day as i64)),
            }
        }
    };
    result.div_euclid(to.count.max(1).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(count: i32, name: &str) -> TimeUnit {
        TimeUnit::new(count, name).unwrap()
    }

    fn cast(kind: TimeKind, from: TimeUnit, to: TimeUnit, value: i64) -> i64 {
        let mut output = [0; 8];
        run(kind, from, to, &value.to_le_bytes(), &mut output);
        i64::from_le_bytes(output)
    }

    /// Expected: the numbers of NumPy 2.4.
    #[test]
    fn units_change_as_in_numpy() {
        use TimeKind::{Datetime, Timedelta};
        for (kind, from, to, value, expected) in [
            (Timedelta, unit(1, "s"), unit(1, "m"), -7, -1),
            (Timedelta, unit(1, "s"), unit(7, "s"), -25, -4),
            (Timedelta, unit(1, "M"), unit(1, "D"), -7, -214),
            (Timedelta, unit(1, "D"), unit(1, "M"), 400, 13),
            (Timedelta, unit(1, "Y"), unit(1, "ns"), 1, 31_556_952_000_000_000),
            (Datetime, unit(7, "s"), unit(3, "s"), -25, -59),
            (Datetime, unit(5, "Y"), unit(1, "M"), -7, -420),
            (Datetime, unit(1, "Y"), unit(1, "D"), 1 << 62, 5_730_019_877_896_029_471),
            (Datetime, unit(1, "s"), unit(1, "ns"), 1 << 62, 0),
            (Datetime, unit(1, "M"), unit(1, "D"), 25 * 12 + 2, 9190),
            (Datetime, unit(1, "D"), unit(1, "M"), 9189, 301),
            (Datetime, unit(1, "s"), unit(1, "Y"), -1, -1),
            (Datetime, unit(1, ""), unit(5, "s"), -7, -7),
            (Datetime, unit(1, "Y"), unit(1, "s"), NAT, NAT),
        ] {
            assert_eq!(cast(kind, from, to, value), expected, "{kind:?} {value} {from:?} {to:?}");
        }
    }

    #[test]
    fn units_without_a_factor_are_not_converted() {
        use TimeKind::{Datetime, Timedelta};
        assert!(!convertible(Datetime, unit(1, "D"), unit(1, "as")));
        assert!(!convertible(Timedelta, unit(1, "Y"), unit(1, "ps")));
        assert!(!convertible(Datetime, unit(1, "s"), unit(1, "")));
        assert!(!convertible(Datetime, unit(1, ""), unit(1, "Y")));
        assert!(!convertible(Timedelta, unit(7, "Y"), unit(1, "ns")));
        assert!(convertible(Datetime, unit(7, "Y"), unit(1, "ns")));
        assert!(convertible(Timedelta, unit(1, ""), unit(1, "Y")));
        assert!(convertible(Timedelta, unit(1, ""), unit(1, "")));
    }
}
