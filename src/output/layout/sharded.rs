//! A sharded checkpoint as an output: a folder, in which each tensor stays in the file that it
//! came from, and a new index.

use std::ops::Range;

use super::entries::OutputTensor;
use super::format::{Frame, OutputFormat, Request};
use super::header::{Header, SafetensorsHeader, WriteAt};
use crate::error::Cause;
use crate::format::{FormatError, safetensors, shards};
use crate::output::fault::LayoutFault;
use crate::shape;
use crate::sink::{self, Destination, Draft, FolderSink, SinkError, Targets};

pub(super) static FORMAT: OutputFormat = OutputFormat {
    name: "sharded safetensors",
    about: "",
    extensions: &[],
    holds_several: true,
    has_metadata: true,
    has_orders: false,
    has_deflate: false,
    is_text: false,
    stored_dtype: safetensors::stored_dtype,
    lay_out,
};

/// Files one after the other, as they are to lie in one folder.
struct ShardFiles(Vec<ShardFile>);

/// One file.
struct ShardFile {
    name: String,
    /// The number of its first tensor.
    first: usize,
    /// What stands before its elements, and the bytes of those.
    header: Header,
    bytes: u64,
}

impl ShardFile {
    fn len(&self) -> u64 {
        self.header.len() + self.bytes
    }
}

impl ShardFiles {
    /// The files, and the position of the first byte of each.
    fn placed(&self) -> impl Iterator<Item = (&ShardFile, u64)> {
        self.0.iter().scan(0, |start, file| {
            let at = *start;
            *start += file.len();
            Some((file, at))
        })
    }
}

/// The tensors stand in the order of their shards.
fn lay_out(request: &Request<'_>) -> Result<Box<dyn Frame>, Cause> {
    let checkpoint = request.checkpoint.ok_or(LayoutFault::Directory)?;
    let tensors = request.tensors;
    let mut files: Vec<ShardFile> = Vec::new();
    let (mut end, mut bytes, mut elements) = (0u64, 0, 0);
    let mut first = 0;
    while first < tensors.len() {
        let part = tensors.at(first).part;
        let shard = (first..tensors.len()).map(|number| tensors.at(number));
        let (mut next, mut data) = (first, 0u64);
        for OutputTensor { shape, bytes, .. } in shard.take_while(|tensor| tensor.part == part) {
            data = data.checked_add(bytes).ok_or(LayoutFault::TooLarge)?;
            elements += shape::element_count(&shape).unwrap_or(0);
            next += 1;
        }
        let header = SafetensorsHeader::new(tensors, first..next, &checkpoint.metadata[part])?;
        let name = checkpoint.index.files[part].clone();
        let file = ShardFile { name, first, header: Header::Text(header), bytes: data };
        end = end.checked_add(file.len()).ok_or(LayoutFault::TooLarge)?;
        files.push(file);
        (first, bytes) = (next, bytes + data);
    }
    let file = |entry: OutputTensor| checkpoint.index.files[entry.part].as_str();
    let listed: Vec<_> = tensors.names().zip(tensors.iter().map(file)).collect();
    let metadata = checkpoint.index.metadata.clone();
    let json = shards::index_json(&listed, metadata, bytes, elements);
    let index = Header::Bytes(json.map_err(FormatError::from)?);
    files.push(ShardFile { name: checkpoint.name.clone(), first, header: index, bytes: 0 });
    Ok(Box::new(ShardFiles(files)))
}

impl Frame for ShardFiles {
    fn size(&self) -> Option<u64> {
        Some(self.0.iter().map(ShardFile::len).sum())
    }

    fn starts(&self) -> Box<dyn Iterator<Item = (usize, u64)> + '_> {
        Box::new(self.placed().map(|(file, at)| (file.first, at + file.header.len())))
    }

    fn check(
        &self,
        target: &Destination,
        options: sink::SinkOptions,
        targets: &mut Targets,
    ) -> Result<(), SinkError> {
        match target {
            Destination::Path(path) => {
                FolderSink::check(path, self.0.iter().map(|file| &*file.name), options, targets)
            }
            Destination::Stdout => Err(SinkError::IsADirectory),
        }
    }

    fn create(
        &self,
        target: &Destination,
        options: sink::SinkOptions,
    ) -> Result<Box<dyn Draft>, SinkError> {
        let Destination::Path(path) = target else { return Err(SinkError::IsADirectory) };
        let lens: Vec<_> = self.0.iter().map(|file| (&*file.name, file.len())).collect();
        Ok(Box::new(FolderSink::create(path, &lens, options)?))
    }

    fn shared_files(&self) -> Vec<u64> {
        self.placed().map(|(_, at)| at).collect()
    }

    fn grow(&mut self, wanted: &dyn Fn(&Range<u64>) -> u64) -> Vec<(u64, u64)> {
        let (mut start, mut grown) = (0, Vec::new());
        // the last file is the index
        let shards = self.0.len().saturating_sub(1);
        for file in &mut self.0[..shards] {
            let (end, behind) = (start + file.len(), start + file.header.len());
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
