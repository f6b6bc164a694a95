//! Elements in chunks: boxes of one shape that tile a tensor, each of which is decoded by itself; and the memory that
//! they are decoded in.

use std::fmt;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::source::{Source, SourceError};

/// The chunks of a tensor. Chunk `at` holds the elements from index `at * chunk_shape()` on along each axis;
/// at the end of an axis chunks are as short as the tensor is.
///
/// A format keeps here where in the input each chunk lies, and what it is compressed by.
pub trait Chunks: fmt::Debug + Send + Sync {
    /// The shape of a chunk, in elements: a length of 1 or more for each axis of the tensor.
    fn chunk_shape(&self) -> &[u64];

    /// The elements of a chunk of an input in C order, as many as there are; `at` is its number along
    /// each axis. Only its first `needed` bytes are used: what is behind them may be left out, and is not
    /// checked then.
    ///
    /// # Errors
    /// The source's, and [`SourceError::Chunk`] for bytes that are no such chunk, or are more than
    /// memory holds.
    fn decode(&self, at: &[u64], needed: u64, source: &dyn Source) -> Result<Vec<u8>, SourceError>;

    /// Of how many chunks something is stored, and how many there are; `None` where that is not known in a short time.
    fn stored(&self) -> Option<StoredChunks> {
        None
    }

    /// A chunk will be decoded soon: `visit` gets the range of the source that it is stored in. A chunk that is
    /// stored in a file of its own is read ahead.
    fn needs(&self, at: &[u64], visit: &mut dyn FnMut(Range<u64>)) {
        let _ = (at, visit);
    }
}

/// How many chunks of a tensor are stored, of how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredChunks {
    pub stored: u64,
    pub count: u64,
}

/// The chunks of a tensor that is written, each a file of its own: the way back of [`Chunks`].
pub trait EncodeChunks: Send + Sync {
    /// The shape of a chunk, at the ends of axes too: a length of 1 or more for each axis of the tensor.
    fn chunk_shape(&self) -> &[u64];

    /// The file of the chunk at `at`, of whose whole shape these are the elements, in C order; `None` for one
    /// that need not be stored.
    fn encode(&self, at: &[u64], elements: Vec<u8>) -> Result<Option<ChunkFile>, String>;
}

/// A chunk as it is stored.
pub struct ChunkFile {
    /// The name of its file, with those of the folders that it lies in.
    pub name: String,
    pub bytes: Vec<u8>,
}

/// How chunks are compressed that are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkCodec {
    None,
    /// Zstandard, of a level from 1 to 22.
    Zstd(u8),
    /// gzip, of a level from 0 to 9.
    Gzip(u8),
    /// Blosc, which shuffles bytes and compresses them by Zstandard, of a level from 0 to 9.
    Blosc(u8),
}

impl Default for ChunkCodec {
    fn default() -> ChunkCodec {
        ChunkCodec::Zstd(3)
    }
}

impl ChunkCodec {
    /// The codec that a text names, with its level behind a colon or without one.
    pub fn parse(text: &str) -> Option<ChunkCodec> {
        let (name, level) = match text.split_once(':') {
            Some((name, level)) => (name, Some(level.parse::<u8>().ok()?)),
            None => (text, None),
        };
        let within = |most: u8, usual: u8| Some(level.unwrap_or(usual)).filter(|it| *it <= most);
        match name {
            "none" if level.is_none() => Some(ChunkCodec::None),
            "zstd" => within(22, 3).filter(|level| *level > 0).map(ChunkCodec::Zstd),
            "gzip" => within(9, 5).map(ChunkCodec::Gzip),
            "blosc" => within(9, 5).map(ChunkCodec::Blosc),
            _ => None,
        }
    }
}

/// Only a table is equal to itself.
impl PartialEq for dyn Chunks {
    fn eq(&self, other: &dyn Chunks) -> bool {
        std::ptr::addr_eq(self, other)
    }
}

impl Eq for dyn Chunks {}

