//! llama.cpp's `.gguf` as one input, which may be split into several files.

use std::sync::Arc;

use crate::dtype::Endian;
use crate::error::{Error, ErrorKind, Fault, faults};
use crate::formats::gguf::{
    GgufError, GgufHeader, GgufMetadata, MetadataError, MetadataValue, SplitNumber,
};
use crate::formats::{first_bytes, gguf};
use crate::input::{
    Absent, Container, Contents, Format, Input, Location, Metadata, OpenOptions, RecognisedFile,
    ShardFile, TypedMetadata, Unreadable, UseOfIndex, open_bytes, seekable,
};
use crate::source::{ConcatSource, IoMode, Opened, Source};
use crate::tensor::{TensorInfo, Tensors, first_repeated};

/// llama.cpp's `.gguf`.
pub(crate) static FORMAT: Format = Format::new("gguf", gguf::begins, open);

/// Read the header of a file, and open the other files of its model, if there are any.
fn open(file: RecognisedFile<'_>) -> Result<Input, Error> {
    let RecognisedFile { location, bytes, options, progress } = file;
    let source = seekable(bytes, progress)?;
    let header = read_header(source.as_ref())?;
    if let Some(split) = header.split {
        return open_split(location, ModelFile { source, header }, split, options);
    }
    let mut container = Container::default();
    let tensors = readable(header.endian, header.tensors.iter(), &mut container.unreadable);
    let metadata = typed(header.metadata, &source, false);
    let contents = Contents { metadata, ..Contents::of(&FORMAT, tensors.collect()) };
    Ok(Input { container, ..Input::of_source(location, source, contents) })
}

/// The tensors of a file with this byte order, at their positions in the input. Unreadable tensors are added to
/// `unreadable`.
fn readable<'a>(
    endian: Endian,
    tensors: impl Iterator<Item = TensorInfo> + 'a,
    unreadable: &'a mut Vec<Unreadable>,
) -> impl Iterator<Item = TensorInfo> + 'a {
    tensors.filter_map(move |tensor| {
        if endian == Endian::Little {
            return Some(tensor);
        }
        let name = tensor.name.clone().unwrap_or_default();
        match tensor.with_little_blocks() {
            Ok(tensor) => Some(tensor),
            Err(fault) => {
                let error = GgufError::Tensor { name: name.clone(), fault };
                unreadable.push(Unreadable::new(name, TensorError(error)));
                None
            }
        }
    })
}

/// The error of one tensor of a file; the message names the format even where it is known.
#[derive(Debug, thiserror::Error)]
#[error("gguf: {0}")]
struct TensorError(GgufError);

impl Fault for TensorError {
    fn kind(&self) -> ErrorKind {
        self.0.kind()
    }
}

fn read_header(source: &dyn Source) -> Result<GgufHeader, Error> {
    let header = GgufHeader::read(source);
    // a file truncated meanwhile is the cause of any other error
    source.verify()?;
    Ok(header?)
}

/// A file of a model, and its header.
struct ModelFile {
    source: Arc<dyn Source>,
    header: GgufHeader,
}

/// Open all existing files of a split model; one of them is open.
fn open_split(
    location: &Location,
    own_shard: ModelFile,
    split: SplitNumber,
    options: &OpenOptions,
) -> Result<Input, Error> {
    let SplitNumber { number: own, count, tensors: said } = split;
    let stem = stem_of_names(location, own, count)?;
    let mut opened = Some(own_shard);
    let mut joined = ConcatSource::default();
    let mut tensors = Tensors::default();
    let mut container = Container::default();
    let mut metadata = Metadata::default();
    for number in 0..count {
        let name = format!("{stem}{}", end_of_name(number, count));
        let shard = match opened.take_if(|_| number == own) {
            Some(opened) => Ok(opened),
            None => open_shard(location, &name, SplitNumber { number, ..split }, options.io),
        };
        let ModelFile { source, header } = match shard {
            Ok(shard) => shard,
            Err(error) if options.index == UseOfIndex::Strict => return Err(error),
            Err(error) => {
                let reason = error.cause.to_string();
                let number = container.shards.len();
                container.absent.push(Absent { number, file: name.clone(), reason });
                container.shards.push(ShardFile { name, start: 0 });
                continue;
            }
        };
        let start = joined.push(name.clone(), Arc::clone(&source))?;
        let number = container.shards.len();
        let placed = header.tensors.iter().map(|it| it.placed(number, start));
        tensors.extend(readable(header.endian, placed, &mut container.unreadable));
        if metadata.typed.is_none() {
            metadata = typed(header.metadata, &source, true);
        }
        container.shards.push(ShardFile { name, start });
    }
    let said = said.filter(|_| container.absent.is_empty());
    let found = tensors.len() + container.unreadable.len();
    if let Some(said) = said.filter(|&said| said != found as u64) {
        return Err(GgufSplitFault::Tensors { said, found }.into());
    }
    if let Some(name) = first_repeated(tensors.names().map(Option::unwrap_or_default)) {
        let twice = GgufError::Twice { what: "of its tensors", name: name.to_owned() };
        return Err(twice.into());
    }
    for Absent { file, reason, .. } in &container.absent {
        options.notes.add(format_args!("{location}: {file} is missing, and its tensors: {reason}"));
    }
    let contents = Contents { metadata, ..Contents::of(&FORMAT, tensors) };
    Ok(Input { container, ..Input::of_source(location, Arc::new(joined), contents) })
}

