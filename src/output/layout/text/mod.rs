//! Text as an output: csv, tsv, txt and json.

use std::fmt::Write;
use std::{fmt, io, iter, str};

use writer::{Out, TextError, TextSink};

use super::{Frame, OutputFormat, OutputTensor, PLAIN, Request, only};
use crate::dtype::{DType, Endian, NpyType, Paused, Step, TimeKind, Walk};
use crate::element::{Meaning, NAT, Notation, write_datetime, write_number};
use crate::error::Cause;
use crate::format::text::{MAX_EMPTY_ROWS, stored_dtype};
use crate::format::{TextFormat, write_printable_json};
use crate::output::LayoutFault;
use crate::sink::{self, Destination, Draft, HeldBytes, SinkError, SinkOptions};

mod writer;

const TEXT: OutputFormat = OutputFormat { is_text: true, stored_dtype, ..PLAIN };

pub(super) static CSV: OutputFormat = OutputFormat {
    name: "csv",
    about: "Text, columns separated by commas",
    extensions: &["csv"],
    lay_out: |request| lay_out(TextFormat::Csv, request),
    ..TEXT
};

pub(super) static TSV: OutputFormat = OutputFormat {
    name: "tsv",
    about: "Text, columns separated by tabs",
    extensions: &["tsv"],
    lay_out: |request| lay_out(TextFormat::Tsv, request),
    ..TEXT
};

pub(super) static TXT: OutputFormat = OutputFormat {
    name: "txt",
    about: "Text, columns separated by spaces",
    extensions: &["txt"],
    lay_out: |request| lay_out(TextFormat::Txt, request),
    ..TEXT
};

pub(super) static JSON: OutputFormat = OutputFormat {
    name: "json",
    about: "Text, nested lists",
    extensions: &["json"],
    lay_out: |request| lay_out(TextFormat::Json, request),
    ..TEXT
};

fn lay_out(form: TextFormat, request: &Request<'_>) -> Result<Box<dyn Frame>, Cause> {
    let format = form.name();
    let only = only(request.tensors, format)?;
    let ndim = only.shape.len();
    let most = form.max_ndim();
    if ndim > most {
        return Err(LayoutFault::Axes { format, most, ndim }.into());
    }
    let rows = form.empty_rows(&only.shape);
    if rows > MAX_EMPTY_ROWS {
        return Err(LayoutFault::EmptyRows { format, shape: only.shape.clone(), rows }.into());
    }
    Ok(Box::new(TextLayout { form, tensor: only }))
}

/// Elements that become text on the way.
struct TextLayout {
    form: TextFormat,
    tensor: OutputTensor,
}

impl Frame for TextLayout {
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
        let text = TextSink::new(inner, self.form, &self.tensor.dtype, &self.tensor.shape);
        // the dtype is one that `stored_dtype` gave
        let unfit = || SinkError::Io(io::ErrorKind::InvalidInput.into());
        Ok(Box::new(text.ok_or_else(unfit)?))
    }
}

#[derive(Default)]
struct ElementBegun {
    /// Where it is; `None` at its beginning.
    paused: Option<Paused>,
    taken: u64,
    leaf: Option<LeafBegun>,
    /// Whether a separator comes before the next value.
    parted: bool,
}

/// Neighbouring items of one type.
struct LeafBegun {
    dtype: DType,
    /// Where the next one begins in the element, in bytes.
    offset: u64,
    left: u64,
    item: Option<ItemBegun>,
}

/// An item, as far as its bytes have arrived.
enum ItemBegun {
    /// The first bytes of a number or a time.
    Partial(Vec<u8>),
    Text(StringText),
}

impl ElementBegun {
    /// Write what the next bytes are, and take them; what is left of them follows the element.
    /// Whether it is whole.
    fn feed(
        &mut self,
        dtype: &DType,
        style: Style,
        bytes: &mut &[u8],
        out: &mut Out<'_>,
    ) -> Result<bool, TextError> {
        let mut walk = match self.paused.take() {
            Some(paused) => Walk::resume(dtype, paused),
            None => Walk::new(dtype),
        };
        loop {
            if let Some(mut leaf) = self.leaf.take()
                && !self.feed_leaf(&mut leaf, style, bytes, out)?
            {
                self.leaf = Some(leaf);
                break;
            }
            out.pass_long()?;
            let Some(step) = walk.next() else {
                self.skip_to(dtype.item_bits() / 8, bytes);
                break;
            };
            if let Step::Leaf { dtype, offset, count, .. } = step {
                let dtype = dtype.clone();
                self.leaf = Some(LeafBegun { dtype, offset, left: count, item: None });
            } else if style.format == TextFormat::Json {
                self.punctuate(step, &mut out.text)?;
            }
        }
        self.paused = Some(walk.pause());
        Ok(self.leaf.is_none() && self.taken == dtype.item_bits() / 8)
    }

