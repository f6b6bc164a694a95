//! Arrays without axes: NumPy prints their element as a scalar, without columns and quotes.

use std::fmt::Write;

use super::element::Formatter;
use super::item::Item;
use super::number::{integer, write_complex, write_float, write_small_float};
use super::options::PrintOptions;
use super::strings::{write_bytes, write_plain, write_void};
use super::words::Words;
use crate::dtype::{DType, Endian, NpyType, Scalar};
use crate::element::{FloatFormat, NAT, SmallFloat, write_datetime, write_timedelta};

/// Append an element as Python's `str` of a NumPy scalar does.
pub(super) fn write<I: Item>(
    words: &mut Words<'_, I::Error>,
    dtype: &DType,
    item: &mut I,
    options: &PrintOptions,
) -> Result<(), I::Error> {
    let size = dtype.item_bits() / 8;
    match dtype {
        DType::Npy(NpyType::Bytes(_)) => {
            // the only scalar that NumPy prints with its type
            words.text.push_str("np.bytes_(");
            write_bytes(words, item, 0..size)?;
            words.text.push(')');
            Ok(())
        }
        DType::Npy(NpyType::Unicode(_, endian)) => write_plain(words, item, 0..size, *endian),
        DType::Npy(NpyType::Void(..)) => write_void(words, item, 0..size),
        DType::Npy(NpyType::Structure(_)) => {
            if let Some(mut formatter) = Formatter::new(dtype, options, true) {
                formatter.observe(item, 0, size)?;
                formatter.decide();
                formatter.write(words, item, 0, size)?;
            }
            Ok(())
        }
        _ => {
            write_value(&mut words.text, dtype, item.bytes(0, size)?);
            Ok(())
        }
    }
}

/// Append a number or a time.
fn write_value(out: &mut String, dtype: &DType, bytes: &[u8]) {
    match dtype {
        &DType::Scalar(scalar, endian) => write_number(out, scalar, endian, bytes),
        DType::Npy(NpyType::Datetime(endian, unit)) => match endian.bits(bytes) as i64 {
            NAT => out.push_str("NaT"),
            value => write_datetime(out, value, unit),
        },
        DType::Npy(NpyType::Timedelta(endian, unit)) => match endian.bits(bytes) as i64 {
            NAT => out.push_str("NaT"),
            value => write_timedelta(out, value, unit),
        },
        DType::Npy(NpyType::LongDouble(endian)) => {
            write_float(out, FloatFormat::Extended, endian.bits(bytes));
        }
        DType::Npy(NpyType::ComplexLongDouble(endian)) => {
            write_complex(out, FloatFormat::Extended, *endian, bytes);
        }
        DType::Npy(_) => {}
    }
}

fn write_number(out: &mut String, scalar: Scalar, endian: Endian, bytes: &[u8]) {
    let bits = endian.bits(bytes);
    match scalar {
        Scalar::Bool => out.push_str(if bits != 0 { "True" } else { "False" }),
        Scalar::F16 => write_float(out, FloatFormat::Half, bits),
        Scalar::F32 => write_float(out, FloatFormat::Single, bits),
        Scalar::F64 => write_float(out, FloatFormat::Double, bits),
        Scalar::C64 => write_complex(out, FloatFormat::Single, endian, bytes),
        Scalar::C128 => write_complex(out, FloatFormat::Double, endian, bytes),
        _ if SmallFloat::of(scalar).is_some() => write_small_float(out, scalar, bits as u32),
        // writing to a string cannot fail
        _ => drop(write!(out, "{}", integer(scalar, bits))),
    }
}
