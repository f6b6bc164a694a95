//! A sharded checkpoint as one input: its index, and those of its files that are needed.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Error, Fault};
use crate::format::shards::{self, MAX_INDEX, ShardIndex, ShardsError};
use crate::format::{Contents, Format, FormatError, Tensors};
use crate::input::format::{InputFormat, OpenOptions, RecognisedFile};
use crate::input::pattern;
use crate::input::single;
use crate::input::{Bytes, Checkpoint, Input, Location, PartFile, failed_source};
use crate::source::remote::RemoteError;
use crate::source::{self, Advice, ConcatSource, IoMode, OpenError, Reader, Source};

/// What lies in a folder; opened again where a signal interrupts.
pub(super) fn read_dir(folder: &Path) -> std::io::Result<fs::ReadDir> {
    loop {
        match fs::read_dir(folder) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            entries => return entries,
        }
    }
}

/// The index in a folder. Of several, that named `model.safetensors.index.json` counts.
///
/// # Errors
/// [`ShardsFault`]: no index in the folder, or several.
pub(super) fn index_of(folder: &Path) -> Result<PathBuf, Error> {
    let failed = |error: std::io::Error| Error::file(folder, error);
    let mut names = Vec::new();
    for entry in read_dir(folder).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let shown = name.to_string_lossy();
        if shown.contains(".safetensors.index.") && shown.ends_with(".json") {
            names.push(name);
        }
    }
    names.sort_unstable();
    let usual = names.iter().find(|name| *name == "model.safetensors.index.json");
    match (usual, names.as_slice()) {
        (Some(name), _) | (None, [name]) => Ok(folder.join(name)),
        (None, []) => Err(Error::file(folder, ShardsFault::NoIndex)),
        (None, _) => {
            let shown = names.iter().map(|name| name.to_string_lossy().into_owned());
            Err(Error::file(folder, ShardsFault::SeveralIndexes(shown.collect())))
        }
    }
}

/// A checkpoint of several files, by its index.
pub(super) const FORMAT: InputFormat =
    InputFormat { format: Format::Sharded, begins: shards::begins, open };

/// Open the shards that an index names: those that hold tensors that are needed.
fn open(file: RecognisedFile<'_>) -> Result<Input, Error> {
    let RecognisedFile { location, mut bytes, options, .. } = file;
    let OpenOptions { io, tensors: patterns, rest, .. } = options;
    let index = read_index(location, &mut bytes)?;
    let files = wanted_files(location, &index, if *rest { &[] } else { patterns })?;
    let wanted = || (0..).zip(&index.files).filter(|(number, _)| files.contains(number));
    let shards = open_shards(location, wanted().map(|(_, file)| file), *io)?;
    let mut joined = ConcatSource::default();
    let mut tensors = Tensors::default();
    let mut metadata = vec![BTreeMap::new(); index.files.len()];
    let part = |name: &String| PartFile { name: name.clone(), start: 0 };
    let mut parts: Vec<PartFile> = index.files.iter().map(part).collect();
    for ((number, file), shard) in wanted().zip(shards) {
        let (shard_location, source) = shard?;
        // never an index again, which could name itself
        let shard = single::read_header(&shard_location, source.as_ref())?;
        if shard.format != Format::Safetensors {
            return Err(Error::file(&shard_location, ShardsFault::NotSafetensors));
        }
        index.check_shard(number, &shard).map_err(|error| unfit(location, error))?;
        let pushed = joined.push(file.clone(), source.into());
        let base = pushed.map_err(|error| failed_source(location, error))?;
        tensors.extend(shard.tensors.iter().map(|tensor| tensor.placed(number, base)));
        (metadata[number], parts[number].start) = (shard.metadata, base);
    }
    let all = metadata.iter().flatten().map(|(key, value)| (key.clone(), value.clone())).collect();
    let contents = Contents { metadata: all, ..Contents::of(Format::Sharded, tensors) };
    let name = location.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let checkpoint = Some(Box::new(Checkpoint { name, index, metadata }));
    let bytes = Bytes::Random(Arc::new(joined));
    Ok(Input { checkpoint, parts, ..Input::of_file(location, bytes, contents) })
}

/// A shard, and where it is.
type OpenShard = (Location, Box<dyn Source>);

