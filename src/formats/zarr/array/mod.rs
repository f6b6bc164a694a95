//! Arrays of Zarr, versions 2 and 3: their metadata, and the decoding of their chunks.
//!
//! The codecs come from the `zarrs` package, which also reads the metadata. Metadata that it does not know are
//! translated: elements of a type that only NumPy has are plain bytes to it. The caller brings the store with the
//! values of an array by their keys (`zarr.json`, `c/0/1`); nothing here lists folders.
//!
//! ```text
//!   zarr.json, .zarray ─► shape, dtype, codecs ─► a tensor in chunks
//!   c/0/1              ─► codecs ─► the bytes of a chunk, cut where the array ends
//!   c/0/0 (a shard)    ─► its index ─► an inner chunk of it ─► ...
//! ```

use std::fmt;
use std::num::NonZeroU64;
use std::ops::Range;
use std::sync::Arc;

use codecs::{decode_front, only_codec};
use dtype::ElementType;
use serde_json::Value;
use shards::Shards;
use zarrs::array::codec::CodecChain;
use zarrs::array::codec::api::BytesToBytesCodecTraits;
use zarrs::array::{Array, ArrayMetadata, ArrayShardedExt, ArrayToBytesCodecTraits, CodecOptions};
use zarrs::storage::byte_range::ByteRange;
use zarrs::storage::{ReadableStorageTraits, StorageError, StoreKey};

use crate::dtype::{DType, Endian, Scalar};
use crate::error::{ErrorKind, Fault};
use crate::formats::codecs::guarded;
use crate::shape::{AsTuple, Order};
use crate::source::{Source, SourceError, keep_spare, memory_bytes};
use crate::tensor::{
    Chunks, LazyAnnotations, Storage, StorageKind, StoredChunks, TensorInfo, brief, cut,
};

mod codecs;
mod dtype;
mod filters;
mod metadata;
mod shards;
mod write;

#[cfg(feature = "hdf5")]
pub(crate) use codecs::blosc_bytes;
pub(crate) use metadata::{
    ArrayMetadataJson, ZarrNode, array_v2, consolidated, consolidated_v2, group_v2, node,
};
pub(crate) use write::{NewArray, group_json, stored_dtype};

/// The tensor of an array, from its metadata and the store of its chunks. `missing` is the error for a chunk that
/// must exist and does not.
pub(crate) fn array(
    store: ArrayStore,
    ArrayMetadataJson(mut metadata): ArrayMetadataJson,
    missing: Option<String>,
) -> Result<TensorInfo, ZarrError> {
    if let Some(fill) = metadata.get_mut("fill_value") {
        metadata::reworded(fill);
    }
    let elements = ElementType::of(&metadata)?;
    let has_fill = metadata.get("fill_value").is_some_and(|fill| !fill.is_null());
    let fill = metadata::translate(&mut metadata, &elements)?;
    let mut dtype = elements.dtype;
    let mut annotations = metadata::annotations(&mut metadata, has_fill.then_some(fill));
    let is_marked = matches!(dtype, DType::Scalar(Scalar::I8 | Scalar::U8, _));
    let are_booleans = is_marked && annotations.take_bool();
    if are_booleans {
        dtype = DType::Scalar(Scalar::Bool, Endian::Little);
    }
    metadata::lengthen_empty_chunks(&mut metadata);
    let chunk_shape = metadata::chunk_shape(&metadata)?;
    // one element is in either order; zarrs does not check the axes that it reverses
    if metadata.get("order").is_some() && chunk_shape.is_empty() {
        metadata["order"] = "C".into();
    }
    let opened = guarded(|| opened(store, metadata, &chunk_shape));
    let OpenArray { array, codecs, shards } = opened.map_err(ZarrError::Metadata)??;
    let shape = array.shape().to_vec();
    let stored_shape = chunk_shape;
    let (chunk_shape, shards) = match shards {
        Some((shape, shards)) => (shape, Some(shards)),
        None => (stored_shape.clone(), None),
    };
    if chunk_shape.len() != shape.len() || chunk_shape.contains(&0) {
        return Err(unfit("the chunks have another number of axes"));
    }
    let item = (dtype.item_bits() / 8) as usize;
    let mut tensor = TensorInfo::new(dtype, shape, Order::C, 0);
    let mut fill = array.fill_value().as_ne_bytes().to_vec();
    if array.data_type().fixed_size() != Some(item) || fill.len() != item {
        return Err(ZarrError::DType(brief(&format!("{:?}", array.data_type()))));
    }
    if are_booleans {
        make_booleans(&mut fill);
    }
    let front = only_codec(&codecs);
    let is_plain = shards.is_some() || array.subchunk_shape().is_none();
    let may_be_short = is_plain && codecs.bytes_to_bytes_codecs().is_empty();
    let chunks = ZarrChunks {
        array,
        shape: chunk_shape,
        item,
        fill,
        stored_shape,
        missing,
        codecs,
        front,
        may_be_short,
        are_booleans,
        shards,
    };
    tensor.storage = Storage { shard: 0, data: 0..0, kind: StorageKind::Chunks(Arc::new(chunks)) };
    tensor.annotated = (!annotations.is_empty()).then(|| LazyAnnotations::of(annotations));
    Ok(tensor)
}

