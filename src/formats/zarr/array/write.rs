//! Writing of Zarr arrays, as version 3.

use std::num::NonZeroU64;
use std::sync::Arc;

use serde_json::{Value, json};
use zarrs::array::{Array, ArrayBytes, ArrayMetadata, ArrayToBytesCodecTraits, CodecOptions};
use zarrs::storage::ReadableStorageTraits;
use zarrs::storage::store::MemoryStore;

use super::dtype::{self, ElementType};
use super::{ZarrError, metadata, unfit};
use crate::dtype::{DType, Endian, NpyType, TimeKind};
use crate::formats::codecs::guarded;
use crate::tensor::{Annotations, ChunkCodec, ChunkFile, EncodeChunks, FILL_VALUE, brief};

pub(crate) struct NewArray<'a> {
    pub(crate) path: &'a str,
    pub(crate) dtype: &'a DType,
    pub(crate) shape: &'a [u64],
    /// The shape of a chunk and, where several chunks share a file, of a shard.
    pub(crate) chunk: &'a [u64],
    pub(crate) shard: Option<&'a [u64]>,
    pub(crate) codec: ChunkCodec,
    pub(crate) said: Option<&'a Annotations>,
}

/// The dtype in which elements are stored; `None` where version 3 lacks it.
pub(crate) fn stored_dtype(dtype: &DType) -> Option<DType> {
    match dtype {
        DType::Scalar(scalar, _) if scalar.bits().is_multiple_of(8) => {
            Some(DType::Scalar(*scalar, Endian::Little))
        }
        DType::Npy(NpyType::Time(kind, _, unit)) => {
            Some(DType::Npy(NpyType::Time(*kind, Endian::Little, *unit)))
        }
        DType::Npy(NpyType::Unicode(len @ 1.., _)) => {
            Some(DType::Npy(NpyType::Unicode(*len, Endian::Little)))
        }
        DType::Npy(NpyType::Bytes(1..)) => Some(dtype.clone()),
        _ => None,
    }
}

/// The metadata of a group with these annotations.
pub(crate) fn group_json(said: &Annotations) -> Vec<u8> {
    text(&json!({ "zarr_format": 3, "node_type": "group", "attributes": said.attributes }))
}

fn text(json: &Value) -> Vec<u8> {
    let mut text = format!("{json:#}");
    text.push('\n');
    text.into_bytes()
}

impl NewArray<'_> {
    /// The metadata of the array, and the encoder of its chunks.
    pub(crate) fn encoder(&self) -> Result<(Vec<u8>, Box<dyn EncodeChunks>), ZarrError> {
        let json = self.json().ok_or_else(|| ZarrError::DType(self.dtype.to_string()))?;
        let mut known = json.clone();
        metadata::translate(&mut known, &ElementType::of(&json)?)?;
        let metadata: ArrayMetadata = serde_json::from_value(known).map_err(unfit)?;
        let store: Arc<dyn ReadableStorageTraits> = Arc::new(MemoryStore::new());
        let array = guarded(|| Array::new_with_metadata(store, "/", metadata));
        let array = array.map_err(ZarrError::Metadata)?.map_err(unfit)?;
        let shape = self.shard.unwrap_or(self.chunk).to_vec();
        let lens: Option<Vec<NonZeroU64>> = shape.iter().map(|len| NonZeroU64::new(*len)).collect();
        let lens = lens.ok_or_else(|| unfit("chunks without elements"))?;
        let folder = if self.path.is_empty() { String::new() } else { format!("{}/", self.path) };
        Ok((text(&json), Box::new(ZarrEncoder { array, shape, lens, folder })))
    }

    fn json(&self) -> Option<Value> {
        let data_type = data_type(self.dtype)?;
        let item = (self.dtype.item_bits() / 8) as usize;
        let fill = self.said.and_then(|said| said.fill_value.as_deref());
        let zero = vec![0; item];
        let fill = dtype::said(fill.filter(|fill| fill.len() == item).unwrap_or(&zero), self.dtype);
        let mut attributes = self.said.map(|said| said.attributes.clone()).unwrap_or_default();
        if let Some(value) = attributes.get_mut(FILL_VALUE)
            && let Some(other) = dtype::of_netcdf(value, self.dtype)
        {
            *value = other;
        }
        let mut codecs = vec![json!({ "name": "bytes", "configuration": { "endian": "little" } })];
        codecs.extend(self.compressor());
        if self.shard.is_some() {
            codecs = vec![json!({
                "name": "sharding_indexed",
                "configuration": {
                    "chunk_shape": self.chunk,
                    "codecs": codecs,
                    "index_codecs": [
                        { "name": "bytes", "configuration": { "endian": "little" } },
                        { "name": "crc32c" },
                    ],
                    "index_location": "end",
                },
            })];
        }
        let mut json = json!({
            "zarr_format": 3,
            "node_type": "array",
            "shape": self.shape,
            "data_type": data_type,
            "chunk_grid": {
                "name": "regular",
                "configuration": { "chunk_shape": self.shard.unwrap_or(self.chunk) },
            },
            "chunk_key_encoding": { "name": "default", "configuration": { "separator": "/" } },
            "fill_value": fill,
            "codecs": codecs,
            "attributes": attributes,
            "storage_transformers": [],
        });
        let names = self.said.map(|said| &said.dimension_names);
        if let Some(names) = names.filter(|it| it.len() == self.shape.len() && !it.is_empty()) {
            json["dimension_names"] = json!(names);
        }
        Some(json)
    }

    fn compressor(&self) -> Option<Value> {
        let bytes = self.dtype.item_bits() / 8;
        Some(match self.codec {
            ChunkCodec::None => return None,
            ChunkCodec::Zstd(level) => {
                json!({ "name": "zstd", "configuration": { "level": level, "checksum": false } })
            }
            ChunkCodec::Gzip(level) => {
                json!({ "name": "gzip", "configuration": { "level": level } })
            }
            ChunkCodec::Blosc(level) => json!({
                "name": "blosc",
                "configuration": {
                    "cname": "zstd",
                    "clevel": level,
                    "shuffle": if bytes > 1 { "shuffle" } else { "noshuffle" },
                    "typesize": bytes,
                    "blocksize": 0,
                },
            }),
        })
    }
}

