//! Elements of a tensor that is stored in chunks ([`Chunks`]), as [`Pieces`](crate::execute::Pieces).
//!
//! A selection sees the elements one after the other in C order, at positions from 0 on, as if they were
//! bytes of a file: it is a view of them. [`Chunked`] finds the chunks that a box
//! of such positions touches, and takes the box from them. Two makers of pieces rest on it:
//! [`ChunkPieces`], boxes of whole neighbouring chunks in any order, which decodes each chunk once; and
//! [`Decoding`], pieces of any kind that read elements as bytes of a source, which keeps chunks for the pieces that
//! follow: ranges of the output, or a few rows of a gather. A sorted list along an axis takes of boxes what it names
//! (`region/listed.rs`); where many other rows are read, the chunks that they lie in ([`ChunkSet`]) are decoded to a
//! temporary file first. The way back is [`ChunkSink`], which makes chunks of
//! elements that come at such positions.
//!
//! ```text
//!   a[1:, ::4]   · · · ·│· · ·        one axis: elements 0, 4 of 7, in chunks of 4
//!                x · · ·│x · ·        boxes: one in each chunk
//!                ───────┼──────
//!                x · · ·│x · ·
//! ```
//!
//! Outputs in order, readers of ranges and gathers keep the chunks that were decoded last, 48 MiB; a slice that would
//! need more at a time is put in order in a file in `TMPDIR`. A worker holds a chunk and what is taken of it, in
//! memory that earlier chunks had (`source/spare.rs`). Of a chunk, only what is in front of the last byte that a slice
//! takes of it is decoded, where the codec goes from front to back. Chunks that come next are read ahead.

use std::borrow::Cow;
use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;

#[cfg(feature = "hdf5")]
pub(crate) use cache::Cache as ChunkCache;
use cache::{CACHE_BYTES, Cache, ChunkBytes};
use cells::{CellBoxes, Steps};

use crate::execute::pack::pack;
use crate::execute::{VisitRange, unpack};
use crate::runs::{Axis, Runs, index_of};
use crate::shape::{AsTuple, Order, byte_count, contiguous_strides};
use crate::source::{Advice, Source, SourceError};
use crate::tensor::Chunks;

mod cache;
mod cells;
mod decoding;
mod named;
mod pieces;
mod sink;

pub use decoding::Decoding;
pub use named::ChunkSet;
pub use pieces::ChunkPieces;
pub use sink::{ChunkSink, ChunkedTensor};

/// The elements of a tensor in chunks, at the positions that they would have in C order.
#[derive(Clone, Debug)]
pub struct Chunked {
    chunks: Arc<dyn Chunks>,
    shape: Vec<u64>,
    /// The distance from an element to the next one along each axis, in bytes of the positions.
    strides: Vec<i64>,
    item: u64,
    bytes: u64,
    /// The range of indexes along each axis that holds the used elements.
    used: Vec<Range<u64>>,
    /// The chunks that are used, if not all.
    named: Option<Arc<ChunkSet>>,
    /// The number of the tensor in a cache of several tensors.
    number: Option<u64>,
}

/// The number of chunks that are read ahead of the decoded one.
const AHEAD: u64 = 2;

/// The fewest bytes of a chunk that make reading ahead worthwhile.
const AHEAD_BYTES: u64 = 128 << 10;

impl Chunked {
    /// Elements of `item` bytes in chunks of a tensor of that shape; `None` if the chunks do not
    /// fit the tensor.
    pub fn new(chunks: Arc<dyn Chunks>, shape: &[u64], item: u64) -> Option<Chunked> {
        let bytes = byte_count(shape, item.checked_mul(8)?)?;
        let strides = contiguous_strides(shape, item, Order::C)?;
        let fits = chunks.chunk_shape().len() == shape.len() && !chunks.chunk_shape().contains(&0);
        let shape = shape.to_vec();
        let used = shape.iter().map(|len| 0..*len).collect();
        let named = None;
        fits.then_some(Chunked { chunks, used, shape, strides, item, bytes, named, number: None })
    }

    /// The elements, of which only those between the first and the last ones that `runs` touch along
    /// each axis are used.
    fn used_by(&self, runs: &Runs) -> Chunked {
        if runs.bytes() == 0 {
            return self.clone();
        }
        let first = self.index(runs.offset as u64);
        let mut used: Vec<Range<u64>> = first.iter().map(|at| *at..at + 1).collect();
        for Steps { len, axis, step, .. } in self.steps(runs) {
            let Some(axis) = axis else { continue };
            let far = (len - 1) * step.unsigned_abs();
            if step > 0 { used[axis].end += far } else { used[axis].start -= far }
        }
        Chunked { used, ..self.clone() }
    }