/// An array of `zarrs`, and the codecs of its chunks.
struct OpenArray {
    array: Array<dyn ValueStore>,
    codecs: Arc<CodecChain>,
    /// The shape of chunks in shards, and the shards, where the array consists of shards alone.
    shards: Option<(Vec<u64>, Shards)>,
}

fn opened(
    store: ArrayStore,
    mut metadata: Value,
    stored_shape: &[u64],
) -> Result<OpenArray, ZarrError> {
    codecs::register();
    codecs::name_own(&mut metadata);
    let sharding = metadata.pointer("/codecs/0/configuration").cloned();
    let parsed: ArrayMetadata = serde_json::from_value(metadata).map_err(unfit)?;
    let array = Array::new_with_metadata(store, "/", parsed);
    let array = array.map_err(unfit)?;
    // codecs around a shard would have to be decoded to find its index
    let inner = array.is_exclusively_sharded().then(|| array.subchunk_shape()).flatten();
    let Some(inner) = inner else {
        let codecs = array.codecs();
        return Ok(OpenArray { array, codecs, shards: None });
    };
    let inner: Vec<u64> = inner.iter().map(|len| len.get()).collect();
    let (shards, codecs) = Shards::new(&sharding.unwrap_or_default(), stored_shape, &inner)?;
    Ok(OpenArray { array, codecs: Arc::new(codecs), shards: Some((inner, shards)) })
}

/// A fault of metadata, in one line.
fn unfit(what: impl fmt::Display) -> ZarrError {
    ZarrError::Metadata(brief(&what.to_string()))
}

/// Why an array cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ZarrError {
    #[error("{0}")]
    Metadata(String),
    #[error("{0}")]
    Value(String),
    #[error("dtype {0} is not supported")]
    DType(String),
    #[error("the chunk grid {0} is not supported: only regular grids are")]
    Grid(String),
    #[error("the fill value does not fit dtype {0}")]
    Fill(String),
}

impl Fault for ZarrError {
    const OF: &'static str = "zarr";

    fn kind(&self) -> ErrorKind {
        match self {
            ZarrError::DType(_) => ErrorKind::DType,
            ZarrError::Grid(_) => ErrorKind::Unsupported,
            _ => ErrorKind::Damaged,
        }
    }
}

/// The store of an array's values, by keys such as `zarr.json` and `c/0/1`.
pub(crate) type ArrayStore = Arc<dyn ValueStore>;

/// The most chunks that are looked up to count the stored ones.
const MOST_COUNTED: u64 = 1_000_000;

