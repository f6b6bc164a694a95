//! A sharded checkpoint as an output: a folder, in which each tensor stays in the file that it
//! came from, and a new index.

use std::ops::Range;

use super::format::{Entry, Frame, Layout, OutputFormat, Request, WriteAt};
use crate::container::error::Cause;
use crate::container::fault::LayoutFault;
use crate::format::safetensors::{self, HeaderText};
use crate::format::{FormatError, shards};
use crate::shape;
use crate::sink::{self, Destination, FolderSink, Sink, SinkError};

pub(super) static FORMAT: OutputFormat = OutputFormat {
    name: "sharded safetensors",
    about: "",
    extensions: &[],
    holds_several: true,
    has_orders: false,
    has_deflate: false,
    is_text: false,
    stored_dtype: safetensors::stored_dtype,
    lay_out,
};

/// Files one after the other, as they are to lie in one folder.
struct Folder(Vec<File>);

/// One file: its name, the bytes before its elements, and the number of those of its elements.
struct File {
    name: String,
    header: Vec<u8>,
    bytes: u64,
}

impl File {
    fn len(&self) -> u64 {
        self.header.len() as u64 + self.bytes
    }
}

/// The tensors stand in the order of their shards.
fn lay_out(request: &Request<'_>) -> Result<Layout, Cause> {
    let checkpoint = request.checkpoint.ok_or(LayoutFault::Directory)?;
    let tensors = request.tensors;
    let mut files: Vec<File> = Vec::new();
    let mut starts = Vec::with_capacity(tensors.len());
    let (mut end, mut bytes, mut elements) = (0u64, 0, 0);
    let mut number = 0;
    while number < tensors.len() {
        let part = tensors.at(number).part;
        let name = &checkpoint.index.files[part];
        let shard = tensors.iter().skip(number).take_while(|tensor| tensor.part == part);
        let mut header = HeaderText::new(&checkpoint.metadata[part])?;
        for Entry { name: tensor, dtype, shape, bytes, .. } in shard.clone() {
            header.push(&tensor, &dtype, &shape, bytes)?;
            elements += shape::element_count(&shape).unwrap_or(0);
        }
        let header = header.finish()?;
        let before = end + header.len() as u64;
        end = before;
        for tensor in shard {
            starts.push(end);
            end = end.checked_add(tensor.bytes).ok_or(LayoutFault::TooLarge)?;
            number += 1;
        }
        bytes += end - before;
        files.push(File { name: name.clone(), header, bytes: end - before });
    }
    let file = |number| checkpoint.index.files[tensors.at(number).part].as_str();
    let listed: Vec<_> = tensors.names().enumerate().map(|(at, name)| (name, file(at))).collect();
    let metadata = checkpoint.index.metadata.clone();
    let json = shards::index_json(&listed, metadata, bytes, elements);
    let header = json.map_err(FormatError::from)?;
    files.push(File { name: checkpoint.name.clone(), header, bytes: 0 });
    Ok(Layout { starts, frame: Box::new(Folder(files)) })
}

impl Frame for Folder {
    fn size(&self) -> Option<u64> {
        Some(self.0.iter().map(File::len).sum())
    }

    fn check(&self, target: &Destination, options: sink::SinkOptions) -> Result<(), SinkError> {
        match target {
            Destination::Path(path) => {
                FolderSink::check(path, self.0.iter().map(|file| &*file.name), options)
            }
            Destination::Stdout => Err(SinkError::IsADirectory),
        }
    }

    fn create(
        &self,
        target: &Destination,
        options: sink::SinkOptions,
    ) -> Result<Box<dyn Sink>, SinkError> {
        let Destination::Path(path) = target else { return Err(SinkError::IsADirectory) };
        let lens: Vec<_> = self.0.iter().map(|file| (&*file.name, file.len())).collect();
        Ok(Box::new(FolderSink::create(path, &lens, options)?))
    }

    fn shared_files(&self) -> Vec<u64> {
        let begin = |start: &mut u64, file: &File| {
            let at = *start;
            *start += file.len();
            Some(at)
        };
        self.0.iter().scan(0, begin).collect()
    }

    fn grow(&mut self, wanted: &dyn Fn(&Range<u64>) -> u64) -> Vec<(u64, u64)> {
        let (mut start, mut grown) = (0, Vec::new());
        // the last file is the index
        let shards = self.0.len().saturating_sub(1);
        for file in &mut self.0[..shards] {
            let (end, behind) = (start + file.len(), start + file.header.len() as u64);
            let bytes = wanted(&(start..end));
            if safetensors::grow(&mut file.header, bytes) {
                grown.push((behind, bytes));
            }
            start = end;
        }
        grown
    }

    fn write_headers(&self, write: &WriteAt<'_>) -> Result<(), SinkError> {
        let mut start = 0;
        self.0.iter().try_for_each(|file| {
            let at = start;
            start += file.len();
            write(at, &file.header)
        })
    }
}
