//! Elements in chunks of a dataset.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::super::error::brief;
use super::error::{Hdf5Error, damaged};
use super::file::H5File;
use super::filters;
use super::filters::Filter;
use super::index::{Grid, Index};
use crate::format::chunks::{Chunks, cut};
use crate::format::guarded::guarded;
use crate::format::spare;
use crate::shape::AsTuple;
use crate::source::{Advice, Source, SourceError, memory_bytes};

/// Chunks that are looked up in the index of their dataset, or were never written.
pub(super) struct H5Chunks {
    pub(super) file: Arc<H5File>,
    pub(super) shape: Vec<u64>,
    /// The shape of a chunk along all axes of the tensor.
    pub(super) chunk: Vec<u64>,
    /// The chunks along the axes of the dataset; elements that are arrays give the tensor more.
    pub(super) grid: Grid,
    /// Bytes of an element.
    pub(super) item: u64,
    pub(super) filters: Vec<Filter>,
    pub(super) index: Index,
    /// Whether no filter was applied to chunks that reach over the end of an axis.
    pub(super) partial_unfiltered: bool,
    /// The bytes of an element of the dataset that was never written; empty for zeros.
    pub(super) fill: Box<[u8]>,
}

/// The longest chunk of a short dataset.
const MOST_SHORT: u64 = 64 << 10;

/// The bytes of a chunk in the file, and the filters that were not applied to it, a bit each.
struct Stored {
    bytes: Range<u64>,
    skipped: u32,
}

impl H5Chunks {
    /// Check that there is an index that chunks of these axes may have.
    ///
    /// # Errors
    /// [`Hdf5Error::Damaged`].
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

    /// All elements of a dataset of one axis that has few of them.
    ///
    /// # Errors
    /// [`Hdf5Error::Damaged`]: several axes, large chunks, a chunk that cannot be decoded.
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

    /// The place of a chunk; `None` for one that was never written.
    fn place(&self, at: &[u64], source: &dyn Source) -> Result<Option<Stored>, String> {
        let at = &at[..self.grid.counts.len()];
        let found = self.index.find(&self.file, &self.grid, at);
        let Some(place) = found.map_err(|error| error.to_string())? else { return Ok(None) };
        let start = self.file.position(place.address, place.len);
        let start = start.map_err(|_| "it lies behind the end of the file".to_owned())?;
        let end = start + place.len;
        if end > source.len() {
            return Err("it lies behind the end of the file".to_owned());
        }
        Ok(Some(Stored { bytes: start..end, skipped: place.skipped }))
    }

    fn elements(&self, at: &[u64], needed: u64, source: &dyn Source) -> Result<Vec<u8>, String> {
        let chunk = &self.chunk;
        let kept: Vec<u64> = self
            .shape
            .iter()
            .zip(chunk)
            .zip(at)
            .map(|((len, chunk), at)| (*chunk).min(len.saturating_sub(at * chunk)))
            .collect();
        let whole = chunk.iter().try_fold(self.item, |bytes, len| bytes.checked_mul(*len));
        let Some(whole) = whole.filter(|whole| *whole <= memory_bytes()) else {
            return Err("a chunk is larger than the memory".to_owned());
        };
        let Some(Stored { bytes: place, skipped }) = self.place(at, source)? else {
            let bytes = kept.iter().product::<u64>() * self.item;
            return Ok(match self.fill.len() as u64 {
                0 => vec![0; bytes as usize],
                len => self.fill.repeat((bytes / len) as usize),
            });
        };
        let is_partial = kept != *chunk;
        let skipped = if is_partial && self.partial_unfiltered { u32::MAX } else { skipped };
        let len = place.end - place.start;
        if len > memory_bytes() {
            return Err("a chunk is larger than the memory".to_owned());
        }
        let mut stored = spare::sized(len as usize);
        let read = source.read(place, &mut Vec::new(), &mut stored);
        read.map_err(|error| error.to_string())?;
        // what is cut is taken from anywhere
        let needed = if is_partial { whole } else { needed.min(whole) };
        let wanted = needed as usize..whole as usize;
        let mut bytes = filters::undo(&self.filters, skipped, stored, wanted)?;
        if needed < whole && bytes.len() as u64 >= needed {
            return Ok(bytes);
        }
        if bytes.len() as u64 != whole {
            return Err("it has another number of elements".to_owned());
        }
        cut(&mut bytes, chunk, &kept, self.item as usize);
        Ok(bytes)
    }
}

impl Chunks for H5Chunks {
    fn chunk_shape(&self) -> &[u64] {
        &self.chunk
    }

    fn decode(&self, at: &[u64], needed: u64, source: &dyn Source) -> Result<Vec<u8>, SourceError> {
        let elements = guarded(|| self.elements(at, needed, source)).flatten();
        elements.map_err(|reason| SourceError::Chunk {
            at: AsTuple(at).to_string(),
            reason: brief(&reason),
        })
    }

    fn expect(&self, at: &[u64], source: &dyn Source) {
        // what is wrong with the places is said where the chunk is decoded
        if let Ok(Ok(Some(stored))) = guarded(|| self.place(at, source)) {
            source.advise(stored.bytes, Advice::WillNeed);
        }
    }
}

impl fmt::Debug for H5Chunks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("H5Chunks").field("chunk", &self.chunk).finish_non_exhaustive()
    }
}