    /// The bytes of a chunk that is not at the end of an axis.
    pub(crate) fn chunk_bytes(&self) -> u64 {
        let lens = self.shape.iter().zip(self.chunks.chunk_shape());
        lens.map(|(len, chunk)| len.min(chunk)).product::<u64>() * self.item
    }

    fn index(&self, position: u64) -> Vec<u64> {
        index_of(self.shape.iter().copied(), position / self.item)
    }

    /// The chunk that has the element at an index.
    fn chunk_of(&self, index: &[u64]) -> Vec<u64> {
        index.iter().zip(self.chunks.chunk_shape()).map(|(at, len)| at / len).collect()
    }

    /// The steps of each axis of `runs` through the chunks; empty if there are none.
    fn steps(&self, runs: &Runs) -> Vec<Steps> {
        if runs.bytes() == 0 {
            return Vec::new();
        }
        let first = self.index(runs.offset as u64);
        let steps = |&Axis { len, stride }: &Axis| {
            // axes longer than 1 are identified by their strides
            let mut axes = (0..self.shape.len()).filter(|&axis| self.shape[axis] > 1);
            let axis = axes.find(|&axis| len > 1 && self.strides[axis] <= stride.abs());
            match axis.filter(|_| stride != 0) {
                None => Steps { len, axis: None, start: 0, step: 0, chunk: 1 },
                Some(axis) => Steps {
                    len,
                    axis: Some(axis),
                    start: first[axis],
                    step: stride / self.strides[axis],
                    chunk: self.chunks.chunk_shape()[axis],
                },
            }
        };
        runs.axes.iter().map(steps).collect()
    }

    /// Whether `runs` take the same part of each chunk as `others` take of the same chunk of
    /// another tensor.
    pub(crate) fn is_like(&self, runs: &Runs, other: &Chunked, others: &Runs) -> bool {
        let shapes = |of: &Chunked| (of.shape.clone(), of.chunks.chunk_shape().to_vec());
        let offsets = runs.offset / self.item as i64 == others.offset / other.item as i64;
        offsets && shapes(self) == shapes(other) && self.steps(runs) == other.steps(others)
    }

    /// For each axis of `runs`, the items that are the first ones of a chunk.
    pub(crate) fn first_items(&self, runs: &Runs) -> Vec<Vec<u64>> {
        let first =
            |steps: &Steps| (0..steps.cells()).map(|cell| steps.items(cell).start).collect();
        self.steps(runs).iter().map(first).collect()
    }

    /// The distance from an item to the next one along each axis, in bytes of a chunk.
    fn steps_in_chunk(&self, steps: &[Steps]) -> Vec<u64> {
        let lens = self.shape.iter().zip(self.chunks.chunk_shape());
        let shape: Vec<u64> = lens.map(|(len, chunk)| *len.min(chunk)).collect();
        let strides = contiguous_strides(&shape, self.item, Order::C).unwrap_or_default();
        let bytes = |it: &Steps| it.axis.map_or(0, |axis| (it.step * strides[axis]).unsigned_abs());
        steps.iter().map(bytes).collect()
    }

    /// Read the elements at `runs`. With a cache of several tensors, decoded chunks are cached under the
    /// number of this tensor.
    #[cfg(feature = "hdf5")]
    pub(crate) fn read(
        &self,
        runs: &Runs,
        source: &dyn Source,
        cache: Option<(&Cache, u64)>,
        out: &mut [u8],
    ) -> Result<(), SourceError> {
        match cache {
            None => self.used_by(runs).fill(runs, source, None, out),
            Some((cache, number)) => {
                let chunked = Chunked { number: Some(number), ..self.clone() };
                chunked.fill(runs, source, Some(cache), out)
            }
        }
    }

