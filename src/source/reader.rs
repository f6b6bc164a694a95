//! A [`Source`] from its start on, as `std::io::Read`: what headers are read through.
//!
//! Reads come from pages of 4 KiB, so that a small job touches the header's page and no more;
//! only a read that is longer than a page goes straight to the source.

use std::io::{self, BufRead, Read};

use super::Source;

/// What is read at a time, in bytes.
const PAGE: u64 = 4096;

/// The longest single copy out of a source that reads into scratch, in bytes.
const PIECE: u64 = 1 << 20;

/// A position that moves forward over a source.
pub struct Reader<'s> {
    source: &'s dyn Source,
    position: u64,
    /// Bytes that were fetched already; those from `position` on are `held[at..]`.
    held: Vec<u8>,
    at: usize,
    scratch: Vec<u8>,
}

impl<'s> Reader<'s> {
    /// Stand at the first byte of `source`.
    pub fn new(source: &'s dyn Source) -> Self {
        Self { source, position: 0, held: Vec::new(), at: 0, scratch: Vec::new() }
    }

    /// Stand at the byte `position` of `source`.
    pub fn at(source: &'s dyn Source, position: u64) -> Self {
        Self { position, ..Self::new(source) }
    }

    /// How many bytes were read so far: the offset in bytes of the next one.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// How many bytes there are from here to the end.
    pub fn remaining(&self) -> u64 {
        self.source.len().saturating_sub(self.position)
    }
}

impl Read for Reader<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.at < self.held.len() || (buf.len() as u64) < PAGE {
            let held = self.fill_buf()?;
            let count = held.len().min(buf.len());
            buf[..count].copy_from_slice(&held[..count]);
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
        if self.at >= self.held.len() && self.remaining() > 0 {
            // Up to a multiple of the page: the first read of a file ends where its page does.
            let end = self.source.len().min((self.position / PAGE + 1) * PAGE);
            let window = self.source.window(self.position..end, &mut self.scratch)?;
            self.held.clear();
            self.held.extend_from_slice(window);
            self.at = 0;
        }
        Ok(&self.held[self.at..])
    }

    fn consume(&mut self, count: usize) {
        let count = count.min(self.held.len() - self.at);
        self.at += count;
        self.position += count as u64;
    }
}
