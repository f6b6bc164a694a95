//! The element of an array without axes, which NumPy prints as a scalar: without columns and
//! quotes; and strings and plain bytes as Python's `repr` spells them.

use std::fmt::Write;
use std::ops::Range;

use super::PrintOptions;
use super::element::{CHUNK, Formatter, PrintedItem, Words};
use crate::dtype::{CodePoints, DType, Endian, TimeKind};
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

/// Visit a range of an element in pieces of a multiple of 4 bytes, until `visit` returns `false`.
fn each_chunk<I: PrintedItem>(
    item: &mut I,
    range: Range<u64>,
    mut visit: impl FnMut(&[u8]) -> Result<bool, I::Error>,
) -> Result<(), I::Error> {
    let mut at = range.start;
    while at < range.end {
        let len = CHUNK.min(range.end - at);
        if !visit(item.bytes(at, len)?)? {
            break;
        }
        at += len;
    }
    Ok(())
}

/// Cut off the padding of a string: zeros at its end, in characters of `unit` bytes.
fn without_padding<I: PrintedItem>(
    item: &mut I,
    range: Range<u64>,
    unit: u64,
) -> Result<Range<u64>, I::Error> {
    let mut end = range.end;
    while end > range.start {
        let len = CHUNK.min(end - range.start);
        let bytes = item.bytes(end - len, len)?;
        if let Some(last) = bytes.iter().rposition(|&byte| byte != 0) {
            let used = end - len + last as u64 + 1 - range.start;
            return Ok(range.start..range.start + used.next_multiple_of(unit));
        }
        end -= len;
    }
    Ok(range.start..range.start)
}

fn code_points(bytes: &[u8], endian: Endian) -> impl Iterator<Item = u32> + use<'_> {
    bytes.chunks_exact(4).map(move |point| endian.bits(point) as u32)
}

/// Append an `S` element as `b'text'`.
pub(super) fn write_bytes<I: PrintedItem>(
    words: &mut Words<'_, I::Error>,
    item: &mut I,
    range: Range<u64>,
) -> Result<(), I::Error> {
    let range = without_padding(item, range, 1)?;
    let mut single = false;
    let mut double = false;
    each_chunk(item, range.clone(), |bytes| {
        single |= bytes.contains(&b'\'');
        double |= bytes.contains(&b'"');
        Ok(!double)
    })?;
    let points = CodePoints::new(single, double);
    words.text.extend(['b', points.quote()]);
    each_chunk(item, range, |bytes| {
        bytes.iter().for_each(|&byte| points.write_byte(&mut words.text, byte));
        words.go_on()
    })?;
    words.text.push(points.quote());
    Ok(())
}

/// Append a `U` element as `'text'`.
pub(super) fn write_unicode<I: PrintedItem>(
    words: &mut Words<'_, I::Error>,
    item: &mut I,
    range: Range<u64>,
    endian: Endian,
) -> Result<(), I::Error> {
    let range = without_padding(item, range, 4)?;
    let mut single = false;
    let mut double = false;
    each_chunk(item, range.clone(), |bytes| {
        single |= code_points(bytes, endian).any(|code| code == u32::from('\''));
        double |= code_points(bytes, endian).any(|code| code == u32::from('"'));
        Ok(!double)
    })?;
    let points = CodePoints::new(single, double);
    words.text.push(points.quote());
    each_chunk(item, range, |bytes| {
        code_points(bytes, endian).for_each(|code| points.write(&mut words.text, code));
        words.go_on()
    })?;
    words.text.push(points.quote());
    Ok(())
}

fn write_plain<I: PrintedItem>(
    words: &mut Words<'_, I::Error>,
    item: &mut I,
    range: Range<u64>,
    endian: Endian,
) -> Result<(), I::Error> {
    let range = without_padding(item, range, 4)?;
    let replaced = |code| char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
    each_chunk(item, range, |bytes| {
        words.text.extend(code_points(bytes, endian).map(replaced));
        words.go_on()
    })
}

pub(super) fn write_void<I: PrintedItem>(
    words: &mut Words<'_, I::Error>,
    item: &mut I,
    range: Range<u64>,
) -> Result<(), I::Error> {
    words.text.push_str("b'");
    each_chunk(item, range, |bytes| {
        for byte in bytes {
            // writing to a string cannot fail
            let _ = write!(words.text, "\\x{byte:02X}");
        }
        words.go_on()
    })?;
    words.text.push('\'');
    Ok(())
}
