//! Masks in files: counted once, in blocks, so that any true element is found by its rank.
//!
//! [`Mask::count`] reads the mask in parallel and stores the number of true elements before each block.
//! [`MaskPositions`] finds the block of the first wanted element, and reads on from there. A mask is never held in
//! memory; the counts take 2 MiB at most.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::GatherError;
use super::block::RowBlock;
use super::truth::Truth;
use crate::execute::pack::{can_compress, compress};
use crate::execute::{ExecuteError, FillError, Progress, ReadFrom, Workers, dense_window, look};
use crate::runs::{Axis, Runs, byte_bounds, coalesce, distance};
use crate::source::{Source, SourceError};
use crate::view::{Layout, ViewError};

/// The elements in a block, unless that makes too many blocks.
const BLOCK: u64 = 4 << 10;

/// The most blocks: their counts take 2 MiB.
const BLOCKS: u64 = 1 << 18;

const CHUNK: u64 = 64 << 10;

/// A mask in a file, with its true elements counted.
#[derive(Clone, Debug)]
pub struct Mask {
    pub(super) bytes: MaskBytes,
    shape: Vec<u64>,
    pub(super) block: u64,
    /// The number of true elements before each block, then the total.
    pub(super) ranks: Arc<[u64]>,
}

#[derive(Clone, Debug)]
pub(super) struct MaskBytes {
    runs: Runs,
    pub(super) len: u64,
    truth: Truth,
}

impl MaskBytes {
    fn new(
        layout: &Layout<'_>,
        truth: Truth,
        source: &dyn Source,
    ) -> Result<MaskBytes, SourceError> {
        let axes = layout.axes().map_err(|_| {
            let start = layout.offset();
            let end = u64::MAX;
            let len = source.len();
            SourceError::OutOfBounds { start, end, len }
        })?;
        let run = truth.width;
        let runs = Runs { offset: layout.offset() as i64, axes, run }.coalesced();
        let len = runs.bytes() / run;
        Ok(MaskBytes { runs, len, truth })
    }

    /// Call `visit` with a byte for each element of a range, 0 for false ones, piece by piece,
    /// until it returns false.
    pub(super) fn each(
        &self,
        mut start: u64,
        end: u64,
        source: &dyn Source,
        visit: &mut dyn FnMut(u64, &[u8]) -> bool,
    ) -> Result<(), SourceError> {
        let mut scratch = Vec::new();
        let mut buffer = Vec::new();
        let mut results = Vec::new();
        let width = self.truth.width;
        while start < end {
            let stop = end.min(start + CHUNK);
            let range = start * width..stop * width;
            let bytes = dense_window(&self.runs, range, source, &mut scratch, &mut buffer)?;
            if !visit(start, self.truth.run(bytes, &mut results)) {
                break;
            }
            start = stop;
        }
        Ok(())
    }
}

/// Whether all elements are one byte each, 0 or 1, as those of a mask, and there are any.
pub fn is_like_mask(layout: &Layout<'_>, source: &dyn Source) -> Result<bool, SourceError> {
    let bytes = MaskBytes::new(layout, Truth::of_mask(), source)?;
    let mut is_like = bytes.len > 0;
    bytes.each(0, bytes.len, source, &mut |_, bytes| {
        is_like = bytes.iter().all(|byte| *byte <= 1);
        is_like
    })?;
    Ok(is_like)
}

