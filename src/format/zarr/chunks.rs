//! The chunks of an array: of one with shards, their inner chunks.

use std::fmt;
use std::sync::Arc;

use zarrs::array::codec::api::BytesToBytesCodecTraits;
use zarrs::array::{
    Array, ArrayBytes, ArrayError, ArrayShardedReadableExt, ArrayShardedReadableExtCache,
    CodecOptions,
};

use super::codecs::{decode_front, only_codec};
use super::{ValueStore, ZarrError};
use crate::format::chunks::{Chunks, cut};
use crate::format::error::brief;
use crate::format::guarded::guarded;
use crate::format::spare;
use crate::shape::AsTuple;
use crate::source::{Source, SourceError, memory_bytes};

/// How many indexes of shards are kept.
const INDEXES: usize = 64;

/// The chunks of an array.
pub(super) struct ZarrChunks {
    array: Array<dyn ValueStore>,
    /// The shape of a chunk, at the ends of axes too.
    shape: Vec<u64>,
    /// Bytes of an element.
    item: usize,
    fill: Vec<u8>,
    /// The shape of what is stored under a key, where that must be there.
    required: Option<Vec<u64>>,
    /// The codec that alone makes elements of stored bytes, from front to back.
    front: Option<Arc<dyn BytesToBytesCodecTraits>>,
    /// The indexes of shards, of an array whose chunks are shards and nothing else.
    shards: Option<ArrayShardedReadableExtCache>,
}

impl ZarrChunks {
    /// The chunks of an array, or of its shards, that have this shape; elements have `item` bytes. What is stored under a
    /// key must be there where its shape is given.
    pub(super) fn new(
        array: Array<dyn ValueStore>,
        shape: Vec<u64>,
        item: usize,
        required: Option<Vec<u64>>,
    ) -> Result<ZarrChunks, ZarrError> {
        let fill = array.fill_value().as_ne_bytes().to_vec();
        if array.data_type().fixed_size() != Some(item) || fill.len() != item {
            return Err(ZarrError::DType(brief(&format!("{:?}", array.data_type()))));
        }
        let shards = guarded(|| ArrayShardedReadableExtCache::new(&array));
        let shards = shards.map_err(ZarrError::Metadata)?;
        let shards = Some(shards).filter(|it| it.array_is_exclusively_sharded());
        let front = only_codec(&array.codecs());
        Ok(ZarrChunks { array, shape, item, fill, required, front, shards })
    }

    /// The shape of a chunk, which ends where the array does.
    fn shape_of(&self, at: &[u64]) -> Vec<u64> {
        let lens = self.array.shape().iter().zip(&self.shape).zip(at);
        lens.map(|((len, chunk), at)| (*chunk).min(len.saturating_sub(at * chunk))).collect()
    }

    /// The elements of a chunk of the whole shape, which are `whole` bytes, or at least `needed` of them; `None` for one
    /// that is not stored.
    fn elements(&self, at: &[u64], needed: u64, whole: u64) -> Result<Option<Vec<u8>>, ArrayError> {
        if let Some(codec) = &self.front {
            let value = self.array.storage().get(&self.array.chunk_key(at))?;
            let front = value.map(|value| {
                let value = Vec::from(value);
                let front = decode_front(codec.as_ref(), &value, needed, whole);
                spare::give(value);
                front
            });
            return front.transpose().map_err(ArrayError::CodecError);
        }
        // chunks are decoded by several threads, each of them by one
        let options = CodecOptions::default().with_concurrent_target(1);
        let elements: Option<ArrayBytes<'_>> = match &self.shards {
            None => self.array.retrieve_chunk_if_exists_opt(at, &options)?,
            Some(indexes) => {
                if indexes.len() >= INDEXES {
                    indexes.clear();
                }
                Some(self.array.retrieve_subchunk_opt(indexes, at, &options)?)
            }
        };
        let fixed = |elements: ArrayBytes<'_>| Ok(elements.into_fixed()?.into_owned());
        elements.map(fixed).transpose().map_err(ArrayError::CodecError)
    }

    /// Refuse a chunk of which nothing is stored: of one in a shard, nothing of the shard.
    fn check_stored(&self, at: &[u64]) -> Result<(), String> {
        let Some(stored) = &self.required else { return Ok(()) };
        let key = at.iter().zip(&self.shape).zip(stored);
        let key: Vec<u64> = key.map(|((at, len), stored)| at * len / (*stored).max(1)).collect();
        let size = self.array.storage().size_key(&self.array.chunk_key(&key));
        match size.map_err(|error| error.to_string())? {
            Some(_) => Ok(()),
            None => Err("it is not there".to_owned()),
        }
    }

    fn failed(&self, at: &[u64], reason: &str) -> SourceError {
        SourceError::Chunk { at: AsTuple(at).to_string(), reason: brief(reason) }
    }
}

impl Chunks for ZarrChunks {
    fn chunk_shape(&self) -> &[u64] {
        &self.shape
    }

    fn decode(&self, at: &[u64], needed: u64, _: &dyn Source) -> Result<Vec<u8>, SourceError> {
        let whole =
            self.shape.iter().try_fold(self.item as u64, |bytes, len| bytes.checked_mul(*len));
        let Some(whole) = whole.filter(|whole| *whole <= memory_bytes()) else {
            return Err(self.failed(at, "a chunk is larger than the memory"));
        };
        let kept = self.shape_of(at);
        // what is cut is taken from anywhere
        let needed = if kept == self.shape { needed.min(whole) } else { whole };
        let elements = || self.elements(at, needed, whole).map_err(|error| error.to_string());
        let elements = guarded(|| self.check_stored(at).and_then(|()| elements())).flatten();
        let elements = elements.map_err(|reason| self.failed(at, &reason))?;
        let Some(mut bytes) = elements else {
            let count = kept.iter().product::<u64>() as usize;
            return Ok(self.fill.repeat(count));
        };
        if bytes.len() as u64 != whole || needed < whole {
            // who asked counts them
            return Ok(bytes);
        }
        cut(&mut bytes, &self.shape, &kept, self.item);
        Ok(bytes)
    }

    fn expect(&self, at: &[u64], _: &dyn Source) {
        // of a shard only a part is read
        if self.shards.is_none() {
            // what is wrong with it is said where it is decoded
            let _ = guarded(|| self.array.storage().expect(&self.array.chunk_key(at)));
        }
    }
}

impl fmt::Debug for ZarrChunks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ZarrChunks").field("shape", &self.shape).finish_non_exhaustive()
    }
}
