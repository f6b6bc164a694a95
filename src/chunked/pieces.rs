//! Pieces that are boxes of chunks, limited to the elements of a view.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::cache::{CACHE_BYTES, Cache};
use super::cells::{CellBoxes, Steps};
use super::{AHEAD, ChunkSet, Chunked, TouchedChunk};
use crate::execute::{FillError, Pieces, ReadFrom, VisitRange};
use crate::plan::PIECE_BYTES;
use crate::runs::{Runs, index_of};
use crate::source::{LEAST_SPARE, Source};

/// Boxes of whole chunks, limited to the selected elements, for outputs that take bytes in any
/// order: no chunk is decoded twice.
///
/// A box of one chunk is one piece. If the output would get too short rows, a box has several
/// chunks, and is filled part after part, while its chunks are cached.
pub struct ChunkPieces {
    chunked: Chunked,
    runs: Runs,
    dense: Runs,
    steps: Vec<Steps>,
    boxes: CellBoxes,
    /// The items of a part of a box, and the number of parts, along each axis.
    parts: Vec<(u64, u64)>,
    cache: Cache,
    filled: Mutex<HashMap<u64, u64>>,
}

/// The number of bytes that are decoded in the time of writing a row.
const WRITTEN_ROW_WORTH: u64 = 16 << 10;

/// The number of bytes that are decoded in the time of scanning a row, besides its elements.
const SEEN_ROW_WORTH: u64 = 1 << 10;

const PART_BYTES: u64 = 4 * PIECE_BYTES;

/// The adjacent bytes of a chunk that a part takes, if it takes any: two cache lines, which are
/// loaded together.
const LINES: u64 = 128;

impl ChunkPieces {
    /// Pieces of `runs` of positions, to be written or scanned. With a set of `named` chunks, only the elements of
    /// these are decoded, the others are undefined.
    pub fn new(
        chunked: &Chunked,
        runs: &Runs,
        named: Option<ChunkSet>,
        is_written: bool,
    ) -> ChunkPieces {
        let row = if is_written { WRITTEN_ROW_WORTH } else { SEEN_ROW_WORTH };
        let chunked = Chunked { named: named.map(Arc::new), ..chunked.clone() };
        ChunkPieces::of(&chunked, runs, row, CACHE_BYTES, PART_BYTES)
    }

    /// Whether a box of items has a used chunk.
    fn is_used(&self, items: &[Range<u64>]) -> bool {
        if self.chunked.named.is_none() {
            return true;
        }
        let taken = self.runs.part(items);
        self.chunked.touched(&taken).chunks().any(|chunk| self.chunked.is_named(&chunk.at))
    }

    /// Boxes of chunks that have at most `most` bytes, in parts of about `part` bytes. A row of the
    /// output takes as long as decoding `row` bytes.
    fn of(chunked: &Chunked, runs: &Runs, row: u64, most: u64, part: u64) -> ChunkPieces {
        let steps = chunked.steps(runs);
        let boxes = CellBoxes::of_long_rows(&steps, chunked.chunk_bytes(), row, most);
        let lens = boxes.most(&steps);
        let parts = if boxes.are_cells() {
            lens
        } else {
            part_lens(&lens, &chunked.steps_in_chunk(&steps), runs.run, part)
        };
        let parts = parts.into_iter().zip(boxes.most(&steps));
        let parts = parts.map(|(part, len)| (part, len.div_ceil(part.max(1)))).collect();
        // until a box is complete
        let cache = Cache::of_bytes(u64::MAX);
        let filled = Mutex::default();
        let chunked = chunked.used_by(runs);
        let runs = runs.clone();
        ChunkPieces { chunked, dense: runs.dense(), runs, steps, boxes, parts, cache, filled }
    }

    fn parts(&self) -> u64 {
        self.parts.iter().map(|(_, count)| count).product()
    }

    /// The items of a piece along each axis: empty if a box is shorter than others.
    pub fn items(&self, number: u64) -> Vec<Range<u64>> {
        let mut items = self.boxes.items(&self.steps, number / self.parts());
        let counts = self.parts.iter().map(|(_, count)| *count);
        let numbers = index_of(counts, number % self.parts());
        for ((items, (len, _)), number) in items.iter_mut().zip(&self.parts).zip(numbers) {
            let start = (items.start + number * len).min(items.end);
            *items = start..(start + len).min(items.end);
        }
        items
    }

