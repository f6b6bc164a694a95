//! A checkpoint as an output: a folder with `model.safetensors`, or with shards and a new index. Each tensor stays
//! in its file, or shards have a size limit and take consecutive tensors while they fit.

use std::ops::Range;
use std::path::Path;

use crate::error::Cause;
use crate::formats::headed::{Header, PLAIN};
use crate::formats::safetensors::SafetensorsHeader;
use crate::formats::shards::{INDEX, ONE, old_shards};
use crate::formats::{safetensors, shards};
use crate::output::LayoutFault;
use crate::output::layout::{
    Entries, MetadataKind, OutputFormat, OutputLayout, OutputTensor, Request, WriteAt,
};
use crate::shape;
use crate::sink::{Destination, Draft, FolderSink, SinkError, SinkOptions, Targets};

pub(crate) static OUTPUT: OutputFormat = OutputFormat {
    name: "sharded safetensors",
    holds_several: true,
    metadata: MetadataKind::Texts,
    has_shards: true,
    stored_dtype: safetensors::stored_dtype,
    lay_out,
    ..PLAIN
};

/// The files of a folder, laid out one after the other.
pub(crate) struct FolderFiles {
    /// Shards, other files, and the index.
    pub(crate) files: Vec<FolderFile>,
    pub(crate) old: OldFiles,
}

/// The files of an existing folder that an output removes.
pub(crate) enum OldFiles {
    /// Only files with the names of new files.
    None,
    /// Also the shards of the old index, whatever their names.
    OfIndex,
    /// All files, if this is true of the folder; otherwise the folder is refused.
    AllIf(fn(&Path) -> bool),
}

pub(crate) struct FolderFile {
    pub(crate) name: String,
    pub(crate) first: usize,
    /// The bytes before the elements, and the length of the elements.
    pub(crate) header: Header,
    pub(crate) bytes: u64,
}

impl FolderFile {
    pub(crate) fn len(&self) -> u64 {
        self.header.len() + self.bytes
    }
}

impl FolderFiles {
    /// The files, each with the position of its first byte.
    fn placed(&self) -> impl Iterator<Item = (&FolderFile, u64)> {
        self.files.iter().scan(0, |start, file| {
            let at = *start;
            *start += file.len();
            Some((file, at))
        })
    }
}

/// Consecutive tensors that form one file.
struct Shard {
    tensors: Range<usize>,
    bytes: u64,
    /// The input file of the tensors, where tensors stay in their files.
    input_shard: usize,
}

/// Divide the tensors into shards: by size, or by their input file. Tensors are ordered by input file then.
fn shards_of(tensors: &Entries, size: Option<u64>) -> Result<Vec<Shard>, LayoutFault> {
    let mut shards: Vec<Shard> = Vec::new();
    for (number, OutputTensor { bytes, shard: input_shard, .. }) in tensors.iter().enumerate() {
        let fits = |shard: &&mut Shard| match size {
            Some(size) => shard.bytes.saturating_add(bytes) <= size,
            None => shard.input_shard == input_shard,
        };
        match shards.last_mut().filter(fits) {
            Some(shard) => {
                shard.tensors.end = number + 1;
                shard.bytes = shard.bytes.checked_add(bytes).ok_or(LayoutFault::TooLarge)?;
            }
            None => shards.push(Shard { tensors: number..number + 1, bytes, input_shard }),
        }
    }
    Ok(shards)
}

