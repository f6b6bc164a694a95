//! Virtual datasets: datasets that are put together from elements of other datasets, in this file or in others.
//!
//! Boxes of elements are made on demand, as if they were chunks. Boxes end where sources end, unless there would be too
//! many boxes: so only the sources are opened that hold selected elements.

use std::cell::Cell;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::dataset::piece;
use super::elsewhere::SourceDataset;
use super::file::{H5File, Hdf5Error};
use super::mappings::{Mapping, Mappings};
use super::selection::{Positions, Selection, StridedPart};
use crate::dtype::DType;
use crate::execute::pack::{pack, swap_bytes};
use crate::execute::unpack;
use crate::formats::codecs::guarded;
use crate::shape::AsTuple;
use crate::source::{Source, SourceError, SourceResult};
use crate::tensor::{Chunks, brief};

/// A dataset of at least this many bytes has boxes of the shape of its first source's chunks.
const LONG: u64 = 64 << 20;

/// The most bytes of a box.
const MOST_BOX: u64 = 16 << 20;

/// Boxes of fewer bytes are too many if there are more than this.
const SHORT_BOX: u64 = 4 << 10;
const MOST_SHORT: u64 = 1 << 16;

pub(super) struct VirtualChunks {
    pub(super) file: Arc<H5File>,
    /// The list of mappings: an object of the global heap.
    pub(super) heap: (u64, u32),
    /// The shape in the file; unlimited sources may make the dataset longer.
    pub(super) stored_shape: Vec<u64>,
    /// The nesting level of this dataset in other virtual datasets.
    pub(super) depth: usize,
    pub(super) shape: Vec<u64>,
    pub(super) dtype: DType,
    /// The fill value, for elements that are in no source; empty for zeros.
    pub(super) fill: Vec<u8>,
    /// The longest box along each axis that ends where sources end; 0 for any length.
    pub(super) cuts: Vec<u64>,
    pub(super) shape_of_boxes: OnceLock<Vec<u64>>,
}

impl VirtualChunks {
    fn item(&self) -> u64 {
        self.dtype.item_bits() / 8
    }

    fn mappings(&self) -> SourceResult<Arc<Mappings>> {
        self.file.mappings(self.heap, || {
            let read = Mappings::read(&self.file, self.heap, &self.stored_shape, self.depth);
            read.map_err(|error| SourceError::Io(std::io::Error::other(error)))
        })
    }

    /// The chunk shape of the first source; `None` if such a box would be too long.
    fn like(&self) -> Option<Vec<u64>> {
        let bytes = self.shape.iter().fold(self.item(), |bytes, len| bytes.saturating_mul(*len));
        if bytes < LONG {
            return None;
        }
        let mappings = self.mappings().ok()?;
        let source = self.source(mappings.list.first()?).ok()?;
        let chunk = source.chunks.chunk_shape();
        let outer = self.shape.len().checked_sub(chunk.len())?;
        let chunk = std::iter::repeat_n(&1, outer).chain(chunk);
        let chunk: Vec<u64> = chunk.zip(&self.shape).map(|(len, all)| *len.min(all)).collect();
        let bytes = chunk.iter().fold(self.item(), |bytes, len| bytes.saturating_mul(*len));
        ((SHORT_BOX..=MOST_BOX).contains(&bytes)).then_some(chunk)
    }

    fn boxes(&self) -> Vec<u64> {
        let wanted = self.like().unwrap_or_else(|| piece(&self.shape, self.item()));
        let cut = |(wanted, cut): (&u64, &u64)| match cut {
            0 => *wanted,
            cut if cut <= wanted => *cut,
            cut => (wanted / 2 + 1..=*wanted).rev().find(|len| cut % len == 0).unwrap_or(*wanted),
        };
        let rest = std::iter::repeat(&0);
        let found: Vec<u64> = wanted.iter().zip(self.cuts.iter().chain(rest)).map(cut).collect();
        let bytes = found.iter().fold(self.item(), |bytes, len| bytes.saturating_mul(*len));
        let counts = self.shape.iter().zip(&found).map(|(len, chunk)| len.div_ceil(*chunk));
        let count = counts.fold(1u64, u64::saturating_mul);
        if bytes < SHORT_BOX && count > MOST_SHORT { wanted } else { found }
    }

