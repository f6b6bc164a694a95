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

use chunks::ZarrChunks;
use dtype::ElementType;
use serde_json::Value;
use zarrs::array::{Array, ArrayMetadata, ArrayShardedExt};
use zarrs::storage::{ReadableStorageTraits, StoreKey};

use super::annotations::{Annotated, Annotations};
use super::error::brief;
use super::guarded::guarded;
use super::tensor::{Storage, StorageKind, TensorInfo};
use crate::shape::Order;

mod chunks;
mod codecs;
mod dialect;
mod dtype;
mod write;

#[cfg(feature = "hdf5")]
pub(in crate::format) use codecs::blosc_bytes;
pub(crate) use dialect::{consolidated, consolidated_v2};
pub(crate) use write::{NewArray, group_json, stored_dtype};

/// What is at a path, by its metadata.
pub(crate) enum ZarrNode {
    /// An array.
    Array(ArrayMetadataJson),
    /// Arrays and groups, and what their group says of itself.
    Group(Annotations),
}

/// The metadata of an array, as they are written.
pub(crate) struct ArrayMetadataJson(Value);

/// What a `zarr.json` is about.
pub(crate) fn node(json: &[u8]) -> Result<ZarrNode, ZarrError> {
    let mut metadata = dialect::parse(json)?;
    match metadata.get("node_type").and_then(Value::as_str) {
        Some("array") => {
            dialect::refuse_unknown(&metadata, false)?;
            Ok(ZarrNode::Array(ArrayMetadataJson(metadata)))
        }
        Some("group") => {
            dialect::refuse_unknown(&metadata, true)?;
            let attributes = metadata.get_mut("attributes").map(Value::take);
            Ok(ZarrNode::Group(of_attributes(attributes.unwrap_or_default())))
        }
        _ => Err(unfit("node_type is neither array nor group")),
    }
}

/// The metadata of an array of version 2: `.zarray`, and `.zattrs` where that is there.
pub(crate) fn array_v2(
    json: &[u8],
    attributes: Option<&[u8]>,
) -> Result<ArrayMetadataJson, ZarrError> {
    let mut metadata = dialect::parse(json)?;
    if let (Some(entries), Some(attributes)) = (metadata.as_object_mut(), attributes) {
        let attributes = dialect::parse(attributes)?;
        entries.insert("attributes".to_owned(), attributes);
    }
    Ok(ArrayMetadataJson(metadata))
}

/// What a group of version 2 says of itself in `.zattrs`.
pub(crate) fn group_v2(attributes: &[u8]) -> Result<Annotations, ZarrError> {
    Ok(of_attributes(dialect::parse(attributes)?))
}

fn of_attributes(attributes: Value) -> Annotations {
    let Value::Object(mut attributes) = attributes else { return Annotations::default() };
    let mut reworded = Vec::new();
    for (name, value) in &mut attributes {
        if dialect::reworded(value) {
            reworded.push(name.clone());
        }
    }
    Annotations { attributes, reworded, ..Annotations::default() }
}

/// The names of axes in version 2, by xarray.
const DIMENSIONS: &str = "_ARRAY_DIMENSIONS";

/// What an array says of itself, taken from its metadata.
fn annotations(metadata: &mut Value, fill_value: Option<Vec<u8>>) -> Annotations {
    let mut take = |key: &str| {
        let entries = metadata.as_object_mut();
        entries.and_then(|entries| entries.remove(key)).unwrap_or_default()
    };
    let dimension_names = take("dimension_names");
    let attributes = take("attributes");
    let mut all = of_attributes(attributes);
    all.fill_value = fill_value;
    let ndim = metadata.get("shape").and_then(Value::as_array).map_or(0, Vec::len);
    let names = |said: &Value| -> Option<Vec<Option<String>>> {
        let names = said.as_array().filter(|names| names.len() == ndim)?;
        Some(names.iter().map(|name| name.as_str().map(str::to_owned)).collect())
    };
    if let Some(names) = names(&dimension_names) {
        all.dimension_names = names;
    } else if let Some(names) = all.attributes.get(DIMENSIONS).and_then(names) {
        // it would stay behind where axes change
        all.attributes.remove(DIMENSIONS);
        all.dimension_names = names;
    }
    if all.dimension_names.iter().all(Option::is_none) {
        all.dimension_names.clear();
    }
    all
}

/// The tensor that an array is, by its metadata and the store of its chunks, of which those that are not there may be
/// refused.
pub(crate) fn array(
    store: ArrayStore,
    ArrayMetadataJson(mut metadata): ArrayMetadataJson,
    refuses_missing: bool,
) -> Result<TensorInfo, ZarrError> {
    if let Some(fill) = metadata.get_mut("fill_value") {
        dialect::reworded(fill);
    }
    let elements = ElementType::of(&metadata)?;
    let has_fill = metadata.get("fill_value").is_some_and(|fill| !fill.is_null());
    let fill = dialect::translate(&mut metadata, &elements)?;
    let dtype = elements.dtype;
    let annotations = annotations(&mut metadata, has_fill.then_some(fill));
    let chunk_shape = chunk_shape(&metadata)?;
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

/// The shape of the chunks, or of the shards.
fn chunk_shape(metadata: &Value) -> Result<Vec<u64>, ZarrError> {
    let said = match metadata.get("chunk_grid") {
        None => metadata.get("chunks"),
        Some(grid) => match grid.get("name").and_then(Value::as_str) {
            Some("regular") => grid.pointer("/configuration/chunk_shape"),
            name => return Err(ZarrError::Grid(brief(name.unwrap_or("of no name")))),
        },
    };
    let lens = said.and_then(Value::as_array).map(|lens| lens.iter().map(Value::as_u64).collect());
    let lens: Option<Vec<u64>> = lens.flatten();
    lens.ok_or_else(|| unfit("the shape of the chunks is not said"))
}

/// Why an array cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ZarrError {
    /// Metadata that break the rules, or want what is not there.
    #[error("{0}")]
    Metadata(String),
    /// Metadata or a chunk that are there, and whose bytes cannot be read.
    #[error("{0}")]
    Value(String),
    /// A dtype without a counterpart.
    #[error("dtype {0} has no counterpart here")]
    DType(String),
    /// Chunks of different shapes.
    #[error("the chunk grid {0} is not read: only regular ones are")]
    Grid(String),
    /// A value of chunks that are not stored, which the dtype has not.
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
