//! A block of rows of a gather, in which neighbours are joined.
//!
//! If a mask is mostly true, or a list has ascending stretches, slabs that follow each other in the output follow each
//! other in the params too. A `RowBlock` holds such a *stretch* as one entry,
//! which is copied as a box of bytes. Where stretches are short, each row is an entry by itself.
//!
//! ```text
//!   positions   3 4 5 6 9 10 11 12     offsets 30, 90     rows 4, 4     step 10
//! ```

use std::ops::Range;

use super::DROPPED;
use crate::execute::FillError;
use crate::runs::{Axis, Runs};

/// The fewest rows of a stretch, on average, that make stretches worthwhile.
const FEW: usize = 4;

/// The offsets of rows that have numbers.
pub(crate) trait RowOffsets: Sync {
    /// The first of `rows`, with neighbours joined: at least one row, and about `most` entries.
    /// Each row is like `slab`.
    fn block(
        &self,
        rows: Range<u64>,
        most: usize,
        slab: &Runs,
        block: &mut RowBlock,
    ) -> Result<(), FillError>;

    fn verify(&self) -> Result<(), FillError>;
}

/// Adjacent rows of the output, and the offsets of their slabs in the params' file.
#[derive(Debug, Default)]
pub(crate) struct RowBlock {
    /// The offset of each row, or of the first row of each stretch; or [`DROPPED`].
    offsets: Vec<u64>,
    /// The number of rows of each stretch; empty if all are single rows.
    lens: Vec<u64>,
    /// The distance between the rows of a stretch, in bytes.
    step: u64,
    rows: u64,
}

impl RowBlock {
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    pub(crate) fn single_rows(&self) -> Option<&[u64]> {
        self.lens.is_empty().then_some(&self.offsets)
    }

    pub(crate) fn stretches(&self) -> impl Iterator<Item = (u64, u64)> {
        let lens = self.lens.iter().copied().chain(std::iter::repeat(1));
        self.offsets.iter().copied().zip(lens)
    }

    /// Clear the block, then make room for `rows` single rows, whose offsets are to be filled in.
    pub(super) fn begin_rows(&mut self, rows: u64) -> &mut [u64] {
        self.lens.clear();
        self.rows = rows;
        self.offsets.resize(rows as usize, 0);
        &mut self.offsets
    }

    /// Clear the block, which then takes stretches of rows at this distance, in bytes.
    pub(super) fn begin_stretches(&mut self, step: u64) {
        self.offsets.clear();
        self.lens.clear();
        self.step = step;
        self.rows = 0;
    }

    /// Append rows. Returns the number of stretches.
    pub(super) fn push(&mut self, offset: u64, rows: u64) -> usize {
        self.rows += rows;
        match (self.offsets.last(), self.lens.last_mut()) {
            (Some(last), Some(len)) if last.wrapping_add(*len * self.step) == offset => {
                *len += rows
            }
            _ => {
                self.offsets.push(offset);
                self.lens.push(rows);
            }
        }
        self.lens.len()
    }

    /// Join single rows to stretches, if enough of them are neighbours. The distance between
    /// neighbours is the length of a contiguous slab, or, for other slabs, that between two rows in
    /// the middle.
    pub(super) fn join_neighbours(&mut self, slab: &Runs) {
        let middle = self.offsets.len() / 2;
        let step = match (slab.axes.is_empty(), self.offsets.get(middle..middle + 2)) {
            (true, _) => slab.run,
            (false, Some(&[first, second])) => second.wrapping_sub(first),
            (false, _) => return,
        };
        // rows that are equal, or descend, stay single
        if !(1..1 << 62).contains(&step) {
            return;
        }
        let follows =
            |before: u64, after: u64| before != DROPPED && after.wrapping_sub(before) == step;
        let pairs = self.offsets.array_windows::<2>();
        let joined = pairs.filter(|&&[before, after]| follows(before, after)).count();
        if (self.offsets.len() - joined) * FEW > self.offsets.len() {
            return;
        }
        self.step = step;
        let mut last = DROPPED;
        for at in 0..self.offsets.len() {
            let offset = self.offsets[at];
            match self.lens.last_mut() {
                Some(len) if follows(last, offset) => *len += 1,
                _ => {
                    self.offsets[self.lens.len()] = offset;
                    self.lens.push(1);
                }
            }
            last = offset;
        }
        self.offsets.truncate(self.lens.len());
    }