    fn source(&self, mapping: &Mapping) -> SourceResult<Arc<SourceDataset>> {
        self.file.source_dataset(&mapping.file, &mapping.dataset, self.depth + 1)
    }

    /// The elements of a box; only elements in `used` are read.
    fn elements(&self, inside: &[Range<u64>], used: &[Range<u64>]) -> SourceResult<Vec<u8>> {
        let shape: Vec<u64> = inside.iter().map(|range| range.end - range.start).collect();
        let bytes = (shape.iter().product::<u64>() * self.item()) as usize;
        let mut out = match self.fill.len() {
            0 => vec![0; bytes],
            len => self.fill.repeat(bytes / len),
        };
        let used = inside.iter().zip(used);
        let used = used.map(|(one, other)| one.start.max(other.start)..one.end.min(other.end));
        let used: Vec<Range<u64>> = used.collect();
        if bytes == 0 || used.iter().any(Range::is_empty) {
            return Ok(out);
        }
        let origin: Vec<u64> = inside.iter().map(|range| range.start).collect();
        let mappings = self.mappings()?;
        for mapping in mappings.within(&used[..mappings.shape.len()]) {
            let inner = &self.shape[mappings.shape.len()..];
            let part = MappedSource::open(self, mapping, inner)?;
            let numbers = part.dest.0.iter().zip(&used);
            let numbers = numbers.map(|(it, range)| it.before(range.start)..it.before(range.end));
            part.fill(&numbers.collect::<Vec<_>>(), (&origin, &shape), &mut out)?;
        }
        Ok(out)
    }
}

/// A mapping whose source is open.
struct MappedSource {
    source: Arc<SourceDataset>,
    dest: Selection,
    taken: Selection,
    item: u64,
    swap_width: usize,
}

impl MappedSource {
    /// Open the source, and check that it has the elements that the mapping takes. `inner` is the shape of an element
    /// that is an array.
    fn open(
        target: &VirtualChunks,
        mapping: &Mapping,
        inner: &[u64],
    ) -> SourceResult<MappedSource> {
        let source = target.source(mapping)?;
        let fault = |error: &Hdf5Error| {
            let name = if &*mapping.file == "." { &mapping.dataset } else { &mapping.file };
            SourceError::Io(std::io::Error::other(error.to_string())).of_file(name)
        };
        let Some(swap_width) = source.dtype.swap_width_to(&target.dtype) else {
            let [found, wanted] = [&source.dtype, &target.dtype].map(ToString::to_string);
            return Err(fault(&Hdf5Error::SourceDType { found, wanted }));
        };
        let all = |lens: &[u64]| lens.iter().map(|len| Positions::all(*len)).collect::<Vec<_>>();
        let with_inner =
            |selection: &Selection| Selection([selection.0.clone(), all(inner)].concat());
        let dest = with_inner(&mapping.dest);
        let taken = mapping.taken.as_ref().map(with_inner);
        let taken = taken.unwrap_or_else(|| Selection(all(&source.shape)));
        let mut axes = taken.0.iter().zip(&source.shape);
        let fits = taken.0.len() == source.shape.len()
            && taken.count() == dest.count()
            && axes.all(|(positions, len)| positions.bounds().end <= *len);
        if !fits {
            let shape = AsTuple(&source.shape).to_string();
            return Err(fault(&Hdf5Error::SourceShape(shape)));
        }
        let item = target.item();
        Ok(MappedSource { source, dest, taken, item, swap_width })
    }

