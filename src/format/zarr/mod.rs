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

mod bounded;
mod chunks;
mod consolidated;
mod dtype;
mod error;
mod store;
mod write;

use std::sync::Arc;

use serde_json::Value;
use zarrs::array::{Array, ArrayMetadata, ArrayShardedExt};

use super::brief::brief;
use super::guarded::guarded;
use super::tensor::{Storage, StorageKind, TensorInfo};
use crate::shape::Order;
use chunks::ZarrChunks;
pub(crate) use consolidated::{consolidated, consolidated_v2};
use dtype::ElementType;
pub(crate) use error::ZarrError;
pub(crate) use store::{ArrayStore, ValueStore};
pub(crate) use write::{NewArray, group_json, stored_dtype};

/// What the metadata of a folder are about.
pub(crate) enum ZarrNode {
    /// An array.
    Array,
    /// Arrays and groups.
    Group,
}

/// What a `zarr.json` is about.
///
/// # Errors
/// [`ZarrError`]: no JSON, neither of the two.
pub(crate) fn node(json: &[u8]) -> Result<ZarrNode, ZarrError> {
    let metadata = parse(json)?;
    match metadata.get("node_type").and_then(Value::as_str) {
        Some("array") => Ok(ZarrNode::Array),
        Some("group") => Ok(ZarrNode::Group),
        _ => Err(ZarrError::Metadata("node_type is neither array nor group".to_owned())),
    }
}

/// The tensor that an array is, by its metadata (`zarr.json` or `.zarray`) and the store of its chunks.
///
/// # Errors
/// [`ZarrError`]: metadata that break the rules, a dtype or a codec that is not known.
pub(crate) fn array(store: ArrayStore, json: &[u8]) -> Result<TensorInfo, ZarrError> {
    let mut metadata = parse(json)?;
    let ElementType { dtype, opaque } = ElementType::of(&metadata)?;
    if opaque {
        dtype::hide(&mut metadata, &dtype)?;
    }
    let chunk_shape = chunk_shape(&metadata)?;
    // one element is in either order; zarrs does without a check of the axes that it reverses
    if metadata.get("order").is_some() && chunk_shape.is_empty() {
        metadata["order"] = "C".into();
    }
    let (array, inner) = guarded(|| opened(store, metadata)).map_err(ZarrError::Metadata)??;
    let shape = array.shape().to_vec();
    let chunk_shape = inner.unwrap_or(chunk_shape);
    if chunk_shape.len() != shape.len() || chunk_shape.contains(&0) {
        return Err(ZarrError::Metadata("the chunks have another number of axes".to_owned()));
    }
    let item = (dtype.item_bits() / 8) as usize;
    let mut tensor = TensorInfo::new(dtype, shape, Order::C, 0);
    let chunks = ZarrChunks::new(array, chunk_shape, item)?;
    tensor.storage = Storage { part: 0, data: 0..0, kind: StorageKind::Chunks(Arc::new(chunks)) };
    Ok(tensor)
}

/// An array of `zarrs`, and the shape of the chunks in its shards, if these are all that it has.
type ShardedArray = (Array<dyn ValueStore>, Option<Vec<u64>>);

fn opened(store: ArrayStore, mut metadata: Value) -> Result<ShardedArray, ZarrError> {
    bounded::register();
    bounded::name_own(&mut metadata);
    let parsed: ArrayMetadata = serde_json::from_value(metadata).map_err(invalid)?;
    let array = Array::new_with_metadata(store, "/", parsed);
    let array = array.map_err(|error| ZarrError::Metadata(brief(&error.to_string())))?;
    // what is around a shard would have to be decoded before its index is found
    let inner = array.is_exclusively_sharded().then(|| array.subchunk_shape()).flatten();
    let inner = inner.map(|inner| inner.iter().map(|len| len.get()).collect());
    Ok((array, inner))
}

fn parse(json: &[u8]) -> Result<Value, ZarrError> {
    serde_json::from_slice(json).map_err(invalid)
}

fn invalid(error: serde_json::Error) -> ZarrError {
    ZarrError::Metadata(brief(&error.to_string()))
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
    lens.ok_or_else(|| ZarrError::Metadata("the shape of the chunks is not said".to_owned()))
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
            assert!(bounded::only_codec(&array.codecs()).is_some(), "{metadata}");
        }
    }
}