    /// Fill `out` with what `runs` take of each chunk that they touch: of chunks that are in a
    /// cache or, without one, of each after the other.
    fn fill(
        &self,
        runs: &Runs,
        source: &dyn Source,
        cache: Option<&Cache>,
        out: &mut [u8],
    ) -> Result<(), SourceError> {
        if out.is_empty() {
            return Ok(());
        }
        let touched = self.touched(runs);
        let dense = runs.dense();
        if let Some(cache) = cache
            && touched.count().saturating_mul(self.chunk_bytes()) <= CACHE_BYTES / 2
        {
            self.prepare(runs, source, cache);
        }
        let mut part = Vec::new();
        for TouchedChunk { at, items, inside } in touched.chunks() {
            let chunk = match cache {
                None => {
                    let needed = inside.byte_bounds().end as u64;
                    Arc::new(ChunkBytes(self.decode(&at, needed, source)?))
                }
                Some(cache) => cache.get(&self.key(&at), || self.decode(&at, u64::MAX, source))?,
            };
            let from = inside.offset as usize;
            let Runs { axes, run, .. } = &inside;
            if touched.count() == 1 {
                pack(axes, *run, &chunk, from, out);
                return Ok(());
            }
            let taken = if axes.is_empty() {
                &chunk[from..from + *run as usize]
            } else {
                part.resize(inside.bytes() as usize, 0);
                pack(axes, *run, &chunk, from, &mut part);
                &part
            };
            let Runs { offset, axes, run } = dense.part(&items).coalesced();
            unpack(&axes, run, taken, Cell::from_mut(out).as_slice_of_cells(), offset as usize);
        }
        Ok(())
    }

    /// The bytes that are decoded for `runs`, or copied, whichever is more.
    pub fn work(&self, runs: &Runs) -> u64 {
        runs.bytes().max(self.touched(runs).count().saturating_mul(self.chunk_bytes()))
    }

    /// Visit the stored ranges of the chunks that `runs` touch, if `is_wanted`.
    fn needs(&self, runs: &Runs, is_wanted: impl Fn(&[u64]) -> bool, visit: VisitRange<'_>) {
        let touched = self.touched(runs);
        let wanted = touched.chunks().filter(|chunk| is_wanted(&chunk.at));
        wanted.for_each(|chunk| self.chunks.needs(&chunk.at, visit));
    }

    /// Decode the chunks that `runs` touch and that no other worker decodes, so that workers that
    /// need the same chunks share the work.
    fn prepare(&self, runs: &Runs, source: &dyn Source, cache: &Cache) {
        let touched = self.touched(runs);
        for (TouchedChunk { at, .. }, number) in touched.chunks().zip(0..) {
            cache.prepare(&self.key(&at), || true, || touched.decode(number, &at, source));
        }
    }

    fn touched<'a>(&'a self, runs: &'a Runs) -> Touched<'a> {
        let steps = self.steps(runs);
        let cells = CellBoxes::new(&steps, &vec![1; steps.len()]);
        Touched { chunked: self, runs, steps, cells }
    }

    /// The chunk whose elements `runs` are, all of them in their order, if they are those of one.
    fn whole_chunk(&self, runs: &Runs) -> Option<Vec<u64>> {
        let touched = self.touched(runs);
        let TouchedChunk { at, inside, .. } = (touched.count() == 1).then(|| touched.chunk(0))?;
        let bytes = self.shape_of(&at).iter().product::<u64>() * self.item;
        (inside == Runs::contiguous(0, bytes)).then_some(at)
    }

    pub fn all(&self) -> Runs {
        in_order(&self.shape, self.item)
    }

    /// The chunk of a box of positions, and the box in the chunk's bytes.
    fn in_chunk(&self, taken: &Runs, steps: &[Steps]) -> (Vec<u64>, Runs) {
        let index = self.index(taken.offset as u64);
        let at = self.chunk_of(&index);
        let shape = self.shape_of(&at);
        let strides = contiguous_strides(&shape, self.item, Order::C).unwrap_or_default();
        let inside = index.iter().zip(self.chunks.chunk_shape()).map(|(at, len)| (at % len) as i64);
        let offset = inside.zip(&strides).map(|(at, stride)| at * stride).sum::<i64>();
        let axes = taken.axes.iter().zip(steps).map(|(&Axis { len, .. }, steps)| Axis {
            len,
            stride: steps.axis.map_or(0, |axis| steps.step * strides[axis]),
        });
        let offset = offset + taken.offset % self.item as i64;
        (at, Runs { offset, axes: axes.collect(), run: taken.run }.coalesced())
    }

