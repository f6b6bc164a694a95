//! Slabs at the places that a file names: one pass of a [distribution](super::distribution), as pieces that
//! read them, or as the positions of a scatter.

use std::ops::Range;

use super::copy::{copy_rows, read_rows};
use super::positions::DROPPED;
use super::row_block::{RowBlock, RowOffsets};
use super::stages::Stages;
use super::tuples::BLOCK;
use crate::execute::{FillError, Pieces, ReadFrom, split_first};
use crate::plan::Panel;
use crate::runs::Runs;
use crate::source::{Source, SourceError};

/// Bytes of a place in a file of places.
pub(super) const PLACE: u64 = size_of::<u64>() as u64;

/// Rows that are looked at together where slabs are read by position.
const READ_BLOCK: usize = 1 << 16;

/// Slabs one after the other.
pub(crate) struct PlacedSlabs {
    /// Where each begins in their source, or [`DROPPED`]: numbers of the machine's own byte order, in a
    /// temporary file.
    pub(super) places: Box<dyn Source>,
    /// A slab, from its first byte on.
    pub(super) slab: Runs,
    /// The bytes of their source that they lie in.
    pub(super) within: Range<u64>,
    pub(super) stages: Stages,
}

impl PlacedSlabs {
    /// The places of the rows from `row` on.
    fn places(&self, row: u64, out: &mut [u64], bytes: &mut Vec<u8>) -> Result<(), SourceError> {
        let range = row * PLACE..(row + out.len() as u64) * PLACE;
        bytes.resize(out.len() * PLACE as usize, 0);
        self.places.read(range, &mut Vec::new(), bytes)?;
        let bounds = self.slab.byte_bounds();
        let (before, behind) = (bounds.start.unsigned_abs(), bounds.end.unsigned_abs());
        let first = self.within.start.saturating_add(before);
        let last = self.within.end.saturating_sub(behind);
        for (place, bytes) in out.iter_mut().zip(bytes.as_chunks().0) {
            *place = u64::from_ne_bytes(*bytes);
            // a list that was changed meanwhile
            if !(first..=last).contains(place) && *place != DROPPED {
                return Err(SourceError::Changed);
            }
        }
        Ok(())
    }
}

impl PlacedSlabs {
    /// The stages of the pass.
    pub(crate) fn stages(&self) -> &Stages {
        &self.stages
    }

    /// A slab, from its first byte on.
    pub(crate) fn slab(&self) -> &Runs {
        &self.slab
    }

    /// The bytes that they lie in.
    pub(crate) fn within(&self) -> &Range<u64> {
        &self.within
    }

    fn block_of(
        &self,
        rows: Range<u64>,
        slab: &Runs,
        block: &mut RowBlock,
        bytes: &mut Vec<u8>,
    ) -> Result<(), SourceError> {
        self.places(rows.start, block.begin_rows(rows.end - rows.start), bytes)?;
        block.join_neighbours(slab);
        Ok(())
    }
}

impl RowOffsets for PlacedSlabs {
    fn block(
        &self,
        rows: Range<u64>,
        most: usize,
        slab: &Runs,
        block: &mut RowBlock,
    ) -> Result<(), FillError> {
        let end = rows.end.min(rows.start + most as u64);
        Ok(self.block_of(rows.start..end, slab, block, &mut Vec::new())?)
    }

    fn verify(&self) -> Result<(), FillError> {
        Ok(self.places.verify()?)
    }
}

impl Pieces for PlacedSlabs {
    fn bytes(&self) -> u64 {
        self.places.len() / PLACE * self.slab.bytes()
    }

    fn count(&self) -> u64 {
        self.stages.pieces()
    }

    fn output(&self, number: u64) -> Runs {
        let (rows, slab) = (self.stages.rows(number), self.slab.bytes());
        Runs::contiguous(rows.start * slab, (rows.end - rows.start) * slab)
    }

    fn fill(&self, number: u64, from: &mut ReadFrom<'_>, out: &mut [u8]) -> Result<(), FillError> {
        let (rows, slab) = (self.stages.rows(number), &self.slab);
        let (mut row, end) = (rows.start, rows.end);
        let reads = from.source.window_limit().is_some();
        let most = if reads { READ_BLOCK } else { BLOCK } as u64;
        let (mut block, mut bytes, mut rest) = (RowBlock::default(), Vec::new(), out);
        while row < end {
            let count = most.min(end - row);
            self.block_of(row..row + count, slab, &mut block, &mut bytes)?;
            let part = split_first(&mut rest, count * slab.bytes());
            match reads {
                true => read_rows(from, &block, slab, part)?,
                false => {
                    let input = from.window(self.within.clone())?;
                    copy_rows(input, self.within.start, &block, slab, part);
                }
            }
            row += count;
        }
        Ok(())
    }

    fn panel(&self, number: u64) -> Option<Panel> {
        self.stages.panel(number)
    }

    fn waits_for_disk(&self, _source: &dyn Source) -> bool {
        true
    }

    fn sparse_range(&self) -> Option<Range<u64>> {
        // what is needed is read ahead, panel by panel
        Some(self.within.clone())
    }
}
