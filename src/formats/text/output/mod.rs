//! Text as an output: csv, tsv, txt and json.

use std::fmt::Write;
use std::{fmt, io, iter, str};

use writer::{Out, TextError, TextSink};

use crate::dtype::{DType, Endian, NpyType, Step, TimeKind, walk};
use crate::element::{Meaning, NAT, Notation, check_held, write_datetime, write_number};
use crate::error::Cause;
use crate::formats::headed::PLAIN;
use crate::formats::text::stored_dtype;
use crate::input::TextFormat;
use crate::output::layout::{OutputFormat, OutputLayout, OutputTensor, Request, only};
use crate::output::{LayoutFault, MAX_EMPTY_ROWS};
use crate::sink::{self, Destination, Draft, SinkError, SinkOptions};
use crate::tensor::{printable, write_printable_json};

mod writer;

const TEXT: OutputFormat = OutputFormat { is_text: true, stored_dtype, ..PLAIN };

pub(crate) static CSV: OutputFormat = OutputFormat {
    name: "csv",
    about: "Text, columns separated by commas",
    extensions: &["csv"],
    lay_out: |request| lay_out(TextFormat::Csv, request),
    ..TEXT
};

pub(crate) static TSV: OutputFormat = OutputFormat {
    name: "tsv",
    about: "Text, columns separated by tabs",
    extensions: &["tsv"],
    lay_out: |request| lay_out(TextFormat::Tsv, request),
    ..TEXT
};

pub(crate) static TXT: OutputFormat = OutputFormat {
    name: "txt",
    about: "Text, columns separated by spaces",
    extensions: &["txt"],
    lay_out: |request| lay_out(TextFormat::Txt, request),
    ..TEXT
};

pub(crate) static JSON: OutputFormat = OutputFormat {
    name: "json",
    about: "Text, nested lists",
    extensions: &["json"],
    lay_out: |request| lay_out(TextFormat::Json, request),
    ..TEXT
};

fn lay_out(form: TextFormat, request: &Request<'_>) -> Result<Box<dyn OutputLayout>, Cause> {
    let format = form.name();
    let only = only(request.tensors, format)?;
    let ndim = only.shape.len();
    let most = form.max_ndim();
    if ndim > most {
        return Err(LayoutFault::Axes { format, most, ndim }.into());
    }
    check_held(&only.dtype).map_err(LayoutFault::Element)?;
    let rows = form.empty_rows(&only.shape);
    if rows > MAX_EMPTY_ROWS {
        return Err(LayoutFault::EmptyRows { format, shape: only.shape.clone(), rows }.into());
    }
    let is_shown = request.is_shown && form != TextFormat::Json;
    Ok(Box::new(TextLayout { form, tensor: only, is_shown }))
}

/// The layout of an output whose elements become text.
struct TextLayout {
    form: TextFormat,
    tensor: OutputTensor,
    /// Whether a terminal shows the text, which would obey codes in strings.
    is_shown: bool,
}

impl OutputLayout for TextLayout {
    fn size(&self) -> Option<u64> {
        None
    }

    fn starts(&self) -> Box<dyn Iterator<Item = (usize, u64)> + '_> {
        Box::new(iter::once((0, 0)))
    }

    fn create(
        &self,
        target: &Destination,
        options: SinkOptions,
    ) -> Result<Box<dyn Draft>, SinkError> {
        let inner = sink::create(target, options)?;
        let OutputTensor { dtype, shape, .. } = &self.tensor;
        let text = TextSink::new(inner, self.form, dtype, shape, self.is_shown);
        // `stored_dtype` has chosen the dtype
        let unfit = || SinkError::Io(io::ErrorKind::InvalidInput.into());
        Ok(Box::new(text.ok_or_else(unfit)?))
    }
}

#[derive(Clone, Copy)]
struct Style {
    format: TextFormat,
    /// Whether a line holds a single value.
    alone: bool,
}

