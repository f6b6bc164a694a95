//! Masks in files: counted once, in blocks, so that the place of any true element is found by its
//! rank.
//!
//! [`Mask::count`] reads the mask in parallel and keeps how many elements are true before each
//! block. [`MaskPositions`] finds the block of the first tuple that is asked for, and goes on from
//! there. A mask is never held in memory; the counts take 2 MiB at most.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::error::GatherError;
use super::null_sink::NullSink;
use crate::execute::{
    self, Conversion, ExecuteError, FillError, Pieces, Progress, Transfer, read_runs,
};
use crate::runs::{Axis, Runs, coalesce, unravel_index};
use crate::shape::{self, Order, contiguous_strides};
use crate::source::{Source, SourceError};
use crate::view::ViewError;

/// Elements in a block, where there are not too many blocks.
const BLOCK: u64 = 4 << 10;

/// The most blocks.
const BLOCKS: u64 = 1 << 18;

/// Elements that are read at a time.
const CHUNK: u64 = 64 << 10;

/// A mask in a file, its true elements counted.
#[derive(Clone, Debug)]
pub struct Mask {
    bytes: MaskBytes,
    shape: Vec<u64>,
    /// Elements in a block.
    block: u64,
    /// How many elements are true before each block, and in all.
    ranks: Arc<[u64]>,
}

/// Where the elements lie, in C order.
#[derive(Clone, Debug)]
struct MaskBytes {
    runs: Runs,
    len: u64,
}

