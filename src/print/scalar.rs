//! The element of an array without axes, which NumPy prints as a scalar: without columns and
//! quotes; strings and plain bytes as by Python's `repr`.

use std::fmt::Write;

use super::PrintOptions;
use super::element::{Formatter, Words};
use crate::dtype::{CodePoints, DType, Endian, TimeKind};
use crate::element::{
    Decimal, FloatFormat, Magnitude, Meaning, NAT, Trim, write_datetime, write_timedelta,
};

pub(super) fn write<E>(
    words: &mut Words<'_, E>,
    dtype: &DType,
    item: &[u8],
    options: &PrintOptions,
) -> Result<(), E> {
    match Meaning::of(dtype) {
        Some(Meaning::Bytes) => {
            // the only scalar that NumPy prints with its type
            words.text.push_str("np.bytes_(");
            write_bytes(words, item)?;
            words.text.push(')');
        }
        Some(Meaning::Unicode(endian)) => write_plain(words, item, endian)?,
        Some(Meaning::Time(kind, endian, unit)) => match endian.bits(item) as i64 {
            NAT => words.text.push_str("NaT"),
            value if kind == TimeKind::Datetime => write_datetime(&mut words.text, value, unit),
            value => write_timedelta(&mut words.text, value, unit),
        },
        Some(Meaning::Complex(format, endian)) => {
            write_complex(&mut words.text, format, endian, item);
        }
        _ => {
            if let Some(mut formatter) = Formatter::new(dtype, options, true) {
                formatter.observe(item);
                formatter.decide();
                formatter.write(words, item)?;
            }
        }
    }
    Ok(())
}

/// Whether NumPy has floats of this format; other formats belong to `ml_dtypes`.
pub(super) fn is_numpys(format: FloatFormat) -> bool {
    use FloatFormat as F;
    matches!(format, F::HALF | F::SINGLE | F::DOUBLE | F::EXTENDED)
}

/// Append a float as NumPy prints a scalar: `1.0`, `1e+16`.
pub(super) fn write_float(out: &mut String, format: FloatFormat, bits: u128) {
    let plain = Decimal { trim: Trim::LeaveOneZero, ..Decimal::default() };
    write_lone(out, format, bits, plain);
}

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

/// Append a float as `ml_dtypes` prints it: by C's `%g`, with six digits.
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

/// The number of bytes whose text is written at a time.
const CHUNK: usize = 16 << 10;

/// Write the text of bytes in pieces, until no more is wanted.
fn write_chunks<E>(
    words: &mut Words<'_, E>,
    bytes: &[u8],
    mut write: impl FnMut(&mut String, &[u8]),
) -> Result<(), E> {
    for chunk in bytes.chunks(CHUNK) {
        write(&mut words.text, chunk);
        if !words.go_on()? {
            break;
        }
    }
    Ok(())
}

/// Cut off the padding of a string: zeros at the end, in characters of `unit` bytes.
fn without_padding(bytes: &[u8], unit: usize) -> &[u8] {
    let used = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    &bytes[..used.next_multiple_of(unit)]
}

fn code_points(bytes: &[u8], endian: Endian) -> impl Iterator<Item = u32> + use<'_> {
    bytes.chunks_exact(4).map(move |point| endian.bits(point) as u32)
}

/// Append an `S` element as `b'text'`.
pub(super) fn write_bytes<E>(words: &mut Words<'_, E>, item: &[u8]) -> Result<(), E> {
    let bytes = without_padding(item, 1);
    let points = CodePoints::new(bytes.contains(&b'\''), bytes.contains(&b'"'));
    words.text.extend(['b', points.quote()]);
    write_chunks(words, bytes, |text, chunk| {
        chunk.iter().for_each(|&byte| points.write_byte(text, byte));
    })?;
    words.text.push(points.quote());
    Ok(())
}

/// Append a `U` element as `'text'`.
pub(super) fn write_unicode<E>(
    words: &mut Words<'_, E>,
    item: &[u8],
    endian: Endian,
) -> Result<(), E> {
    let bytes = without_padding(item, 4);
    let has = |char: char| code_points(bytes, endian).any(|code| code == u32::from(char));
    let points = CodePoints::new(has('\''), has('"'));
    words.text.push(points.quote());
    write_chunks(words, bytes, |text, chunk| {
        code_points(chunk, endian).for_each(|code| points.write(text, code));
    })?;
    words.text.push(points.quote());
    Ok(())
}

fn write_plain<E>(words: &mut Words<'_, E>, item: &[u8], endian: Endian) -> Result<(), E> {
    let replaced = |code| char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
    write_chunks(words, without_padding(item, 4), |text, chunk| {
        text.extend(code_points(chunk, endian).map(replaced));
    })
}

pub(super) fn write_void<E>(words: &mut Words<'_, E>, item: &[u8]) -> Result<(), E> {
    words.text.push_str("b'");
    write_chunks(words, item, |text, chunk| {
        for byte in chunk {
            // writing to a string cannot fail
            let _ = write!(text, "\\x{byte:02X}");
        }
    })?;
    words.text.push('\'');
    Ok(())
}
