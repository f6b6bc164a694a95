//! The chunks of a dataset: each is looked up on demand in the dataset's index, and decoded.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::file::{H5File, Hdf5Error, damaged};
use super::filters::{self, Filter};
use super::index::{Grid, Index};
use super::repair::{Repair, Widening};
use crate::formats::codecs::guarded;
use crate::shape::AsTuple;
use crate::source::{Source, SourceError, memory_bytes, spare_bytes};
use crate::tensor::{Chunks, brief, cut};

/// The chunks of a dataset.
pub(super) struct H5Chunks {
    pub(super) file: Arc<H5File>,
    pub(super) shape: Vec<u64>,
    /// The shape of the dataset, whose axes may be shorter than the tensor's.
    pub(super) stored_shape: Vec<u64>,
    /// The bytes of an element beyond the end of the dataset; empty for zeros.
    pub(super) padding: Vec<u8>,
    /// The shape of a chunk along all axes of the tensor.
    pub(super) chunk: Vec<u64>,
    /// The chunks along the axes of the dataset; elements that are arrays give the tensor more axes.
    pub(super) grid: Grid,
    /// The bytes of a stored element.
    pub(super) item: u64,
    pub(super) filters: Vec<Filter>,
    pub(super) index: Index,
    /// Whether chunks that extend beyond the end of an axis are stored without filters.
    pub(super) partial_unfiltered: bool,
    /// The bytes of an element that was never written; empty for zeros.
    pub(super) fill: Box<[u8]>,
    /// The changes to each element of the dataset.
    pub(super) repairs: Vec<Repair>,
    /// The conversion of stored elements to wider ones, if any.
    pub(super) widening: Option<Widening>,
}

/// The longest chunk of a short dataset, in bytes.
const MOST_SHORT: u64 = 64 << 10;

impl H5Chunks {
    /// Check that the index can belong to chunks with these axes.
    pub(super) fn check(&self) -> Result<(), Hdf5Error> {
        let growing = self.grid.counts.iter().filter(|count| count.is_none()).count();
        let is_sound = match self.index {
            Index::Fixed(_) | Index::Implicit(_) => growing == 0,
            Index::Extensible(_) => growing == 1,
            _ => true,
        };
        if is_sound {
            Ok(())
        } else {
            Err(damaged("the index of its chunks is not one for its axes"))
        }
    }

    /// All elements of a short dataset of one axis.
    pub(super) fn short(&self, file: &H5File) -> Result<Vec<u8>, Hdf5Error> {
        let ([len], [chunk]) = (&self.shape[..], &self.chunk[..]) else {
            return Err(damaged("a list in it has several axes"));
        };
        if self.grid.bytes > MOST_SHORT {
            return Err(damaged("a list in it has large chunks"));
        }
        let decoded = (0..len.div_ceil(*chunk)).map(|at| {
            let bytes = self.decode(&[at], u64::MAX, file.source());
            bytes.map_err(|error| damaged(&error.to_string()))
        });
        Ok(decoded.collect::<Result<Vec<_>, _>>()?.concat())
    }

    /// The byte range of a chunk in the file, and a bit mask of the filters that were not applied; `None` for a chunk
    /// that was never written.
    fn stored(&self, at: &[u64], source: &dyn Source) -> Result<Option<(Range<u64>, u32)>, String> {
        let at = &at[..self.grid.counts.len()];
        if self.inside(at).contains(&0) {
            return Ok(None);
        }
        if let Index::Contiguous(_) | Index::External(_) = self.index {
            let clipped = self.clipped(at);
            let len = clipped.iter().chain(self.inner()).product::<u64>() * self.item;
            let axes = self.shape.iter().zip(&self.chunk).zip(at);
            let before = axes.fold(0, |before, ((len, chunk), at)| before * len + at * chunk);
            let mut start = before * self.inner().iter().product::<u64>() * self.item;
            if let Index::Contiguous(address) = self.index {
                let found = self.file.position(address + start, len);
                start = found.map_err(|error| error.to_string())?;
            }
            return Ok(Some((start..start + len, 0)));
        }
        let found = self.index.find(&self.file, &self.grid, at);
        let Some(chunk) = found.map_err(|error| error.to_string())? else { return Ok(None) };
        let start = self.file.position(chunk.address, chunk.len);
        let start = start.map_err(|_| "it is beyond the end of the file".to_owned())?;
        let end = start + chunk.len;
        if end > source.len() {
            return Err("it is beyond the end of the file".to_owned());
        }
        Ok(Some((start..end, chunk.skipped)))
    }

