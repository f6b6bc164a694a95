//! The metadata of a `.gguf`: keys and values, which may be lists of millions of texts.
//!
//! Values are not held in memory: they are skipped when the file is opened, and read again to be
//! shown or written.

use std::collections::HashSet;
use std::io;
use std::io::Write;

use super::{GgufError, HeaderReader};
use crate::dtype::{DType, Endian, Scalar};
use crate::error::Cause;
use crate::source::Source;
use crate::tensor::{shortened, write_printable_json};

/// The most bytes of all keys together. A file has some fifty.
const MOST_KEYS: u64 = 16 << 20;

/// The deepest nesting of lists; files in use have no nested lists.
const MOST_DEPTH: u32 = 16;

/// The key of the alignment of tensors.
pub(super) const ALIGNMENT: &str = "general.alignment";

/// The keys of a file of a split model: its number from 0 on, the number of files, and the number
/// of tensors in all of them.
pub(super) const SPLIT: [&str; 3] = ["split.no", "split.count", "split.tensors.count"];

/// A type of values, by its number.
#[derive(Clone, Copy)]
enum ValueType {
    Unsigned(usize),
    Signed(usize),
    Float(usize),
    Bool,
    Text,
    List,
}

/// The type of texts.
pub(super) const TEXT: u32 = 8;

/// The type of values that are elements of this dtype.
pub(super) fn type_of(dtype: &DType) -> Option<u32> {
    let DType::Scalar(scalar, _) = dtype else { return None };
    Some(match scalar {
        Scalar::U8 => 0,
        Scalar::I8 => 1,
        Scalar::U16 => 2,
        Scalar::I16 => 3,
        Scalar::U32 => 4,
        Scalar::I32 => 5,
        Scalar::F32 => 6,
        Scalar::Bool => 7,
        Scalar::U64 => 10,
        Scalar::I64 => 11,
        Scalar::F64 => 12,
        _ => return None,
    })
}

impl ValueType {
    fn of(number: u32) -> Option<ValueType> {
        Some(match number {
            0 => ValueType::Unsigned(1),
            1 => ValueType::Signed(1),
            2 => ValueType::Unsigned(2),
            3 => ValueType::Signed(2),
            4 => ValueType::Unsigned(4),
            5 => ValueType::Signed(4),
            6 => ValueType::Float(4),
            7 => ValueType::Bool,
            TEXT => ValueType::Text,
            9 => ValueType::List,
            10 => ValueType::Unsigned(8),
            11 => ValueType::Signed(8),
            12 => ValueType::Float(8),
            _ => return None,
        })
    }

    /// The bytes of a value; `None` if values differ in length.
    fn bytes(self) -> Option<u64> {
        match self {
            ValueType::Unsigned(bytes) | ValueType::Signed(bytes) | ValueType::Float(bytes) => {
                Some(bytes as u64)
            }
            ValueType::Bool => Some(1),
            ValueType::Text | ValueType::List => None,
        }
    }
}

/// The positions of the keys and values in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GgufMetadata {
    start: u64,
    count: u64,
    endian: Endian,
    /// The alignment of tensors, in bytes.
    pub(super) alignment: u64,
}

/// The values of [`SPLIT`].
pub(super) type SplitValues = [Option<u64>; 3];