/// A store of values by keys, which may be read ahead. Its own methods copy no bytes, as those of `zarrs` do.
pub(crate) trait ValueStore: ReadableStorageTraits {
    /// A value; `None` where there is none.
    fn whole(&self, key: &StoreKey) -> Result<Option<Vec<u8>>, StorageError>;

    /// A range of a value; `None` where there is none.
    fn range(&self, key: &StoreKey, range: ByteRange) -> Result<Option<Vec<u8>>, StorageError>;

    /// Whether it takes little time to find out if a value exists.
    fn is_local(&self) -> bool;

    /// Announce that a whole value will be read soon; it decodes to a chunk of `bytes` bytes.
    fn expect(&self, key: &StoreKey, bytes: u64);
}

struct ZarrChunks {
    array: Array<dyn ValueStore>,
    /// The shape of a chunk, even at the ends of axes.
    shape: Vec<u64>,
    item: usize,
    fill: Vec<u8>,
    /// The shape of the value stored under a key.
    stored_shape: Vec<u64>,
    /// The error for a chunk that must exist and does not.
    missing: Option<String>,
    codecs: Arc<CodecChain>,
    /// The codec that alone decodes stored bytes to elements, from front to back.
    front: Option<Arc<dyn BytesToBytesCodecTraits>>,
    /// Whether the bytes of a chunk are its elements, so that it may end where the array does.
    may_be_short: bool,
    /// Whether the elements are integers of 8 bits that xarray marks as booleans.
    are_booleans: bool,
    /// The shards of an array that consists of shards alone.
    shards: Option<Shards>,
}

/// Make booleans of integers of 8 bits: all but 0 are true.
fn make_booleans(integers: &mut [u8]) {
    integers.iter_mut().for_each(|integer| *integer = u8::from(*integer != 0));
}

impl ZarrChunks {
    /// The shape of a chunk, cut to the array's shape.
    fn shape_of(&self, at: &[u64]) -> Vec<u64> {
        let lens = self.array.shape().iter().zip(&self.shape).zip(at);
        lens.map(|((len, chunk), at)| (*chunk).min(len.saturating_sub(at * chunk))).collect()
    }

    /// The elements of a chunk: all of its shape (`whole` bytes), or at least `needed` bytes of them, or the
    /// elements of the cut shape `clipped` where no more are stored; `None` for a chunk that is not stored.
    fn elements(
        &self,
        at: &[u64],
        needed: u64,
        whole: u64,
        clipped: &[u64],
    ) -> Result<Option<Vec<u8>>, String> {
        let stored = match &self.shards {
            None => {
                let value = self.array.storage().whole(&self.array.chunk_key(at));
                value.map_err(|error| error.to_string())?
            }
            Some(shards) => shards.get(&self.array, at)?,
        };
        let Some(stored) = stored else { return Ok(None) };
        if let Some(codec) = &self.front {
            let front = decode_front(codec.as_ref(), &stored, needed, whole);
            keep_spare(stored);
            return front.map(Some).map_err(|error| error.to_string());
        }
        let clipped_bytes = clipped.iter().product::<u64>() * self.item as u64;
        let is_short = self.may_be_short && stored.len() as u64 == clipped_bytes;
        let shape = if is_short { clipped } else { &self.shape };
        let shape: Option<Vec<NonZeroU64>> =
            shape.iter().map(|len| NonZeroU64::new(*len)).collect();
        let shape = shape.ok_or("it has no elements")?;
        // several threads decode chunks; each chunk is decoded by one thread
        let options = CodecOptions::default().with_concurrent_target(1);
        let (data_type, fill) = (self.array.data_type(), self.array.fill_value());
        let decoded = self.codecs.decode(stored.into(), &shape, data_type, fill, &options);
        let elements = decoded.and_then(|elements| Ok(elements.into_fixed()?.into_owned()));
        let elements = elements.map_err(|error| error.to_string())?;
        let len = elements.len() as u64;
        if len == whole || is_short && len == clipped_bytes {
            Ok(Some(elements))
        } else {
            Err("it has another number of elements".to_owned())
        }
    }

