//! Pieces of what a view takes of the elements in chunks.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::cache::{CACHE_BYTES, Cache};
use super::grid::{CellBoxes, Steps};
use super::{AHEAD, Chunked, TouchedChunk};
use crate::execute::{FillError, Pieces, ReadFrom};
use crate::plan::PIECE_BYTES;
use crate::runs::{Runs, unravel_index};
use crate::source::{Source, SourceError};
use crate::view::View;

/// Boxes of whole chunks, as far as they are selected, for outputs that take bytes in any order: no
/// chunk is decoded twice.
///
/// Of one chunk, a box is a piece. Where the output would get too short rows so, a box has several chunks, and
/// is filled part after part, while its chunks are kept.
pub struct ChunkPieces<'a> {
    chunked: Chunked,
    runs: &'a Runs,
    /// Where the selected elements lie in the output.
    dense: Runs,
    steps: Vec<Steps>,
    boxes: CellBoxes,
    /// The items of a part of a box, and how many parts there are, along each axis.
    parts: Vec<(u64, u64)>,
    cache: Cache,
    /// How many parts of boxes are filled.
    filled: Mutex<HashMap<u64, u64>>,
}

/// The bytes of a part of a box.
const PART_BYTES: u64 = 4 * PIECE_BYTES;

/// The bytes of a chunk side by side that a part takes, if it takes any of them: two cache lines, which
/// are loaded together.
const LINES: u64 = 128;

impl<'a> ChunkPieces<'a> {
    /// What a view of the positions takes.
    pub fn new(chunked: &'a Chunked, view: &'a View) -> ChunkPieces<'a> {
        ChunkPieces::of(chunked, view.runs(), CACHE_BYTES, PART_BYTES)
    }

    /// Boxes of chunks that have at most `most` bytes, in parts of about `part` bytes.
    fn of(chunked: &'a Chunked, runs: &'a Runs, most: u64, part: u64) -> ChunkPieces<'a> {
        let steps = chunked.steps(runs);
        let boxes = CellBoxes::of_long_rows(&steps, chunked.chunk_bytes(), most);
        let lens = boxes.most(&steps);
        let parts = match boxes.are_cells() {
            true => lens,
            false => part_lens(&lens, &chunked.steps_in_chunk(&steps), runs.run, part),
        };
        let parts = parts.into_iter().zip(boxes.most(&steps));
        let parts = parts.map(|(part, len)| (part, len.div_ceil(part.max(1)))).collect();
        let (cache, filled) = (Cache::of_all(), Mutex::default());
        let chunked = chunked.used_by(runs);
        ChunkPieces { chunked, runs, dense: runs.dense(), steps, boxes, parts, cache, filled }
    }

    /// How many parts a box has.
    fn parts(&self) -> u64 {
        self.parts.iter().map(|(_, count)| count).product()
    }

    /// The items of a piece along each axis: none where a box is shorter than others.
    fn items(&self, number: u64) -> Vec<Range<u64>> {
        let mut items = self.boxes.items(&self.steps, number / self.parts());
        let counts = self.parts.iter().rev().map(|(_, count)| *count);
        let numbers = unravel_index(counts, number % self.parts());
        for ((items, (len, _)), number) in items.iter_mut().zip(&self.parts).rev().zip(numbers) {
            let start = (items.start + number * len).min(items.end);
            *items = start..(start + len).min(items.end);
        }
        items
    }

    /// The runs of a whole box.
    fn of_box(&self, number: u64) -> Runs {
        self.runs.part(&self.boxes.items(&self.steps, number))
    }

    /// Begin with the chunks of the box that follows, while others decode what a part needs.
    fn look_ahead(
        &self,
        number: u64,
        taken: &Runs,
        source: &dyn Source,
    ) -> Result<(), SourceError> {
        if number + 1 == self.boxes.count() {
            return Ok(());
        }
        let (needed, next) = (self.chunked.touched(taken), self.of_box(number + 1));
        let next = self.chunked.touched(&next);
        for (TouchedChunk { at, .. }, in_box) in next.chunks().zip(0..) {
            let is_waiting = !needed.chunks().all(|needed| self.cache.is_ready(&needed.at));
            if !is_waiting || !self.cache.has_room(self.chunked.chunk_bytes()) {
                break;
            }
            let is_wanted = || !self.is_complete(number + 1);
            self.cache.prepare(&at, is_wanted, || next.decode(in_box, &at, source))?;
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, u64>> {
        self.filled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether all parts of a box are filled.
    fn is_complete(&self, number: u64) -> bool {
        self.lock().get(&number) == Some(&self.parts())
    }

    /// Note that a part of a box is filled; with the last one its chunks are let go.
    fn filled(&self, number: u64) {
        *self.lock().entry(number).or_default() += 1;
        if self.is_complete(number) {
            let whole = self.of_box(number);
            self.chunked.touched(&whole).chunks().for_each(|chunk| self.cache.let_go(&chunk.at));
        }
    }
}

/// How long parts of boxes of that many items are along each axis, from one of which to the next it is so many
/// bytes in a chunk; parts have about `most` bytes.
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

impl Pieces for ChunkPieces<'_> {
    fn bytes(&self) -> u64 {
        self.runs.bytes()
    }

    fn count(&self) -> u64 {
        if self.bytes() == 0 { 0 } else { self.boxes.count() * self.parts() }
    }

    fn output(&self, number: u64) -> Runs {
        self.dense.part(&self.items(number)).coalesced()
    }

    fn fill(&self, number: u64, from: &mut ReadFrom<'_>, out: &mut [u8]) -> Result<(), FillError> {
        let taken = self.runs.part(&self.items(number));
        if self.parts() == 1 {
            if number + AHEAD < self.boxes.count() {
                let later = self.of_box(number + AHEAD);
                self.chunked.touched(&later).expect(0, from.source);
            }
            return Ok(self.chunked.fill(&taken, from.source, None, out)?);
        }
        let (number, cache) = (number / self.parts(), Some(&self.cache));
        self.chunked.prepare(&taken, from.source, &self.cache)?;
        self.look_ahead(number, &taken, from.source)?;
        self.chunked.fill(&taken, from.source, cache, out)?;
        self.filled(number);
        Ok(())
    }

    fn work(&self) -> u64 {
        self.chunked.work(self.runs)
    }
}

/// Ranges of the output in its order. The chunks of a range are kept for those that follow.
pub struct InOrder<'a> {
    chunked: Chunked,
    runs: &'a Runs,
    piece: u64,
    cache: Cache,
}