impl MaskBytes {
    /// Call `visit` with the elements of a range, piece by piece, until it returns false.
    fn each(
        &self,
        mut start: u64,
        end: u64,
        source: &dyn Source,
        visit: &mut dyn FnMut(u64, &[u8]) -> bool,
    ) -> Result<(), SourceError> {
        let (mut scratch, mut buffer) = (Vec::new(), Vec::new());
        while start < end {
            let stop = end.min(start + CHUNK);
            let bytes = if self.runs.axes.is_empty() {
                let offset = self.runs.offset as u64;
                source.window(offset + start..offset + stop, &mut scratch)?
            } else {
                buffer.resize((stop - start) as usize, 0);
                let mut out = buffer.as_mut_slice();
                self.runs.split(start..stop, &mut |part| {
                    let (now, later) = std::mem::take(&mut out).split_at_mut(part.bytes() as usize);
                    out = later;
                    read_runs(&part, source, &mut scratch, now)
                })?;
                &buffer
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
    /// Count the true elements of a mask, of one byte each, with at most `threads` workers.
    ///
    /// # Errors
    /// A shape past 63 bits; a file that cannot be read, as [`FillError::Indices`].
    pub fn count(
        (shape, order, offset): (&[u64], Order, u64),
        source: &dyn Source,
        threads: usize,
    ) -> Result<Mask, ExecuteError> {
        let too_large = || ExecuteError::Fill {
            transfer: 0,
            error: FillError::Source(SourceError::OutOfBounds {
                start: offset,
                end: u64::MAX,
                len: source.len(),
            }),
        };
        let len = shape::element_count(shape).ok_or_else(too_large)?;
        let strides = match len {
            0 => vec![0; shape.len()],
            _ => contiguous_strides(shape, 1, order).ok_or_else(too_large)?,
        };
        let axes = shape.iter().zip(strides).map(|(&len, stride)| Axis { len, stride }).collect();
        let runs = Runs { offset: offset as i64, axes, run: 1 }.coalesced();
        let bytes = MaskBytes { runs, len };
        let block = BLOCK.max(len.div_ceil(BLOCKS).next_multiple_of(BLOCK));
        let counts = (0..len.div_ceil(block)).map(|_| AtomicU64::new(0)).collect();
        let count = Count { bytes: &bytes, block, counts };
        let transfers = [Transfer { source, pieces: &count, conversion: Conversion::None, at: 0 }];
        execute::run(&transfers, &NullSink, threads, &Progress::default())?;
        let mut ranks = vec![0];
        let mut rank = 0;
        for count in count.counts {
            rank += count.into_inner();
            ranks.push(rank);
        }
        Ok(Mask { bytes, shape: shape.to_vec(), block, ranks: ranks.into() })
    }

    /// Its shape.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// How many elements are true.
    pub fn true_count(&self) -> u64 {
        self.ranks.last().copied().unwrap_or(0)
    }

    /// The places of its true elements on these axes of the params, in bytes.
    pub(super) fn positions(&self, axes: Vec<Axis>) -> Result<MaskPositions, GatherError> {
        let lens: Vec<u64> = axes.iter().map(|axis| axis.len).collect();
        if lens != self.shape {
            return Err(GatherError::View(ViewError::TooLarge));
        }
        let axes = if self.bytes.len == 0 { Vec::new() } else { coalesce(&axes, 0).0 };
        Ok(MaskPositions { mask: self.clone(), axes })
    }
}

/// Counting, as a job that writes nothing: its pieces are chunks of the mask.
struct Count<'a> {
    bytes: &'a MaskBytes,
    block: u64,
    counts: Vec<AtomicU64>,
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

    fn fill(
        &self,
        number: u64,
        source: &dyn Source,
        _scratch: &mut Vec<u8>,
        _out: &mut [u8],
    ) -> Result<(), FillError> {
        let start = number * self.piece();
        let end = self.bytes.len.min(start + self.piece());
        // blocks are whole chunks, or chunks whole blocks
        let step = self.block.min(CHUNK) as usize;
        let counted = self.bytes.each(start, end, source, &mut |at, bytes| {
            for (number, part) in (0..).zip(bytes.chunks(step)) {
                let block = (at + number * step as u64) / self.block;
                self.counts[block as usize].fetch_add(true_count(part), Ordering::Relaxed);
            }
            true
        });
        counted.map_err(|error| FillError::Indices { list: 0, error })
    }
}

/// How many bytes are not 0.
fn true_count(bytes: &[u8]) -> u64 {
    // sums of bytes, which the compiler keeps in vector registers
    bytes
        .chunks(255 * 32)
        .map(|part| {
            let mut sums = [0u8; 32];
            let (rows, rest) = part.as_chunks::<32>();
            for row in rows {
                for (sum, &byte) in sums.iter_mut().zip(row) {
                    *sum += u8::from(byte != 0);
                }
            }
            let rest = rest.iter().filter(|&&byte| byte != 0).count() as u64;
            sums.iter().map(|&sum| u64::from(sum)).sum::<u64>() + rest
        })
        .sum()
}

/// The places of the true elements of a mask, in C order.
#[derive(Clone, Debug)]
pub(crate) struct MaskPositions {
    mask: Mask,
    /// The axes of the params that it takes, in bytes, with neighbours merged.
    axes: Vec<Axis>,
}

impl MaskPositions {
    /// How many there are.
    pub(super) fn count(&self) -> u64 {
        self.mask.true_count()
    }

    /// The offset in bytes of true element number `first` and those after it, as many as `out`
    /// holds.
    ///
    /// # Errors
    /// [`FillError::Indices`]: the file cannot be read, or has fewer true elements than were
    /// counted.
    pub(super) fn read(
        &self,
        first: u64,
        source: &dyn Source,
        out: &mut [u64],
    ) -> Result<(), FillError> {
        let Mask { bytes, block, ranks, .. } = &self.mask;
        let before = ranks.partition_point(|&rank| rank <= first).saturating_sub(1);
        let mut skip = first - ranks[before];
        let mut found = 0;
        let read = bytes.each(before as u64 * block, bytes.len, source, &mut |at, bytes| {
            let skipped = skip_true(bytes, &mut skip);
            found += self.places(at + skipped as u64, &bytes[skipped..], &mut out[found..]);
            found < out.len()
        });
        let read = match read {
            // a mask that was changed since it was counted
            Ok(()) if found < out.len() => Err(SourceError::Truncated),
            read => read,
        };
        read.map_err(|error| FillError::Indices { list: 0, error })
    }

    /// The offsets of the true ones among `bytes`, which begin at element `at`; how many were found
    /// before `out` was full.
    fn places(&self, at: u64, bytes: &[u8], out: &mut [u64]) -> usize {
        let Some((inner, outer)) = self.axes.split_last() else {
            return places(bytes, 0, 0, out);
        };
        let (mut at, mut bytes, mut found) = (at, bytes, 0);
        while !bytes.is_empty() && found < out.len() {
            let within = at % inner.len;
            let indices = unravel_index(outer.iter().rev().map(|axis| axis.len), at / inner.len);
            let along = outer.iter().rev().zip(indices);
            let base = along.map(|(axis, index)| index as i64 * axis.stride).sum::<i64>();
            let base = base + within as i64 * inner.stride;
            let len = ((inner.len - within) as usize).min(bytes.len());
            found += places(&bytes[..len], base as u64, inner.stride as u64, &mut out[found..]);
            at += len as u64;
            bytes = &bytes[len..];
        }
        found
    }
}

/// `base` plus `stride` for each byte before it, for every byte that is not 0; how many were found
/// before `out` was full.
fn places(bytes: &[u8], base: u64, stride: u64, out: &mut [u64]) -> usize {
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
                    // written in any case, kept where it is true: no branch to mispredict
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

/// How many bytes to go until `skip` of them were not 0; `skip` becomes what is left of it.
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

    proptest! {
        #[test]
        fn places_are_those_of_a_loop(
            shape in prop::collection::vec(1..9u64, 0..4),
            (seed, percent) in (any::<u64>(), 0..101u64),
            order in prop_oneof![Just(Order::C), Just(Order::F)],
            (first, len) in (0..1000usize, 0..1000usize),
        ) {
            let count: u64 = shape.iter().product();
            let random = |at: u64| at.wrapping_add(seed).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
            let file: Vec<u8> =
                (0..count + 5).map(|at| u8::from(random(at) % 100 < percent) * 3).collect();
            let strides = contiguous_strides(&shape, 1, order).unwrap();
            let params = contiguous_strides(&shape, 10, Order::C).unwrap();
            let mut expected = Vec::new();
            for at in 0..count {
                let mut at: Vec<u64> =
                    unravel_index(shape.iter().rev().copied(), at).collect();
                at.reverse();
                let dot = |strides: &[i64]| {
                    at.iter().zip(strides).map(|(at, stride)| at * *stride as u64).sum::<u64>()
                };
                if file[5 + dot(&strides) as usize] != 0 {
                    expected.push(dot(&params));
                }
            }
            let source = MemorySource(file);
            let mask = Mask::count((&shape, order, 5), &source, 2).unwrap();
            prop_assert_eq!(mask.true_count(), expected.len() as u64);
            let axes = shape.iter().zip(params).map(|(&len, stride)| Axis { len, stride });
            let positions = mask.positions(axes.collect()).unwrap();
            let first = first.min(expected.len());
            let len = len.min(expected.len() - first);
            let mut out = vec![7; len];
            positions.read(first as u64, &source, &mut out).unwrap();
            prop_assert_eq!(&out[..], &expected[first..first + len]);
        }
    }
}
