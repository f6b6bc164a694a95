//! A string as text while its bytes arrive: nothing is held of it but what decides about quotes.

use std::str;

use super::out::{Out, TextError};
use crate::dtype::Endian;
use crate::format::{TextFormat, write_printable_json};
use crate::sink::HeldBytes;

/// The most bytes of a string that are decoded at a time.
const CHUNK: usize = 16 << 10;

/// How elements are written.
#[derive(Clone, Copy)]
pub(super) struct Style {
    pub(super) format: TextFormat,
    /// Whether a line holds but one value.
    pub(super) alone: bool,
}

/// A string whose text has begun.
pub(super) struct StringText {
    /// The byte order of code points; `None` for UTF-8.
    points: Option<Endian>,
    /// The first bytes of a character.
    partial: Vec<u8>,
    /// Zeros that are padding unless something follows.
    zeros: u64,
    written: Written,
}

/// How the characters are written.
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
    pub(super) fn begin(points: Option<Endian>, style: Style, out: &mut Out<'_>) -> StringText {
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
    pub(super) fn push(&mut self, bytes: &[u8], out: &mut Out<'_>) -> Result<(), TextError> {
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

    /// All bytes have been given.
    pub(super) fn end(self, out: &mut Out<'_>) -> Result<(), TextError> {
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
        TextFormat::Csv => matches!(char, ',' | '"' | '\n' | '\r'),
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
