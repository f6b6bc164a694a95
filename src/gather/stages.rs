//! Rows in stages, each of which needs a few ranges of a source that fit a share of the memory.
//!
//! A stage is a number of adjacent rows that lie, in any order, in these ranges. It is a panel: its
//! ranges are read before its rows are copied, and released after them. So each byte is read from
//! the disk once, in long ranges.

use std::ops::Range;

use zerocopy::IntoBytes;

use super::DROPPED;
use super::block::{RowBlock, RowOffsets};
use super::pieces::{copy_block, rows_at_once};
use crate::execute::{FillError, Memory, Pieces, ReadFrom, split_first};
use crate::plan::Panel;
use crate::runs::Runs;
use crate::source::{Source, SourceError};

/// The bytes of a position in a file of positions.
pub(super) const POSITION_BYTES: u64 = size_of::<u64>() as u64;

type StageRanges = Box<dyn Fn(usize) -> Vec<Range<u64>> + Send + Sync>;

pub(crate) struct Stages {
    /// The first row of each stage (none is empty), then the end of the last one.
    first_rows: Vec<u64>,
    /// The first piece of each stage, then the end of the last one.
    first_pieces: Vec<u64>,
    piece_rows: u64,
    ranges: StageRanges,
}

impl Stages {
    /// Stages that begin at these rows, the last of which is the end of all, in pieces of
    /// `piece_rows` rows; `ranges` are the ascending ranges that each needs.
    pub(crate) fn new(
        first_rows: Vec<u64>,
        piece_rows: u64,
        ranges: impl Fn(usize) -> Vec<Range<u64>> + Send + Sync + 'static,
    ) -> Stages {
        let piece_rows = piece_rows.max(1);
        let ranges = Box::new(ranges);
        let mut first_pieces = vec![0];
        first_pieces.extend(first_rows.array_windows().scan(0, |pieces, [first, end]| {
            *pieces += (end - first).div_ceil(piece_rows);
            Some(*pieces)
        }));
        Stages { first_rows, first_pieces, piece_rows, ranges }
    }

    pub(super) fn pieces(&self) -> u64 {
        self.first_pieces.last().copied().unwrap_or(0)
    }

    pub(crate) fn count(&self) -> usize {
        self.first_rows.len() - 1
    }

    pub(crate) fn of_row(&self, row: u64) -> usize {
        self.first_rows.partition_point(|&first| first <= row).saturating_sub(1)
    }

    pub(crate) fn rows_of(&self, stage: usize) -> Range<u64> {
        self.first_rows[stage]..self.first_rows[stage + 1]
    }

    pub(crate) fn ranges(&self, stage: usize) -> impl Iterator<Item = Range<u64>> {
        (self.ranges)(stage).into_iter().filter(|range| !range.is_empty())
    }

    pub(super) fn rows(&self, piece: u64) -> Range<u64> {
        let stage = self.first_pieces.partition_point(|&first| first <= piece).saturating_sub(1);
        let start = self.first_rows[stage] + (piece - self.first_pieces[stage]) * self.piece_rows;
        start..self.first_rows[stage + 1].min(start + self.piece_rows)
    }

    pub(super) fn panel(&self, piece: u64) -> Option<Panel> {
        let stage = self.first_pieces.binary_search(&piece).ok()?;
        let pieces = self.first_pieces.get(stage + 1)? - piece;
        let input =
            self.ranges(stage).map(|range| Runs::contiguous(range.start, range.end - range.start));
        Some(Panel { pieces, input: input.collect(), room: Memory::of_process().panels() })
    }
}

pub(crate) struct DistributedSlabs {
    /// The positions of the rows in their source, or [`DROPPED`]: numbers in the machine's byte
    /// order, in scratch.
    pub(super) offsets: Box<dyn Source>,
    pub(crate) slab: Runs,
    /// The bytes of the source that contain the rows.
    pub(crate) within: Range<u64>,
    pub(crate) stages: Stages,
}

impl DistributedSlabs {
    fn read_offsets(&self, row: u64, out: &mut [u64]) -> Result<(), SourceError> {
        let range = row * POSITION_BYTES..(row + out.len() as u64) * POSITION_BYTES;
        self.offsets.read(range, &mut Vec::new(), out.as_mut_bytes())?;
        let bounds = self.slab.byte_bounds();
        let first = self.within.start.saturating_add(bounds.start.unsigned_abs());
        let last = self.within.end.saturating_sub(bounds.end.unsigned_abs());
        let is_valid = |offset: &u64| (first..=last).contains(offset) || *offset == DROPPED;
        // or the list changed meanwhile
        if out.iter().all(is_valid) { Ok(()) } else { Err(SourceError::Changed) }
    }
}

impl RowOffsets for DistributedSlabs {
    fn block(
        &self,
        rows: Range<u64>,
        most: usize,
        slab: &Runs,
        block: &mut RowBlock,
    ) -> Result<(), FillError> {
        let count = (rows.end - rows.start).min(most as u64);
        self.read_offsets(rows.start, block.begin_rows(count))?;
        block.join_neighbours(slab);
        Ok(())
    }

    fn verify(&self) -> Result<(), FillError> {
        Ok(self.offsets.verify()?)
    }
}

impl Pieces for DistributedSlabs {
    fn bytes(&self) -> u64 {
        self.offsets.len() / POSITION_BYTES * self.slab.bytes()
    }

    fn count(&self) -> u64 {
        self.stages.pieces()
    }

    fn output(&self, number: u64) -> Runs {
        let rows = self.stages.rows(number);
        let slab = self.slab.bytes();
        Runs::contiguous(rows.start * slab, (rows.end - rows.start) * slab)
    }

    fn fill(&self, number: u64, from: &mut ReadFrom<'_>, out: &mut [u8]) -> Result<(), FillError> {
        let Range { start, end } = self.stages.rows(number);
        let slab = &self.slab;
        let most = rows_at_once(from.source);
        let mut block = RowBlock::default();
        let mut rest = out;
        for row in (start..end).step_by(most) {
            self.block(row..end, most, slab, &mut block)?;
            let part = split_first(&mut rest, block.rows() * slab.bytes());
            copy_block(from, None, &self.within, &block, slab, part)?;
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
        // ranges are read ahead, panel by panel
        Some(self.within.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_piece_is_in_two_stages() {
        let ranges = |stage: usize| vec![stage as u64 * 10..stage as u64 * 10 + 7, 80..80];
        let stages = Stages::new(vec![0, 100, 101, 300], 30, ranges);
        let rows: Vec<Range<u64>> = (0..stages.pieces()).map(|piece| stages.rows(piece)).collect();
        assert_eq!(rows[..5], [0..30, 30..60, 60..90, 90..100, 100..101]);
        assert_eq!(
            rows[5..],
            [101..131, 131..161, 161..191, 191..221, 221..251, 251..281, 281..300]
        );
        let panels = (0..=stages.pieces()).map(|piece| stages.panel(piece));
        let panels: Vec<_> =
            panels.enumerate().filter_map(|(piece, panel)| Some((piece, panel?))).collect();
        let told: Vec<_> = panels.iter().map(|(piece, panel)| (*piece, panel.pieces)).collect();
        assert_eq!(told, [(0, 4), (4, 1), (5, 7)]);
        assert_eq!(panels[1].1.input, [Runs::contiguous(10, 7)]);
    }
}
