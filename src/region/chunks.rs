//! What is taken of a tensor in chunks.

use std::ops::Range;
use std::sync::Arc;

use crate::chunked::{ChunkPieces, Chunked, Decoding, InOrder};
use crate::error::Error;
use crate::execute::{ExecuteError, spool_pieces};
use crate::plan::{PIECE_BYTES, Plan};
use crate::region::contract::{ReadBy, ReadFor, Region, RegionPieces};
use crate::region::list::Gathered;
use crate::runs::Runs;

/// A region of the elements of a tensor, as if they followed each other from position 0 on, which are
/// decoded from chunks.
pub(super) struct InChunks {
    pub(super) elements: Arc<dyn Region>,
    pub(super) chunked: Arc<Chunked>,
}

impl Region for InChunks {
    fn bytes(&self) -> u64 {
        self.elements.bytes()
    }

    fn pieces<'a>(&'a self, by: &ReadBy<'_>) -> Result<RegionPieces<'a>, ExecuteError> {
        let chunked = self.chunked.as_ref();
        let Some(view) = self.elements.strided() else {
            // positions are those of decoded elements, not of the file
            let by = &ReadBy { to: ReadFor::Memory, ..*by };
            let RegionPieces { pieces, copied } = self.elements.pieces(by)?;
            return Ok(RegionPieces { pieces: Box::new(Decoding::new(chunked, pieces)), copied });
        };
        if let ReadFor::Position(_) = by.to {
            let pieces = Box::new(ChunkPieces::new(chunked, view));
            return Ok(RegionPieces { pieces, copied: None });
        }
        if let Some(pieces) = InOrder::new(chunked, view, by.unit) {
            return Ok(RegionPieces { pieces: Box::new(pieces), copied: None });
        }
        let copied =
            spool_pieces(by.source, &ChunkPieces::new(chunked, view), by.workers, by.progress)?;
        let plan = Plan::new(&Runs::contiguous(0, view.bytes()), by.unit, PIECE_BYTES);
        Ok(RegionPieces { pieces: Box::new(plan), copied: Some(copied) })
    }

    fn within(&self, range: Range<u64>) -> Vec<Arc<dyn Region>> {
        let parts = self.elements.within(range).into_iter();
        let part = |elements| {
            Arc::new(InChunks { elements, chunked: Arc::clone(&self.chunked) }) as Arc<dyn Region>
        };
        parts.map(part).collect()
    }

    fn identify(&self, add: &mut dyn FnMut(&[u8])) -> Result<(), Error> {
        add(b"chunks");
        self.elements.identify(add)
    }

    fn gathered(&self) -> Option<&Gathered> {
        self.elements.gathered()
    }
}
