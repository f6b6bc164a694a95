//! Arrays without axes: NumPy prints their element as a scalar, without columns and quotes.

use super::element::Formatter;
use super::item::PrintedItem;
use super::number::write_complex;
use super::options::PrintOptions;
use super::strings::{write_bytes, write_plain};
use super::words::Words;
use crate::dtype::{DType, TimeKind};
use crate::element::{Meaning, NAT, write_datetime, write_timedelta};

/// Append an element as Python's `str` of a NumPy scalar does.
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
