//! Chunks of elements: boxes of one shape that tile a tensor, decoded one by one.

use std::fmt;
use std::ops::Range;

use crate::source::{Source, SourceError};

/// The chunks of a tensor. Chunk `at` holds the elements from index `at * chunk_shape()` along each
/// axis; at the end of an axis chunks are cut to the tensor's shape.
///
/// Implementations know the location of each chunk in the input, and its compression.
pub trait Chunks: fmt::Debug + Send + Sync {
    /// The shape of a chunk, in elements: a length of 1 or more for each axis of the tensor.
    fn chunk_shape(&self) -> &[u64];

    /// The elements of a chunk in C order, cut to the tensor's shape; `at` is the chunk's number along each axis. Only
    /// the first `needed` bytes are used: later bytes may be omitted, and are not checked then.
    ///
    /// # Errors
    /// Errors of the source, and [`SourceError::Chunk`] for bytes that are not such a chunk, or are too many for the
    /// memory.
    #[doc(hidden)]
    fn decode(&self, at: &[u64], needed: u64, source: &dyn Source) -> Result<Vec<u8>, SourceError>;

    /// The elements of a chunk of which only those at indices in `used`, along each axis of the tensor, are looked at:
    /// others may be anything.
    ///
    /// # Errors
    /// Those of [`decode`](Chunks::decode).
    #[doc(hidden)]
    fn decode_used(
        &self,
        at: &[u64],
        used: &[Range<u64>],
        needed: u64,
        source: &dyn Source,
    ) -> Result<Vec<u8>, SourceError> {
        let _ = used;
        self.decode(at, needed, source)
    }

    /// The number of stored chunks, and of all chunks; `None` where it takes long to find out.
    fn stored(&self) -> Option<StoredChunks> {
        None
    }

    /// Announce that a chunk will be decoded soon: `visit` gets the range of the source that holds it. A chunk in a
    /// file of its own is read ahead.
    fn needs(&self, at: &[u64], visit: &mut dyn FnMut(Range<u64>)) {
        let _ = (at, visit);
    }
}

/// The number of a tensor's stored chunks, and of all chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredChunks {
    pub stored: u64,
    pub count: u64,
}

/// The encoder of a written tensor's chunks, each a file of its own: the inverse of [`Chunks`].
pub trait EncodeChunks: Send + Sync {
    /// The shape of a chunk, even at the ends of axes: a length of 1 or more for each axis of the tensor.
    fn chunk_shape(&self) -> &[u64];

    /// The file of the chunk at `at`; `elements` fill the whole shape, in C order. `None` for a chunk that need not be
    /// stored.
    fn encode(&self, at: &[u64], elements: Vec<u8>) -> Result<Option<ChunkFile>, String>;
}

pub struct ChunkFile {
    /// The name of the chunk's file, including its folders.
    pub name: String,
    pub bytes: Vec<u8>,
}

/// The compression of written chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChunkCodec {
    None,
    /// Zstandard, with a level from 1 to 22.
    Zstd(u8),
    /// gzip, with a level from 0 to 9.
    Gzip(u8),
    /// Blosc, which shuffles bytes and compresses them by Zstandard, with a level from 0 to 9.
    Blosc(u8),
}

impl Default for ChunkCodec {
    fn default() -> ChunkCodec {
        ChunkCodec::Zstd(3)
    }
}

impl ChunkCodec {
    /// Parse a codec's name, with an optional level after a colon.
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

/// Chunks are equal only to themselves.
impl PartialEq for dyn Chunks {
    fn eq(&self, other: &dyn Chunks) -> bool {
        std::ptr::addr_eq(self, other)
    }
}

impl Eq for dyn Chunks {}

/// Keep the first elements along each axis of a chunk.
#[cfg(any(feature = "hdf5", feature = "zarr"))]
pub(crate) fn cut(bytes: &mut Vec<u8>, shape: &[u64], clipped: &[u64], item: usize) {
    // the bytes after the last axis that is cut form a row
    let Some(last) = (0..shape.len()).rev().find(|&axis| shape[axis] != clipped[axis]) else {
        return;
    };
    let behind = shape[last + 1..].iter().product::<u64>() as usize * item;
    let from = shape[last] as usize * behind;
    let row = clipped[last] as usize * behind;
    let rows = clipped[..last].iter().product::<u64>();
    for number in 0..rows {
        let mut rest = number;
        let mut at = 0;
        let mut step = 1;
        for axis in (0..last).rev() {
            at += rest % clipped[axis] * step;
            rest /= clipped[axis];
            step *= shape[axis];
        }
        // the source is never before its destination
        let start = at as usize * from;
        bytes.copy_within(start..start + row, number as usize * row);
    }
    bytes.truncate(rows as usize * row);
    bytes.shrink_to_fit();
}

#[cfg(all(test, any(feature = "hdf5", feature = "zarr")))]
mod tests {
    use crate::tensor::cut;

    #[test]
    fn chunks_end_where_the_array_does() {
        let chunk: Vec<u8> = (0..24).collect();
        let of = |clipped: [u64; 3]| {
            let mut bytes = chunk.clone();
            cut(&mut bytes, &[2, 3, 4], &clipped, 1);
            bytes
        };
        assert_eq!(of([2, 3, 4]), chunk);
        assert_eq!(of([1, 3, 4]), chunk[..12]);
        assert_eq!(of([2, 2, 1]), [0, 4, 12, 16]);
        assert_eq!(of([2, 1, 4]), [0, 1, 2, 3, 12, 13, 14, 15]);
    }
}
