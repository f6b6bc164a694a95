//! Helpers of the readers of headers.

use std::io::Read;

use super::FormatError;
use crate::dtype::Endian;
use crate::error::Cause;
use crate::source::{Reader, Source};

/// Append the next `len` bytes to `header`, which grows only with bytes that are really there.
pub(super) fn read_more(input: &mut dyn Read, header: &mut Vec<u8>, len: u64) -> Result<(), Cause> {
    let expected = header.len() as u64 + len;
    input.take(len).read_to_end(header)?;
    match header.len() as u64 {
        found if found < expected => Err(FormatError::HeaderCutShort { expected, found }.into()),
        _ => Ok(()),
    }
}

/// A position in a binary header. Memory grows only with bytes that are in the file.
pub(super) struct HeaderReader<'s> {
    reader: Reader<'s>,
    len: u64,
    pub(super) endian: Endian,
}

impl<'s> HeaderReader<'s> {
    pub(super) fn at(source: &'s dyn Source, position: u64, endian: Endian) -> HeaderReader<'s> {
        HeaderReader { reader: Reader::at(source, position), len: source.len(), endian }
    }

    /// The number of bytes of the file before this position.
    pub(super) fn position(&self) -> u64 {
        self.len.saturating_sub(self.reader.remaining())
    }

    /// Return an error unless `len` more bytes are in the file.
    pub(super) fn check(&self, len: u64) -> Result<(), Cause> {
        match self.reader.remaining() {
            remaining if len <= remaining => Ok(()),
            _ => Err(FormatError::HeaderCutShort {
                expected: self.position().saturating_add(len),
                found: self.len,
            }
            .into()),
        }
    }

    pub(super) fn skip(&mut self, len: u64) -> Result<(), Cause> {
        self.check(len)?;
        self.reader.skip(len);
        Ok(())
    }

    pub(super) fn read(&mut self, bytes: &mut [u8]) -> Result<(), Cause> {
        self.check(bytes.len() as u64)?;
        Ok(self.reader.read_exact(bytes)?)
    }

    pub(super) fn bytes(&mut self, len: u64) -> Result<Vec<u8>, Cause> {
        self.check(len)?;
        let mut bytes = Vec::new();
        self.reader.by_ref().take(len).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// An unsigned number of `width` bytes, up to 8.
    pub(super) fn number(&mut self, width: usize) -> Result<u64, Cause> {
        let mut bytes = [0; 8];
        let number = &mut bytes[..width];
        self.read(number)?;
        Ok(self.endian.bits(number) as u64)
    }
}

/// The number of bytes by which a format is recognised.
pub const MAGIC_LEN: usize = 9;
