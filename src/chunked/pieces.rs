//! Pieces of what a view takes of the elements in chunks.

use super::Chunked;
use super::cache::{CACHE_BYTES, Cache};
use super::grid::{CellBoxes, Steps};
use crate::execute::{FillError, Pieces, ReadFrom};
use crate::plan::PIECE_BYTES;
use crate::runs::Runs;
use crate::view::View;

/// Boxes of whole chunks, as far as they are selected, for outputs that take bytes in any order: no
/// chunk is decoded twice.
pub struct ChunkPieces<'a> {
    chunked: &'a Chunked,
    runs: &'a Runs,
    /// Where the selected elements lie in the output.
    dense: Runs,
    steps: Vec<Steps>,
    cells: CellBoxes,
}

impl<'a> ChunkPieces<'a> {
    /// What a view of the positions takes.
    pub fn new(chunked: &'a Chunked, view: &'a View) -> ChunkPieces<'a> {
        let runs = view.runs();
        let steps = chunked.steps(runs);
        let cells = CellBoxes::of_bytes(&steps, runs.run, PIECE_BYTES);
        ChunkPieces { chunked, runs, dense: runs.dense(), steps, cells }
    }
}

impl Pieces for ChunkPieces<'_> {
    fn bytes(&self) -> u64 {
        self.runs.bytes()
    }

    fn count(&self) -> u64 {
        if self.bytes() == 0 { 0 } else { self.cells.count() }
    }

    fn output(&self, number: u64) -> Runs {
        self.dense.part(&self.cells.items(&self.steps, number)).coalesced()
    }

    fn fill(&self, number: u64, from: &mut ReadFrom<'_>, out: &mut [u8]) -> Result<(), FillError> {
        let taken = self.runs.part(&self.cells.items(&self.steps, number));
        Ok(self.chunked.fill(&taken, from.source, None, out)?)
    }
}

/// Ranges of the output in its order. The chunks of a range are kept for those that follow.
pub struct InOrder<'a> {
    chunked: &'a Chunked,
    runs: &'a Runs,
    piece: u64,
    cache: Cache,
}

impl<'a> InOrder<'a> {
    /// What a view of the positions takes, in pieces that do not divide `unit` bytes; `None` where so
    /// many chunks would have to be kept that it is better to put them in order in a file.
    pub fn new(chunked: &'a Chunked, view: &'a View, unit: u64) -> Option<InOrder<'a>> {
        // ranges of the output, one after the other, decode no chunk twice if those are kept that one
        // step along the outermost axis needs: of two steps, since workers are not at the same one
        let steps = chunked.steps(view.runs());
        let cells = steps.iter().map(Steps::cells).skip_while(|cells| *cells == 1).skip(1);
        let kept = cells.fold(chunked.chunk_bytes(), u64::saturating_mul).saturating_mul(2);
        let piece = (PIECE_BYTES / unit.max(1) * unit).max(unit).max(1);
        let pieces = InOrder { chunked, runs: view.runs(), piece, cache: Cache::default() };
        // where one chunk is needed at a time, that is how much memory it takes in any case
        let most = CACHE_BYTES.max(chunked.chunk_bytes().saturating_mul(2));
        (kept <= most).then_some(pieces)
    }
}

impl Pieces for InOrder<'_> {
    fn bytes(&self) -> u64 {
        self.runs.bytes()
    }

    fn count(&self) -> u64 {
        self.bytes().div_ceil(self.piece)
    }

    fn output(&self, number: u64) -> Runs {
        let start = number * self.piece;
        Runs::contiguous(start, self.piece.min(self.bytes() - start))
    }

    fn fill(&self, number: u64, from: &mut ReadFrom<'_>, out: &mut [u8]) -> Result<(), FillError> {
        let start = number * self.piece;
        let range = start..start + out.len() as u64;
        self.chunked.fill_range(self.runs, range, from.source, &self.cache, out)?;
        self.cache.filled(self.count());
        Ok(())
    }
}
