//! Elements in chunks as a source of bytes, and the pieces that read from it.

use std::ops::Range;

use super::cache::{CACHE_BYTES, Cache};
use super::cells::Steps;
use super::{Chunked, TouchedChunk};
use crate::execute::{FillError, Pieces, ReadFrom, VisitRange, split_first};
use crate::plan::{PIECE_BYTES, Plan};
use crate::runs::Runs;
use crate::source::{Source, SourceError, checked_len};
use crate::view::View;

/// Pieces that read decoded elements: ranges of a view of them, or rows of a gather. The chunks of
/// a piece are cached for the pieces that follow.
pub struct Decoding<'a> {
    chunked: Chunked,
    /// The positions of the elements that the pieces read, one after the other from 0 on.
    runs: Runs,
    pieces: Box<dyn Pieces + 'a>,
    /// Whether the pieces are ranges of the positions, one after the other.
    is_in_order: bool,
    work: u64,
    cache: Cache,
}

/// A chunk is decoded ahead for one of so many pieces.
const PIECES_AHEAD: u64 = 64;

impl<'a> Decoding<'a> {
    /// Read a view of the positions in its order, in pieces that do not divide `unit` bytes.
    pub fn in_order(chunked: &Chunked, view: &View, unit: u64) -> Decoding<'a> {
        Decoding::of_runs(chunked, view.runs(), unit, PIECE_BYTES)
    }

    pub(super) fn of_runs(chunked: &Chunked, runs: &Runs, unit: u64, piece: u64) -> Decoding<'a> {
        let ranges = Plan::new(&Runs::contiguous(0, runs.bytes()), unit, piece);
        let work = chunked.work(runs);
        let (chunked, runs) = (chunked.used_by(runs), runs.clone());
        let (pieces, cache) = (Box::new(ranges), Cache::of_bytes(CACHE_BYTES));
        Decoding { chunked, runs, pieces, is_in_order: true, work, cache }
    }

    /// Pieces that read elements at their positions.
    pub fn of(chunked: &Chunked, pieces: Box<dyn Pieces + 'a>) -> Decoding<'a> {
        let runs = chunked.all();
        let work = pieces.work();
        let (chunked, cache) = (chunked.clone(), Cache::of_bytes(CACHE_BYTES));
        Decoding { chunked, runs, pieces, is_in_order: false, work, cache }
    }

    /// Whether ranges one after the other decode no chunk twice: not if so many chunks would have
    /// to be cached that putting them in order in a file is better.
    pub fn decodes_once(&self) -> bool {
        // the chunks of one step along the outermost axis of long cells must be cached: of two
        // steps, since workers are not at the same one
        let steps = self.chunked.steps(&self.runs);
        let inner = steps.iter().skip_while(|steps| steps.most() <= 1).skip(1);
        let chunk = self.chunked.chunk_bytes();
        let kept = inner.map(Steps::cells).fold(chunk, u64::saturating_mul).saturating_mul(2);
        // if one chunk is needed at a time, it takes that memory in any case
        kept <= CACHE_BYTES.max(chunk.saturating_mul(2))
    }

    /// Decode the next chunk of later pieces while other workers decode the chunks of piece `number`, so that few pieces of
    /// each chunk do not make workers wait for each other.
    fn decode_ahead(&self, number: u64, source: &dyn Source) {
        let last = self.count().min(number.saturating_add(PIECES_AHEAD));
        let is_worth_it = self.is_in_order && self.chunked.chunk_bytes() <= CACHE_BYTES / 8;
        for later in number..if is_worth_it { last } else { number } {
            for part in self.runs.boxes(self.output(later).file_bounds()) {
                let touched = self.chunked.touched(&part);
                for (TouchedChunk { at, .. }, in_part) in touched.chunks().zip(0..) {
                    let is_own = later == number;
                    if is_own && (!self.cache.is_known(&at) || self.cache.is_ready(&at)) {
                        return;
                    }
                    if !is_own && !self.cache.is_known(&at) {
                        let decode = || touched.decode(in_part, &at, source);
                        return self.cache.prepare(&at, || true, decode);
                    }
                }
            }
        }
    }

    /// Fill `out` with the elements from position `start` on.
    pub fn read(&self, start: u64, source: &dyn Source, out: &mut [u8]) -> Result<(), SourceError> {
        let mut rest = out;
        let range = start..start + rest.len() as u64;
        self.runs.boxes(range).iter().try_for_each(|part| {
            let now = split_first(&mut rest, part.bytes());
            self.chunked.fill(part, source, Some(&self.cache), now)
        })
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
        self.decode_ahead(number, from.source);
        let source = &Elements { decoding: self, source: from.source };
        self.pieces.fill(number, &mut ReadFrom { source, scratch: from.scratch }, out)?;
        self.cache.filled(self.count());
        Ok(())
    }

    fn needs(&self, number: u64, _gap: u64, visit: VisitRange<'_>) -> Result<(), FillError> {
        self.pieces.needs(number, 0, &mut |range| {
            let is_wanted = |at: &[u64]| self.cache.expect(at);
            self.runs
                .boxes(range)
                .iter()
                .for_each(|part| self.chunked.needs(part, is_wanted, visit));
        })
    }

    fn work(&self) -> u64 {
        self.work
    }
}

/// The elements, one after the other, decoded from the bytes of a source.
struct Elements<'a> {
    decoding: &'a Decoding<'a>,
    source: &'a dyn Source,
}

impl Source for Elements<'_> {
    fn len(&self) -> u64 {
        self.decoding.runs.bytes()
    }

    fn window<'a>(
        &'a self,
        range: Range<u64>,
        scratch: &'a mut Vec<u8>,
    ) -> Result<&'a [u8], SourceError> {
        scratch.resize(checked_len(&range, self.len())?, 0);
        self.decoding.read(range.start, self.source, scratch)?;
        Ok(scratch)
    }

    fn read(&self, range: Range<u64>, _: &mut Vec<u8>, out: &mut [u8]) -> Result<(), SourceError> {
        self.decoding.read(range.start, self.source, out)
    }

    fn window_limit(&self) -> Option<u64> {
        // bytes that are not used may be in another chunk
        Some(1)
    }
}