fn lay_out(request: &Request<'_>) -> Result<Box<dyn OutputLayout>, Cause> {
    let tensors = request.tensors;
    let input = request.checkpoint;
    let original = input.filter(|_| request.shard_size.is_none());
    let is_one = request.shard_size.is_none() && original.is_none();
    let size = if is_one { Some(u64::MAX) } else { request.shard_size };
    let shards = shards_of(tensors, size)?;
    let mut files = Vec::with_capacity(shards.len());
    let mut end = 0u64;
    for (number, Shard { tensors: range, bytes, input_shard }) in shards.iter().enumerate() {
        let (name, metadata) = match original {
            Some(original) => {
                let metadata = request.change.of(&original.metadata[*input_shard]);
                (of_safetensors(&original.index.files[*input_shard]), metadata)
            }
            None if is_one => (ONE.to_owned(), request.change.of(&request.metadata.texts)),
            None => {
                let name = format!("model-{:05}-of-{:05}.safetensors", number + 1, shards.len());
                (name, request.change.of(&request.metadata.texts))
            }
        };
        let header =
            Header::Made(Box::new(SafetensorsHeader::new(request, range.clone(), &metadata)?));
        let file = FolderFile { name, first: range.start, header, bytes: *bytes };
        end = end.checked_add(file.len()).ok_or(LayoutFault::TooLarge)?;
        files.push(file);
    }
    let elements = tensors.iter().map(|entry| shape::element_count(&entry.shape).unwrap_or(0));
    let mut names = tensors.names();
    let listed = shards.iter().zip(&files).flat_map(|(shard, file)| {
        let names: Vec<&str> = names.by_ref().take(shard.tensors.len()).collect();
        names.into_iter().map(|name| (name, file.name.as_str()))
    });
    let listed: Vec<_> = listed.collect();
    let metadata = input.map(|input| input.index.metadata.clone()).unwrap_or_default();
    let json = shards::index_json(&listed, metadata, request.bytes, elements.sum());
    let index = Header::Bytes(json?);
    let beside = |name: String, header| FolderFile { name, first: tensors.len(), header, bytes: 0 };
    let others = request.files.iter().filter(|file| file.name != INDEX);
    files.extend(others.map(|file| beside(file.name.clone(), Header::Copy(file.clone()))));
    if !is_one {
        files
            .push(beside(of_safetensors(original.map_or(INDEX, |original| &original.name)), index));
    }
    let old = if size.is_some() { OldFiles::OfIndex } else { OldFiles::None };
    Ok(Box::new(FolderFiles { files, old }))
}

/// The `.safetensors` name for a shard or index of PyTorch.
fn of_safetensors(name: &str) -> String {
    let renamed = |stem: &str, end: &str| {
        let stem = stem.strip_prefix("pytorch_").unwrap_or(stem);
        format!("{stem}.safetensors{end}")
    };
    match (name.strip_suffix(".bin"), name.strip_suffix(".bin.index.json")) {
        (Some(stem), _) => renamed(stem, ""),
        (_, Some(stem)) => renamed(stem, ".index.json"),
        _ => name.to_owned(),
    }
}

impl OutputLayout for FolderFiles {
    fn size(&self) -> Option<u64> {
        Some(self.files.iter().map(FolderFile::len).sum())
    }

    fn starts(&self) -> Box<dyn Iterator<Item = (usize, u64)> + '_> {
        Box::new(self.placed().flat_map(|(file, at)| file.header.starts(file.first, at)))
    }

    fn check(
        &self,
        target: &Destination,
        options: SinkOptions,
        targets: &mut Targets,
    ) -> Result<(), SinkError> {
        match target {
            Destination::Path(path) => match self.old {
                OldFiles::AllIf(goes) => FolderSink::check_whole(path, goes, options, targets),
                _ => {
                    let names = self.files.iter().map(|file| &*file.name);
                    FolderSink::check(path, names, options, targets)
                }
            },
            Destination::Stdout => Err(SinkError::IsADirectory),
        }
    }

    fn create(
        &self,
        target: &Destination,
        options: SinkOptions,
    ) -> Result<Box<dyn Draft>, SinkError> {
        let Destination::Path(path) = target else { return Err(SinkError::IsADirectory) };
        let files = self.files.iter();
        let files: Vec<_> =
            files.map(|file| (&*file.name, file.len(), file.header.mode())).collect();
        let old = match self.old {
            OldFiles::None => Ok(Vec::new()),
            OldFiles::OfIndex => old_shards(path),
            OldFiles::AllIf(goes) => {
                return Ok(Box::new(FolderSink::create_whole(path, &files, goes, options)?));
            }
        };
        let what = "its index cannot be read";
        let old = old.map_err(|error| SinkError::Os { what, error })?;
        Ok(Box::new(FolderSink::create(path, &files, &old, options)?))
    }

    fn shared_files(&self) -> Vec<u64> {
        self.placed().map(|(_, at)| at).collect()
    }

    fn grow(&mut self, wanted: &dyn Fn(&Range<u64>) -> u64) -> Vec<(u64, u64)> {
        let mut start = 0;
        let mut grown = Vec::new();
        for file in &mut self.files {
            let end = start + file.len();
            let behind = start + file.header.len();
            let bytes = wanted(&(start..end));
            if file.header.grow(bytes) {
                grown.push((behind, bytes));
            }
            start = end;
        }
        grown
    }

    fn write_headers(&self, write: &WriteAt<'_>) -> Result<(), SinkError> {
        self.placed().try_for_each(|(file, at)| file.header.write(at, write))
    }
}
