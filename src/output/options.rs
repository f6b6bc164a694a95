//! How an output is written.

use crate::execute::Workers;
use crate::format::ChunkCodec;
use crate::output::chunking::Chunking;
use crate::output::layout::OutputFormat;
use crate::output::metadata::MetadataChange;
use crate::shape::Order;
use crate::sink::SinkOptions;

/// How an output is written; by default without flags, in C order, and with as many threads as there
/// are cores.
///
/// ```
/// let options = tslice::output::WriteOptions::default().force(true).name("embed");
/// assert!(options.force && !options.fsync);
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct WriteOptions {
    /// The format; by the name of the output where it is not given.
    pub format: Option<&'static OutputFormat>,
    /// Replace a file that exists.
    pub force: bool,
    /// Wait until the disk has it all.
    pub fsync: bool,
    /// Compress the tensors, where the format can.
    pub deflate: bool,
    /// The memory order, where the format has a choice.
    pub order: Order,
    /// The name of the tensor, where the format has names.
    pub name: Option<String>,
    /// What becomes of the metadata of the inputs.
    pub metadata: MetadataChange,
    /// Cut the tensors into shards of so many bytes at most, where the output is a folder.
    pub shard_size: Option<u64>,
    /// How the tensors are cut into chunks, and compressed, where the format has such.
    pub chunking: Chunking,
    /// The threads that work. Clones of these options share them, one job after the other.
    pub workers: Workers,
}

impl WriteOptions {
    /// Write this format, whatever the name of the output says.
    #[must_use]
    pub fn format(self, format: &'static OutputFormat) -> WriteOptions {
        WriteOptions { format: Some(format), ..self }
    }

    /// Replace a file that exists.
    #[must_use]
    pub fn force(self, force: bool) -> WriteOptions {
        WriteOptions { force, ..self }
    }

    /// Wait until the disk has it all.
    #[must_use]
    pub fn fsync(self, fsync: bool) -> WriteOptions {
        WriteOptions { fsync, ..self }
    }

    /// Compress the tensors (`.npz`).
    #[must_use]
    pub fn deflate(self, deflate: bool) -> WriteOptions {
        WriteOptions { deflate, ..self }
    }

    /// The memory order (`.npy`, `.npz`, raw).
    #[must_use]
    pub fn order(self, order: Order) -> WriteOptions {
        WriteOptions { order, ..self }
    }

    /// The name of the tensor (`.safetensors`, `.npz`).
    #[must_use]
    pub fn name(self, name: impl Into<String>) -> WriteOptions {
        WriteOptions { name: Some(name.into()), ..self }
    }

    /// Add a text of metadata, or replace that of the inputs (`.safetensors`).
    #[must_use]
    pub fn metadata(mut self, key: impl Into<String>, value: impl Into<String>) -> WriteOptions {
        self.metadata.add.insert(key.into(), value.into());
        self
    }

    /// Leave out the metadata of the inputs (`.safetensors`).
    #[must_use]
    pub fn drop_metadata(mut self, drop: bool) -> WriteOptions {
        self.metadata.drop = drop;
        self
    }

    /// Cut the tensors into shards of so many bytes at most (a folder).
    #[must_use]
    pub fn shard_size(self, bytes: u64) -> WriteOptions {
        WriteOptions { shard_size: Some(bytes), ..self }
    }

    /// Chunks of this shape, in elements (`.zarr`).
    #[must_use]
    pub fn chunks(mut self, shape: impl Into<Vec<u64>>) -> WriteOptions {
        self.chunking.chunks = Some(shape.into());
        self
    }

    /// Shards of this shape, in elements, each of several chunks in one file (`.zarr`).
    #[must_use]
    pub fn shards(mut self, shape: impl Into<Vec<u64>>) -> WriteOptions {
        self.chunking.shards = Some(shape.into());
        self
    }

    /// How chunks are compressed (`.zarr`).
    #[must_use]
    pub fn codec(mut self, codec: ChunkCodec) -> WriteOptions {
        self.chunking.codec = Some(codec);
        self
    }

    /// Number of threads; 0 for as many as there are cores.
    #[must_use]
    pub fn threads(self, threads: usize) -> WriteOptions {
        WriteOptions { workers: Workers::new(threads), ..self }
    }

    pub(crate) fn sink(&self) -> SinkOptions {
        SinkOptions { force: self.force, fsync: self.fsync, ..SinkOptions::default() }
    }

    /// Work with threads that other jobs of a run work with.
    #[must_use]
    pub fn workers(self, workers: &Workers) -> WriteOptions {
        WriteOptions { workers: workers.clone(), ..self }
    }
}
