//! Datetimes and lengths of time, as NumPy spells them.

use std::fmt::Write;

use crate::dtype::TimeUnit;

/// The value that stands for "not a time".
pub(crate) const NAT: i64 = i64::MIN;

/// The [rank](TimeUnit::rank) of seconds; each of those behind them is a thousandth of the one before.
const SECOND: usize = 6;

/// Append a point in time in ISO 8601, as exact as its unit; NumPy has no text for the generic unit,
/// of which the number is shown.
pub(crate) fn write_datetime(out: &mut String, value: i64, unit: TimeUnit) {
    let value = value.wrapping_mul(unit.count.into());
    // writing to a string cannot fail
    let _ = match unit.name() {
        "Y" => write!(out, "{:04}", 1970 + i128::from(value)),
        "M" => {
            let (year, month) = (value.div_euclid(12), value.rem_euclid(12));
            write!(out, "{:04}-{:02}", 1970 + i128::from(year), month + 1)
        }
        "W" => write_date(out, value.wrapping_mul(7)),
        "D" => write_date(out, value),
        "h" => write_clock(out, value, 1, 24),
        "m" => write_clock(out, value, 2, 24 * 60),
        "s" => write_clock(out, value, 3, 24 * 60 * 60),
        _ => match unit.rank() {
            Some(rank) => {
                let width = 3 * (rank - SECOND);
                let second = 10i64.pow(width as u32);
                let clock = write_clock(out, value.div_euclid(second), 3, 24 * 60 * 60);
                let rest = value.rem_euclid(second);
                clock.and_then(|()| write!(out, ".{rest:0width$}"))
            }
            None => write!(out, "{value}"),
        },
    };
}

/// Append the day and the time of day, given in hours, minutes or seconds (`parts` of the clock), of
/// which a day has so many.
fn write_clock(out: &mut String, value: i64, parts: u32, a_day: i64) -> std::fmt::Result {
    write_date(out, value.div_euclid(a_day))?;
    let mut rest = value.rem_euclid(a_day);
    let mut unit = a_day / 24;
    for part in 0..parts {
        let sign = if part == 0 { 'T' } else { ':' };
        write!(out, "{sign}{:02}", rest / unit)?;
        rest %= unit;
        unit /= 60;
    }
    Ok(())
}

/// Append the date of so many days after the first of January 1970, in the Gregorian calendar.
fn write_date(out: &mut String, days: i64) -> std::fmt::Result {
    let (year, month, date) = civil(days.into());
    write!(out, "{year:04}-{month:02}-{date:02}")
}

/// Year, month and day of the month, so many days after the first of January 1970, in the Gregorian
/// calendar.
pub(crate) fn civil(days: i128) -> (i128, i128, i128) {
    // years from the first of March on, in eras of 400 years, so that leap days come last
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let date = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year + next, month, date)
}

/// The days from the first of January 1970 to the first of a month, 1 to 12.
pub(crate) fn days_of_civil(year: i128, month: i128) -> i128 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (era, year) = (year.div_euclid(400), year.rem_euclid(400));
    era * 146_097 + 365 * year + year / 4 - year / 100 + (153 * month + 2) / 5 - 719_468
}

/// Append a length of time as NumPy's scalars print: `25 seconds`.
pub(crate) fn write_timedelta(out: &mut String, value: i64, unit: TimeUnit) {
    // writing to a string cannot fail
    let _ = write!(out, "{} {}", value.wrapping_mul(unit.count.into()), unit.plural());
}
