//! Arrays of Zarr, versions 2 and 3: what their metadata say, and how their chunks are decoded.
//!
//! The codecs are those of the `zarrs` package, which reads the metadata too. It is told what it does
//! not know in words that it does: elements that only NumPy has a type for are plain bytes to it. Where
//! the values of an array lie under their keys (`zarr.json`, `c/0/1`) is up to the caller, who brings a
//! store; nothing here lists folders.
//!
//! ```text
//!   zarr.json, .zarray ─► shape, dtype, codecs ─► a tensor in chunks
//!   c/0/1              ─► codecs ─► the bytes of a chunk, cut where the array ends
//!   c/0/0 (a shard)    ─► its index ─► an inner chunk of it ─► ...
//! ```

use std::fmt;
use std::sync::Arc;

use codecs::{decode_front, only_codec};
use dtype::ElementType;
use serde_json::Value;
use zarrs::array::codec::api::BytesToBytesCodecTraits;
use zarrs::array::{
    Array, ArrayBytes, ArrayError, ArrayMetadata, ArrayShardedExt, ArrayShardedReadableExt,
    ArrayShardedReadableExtCache, CodecOptions,
};
use zarrs::storage::{ReadableStorageTraits, StoreKey};

use super::chunks::{Chunks, cut, keep_spare};
use super::codecs::guarded;
use super::error::brief;
use super::tensor::{Annotated, Storage, StorageKind, TensorInfo};
use crate::shape::{AsTuple, Order};
use crate::source::{Source, SourceError, memory_bytes};

mod codecs;
mod dtype;
mod metadata;
mod write;

#[cfg(feature = "hdf5")]
pub(in crate::format) use codecs::blosc_bytes;
pub(crate) use metadata::{
    ArrayMetadataJson, ZarrNode, array_v2, consolidated, consolidated_v2, group_v2, node,
};
pub(crate) use write::{NewArray, group_json, stored_dtype};

/// The tensor that an array is, by its metadata and the store of its chunks, of which those that are not there may be
/// refused.
pub(crate) fn array(
    store: ArrayStore,
    ArrayMetadataJson(mut metadata): ArrayMetadataJson,
    refuses_missing: bool,
) -> Result<TensorInfo, ZarrError> {
    if let Some(fill) = metadata.get_mut("fill_value") {
        metadata::reworded(fill);
    }
    let elements = ElementType::of(&metadata)?;
    let has_fill = metadata.get("fill_value").is_some_and(|fill| !fill.is_null());
    let fill = metadata::translate(&mut metadata, &elements)?;
    let dtype = elements.dtype;
    let annotations = metadata::annotations(&mut metadata, has_fill.then_some(fill));
    let chunk_shape = metadata::chunk_shape(&metadata)?;
    // one element is in either order; zarrs does without a check of the axes that it reverses
    if metadata.get("order").is_some() && chunk_shape.is_empty() {
        metadata["order"] = "C".into();
    }
    let (array, inner) = guarded(|| opened(store, metadata)).map_err(ZarrError::Metadata)??;
    let shape = array.shape().to_vec();
    let stored_shape = chunk_shape;
    let chunk_shape = inner.unwrap_or_else(|| stored_shape.clone());
    if chunk_shape.len() != shape.len() || chunk_shape.contains(&0) {
        return Err(unfit("the chunks have another number of axes"));
    }
    let item = (dtype.item_bits() / 8) as usize;
    let mut tensor = TensorInfo::new(dtype, shape, Order::C, 0);
    let required = refuses_missing.then_some(stored_shape);
    let chunks = ZarrChunks::new(array, chunk_shape, item, required)?;
    tensor.storage = Storage { part: 0, data: 0..0, kind: StorageKind::Chunks(Arc::new(chunks)) };
    tensor.annotated = (!annotations.is_empty()).then(|| Annotated::of(annotations));
    Ok(tensor)
}

