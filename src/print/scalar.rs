//! Arrays without axes: NumPy prints their element as a scalar, without columns and quotes.

use std::fmt::Write;

use super::element::Formatter;
use super::number::{integer, write_complex, write_float, write_small_float};
use super::options::PrintOptions;
use super::strings::{code_points, write_bytes, write_void};
use crate::dtype::{DType, Endian, NpyType, Scalar};
use crate::element::{FloatFormat, NAT, SmallFloat, write_datetime, write_timedelta};

/// Append an element as Python's `str` of a NumPy scalar does.
pub(super) fn write(out: &mut String, dtype: &DType, bytes: &[u8], options: &PrintOptions) {
    match dtype {
        &DType::Scalar(scalar, endian) => write_number(out, scalar, endian, bytes),
        DType::Npy(npy) => match *npy {
            NpyType::Bytes(_) => {
                // the only scalar that NumPy prints with its type
                out.push_str("np.bytes_(");
                write_bytes(out, bytes);
                out.push(')');
            }
            NpyType::Unicode(_, endian) => {
                let replaced = |code| char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
                out.extend(code_points(bytes, endian).map(replaced));
            }
            NpyType::Datetime(endian, unit) => match endian.bits(bytes) as i64 {
                NAT => out.push_str("NaT"),
                value => write_datetime(out, value, &unit),
            },
            NpyType::Timedelta(endian, unit) => match endian.bits(bytes) as i64 {
                NAT => out.push_str("NaT"),
                value => write_timedelta(out, value, &unit),
            },
            NpyType::LongDouble(endian) => {
                write_float(out, FloatFormat::Extended, endian.bits(bytes));
            }
            NpyType::ComplexLongDouble(endian) => {
                write_complex(out, FloatFormat::Extended, endian, bytes);
            }
            NpyType::Structure(_) => {
                if let Some(mut formatter) = Formatter::new(dtype, options, true) {
                    formatter.observe(bytes);
                    formatter.decide();
                    formatter.write(out, bytes);
                }
            }
            NpyType::Void(..) => write_void(out, bytes),
        },
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
