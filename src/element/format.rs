//! Elements written as text: numbers with the fewest digits that keep their value, dates and times.

use std::fmt;
use std::fmt::Write;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use super::float::FloatFormat;
use crate::dtype::{DType, Endian, Integers, NpyType, NumberKind, TimeKind, TimeUnit};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notation {
    /// As np.loadtxt reads it: `nan`, `inf`, `1.0+2.0j`, booleans as 1 and 0.
    Plain,
    /// As JSON: `"NaN"`, `"Infinity"`, `[1.0, 2.0]`, `true`.
    Json,
}

/// Append a number; fails for meanings that are not numbers.
pub(crate) fn write_number(
    text: &mut String,
    meaning: &Meaning,
    bytes: &[u8],
    notation: Notation,
) -> fmt::Result {
    match *meaning {
        Meaning::Bool if notation == Notation::Json => write!(text, "{}", bytes != [0]),
        Meaning::Bool => text.write_str(if bytes != [0] { "1" } else { "0" }),
        Meaning::Integer(integers) => {
            let value = integers.value(bytes);
            let mut digits = itoa::Buffer::new();
            let signed = integers.signed;
            text.write_str(if signed {
                digits.format(value as i64)
            } else {
                digits.format(value as u64)
            })
        }
        Meaning::Float(format, endian) => write_float(text, format, endian.bits(bytes), notation),
        Meaning::Complex(format, endian) => {
            let (re, im) = bytes.split_at(bytes.len() / 2);
            let re = endian.bits(re);
            let im = endian.bits(im);
            if notation == Notation::Json {
                text.write_char('[')?;
                write_float(text, format, re, notation)?;
                text.write_str(", ")?;
                write_float(text, format, im, notation)?;
                return text.write_char(']');
            }
            write_float(text, format, re, notation)?;
            let mut imaginary = String::new();
            write_float(&mut imaginary, format, im, notation)?;
            let sign = if imaginary.starts_with('-') { "" } else { "+" };
            write!(text, "{sign}{imaginary}j")
        }
        _ => Err(fmt::Error),
    }
}

/// Append a float with the fewest digits that keep its value. Floats of 8 bits are written exactly: one or two
/// digits would mislead readers that parse them as wider floats.
fn write_float(
    text: &mut String,
    format: FloatFormat,
    bits: u128,
    notation: Notation,
) -> fmt::Result {
    match format.mantissa {
        23 => float(text, f32::from_bits(bits as u32), notation),
        7 | 10 => float(text, known_shortest(format, bits as u16), notation),
        _ => float(text, format.value(bits), notation),
    }
}

/// Numbers that `zmij` writes without an exponent: several times faster than the standard library. Of two texts that
/// are equally near it takes the even one, as NumPy does.
const PLAIN: Range<f64> = 1e-4..1e13;

fn float<F>(text: &mut String, value: F, notation: Notation) -> fmt::Result
where
    F: fmt::Debug + zmij::Float + Into<f64>,
{
    let wide = value.into();
    if wide == 0.0 || PLAIN.contains(&wide.abs()) {
        return text.write_str(zmij::Buffer::new().format_finite(value));
    }
    let printed = format!("{value:?}");
    text.write_str(match (printed.as_str(), notation) {
        ("NaN", Notation::Json) => "\"NaN\"",
        ("inf", Notation::Json) => "\"Infinity\"",
        ("-inf", Notation::Json) => "\"-Infinity\"",
        ("NaN", Notation::Plain) => "nan",
        (finite, _) => finite,
    })
}

/// The double with the fewest decimal digits that rounds to a float of 16 bits. It takes long to find, so it is
/// cached for each code.
fn known_shortest(format: FloatFormat, code: u16) -> f64 {
    static OF_HALF: [AtomicU64; 1 << 16] = [const { AtomicU64::new(0) }; 1 << 16];
    static OF_BRAIN: [AtomicU64; 1 << 16] = [const { AtomicU64::new(0) }; 1 << 16];
    let known = if format.mantissa == 10 { &OF_HALF } else { &OF_BRAIN };
    let slot = &known[usize::from(code)];
    match slot.load(Ordering::Relaxed) {
        // also for 0.0, which is found at once
        0 => {
            let short = shortest(format, code);
            slot.store(short.to_bits(), Ordering::Relaxed);
            short
        }
        bits => f64::from_bits(bits),
    }
}

fn shortest(format: FloatFormat, code: u16) -> f64 {
    let value = format.value(code.into());
    let short = (0..17).find_map(|digits| {
        let short = format!("{value:.digits$e}").parse().ok()?;
        (format.round(short) == u32::from(code)).then_some(short)
    });
    short.unwrap_or(value)
}

/// How the bytes of an item are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    Bool,
    Integer(Integers),
    Float(FloatFormat, Endian),
    /// Two floats, of half the bytes each.
    Complex(FloatFormat, Endian),
    /// A count of units; [`NAT`](super::NAT) is no time.
    Time(TimeKind, Endian, TimeUnit),
    Bytes,
    Unicode(Endian),
    Void,
}