impl Mask {
    /// Count the true elements of a mask, or of the mask that a comparison makes, with these
    /// workers. Another thread may watch the progress: [`Progress::keeping`].
    pub fn count(
        layout: &Layout<'_>,
        truth: Truth,
        source: &dyn Source,
        workers: &Workers,
        progress: &Progress,
    ) -> Result<Mask, ExecuteError> {
        let bytes = MaskBytes::new(layout, truth, source)?;
        let len = bytes.len;
        let block = BLOCK.max(len.div_ceil(BLOCKS).next_multiple_of(BLOCK));
        let counts: Vec<AtomicU64> = (0..len.div_ceil(block)).map(|_| AtomicU64::new(0)).collect();
        // whole blocks
        let piece = PIECE.next_multiple_of(block);
        // blocks are whole chunks, or chunks whole blocks
        let step = block.min(CHUNK);
        let count_piece = |number: u64, from: &mut ReadFrom<'_>| {
            let start = number * piece;
            let end = len.min(start + piece);
            let counted = bytes.each(start, end, from.source, &mut |at, bytes| {
                for (number, part) in (0..).zip(bytes.chunks(step as usize)) {
                    let counted = &counts[((at + number * step) / block) as usize];
                    counted.fetch_add(true_count(part), Ordering::Relaxed);
                }
                true
            });
            progress.scratch.add(end - start);
            counted.map_err(|error| FillError::Indices { list: 0, error })
        };
        progress
            .scratch
            .during(len, || look(source, len.div_ceil(piece), len, workers, count_piece))?;
        let mut ranks = vec![0];
        let mut rank = 0;
        for count in counts {
            rank += count.into_inner();
            ranks.push(rank);
        }
        Ok(Mask { bytes, shape: layout.shape.to_vec(), block, ranks: ranks.into() })
    }

    pub fn opposite(mut self) -> Mask {
        self.bytes.truth = self.bytes.truth.opposite();
        let block = self.block;
        let len = self.bytes.len;
        let starts = (0..).map(|number: u64| len.min(number * block));
        self.ranks = starts.zip(self.ranks.iter()).map(|(start, rank)| start - rank).collect();
        self
    }

    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    pub fn true_count(&self) -> u64 {
        self.ranks.last().copied().unwrap_or(0)
    }
}

/// The fewest elements that are counted in a piece.
const PIECE: u64 = 1 << 20;

