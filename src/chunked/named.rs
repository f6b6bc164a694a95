//! The set of the chunks that hold given positions.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use super::cells::Steps;
use super::{Chunked, grid};
use crate::runs::Runs;

/// A set of chunks, to which several threads add.
#[derive(Debug)]
pub struct ChunkSet {
    /// The chunks along each axis.
    grid: Vec<u64>,
    bits: Vec<AtomicU64>,
    missing: AtomicU64,
}

/// A set of more chunks would take too much memory.
const MOST_CHUNKS: u64 = 1 << 27;

impl ChunkSet {
    /// An empty set of the chunks of a tensor; `None` if there are too many chunks.
    fn new(chunked: &Chunked) -> Option<ChunkSet> {
        let grid: Vec<u64> = grid(&chunked.shape, chunked.chunks.chunk_shape()).collect();
        let count = grid.iter().try_fold(1u64, |count, len| count.checked_mul(*len));
        let count = count.filter(|count| *count <= MOST_CHUNKS)?;
        let bits = (0..count.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        Some(ChunkSet { grid, bits, missing: AtomicU64::new(count) })
    }

    fn number(&self, at: impl Iterator<Item = u64>) -> u64 {
        self.grid.iter().zip(at).fold(0, |number, (len, at)| number * len + at)
    }

    /// Add all chunks between two chunks, along each axis.
    fn add(&self, first: &[u64], last: &[u64]) {
        let mut at = first.to_vec();
        loop {
            let number = self.number(at.iter().copied());
            let bit = 1 << (number % 64);
            let word = &self.bits[(number / 64) as usize];
            // most chunks are added repeatedly
            if word.load(Ordering::Relaxed) & bit == 0
                && word.fetch_or(bit, Ordering::Relaxed) & bit == 0
            {
                self.missing.fetch_sub(1, Ordering::Relaxed);
            }
            let Some(axis) = (0..at.len()).rev().find(|&axis| at[axis] < last[axis]) else {
                return;
            };
            at[axis] += 1;
            at[axis + 1..].copy_from_slice(&first[axis + 1..]);
        }
    }

    pub(super) fn has(&self, at: &[u64]) -> bool {
        let number = self.number(at.iter().copied());
        self.bits[(number / 64) as usize].load(Ordering::Relaxed) & 1 << (number % 64) != 0
    }

    fn count(&self) -> u64 {
        self.grid.iter().product::<u64>() - self.missing.load(Ordering::Relaxed)
    }

    pub fn is_full(&self) -> bool {
        self.missing.load(Ordering::Relaxed) == 0
    }
}

impl Chunked {
    /// An empty set of its chunks; `None` if there are too many.
    pub fn no_chunks(&self) -> Option<ChunkSet> {
        ChunkSet::new(self).filter(|_| self.bytes > 0)
    }

    /// Add the chunks of rows to a set: each row has the bytes `row`, counted from its offset among
    /// the positions.
    pub fn name(&self, offsets: &[u64], row: &Range<i64>, named: &ChunkSet) {
        let item = self.item as i64;
        let chunk = self.chunks.chunk_shape();
        // the offsets of rows in the same chunks as the row before
        let mut same = 0..0;
        for &offset in offsets {
            if same.contains(&(offset as i64)) {
                continue;
            }
            let ends =
                [row.start, row.end - 1].map(|byte| self.index(offset.wrapping_add_signed(byte)));
            let [first, last] = ends.each_ref().map(|index| self.chunk_of(index));
            named.add(&first, &last);
            let (Some(chunk), Some(len)) = (chunk.last(), self.shape.last()) else { return };
            let within = ends.map(|index| index.last().copied().unwrap_or(0));
            let before = within.map(|at| at % chunk).into_iter().min().unwrap_or(0) as i64;
            // the last chunk of the axis ends with it
            let rest = |at: u64| (at / chunk * chunk + chunk).min(*len) - 1 - at;
            let behind = within.map(rest).into_iter().min().unwrap_or(0) as i64;
            same = offset as i64 - before * item..offset as i64 + behind * item + 1;
        }
    }

    /// The set of the chunks with listed items along one axis of `runs`; `None` if there are too many chunks.
    pub fn with_items(&self, runs: &Runs, axis: usize, listed: &[u64]) -> Option<ChunkSet> {
        let named = self.no_chunks()?;
        let Range { start, end } = runs.byte_bounds();
        let ends = [start, end - 1].map(|byte| self.chunk_of(&self.index(byte as u64)));
        let Steps { axis, start, step, chunk, .. } = self.steps(runs).swap_remove(axis);
        let Some(axis) = axis else {
            named.add(&ends[0], &ends[1]);
            return Some(named);
        };
        let mut chunks: Vec<u64> =
            listed.iter().map(|item| (start + item * step.unsigned_abs()) / chunk).collect();
        chunks.dedup();
        let [mut first, mut last] = ends;
        for at in chunks {
            (first[axis], last[axis]) = (at, at);
            named.add(&first, &last);
        }
        Some(named)
    }

    /// The approximate bytes of the chunks of a set.
    pub fn bytes_of(&self, named: &ChunkSet) -> u64 {
        named.count().saturating_mul(self.chunk_bytes()).min(self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::runs::index_of;
    use crate::source::{Source, SourceError};
    use crate::tensor::Chunks;

    #[derive(Debug)]
    struct OfShape(Vec<u64>);

    impl Chunks for OfShape {
        fn chunk_shape(&self) -> &[u64] {
            &self.0
        }

        fn decode(&self, _: &[u64], _: u64, _: &dyn Source) -> Result<Vec<u8>, SourceError> {
            Ok(Vec::new())
        }
    }

    proptest! {
        /// Rows of one element, or of some along the last axis, in any order; chunks are longer than axes, too.
        #[test]
        fn the_chunks_of_rows_are_named(
            axes in prop::collection::vec((1u64..8, 1u64..10), 1..4),
            rows in prop::collection::vec(any::<prop::sample::Index>(), 1..40),
            row in 1u64..4,
            item in 1u64..3,
        ) {
            let (shape, chunk): (Vec<u64>, Vec<u64>) = axes.into_iter().unzip();
            let row = row.min(*shape.last().unwrap());
            let chunked = Chunked::new(Arc::new(OfShape(chunk.clone())), &shape, item).unwrap();
            let named = chunked.no_chunks().unwrap();
            let index = |number: u64| index_of(shape.iter().copied(), number);
            let count = shape.iter().product::<u64>();
            let begins = |number: &u64| index(*number).last().unwrap() + row <= *shape.last().unwrap();
            let firsts: Vec<u64> =
                rows.iter().map(|at| at.index(count as usize) as u64).filter(begins).collect();
            let offsets: Vec<u64> = firsts.iter().map(|number| number * item).collect();
            chunked.name(&offsets, &(0..(row * item) as i64), &named);
            let elements = firsts.iter().flat_map(|first| *first..first + row);
            let wanted: BTreeSet<Vec<u64>> =
                elements.map(|number| chunked.chunk_of(&index(number))).collect();
            let all: Vec<u64> = grid(&shape, &chunk).collect();
            for number in 0..all.iter().product() {
                let at = index_of(all.iter().copied(), number);
                prop_assert_eq!(named.has(&at), wanted.contains(&at), "chunk {:?}", at);
            }
            prop_assert_eq!(named.count(), wanted.len() as u64);
        }
    }
}
