//! A folder of shards as output: each tensor stays in the file that it came from.

use tslice::format::{safetensors, shards};
use tslice::shape;

use super::input::Checkpoint;
use super::output::{Frame, Item, Output, Placed, Prepared, too_large};
use super::report::Failure;

/// One file of the folder: its name, the bytes before its elements, and those of its elements.
pub(crate) struct FolderFile {
    pub(crate) name: String,
    pub(crate) header: Vec<u8>,
    pub(crate) bytes: u64,
}

impl FolderFile {
    /// Bytes of the whole file.
    pub(crate) fn len(&self) -> u64 {
        self.header.len() as u64 + self.bytes
    }
}

/// Give tensors, each with the number of its shard, their places in files of the same names, and
/// write a new index. The tensors stand in the order of the shards.
pub(crate) fn prepare(
    output: &Output,
    items: &[Item<'_>],
    shards: &[usize],
    checkpoint: &Checkpoint,
) -> Result<Prepared, Failure> {
    let mut tensors: Vec<Placed> = Vec::with_capacity(items.len());
    let mut files: Vec<FolderFile> = Vec::new();
    let mut start = 0u64;
    let mut entries = Vec::with_capacity(items.len());
    for group in shards.chunk_by(|a, b| a == b) {
        let items = &items[tensors.len()..tensors.len() + group.len()];
        let first = tensors.len();
        let mut bytes = 0u64;
        for item in items {
            let placed = output.place(item, bytes).map_err(|error| error.of_tensor(item.name))?;
            bytes = bytes.checked_add(placed.bytes).ok_or_else(too_large)?;
            tensors.push(placed);
        }
        let header = {
            let placed = items.iter().zip(&tensors[first..]);
            let described: Vec<_> = placed.map(|(item, to)| to.described(item.name)).collect();
            safetensors::header(&described, &checkpoint.metadata[group[0]]).map_err(Failure::new)?
        };
        let before = start + header.len() as u64;
        tensors[first..].iter_mut().for_each(|placed| placed.at += before);
        start = before.checked_add(bytes).ok_or_else(too_large)?;
        let name = checkpoint.index.files[group[0]].clone();
        entries.extend(items.iter().map(|item| (item.name, name.clone())));
        files.push(FolderFile { name, header, bytes });
    }
    let total = tensors.iter().map(|tensor| tensor.bytes).sum();
    let elements = tensors.iter().filter_map(|tensor| shape::element_count(&tensor.shape)).sum();
    let entries: Vec<_> = entries.iter().map(|(tensor, file)| (*tensor, file.as_str())).collect();
    let metadata = checkpoint.index.metadata.clone();
    let json = shards::index_json(&entries, metadata, total, elements).map_err(Failure::new)?;
    files.push(FolderFile { name: checkpoint.name.clone(), header: json, bytes: 0 });
    Ok(Prepared { tensors, frame: Frame::Folder(files), bytes: total })
}