pub(super) fn true_count(bytes: &[u8]) -> u64 {
    const LANES: usize = 4;
    // each byte of a sum counts at most as many words as fit a byte
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
                // not all sums have a word of each row: no count exceeds 255
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

/// The positions of the true elements of a mask, in C order.
#[derive(Clone, Debug)]
pub(crate) struct MaskPositions {
    mask: Mask,
    /// The axes of the params that the mask covers, in bytes, with neighbours merged.
    pub(super) axes: Vec<Axis>,
    /// The bytes that axes with negative strides reach before the first element: offsets count from
    /// there.
    pub(super) before: u64,
}

impl MaskPositions {
    /// The positions of the true elements of a mask on these axes of the params, in bytes.
    pub(super) fn new(mask: Mask, axes: &[Axis]) -> Result<MaskPositions, GatherError> {
        if !axes.iter().map(|axis| axis.len).eq(mask.shape().iter().copied()) {
            return Err(GatherError::View(ViewError::TooLarge));
        }
        let axes = if mask.bytes.len == 0 { Vec::new() } else { coalesce(axes, 0).0 };
        let before = byte_bounds(&axes, 0).start.unsigned_abs();
        Ok(MaskPositions { mask, axes, before })
    }

    pub(super) fn count(&self) -> u64 {
        self.mask.true_count()
    }

    /// Read the offsets in bytes of the true elements from rank `first` on, as many as `out` holds.
    pub(super) fn read(
        &self,
        first: u64,
        source: &dyn Source,
        out: &mut [u64],
    ) -> Result<(), FillError> {
        let mut found = 0;
        let read = self.each_from(first, source, &mut |at, bytes| {
            found += self.true_offsets(at, bytes, &mut out[found..]);
            found < out.len()
        });
        self.complete(read, found == out.len())
    }

    /// Read the true elements as stretches of neighbours, with `base` added to their offsets: at
    /// most `rows` elements in about `most` stretches. Returns false if the first ones are
    /// scattered; `block` is then meaningless.
    pub(super) fn read_stretches(
        &self,
        first: u64,
        rows: u64,
        base: u64,
        most: usize,
        source: &dyn Source,
        block: &mut RowBlock,
    ) -> Result<bool, FillError> {
        let Some(inner) = self.axes.last().filter(|axis| axis.stride > 0) else {
            return Ok(false);
        };
        block.begin_stretches(inner.stride as u64);
        let mut scattered = None;
        let mut full = false;
        let read = self.each_from(first, source, &mut |at, bytes| {
            if *scattered.get_or_insert_with(|| is_scattered(&bytes[..bytes.len().min(SAMPLE)])) {
                return false;
            }
            let mut done = 0;
            while !full {
                done += leading_false(&bytes[done..]);
                let len = leading_true(&bytes[done..]) as u64;
                let len = len.min(rows - block.rows());
                if len == 0 {
                    break;
                }
                full = self.push(at + done as u64, len, base, block) >= most;
                done += len as usize;
                full |= block.rows() == rows;
            }
            !full
        });
        match scattered {
            Some(true) => Ok(false),
            _ => self.complete(read, full).map(|()| true),
        }
    }

    /// Whether items of this size, one at each position, can be [compressed](Self::compress): the
    /// items on the innermost axis must be adjacent.
    pub(super) fn compresses(&self, size: u64) -> bool {
        let inner = self.axes.last();
        can_compress(size) && inner.is_some_and(|axis| axis.stride == size as i64)
    }

    /// Copy the items of `size` bytes at the true elements from rank `first` on to `out`, until it
    /// is full. `input` holds the bytes of the params' file; the item at offset 0 is at byte `base`
    /// of it, perhaps wrapped around.
    pub(super) fn compress(
        &self,
        first: u64,
        base: u64,
        size: u64,
        source: &dyn Source,
        input: &[u8],
        out: &mut [u8],
    ) -> Result<(), FillError> {
        let mut rest = out;
        let read = self.each_from(first, source, &mut |mut at, mut bytes| {
            while !bytes.is_empty() && !rest.is_empty() {
                let (offset, left) = self.offset_of(at);
                let len = left.min(bytes.len() as u64);
                let (now, later) = bytes.split_at(len as usize);
                let items = &input[base.wrapping_add(offset) as usize..][..(len * size) as usize];
                let copied = compress(now, size as usize, items, rest);
                rest = std::mem::take(&mut rest).split_at_mut(copied).1;
                (at, bytes) = (at + len, later);
            }
            !rest.is_empty()
        });
        self.complete(read, rest.is_empty())
    }

    /// Call `visit` with the elements from the true one of rank `first` on, piece by piece, until
    /// it returns false.
    fn each_from(
        &self,
        first: u64,
        source: &dyn Source,
        visit: &mut dyn FnMut(u64, &[u8]) -> bool,
    ) -> Result<(), SourceError> {
        let Mask { bytes, block, ranks, .. } = &self.mask;
        let before = ranks.partition_point(|&rank| rank <= first).saturating_sub(1);
        let mut skip = first - ranks[before];
        bytes.each(before as u64 * block, bytes.len, source, &mut |at, bytes| {
            let skipped = skip_true(bytes, &mut skip);
            visit(at + skipped as u64, &bytes[skipped..])
        })
    }

    /// The result of reading, which must have found all elements.
    fn complete(&self, read: Result<(), SourceError>, found_all: bool) -> Result<(), FillError> {
        read?;
        // or the mask changed since it was counted
        if found_all { Ok(()) } else { Err(SourceError::Changed.into()) }
    }

    /// Add `len` elements from element `at` on to a block. Returns the number of stretches.
    fn push(&self, mut at: u64, mut len: u64, base: u64, block: &mut RowBlock) -> usize {
        let mut stretches = 0;
        while len > 0 {
            let (offset, left) = self.offset_of(at);
            let rows = left.min(len);
            stretches = block.push(base.wrapping_add(offset), rows);
            (at, len) = (at + rows, len - rows);
        }
        stretches
    }

    /// The offset of an element, and the number of elements along the innermost axis from there on.
    fn offset_of(&self, at: u64) -> (u64, u64) {
        let Some((inner, outer)) = self.axes.split_last() else { return (0, u64::MAX) };
        let within = at % inner.len;
        let offset = distance(outer, at / inner.len) + within as i64 * inner.stride;
        (self.before.wrapping_add_signed(offset), inner.len - within)
    }

    /// The offsets of the true ones among `bytes`, which begin at element `at`. Returns how many
    /// were found before `out` was full.
    fn true_offsets(&self, at: u64, bytes: &[u8], out: &mut [u64]) -> usize {
        let stride = self.axes.last().map_or(0, |inner| inner.stride as u64);
        let mut at = at;
        let mut bytes = bytes;
        let mut found = 0;
        while !bytes.is_empty() && found < out.len() {
            let (base, left) = self.offset_of(at);
            let len = left.min(bytes.len() as u64);
            let (now, later) = bytes.split_at(len as usize);
            found += nonzero_offsets(now, base, stride, &mut out[found..]);
            (at, bytes) = (at + len, later);
        }
        found
    }
}

/// The offsets of the bytes that are not 0: `base` plus `stride` for each byte before. Returns how
/// many were found before `out` was full.
fn nonzero_offsets(bytes: &[u8], base: u64, stride: u64, out: &mut [u64]) -> usize {
    let mut found = 0;
    let mut offset = base;
    let (words, _) = bytes.as_chunks::<8>();
    let mut rest = 0;
    for word in words {
        if out.len() - found < 8 {
            break;
        }
        match u64::from_le_bytes(*word) {
            0 => offset = offset.wrapping_add(stride.wrapping_mul(8)),
            _ => {
                for &byte in word {
                    // always written, counted only if true: no branch to mispredict
                    out[found] = offset;
                    found += usize::from(byte != 0);
                    offset = offset.wrapping_add(stride);
                }
            }
        }
        rest += 8;
    }
    for &byte in &bytes[rest..] {
        if found == out.len() {
            break;
        }
        if byte != 0 {
            out[found] = offset;
            found += 1;
        }
        offset = offset.wrapping_add(stride);
    }
    found
}

/// The number of elements that tell whether the true ones among them are scattered.
const SAMPLE: usize = 256;

/// Whether nearly all true elements are isolated.
fn is_scattered(bytes: &[u8]) -> bool {
    let mut is_true = 0;
    let mut ends = usize::from(bytes.last().is_some_and(|&last| last != 0));
    for &[byte, next] in bytes.array_windows() {
        is_true += usize::from(byte != 0);
        ends += usize::from(byte != 0 && next == 0);
    }
    is_true < ends * 4 || ends == 0
}

fn leading_true(bytes: &[u8]) -> usize {
    leading(bytes, |word| ones(word) ^ u64::from_ne_bytes([1; 8]))
}

fn leading_false(bytes: &[u8]) -> usize {
    leading(bytes, u64::from_le_bytes)
}

/// The number of bytes before the first one in which `marked` leaves a bit.
fn leading(bytes: &[u8], marked: impl Fn([u8; 8]) -> u64) -> usize {
    let (words, rest) = bytes.as_chunks::<8>();
    for (number, word) in words.iter().enumerate() {
        let bits = marked(*word);
        if bits != 0 {
            return number * 8 + bits.trailing_zeros() as usize / 8;
        }
    }
    let is_marked = |&byte: &u8| marked([byte, 0, 0, 0, 0, 0, 0, 0]) & 0xFF != 0;
    words.len() * 8 + rest.iter().position(is_marked).unwrap_or(rest.len())
}

/// The number of bytes until `skip` of them were not 0; `skip` becomes the rest.
fn skip_true(bytes: &[u8], skip: &mut u64) -> usize {
    let mut at = 0;
    for part in bytes.chunks(256) {
        let count = true_count(part);
        if count > *skip {
            break;
        }
        *skip -= count;
        at += part.len();
    }
    while *skip > 0 && at < bytes.len() {
        *skip -= u64::from(bytes[at] != 0);
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::runs::unravel_index;
    use crate::shape::{Order, contiguous_strides};
    use crate::source::MemorySource;

    #[test]
    fn true_elements_are_counted_at_any_length() {
        for len in [0, 1, 31, 32, 33, 255 * 32, 255 * 32 + 7, 100_000] {
            let bytes: Vec<u8> =
                (0..len).map(|at| (at % 3 != 0) as u8 * (at % 255) as u8).collect();
            let expected = bytes.iter().filter(|&&byte| byte != 0).count() as u64;
            assert_eq!(true_count(&bytes), expected, "{len}");
        }
    }

    #[test]
    fn leading_bytes_are_counted_at_any_length() {
        for len in 0..40 {
            for other in 0..=len {
                let mut bytes = vec![0x80; len + 9];
                bytes[other] = 0;
                assert_eq!(leading_true(&bytes[..len]), other.min(len), "{other} of {len}");
                let mut bytes = vec![0; len + 9];
                bytes[other] = 3;
                assert_eq!(leading_false(&bytes[..len]), other.min(len), "{other} of {len}");
            }
        }
    }

    proptest! {
        #[test]
        fn places_are_those_of_a_loop(
            shape in prop_oneof![prop::collection::vec(1..9u64, 0..4), prop::collection::vec(1..1000u64, 1)],
            (seed, percent, run) in (any::<u64>(), 0..101u64, prop_oneof![Just(1u64), 2..60u64]),
            order in prop_oneof![Just(Order::C), Just(Order::F)],
            (first, len, most) in (0..1000usize, 0..1000usize, 1..20usize),
            backwards in any::<bool>(),
        ) {
            let count: u64 = shape.iter().product();
            let random = |at: u64| at.wrapping_add(seed).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
            let file: Vec<u8> =
                (0..count + 5).map(|at| u8::from(random(at / run) % 100 < percent) * 3).collect();
            let strides = contiguous_strides(&shape, 1, order).unwrap();
            let mut params = contiguous_strides(&shape, 10, Order::C).unwrap();
            let mut before = 0;
            if let (true, Some(stride)) = (backwards, params.first_mut()) {
                before = *stride * (shape[0] as i64 - 1);
                *stride = -*stride;
            }
            let mut expected = Vec::new();
            for at in 0..count {
                let mut at: Vec<u64> =
                    unravel_index(shape.iter().rev().copied(), at).collect();
                at.reverse();
                let dot = |strides: &[i64]| {
                    at.iter().zip(strides).map(|(at, stride)| *at as i64 * stride).sum::<i64>()
                };
                if file[5 + dot(&strides) as usize] != 0 {
                    expected.push((before + dot(&params)) as u64);
                }
            }
            let source = MemorySource(file);
            let mask = Mask::count(&Layout::new(&shape, 8, order, 5), Truth::of_mask(), &source, &Workers::new(2), &Progress::default()).unwrap();
            prop_assert_eq!(mask.true_count(), expected.len() as u64);
            let axes = shape.iter().zip(params).map(|(&len, stride)| Axis { len, stride });
            let positions = MaskPositions::new(mask, &axes.collect::<Vec<_>>()).unwrap();
            let first = first.min(expected.len());
            let len = len.min(expected.len() - first);
            let item = Runs::contiguous(0, 1);
            let mut out = vec![7; len];
            positions.read(first as u64, &source, &mut out).unwrap();
            prop_assert_eq!(&out[..], &expected[first..first + len]);

            // the same from stretches, and from what stands between them
            let mut block = RowBlock::default();
            let mut found = Vec::new();
            while found.len() < len {
                let from = (first + found.len()) as u64;
                let rows = (len - found.len()) as u64;
                let block = &mut block;
                if positions.read_stretches(from, rows, 7, most, &source, block).unwrap() {
                    prop_assert!(block.rows() > 0);
                    for (offset, rows) in block.stretches() {
                        let step = if rows > 1 { block.runs(&item, 0, rows).axes[0].stride } else { 0 };
                        found.extend((0..rows).map(|at| offset + at * step as u64 - 7));
                    }
                } else {
                    let mut one = [0];
                    positions.read(from, &source, &mut one).unwrap();
                    found.extend(one);
                }
            }
            prop_assert_eq!(found, &expected[first..first + len]);
        }

        #[test]
        fn compressed_items_are_those_at_the_positions(
            shape in prop_oneof![prop::collection::vec(1..9u64, 1..4), prop::collection::vec(1..3000u64, 1)],
            (seed, percent, run) in (any::<u64>(), 0..101u64, prop_oneof![Just(1u64), 2..90u64]),
            (size, more) in (prop::sample::select(vec![1u64, 2, 4, 8, 16]), 0..3u64),
            (first, len) in (0..3000u64, 0..3000u64),
        ) {
            let random = |at: u64| at.wrapping_add(seed).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
            let count: u64 = shape.iter().product();
            let source =
                MemorySource((0..count).map(|at| u8::from(random(at / run) % 100 < percent)).collect());
            let mask = Mask::count(&Layout::new(&shape, 8, Order::C, 0), Truth::of_mask(), &source, &Workers::new(2), &Progress::default()).unwrap();
            // of a tensor with more elements along each axis, after 3 other bytes
            let params: Vec<u64> = shape.iter().map(|len| len + more).collect();
            let strides = contiguous_strides(&params, size, Order::C).unwrap();
            let axes = shape.iter().zip(strides).map(|(&len, stride)| Axis { len, stride });
            let positions = MaskPositions::new(mask, &axes.collect::<Vec<_>>()).unwrap();
            prop_assume!(positions.compresses(size));
            let bytes = 3 + params.iter().product::<u64>() * size;
            let input: Vec<u8> = (0..bytes).map(|at| random(at) as u8).collect();
            let first = first.min(positions.count());
            let mut offsets = vec![0; len.min(positions.count() - first) as usize];
            positions.read(first, &source, &mut offsets).unwrap();
            let item = |&offset: &u64| &input[3 + offset as usize..][..size as usize];
            let expected: Vec<u8> = offsets.iter().flat_map(item).copied().collect();
            let mut out = vec![0; expected.len()];
            positions.compress(first, 3, size, &source, &input, &mut out).unwrap();
            prop_assert_eq!(out, expected);
        }
    }
}
