//! Outputs: their destination, their format, and the offset of every byte.
//!
//! An [`Output`] has a destination, a format ([`OutputFormat`]) and options. Preparing it gives
//! tensors their offsets; nothing is written here.

use std::collections::BTreeMap;
use std::fmt;

use layout::OutputFormat;

use crate::dtype::DType;
use crate::element::LargeElement;
use crate::error::Fault;
use crate::execute::{Watcher, Workers};
use crate::shape::{AsTuple, Order};
use crate::sink::SinkOptions;
use crate::tensor::ChunkCodec;

pub mod layout;
mod packing;
mod prepare;

pub use prepare::{Omission, Output, Preparation, Prepared, TensorChange};

/// The change of the inputs' metadata, where the output format has metadata.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MetadataChange {
    /// Whether the metadata of the inputs are left out.
    pub drop: bool,
    /// Texts that are added to the inputs' metadata, or replace them.
    pub add: BTreeMap<String, String>,
}

impl MetadataChange {
    /// Whether the metadata change.
    #[doc(hidden)]
    pub fn is_any(&self) -> bool {
        self.drop || !self.add.is_empty()
    }

    /// Whether the text of a key stays as in the inputs.
    pub(crate) fn keeps(&self, key: &str) -> bool {
        !self.drop && !self.add.contains_key(key)
    }

    /// The metadata of an input after the change.
    pub(crate) fn of(&self, input: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let mut all = if self.drop { BTreeMap::new() } else { input.clone() };
        all.extend(self.add.iter().map(|(key, value)| (key.clone(), value.clone())));
        all
    }
}

/// The most rows without elements that are written as text: a shape may have any number of them.
pub const MAX_EMPTY_ROWS: u64 = 10_000_000;

/// Why an output cannot hold the tensors.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LayoutFault {
    /// The extension belongs to no output format.
    #[error("the extension .{0} names no format that can be written")]
    Extension(String),
    #[error("the name has no extension that tells the format")]
    NoExtension,
    /// An option does not apply to the format.
    #[error("{option} has no effect: an output of format {format} {}", .option.why_not())]
    #[doc(hidden)]
    NoEffect { option: FormatOption, format: &'static str },
    /// An output must be a file of this machine.
    #[error("outputs are not written to remote addresses")]
    Remote,
    /// A folder would be written to standard output.
    #[error("an output of format {format} is a folder, which needs a name")]
    Folder { format: &'static str },
    /// The output would exceed 63 bits.
    #[error("the output would have 2^63 bytes or more")]
    TooLarge,
    /// This build does not write the format.
    #[error("this build writes no {format}: build it with --features {feature}")]
    NotBuilt { format: &'static str, feature: &'static str },
    /// The format forbids the name of a tensor.
    #[error("a tensor of format {format} cannot be named {name:?}: {reason}")]
    TensorName { format: &'static str, name: String, reason: &'static str },
    /// A value of metadata that is none of its type.
    #[error("metadata {key:?}: {reason}")]
    Metadata { key: String, reason: String },
    /// Blocks of elements that do not lie along the last axis.
    #[error("blocks of {block} stay along the last axis in the {format} format")]
    BlockAxis { block: &'static str, format: &'static str },
    /// The format lacks the dtype.
    #[error("dtype {dtype} has no equivalent in {format}")]
    DType { dtype: DType, format: &'static str },
    /// The tensor has more axes than the format allows.
    #[error("an output of format {format} has at most {most} axes, and the result has {ndim}")]
    Axes { format: &'static str, most: usize, ndim: usize },
    /// More rows without elements than are useful as text.
    #[error(
        "shape {} without elements would be {rows} empty rows, and an output of format {format} has at \
         most {MAX_EMPTY_ROWS}",
        AsTuple(shape)
    )]
    EmptyRows { format: &'static str, shape: Vec<u64>, rows: u64 },
    /// An element too large to be written as text.
    #[error(transparent)]
    #[doc(hidden)]
    Element(LargeElement),
    /// There are more tensors than the format holds.
    #[error("an output of format {format} holds one tensor, not {count}")]
    Count { format: &'static str, count: usize },
}

impl Fault for LayoutFault {}

/// Options that apply to some output formats only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FormatOption {
    Name,
    Rename,
    Deflate,
    OrderF,
    Metadata,
    ShardSize,
    Chunking,
    /// Files beside the files of the tensors.
    Files,
}

impl FormatOption {
    /// The reason why a format lacks the option.
    pub fn why_not(self) -> &'static str {
        match self {
            FormatOption::Name | FormatOption::Rename => "names no tensor",
            FormatOption::Deflate => "is never compressed",
            FormatOption::OrderF => "is always in C order",
            FormatOption::Metadata => "has no metadata",
            FormatOption::ShardSize | FormatOption::Files => "is one file",
            FormatOption::Chunking => "has no chunks",
        }
    }
}

impl fmt::Display for FormatOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FormatOption::Name => "a name",
            FormatOption::Rename => "a new name",
            FormatOption::Deflate => "compression",
            FormatOption::OrderF => "order F",
            FormatOption::Metadata => "metadata",
            FormatOption::ShardSize => "a size of shards",
            FormatOption::Files => "a file beside it",
            FormatOption::Chunking => "a shape of chunks",
        })
    }
}