fn data_type(dtype: &DType) -> Option<Value> {
    match dtype {
        DType::Scalar(scalar, _) => Some(json!(scalar.name())),
        DType::Npy(NpyType::Time(kind, _, unit)) => {
            let name = match kind {
                TimeKind::Datetime => "numpy.datetime64",
                TimeKind::Timedelta => "numpy.timedelta64",
            };
            let unit_name = if unit.name().is_empty() { "generic" } else { unit.name() };
            let configuration = json!({ "unit": unit_name, "scale_factor": unit.count });
            Some(json!({ "name": name, "configuration": configuration }))
        }
        DType::Npy(npy @ (NpyType::Unicode(..) | NpyType::Bytes(_))) => {
            let is_text = matches!(npy, NpyType::Unicode(..));
            let name = if is_text { "fixed_length_utf32" } else { "null_terminated_bytes" };
            let configuration = json!({ "length_bytes": npy.itemsize() });
            Some(json!({ "name": name, "configuration": configuration }))
        }
        _ => None,
    }
}

/// An encoder of the chunks, or the shards, of an array.
struct ZarrEncoder {
    array: Array<dyn ReadableStorageTraits>,
    shape: Vec<u64>,
    lens: Vec<NonZeroU64>,
    /// The path of the array, with a slash after it; empty for the root.
    folder: String,
}

impl EncodeChunks for ZarrEncoder {
    fn chunk_shape(&self) -> &[u64] {
        &self.shape
    }

    fn encode(&self, at: &[u64], elements: Vec<u8>) -> Result<Option<ChunkFile>, String> {
        let array = &self.array;
        let data_type = array.data_type();
        let fill = array.fill_value();
        // a chunk of fill values need not be stored
        let element = fill.as_ne_bytes();
        if elements.chunks(element.len().max(1)).all(|it| it == element) {
            return Ok(None);
        }
        let elements = ArrayBytes::new_flen(elements);
        let encode = || {
            // several threads encode chunks; each chunk is encoded by one thread
            let options = CodecOptions::default().with_concurrent_target(1);
            array.codecs().encode(elements, &self.lens, data_type, fill, &options)
        };
        let bytes = guarded(encode)?.map_err(|error| brief(&error.to_string()))?.into_owned();
        let name = format!("{}{}", self.folder, array.chunk_key(at).as_str());
        Ok(Some(ChunkFile { name, bytes }))
    }
}
