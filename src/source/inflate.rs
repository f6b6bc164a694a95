//! Bytes that are compressed in another source: the deflated members of a zip archive.
//!
//! [`DeflatedRange::stream`] gives them once, in order; as a [`Source`] they are inflated to an unnamed
//! temporary file when the first one is asked for. Either way no more bytes are made than were
//! announced, and at the end both their number and their CRC-32 must be right.

use std::io::{self, ErrorKind, Read, Take};
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crc32fast::Hasher;
use flate2::bufread::DeflateDecoder;

use super::{Forward, Reader, Source, SourceError, checked_len, spool};

/// A deflated range of a source.
pub struct DeflatedRange {
    /// Where the compressed bytes are.
    pub archive: Arc<dyn Source>,
    /// Which they are.
    pub range: Range<u64>,
    /// How many bytes they stand for.
    pub len: u64,
    /// The CRC-32 of those.
    pub crc: u32,
}

impl DeflatedRange {
    /// The bytes, from the first one on.
    pub fn stream(&self) -> InflateReader<'_> {
        let reader = Reader::at(self.archive.as_ref(), self.range.start);
        let compressed = reader.take(self.range.end.saturating_sub(self.range.start));
        InflateReader {
            decoder: DeflateDecoder::new(compressed),
            crc: Hasher::new(),
            position: 0,
            of: (self.len, self.crc),
        }
    }
}

/// Bytes as they are inflated.
pub struct InflateReader<'s> {
    decoder: DeflateDecoder<Take<Reader<'s>>>,
    crc: Hasher,
    position: u64,
    /// How many bytes there are to be, and their CRC-32.
    of: (u64, u32),
}

impl InflateReader<'_> {
    /// Read what is left, and compare all of it with what was announced.
    ///
    /// # Errors
    /// [`SourceError::Io`] for bytes that are damaged.
    pub fn finish(mut self) -> Result<(), SourceError> {
        let (len, crc) = self.of;
        self.skip(len - self.position)?;
        if self.decoder.read(&mut [0]).map_err(damaged)? > 0 {
            return Err(damaged(format!("more than the {len} bytes that were announced")).into());
        }
        if self.crc.finalize() != crc {
            return Err(damaged("the CRC-32 is another one than was announced").into());
        }
        Ok(())
    }
}

impl Read for InflateReader<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let (len, _) = self.of;
        let most = usize::try_from(len - self.position).unwrap_or(usize::MAX).min(buf.len());
        let count = self.decoder.read(&mut buf[..most]).map_err(damaged)?;
        if count == 0 && most > 0 {
            let there = self.position;
            return Err(damaged(format!("only {there} of the {len} bytes that were announced")));
        }
        self.crc.update(&buf[..count]);
        self.position += count as u64;
        Ok(count)
    }
}

impl Forward for InflateReader<'_> {
    fn position(&self) -> u64 {
        self.position
    }

    fn skip(&mut self, count: u64) -> Result<(), SourceError> {
        io::copy(&mut self.take(count), &mut io::sink())?;
        Ok(())
    }
}

fn damaged(reason: impl std::fmt::Display) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("the compressed data are damaged: {reason}"))
}

/// A deflated range as a source: kept in a temporary file from the first window on.
pub struct InflatedSource {
    deflated: DeflatedRange,
    kept: OnceLock<Box<dyn Source>>,
    /// Held while the file is written, so that it is written once.
    writing: Mutex<()>,
}

impl From<DeflatedRange> for InflatedSource {
    fn from(deflated: DeflatedRange) -> Self {
        InflatedSource { deflated, kept: OnceLock::new(), writing: Mutex::new(()) }
    }
}

impl InflatedSource {
    /// The bytes as they are inflated, kept nowhere.
    pub fn stream(&self) -> InflateReader<'_> {
        self.deflated.stream()
    }

    fn kept(&self) -> Result<&dyn Source, SourceError> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kept) = self.kept.get() {
            return Ok(kept.as_ref());
        }
        let mut stream = self.stream();
        let kept = spool((&mut stream).take(self.deflated.len))?;
        stream.finish()?;
        Ok(self.kept.get_or_init(|| kept).as_ref())
    }
}

impl Source for Arc<InflatedSource> {
    fn len(&self) -> u64 {
        self.deflated.len
    }

    fn window<'a>(
        &'a self,
        range: Range<u64>,
        scratch: &'a mut Vec<u8>,
    ) -> Result<&'a [u8], SourceError> {
        checked_len(&range, self.deflated.len)?;
        match self.kept.get() {
            Some(kept) => kept.window(range, scratch),
            None => self.kept()?.window(range, scratch),
        }
    }

    fn window_limit(&self) -> Option<u64> {
        None
    }

    fn verify(&self) -> Result<(), SourceError> {
        self.kept.get().map_or(Ok(()), |kept| kept.verify())
    }
}
