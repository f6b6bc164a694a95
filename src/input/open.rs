//! Opening an input, whatever it is: one opener for each kind that is recognised.

use crate::error::ContainerError;
use crate::execute::Progress;
use crate::format::{self, FileKind, MAGIC_LEN};
use crate::input::opened::{Input, Location};
use crate::input::raw::RawLayout;
use crate::input::sharded::Shards;
use crate::input::single::open_bytes;
use crate::input::{integers, npz, raw, sharded, single};
use crate::source::{self, IoMode};

/// How an input is opened.
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    /// How its bytes are read.
    pub io: IoMode,
    /// What is said of an input that does not say it itself.
    pub raw: RawLayout,
    /// Names or globs of the tensors that are needed: of a sharded checkpoint only the files that
    /// hold them are opened. Empty for all.
    pub tensors: Vec<String>,
    /// Whether the other tensors are needed too.
    pub rest: bool,
    /// Whether a text of integers is an index tensor.
    pub integers: bool,
}

/// Open an input, find out what it is, and read its header. A folder with the index of a sharded
/// checkpoint in it is that checkpoint.
///
/// # Errors
/// The [`Cause`](crate::error::Cause) tells: no such file, no known format, a header that breaks its
/// format's rules, bytes that cannot be what [`OpenOptions::raw`] says.
pub fn open(location: &Location, options: &OpenOptions) -> Result<Input, ContainerError> {
    open_watched(location, options, &Progress::default())
}

/// Open an input where another thread watches how far a pipe is read that must be kept:
/// [`Progress::keeping`].
///
/// # Errors
/// As [`open`].
pub fn open_watched(
    location: &Location,
    options: &OpenOptions,
    progress: &Progress,
) -> Result<Input, ContainerError> {
    let location = &sharded::in_folder(location)?;
    let mut bytes = open_bytes(location, options.io)?;
    let first = match &mut bytes {
        // still to be read afterwards
        source::Opened::Forward(stream) => {
            stream.peek(MAGIC_LEN).map_err(|error| ContainerError::file(location, error))?
        }
        source::Opened::Random(source) => single::first_bytes(location, source.as_ref())?,
    };
    let kind = format::detect(&first);
    if let Some(dtype) = options.raw.of_raw_bytes(kind) {
        return raw::open((location, bytes), dtype, &options.raw, progress);
    }
    if kind.is_none() && options.integers {
        return match integers::is_text(&first) {
            true => integers::open(location, bytes, progress),
            false => Err(integers::refused(location, &mut bytes)),
        };
    }
    let mut input = match kind {
        Some(FileKind::Json) => {
            let shards = match options.tensors.as_slice() {
                patterns if !patterns.is_empty() && !options.rest => Shards::Holding(patterns),
                _ => Shards::All,
            };
            sharded::open(location, bytes, options.io, shards)?
        }
        Some(FileKind::Zip) => npz::open(location, bytes, progress)?,
        Some(FileKind::Npy | FileKind::Safetensors) | None => single::open(location, bytes)?,
    };
    options.raw.apply(&mut input, &options.tensors)?;
    Ok(input)
}