/// The beginning of the names of a model's files; the open file is file `own` of `count`.
fn stem_of_names(location: &Location, own: u64, count: u64) -> Result<String, GgufSplitFault> {
    let Some(name) = location.file_name().map(|name| name.to_string_lossy()) else {
        return Err(GgufSplitFault::NoFolder { own, count });
    };
    let end = end_of_name(own, count);
    let Some(stem) = name.strip_suffix(&end).filter(|_| own < count) else {
        return Err(GgufSplitFault::Name { own, count, end });
    };
    // the number in a name may be anything: at most as many files are reported missing as a folder
    // may hold
    let most = u64::from(u16::MAX);
    if count > most {
        return Err(GgufSplitFault::Many { count, most });
    }
    Ok(stem.to_owned())
}

fn end_of_name(number: u64, count: u64) -> String {
    format!("-{:05}-of-{count:05}.gguf", number.saturating_add(1))
}

/// Open another file of a model, whose metadata must state this number.
fn open_shard(
    location: &Location,
    name: &str,
    split: SplitNumber,
    io: IoMode,
) -> Result<ModelFile, Error> {
    let location = location.with_file_name(name).unwrap_or_else(|| location.clone());
    let open = || {
        let source: Arc<dyn Source> = match open_bytes(&location, io)? {
            Opened::Random(source) => source.into(),
            Opened::Forward(_) => return Err(GgufSplitFault::Pipe.into()),
        };
        if !gguf::begins(&first_bytes(source.as_ref())?) {
            return Err(GgufSplitFault::NotGguf.into());
        }
        let header = read_header(source.as_ref())?;
        let SplitNumber { number, count, .. } = split;
        match header.split {
            Some(found) if (found.number, found.count) == (number, count) => {
                Ok(ModelFile { source, header })
            }
            _ => Err(GgufSplitFault::Place { number, count }.into()),
        }
    };
    open().map_err(|error: Error| error.in_file(&location))
}

/// The metadata of a `.gguf`, and the file that they are read from: the first of several.
pub(super) struct StoredMetadata {
    pub(super) keys: GgufMetadata,
    pub(super) source: Arc<dyn Source>,
    /// Whether its metadata say that it is a file of a split model.
    pub(super) is_split: bool,
}

fn typed(keys: GgufMetadata, source: &Arc<dyn Source>, is_split: bool) -> Metadata {
    let stored = StoredMetadata { keys, source: Arc::clone(source), is_split };
    Metadata { typed: Some(TypedMetadata(Arc::new(stored))), ..Metadata::default() }
}

/// The metadata of a `.gguf`, if the input is one.
pub(super) fn stored(metadata: &Metadata) -> Option<&StoredMetadata> {
    metadata.typed.as_ref()?.0.downcast_ref()
}

impl Input {
    /// Whether it is a `.gguf`, whose metadata have values of several types.
    pub fn has_gguf_metadata(&self) -> bool {
        stored(&self.contents.metadata).is_some()
    }

    /// Visit each key of the metadata of a `.gguf` with its value, which is read now.
    pub fn visit_gguf(
        &self,
        show: &mut dyn FnMut(&str, MetadataValue<'_, '_>) -> Result<(), MetadataError>,
    ) -> Result<(), MetadataError> {
        let stored = stored(&self.contents.metadata);
        stored.map_or(Ok(()), |stored| stored.keys.visit(stored.source.as_ref(), show))
    }
}

/// Why the files of a split model cannot be opened. Numbers of files count from 0, and are shown from 1.
#[derive(Debug, thiserror::Error)]
pub enum GgufSplitFault {
    #[error(
        "is file {} of {count} of a split model, which must be opened by its name",
        .own.saturating_add(1)
    )]
    NoFolder { own: u64, count: u64 },
    #[error(
        "is file {} of {count} of a split model, so its name must end in {end}",
        .own.saturating_add(1)
    )]
    Name { own: u64, count: u64, end: String },
    #[error("is of a split model of {count} files, and at most {most} are read")]
    Many { count: u64, most: u64 },
    #[error("should be file {} of {count} of a split model by its metadata", .number + 1)]
    Place { number: u64, count: u64 },
    #[error("a file of a split model must be a .gguf")]
    NotGguf,
    #[error("a file of a split model cannot be a pipe")]
    Pipe,
    #[error("the files of the split model should hold {said} tensors, and hold {found}")]
    Tensors { said: u64, found: usize },
}

faults!(Damaged: GgufSplitFault);