/// Keep the first elements along each axis of a chunk.
#[cfg(any(feature = "hdf5", feature = "zarr"))]
pub(crate) fn cut(bytes: &mut Vec<u8>, shape: &[u64], kept: &[u64], item: usize) {
    // the axes before the last one that is cut; what follows it is a row
    let Some(last) = (0..shape.len()).rev().find(|&axis| shape[axis] != kept[axis]) else { return };
    let behind = shape[last + 1..].iter().product::<u64>() as usize * item;
    let from = shape[last] as usize * behind;
    let row = kept[last] as usize * behind;
    let rows = kept[..last].iter().product::<u64>();
    for number in 0..rows {
        let mut rest = number;
        let mut at = 0;
        let mut step = 1;
        for axis in (0..last).rev() {
            at += rest % kept[axis] * step;
            rest /= kept[axis];
            step *= shape[axis];
        }
        // never before where it goes to
        let start = at as usize * from;
        bytes.copy_within(start..start + row, number as usize * row);
    }
    bytes.truncate(rows as usize * row);
    bytes.shrink_to_fit();
}

/// The most bytes that are kept in [`SPARE`].
const MOST_SPARE: usize = 32 << 20;

/// The fewest bytes that are worth it.
const LEAST_SPARE: usize = 64 << 10;

/// Memory that chunks were decoded in, kept for those that follow: to map and clear its pages anew takes a good
/// part of the time that it takes to decode a chunk. There is one store of it for the process, since packages call
/// codecs and hand none through. It is let go of with the last piece of a job.
static SPARE: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

fn lock_spare() -> MutexGuard<'static, Vec<Vec<u8>>> {
    SPARE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Empty memory for so many bytes.
#[cfg(any(feature = "hdf5", feature = "zarr"))]
pub(crate) fn spare_memory(bytes: usize) -> Vec<u8> {
    let mut memory = take_spare(bytes);
    memory.clear();
    memory
}

/// So many bytes, to be written over: they are zeros, or what the memory held before.
#[cfg(any(feature = "hdf5", feature = "zarr"))]
pub(crate) fn spare_bytes(bytes: usize) -> Vec<u8> {
    let mut memory = take_spare(bytes);
    memory.resize(bytes, 0);
    memory
}

#[cfg(any(feature = "hdf5", feature = "zarr"))]
fn take_spare(bytes: usize) -> Vec<u8> {
    let mut spare = lock_spare();
    let fits = |(_, it): &(usize, &Vec<u8>)| it.capacity() >= bytes && it.capacity() / 2 <= bytes;
    let least = spare.iter().enumerate().filter(fits).min_by_key(|(_, it)| it.capacity());
    match least.map(|(at, _)| at) {
        Some(at) => spare.swap_remove(at),
        None => Vec::with_capacity(bytes),
    }
}

/// Keep memory that nothing uses any more, as far as there is room.
pub(crate) fn keep_spare(bytes: Vec<u8>) {
    let mut spare = lock_spare();
    let kept: usize = spare.iter().map(Vec::capacity).sum();
    if bytes.capacity() >= LEAST_SPARE && bytes.capacity() <= MOST_SPARE.saturating_sub(kept) {
        spare.push(bytes);
    }
}

/// Let go of all that is kept.
pub(crate) fn drop_spare() {
    *lock_spare() = Vec::new();
}

#[cfg(all(test, any(feature = "hdf5", feature = "zarr")))]
mod tests {
    use crate::tensor::cut;

    #[test]
    fn chunks_end_where_the_array_does() {
        let chunk: Vec<u8> = (0..24).collect();
        let of = |kept: [u64; 3]| {
            let mut bytes = chunk.clone();
            cut(&mut bytes, &[2, 3, 4], &kept, 1);
            bytes
        };
        assert_eq!(of([2, 3, 4]), chunk);
        assert_eq!(of([1, 3, 4]), chunk[..12]);
        assert_eq!(of([2, 2, 1]), [0, 4, 12, 16]);
        assert_eq!(of([2, 1, 4]), [0, 1, 2, 3, 12, 13, 14, 15]);
    }
}
