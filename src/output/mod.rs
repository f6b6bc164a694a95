//! Outputs: where they go, in which format, and the place of every byte.
//!
//! An [`Output`] has a destination, a format (one of [`layout::FORMATS`]) and options. Preparing it gives
//! tensors their places; nothing is written here.

use std::collections::BTreeMap;
use std::fmt;

use layout::OutputFormat;

use crate::dtype::DType;
use crate::error::Fault;
use crate::execute::Workers;
use crate::format::ChunkCodec;
use crate::format::text::MAX_EMPTY_ROWS;
use crate::shape::{AsTuple, Order};
use crate::sink::SinkOptions;

mod chunking;
pub mod layout;
mod prepare;

pub use chunking::{Chunking, ChunkingFault};
pub use prepare::{Becomes, Output, Preparation, Prepared, Unsaid};

/// What becomes of the metadata of inputs, where the format of the output has such.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MetadataChange {
    /// Whether those of the inputs are left out.
    pub drop: bool,
    /// Texts that are added to those of the inputs, or replace them.
    pub add: BTreeMap<String, String>,
}

impl MetadataChange {
    /// Whether metadata are others than those of the inputs.
    pub fn is_any(&self) -> bool {
        self.drop || !self.add.is_empty()
    }

    /// Whether the text of a key is that of the inputs.
    pub(super) fn keeps(&self, key: &str) -> bool {
        !self.drop && !self.add.contains_key(key)
    }

    /// What becomes of the metadata of an input.
    pub(super) fn of(&self, input: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let mut all = if self.drop { BTreeMap::new() } else { input.clone() };
        all.extend(self.add.iter().map(|(key, value)| (key.clone(), value.clone())));
        all
    }
}

/// Why an output cannot hold what is to be written.
#[derive(Debug, thiserror::Error)]
pub enum LayoutFault {
    /// The extension belongs to no output format.
    #[error("the extension .{0} names no format that can be written")]
    Extension(String),
    /// There is no extension.
    #[error("the name has no extension that tells the format")]
    NoExtension,
    /// An option does not apply to the format.
    #[error("{option} has no effect: an output of format {format} {}", .option.why_not())]
    NoEffect {
        /// The option.
        option: FormatOption,
        /// The format of the output.
        format: &'static str,
    },
    /// Outputs are files of this machine.
    #[error("outputs are not written to remote addresses")]
    Remote,
    /// A folder is written for a sharded checkpoint, or where shards have a size.
    #[error("is a directory")]
    Directory,
    /// A folder would be written to standard output.
    #[error("an output of format {format} is a folder, which needs a name")]
    Folder {
        /// The format of the output.
        format: &'static str,
    },
    /// The output would not fit into 63 bits.
    #[error("the output would have 2^63 bytes or more")]
    TooLarge,
    /// A build that does not write the format.
    #[error("this build writes no {format}: build it with --features {feature}")]
    NotBuilt {
        /// The format.
        format: &'static str,
        /// The feature that it needs.
        feature: &'static str,
    },
    /// A name that no tensor of the format can have.
    #[error("a tensor of format {format} cannot be named {name:?}: {reason}")]
    TensorName {
        /// The format of the output.
        format: &'static str,
        /// The name.
        name: String,
        /// What is wrong with the name.
        reason: &'static str,
    },
    /// The format has no such type.
    #[error("dtype {dtype} has no counterpart in the {format} format")]
    DType {
        /// The type.
        dtype: DType,
        /// The format of the output.
        format: &'static str,
    },
    /// More axes than the format has.
    #[error("an output of format {format} has at most {most} axes, and the result has {ndim}")]
    Axes {
        /// The format of the output.
        format: &'static str,
        /// How many it has at most.
        most: usize,
        /// How many the result has.
        ndim: usize,
    },
    /// Rows without elements, beyond what makes sense as text.
    #[error(
        "shape {} without elements would be {rows} empty rows, an output of format {format} has at \
         most {MAX_EMPTY_ROWS}",
        AsTuple(shape)
    )]
    EmptyRows {
        /// The format of the output.
        format: &'static str,
        /// The shape of the tensor.
        shape: Vec<u64>,
        /// How many rows it would have.
        rows: u64,
    },
    /// More tensors than the format holds.
    #[error("an output of format {format} holds one tensor, not {count}")]
    Count {
        /// The format of the output.
        format: &'static str,
        /// How many tensors there are.
        count: usize,
    },
}

impl Fault for LayoutFault {}

/// Options that apply to some output formats only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FormatOption {
    /// A name for the tensor.
    Name,
    /// New names for tensors.
    Rename,
    /// Compression.
    Deflate,
    /// Fortran order.
    OrderF,
    /// Texts of metadata.
    Metadata,
    /// The size of shards.
    ShardSize,
    /// Chunks, shards and how they are compressed.
    Chunking,
    /// Files beside those of the tensors.
    Files,
}

impl FormatOption {
    /// What is true of formats without it.
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
