//! Masks in files: counted once, in blocks, so that the place of any true element is found by its
//! rank.
//!
//! [`Mask::count`] reads the mask in parallel and keeps how many elements are true before each
//! block. [`MaskPositions`](super::mask_positions::MaskPositions) finds the block of the first tuple
//! that is asked for, and goes on from there. A mask is never held in memory; the counts take 2 MiB at most.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::null_sink::NullSink;
use crate::execute::{
    self, Conversion, ExecuteError, FillError, Pieces, Progress, ReadFrom, Transfer, Workers,
    read_range,
};
use crate::runs::Runs;
use crate::source::{Source, SourceError};
use crate::view::Layout;

/// Elements in a block, where there are not too many blocks.
const BLOCK: u64 = 4 << 10;

/// The most blocks.
const BLOCKS: u64 = 1 << 18;

/// Elements that are read at a time.
const CHUNK: u64 = 64 << 10;

/// A mask in a file, its true elements counted.
#[derive(Clone, Debug)]
pub struct Mask {
    pub(super) bytes: MaskBytes,
    shape: Vec<u64>,
    /// Elements in a block.
    pub(super) block: u64,
    /// How many elements are true before each block, and in all.
    pub(super) ranks: Arc<[u64]>,
}

/// Where the elements lie, in C order.
#[derive(Clone, Debug)]
pub(super) struct MaskBytes {
    runs: Runs,
    pub(super) len: u64,
    /// Whether elements count as true that are false.
    opposite: bool,
}

impl MaskBytes {
    /// Call `visit` with the elements of a range, piece by piece, until it returns false.
    pub(super) fn each(
        &self,
        mut start: u64,
        end: u64,
        source: &dyn Source,
        visit: &mut dyn FnMut(u64, &[u8]) -> bool,
    ) -> Result<(), SourceError> {
        let (mut scratch, mut buffer, mut flipped) = (Vec::new(), Vec::new(), Vec::new());
        while start < end {
            let stop = end.min(start + CHUNK);
            let bytes = if self.runs.axes.is_empty() {
                let offset = self.runs.offset as u64;
                source.window(offset + start..offset + stop, &mut scratch)?
            } else {
                buffer.resize((stop - start) as usize, 0);
                let from = &mut ReadFrom { source, scratch: &mut scratch };
                read_range(&self.runs, start..stop, from, &mut buffer)?;
                &buffer
            };
            let bytes = if self.opposite {
                flipped.clear();
                flipped.extend(bytes.iter().map(|&byte| u8::from(byte == 0)));
                &flipped
            } else {
                bytes
            };
            if !visit(start, bytes) {
                break;
            }
            start = stop;
        }
        Ok(())
    }
}

impl Mask {
    /// Count the true elements of a mask, of one byte each, with these workers. Another
    /// thread may watch how far it is: [`Progress::keeping`].
    ///
    /// # Errors
    /// A shape past 63 bits; a file that cannot be read, as [`FillError::Indices`].
    pub fn count(
        layout: &Layout<'_>,
        source: &dyn Source,
        workers: &Workers,
        progress: &Progress,
    ) -> Result<Mask, ExecuteError> {
        let axes = layout.axes().map_err(|_| {
            let (start, end, len) = (layout.offset(), u64::MAX, source.len());
            let error = FillError::Source(SourceError::OutOfBounds { start, end, len });
            ExecuteError::Fill { transfer: 0, error }
        })?;
        let runs = Runs { offset: layout.offset() as i64, axes, run: 1 }.coalesced();
        let len = runs.bytes();
        let bytes = MaskBytes { runs, len, opposite: false };
        let block = BLOCK.max(len.div_ceil(BLOCKS).next_multiple_of(BLOCK));
        let counts = (0..len.div_ceil(block)).map(|_| AtomicU64::new(0)).collect();
        let count = Count { bytes: &bytes, block, counts, progress };
        let transfers = [Transfer { source, pieces: &count, conversion: Conversion::None, at: 0 }];
        progress.kept.begin(len);
        let counted = execute::run(&transfers, &NullSink, workers, progress);
        progress.kept.begin(0);
        counted?;
        let mut ranks = vec![0];
        let mut rank = 0;
        for count in count.counts {
            rank += count.into_inner();
            ranks.push(rank);
        }
        Ok(Mask { bytes, shape: layout.shape.to_vec(), block, ranks: ranks.into() })
    }