/// Options for writing an output. The default sets no flag, C order, and as many threads as there
/// are cores.
///
/// ```
/// let options = tslice::output::WriteOptions::default().force(true).name("embed");
/// assert!(options.force && !options.fsync);
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct WriteOptions {
    /// The format; `None` to choose it by the name of the output.
    pub format: Option<&'static OutputFormat>,
    /// Replace an existing file.
    pub force: bool,
    /// Wait until all bytes are on the disk.
    pub fsync: bool,
    /// Compress the tensors, where the format can.
    pub deflate: bool,
    /// The memory order, where the format has a choice.
    pub order: Order,
    /// The name of the tensor, where the format has names.
    pub name: Option<String>,
    /// The change of the inputs' metadata.
    pub metadata: MetadataChange,
    /// The most bytes of a shard, where the output is a folder.
    pub shard_size: Option<u64>,
    /// Whether standard output is a terminal, which obeys codes in texts.
    pub is_shown: bool,
    /// The shapes and the compression of chunks, where the format has chunks.
    pub chunking: Chunking,
    /// The threads for the job. Clones of these options share them, one job after the other.
    pub workers: Workers,
    pub(crate) watcher: Watcher,
}

impl WriteOptions {
    /// Call a function with the bytes of elements that are written so far, after every piece of some 256 KiB and in
    /// any of the threads that write: for a progress bar.
    #[must_use]
    pub fn progress(self, watch: impl Fn(u64) + Send + Sync + 'static) -> WriteOptions {
        WriteOptions { watcher: Watcher::new(watch), ..self }
    }

    /// Write this format, whatever the name of the output.
    #[must_use]
    pub fn format(self, format: &'static OutputFormat) -> WriteOptions {
        WriteOptions { format: Some(format), ..self }
    }

    /// Replace an existing file.
    #[must_use]
    pub fn force(self, force: bool) -> WriteOptions {
        WriteOptions { force, ..self }
    }

    /// Wait until all bytes are on the disk.
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

    /// Add a text of metadata, or replace the inputs' text (`.safetensors`).
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

    /// Divide the tensors into shards of at most `bytes` bytes (a folder).
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

    /// The compression of chunks (`.zarr`).
    #[must_use]
    pub fn codec(mut self, codec: ChunkCodec) -> WriteOptions {
        self.chunking.codec = Some(codec);
        self
    }

    /// The number of threads; 0 for the number of cores.
    #[must_use]
    pub fn threads(self, threads: usize) -> WriteOptions {
        WriteOptions { workers: Workers::new(threads), ..self }
    }

    pub(crate) fn sink(&self) -> SinkOptions {
        SinkOptions { force: self.force, fsync: self.fsync, ..SinkOptions::default() }
    }

    /// Use the threads of other jobs of this run.
    #[must_use]
    pub fn workers(self, workers: &Workers) -> WriteOptions {
        WriteOptions { workers: workers.clone(), ..self }
    }
}

#[cfg(feature = "zarr")]
/// The most bytes of a chunk, where its shape is not given.
const CHUNK_BYTES: u64 = 1 << 20;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chunking {
    pub chunks: Option<Vec<u64>>,
    /// The shape of a shard, in elements: several chunks in one file.
    pub shards: Option<Vec<u64>>,
    pub codec: Option<ChunkCodec>,
}

#[cfg(feature = "zarr")]
/// The shapes of a tensor's chunks and of its shards, if any.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ChunkShapes {
    pub(crate) chunk: Vec<u64>,
    pub(crate) shard: Option<Vec<u64>>,
}

/// Why a tensor cannot be divided into chunks or shards.
#[derive(Debug, thiserror::Error)]
pub enum ChunkingFault {
    #[error(
        "{what} of shape {} do not fit a tensor of shape {}: the number of axes differs",
        AsTuple(asked),
        AsTuple(shape)
    )]
    Axes { what: &'static str, asked: Vec<u64>, shape: Vec<u64> },
    #[error(
        "shards of shape {} are not a multiple of chunks of shape {}",
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
    #[doc(hidden)]
    pub fn is_any(&self) -> bool {
        *self != Chunking::default()
    }

    #[cfg(feature = "zarr")]
    /// The chunks of a tensor of this shape, whose elements have `item` bytes.
    pub(crate) fn shapes(&self, shape: &[u64], item: u64) -> Result<ChunkShapes, ChunkingFault> {
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
/// The default chunk shape: the longest axis is halved until a chunk is short enough; with `evenly`,
/// only even lengths are halved.
fn usual(shape: &[u64], item: u64, evenly: bool) -> Vec<u64> {
    let mut chunk: Vec<u64> = shape.iter().map(|len| (*len).max(1)).collect();
    while chunk.iter().fold(item, |bytes, len| bytes.saturating_mul(*len)) > CHUNK_BYTES {
        let halves = chunk.iter_mut().filter(|len| **len > 1 && (!evenly || **len % 2 == 0));
        // of equal axes the first one, so that rows stay long
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
        assert!(asked(&[2, 2], &[4, 5]).unwrap_err().contains("not a multiple"));
        assert!(asked(&[2], &[4, 4]).unwrap_err().contains("the number of axes differs"));
    }
}
