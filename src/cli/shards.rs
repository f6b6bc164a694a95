//! A sharded checkpoint as one input: its index, and those of its files that are wanted.

use std::collections::HashSet;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use tslice::format::shards::{MAX_INDEX, ShardIndex, ShardsError};
use tslice::format::{Contents, Format, FormatError};
use tslice::source::{self, ConcatSource, Reader};

use super::choose::Pattern;
use super::input::{Checkpoint, Input, Wanted, failed_source, names, unnamed};
use super::report::Failure;

/// Open the shards that an index names, as far as they are wanted.
pub(crate) fn open(
    path: &Path,
    mut bytes: source::Opened,
    wanted: &Wanted<'_>,
) -> Result<Input, Failure> {
    let index = read_index(path, &mut bytes)?;
    if path == Path::new("-") {
        return Err(Failure::file(
            path,
            "the index of a sharded checkpoint has to be opened by its name",
        ));
    }
    let folders = folders(path).map_err(|error| Failure::io(path, &error))?;
    let files = wanted_files(path, &index, wanted)?;
    let mut joined = ConcatSource::default();
    let mut tensors = Vec::new();
    let mut metadata = Vec::new();
    let mut starts = Vec::new();
    for (number, file) in index.files.iter().enumerate() {
        metadata.push(Default::default());
        starts.push(0);
        if !files.contains(&number) {
            continue;
        }
        let shard_path = locate(path, file, &folders)?;
        // never an index again, which could name itself
        let shard = Input::open_with_header(&shard_path, wanted.io)?;
        if shard.contents.format != Format::Safetensors {
            return Err(Failure::file(&shard_path, "a shard has to be a .safetensors file"));
        }
        let source::Opened::Random(source) = shard.bytes else {
            return Err(Failure::file(&shard_path, "a shard has to be a regular file"));
        };
        index.check_shard(number, &shard.contents).map_err(|error| misplaced(path, error))?;
        let base =
            joined.push(file.clone(), source).map_err(|error| failed_source(path, &error))?;
        tensors.extend(shard.contents.tensors.into_iter().map(|mut tensor| {
            tensor.part = number;
            tensor.offset += base;
            tensor
        }));
        (metadata[number], starts[number]) = (shard.contents.metadata, base);
    }
    let all = metadata.iter().flatten().map(|(key, value)| (key.clone(), value.clone())).collect();
    let contents = Contents { format: Format::Sharded, tensors, metadata: all, header_len: 0 };
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let checkpoint = Checkpoint { name, index, metadata, starts };
    let bytes = source::Opened::Random(Box::new(joined));
    let checkpoint = Some(Box::new(checkpoint));
    Ok(Input { checkpoint, ..Input::of_file(path, bytes, contents) })
}

fn read_index(path: &Path, bytes: &mut source::Opened) -> Result<ShardIndex, Failure> {
    let mut json = Vec::new();
    let mut most = |reader: &mut dyn Read| reader.take(MAX_INDEX + 1).read_to_end(&mut json);
    match bytes {
        source::Opened::Random(source) => most(&mut Reader::new(source.as_ref())),
        source::Opened::Forward(stream) => most(stream),
    }
    .map_err(|error| Failure::io(path, &error))?;
    let index = match json.len() as u64 {
        0..=MAX_INDEX => ShardIndex::parse(&json),
        _ => Err(ShardsError::TooLong),
    };
    index.map_err(|error| misplaced(path, error))
}

fn misplaced(path: &Path, error: ShardsError) -> Failure {
    Failure::file(path, FormatError::from(error))
}

/// The numbers of the files that hold what is wanted: of all tensors, where no `-t` says less.
fn wanted_files(
    path: &Path,
    index: &ShardIndex,
    wanted: &Wanted<'_>,
) -> Result<HashSet<usize>, Failure> {
    if wanted.patterns.is_empty() || wanted.rest {
        return Ok((0..index.files.len()).collect());
    }
    let all = index.tensors.iter().map(|(name, _)| name.as_str());
    let mut files = HashSet::new();
    for pattern in wanted.patterns {
        let found = Pattern::new(pattern).find(all.clone())?;
        if found.is_empty() {
            return Err(unnamed(path, pattern).hint(names(all)));
        }
        files.extend(found.into_iter().map(|number| index.tensors[number].1));
    }
    Ok(files)
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
fn locate(index: &Path, file: &str, folders: &[PathBuf]) -> Result<PathBuf, Failure> {
    let path = index.with_file_name(file);
    let real = fs::canonicalize(&path).map_err(|error| Failure::io(&path, &error))?;
    if folders.iter().any(|folder| real.parent() == Some(folder)) {
        return Ok(path);
    }
    Err(Failure::file(&path, "the shard lies outside of the folder of its index"))
}