    /// The end of the used bytes of a chunk of that shape.
    fn used_of(&self, at: &[u64], shape: &[u64]) -> u64 {
        let strides = contiguous_strides(shape, self.item, Order::C).unwrap_or_default();
        let starts = at.iter().zip(self.chunks.chunk_shape()).map(|(at, len)| at * len);
        let ends = self.used.iter().zip(starts).zip(shape);
        let last =
            ends.map(|((used, start), len)| used.end.saturating_sub(start).clamp(1, *len) - 1);
        last.zip(&strides).map(|(at, stride)| at * stride.unsigned_abs()).sum::<u64>() + self.item
    }

    /// The key of a chunk in a cache.
    fn key<'a>(&self, at: &'a [u64]) -> Cow<'a, [u64]> {
        self.number.map_or(at.into(), |number| [&[number], at].concat().into())
    }

    fn is_named(&self, at: &[u64]) -> bool {
        self.named.as_ref().is_none_or(|named| named.has(at))
    }

    fn shape_of(&self, at: &[u64]) -> Vec<u64> {
        cut_chunk(&self.shape, self.chunks.chunk_shape(), at)
    }

    /// The elements of a chunk, at least those used in its first `needed` bytes.
    fn decode(&self, at: &[u64], needed: u64, source: &dyn Source) -> Result<Vec<u8>, SourceError> {
        let shape = self.shape_of(at);
        let whole = shape.iter().product::<u64>() * self.item;
        if !self.is_named(at) {
            return Ok(vec![0; whole as usize]);
        }
        let needed = needed.min(self.used_of(at, &shape));
        let chunk = self.chunks.decode_used(at, &self.used, needed, source)?;
        if !(needed.min(whole)..=whole).contains(&(chunk.len() as u64)) {
            let reason = "it has another number of elements".to_owned();
            return Err(SourceError::Chunk { at: AsTuple(at).to_string(), reason });
        }
        Ok(chunk)
    }
}

/// Elements of a shape, one after the other in C order.
fn in_order(shape: &[u64], item: u64) -> Runs {
    let axes = shape.iter().map(|&len| Axis { len, stride: 0 }).collect();
    Runs { offset: 0, axes, run: item }.dense()
}

/// The number of chunks along each axis of a tensor.
fn grid(shape: &[u64], chunk: &[u64]) -> impl DoubleEndedIterator<Item = u64> {
    shape.iter().zip(chunk).map(|(len, chunk)| len.div_ceil(*chunk))
}

/// The shape of chunk `at`, cut at the ends of the tensor's axes.
fn cut_chunk(shape: &[u64], chunk: &[u64], at: &[u64]) -> Vec<u64> {
    let axes = shape.iter().zip(chunk).zip(at);
    axes.map(|((len, chunk), at)| (*chunk).min(len - at * chunk)).collect()
}

struct Touched<'a> {
    chunked: &'a Chunked,
    runs: &'a Runs,
    steps: Vec<Steps>,
    cells: CellBoxes,
}

struct TouchedChunk {
    at: Vec<u64>,
    items: Vec<Range<u64>>,
    inside: Runs,
}

impl Touched<'_> {
    fn count(&self) -> u64 {
        if self.runs.bytes() == 0 { 0 } else { self.cells.count() }
    }

    fn chunks(&self) -> impl Iterator<Item = TouchedChunk> {
        (0..self.count()).map(|number| self.chunk(number))
    }

    /// The elements of chunk `number`, which is at `at`; a later chunk is read ahead meanwhile.
    fn decode(&self, number: u64, at: &[u64], source: &dyn Source) -> Result<Vec<u8>, SourceError> {
        self.expect(number + AHEAD, source);
        self.chunked.decode(at, u64::MAX, source)
    }

    /// Have chunk `number` read ahead, if it exists. For sources with requests, pieces say what
    /// they [need](crate::execute::Pieces::needs).
    fn expect(&self, number: u64, source: &dyn Source) {
        let is_worth_it = self.chunked.chunk_bytes() >= AHEAD_BYTES;
        if number >= self.count() || !is_worth_it || source.is_remote() {
            return;
        }
        let at = self.chunk(number).at;
        if self.chunked.is_named(&at) {
            let advise = &mut |stored| source.advise(stored, Advice::WillNeed);
            self.chunked.chunks.needs(&at, advise);
        }
    }

    fn chunk(&self, number: u64) -> TouchedChunk {
        let items = self.cells.items(&self.steps, number);
        let (at, inside) = self.chunked.in_chunk(&self.runs.part(&items), &self.steps);
        TouchedChunk { at, items, inside }
    }
}