    /// The brackets, names and separators of json.
    fn punctuate(&mut self, step: Step<'_>, text: &mut String) -> Result<(), TextError> {
        let separator = if self.parted { ", " } else { "" };
        match step {
            Step::Structure => text.extend([separator, "{"]),
            Step::List => text.extend([separator, "["]),
            Step::Field(field) => {
                let name = serde_json::to_string(&field.name).map_err(|_| TextError::NotText)?;
                text.push_str(separator);
                write_printable_json(text, &name).map_err(|_| TextError::NotText)?;
                text.push_str(": ");
            }
            Step::EndStructure => text.push('}'),
            Step::EndList => text.push(']'),
            Step::Leaf { .. } | Step::Gap => {}
        }
        self.parted = matches!(step, Step::EndStructure | Step::EndList | Step::Leaf { .. });
        Ok(())
    }

    /// Pass over bytes, up to a place in the element.
    fn skip_to(&mut self, place: u64, bytes: &mut &[u8]) {
        let count = (place - self.taken).min(bytes.len() as u64);
        self.taken += count;
        *bytes = &bytes[count as usize..];
    }

    /// Write items; whether all of them are written.
    fn feed_leaf(
        &mut self,
        leaf: &mut LeafBegun,
        style: Style,
        bytes: &mut &[u8],
        out: &mut Out<'_>,
    ) -> Result<bool, TextError> {
        let size = leaf.dtype.item_bits() / 8;
        while leaf.left > 0 {
            if self.taken < leaf.offset {
                self.skip_to(leaf.offset, bytes);
            }
            let end = leaf.offset + size;
            let now = end.saturating_sub(self.taken).min(bytes.len() as u64) as usize;
            if self.taken < leaf.offset || now == 0 && size > 0 {
                return Ok(false);
            }
            let (own, rest) = bytes.split_at(now);
            *bytes = rest;
            self.taken += now as u64;
            self.feed_item(leaf, style, own, self.taken == end, out)?;
            if self.taken < end {
                return Ok(false);
            }
            leaf.offset = end;
            leaf.left -= 1;
            out.pass_long()?;
        }
        Ok(true)
    }

    /// Write an item, or a part of it, which may be its last.
    fn feed_item(
        &mut self,
        leaf: &mut LeafBegun,
        style: Style,
        bytes: &[u8],
        is_last: bool,
        out: &mut Out<'_>,
    ) -> Result<(), TextError> {
        let points = match leaf.dtype {
            DType::Npy(NpyType::Bytes(_)) => Some(None),
            DType::Npy(NpyType::Unicode(_, endian)) => Some(Some(endian)),
            _ => None,
        };
        let meaning = Meaning::of(&leaf.dtype).ok_or(TextError::NotText)?;
        let mut item = match (leaf.item.take(), points) {
            (Some(item), _) => item,
            (None, points) => {
                self.separate(style, &mut out.text);
                match points {
                    None => ItemBegun::Partial(Vec::new()),
                    Some(points) => ItemBegun::Text(StringText::begin(points, style, out)),
                }
            }
        };
        match &mut item {
            ItemBegun::Partial(partial) if partial.is_empty() && is_last => {
                write_value(&mut out.text, &meaning, style.format, bytes)?;
            }
            ItemBegun::Partial(partial) => {
                partial.extend_from_slice(bytes);
                if is_last {
                    write_value(&mut out.text, &meaning, style.format, partial)?;
                }
            }
            ItemBegun::Text(string) => string.push(bytes, out)?,
        }
        match item {
            item if !is_last => leaf.item = Some(item),
            ItemBegun::Text(string) => string.end(out)?,
            ItemBegun::Partial(_) => {}
        }
        Ok(())
    }

    /// Write what stands between two values, where this is not the first.
    fn separate(&mut self, style: Style, text: &mut String) {
        if std::mem::replace(&mut self.parted, true) {
            text.push_str(match style.format {
                TextFormat::Json => ", ",
                TextFormat::Csv => ",",
                TextFormat::Tsv => "\t",
                TextFormat::Txt => " ",
            });
        }
    }
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

/// The most bytes of a string that are decoded at a time.
const CHUNK: usize = 16 << 10;

#[derive(Clone, Copy)]
struct Style {
    format: TextFormat,
    /// Whether a line holds but one value.
    alone: bool,
}

struct StringText {
    /// The byte order of code points; `None` for UTF-8.
    points: Option<Endian>,
    partial: Vec<u8>,
    /// Zeros that are padding unless something follows.
    zeros: u64,
    written: Written,
}

enum Written {
    /// Json: always in quotes, with escapes.
    Json,
    /// Csv and txt, in quotes.
    Quoted,
    /// Csv and txt, as long as nothing has asked for quotes.
    Bare(Style, HeldBytes),
}

impl StringText {
    /// Begin a string. A line of csv that is one empty string is not to be empty (`alone`).
    fn begin(points: Option<Endian>, style: Style, out: &mut Out<'_>) -> StringText {
        let written = match style.format {
            TextFormat::Json => {
                out.text.push('"');
                Written::Json
            }
            _ => Written::Bare(style, HeldBytes::default()),
        };
        StringText { points, partial: Vec::new(), zeros: 0, written }
    }

