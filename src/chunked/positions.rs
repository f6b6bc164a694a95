//! Elements in chunks at their positions, for pieces of any kind.

use std::ops::Range;

use super::Chunked;
use super::cache::Cache;
use crate::execute::{FillError, Pieces, ReadFrom};
use crate::runs::Runs;
use crate::source::{Source, SourceError};

/// Pieces that read positions, such as those of a gather, from a tensor in chunks. Chunks are kept for
/// the pieces that follow.
pub struct Decoding<'a> {
    chunked: &'a Chunked,
    pieces: Box<dyn Pieces + 'a>,
    cache: Cache,
}

impl<'a> Decoding<'a> {
    /// Let pieces read the elements of a tensor at their positions.
    pub fn new(chunked: &'a Chunked, pieces: Box<dyn Pieces + 'a>) -> Decoding<'a> {
        Decoding { chunked, pieces, cache: Cache::of_last() }
    }
}

impl Pieces for Decoding<'_> {
    fn bytes(&self) -> u64 {
        self.pieces.bytes()
    }

    fn count(&self) -> u64 {
        self.pieces.count()
    }

    fn output(&self, number: u64) -> Runs {
        self.pieces.output(number)
    }

    fn fill(&self, number: u64, from: &mut ReadFrom<'_>, out: &mut [u8]) -> Result<(), FillError> {
        let Decoding { chunked, pieces, cache } = self;
        let source = &ElementPositions { chunked, source: from.source, cache };
        pieces.fill(number, &mut ReadFrom { source, scratch: from.scratch }, out)?;
        cache.filled(self.count());
        Ok(())
    }

    fn work(&self) -> u64 {
        self.pieces.work()
    }
}

/// The elements of a tensor in chunks, one after the other in C order.
struct ElementPositions<'a> {
    chunked: &'a Chunked,
    /// What the chunks are decoded from.
    source: &'a dyn Source,
    cache: &'a Cache,
}

impl Source for ElementPositions<'_> {
    fn len(&self) -> u64 {
        self.chunked.bytes
    }

    fn window<'a>(
        &'a self,
        range: Range<u64>,
        scratch: &'a mut Vec<u8>,
    ) -> Result<&'a [u8], SourceError> {
        let (Range { start, end }, len) = (range.clone(), self.len());
        if start > end || end > len {
            return Err(SourceError::OutOfBounds { start, end, len });
        }
        scratch.resize((end - start) as usize, 0);
        let ElementPositions { chunked, source, cache } = self;
        chunked.fill_range(&chunked.all(), range, *source, cache, scratch)?;
        Ok(scratch)
    }

    fn window_limit(&self) -> Option<u64> {
        // what nobody uses may lie in another chunk
        Some(1)
    }
}
