//! Rows in stages, each of which needs a few ranges of a source that fit a share of the memory.
//!
//! A stage is some rows after each other that lie, in any order, in these ranges. It is a
//! [panel](Panel): its ranges are read before its rows are copied, and let go behind them. So each byte is
//! read from the disk once, in long stretches.

use std::ops::Range;

use crate::execute::Memory;
use crate::plan::Panel;
use crate::runs::Runs;

/// The ranges of a stage, by its number.
type StageRanges = Box<dyn Fn(usize) -> Vec<Range<u64>> + Send + Sync>;

/// Where stages begin, and what they need.
pub(crate) struct Stages {
    /// The first row of each stage, none of which is empty, and behind the last one.
    first_rows: Vec<u64>,
    /// The first piece of each, and behind the last one.
    first_pieces: Vec<u64>,
    /// The rows of a piece, unless it is the last of its stage.
    piece_rows: u64,
    ranges: StageRanges,
}

impl Stages {
    /// Stages that begin at these rows, the last of which is behind all, in pieces of so many rows; `ranges`
    /// says what each needs, in ascending ranges.
    pub(crate) fn new(
        first_rows: Vec<u64>,
        piece_rows: u64,
        ranges: impl Fn(usize) -> Vec<Range<u64>> + Send + Sync + 'static,
    ) -> Stages {
        let (piece_rows, ranges) = (piece_rows.max(1), Box::new(ranges));
        let mut first_pieces = vec![0];
        first_pieces.extend(first_rows.array_windows().scan(0, |pieces, [first, end]| {
            *pieces += (end - first).div_ceil(piece_rows);
            Some(*pieces)
        }));
        Stages { first_rows, first_pieces, piece_rows, ranges }
    }

    /// How many pieces there are.
    pub(super) fn pieces(&self) -> u64 {
        self.first_pieces.last().copied().unwrap_or(0)
    }

    /// How many stages there are.
    pub(crate) fn count(&self) -> usize {
        self.first_rows.len() - 1
    }

    /// The stage that a row belongs to.
    pub(crate) fn of_row(&self, row: u64) -> usize {
        self.first_rows.partition_point(|&first| first <= row).saturating_sub(1)
    }

    /// The rows of a stage.
    pub(crate) fn rows_of(&self, stage: usize) -> Range<u64> {
        self.first_rows[stage]..self.first_rows[stage + 1]
    }

    /// What a stage needs.
    pub(crate) fn ranges(&self, stage: usize) -> impl Iterator<Item = Range<u64>> {
        (self.ranges)(stage).into_iter().filter(|range| !range.is_empty())
    }

    /// The rows of a piece.
    pub(super) fn rows(&self, piece: u64) -> Range<u64> {
        let stage = self.first_pieces.partition_point(|&first| first <= piece).saturating_sub(1);
        let start = self.first_rows[stage] + (piece - self.first_pieces[stage]) * self.piece_rows;
        start..self.first_rows[stage + 1].min(start + self.piece_rows)
    }

    /// The stage that begins with a piece, where one does.
    pub(super) fn panel(&self, piece: u64) -> Option<Panel> {
        let stage = self.first_pieces.binary_search(&piece).ok()?;
        let pieces = self.first_pieces.get(stage + 1)? - piece;
        let input =
            self.ranges(stage).map(|range| Runs::contiguous(range.start, range.end - range.start));
        Some(Panel { pieces, input: input.collect(), room: Memory::of_process().panels() })
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
