//! Elements in chunks of a dataset, and those that the package reads itself.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::OnceLock;

use hdf5_pure::{Dataset, Filter};

use super::error::Hdf5Error;
use super::filters;
use crate::format::brief::brief;
use crate::format::chunks::{Chunks, cut};
use crate::format::guarded::guarded;
use crate::format::spare;
use crate::shape::AsTuple;
use crate::source::{Advice, Source, SourceError, memory_bytes};

/// Chunks that are read by their offset in the file.
pub(super) struct H5Chunks {
    dataset: Dataset,
    shape: Vec<u64>,
    chunk: Vec<u64>,
    /// Bytes of an element.
    item: u64,
    filters: Vec<Filter>,
    /// Where the chunks that were written are, by their number in C order.
    places: OnceLock<Result<HashMap<u64, ChunkPlace>, String>>,
    /// The bytes of the elements that were never written.
    fill: OnceLock<Result<Vec<u8>, String>>,
}

/// The bytes of a chunk in the file, and the filters that were not applied to it, a bit each.
struct ChunkPlace {
    bytes: Range<u64>,
    skipped: u32,
}

impl H5Chunks {
    /// The chunks of a dataset of that shape, whose elements have `item` bytes.
    ///
    /// # Errors
    /// Chunks without elements.
    pub(super) fn new(
        dataset: Dataset,
        shape: Vec<u64>,
        chunk: Vec<u64>,
        item: u64,
        filters: Vec<Filter>,
    ) -> Result<H5Chunks, Hdf5Error> {
        if chunk.contains(&0) {
            return Err(Hdf5Error::Damaged("its chunks have no elements".to_owned()));
        }
        let (places, fill) = (OnceLock::new(), OnceLock::new());
        Ok(H5Chunks { dataset, shape, chunk, item, filters, places, fill })
    }

    /// The number of the chunk that begins at an index, or has that number along each axis.
    fn number(&self, at: impl Iterator<Item = u64>) -> u64 {
        let counts = self.shape.iter().zip(&self.chunk).map(|(len, chunk)| len.div_ceil(*chunk));
        counts
            .zip(at)
            .fold(0u64, |number, (count, at)| number.saturating_mul(count).saturating_add(at))
    }

    fn places(&self) -> Result<&HashMap<u64, ChunkPlace>, String> {
        let find = || {
            let chunks = self.dataset.chunks().map_err(|error| error.to_string())?;
            let place = |chunk: hdf5_pure::Chunk| {
                // axes of arrays that are elements have one chunk
                let at = chunk.offset.iter().zip(&self.chunk).map(|(at, len)| at / len);
                let number = self.number(at.chain(std::iter::repeat(0)));
                let end = chunk.address.saturating_add(chunk.storage_size);
                (number, ChunkPlace { bytes: chunk.address..end, skipped: chunk.filter_mask })
            };
            Ok(chunks.into_iter().map(place).collect())
        };
        self.places.get_or_init(find).as_ref().map_err(String::clone)
    }

    /// The bytes of an element that was never written, such as the first one of a chunk.
    fn fill(&self, at: &[u64]) -> Result<&[u8], String> {
        let read = || {
            let rank = self.dataset.shape().map_err(|error| error.to_string())?.len();
            let first = |axis: usize| at[axis] * self.chunk[axis];
            let row = self.dataset.read_raw_rows(if rank > 0 { first(0) } else { 0 }, 1);
            let row = row.map_err(|error| error.to_string())?;
            let inside = |at: u64, axis: usize| {
                at * self.shape[axis] + if axis < rank { first(axis) } else { 0 }
            };
            let element = (1..self.shape.len()).fold(0, inside);
            let bytes = (element * self.item) as usize..((element + 1) * self.item) as usize;
            row.get(bytes).map(<[u8]>::to_vec).ok_or_else(|| "it has no fill value".to_owned())
        };
        self.fill.get_or_init(read).as_deref().map_err(String::clone)
    }

