//! Deflated members of a zip archive.
//!
//! [`DeflatedRange::stream`] inflates a member in order. [`InflatedSource`] gives random access: it
//! inflates to a scratch file at the first window. Neither makes more bytes than the archive declares,
//! and both check the length and the CRC-32 at the end.

use std::io::{self, ErrorKind, Read, Take};
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crc32fast::Hasher;
use flate2::bufread::DeflateDecoder;

use super::{FileRange, Forward, Reader, Source, SourceResult, checked_len, spool};

/// A deflated range of a source, with its length and CRC-32 from the archive.
#[derive(Clone)]
pub struct DeflatedRange {
    pub archive: Arc<dyn Source>,
    /// The range of the compressed bytes in the archive.
    pub range: Range<u64>,
    /// The number of inflated bytes.
    pub len: u64,
    pub crc: u32,
}

impl DeflatedRange {
    pub fn stream(&self) -> InflateReader<'_> {
        InflateReader {
            decoder: DeflateDecoder::new(self.compressed()),
            crc: Hasher::new(),
            position: 0,
            declared: (self.len, self.crc),
        }
    }

    fn compressed(&self) -> Take<Reader<'_>> {
        let reader = Reader::at(self.archive.as_ref(), self.range.start);
        reader.take(self.range.end.saturating_sub(self.range.start))
    }
}

pub struct InflateReader<'s> {
    decoder: DeflateDecoder<Take<Reader<'s>>>,
    crc: Hasher,
    position: u64,
    declared: (u64, u32),
}

impl<'s> InflateReader<'s> {
    /// Inflate another range from its beginning with the memory of this reader: a decoder has some 40
    /// kB, and an archive may have many thousand members.
    pub fn restart(&mut self, range: &'s DeflatedRange) {
        self.decoder.reset(range.compressed());
        self.crc.reset();
        self.position = 0;
        self.declared = (range.len, range.crc);
    }

    /// Inflate the rest, and check length and CRC-32.
    pub fn finish(mut self) -> SourceResult<()> {
        let (len, crc) = self.declared;
        self.skip(len - self.position)?;
        if self.decoder.read(&mut [0]).map_err(damaged)? > 0 {
            return Err(damaged(format!("more than the expected {len} bytes")).into());
        }
        if self.crc.finalize() != crc {
            return Err(damaged("the CRC-32 does not match").into());
        }
        Ok(())
    }
}

impl Read for InflateReader<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let (len, _) = self.declared;
        let most = usize::try_from(len - self.position).unwrap_or(usize::MAX).min(buf.len());
        let count = self.decoder.read(&mut buf[..most]).map_err(damaged)?;
        if count == 0 && most > 0 {
            let there = self.position;
            return Err(damaged(format!("only {there} of the expected {len} bytes")));
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

    fn skip(&mut self, count: u64) -> SourceResult<()> {
        io::copy(&mut self.take(count), &mut io::sink())?;
        Ok(())
    }
}

fn damaged(reason: impl std::fmt::Display) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("the compressed data are damaged: {reason}"))
}

/// Random access to a deflated range, inflated to a scratch file at the first window.
pub struct InflatedSource {
    deflated: DeflatedRange,
    spooled: OnceLock<Box<dyn Source>>,
    /// A lock, so that the file is written once.
    writing: Mutex<()>,
}

impl From<DeflatedRange> for InflatedSource {
    fn from(deflated: DeflatedRange) -> Self {
        InflatedSource { deflated, spooled: OnceLock::new(), writing: Mutex::new(()) }
    }
}

impl InflatedSource {
    /// Inflate in order, without a scratch file.
    pub fn stream(&self) -> InflateReader<'_> {
        self.deflated.stream()
    }

    fn spooled(&self) -> SourceResult<&dyn Source> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(spooled) = self.spooled.get() {
            return Ok(spooled.as_ref());
        }
        let mut stream = self.stream();
        let spooled = spool((&mut stream).take(self.deflated.len))?;
        stream.finish()?;
        Ok(self.spooled.get_or_init(|| spooled).as_ref())
    }
}

impl Source for InflatedSource {
    fn len(&self) -> u64 {
        self.deflated.len
    }

    fn window<'a>(&'a self, range: Range<u64>, scratch: &'a mut Vec<u8>) -> SourceResult<&'a [u8]> {
        checked_len(&range, self.deflated.len)?;
        match self.spooled.get() {
            Some(spooled) => spooled.window(range, scratch),
            None => self.spooled()?.window(range, scratch),
        }
    }

    /// The scratch file, once it is written.
    fn behind(&self) -> Option<&dyn Source> {
        self.spooled.get().map(Box::as_ref)
    }

    /// The ranges of the compressed bytes, all of which are needed for any inflated bytes.
    fn file_ranges(&self, _range: Range<u64>) -> SourceResult<Vec<FileRange>> {
        self.deflated.archive.file_ranges(self.deflated.range.clone())
    }
}