    /// The mask that is true where this one is not.
    pub fn opposite(mut self) -> Mask {
        self.bytes.opposite = !self.bytes.opposite;
        let (block, len) = (self.block, self.bytes.len);
        let starts = (0..).map(|number: u64| len.min(number * block));
        self.ranks = starts.zip(self.ranks.iter()).map(|(start, rank)| start - rank).collect();
        self
    }

    /// The shape of the mask.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// How many elements are true.
    pub fn true_count(&self) -> u64 {
        self.ranks.last().copied().unwrap_or(0)
    }
}

/// Counting, as a job that writes nothing: its pieces are chunks of the mask.
struct Count<'a> {
    bytes: &'a MaskBytes,
    block: u64,
    counts: Vec<AtomicU64>,
    progress: &'a Progress,
}

impl Count<'_> {
    /// Elements of a piece: whole blocks.
    fn piece(&self) -> u64 {
        PIECE.next_multiple_of(self.block)
    }
}

/// Elements that are counted in a piece, at least.
const PIECE: u64 = 1 << 20;

impl Pieces for Count<'_> {
    fn bytes(&self) -> u64 {
        self.bytes.len
    }

    fn count(&self) -> u64 {
        self.bytes.len.div_ceil(self.piece())
    }

    fn output(&self, _number: u64) -> Runs {
        Runs::contiguous(0, 0)
    }

    fn fill(&self, number: u64, from: &mut ReadFrom<'_>, _out: &mut [u8]) -> Result<(), FillError> {
        let start = number * self.piece();
        let end = self.bytes.len.min(start + self.piece());
        // blocks are whole chunks, or chunks whole blocks
        let step = self.block.min(CHUNK) as usize;
        let counted = self.bytes.each(start, end, from.source, &mut |at, bytes| {
            for (number, part) in (0..).zip(bytes.chunks(step)) {
                let block = (at + number * step as u64) / self.block;
                self.counts[block as usize].fetch_add(true_count(part), Ordering::Relaxed);
            }
            true
        });
        self.progress.kept.add(end - start);
        counted.map_err(|error| FillError::Indices { list: 0, error })
    }
}

/// How many bytes are not 0.
pub(super) fn true_count(bytes: &[u8]) -> u64 {
    const LANES: usize = 4;
    // each byte of a sum counts at most as many words as it can hold
    bytes
        .chunks(8 * LANES * 255)
        .map(|part| {
            let mut sums = [0u64; LANES];
            let (words, rest) = part.as_chunks::<8>();
            let (rows, words) = words.as_chunks::<LANES>();
            for row in rows {
                for (sum, &word) in sums.iter_mut().zip(row) {
                    *sum += ones(word);
                }
            }
            for (sum, &word) in sums.iter_mut().zip(words) {
                // not all sums have a word of each row: none counts more than 255
                *sum += ones(word);
            }
            let rest = rest.iter().filter(|&&byte| byte != 0).count() as u64;
            let counts = sums.iter().flat_map(|sum| sum.to_le_bytes()).map(u64::from);
            counts.sum::<u64>() + rest
        })
        .sum()
}

/// 1 in each byte that is not 0.
pub(super) fn ones(word: [u8; 8]) -> u64 {
    const LOW: u64 = u64::from_ne_bytes([0x7F; 8]);
    let word = u64::from_le_bytes(word);
    // the highest bit of each byte: no carry leaves a byte
    (((word & LOW) + LOW) | word) >> 7 & u64::from_ne_bytes([1; 8])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn true_elements_are_counted_at_any_length() {
        for len in [0, 1, 31, 32, 33, 255 * 32, 255 * 32 + 7, 100_000] {
            let bytes: Vec<u8> =
                (0..len).map(|at| (at % 3 != 0) as u8 * (at % 255) as u8).collect();
            let expected = bytes.iter().filter(|&&byte| byte != 0).count() as u64;
            assert_eq!(true_count(&bytes), expected, "{len}");
        }
    }
}