    /// Go on with the next bytes of the element.
    fn push(&mut self, bytes: &[u8], out: &mut Out<'_>) -> Result<(), TextError> {
        for chunk in bytes.chunks(CHUNK) {
            let mut all = std::mem::take(&mut self.partial);
            let chunk = if all.is_empty() {
                chunk
            } else {
                all.extend_from_slice(chunk);
                &all
            };
            let decoded: String;
            let (text, rest) = match self.points {
                None => utf8(chunk)?,
                Some(endian) => {
                    let (whole, rest) = chunk.split_at(chunk.len() / 4 * 4);
                    decoded = code_points(whole, endian).ok_or(TextError::NotText)?;
                    (decoded.as_str(), rest)
                }
            };
            self.partial = rest.to_vec();
            self.characters(text, out)?;
            out.pass_long()?;
        }
        Ok(())
    }

    /// Write characters, but for zeros at the end.
    fn characters(&mut self, text: &str, out: &mut Out<'_>) -> Result<(), TextError> {
        let unpadded = text.trim_end_matches('\0');
        let zeros = (text.len() - unpadded.len()) as u64;
        if unpadded.is_empty() {
            self.zeros += zeros;
            return Ok(());
        }
        while self.zeros > 0 {
            let some = self.zeros.min(CHUNK as u64);
            self.write(&"\0".repeat(some as usize), out)?;
            self.zeros -= some;
            out.pass_long()?;
        }
        self.zeros = zeros;
        self.write(unpadded, out)
    }

    fn write(&mut self, text: &str, out: &mut Out<'_>) -> Result<(), TextError> {
        match &mut self.written {
            Written::Json => {
                let quoted = serde_json::to_string(text).map_err(|_| TextError::NotText)?;
                let inside = &quoted[1..quoted.len() - 1];
                write_printable_json(&mut out.text, inside)?;
            }
            Written::Quoted => out.text.push_str(&text.replace('"', "\"\"")),
            Written::Bare(style, held) => {
                if !needs_quotes(style.format, text) {
                    return Ok(held.push(text.as_bytes())?);
                }
                let held = std::mem::take(held);
                self.written = Written::Quoted;
                out.text.push('"');
                out.pass_held(held)?;
                return self.write(text, out);
            }
        }
        Ok(())
    }

    fn end(self, out: &mut Out<'_>) -> Result<(), TextError> {
        if !self.partial.is_empty() {
            return Err(TextError::NotText);
        }
        match self.written {
            Written::Json | Written::Quoted => out.text.push('"'),
            // as Python's csv: a row of one empty string is not an empty line
            Written::Bare(style, held)
                if held.is_empty() && (style.alone || style.format != TextFormat::Csv) =>
            {
                out.text.push_str("\"\"");
            }
            Written::Bare(_, held) => out.pass_held(held)?,
        }
        Ok(())
    }
}

/// Whether a string of csv or txt that holds this stands in quotes.
fn needs_quotes(format: TextFormat, text: &str) -> bool {
    text.contains(|char: char| match format {
        // what follows a bare '#' would be read as a comment
        TextFormat::Csv => matches!(char, ',' | '"' | '#' | '\n' | '\r'),
        _ => char.is_whitespace() || matches!(char, '"' | '#'),
    })
}

/// The whole characters of bytes, and what is left of them.
fn utf8(bytes: &[u8]) -> Result<(&str, &[u8]), TextError> {
    match str::from_utf8(bytes) {
        Ok(text) => Ok((text, &[])),
        Err(error) if error.error_len().is_some() => Err(TextError::NotText),
        Err(error) => {
            let (whole, rest) = bytes.split_at(error.valid_up_to());
            Ok((str::from_utf8(whole).map_err(|_| TextError::NotText)?, rest))
        }
    }
}

/// The characters of code points; `None` where one of them is invalid.
fn code_points(bytes: &[u8], endian: Endian) -> Option<String> {
    let points = bytes.as_chunks::<4>().0.iter().map(|&point| match endian {
        Endian::Little => u32::from_le_bytes(point),
        Endian::Big => u32::from_be_bytes(point),
    });
    points.map(char::from_u32).collect()
}
