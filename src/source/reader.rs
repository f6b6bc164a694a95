//! `std::io::Read` on a [`Source`], for headers.
//!
//! Short reads are served from a buffered page of 4 KiB, so that a small job touches only the
//! header's page; a read longer than a page goes to the source directly.

use std::io::{self, BufRead, Read};

use super::Source;

/// The longest read from the source, in bytes.
const PIECE: u64 = 1 << 20;

/// A position that moves forward over a source.
pub struct Reader<'s> {
    source: &'s dyn Source,
    position: u64,
    /// Buffered bytes; those from `position` on are `buffer[at..]`.
    buffer: Vec<u8>,
    at: usize,
    scratch: Vec<u8>,
}

impl<'s> Reader<'s> {
    /// Short reads bring a page of so many bytes, as far as there are any.
    pub const PAGE: u64 = 4096;

    /// Read `source` from its first byte on.
    pub fn new(source: &'s dyn Source) -> Self {
        Self { source, position: 0, buffer: Vec::new(), at: 0, scratch: Vec::new() }
    }

    /// Read `source` from byte `position` on.
    pub fn at(source: &'s dyn Source, position: u64) -> Self {
        Self { position, ..Self::new(source) }
    }

    /// How many bytes are left.
    pub fn remaining(&self) -> u64 {
        self.source.len().saturating_sub(self.position)
    }

    /// Go on behind the next `len` bytes, which are not read.
    pub fn skip(&mut self, len: u64) {
        match usize::try_from(len) {
            Ok(count) if count <= self.buffer.len() - self.at => self.consume(count),
            _ => {
                self.position = self.position.saturating_add(len);
                self.at = self.buffer.len();
            }
        }
    }
}

impl Read for Reader<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.at < self.buffer.len() || (buf.len() as u64) < Self::PAGE {
            let buffered = self.fill_buf()?;
            let count = buffered.len().min(buf.len());
            buf[..count].copy_from_slice(&buffered[..count]);
            self.consume(count);
            return Ok(count);
        }
        let count = self.remaining().min(buf.len() as u64).min(PIECE);
        let window = self.source.window(self.position..self.position + count, &mut self.scratch)?;
        buf[..window.len()].copy_from_slice(window);
        self.position += count;
        Ok(window.len())
    }
}

impl BufRead for Reader<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.at >= self.buffer.len() && self.remaining() > 0 {
            // Up to a page boundary, so that no second page is touched.
            let end = self.source.len().min((self.position / Self::PAGE + 1) * Self::PAGE);
            let window = self.source.window(self.position..end, &mut self.scratch)?;
            self.buffer.clear();
            self.buffer.extend_from_slice(window);
            self.at = 0;
        }
        Ok(&self.buffer[self.at..])
    }

    fn consume(&mut self, count: usize) {
        let count = count.min(self.buffer.len() - self.at);
        self.at += count;
        self.position += count as u64;
    }
}