/// Why metadata cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum MetadataError {
    #[error("{0}")]
    Read(#[from] Cause),
    #[error("{0}")]
    Write(#[from] io::Error),
}

impl GgufMetadata {
    /// Skip `count` keys with their values.
    pub(super) fn read(
        reader: &mut HeaderReader<'_>,
        count: u64,
    ) -> Result<(GgufMetadata, SplitValues), Cause> {
        let (start, endian) = (reader.position(), reader.endian);
        let mut alignment = super::ALIGNMENT;
        let mut split = SplitValues::default();
        let mut keys = HashSet::new();
        let mut bytes = 0;
        for _ in 0..count {
            let key = key(reader)?;
            let number = reader.u32()?;
            let value = MetadataValue { reader, key: &key, number };
            if key == ALIGNMENT {
                alignment = value.alignment()?;
            } else if let Some(at) = SPLIT.iter().position(|known| *known == key) {
                split[at] = Some(value.count(SPLIT[at])?);
            } else {
                value.skip()?;
            }
            bytes += key.len() as u64;
            if bytes > MOST_KEYS {
                return Err(GgufError::Long { what: "keys of metadata", most: MOST_KEYS }.into());
            }
            if let Some(name) = keys.replace(key) {
                return Err(GgufError::Twice { what: "values of its metadata", name }.into());
            }
        }
        Ok((GgufMetadata { start, count, endian, alignment }, split))
    }

    /// Visit each key with its value, in the order of the file; `source` is the file.
    pub fn visit(
        &self,
        source: &dyn Source,
        show: &mut dyn FnMut(&str, MetadataValue<'_, '_>) -> Result<(), MetadataError>,
    ) -> Result<(), MetadataError> {
        let mut reader = HeaderReader::at(source, self.start, self.endian);
        for _ in 0..self.count {
            let key = key(&mut reader)?;
            let number = reader.u32()?;
            show(&key, MetadataValue { reader: &mut reader, key: &key, number })?;
        }
        Ok(())
    }
}

fn key(reader: &mut HeaderReader<'_>) -> Result<String, Cause> {
    let key = String::from_utf8(reader.text(MOST_KEYS, "keys of metadata")?);
    Ok(key.map_err(|_| GgufError::NotUtf8("a value of its metadata"))?)
}

/// A value that has not been read.
pub struct MetadataValue<'a, 's> {
    reader: &'a mut HeaderReader<'s>,
    key: &'a str,
    number: u32,
}

impl<'s> MetadataValue<'_, 's> {
    /// Write the type and the value to `out`, little-endian; without an output, skip them.
    pub(super) fn copy(self, out: &mut Option<&mut dyn Write>) -> Result<(), MetadataError> {
        hand_on(out, &self.number.to_le_bytes())?;
        self.copy_several(1, 0, out)
    }

    /// Write it as JSON: NaN and infinities as texts, bytes that are not UTF-8 replaced. With
    /// `most`, for people, only that many values of a list, and the beginning of a long text.
    pub fn write_json(self, out: &mut dyn Write, most: Option<u64>) -> Result<(), MetadataError> {
        self.write(out, most, 0)
    }

    fn kind(&self) -> Result<ValueType, Cause> {
        let unknown = || GgufError::ValueType { key: self.key.to_owned(), number: self.number };
        Ok(ValueType::of(self.number).ok_or_else(unknown)?)
    }

    /// The value of the key `general.alignment`.
    fn alignment(self) -> Result<u64, Cause> {
        let what = "a power of two, of type UINT32";
        let unfit = || GgufError::Value { key: ALIGNMENT, what };
        if !matches!(self.kind()?, ValueType::Unsigned(4)) {
            return Err(unfit().into());
        }
        let number = self.reader.number(4)?;
        Ok(number.is_power_of_two().then_some(number).ok_or_else(unfit)?)
    }

    /// The value of a key that is a count.
    fn count(self, key: &'static str) -> Result<u64, Cause> {
        let unfit = || GgufError::Value { key, what: "a number of files or tensors" };
        let number = match self.kind()? {
            ValueType::Unsigned(bytes) => self.reader.number(bytes)?,
            ValueType::Signed(bytes) => {
                let number = signed(self.reader.number(bytes)?, bytes);
                u64::try_from(number).map_err(|_| unfit())?
            }
            _ => return Err(unfit().into()),
        };
        Ok(number)
    }

    /// The type and the number of the values of a list.
    fn list(&mut self, depth: u32) -> Result<(u32, u64), Cause> {
        if depth >= MOST_DEPTH {
            return Err(GgufError::Deep { key: self.key.to_owned(), most: MOST_DEPTH }.into());
        }
        Ok((self.reader.u32()?, self.reader.u64()?))
    }

    /// A value of a list, or of a list in it.
    fn inner(&mut self, number: u32) -> MetadataValue<'_, 's> {
        MetadataValue { reader: &mut *self.reader, key: self.key, number }
    }

    fn skip(self) -> Result<(), Cause> {
        self.skip_several(1, 0)
    }

    fn skip_several(self, count: u64, depth: u32) -> Result<(), Cause> {
        self.copy_several(count, depth, &mut None).map_err(|error| match error {
            MetadataError::Read(cause) => cause,
            MetadataError::Write(error) => error.into(),
        })
    }

    /// Copy `count` adjacent values of its type.
    fn copy_several(
        mut self,
        count: u64,
        depth: u32,
        out: &mut Option<&mut dyn Write>,
    ) -> Result<(), MetadataError> {
        let kind = self.kind()?;
        if let Some(width) = kind.bytes() {
            return self.reader.copy(width.saturating_mul(count), width as usize, out);
        }
        for _ in 0..count {
            if let ValueType::List = kind {
                let (number, count) = self.list(depth)?;
                hand_on(out, &number.to_le_bytes())?;
                hand_on(out, &count.to_le_bytes())?;
                self.inner(number).copy_several(count, depth + 1, out)?;
            } else {
                let len = self.reader.u64()?;
                hand_on(out, &len.to_le_bytes())?;
                self.reader.copy(len, 1, out)?;
            }
        }
        Ok(())
    }

    fn write(
        mut self,
        out: &mut dyn Write,
        most: Option<u64>,
        depth: u32,
    ) -> Result<(), MetadataError> {
        match self.kind()? {
            ValueType::Unsigned(bytes) => write!(out, "{}", self.reader.number(bytes)?)?,
            ValueType::Signed(bytes) => {
                write!(out, "{}", signed(self.reader.number(bytes)?, bytes))?;
            }
            ValueType::Float(bytes) => {
                let bits = self.reader.number(bytes)?;
                let single = f64::from(f32::from_bits(bits as u32));
                let value = if bytes == 4 { single } else { f64::from_bits(bits) };
                match serde_json::Number::from_f64(value) {
                    Some(number) => write!(out, "{number}")?,
                    None if value.is_nan() => write!(out, "\"NaN\"")?,
                    None => write!(out, "\"{}Infinity\"", if value < 0.0 { "-" } else { "" })?,
                }
            }
            ValueType::Bool => write!(out, "{}", self.reader.number(1)? != 0)?,
            ValueType::Text => {
                let text = self.reader.text(u64::MAX, "texts")?;
                let text = String::from_utf8_lossy(&text);
                let text = if most.is_some() { shortened(&text) } else { text };
                write_text(out, &text)?;
            }
            ValueType::List => {
                let (number, count) = self.list(depth)?;
                let shown = most.map_or(count, |most| count.min(most));
                for at in 0..shown {
                    out.write_all(if at == 0 { b"[" } else { b", " })?;
                    self.inner(number).write(out, most, depth + 1)?;
                }
                if shown < count {
                    self.inner(number).skip_several(count - shown, depth + 1)?;
                    write!(out, ", ... {count} in all")?;
                }
                out.write_all(if shown == 0 { b"[]" } else { b"]" })?;
            }
        }
        Ok(())
    }
}

fn hand_on(out: &mut Option<&mut dyn Write>, bytes: &[u8]) -> io::Result<()> {
    out.as_mut().map_or(Ok(()), |out| out.write_all(bytes))
}

/// Write a text as JSON, piece by piece: it may be as long as the file.
fn write_text(out: &mut dyn Write, mut text: &str) -> io::Result<()> {
    const PIECE: usize = 64 << 10;
    out.write_all(b"\"")?;
    while !text.is_empty() {
        let fits = |at: &usize| text.is_char_boundary(*at);
        let at = (0..=text.len().min(PIECE)).rev().find(fits).unwrap_or(text.len());
        let (piece, rest) = text.split_at(at);
        let json = serde_json::Value::from(piece).to_string();
        let mut shown = String::with_capacity(json.len());
        // writing to a string cannot fail
        let _ = write_printable_json(&mut shown, &json[1..json.len() - 1]);
        out.write_all(shown.as_bytes())?;
        text = rest;
    }
    out.write_all(b"\"")
}

/// A number of `bytes` bytes, with its sign.
fn signed(number: u64, bytes: usize) -> i64 {
    let spare = 64 - 8 * bytes as u32;
    ((number << spare) as i64) >> spare
}
