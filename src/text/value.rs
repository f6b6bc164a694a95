//! A single element as text.

use std::fmt::{self, Write};

use crate::dtype::{DType, Endian, Scalar};
use crate::element::{NAT, Notation, ucs4_string, utf8_string, write_datetime, write_number};
use crate::format::text::{TextField, TextValue};
use crate::format::{TextFormat, write_printable_json};

/// Append an element of json: a value, or an object of fields.
///
/// # Errors
/// A string that is no text.
pub(super) fn write_json(text: &mut String, value: &TextValue, bytes: &[u8]) -> fmt::Result {
    match value {
        TextValue::Fields(fields) => {
            for (at, field) in fields.iter().enumerate() {
                text.push_str(if at > 0 { ", " } else { "{" });
                text.push_str(&quoted(&field.name)?);
                text.push_str(": ");
                write_lists(text, field, &field.shape, &bytes[field.offset..])?;
            }
            text.push_str(if fields.is_empty() { "{}" } else { "}" });
            Ok(())
        }
        TextValue::Number(scalar, endian) => {
            number(text, (*scalar, *endian), bytes, Notation::Json)
        }
        _ => match single(value, bytes)? {
            Single::Text(string) => text.write_str(&quoted(&string)?),
            Single::Word(word) => text.write_str(&word),
        },
    }
}

/// Append the values of a field, in a list for each of its axes.
fn write_lists(text: &mut String, field: &TextField, shape: &[u64], bytes: &[u8]) -> fmt::Result {
    let Some((&len, inner)) = shape.split_first() else {
        return write_json(text, &field.value, &bytes[..field.size]);
    };
    let step = inner.iter().product::<u64>() as usize * field.size;
    text.push('[');
    for at in 0..len as usize {
        text.push_str(if at > 0 { ", " } else { "" });
        write_lists(text, field, inner, &bytes[at * step..])?;
    }
    text.push(']');
    Ok(())
}

/// Append an element of csv or txt: a value, or those of all fields, with a separator between them.
/// A line of one empty string is not to be empty (`alone`).
///
/// # Errors
/// A string that is no text.
pub(super) fn write_columns(
    text: &mut String,
    (format, alone): (TextFormat, bool),
    value: &TextValue,
    bytes: &[u8],
) -> fmt::Result {
    match value {
        TextValue::Fields(fields) => {
            let mut first = true;
            for field in fields {
                let count = field.shape.iter().product::<u64>() as usize;
                // a field of no values has no columns
                for at in (0..count).filter(|_| field.value.columns() > 0) {
                    if !std::mem::take(&mut first) {
                        text.push(if format == TextFormat::Csv { ',' } else { ' ' });
                    }
                    let bytes = &bytes[field.offset + at * field.size..][..field.size];
                    write_columns(text, (format, alone), &field.value, bytes)?;
                }
            }
            Ok(())
        }
        TextValue::Number(scalar, endian) => {
            number(text, (*scalar, *endian), bytes, Notation::Plain)
        }
        _ => match single(value, bytes)? {
            Single::Text(string) => write_string(text, format, alone, &string),
            Single::Word(word) => text.write_str(&word),
        },
    }
}

/// A value that is no number.
enum Single {
    /// A text, in quotes where the format has them.
    Text(String),
    /// A number of units.
    Word(String),
}

fn single(value: &TextValue, bytes: &[u8]) -> Result<Single, fmt::Error> {
    let text = |text: Option<String>| text.map(Single::Text).ok_or(fmt::Error);
    let time = |endian: &Endian| match endian.bits(bytes) as i64 {
        NAT => None,
        time => Some(time),
    };
    let not_a_time = || Single::Text("NaT".to_owned());
    match value {
        TextValue::Bytes => text(utf8_string(bytes).map(str::to_owned)),
        TextValue::Unicode(endian) => text(ucs4_string(bytes, *endian)),
        TextValue::Datetime(endian, unit) => Ok(time(endian).map_or_else(not_a_time, |time| {
            let mut text = String::new();
            write_datetime(&mut text, time, unit);
            Single::Text(text)
        })),
        TextValue::Timedelta(endian) => {
            Ok(time(endian).map_or_else(not_a_time, |time| Single::Word(time.to_string())))
        }
        TextValue::Number(..) | TextValue::Fields(_) => Err(fmt::Error),
    }
}

/// Append a number.
fn number(
    text: &mut String,
    (scalar, endian): (Scalar, Endian),
    bytes: &[u8],
    notation: Notation,
) -> fmt::Result {
    if endian == Endian::Little {
        return write_number(text, scalar, bytes, notation);
    }
    let mut swapped = bytes.to_vec();
    let width = DType::Scalar(scalar, endian).swap_width();
    swapped.chunks_exact_mut(width).for_each(<[u8]>::reverse);
    write_number(text, scalar, &swapped, notation)
}

/// Append a string of csv or txt, in quotes where the format needs them.
fn write_string(text: &mut String, format: TextFormat, alone: bool, value: &str) -> fmt::Result {
    let special = |c: char| match format {
        TextFormat::Csv => matches!(c, ',' | '"' | '\n' | '\r'),
        _ => c.is_whitespace() || matches!(c, '"' | '#'),
    };
    // as Python's csv: a row of one empty string is not an empty line
    let bare = match format {
        TextFormat::Csv => !value.is_empty() || !alone,
        _ => !value.is_empty(),
    };
    match bare && !value.contains(special) {
        true => text.write_str(value),
        false => write!(text, "\"{}\"", value.replace('"', "\"\"")),
    }
}

fn quoted(value: &str) -> Result<String, fmt::Error> {
    let mut text = String::new();
    write_printable_json(&mut text, &serde_json::to_string(value).map_err(|_| fmt::Error)?)?;
    Ok(text)
}
