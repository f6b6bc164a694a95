//! A checkpoint in a folder: its index and its shards.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::{fs, io};

use super::{INDEX, MAX_INDEX, ONE, ShardsFault, TORCH_INDEX};
use crate::error::Error;
use crate::formats::torch::METADATA as DISTRIBUTED;
use crate::formats::{Foreign, NotRead};
use crate::input::{Notes, ShardIndex, UseOfIndex, names_in};
use crate::source::open_at_once;

/// The usual name of an index, and the text that any name of such an index contains.
type IndexNames = (&'static str, &'static str);
const OF_SAFETENSORS: IndexNames = (INDEX, ".safetensors.index.");
const OF_TORCH: IndexNames = (TORCH_INDEX, ".bin.index.");

/// Whether a file with this name is the index of a checkpoint, whatever its content.
pub(crate) fn is_index(name: &str) -> bool {
    [OF_SAFETENSORS, OF_TORCH].into_iter().any(|(_, part)| is_index_of(name, part))
}

fn is_index_of(name: &str, part: &str) -> bool {
    name.contains(part) && name.ends_with(".json")
}

pub(crate) enum CheckpointFiles {
    /// A single file: the whole checkpoint, or its index.
    One(PathBuf),
    Shards(Vec<String>),
}

/// Find the checkpoint in a folder: `model.safetensors`, an index, or shards.
pub(crate) fn checkpoint_in(
    folder: &Path,
    index: UseOfIndex,
    notes: &Notes,
) -> Result<CheckpointFiles, Error> {
    let names = names_in(folder).map_err(|error| Error::file(folder, error))?;
    if names.iter().any(|name| name == ONE) {
        let others = (index != UseOfIndex::Ignored).then(|| index_of_others(folder, &names));
        let Some(index) = others.flatten() else {
            return Ok(CheckpointFiles::One(folder.join(ONE)));
        };
        let folder = folder.display();
        notes.add(format_args!("{folder}: its index names other files, so that {ONE} is not read"));
        return Ok(CheckpointFiles::One(index));
    }
    if index != UseOfIndex::Ignored {
        let mut indexes = [OF_SAFETENSORS, OF_TORCH].into_iter();
        if let Some(index) = indexes.find_map(|kind| index_among(folder, &names, kind)) {
            return Ok(CheckpointFiles::One(index?));
        }
    }
    shards_among(folder, names).map(|mut shards| match shards.as_slice() {
        [_] => CheckpointFiles::One(folder.join(shards.remove(0))),
        _ => CheckpointFiles::Shards(shards),
    })
}

/// The shards in a folder, in natural order.
pub(crate) fn shards_in(folder: &Path) -> Result<Vec<String>, Error> {
    shards_among(folder, names_in(folder).map_err(|error| Error::file(folder, error))?)
}

fn shards_among(folder: &Path, names: Vec<String>) -> Result<Vec<String>, Error> {
    let is_there = |other: &str| names.iter().any(|name| name == other);
    let foreign = |kind| Err(Error::file(folder, NotRead(kind)));
    let ends = |name: &&String, end: &str| name.ends_with(end) && !name.starts_with('.');
    let of = |begin: &str, end: &str| -> Vec<String> {
        let shards = names.iter().filter(|name| ends(name, end) && name.starts_with(begin));
        shards.cloned().collect()
    };
    let shards = [of("", ".safetensors"), of("pytorch_model", ".bin")];
    match shards.into_iter().find(|shards| !shards.is_empty()) {
        Some(shards) => Ok(shards),
        None if names.iter().any(|name| name == "model_index.json") => foreign(Foreign::Diffusers),
        None if is_there(DISTRIBUTED) => Ok(vec![DISTRIBUTED.to_owned()]),
        None if names.iter().any(|name| name.ends_with(".distcp")) => foreign(Foreign::DcpFolder),
        None if ["_METADATA", "_CHECKPOINT_METADATA", "manifest.ocdbt"]
            .into_iter()
            .any(is_there) =>
        {
            foreign(Foreign::Orbax)
        }
        None => Err(Error::file(folder, ShardsFault::NoIndex)),
    }
}

/// The index in a folder that names files other than `model.safetensors`, some of which exist.
fn index_of_others(folder: &Path, names: &[String]) -> Option<PathBuf> {
    let index = index_among(folder, names, OF_SAFETENSORS)?.ok()?;
    let files = files_of(&index).ok()?;
    let is_there = |file: &String| names.contains(file);
    (!files.iter().any(|file| file == ONE) && files.iter().any(is_there)).then_some(index)
}

/// The files that an index names; none where the index is invalid.
fn files_of(index: &Path) -> io::Result<Vec<String>> {
    let mut json = Vec::new();
    // opening a FIFO must not wait for its writer
    let file = open_at_once(index, false)?;
    file.take(MAX_INDEX + 1).read_to_end(&mut json)?;
    Ok(ShardIndex::parse(&json).map(|index| index.files).unwrap_or_default())
}

/// The index among the names in a folder; of several, the one with the usual name.
fn index_among(
    folder: &Path,
    names: &[String],
    (usual, part): IndexNames,
) -> Option<Result<PathBuf, Error>> {
    let is_one = |name: &&String| is_index_of(name, part);
    let indexes: Vec<&String> = names.iter().filter(is_one).collect();
    let of_usual_name = indexes.iter().find(|name| ***name == usual);
    match (of_usual_name, indexes.as_slice()) {
        (_, []) => None,
        (Some(name), _) | (None, [name]) => Some(Ok(folder.join(name))),
        (None, _) => {
            let shown = indexes.into_iter().cloned().collect();
            Some(Err(Error::file(folder, ShardsFault::SeveralIndexes(shown))))
        }
    }
}

/// The single file that a folder is read as; `None` for an index or several shards.
pub(crate) fn single_file(path: &Path) -> Option<PathBuf> {
    match checkpoint_in(path, UseOfIndex::Followed, &Notes::default()).ok()? {
        CheckpointFiles::One(file) if file.extension().is_none_or(|it| it != "json") => Some(file),
        _ => None,
    }
}

/// The index in a folder, and its shards; none where there is no valid index.
pub(crate) fn old_shards(folder: &Path) -> io::Result<Vec<String>> {
    if !found(folder)?.is_some_and(|folder| folder.is_dir()) {
        return Ok(Vec::new());
    }
    let Some(Ok(index)) = index_among(folder, &names_in(folder)?, OF_SAFETENSORS) else {
        return Ok(Vec::new());
    };
    if !found(&index)?.is_some_and(|index| index.is_file()) {
        return Ok(Vec::new());
    }
    let files = files_of(&index)?;
    let name = index.file_name().map(|name| name.to_string_lossy().into_owned());
    // an index may name any file
    let shards = files.into_iter().filter(|file| file.ends_with(".safetensors"));
    Ok(shards.chain(name).collect())
}

/// The metadata of a path; `None` where nothing exists there.
fn found(path: &Path) -> io::Result<Option<fs::Metadata>> {
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        found => found.map(Some),
    }
}