fn write_element(
    dtype: &DType,
    style: Style,
    bytes: &[u8],
    out: &mut Out<'_>,
) -> Result<(), TextError> {
    // whether a separator comes before the next value
    let mut parted = false;
    walk(dtype, &mut |step| {
        let Step::Leaf { dtype, offset, count, .. } = step else {
            if style.format == TextFormat::Json {
                punctuate(step, parted, &mut out.text)?;
                parted = matches!(step, Step::EndStructure | Step::EndList);
            }
            return Ok(());
        };
        let meaning = Meaning::of(dtype).ok_or(TextError::NotText)?;
        let size = (dtype.item_bits() / 8) as usize;
        for at in 0..count as usize {
            if std::mem::replace(&mut parted, true) {
                out.text.push_str(match style.format {
                    TextFormat::Json => ", ",
                    TextFormat::Csv => ",",
                    TextFormat::Tsv => "\t",
                    TextFormat::Txt => " ",
                });
            }
            let item = &bytes[offset as usize + at * size..][..size];
            match dtype {
                DType::Npy(NpyType::Bytes(_)) => {
                    let text = str::from_utf8(item).map_err(|_| TextError::NotText)?;
                    write_string(text, style, out)?;
                }
                DType::Npy(NpyType::Unicode(_, endian)) => {
                    let text = code_points(item, *endian).ok_or(TextError::NotText)?;
                    write_string(&text, style, out)?;
                }
                _ => write_value(&mut out.text, &meaning, style.format, item)?,
            }
            out.pass_long()?;
        }
        Ok(())
    })
}

/// Append the brackets, names and separators of json.
fn punctuate(step: Step<'_>, parted: bool, text: &mut String) -> Result<(), TextError> {
    let separator = if parted { ", " } else { "" };
    match step {
        Step::Structure => text.extend([separator, "{"]),
        Step::List => text.extend([separator, "["]),
        Step::Field(field) => {
            let name = serde_json::to_string(&field.name).map_err(|_| TextError::NotText)?;
            text.push_str(separator);
            write_printable_json(text, &name)?;
            text.push_str(": ");
        }
        Step::EndStructure => text.push('}'),
        Step::EndList => text.push(']'),
        Step::Leaf { .. } | Step::Gap => {}
    }
    Ok(())
}

/// Append a number or a time.
fn write_value(
    text: &mut String,
    meaning: &Meaning,
    format: TextFormat,
    bytes: &[u8],
) -> fmt::Result {
    let is_json = format == TextFormat::Json;
    let notation = if is_json { Notation::Json } else { Notation::Plain };
    let quote = if is_json { "\"" } else { "" };
    match meaning {
        Meaning::Time(kind, endian, unit) => match endian.bits(bytes) as i64 {
            NAT => write!(text, "{quote}NaT{quote}"),
            time if *kind == TimeKind::Timedelta => write!(text, "{time}"),
            time => {
                text.push_str(quote);
                write_datetime(text, time, *unit);
                text.write_str(quote)
            }
        },
        number => write_number(text, number, bytes, notation),
    }
}

/// The most bytes of a string that are written at a time.
const CHUNK: usize = 16 << 10;

/// Write a string, without the zeros at its end: quoted in json, elsewhere only where needed.
fn write_string(text: &str, style: Style, out: &mut Out<'_>) -> Result<(), TextError> {
    let unpadded = text.trim_end_matches('\0');
    let shown = if out.is_shown { printable(unpadded) } else { unpadded.into() };
    let mut rest = shown.as_ref();
    let is_json = style.format == TextFormat::Json;
    // as in Python's csv: a row of one empty string is not an empty line
    let is_lost = rest.is_empty() && (style.alone || style.format != TextFormat::Csv);
    let quote = if is_json || is_lost || needs_quotes(style.format, rest) { "\"" } else { "" };
    out.text.push_str(quote);
    while !rest.is_empty() {
        let (some, after) = rest.split_at(rest.floor_char_boundary(CHUNK));
        if is_json {
            let quoted = serde_json::to_string(some).map_err(|_| TextError::NotText)?;
            write_printable_json(&mut out.text, &quoted[1..quoted.len() - 1])?;
        } else {
            out.text.push_str(&some.replace('"', "\"\""));
        }
        out.pass_long()?;
        rest = after;
    }
    out.text.push_str(quote);
    Ok(())
}

/// Whether a string in csv or txt must be quoted.
fn needs_quotes(format: TextFormat, text: &str) -> bool {
    text.contains(|char: char| match format {
        // a bare '#' would begin a comment
        TextFormat::Csv => matches!(char, ',' | '"' | '#' | '\n' | '\r'),
        _ => char.is_whitespace() || matches!(char, '"' | '#'),
    })
}

/// The characters of code points; `None` where one is invalid.
fn code_points(bytes: &[u8], endian: Endian) -> Option<String> {
    let points = bytes.as_chunks::<4>().0.iter().map(|&point| match endian {
        Endian::Little => u32::from_le_bytes(point),
        Endian::Big => u32::from_be_bytes(point),
    });
    points.map(char::from_u32).collect()
}