/// Open shards of the index at a location, which have these names: each when it is asked for, or all at
/// once where they are remote.
fn open_shards<'a>(
    location: &'a Location,
    files: impl Iterator<Item = &'a String> + 'a,
    io: IoMode,
) -> Result<Box<dyn Iterator<Item = Result<OpenShard, Error>> + 'a>, Error> {
    match location {
        Location::Stdin | Location::Memory => Err(Error::file(location, ShardsFault::NoFolder)),
        Location::Path(index) => {
            let folders = folders(index).map_err(|error| Error::file(location, error))?;
            Ok(Box::new(files.map(move |file| {
                let path = locate(index, file, &folders)?;
                let source = source::open_file(&path, io);
                let source = source.map_err(|error| Error::file(path.as_path(), error))?;
                Ok((Location::Path(path), source))
            })))
        }
        Location::Remote(index) => {
            let addresses: Vec<_> = files.map(|file| index.with_file_name(file)).collect();
            let opened = source::remote::open_all(&addresses, io);
            let shard = |(address, opened)| {
                let location = Location::Remote(address);
                match opened {
                    Ok(source::Opened::Random(source)) => Ok((location, source)),
                    Ok(_) => Err(Error::file(&location, OpenError::from(RemoteError::NoRanges))),
                    Err(error) => Err(Error::file(&location, error)),
                }
            };
            Ok(Box::new(addresses.into_iter().zip(opened).map(shard)))
        }
    }
}

fn read_index(location: &Location, bytes: &mut source::Opened) -> Result<ShardIndex, Error> {
    if let source::Opened::Random(source) = bytes
        && source.request_gap().is_some()
    {
        source.advise(0..source.len().min(MAX_INDEX), Advice::Sequential);
    }
    // as long as it is, since growing would hold it twice
    let mut json = match bytes {
        source::Opened::Random(source) => Vec::with_capacity(source.len().min(MAX_INDEX) as usize),
        source::Opened::Forward(_) => Vec::new(),
    };
    let mut most = |reader: &mut dyn Read| reader.take(MAX_INDEX + 1).read_to_end(&mut json);
    match bytes {
        source::Opened::Random(source) => most(&mut Reader::new(source.as_ref())),
        source::Opened::Forward(stream) => most(stream),
    }
    .map_err(|error| Error::file(location, error))?;
    ShardIndex::parse(&json).map_err(|error| unfit(location, error))
}

fn unfit(location: &Location, error: ShardsError) -> Error {
    Error::file(location, FormatError::from(error))
}

/// The numbers of the files that hold tensors that one of these patterns means; of all without any.
fn wanted_files(
    location: &Location,
    index: &ShardIndex,
    patterns: &[String],
) -> Result<HashSet<usize>, Error> {
    if patterns.is_empty() {
        return Ok((0..index.files.len()).collect());
    }
    let names = index.tensors().map(|(name, _)| name);
    let found = pattern::find(names, patterns);
    let found = found.map_err(|fault| Error::file(location, fault))?;
    Ok(found.into_iter().map(|number| index.tensor(number).1).collect())
}

/// The folder of the index: the one that it was found in, and the one that it really lies in.
fn folders(path: &Path) -> std::io::Result<[PathBuf; 2]> {
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let real = fs::canonicalize(path)?;
    Ok([fs::canonicalize(parent)?, real.parent().unwrap_or(parent).to_owned()])
}

/// The path of a shard, unless it is a link out of the folder.
fn locate(index: &Path, file: &str, folders: &[PathBuf]) -> Result<PathBuf, Error> {
    let path = index.with_file_name(file);
    let real = fs::canonicalize(&path).map_err(|error| Error::file(path.as_path(), error))?;
    if folders.iter().any(|folder| real.parent() == Some(folder)) {
        return Ok(path);
    }
    Err(Error::file(path.as_path(), ShardsFault::Outside))
}

/// Why the files of a sharded checkpoint cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum ShardsFault {
    /// A folder is no checkpoint.
    #[error("is a directory without the index of a sharded checkpoint (*.safetensors.index.json)")]
    NoIndex,
    /// A folder holds several indexes, and none of the usual name.
    #[error("the folder holds several indexes: {}", .0.join(", "))]
    SeveralIndexes(Vec<String>),
    /// The index comes through a pipe, which lies in no folder.
    #[error("the index of a sharded checkpoint has to be opened by its name")]
    NoFolder,
    /// A shard is in another format.
    #[error("a shard has to be a .safetensors file")]
    NotSafetensors,
    /// A shard is a link to somewhere else.
    #[error("the shard lies outside of the folder of its index")]
    Outside,
}

impl Fault for ShardsFault {}