    /// Refuse a chunk that is not stored; for a chunk in a shard, a shard that is not stored.
    fn check_stored(&self, at: &[u64]) -> Result<(), String> {
        let Some(missing) = &self.missing else { return Ok(()) };
        let key = at.iter().zip(&self.shape).zip(&self.stored_shape);
        let key: Vec<u64> = key.map(|((at, len), stored)| at * len / (*stored).max(1)).collect();
        if self.has_value(&key)? { Ok(()) } else { Err(missing.clone()) }
    }

    /// Whether anything is stored under a key of chunks.
    fn has_value(&self, key: &[u64]) -> Result<bool, String> {
        let size = self.array.storage().size_key(&self.array.chunk_key(key));
        Ok(size.map_err(|error| error.to_string())?.is_some())
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
        let clipped = self.shape_of(at);
        // a chunk that is cut needs all its bytes
        let needed = if clipped == self.shape { needed.min(whole) } else { whole };
        let elements = || self.elements(at, needed, whole, &clipped);
        let elements = guarded(|| self.check_stored(at).and_then(|()| elements())).flatten();
        let elements = elements.map_err(|reason| self.failed(at, &reason))?;
        let Some(mut bytes) = elements else {
            let count = clipped.iter().product::<u64>() as usize;
            return Ok(self.fill.repeat(count));
        };
        if self.are_booleans {
            make_booleans(&mut bytes);
        }
        if bytes.len() as u64 != whole || needed < whole {
            // the caller checks the number
            return Ok(bytes);
        }
        cut(&mut bytes, &self.shape, &clipped, self.item);
        Ok(bytes)
    }

    fn stored(&self) -> Option<StoredChunks> {
        let lens = self.array.shape().iter().zip(&self.stored_shape);
        let lens: Vec<u64> = lens.map(|(len, stored)| len.div_ceil((*stored).max(1))).collect();
        let count = lens.iter().try_fold(1u64, |count, len| count.checked_mul(*len))?;
        if !self.array.storage().is_local() || count > MOST_COUNTED {
            return None;
        }
        let mut stored = 0;
        for number in 0..count {
            let mut rest = number;
            let mut key: Vec<u64> = lens
                .iter()
                .rev()
                .map(|len| {
                    let at = rest % len;
                    rest /= len;
                    at
                })
                .collect();
            key.reverse();
            stored += u64::from(guarded(|| self.has_value(&key)).ok()?.ok()?);
        }
        Some(StoredChunks { stored, count })
    }

    fn needs(&self, at: &[u64], _: &mut dyn FnMut(Range<u64>)) {
        // only a part of a shard is read
        if self.shards.is_none() {
            let bytes =
                self.shape.iter().fold(self.item as u64, |all, len| all.saturating_mul(*len));
            // a fault is reported when the chunk is decoded
            let _ = guarded(|| self.array.storage().expect(&self.array.chunk_key(at), bytes));
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
        fn whole(&self, key: &StoreKey) -> Result<Option<Vec<u8>>, StorageError> {
            Ok(self.get(key)?.map(Vec::from))
        }

        fn range(&self, key: &StoreKey, range: ByteRange) -> Result<Option<Vec<u8>>, StorageError> {
            Ok(self.get_partial(key, range)?.map(Vec::from))
        }

        fn expect(&self, _: &StoreKey, _: u64) {}

        fn is_local(&self) -> bool {
            true
        }
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
            let opened = opened(Arc::new(MemoryStore::new()), metadata.clone(), &[2]).unwrap();
            assert!(codecs::only_codec(&opened.codecs).is_some(), "{metadata}");
        }
    }
}