impl<'a> InOrder<'a> {
    /// What a view of the positions takes, in pieces that do not divide `unit` bytes; `None` where so
    /// many chunks would have to be kept that it is better to put them in order in a file.
    pub fn new(chunked: &'a Chunked, view: &'a View, unit: u64) -> Option<InOrder<'a>> {
        // ranges of the output, one after the other, decode no chunk twice if those are kept that one
        // step along the outermost axis needs: of two steps, since workers are not at the same one
        let steps = chunked.steps(view.runs());
        let cells = steps.iter().map(Steps::cells).skip_while(|cells| *cells == 1).skip(1);
        let kept = cells.fold(chunked.chunk_bytes(), u64::saturating_mul).saturating_mul(2);
        let piece = (PIECE_BYTES / unit.max(1) * unit).max(unit).max(1);
        let pieces = InOrder {
            chunked: chunked.used_by(view.runs()),
            runs: view.runs(),
            piece,
            cache: Cache::of_last(),
        };
        // where one chunk is needed at a time, that is how much memory it takes in any case
        let most = CACHE_BYTES.max(chunked.chunk_bytes().saturating_mul(2));
        (kept <= most).then_some(pieces)
    }
}

impl Pieces for InOrder<'_> {
    fn bytes(&self) -> u64 {
        self.runs.bytes()
    }

    fn count(&self) -> u64 {
        self.bytes().div_ceil(self.piece)
    }

    fn output(&self, number: u64) -> Runs {
        let start = number * self.piece;
        Runs::contiguous(start, self.piece.min(self.bytes() - start))
    }

    fn fill(&self, number: u64, from: &mut ReadFrom<'_>, out: &mut [u8]) -> Result<(), FillError> {
        let start = number * self.piece;
        let range = start..start + out.len() as u64;
        self.chunked.fill_range(self.runs, range, from.source, &self.cache, out)?;
        self.cache.filled(self.count());
        Ok(())
    }

    fn work(&self) -> u64 {
        self.chunked.work(self.runs)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::thread;

    use proptest::prelude::*;

    use super::*;
    use crate::execute::pack::pack;
    use crate::format::Chunks;
    use crate::runs::Axis;
    use crate::shape::{Order, contiguous_strides};
    use crate::source::MemorySource;

    /// Elements in memory, in chunks. Each counts how often it is decoded.
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
            let (shape, chunk) = (shape.to_vec(), chunk.to_vec());
            Counted { shape, chunk, item, bytes: bytes.collect(), decoded }
        }

        fn all(&self) -> Runs {
            let strides = contiguous_strides(&self.shape, self.item, Order::C).unwrap();
            let axes = self.shape.iter().zip(strides).map(|(&len, stride)| Axis { len, stride });
            Runs { offset: 0, axes: axes.collect(), run: self.item }
        }
    }

    impl Chunks for Counted {
        fn chunk_shape(&self) -> &[u64] {
            &self.chunk
        }

        fn decode(&self, at: &[u64], needed: u64, _: &dyn Source) -> Result<Vec<u8>, SourceError> {
            let axes = || self.shape.iter().zip(&self.chunk).zip(at);
            let number =
                axes().fold(0, |number, ((len, chunk), at)| number * len.div_ceil(*chunk) + at);
            self.decoded[number as usize].fetch_add(1, Ordering::Relaxed);
            // long enough for others to come
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
    }

    /// A length, the length of a chunk, and the first index, the step and the count of what is taken.
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
            let pieces = ChunkPieces::of(&chunked, &runs, room * chunked.chunk_bytes(), part);
            let (next, found) = (AtomicU64::new(0), Mutex::new(vec![0; expected.len()]));
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
                    pieces.fill(number, from, &mut out).unwrap();
                    let mut found = found.lock().unwrap();
                    for (at, row) in rows.starts().zip(out.chunks_exact(rows.run as usize)) {
                        found[at as usize..][..row.len()].copy_from_slice(row);
                    }
                };
                (0..3).for_each(|_| drop(scope.spawn(work)));
            });
            prop_assert!(found.into_inner().unwrap() == expected);
            prop_assert!(counted.decoded.iter().all(|times| times.load(Ordering::Relaxed) <= 1));
            // nothing is kept
            prop_assert!(pieces.cache.has_room(CACHE_BYTES));
        }
    }
}