    /// Put the elements with these numbers along the axes of the destination into a box.
    fn fill(
        &self,
        numbers: &[Range<u64>],
        there: (&[u64], &[u64]),
        out: &mut [u8],
    ) -> SourceResult<()> {
        let [dest, taken] = [&self.dest, &self.taken].map(Selection::lens);
        let long = |lens: &[u64]| lens.iter().copied().filter(|len| *len != 1).collect::<Vec<_>>();
        if long(&dest) == long(&taken) {
            let mut long = numbers.iter().zip(&dest).filter(|(_, len)| **len != 1);
            let mut next = |len: &u64| match len {
                1 => 0..1,
                _ => long.next().map_or(0..0, |(numbers, _)| numbers.clone()),
            };
            let of_source: Vec<Range<u64>> = taken.iter().map(&mut next).collect();
            return self.copy(&of_source, numbers, there, out);
        }
        // row by row: elements that follow each other in the destination, and in the source
        let mut at: Vec<u64> = numbers.iter().map(|range| range.start).collect();
        let Some(last) = at.len().checked_sub(1) else { return Ok(()) };
        loop {
            let number = at.iter().zip(&dest).fold(0, |number, (at, len)| number * len + at);
            let mut rest = number;
            let mut of_source: Vec<Range<u64>> = taken
                .iter()
                .rev()
                .map(|len| {
                    let at = rest % len;
                    rest /= len;
                    at..at + 1
                })
                .collect();
            of_source.reverse();
            let mut count = 1;
            if let (Some(range), Some(len)) = (of_source.last_mut(), taken.last()) {
                count = (numbers[last].end - at[last]).min(len - range.start);
                range.end = range.start + count;
            }
            let mut of_dest: Vec<Range<u64>> = at.iter().map(|at| *at..at + 1).collect();
            of_dest[last].end = at[last] + count;
            self.copy(&of_source, &of_dest, there, out)?;
            at[last] += count;
            let mut axis = last;
            while at[axis] >= numbers[axis].end {
                at[axis] = numbers[axis].start;
                let Some(outer) = axis.checked_sub(1) else { return Ok(()) };
                axis = outer;
                at[axis] += 1;
            }
        }
    }

    /// Put elements of the source, by their numbers among those that are taken, into a box.
    fn copy(
        &self,
        of_source: &[Range<u64>],
        of_dest: &[Range<u64>],
        there: (&[u64], &[u64]),
        out: &mut [u8],
    ) -> SourceResult<()> {
        let count: u64 = of_dest.iter().map(|range| range.end - range.start).product();
        let bytes = (count * self.item) as usize;
        let fills_box = bytes == out.len();
        let mut own = vec![0; if fills_box { 0 } else { bytes }];
        let dense = if fills_box { &mut *out } else { &mut own[..] };
        let mut part = Vec::new();
        let origin = vec![0; self.taken.0.len()];
        let source = (&origin[..], &self.source.shape[..]);
        let mut read = |StridedPart { there, dense: dest }: StridedPart| {
            if there.bytes() == dense.len() as u64 {
                return self.source.read(&there, dense);
            }
            part.resize(there.bytes() as usize, 0);
            self.source.read(&there, &mut part)?;
            let dest = dest.coalesced();
            let cells = Cell::from_mut(&mut *dense).as_slice_of_cells();
            unpack(&dest.axes, dest.run, &part, cells, dest.offset as usize);
            Ok(())
        };
        self.taken.each_part(of_source, source, self.item, &mut read)?;
        swap_bytes(dense, self.swap_width);
        if fills_box {
            return Ok(());
        }
        let cells = Cell::from_mut(out).as_slice_of_cells();
        self.dest.each_part(of_dest, there, self.item, &mut |StridedPart { there, dense: dest }| {
            let dest = dest.coalesced();
            part.resize(dest.bytes() as usize, 0);
            pack(&dest.axes, dest.run, &own, dest.offset as usize, &mut part);
            let there = there.coalesced();
            unpack(&there.axes, there.run, &part, cells, there.offset as usize);
            Ok(())
        })
    }
}

impl Chunks for VirtualChunks {
    fn chunk_shape(&self) -> &[u64] {
        self.shape_of_boxes.get_or_init(|| self.boxes())
    }

    fn decode(&self, at: &[u64], needed: u64, source: &dyn Source) -> SourceResult<Vec<u8>> {
        let all: Vec<Range<u64>> = self.shape.iter().map(|len| 0..*len).collect();
        self.decode_used(at, &all, needed, source)
    }

    fn decode_used(
        &self,
        at: &[u64],
        used: &[Range<u64>],
        _needed: u64,
        _: &dyn Source,
    ) -> SourceResult<Vec<u8>> {
        let axes = at.iter().zip(self.chunk_shape()).zip(&self.shape);
        let inside = axes.map(|((at, chunk), len)| at * chunk..((at + 1) * chunk).min(*len));
        let inside: Vec<Range<u64>> = inside.collect();
        let elements = guarded(|| self.elements(&inside, used));
        let at = || AsTuple(at).to_string();
        elements
            .unwrap_or_else(|reason| Err(SourceError::Chunk { at: at(), reason: brief(&reason) }))
    }
}

impl fmt::Debug for VirtualChunks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VirtualChunks").field("heap", &self.heap).finish_non_exhaustive()
    }
}