    /// The elements of a chunk as they are stored.
    fn elements(&self, at: &[u64], needed: u64, source: &dyn Source) -> Result<Vec<u8>, String> {
        let clipped = self.clipped(at);
        let source = match &self.index {
            Index::External(source) => source.as_ref(),
            _ => source,
        };
        // pieces of contiguous elements end at the ends of axes
        let is_piece = matches!(self.index, Index::Contiguous(_) | Index::External(_));
        let chunk = if is_piece { &clipped } else { &self.chunk };
        let whole = chunk.iter().try_fold(self.item, |bytes, len| bytes.checked_mul(*len));
        let Some(whole) = whole.filter(|whole| *whole <= memory_bytes()) else {
            return Err("a chunk is larger than the memory".to_owned());
        };
        let inside = self.inside(at);
        let ends_inside = inside.iter().zip(&clipped).any(|(inside, clipped)| inside < clipped);
        let Some((stored_range, skipped)) = self.stored(at, source)? else {
            let bytes = clipped.iter().product::<u64>() * self.item;
            let mut bytes = match self.fill.len() as u64 {
                0 => vec![0; bytes as usize],
                len => self.fill.repeat((bytes / len) as usize),
            };
            if ends_inside {
                self.pad(&clipped, &inside, &mut bytes);
            }
            return Ok(bytes);
        };
        let is_partial = clipped != *chunk || ends_inside || !self.repairs.is_empty();
        let skipped = if is_partial && self.partial_unfiltered { u32::MAX } else { skipped };
        // a chunk that is cut needs all its bytes
        let needed = if is_partial { whole } else { needed.min(whole) };
        let len = stored_range.end - stored_range.start;
        let len = if self.filters.is_empty() && len == whole { needed } else { len };
        if len > memory_bytes() {
            return Err("a chunk is larger than the memory".to_owned());
        }
        let mut stored = spare_bytes(len as usize);
        let read =
            source.read(stored_range.start..stored_range.start + len, &mut Vec::new(), &mut stored);
        read.map_err(|error| error.to_string())?;
        let wanted = needed as usize..whole as usize;
        let mut bytes = filters::undo(&self.filters, skipped, stored, wanted)?;
        if needed < whole && bytes.len() as u64 >= needed {
            return Ok(bytes);
        }
        if bytes.len() as u64 != whole {
            return Err("it has another number of elements".to_owned());
        }
        cut(&mut bytes, chunk, &clipped, self.item as usize);
        if !self.repairs.is_empty() {
            let element = self.inner().iter().product::<u64>() * self.item;
            let elements = bytes.chunks_exact_mut((element as usize).max(1));
            elements.for_each(|element| Repair::all(&self.repairs, element));
        }
        if ends_inside {
            self.pad(&clipped, &inside, &mut bytes);
        }
        Ok(bytes)
    }

    /// The shape of the part of a chunk that lies inside the dataset.
    fn inside(&self, at: &[u64]) -> Vec<u64> {
        let axes = self.stored_shape.iter().zip(&self.chunk).zip(at);
        axes.map(|((len, chunk), at)| (*chunk).min(len.saturating_sub(at * chunk))).collect()
    }

    /// Fill the elements of a chunk that are beyond the end of the dataset: outside `inside`, in a chunk of shape `clipped`.
    fn pad(&self, clipped: &[u64], inside: &[u64], bytes: &mut [u8]) {
        let size = (self.inner().iter().product::<u64>() * self.item).max(1) as usize;
        for (number, element) in (0..).zip(bytes.chunks_exact_mut(size)) {
            let mut rest: u64 = number;
            let is_outside = inside.iter().zip(clipped).rev().any(|(inside, clipped)| {
                let at = rest % clipped;
                rest /= clipped;
                at >= *inside
            });
            if is_outside && self.padding.len() == size {
                element.copy_from_slice(&self.padding);
            } else if is_outside {
                element.fill(0);
            }
        }
    }

    /// The shape of a chunk, cut to the tensor's shape.
    fn clipped(&self, at: &[u64]) -> Vec<u64> {
        let axes = self.shape.iter().zip(&self.chunk).zip(at);
        axes.map(|((len, chunk), at)| (*chunk).min(len.saturating_sub(at * chunk))).collect()
    }

    /// The shape of an element that is an array; empty for other elements.
    fn inner(&self) -> &[u64] {
        &self.shape[self.grid.counts.len()..]
    }
}

impl Chunks for H5Chunks {
    fn chunk_shape(&self) -> &[u64] {
        &self.chunk
    }

    fn decode(&self, at: &[u64], needed: u64, source: &dyn Source) -> Result<Vec<u8>, SourceError> {
        let elements = guarded(|| match &self.widening {
            Some(widening) => Ok(widening.run(&self.elements(at, u64::MAX, source)?)),
            None => self.elements(at, needed, source),
        });
        let elements = elements.flatten();
        elements.map_err(|reason| SourceError::Chunk {
            at: AsTuple(at).to_string(),
            reason: brief(&reason),
        })
    }

    fn needs(&self, at: &[u64], visit: &mut dyn FnMut(Range<u64>)) {
        if matches!(self.index, Index::External(_)) {
            return;
        }
        // a fault is reported when the chunk is decoded
        if let Ok(Ok(Some((stored, _)))) = guarded(|| self.stored(at, self.file.source())) {
            visit(stored);
        }
    }
}

impl fmt::Debug for H5Chunks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("H5Chunks").field("chunk", &self.chunk).finish_non_exhaustive()
    }
}