/// An array of `zarrs`, and the shape of the chunks in its shards, if these are all that it has.
type ShardedArray = (Array<dyn ValueStore>, Option<Vec<u64>>);

fn opened(store: ArrayStore, mut metadata: Value) -> Result<ShardedArray, ZarrError> {
    codecs::register();
    codecs::name_own(&mut metadata);
    let parsed: ArrayMetadata = serde_json::from_value(metadata).map_err(unfit)?;
    let array = Array::new_with_metadata(store, "/", parsed);
    let array = array.map_err(unfit)?;
    // what is around a shard would have to be decoded before its index is found
    let inner = array.is_exclusively_sharded().then(|| array.subchunk_shape()).flatten();
    let inner = inner.map(|inner| inner.iter().map(|len| len.get()).collect());
    Ok((array, inner))
}

/// What is wrong with metadata, in one line.
fn unfit(what: impl fmt::Display) -> ZarrError {
    ZarrError::Metadata(brief(&what.to_string()))
}

/// Why an array cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ZarrError {
    #[error("{0}")]
    Metadata(String),
    #[error("{0}")]
    Value(String),
    #[error("dtype {0} has no counterpart here")]
    DType(String),
    #[error("the chunk grid {0} is not read: only regular ones are")]
    Grid(String),
    #[error("the fill value is none of dtype {0}")]
    Fill(String),
}

/// Where the values of an array lie under their keys, such as `zarr.json` and `c/0/1`.
pub(crate) type ArrayStore = Arc<dyn ValueStore>;

/// Values under keys, which may be read ahead.
pub(crate) trait ValueStore: ReadableStorageTraits {
    /// All of a value will be read soon.
    fn expect(&self, key: &StoreKey);
}

/// How many indexes of shards are kept.
const INDEXES: usize = 64;

struct ZarrChunks {
    array: Array<dyn ValueStore>,
    /// The shape of a chunk, at the ends of axes too.
    shape: Vec<u64>,
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
    fn new(
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
                keep_spare(value);
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

#[cfg(test)]
mod tests {
    use serde_json::json;
    use zarrs::storage::StoreKey;
    use zarrs::storage::store::MemoryStore;

    use super::*;

    impl ValueStore for MemoryStore {
        fn expect(&self, _: &StoreKey) {}
    }

    #[test]
    fn every_compressor_is_bounded() {
        let blosc = |shuffle: Value| json!({ "cname": "lz4", "clevel": 5, "shuffle": shuffle, "blocksize": 0, "typesize": 4 });
        let level = |level: u8| json!({ "level": level });
        let v3 = |name: &str, configuration: Value| {
            json!({
                "zarr_format": 3, "node_type": "array", "shape": [4], "data_type": "float32",
                "chunk_grid": { "name": "regular", "configuration": { "chunk_shape": [2] } },
                "chunk_key_encoding": { "name": "default" }, "fill_value": 0.0,
                "codecs": [
                    { "name": "bytes", "configuration": { "endian": "little" } },
                    { "name": name, "configuration": configuration },
                ],
            })
        };
        let v2 = |id: &str, mut compressor: Value| {
            compressor["id"] = id.into();
            json!({
                "zarr_format": 2, "shape": [4], "chunks": [2], "dtype": "<f4", "order": "C",
                "fill_value": 0.0, "filters": null, "compressor": compressor,
            })
        };
        let arrays = [
            v3("zstd", json!({ "level": 3, "checksum": false })),
            v3("gzip", level(3)),
            v3("blosc", blosc("shuffle".into())),
            v2("zstd", level(3)),
            v2("gzip", level(3)),
            v2("zlib", level(3)),
            v2("bz2", level(3)),
            v2("blosc", blosc(1.into())),
            v2("blosc", blosc(2.into())),
        ];
        for metadata in arrays {
            let (array, _) = opened(Arc::new(MemoryStore::new()), metadata.clone()).unwrap();
            assert!(codecs::only_codec(&array.codecs()).is_some(), "{metadata}");
        }
    }
}