    fn of_box(&self, number: u64) -> Runs {
        self.runs.part(&self.boxes.items(&self.steps, number))
    }

    /// Begin to decode the chunks of the next box, while others decode what a part needs.
    fn look_ahead(&self, number: u64, taken: &Runs, source: &dyn Source) {
        if number + 1 == self.boxes.count() {
            return;
        }
        let needed = self.chunked.touched(taken);
        let next = self.of_box(number + 1);
        let next = self.chunked.touched(&next);
        for (TouchedChunk { at, .. }, in_box) in next.chunks().zip(0..) {
            let is_waiting = !needed.chunks().all(|needed| self.cache.is_ready(&needed.at));
            if !is_waiting || !self.cache.has_room(self.chunked.chunk_bytes()) {
                break;
            }
            let is_wanted = || !self.is_complete(number + 1);
            self.cache.prepare(&at, is_wanted, || next.decode(in_box, &at, source));
        }
    }

    /// The chunk that a piece is, with all its elements in their order, if it is one.
    fn whole_chunk(&self, number: u64) -> Option<Vec<u64>> {
        if self.parts() > 1 { None } else { self.chunked.whole_chunk(&self.of_box(number)) }
    }

    /// Have the chunks of a later box of one part read ahead.
    fn expect_later(&self, number: u64, source: &dyn Source) {
        if number + AHEAD < self.boxes.count() {
            let later = self.of_box(number + AHEAD);
            self.chunked.touched(&later).expect(0, source);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, u64>> {
        self.filled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_complete(&self, number: u64) -> bool {
        self.lock().get(&number) == Some(&self.parts())
    }

    /// Note that a part of a box is filled; with the last one its chunks are dropped.
    fn filled(&self, number: u64) {
        *self.lock().entry(number).or_default() += 1;
        if self.is_complete(number) {
            let whole = self.of_box(number);
            self.chunked.touched(&whole).chunks().for_each(|chunk| self.cache.let_go(&chunk.at));
        }
    }
}

/// The length of parts of boxes along each axis: `lens` are the items of a box, `steps` the bytes
/// in a chunk between neighbouring items; parts have about `most` bytes.
fn part_lens(lens: &[u64], steps: &[u64], run: u64, most: u64) -> Vec<u64> {
    let least = |(&len, &step): (&u64, &u64)| LINES.div_ceil(step.max(1)).min(len).max(1);
    let mut parts: Vec<u64> = lens.iter().zip(steps).map(least).collect();
    let mut bytes = parts.iter().fold(run.max(1), |bytes, len| bytes.saturating_mul(*len));
    for (part, &len) in parts.iter_mut().zip(lens).rev() {
        let times = (most / bytes).clamp(1, len.div_ceil(*part).max(1));
        bytes = bytes.saturating_mul(times);
        *part = (*part * times).min(len).max(1);
        if *part < len {
            break;
        }
    }
    parts
}

impl Pieces for ChunkPieces {
    fn bytes(&self) -> u64 {
        self.runs.bytes()
    }

    fn count(&self) -> u64 {
        if self.bytes() == 0 { 0 } else { self.boxes.count() * self.parts() }
    }

    fn output(&self, number: u64) -> Runs {
        let items = self.items(number);
        let is_used = self.is_used(&items);
        if is_used { self.dense.part(&items).coalesced() } else { Runs::contiguous(0, 0) }
    }

    fn fill(&self, number: u64, from: &mut ReadFrom<'_>, out: &mut [u8]) -> Result<(), FillError> {
        let taken = self.runs.part(&self.items(number));
        if self.parts() == 1 {
            if out.is_empty() {
                return Ok(());
            }
            self.expect_later(number, from.source);
            return Ok(self.chunked.fill(&taken, from.source, None, out)?);
        }
        let number = number / self.parts();
        if !out.is_empty() {
            self.chunked.prepare(&taken, from.source, &self.cache);
            self.look_ahead(number, &taken, from.source);
            self.chunked.fill(&taken, from.source, Some(&self.cache), out)?;
        }
        self.filled(number);
        Ok(())
    }

    fn owned(&self, number: u64, source: &dyn Source) -> Result<Option<Vec<u8>>, FillError> {
        let is_worth_it = self.chunked.chunk_bytes() >= LEAST_SPARE as u64;
        let whole = if is_worth_it { self.whole_chunk(number) } else { None };
        let Some(at) = whole else { return Ok(None) };
        self.expect_later(number, source);
        Ok(Some(self.chunked.decode(&at, u64::MAX, source)?))
    }

    fn needs(&self, number: u64, _gap: u64, visit: VisitRange<'_>) -> Result<(), FillError> {
        if number.is_multiple_of(self.parts()) {
            let is_named = |at: &[u64]| self.chunked.is_named(at);
            self.chunked.needs(&self.of_box(number / self.parts()), is_named, visit);
        }
        Ok(())
    }

    fn work(&self) -> u64 {
        self.chunked.work(&self.runs)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::thread;

    use proptest::prelude::*;

    use super::super::Decoding;
    use super::*;
    use crate::execute::pack::pack;
    use crate::runs::Axis;
    use crate::shape::{Order, contiguous_strides};
    use crate::source::{MemorySource, SourceError};
    use crate::tensor::Chunks;

    /// Elements in memory, in chunks that count how often they are decoded.
    #[derive(Debug)]
    struct Counted {
        shape: Vec<u64>,
        chunk: Vec<u64>,
        item: u64,
        bytes: Vec<u8>,
        decoded: Vec<AtomicU64>,
    }

    impl Counted {
        fn new(shape: &[u64], chunk: &[u64], item: u64) -> Counted {
            let bytes = (0..shape.iter().product::<u64>() * item).map(|at| (at % 251) as u8);
            let counts = shape.iter().zip(chunk).map(|(len, chunk)| len.div_ceil(*chunk));
            let decoded = (0..counts.product()).map(|_| AtomicU64::new(0)).collect();
            let shape = shape.to_vec();
            let chunk = chunk.to_vec();
            Counted { shape, chunk, item, bytes: bytes.collect(), decoded }
        }

        fn all(&self) -> Runs {
            let strides = contiguous_strides(&self.shape, self.item, Order::C).unwrap();
            let axes = self.shape.iter().zip(strides).map(|(&len, stride)| Axis { len, stride });
            Runs { offset: 0, axes: axes.collect(), run: self.item }
        }

        fn number(&self, at: &[u64]) -> u64 {
            let axes = self.shape.iter().zip(&self.chunk).zip(at);
            axes.fold(0, |number, ((len, chunk), at)| number * len.div_ceil(*chunk) + at)
        }
    }

    impl Chunks for Counted {
        fn chunk_shape(&self) -> &[u64] {
            &self.chunk
        }

        fn decode(&self, at: &[u64], needed: u64, _: &dyn Source) -> Result<Vec<u8>, SourceError> {
            let axes = || self.shape.iter().zip(&self.chunk).zip(at);
            self.decoded[self.number(at) as usize].fetch_add(1, Ordering::Relaxed);
            // long enough for other workers to come
            thread::yield_now();
            let items: Vec<Range<u64>> =
                axes().map(|((len, chunk), at)| at * chunk..((at + 1) * chunk).min(*len)).collect();
            let Runs { offset, axes, run } = self.all().part(&items);
            let mut out =
                vec![0; axes.iter().map(|axis| axis.len).product::<u64>() as usize * run as usize];
            pack(&axes, run, &self.bytes, offset as usize, &mut out);
            out.truncate(usize::try_from(needed).unwrap_or(usize::MAX));
            Ok(out)
        }

        fn needs(&self, at: &[u64], visit: &mut dyn FnMut(Range<u64>)) {
            visit(self.number(at)..self.number(at) + 1);
        }
    }

    /// The chunks that pieces need, in their order.
    fn needed(pieces: &dyn Pieces) -> Vec<u64> {
        let mut all = Vec::new();
        for number in 0..pieces.count() {
            pieces.needs(number, 0, &mut |chunk| all.push(chunk.start)).unwrap();
        }
        all.sort_unstable();
        all
    }

    /// A length, the length of a chunk, and the first index, the step and the count of a selection.
    fn axis() -> impl Strategy<Value = (u64, u64, u64, i64, u64)> {
        (1u64..14, 1u64..6, prop_oneof![-3i64..0, 1i64..4]).prop_flat_map(|(len, chunk, step)| {
            (0..len).prop_flat_map(move |first| {
                let more = if step > 0 { len - 1 - first } else { first } / step.unsigned_abs();
                (1..more + 2).prop_map(move |count| (len, chunk, first, step, count))
            })
        })
    }

    proptest! {
        #[test]
        fn several_workers_fill_all_parts_and_decode_no_chunk_twice(
            axes in prop::collection::vec(axis(), 1..4),
            item in prop_oneof![Just(4u64), Just(64), Just(128)],
            is_turned in any::<bool>(),
            (room, part) in (1u64..9, prop_oneof![1u64..600, Just(1 << 20)]),
            row in prop_oneof![Just(SEEN_ROW_WORTH), Just(WRITTEN_ROW_WORTH)],
        ) {
            let shape: Vec<u64> = axes.iter().map(|axis| axis.0).collect();
            let chunk: Vec<u64> = axes.iter().map(|axis| axis.1).collect();
            let counted = Arc::new(Counted::new(&shape, &chunk, item));
            let strides = counted.all().axes;
            let mut runs = Runs { offset: 0, axes: Vec::new(), run: item };
            for (&(_, _, first, step, len), Axis { stride, .. }) in axes.iter().zip(strides) {
                runs.offset += first as i64 * stride;
                runs.axes.push(Axis { len, stride: stride * step });
            }
            if is_turned {
                runs.axes.reverse();
            }
            let mut expected = vec![0; runs.bytes() as usize];
            pack(&runs.axes, item, &counted.bytes, runs.offset as usize, &mut expected);

            let chunks = Arc::clone(&counted) as Arc<dyn Chunks>;
            let chunked = Chunked::new(chunks, &shape, item).unwrap();
            let pieces = ChunkPieces::of(&chunked, &runs, row, room * chunked.chunk_bytes(), part);
            let next = AtomicU64::new(0);
            let found = Mutex::new(vec![0; expected.len()]);
            let needed_first = needed(&pieces);
            thread::scope(|scope| {
                let work = || loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= pieces.count() {
                        break;
                    }
                    let rows = pieces.output(number);
                    let mut out = vec![0; rows.bytes() as usize];
                    let source = &MemorySource::default();
                    let from = &mut ReadFrom { source, scratch: &mut Vec::new() };
                    match pieces.whole_chunk(number).filter(|_| number.is_multiple_of(2)) {
                        Some(at) => out = pieces.chunked.decode(&at, u64::MAX, source).unwrap(),
                        None => pieces.fill(number, from, &mut out).unwrap(),
                    }
                    let mut found = found.lock().unwrap();
                    for (at, row) in rows.starts().zip(out.chunks_exact(rows.run as usize)) {
                        found[at as usize..][..row.len()].copy_from_slice(row);
                    }
                };
                (0..3).for_each(|_| drop(scope.spawn(work)));
            });
            prop_assert!(found.into_inner().unwrap() == expected);
            prop_assert!(counted.decoded.iter().all(|times| times.load(Ordering::Relaxed) <= 1));
            let decoded = (0..).zip(&counted.decoded).filter(|(_, times)| times.load(Ordering::Relaxed) > 0);
            let decoded: Vec<u64> = decoded.map(|(number, _)| number).collect();
            prop_assert_eq!(&needed_first, &decoded);
            let in_order = Decoding::of_runs(&chunked, &runs, item, item);
            prop_assert_eq!(needed(&in_order), decoded);
            let mut out = vec![0; expected.len()];
            for (number, out) in (0..).zip(out.chunks_exact_mut(item as usize)) {
                let from = &mut ReadFrom { source: &MemorySource::default(), scratch: &mut Vec::new() };
                in_order.fill(number, from, out).unwrap();
            }
            prop_assert!(out == expected);
            // once more than there are boxes
            prop_assert!(counted.decoded.iter().all(|times| times.load(Ordering::Relaxed) <= 2));
            // no chunk is left in the cache
            prop_assert!(pieces.cache.has_room(CACHE_BYTES));
        }
    }
}
