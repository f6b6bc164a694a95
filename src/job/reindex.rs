//! A new index of a checkpoint, which agrees with its shards.

use std::path::PathBuf;

use crate::error::{Error, Fault};
use crate::formats::shards::{self, ShardsError};
use crate::formats::{Foreign, NotRead, open, safetensors, torch};
use crate::input::{Location, OpenOptions, UseOfIndex};
use crate::shape;
use crate::sink::{self, Destination, SinkOptions};
use crate::tensor::shortened;

/// The most tensors that a note names, of the tensors that only the old index has.
const NAMED: usize = 10;

/// Write the index of a checkpoint anew, next to its shards: whole or not at all. All shards in the
/// folder count, whatever the old index says; a note names the tensors that only the old one has.
pub fn reindex(location: &Location, options: &OpenOptions) -> Result<(), Error> {
    let path = location.path().ok_or_else(|| Error::file(location, ReindexFault::NoFolder))?;
    let mut options = OpenOptions { tensors: Vec::new(), exclude: Vec::new(), ..options.clone() };
    let notes = std::mem::take(&mut options.notes);
    options.index = UseOfIndex::Widened;
    let input = open(location, &options).or_else(|error| {
        let is_no_index = error.cause.downcast_ref() == Some(&NotRead(Foreign::JsonObject));
        // an index that cannot be parsed is ignored
        if is_no_index || error.cause.is::<ShardsError>() {
            options.index = UseOfIndex::Ignored;
            return open(location, &options);
        }
        Err(error)
    })?;
    let metadata = input.checkpoint().map(|it| it.index.metadata.clone()).unwrap_or_default();
    let known = input.checkpoint().filter(|it| !it.is_folder).map(|it| it.name.clone());
    let mut gone = input.missing().filter_map(|it| Some(shortened(it.tensor?)));
    let named = Vec::from_iter(gone.by_ref().take(NAMED)).join(", ");
    match gone.count() {
        _ if named.is_empty() => {}
        0 => notes.add(format_args!("{location}: only in the old index: {named}")),
        more => {
            notes.add(format_args!("{location}: only in the old index: {named} and {more} more"))
        }
    }
    let format = input.contents.format;
    let one_of_folder = |one| path.is_dir() && format == one;
    let default = if format == &shards::FORMAT || one_of_folder(&safetensors::FORMAT) {
        shards::INDEX
    } else if format == &shards::OF_TORCH || one_of_folder(&torch::FORMAT) {
        shards::TORCH_INDEX
    } else {
        return Err(Error::file(location, ReindexFault::OneFile));
    };
    let own = input.location.file_name().unwrap_or_default().to_string_lossy();
    let tensors = &input.contents.tensors;
    if tensors.is_empty() {
        return Err(Error::file(location, ReindexFault::NoShards));
    }
    let mut bytes = 0u64;
    let mut elements = 0u64;
    let mut listed = Vec::with_capacity(tensors.len());
    for (number, tensor) in tensors.iter().enumerate() {
        bytes = bytes.saturating_add(tensor.bytes());
        elements = elements.saturating_add(shape::element_count(&tensor.shape).unwrap_or(0));
        let file =
            input.container.shards.get(tensor.shard()).map_or(&*own, |file| file.name.as_str());
        listed.push((tensors.name(number).unwrap_or_default(), file));
    }
    let json = shards::index_json(&listed, metadata, bytes, elements);
    let json = json.map_err(|error| Error::file(location, error))?;
    let target = match known {
        Some(name) if path.is_dir() => path.join(name),
        Some(_) => path.to_owned(),
        None if path.is_dir() => path.join(default),
        None => path.with_file_name(default),
    };
    write(target, &json)
}

fn write(path: PathBuf, json: &[u8]) -> Result<(), Error> {
    let options =
        SinkOptions { len: Some(json.len() as u64), force: true, ..SinkOptions::default() };
    let failed = |error| Error::file(path.as_path(), error);
    let target = Destination::Path(path.clone());
    let sink = sink::create(&target, options).map_err(failed)?;
    sink.write_at(0, json).map_err(failed)?;
    sink.commit().map_err(failed)
}

#[derive(Debug, thiserror::Error)]
pub enum ReindexFault {
    #[error("an index is written for the shards of a local folder")]
    NoFolder,
    #[error("is not a checkpoint of several files, and needs no index")]
    OneFile,
    #[error("the folder has no shards that hold tensors")]
    NoShards,
}

impl Fault for ReindexFault {}
