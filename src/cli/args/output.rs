//! The arguments that say where and how an output is written.

use std::path::PathBuf;

use clap::Args;
use clap::builder::TypedValueParser;
use tslice::formats::outputs;
use tslice::output::layout::OutputFormat;
use tslice::shape::Order;
use tslice::tensor::ChunkCodec;

use super::input::ORDERS;
use super::parsers;
use super::parsers::{PartArg, one_of, size};

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Write the output")]
pub(crate) struct OutputArgs {
    /// The file to write, its format by its name
    ///
    /// Standard output if omitted or `-`.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
    /// Replace the output if it exists
    #[arg(short, long)]
    pub(crate) force: bool,
    /// Wait until the disk has the output
    #[arg(long, hide_short_help = true)]
    pub(crate) fsync: bool,
    /// Write shards of at most this many bytes: 5GB, 500MiB (-o DIR/)
    ///
    /// Tensors are not divided: a larger one has a shard of its own.
    #[arg(long, value_name = "SIZE", value_parser = shard_size, hide_short_help = true)]
    pub(crate) shard_size: Option<u64>,
    /// Copy other small files of the input's folder, too, such as config.json
    #[arg(long, hide_short_help = true)]
    pub(crate) with_files: bool,
    #[command(flatten)]
    pub(crate) metadata: MetadataArgs,
    /// Write one of N parts of the output: I/N, or auto; plan/N, status, discard
    ///
    /// Several machines can share the work. I counts from 0; auto takes it from the scheduler's variables.
    /// plan/N prints all parts, status the missing ones, discard removes unfinished ones.
    #[arg(long, value_parser = parsers::part, value_name = "I/N", hide_short_help = true)]
    pub(crate) part: Option<PartArg>,
    /// Number of threads [default: one a core; at least 8 if the disk is slow]
    #[arg(short = 'j', long, value_name = "N", value_parser = threads)]
    pub(crate) threads: Option<u16>,
    /// Check everything, print what would be written, write nothing
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
    /// With --dry-run: print JSON
    #[arg(long, requires = "dry_run", hide_short_help = true)]
    pub(crate) json: bool,
    /// Show no progress
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// The format of an output, and what only some formats have.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Write the output")]
pub(crate) struct FormatArgs {
    /// The format of the output, whatever its name
    #[arg(long, value_parser = formats(), value_name = "FORMAT", hide_short_help = true)]
    pub(crate) to: Option<&'static OutputFormat>,
    /// Compress the arrays of the output, as np.savez_compressed does (.npz)
    #[arg(long, hide_short_help = true)]
    pub(crate) deflate: bool,
    /// The shape of a chunk, in elements: 64,64,64 (.zarr) [about 1 MiB]
    #[arg(long, value_name = "N,N,...", value_parser = lengths, allow_hyphen_values = true, hide_short_help = true)]
    pub(crate) chunks: Option<Lengths>,
    /// The shape of a shard, in elements: several chunks in one file (.zarr)
    #[arg(long, value_name = "N,N,...", value_parser = lengths, allow_hyphen_values = true, hide_short_help = true)]
    pub(crate) shards: Option<Lengths>,
    /// How chunks are compressed: zstd, gzip or blosc, with :LEVEL, or none (.zarr) [default: zstd:3]
    #[arg(long, value_name = "CODEC", value_parser = codec, hide_short_help = true)]
    pub(crate) codec: Option<ChunkCodec>,
    /// The order of the output's elements (.npy, raw)
    #[arg(long, value_parser = one_of(ORDERS), ignore_case = true, value_name = "ORDER", hide_short_help = true)]
    pub(crate) order: Option<Order>,
    /// The name of the tensor in the output (.safetensors)
    #[arg(
        long,
        value_name = "NAME",
        help_heading = "Choose and name tensors",
        hide_short_help = true
    )]
    pub(crate) name: Option<String>,
}

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Write the output")]
pub(crate) struct MetadataArgs {
    /// Add or replace a text of metadata, or a number of a .gguf: llama.block_count=u32:16
    ///
    /// May be given again.
    #[arg(long, value_name = "KEY=VALUE", value_parser = metadata, hide_short_help = true)]
    pub(crate) metadata: Vec<MetadataArg>,
    /// Add the texts of a JSON object to the metadata (applied before --metadata)
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(crate) metadata_from: Option<PathBuf>,
    /// Leave out the metadata of the input (.safetensors, .gguf, .pt)
    #[arg(long, hide_short_help = true)]
    pub(crate) no_metadata: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct MetadataArg {
    pub(crate) key: String,
    pub(crate) value: String,
}

fn metadata(text: &str) -> Result<MetadataArg, &'static str> {
    let (key, value) =
        text.split_once('=').filter(|(key, _)| !key.is_empty()).ok_or("KEY=VALUE is needed")?;
    Ok(MetadataArg { key: key.to_owned(), value: value.to_owned() })
}

fn formats() -> impl TypedValueParser<Value = &'static OutputFormat> {
    let named = outputs().filter(|format| !format.about.is_empty());
    one_of(named.map(|format| (format.name, format.about, format)))
}

/// The lengths of the axes of a chunk.
#[derive(Clone, Debug)]
pub(crate) struct Lengths(pub(crate) Vec<u64>);

fn lengths(text: &str) -> Result<Lengths, &'static str> {
    let text = text.trim();
    let text = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let lens = text.split(',').map(|len| len.trim().parse().ok().filter(|len| *len > 0));
    let lens: Option<Vec<u64>> = if text.is_empty() { Some(Vec::new()) } else { lens.collect() };
    lens.map(Lengths).ok_or("numbers of elements are needed, one for each axis: 64,64,64")
}

fn codec(text: &str) -> Result<ChunkCodec, &'static str> {
    let codec = ChunkCodec::parse(text);
    codec.ok_or("zstd, zstd:1 to zstd:22, gzip:0 to gzip:9, blosc:0 to blosc:9 or none is needed")
}

fn shard_size(text: &str) -> Result<u64, &'static str> {
    size(text)
        .and_then(|bytes| if bytes > 0 { Ok(bytes) } else { Err("a shard has at least 1 byte") })
}

pub(super) fn threads(text: &str) -> Result<u16, &'static str> {
    let number = text.parse().ok().filter(|&number| number > 0);
    number.ok_or("a number from 1 to 65535 is needed")
}