    /// The bytes of a stretch that begins at `offset`; each row is like `slab`.
    pub(crate) fn runs(&self, slab: &Runs, offset: u64, rows: u64) -> Runs {
        let at = slab.offset.wrapping_add_unsigned(offset);
        if slab.axes.is_empty() && (rows == 1 || self.step == slab.run) {
            return Runs { offset: at, axes: Vec::new(), run: rows * slab.run };
        }
        let outer = Axis { len: rows, stride: self.step as i64 };
        let axes = match rows {
            1 => slab.axes.clone(),
            _ => [&[outer], &slab.axes[..]].concat(),
        };
        Runs { offset: at, axes, run: slab.run }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::execute::pack::pack_plainly;

    fn bytes(block: &RowBlock, slab: &Runs, file: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (offset, rows) in block.stretches() {
            let mut part = vec![0; (rows * slab.bytes()) as usize];
            if offset != DROPPED {
                let Runs { offset, axes, run } = block.runs(slab, offset, rows);
                pack_plainly(&axes, run, file, offset as usize, &mut part);
            }
            bytes.extend(part);
        }
        bytes
    }

    proptest! {
        #[test]
        fn stretches_are_their_rows(
            stretches in prop::collection::vec((0..50u64, 1..40u64, 0..8u8), 1..20),
            (itemsize, len, apart) in (1..5u64, 1..4u64, 1..3u64),
        ) {
            let axes = match apart {
                1 => Vec::new(),
                _ => vec![Axis { len, stride: (itemsize * apart) as i64 }],
            };
            let run = if apart == 1 { itemsize * len } else { itemsize };
            let slab = Runs { offset: 2, axes, run };
            let row = itemsize * len * apart;
            let mut offsets = Vec::new();
            for (first, rows, kind) in stretches {
                offsets.extend((0..rows).map(|at| match kind {
                    0 => DROPPED,
                    1 => first * row,
                    2 => (first + rows - at) * row,
                    _ => (first + at) * row,
                }));
            }
            let file: Vec<u8> =
                (0..3000u64).map(|at| (at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8).collect();
            let mut block = RowBlock::default();
            block.begin_rows(offsets.len() as u64).copy_from_slice(&offsets);
            prop_assert_eq!(block.single_rows(), Some(&offsets[..]));
            let expected = bytes(&block, &slab, &file);
            block.join_neighbours(&slab);
            prop_assert_eq!(bytes(&block, &slab, &file), expected);
            prop_assert_eq!(block.rows(), offsets.len() as u64);
            prop_assert_eq!(block.stretches().map(|(_, rows)| rows).sum::<u64>(), block.rows());
        }
    }

    #[test]
    fn only_neighbours_are_taken_together() {
        let joined = |offsets: &[u64], slab: &Runs| {
            let mut block = RowBlock::default();
            block.begin_rows(offsets.len() as u64).copy_from_slice(offsets);
            block.join_neighbours(slab);
            block.stretches().collect::<Vec<_>>()
        };
        let slab = Runs::contiguous(0, 10);
        assert_eq!(joined(&[30, 40, 50, 60, 90, 100, 110, 120], &slab), [(30, 4), (90, 4)]);
        // too few stretches
        assert_eq!(joined(&[30, 40, 90, 20], &slab).len(), 4);
        // a dropped row has no neighbour, though numbers wrap around
        let item = Runs::contiguous(0, 1);
        assert_eq!(
            joined(&[5, 6, 7, 8, 9, 10, 11, DROPPED, 0, 1, 2, 3], &item),
            [(5, 7), (DROPPED, 1), (0, 4)]
        );
        let column = Runs { offset: 0, axes: vec![Axis { len: 3, stride: 100 }], run: 4 };
        assert_eq!(joined(&[0, 4, 8, 12, 16, 20, 40, 44], &column), [(0, 6), (40, 2)]);
        assert_eq!(joined(&[20, 16, 12, 8, 4, 0], &column).len(), 6);
        assert_eq!(joined(&[], &column), []);
    }
}