    fn elements(&self, at: &[u64], needed: u64, source: &dyn Source) -> Result<Vec<u8>, String> {
        let kept: Vec<u64> = self
            .shape
            .iter()
            .zip(&self.chunk)
            .zip(at)
            .map(|((len, chunk), at)| (*chunk).min(len.saturating_sub(at * chunk)))
            .collect();
        let Some(place) = self.places()?.get(&self.number(at.iter().copied())) else {
            let count = kept.iter().product::<u64>() as usize;
            return Ok(self.fill(at)?.repeat(count));
        };
        let whole = self.chunk.iter().try_fold(self.item, |bytes, len| bytes.checked_mul(*len));
        let Some(whole) = whole.filter(|whole| *whole <= memory_bytes()) else {
            return Err("a chunk is larger than the memory".to_owned());
        };
        if place.bytes.end > source.len() {
            return Err("it lies behind the end of the file".to_owned());
        }
        let mut stored = spare::sized((place.bytes.end - place.bytes.start) as usize);
        let read = source.read(place.bytes.clone(), &mut Vec::new(), &mut stored);
        read.map_err(|error| error.to_string())?;
        // what is cut is taken from anywhere
        let needed = if kept == self.chunk { needed.min(whole) } else { whole };
        let wanted = needed as usize..whole as usize;
        let mut bytes = filters::undo(&self.filters, place.skipped, stored, wanted)?;
        if needed < whole && bytes.len() as u64 >= needed {
            return Ok(bytes);
        }
        if bytes.len() as u64 != whole {
            return Err("it has another number of elements".to_owned());
        }
        cut(&mut bytes, &self.chunk, &kept, self.item as usize);
        Ok(bytes)
    }
}

impl Chunks for H5Chunks {
    fn chunk_shape(&self) -> &[u64] {
        &self.chunk
    }

    fn decode(&self, at: &[u64], needed: u64, source: &dyn Source) -> Result<Vec<u8>, SourceError> {
        let elements = guarded(|| self.elements(at, needed, source)).flatten();
        elements.map_err(|reason| failed(at, &reason))
    }

    fn expect(&self, at: &[u64], source: &dyn Source) {
        let place = |places: &HashMap<_, ChunkPlace>| {
            places.get(&self.number(at.iter().copied())).map(|place| place.bytes.clone())
        };
        // what is wrong with the places is said where the chunk is decoded
        let found = guarded(|| self.places().map(place)).ok().and_then(Result::ok).flatten();
        if let Some(bytes) = found.filter(|bytes| bytes.end <= source.len()) {
            source.advise(bytes, Advice::WillNeed);
        }
    }
}

impl fmt::Debug for H5Chunks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("H5Chunks").field("chunk", &self.chunk).finish_non_exhaustive()
    }
}

/// What the package reads itself, as one chunk.
pub(super) struct H5Whole {
    dataset: Dataset,
    chunk: Vec<u64>,
    item: u64,
}

impl H5Whole {
    /// A dataset of that shape, whose elements have `item` bytes.
    pub(super) fn new(dataset: Dataset, shape: Vec<u64>, item: u64) -> H5Whole {
        H5Whole { dataset, chunk: shape.into_iter().map(|len| len.max(1)).collect(), item }
    }
}

impl Chunks for H5Whole {
    fn chunk_shape(&self) -> &[u64] {
        &self.chunk
    }

    fn decode(&self, at: &[u64], _: u64, _: &dyn Source) -> Result<Vec<u8>, SourceError> {
        let whole = self.chunk.iter().try_fold(self.item, |bytes, len| bytes.checked_mul(*len));
        if whole.is_none_or(|whole| whole > memory_bytes()) {
            return Err(failed(at, "it is larger than the memory"));
        }
        let all = guarded(|| self.dataset.read_raw().map_err(|error| error.to_string()));
        all.flatten().map_err(|reason| failed(at, &reason))
    }
}

impl fmt::Debug for H5Whole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("H5Whole").field("chunk", &self.chunk).finish_non_exhaustive()
    }
}

fn failed(at: &[u64], reason: &str) -> SourceError {
    SourceError::Chunk { at: AsTuple(at).to_string(), reason: brief(reason) }
}