impl Meaning {
    /// The meaning of a dtype's items; `None` for structures, and for floats of which several share a byte.
    #[inline]
    pub(crate) fn of(dtype: &DType) -> Option<Meaning> {
        Some(match *dtype {
            DType::Scalar(scalar, endian) => match scalar.kind() {
                NumberKind::Bool => Meaning::Bool,
                NumberKind::Signed | NumberKind::Unsigned => {
                    Meaning::Integer(Integers::new(dtype)?)
                }
                NumberKind::Float => Meaning::Float(FloatFormat::of(scalar)?, endian),
                NumberKind::Complex => Meaning::Complex(FloatFormat::of(scalar.part()?)?, endian),
            },
            DType::Npy(NpyType::LongDouble(endian)) => {
                Meaning::Float(FloatFormat::EXTENDED, endian)
            }
            DType::Npy(NpyType::ComplexLongDouble(endian)) => {
                Meaning::Complex(FloatFormat::EXTENDED, endian)
            }
            DType::Npy(NpyType::Time(kind, endian, unit)) => Meaning::Time(kind, endian, unit),
            DType::Npy(NpyType::Bytes(_)) => Meaning::Bytes,
            DType::Npy(NpyType::Unicode(_, endian)) => Meaning::Unicode(endian),
            DType::Npy(NpyType::Void(..)) | DType::Blocks(_) => Meaning::Void,
            DType::Npy(NpyType::Structure(_)) => return None,
        })
    }
}

/// NumPy's "not a time".
pub(crate) const NAT: i64 = i64::MIN;

/// The [rank](TimeUnit::rank) of seconds; each later unit is a thousandth of the previous one.
const SECOND: usize = 6;

/// Append a point in time in ISO 8601, as precise as its unit. For the generic unit, which has no text in NumPy,
/// append the number.
pub(crate) fn write_datetime(out: &mut String, value: i64, unit: TimeUnit) {
    let value = value.wrapping_mul(unit.count.into());
    // writing to a string cannot fail
    let _ = match unit.name() {
        "Y" => write!(out, "{:04}", 1970 + i128::from(value)),
        "M" => {
            let year = value.div_euclid(12);
            let month = value.rem_euclid(12);
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

/// Append the date and the time of day of `value`, which counts hours, minutes or seconds: `parts` is 1, 2 or 3, and
/// `a_day` the count per day.
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

fn write_date(out: &mut String, days: i64) -> std::fmt::Result {
    let (year, month, date) = civil(days.into());
    write!(out, "{year:04}-{month:02}-{date:02}")
}

/// Year, month (1 to 12) and day (1 to 31) in the Gregorian calendar, from days since 1970-01-01.
pub(crate) fn civil(days: i128) -> (i128, i128, i128) {
    // years begin on the first of March, in eras of 400 years, so that leap days come last
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day = days.rem_euclid(146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let date = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year + next, month, date)
}

/// Days from 1970-01-01 to the first day of a month (1 to 12).
pub(crate) fn days_of_civil(year: i128, month: i128) -> i128 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let era = year.div_euclid(400);
    let year = year.rem_euclid(400);
    era * 146_097 + 365 * year + year / 4 - year / 100 + (153 * month + 2) / 5 - 719_468
}

/// Append a length of time as NumPy prints it: `25 seconds`.
pub(crate) fn write_timedelta(out: &mut String, value: i64, unit: TimeUnit) {
    // writing to a string cannot fail
    let _ = write!(out, "{} {}", value.wrapping_mul(unit.count.into()), unit.plural());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text<F: fmt::Debug + zmij::Float + Into<f64>>(value: F) -> String {
        let mut text = String::new();
        float(&mut text, value, Notation::Plain).unwrap();
        text
    }

    proptest! {
        #[test]
        fn floats_have_the_notation_of_the_standard_library(bits: u64, single: u32) {
            let value = f64::from_bits(bits);
            // exponents in the middle, where other notations begin
            let near = f64::from_bits((bits >> 7) | (0x3f << 56));
            for value in [value, near] {
                let standard = format!("{value:?}").replace("NaN", "nan");
                let written = text(value);
                prop_assert!(written.len() == standard.len(), "{written} {standard}");
                prop_assert!(value.is_nan() || written.parse() == Ok(value), "{written}");
            }
            let value = f32::from_bits(single);
            let standard = format!("{value:?}").replace("NaN", "nan");
            let written = text(value);
            prop_assert!(written.len() == standard.len(), "{written} {standard}");
            prop_assert!(value.is_nan() || written.parse() == Ok(value), "{written}");
        }
    }

    /// Expected: NumPy's `repr`; the standard library rounds these numbers up.
    #[test]
    fn of_two_nearest_texts_the_even_one_is_written() {
        assert_eq!(text(381.0_f32 / 256.0), "1.4882812");
        assert_eq!(text(-693.0_f32 / 256.0), "-2.7070312");
        assert_eq!(text(-0.0_f64), "-0.0");
    }
}
