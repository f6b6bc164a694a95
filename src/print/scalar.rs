//! The element of an array without axes, which NumPy prints as a scalar: without columns and
//! quotes.

use std::fmt::Write;

use super::PrintOptions;
use super::element::{Formatter, PrintedItem, Words};
use super::strings::{write_bytes, write_plain};
use crate::dtype::{DType, Endian, TimeKind};
use crate::element::{
    Decimal, FloatFormat, Magnitude, Meaning, NAT, Trim, write_datetime, write_timedelta,
};

pub(super) fn write<I: PrintedItem>(
    words: &mut Words<'_, I::Error>,
    dtype: &DType,
    item: &mut I,
    options: &PrintOptions,
) -> Result<(), I::Error> {
    let size = dtype.item_bits() / 8;
    match Meaning::of(dtype) {
        Some(Meaning::Bytes) => {
            // the only scalar that NumPy prints with its type
            words.text.push_str("np.bytes_(");
            write_bytes(words, item, 0..size)?;
            words.text.push(')');
        }
        Some(Meaning::Unicode(endian)) => write_plain(words, item, 0..size, endian)?,
        Some(Meaning::Time(kind, endian, unit)) => match endian.bits(item.bytes(0, size)?) as i64 {
            NAT => words.text.push_str("NaT"),
            value if kind == TimeKind::Datetime => write_datetime(&mut words.text, value, unit),
            value => write_timedelta(&mut words.text, value, unit),
        },
        Some(Meaning::Complex(format, endian)) => {
            write_complex(&mut words.text, format, endian, item.bytes(0, size)?);
        }
        _ => {
            if let Some(mut formatter) = Formatter::new(dtype, options, true) {
                formatter.observe(item)?;
                formatter.decide();
                formatter.write(words, item)?;
            }
        }
    }
    Ok(())
}

/// Whether NumPy has floats of this format; all others are those of `ml_dtypes`.
pub(super) fn is_numpys(format: FloatFormat) -> bool {
    use FloatFormat as F;
    matches!(format, F::HALF | F::SINGLE | F::DOUBLE | F::EXTENDED)
}

/// Append a float as a NumPy scalar prints: `1.0`, `1e+16`.
pub(super) fn write_float(out: &mut String, format: FloatFormat, bits: u128) {
    let plain = Decimal { trim: Trim::LeaveOneZero, ..Decimal::default() };
    write_lone(out, format, bits, plain);
}

/// Append a complex number: `(1+2j)`, `2j`.
fn write_complex(out: &mut String, format: FloatFormat, endian: Endian, bytes: &[u8]) {
    let (real, imaginary) = bytes.split_at(bytes.len() / 2);
    let real = endian.bits(real);
    let imaginary = endian.bits(imaginary);
    let plain = Decimal { trim: Trim::PointToo, ..Decimal::default() };
    if format.decode(real).is_positive_zero() {
        write_lone(out, format, imaginary, plain);
        out.push('j');
    } else {
        out.push('(');
        write_lone(out, format, real, plain);
        write_lone(out, format, imaginary, Decimal { plus: true, ..plain });
        out.push_str("j)");
    }
}

fn write_lone(out: &mut String, format: FloatFormat, bits: u128, plain: Decimal) {
    let float = format.decode(bits);
    match float.magnitude {
        Magnitude::Nan => out.push_str(if plain.plus { "+nan" } else { "nan" }),
        Magnitude::Infinite => out.push_str(match (float.negative, plain.plus) {
            (true, _) => "-inf",
            (false, true) => "+inf",
            (false, false) => "inf",
        }),
        Magnitude::Finite { mantissa, .. } => {
            let greatest = match format {
                FloatFormat::HALF => 1e3,
                FloatFormat::SINGLE => 1e6,
                _ => 1e16,
            };
            if mantissa == 0 || (1e-4..greatest).contains(&float.value().abs()) {
                plain.positional(out, &float);
            } else {
                Decimal { trim: Trim::PointToo, ..plain }.scientific(out, &float);
            }
        }
    }
}

/// Append a float as `ml_dtypes` prints it: in C's `%g`, with six digits.
pub(super) fn write_small_float(out: &mut String, format: FloatFormat, bits: u128) {
    let value = format.value(bits);
    if !value.is_finite() {
        let text = if value.is_nan() { "nan" } else { "inf" };
        out.push_str(if value == f64::NEG_INFINITY { "-" } else { "" });
        return out.push_str(text);
    }
    let scientific = format!("{value:.5e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trimmed = |digits: &str| {
        if digits.contains('.') {
            digits.trim_end_matches('0').trim_end_matches('.').to_owned()
        } else {
            digits.to_owned()
        }
    };
    // writing to a string cannot fail
    let _ = if (-4..6).contains(&exponent) {
        let places = (5 - exponent) as usize;
        out.write_str(&trimmed(&format!("{value:.places$}")))
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        write!(out, "{}e{sign}{:02}", trimmed(digits), exponent.unsigned_abs())
    };
}
