//! How the tensors of an output are cut into chunks, and compressed.

use crate::error::Fault;
use crate::format::ChunkCodec;
use crate::shape::AsTuple;

#[cfg(feature = "zarr")]
/// The bytes of a chunk at most, where its shape is not said.
const CHUNK_BYTES: u64 = 1 << 20;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chunking {
    /// The shape of a chunk, in elements.
    pub chunks: Option<Vec<u64>>,
    /// The shape of a shard, in elements: several chunks in one file.
    pub shards: Option<Vec<u64>>,
    /// How chunks are compressed.
    pub codec: Option<ChunkCodec>,
}

#[cfg(feature = "zarr")]
/// The shapes of the chunks of one tensor and, where there are such, of its shards.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ChunkShapes {
    pub(super) chunk: Vec<u64>,
    pub(super) shard: Option<Vec<u64>>,
}

/// Chunks or shards that a tensor cannot be cut into.
#[derive(Debug, thiserror::Error)]
pub enum ChunkingFault {
    #[error(
        "{what} of shape {} cannot cut a tensor of shape {}: their axes differ in number",
        AsTuple(asked),
        AsTuple(shape)
    )]
    Axes { what: &'static str, asked: Vec<u64>, shape: Vec<u64> },
    #[error(
        "shards of shape {} are no whole number of chunks of shape {}",
        AsTuple(shard),
        AsTuple(chunk)
    )]
    Shards { shard: Vec<u64>, chunk: Vec<u64> },
    #[error("{} of shape {} would be more than {MAX_FILES} files", .what, AsTuple(asked))]
    TooMany { what: &'static str, asked: Vec<u64> },
    #[error("{what} of shape {} have 2^31 bytes or more", AsTuple(asked))]
    TooLarge { what: &'static str, asked: Vec<u64> },
}

impl Fault for ChunkingFault {}

/// The most files of one tensor: each takes a few bytes of memory while it waits for elements.
const MAX_FILES: u64 = 1 << 24;

impl Chunking {
    pub fn is_any(&self) -> bool {
        *self != Chunking::default()
    }

    #[cfg(feature = "zarr")]
    /// The chunks of a tensor of that shape, whose elements have `item` bytes.
    pub(super) fn shapes(&self, shape: &[u64], item: u64) -> Result<ChunkShapes, ChunkingFault> {
        let check = |what, asked: &Vec<u64>| {
            if asked.len() == shape.len() {
                return Ok(());
            }
            Err(ChunkingFault::Axes { what, asked: asked.clone(), shape: shape.to_vec() })
        };
        self.chunks.iter().try_for_each(|it| check("chunks", it))?;
        self.shards.iter().try_for_each(|it| check("shards", it))?;
        let chunk = match (&self.chunks, &self.shards) {
            (Some(chunk), _) => chunk.clone(),
            (None, Some(shard)) => usual(shard, item, true),
            (None, None) => usual(shape, item, false),
        };
        let shard = self.shards.clone();
        if let Some(shard) = &shard
            && shard.iter().zip(&chunk).any(|(shard, chunk)| shard % chunk != 0)
        {
            return Err(ChunkingFault::Shards { shard: shard.clone(), chunk });
        }
        let (what, file) = match &shard {
            Some(shard) => ("shards", shard),
            None => ("chunks", &chunk),
        };
        let files = shape.iter().zip(file).map(|(len, file)| len.div_ceil(*file));
        if files.fold(1, u64::saturating_mul) > MAX_FILES {
            return Err(ChunkingFault::TooMany { what, asked: file.clone() });
        }
        if file.iter().fold(item, |bytes, len| bytes.saturating_mul(*len)) >= 1 << 31 {
            return Err(ChunkingFault::TooLarge { what, asked: file.clone() });
        }
        Ok(ChunkShapes { chunk, shard })
    }
}

#[cfg(feature = "zarr")]
/// The longest axis is halved until a chunk is short enough; `evenly`, only where it can be.
fn usual(shape: &[u64], item: u64, evenly: bool) -> Vec<u64> {
    let mut chunk: Vec<u64> = shape.iter().map(|len| (*len).max(1)).collect();
    while chunk.iter().fold(item, |bytes, len| bytes.saturating_mul(*len)) > CHUNK_BYTES {
        let halves = chunk.iter_mut().filter(|len| **len > 1 && (!evenly || **len % 2 == 0));
        // of equal ones the first, so that rows stay long
        match halves.rev().max_by_key(|len| **len) {
            Some(longest) => *longest = longest.div_ceil(2),
            None => break,
        }
    }
    chunk
}

#[cfg(all(test, feature = "zarr"))]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_about_a_mebibyte() {
        let shapes = |chunking: Chunking, shape: &[u64]| chunking.shapes(shape, 4);
        let of = |shape: &[u64]| shapes(Chunking::default(), shape).unwrap().chunk;
        assert_eq!(of(&[]), [] as [u64; 0]);
        assert_eq!(of(&[0, 3]), [1, 3]);
        assert_eq!(of(&[512, 512, 512]), [64, 64, 64]);
        assert_eq!(of(&[1000, 1000]), [500, 500]);
        assert_eq!(of(&[100_000_001]), [195_313]);
        let sharded = Chunking { shards: Some(vec![512, 512, 6]), ..Chunking::default() };
        let found = shapes(sharded, &[512, 512, 6]).unwrap();
        assert_eq!(found.chunk, [128, 256, 6]);
        assert_eq!(found.shard, Some(vec![512, 512, 6]));
        let asked = |chunks: &[u64], shards: &[u64]| {
            let chunks = Some(chunks.to_vec());
            let shards = Some(shards.to_vec());
            let chunking = Chunking { chunks, shards, ..Chunking::default() };
            shapes(chunking, &[9, 9]).map_err(|error| error.to_string())
        };
        assert!(asked(&[2, 2], &[4, 6]).is_ok());
        assert!(asked(&[2, 2], &[4, 5]).unwrap_err().contains("no whole number"));
        assert!(asked(&[2], &[4, 4]).unwrap_err().contains("differ in number"));
    }
}
