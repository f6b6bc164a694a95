//! An element as text while its bytes arrive, in any portions: its parts one after the other, with
//! brackets and separators.

use std::fmt::{self, Write};

use super::out::{Out, TextError};
use super::string::{StringText, Style};
use crate::dtype::{DType, NpyType, Paused, Step, TimeKind, Walk};
use crate::element::{Meaning, NAT, Notation, write_datetime, write_number};
use crate::format::{TextFormat, write_printable_json};

/// An element whose text has begun.
#[derive(Default)]
pub(super) struct ElementBegun {
    /// Where it is; `None` at its beginning.
    paused: Option<Paused>,
    /// Bytes that have been taken of it.
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
    /// How many are left.
    left: u64,
    /// The one that has begun.
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
    ///
    /// # Errors
    /// A string that is no text; the sink's.
    pub(super) fn feed(
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
        let item = match leaf.item.take() {
            Some(item) => item,
            None => {
                if std::mem::replace(&mut self.parted, true) {
                    out.text.push_str(match style.format {
                        TextFormat::Json => ", ",
                        TextFormat::Csv => ",",
                        TextFormat::Tsv => "\t",
                        TextFormat::Txt => " ",
                    });
                }
                match points {
                    None if is_last => {
                        return Ok(write_value(&mut out.text, &leaf.dtype, style.format, bytes)?);
                    }
                    None => ItemBegun::Partial(Vec::new()),
                    Some(points) => ItemBegun::Text(StringText::begin(points, style, out)),
                }
            }
        };
        match item {
            ItemBegun::Partial(mut partial) => {
                partial.extend_from_slice(bytes);
                match is_last {
                    true => write_value(&mut out.text, &leaf.dtype, style.format, &partial)?,
                    false => leaf.item = Some(ItemBegun::Partial(partial)),
                }
            }
            ItemBegun::Text(mut string) => {
                string.push(bytes, out)?;
                match is_last {
                    true => string.end(out)?,
                    false => leaf.item = Some(ItemBegun::Text(string)),
                }
            }
        }
        Ok(())
    }
}

/// Append a number or a time.
fn write_value(text: &mut String, dtype: &DType, format: TextFormat, bytes: &[u8]) -> fmt::Result {
    let is_json = format == TextFormat::Json;
    let notation = if is_json { Notation::Json } else { Notation::Plain };
    let quote = if is_json { "\"" } else { "" };
    let meaning = Meaning::of(dtype).ok_or(fmt::Error)?;
    match &meaning {
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
