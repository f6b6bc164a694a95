//! Shards: values that hold many chunks, and an index with the byte range of each chunk.

use std::collections::HashMap;
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use zarrs::array::codec::CodecChain;
use zarrs::array::{Array, ArrayToBytesCodecTraits, CodecOptions, FillValue, data_type};
use zarrs::metadata::v3::MetadataV3;
use zarrs::storage::byte_range::ByteRange;

use super::{ValueStore, ZarrError, unfit};
use crate::source::memory_bytes;

/// The number of indexes held in memory.
const MOST_CACHED: usize = 64;

/// The shards of an array that consists of shards alone.
pub(super) struct Shards {
    /// The number of chunks in a shard along each axis.
    counts: Vec<u64>,
    index_codecs: CodecChain,
    index_shape: Vec<NonZeroU64>,
    index_range: ByteRange,
    /// Indexes by the positions of their shards: an offset and a length for each chunk.
    cache: Mutex<HashMap<Vec<u64>, Arc<[u64]>>>,
}

impl Shards {
    /// Shards of `shape` with chunks of `inner`, and the codecs of a chunk, from the configuration of the
    /// sharding codec.
    pub(super) fn new(
        said: &Value,
        shape: &[u64],
        inner: &[u64],
    ) -> Result<(Shards, CodecChain), ZarrError> {
        let codecs = |key: &str| {
            let said = said.get(key).cloned().unwrap_or_default();
            let said: Vec<MetadataV3> = serde_json::from_value(said).map_err(unfit)?;
            CodecChain::from_metadata(&said).map_err(unfit)
        };
        let counts: Vec<u64> = shape.iter().zip(inner).map(|(len, inner)| len / inner).collect();
        let chunks = counts.iter().try_fold(16u64, |bytes, count| bytes.checked_mul(*count));
        if chunks.is_none_or(|bytes| bytes > memory_bytes()) {
            return Err(unfit("a shard has more chunks than there is memory for their offsets"));
        }
        let index_shape: Option<Vec<NonZeroU64>> =
            counts.iter().chain(&[2]).map(|count| NonZeroU64::new(*count)).collect();
        let index_shape = index_shape.ok_or_else(|| unfit("a shard has no chunks"))?;
        let index_codecs = codecs("index_codecs")?;
        let fill = FillValue::from(u64::MAX);
        let encoded =
            index_codecs.encoded_representation(&index_shape, &data_type::uint64(), &fill);
        let len = encoded.map_err(unfit)?.size();
        let len = len.ok_or_else(|| unfit("the index of a shard has no fixed length"))?;
        let is_first = said.get("index_location").is_some_and(|location| location == "start");
        let index_range =
            if is_first { ByteRange::FromStart(0, Some(len)) } else { ByteRange::Suffix(len) };
        let cache = Mutex::default();
        let shards = Shards { counts, index_codecs, index_shape, index_range, cache };
        Ok((shards, codecs("codecs")?))
    }

    /// The bytes of a chunk; `None` for one that is not stored.
    pub(super) fn get(
        &self,
        array: &Array<dyn ValueStore>,
        at: &[u64],
    ) -> Result<Option<Vec<u8>>, String> {
        let axes = at.iter().zip(&self.counts);
        let shard: Vec<u64> = axes.clone().map(|(at, count)| at / count).collect();
        let Some(index) = self.index(array, &shard)? else { return Ok(None) };
        let number = axes.fold(0, |number, (at, count)| number * count + at % count) as usize;
        let entry = index.get(2 * number..2 * number + 2);
        let [offset, len] = entry.and_then(|entry| entry.try_into().ok()).unwrap_or([0; 2]);
        if [offset, len] == [u64::MAX; 2] {
            return Ok(None);
        }
        if offset.checked_add(len).is_none() {
            return Err("the index of its shard has impossible ranges of bytes".to_owned());
        }
        let range = ByteRange::FromStart(offset, Some(len));
        let bytes = array.storage().range(&array.chunk_key(&shard), range);
        bytes.map_err(|error| error.to_string())
    }

    /// The index of a shard; `None` for a shard that is not stored.
    fn index(
        &self,
        array: &Array<dyn ValueStore>,
        shard: &[u64],
    ) -> Result<Option<Arc<[u64]>>, String> {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = cache.get(shard) {
            return Ok(Some(Arc::clone(index)));
        }
        let stored = array.storage().range(&array.chunk_key(shard), self.index_range);
        let Some(stored) = stored.map_err(|error| format!("the index of its shard: {error}"))?
        else {
            return Ok(None);
        };
        let decode = || {
            let (fill, options) = (FillValue::from(u64::MAX), CodecOptions::default());
            let bytes = stored.into();
            let shape = &self.index_shape;
            let decoded =
                self.index_codecs.decode(bytes, shape, &data_type::uint64(), &fill, &options);
            decoded.and_then(|decoded| Ok(decoded.into_fixed()?))
        };
        let bytes = decode().map_err(|error| format!("the index of its shard: {error}"))?;
        let index: Arc<[u64]> =
            bytes.as_chunks().0.iter().map(|entry| u64::from_ne_bytes(*entry)).collect();
        if cache.len() >= MOST_CACHED {
            cache.clear();
        }
        cache.insert(shard.to_vec(), Arc::clone(&index));
        Ok(Some(index))
    }
}
