//! Numbers and texts of a header, in the byte order of the file.

use std::io::Read;

use super::error::GgufError;
use crate::dtype::Endian;
use crate::format::error::FormatError;
use crate::source::{Reader, Source};

/// A place in a header. No more is allocated than there are bytes in the file.
pub(super) struct HeaderReader<'s> {
    reader: Reader<'s>,
    len: u64,
    pub(super) endian: Endian,
}

impl<'s> HeaderReader<'s> {
    pub(super) fn at(source: &'s dyn Source, position: u64, endian: Endian) -> HeaderReader<'s> {
        HeaderReader { reader: Reader::at(source, position), len: source.len(), endian }
    }

    /// How many bytes of the file stand before it.
    pub(super) fn position(&self) -> u64 {
        self.len.saturating_sub(self.reader.remaining())
    }

    /// Make sure that so many more bytes are there.
    fn check(&self, len: u64) -> Result<(), FormatError> {
        match self.reader.remaining() {
            remaining if len <= remaining => Ok(()),
            _ => Err(FormatError::HeaderCutShort {
                expected: self.position().saturating_add(len),
                found: self.len,
            }),
        }
    }

    /// Go on behind the next `len` bytes.
    pub(super) fn skip(&mut self, len: u64) -> Result<(), FormatError> {
        self.check(len)?;
        self.reader.skip(len);
        Ok(())
    }

    /// A number of as many bytes, up to 8.
    pub(super) fn number(&mut self, bytes: usize) -> Result<u64, FormatError> {
        self.check(bytes as u64)?;
        let mut all = [0; 8];
        let number = &mut all[..bytes];
        self.reader.read_exact(number)?;
        Ok(self.endian.bits(number) as u64)
    }

    pub(super) fn u32(&mut self) -> Result<u32, FormatError> {
        Ok(self.number(4)? as u32)
    }

    pub(super) fn u64(&mut self) -> Result<u64, FormatError> {
        self.number(8)
    }

    /// The bytes of a text, behind their number, which is at most `most`.
    pub(super) fn text(&mut self, most: u64, what: &'static str) -> Result<Vec<u8>, FormatError> {
        let len = self.u64()?;
        self.check(len)?;
        if len > most {
            return Err(GgufError::Long { what, most }.into());
        }
        let mut text = Vec::new();
        self.reader.by_ref().take(len).read_to_end(&mut text)?;
        Ok(text)
    }
}
