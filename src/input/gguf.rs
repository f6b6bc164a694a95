//! llama.cpp's `.gguf` as one input, which may be split into several files.

use std::sync::Arc;

use super::open::{InputFormat, OpenOptions, RecognisedFile, UseOfIndex};
use crate::error::{Error, Fault};
use crate::format::gguf::{GgufError, GgufHeader, SplitPlace};
use crate::format::{Contents, Format, FormatError, Tensors, first_repeated, gguf};
use crate::input::single::kept;
use crate::input::{Absent, Bytes, GgufPart, Input, Location, PartFile, failed_source, single};
use crate::source;
use crate::source::{ConcatSource, IoMode, Source};

/// llama.cpp's `.gguf`.
pub(super) const FORMAT: InputFormat =
    InputFormat { format: Format::Gguf, begins: gguf::begins, open };

/// Read the header of a file, and open the others of its model, if there are any.
fn open(file: RecognisedFile<'_>) -> Result<Input, Error> {
    let RecognisedFile { location, bytes, options, progress } = file;
    let source = kept(location, bytes, progress)?;
    let header = read_header(location, source.as_ref())?;
    match header.split {
        Some(place) => open_split(location, source, header, place, options),
        None => {
            let contents = Contents::of(Format::Gguf, header.tensors);
            let part = GgufPart { metadata: header.metadata, source: Arc::clone(&source) };
            let input = Input::of_file(location, Bytes::Random(source), contents);
            Ok(Input { gguf: Some(part), ..input })
        }
    }
}

fn read_header(location: &Location, source: &dyn Source) -> Result<GgufHeader, Error> {
    let header = GgufHeader::read(source);
    // a file cut short in the meantime is the reason for whatever its header seems to say
    source.verify().map_err(|error| failed_source(location, error))?;
    header.map_err(|error| Error::file(location, error))
}

/// Open all files of a model that are there, of which one is open.
fn open_split(
    location: &Location,
    source: Arc<dyn Source>,
    header: GgufHeader,
    place: SplitPlace,
    options: &OpenOptions,
) -> Result<Input, Error> {
    let SplitPlace { number: own, count, tensors: said } = place;
    let name = |number: u64| format!("-{:05}-of-{count:05}.gguf", number.saturating_add(1));
    let failed = |fault| Error::file(location, fault);
    let Some(own_name) = location.file_name().map(|name| name.to_string_lossy()) else {
        return Err(failed(GgufSplitFault::NoFolder { own, count }));
    };
    let Some(stem) = own_name.strip_suffix(&name(own)).filter(|_| own < count) else {
        return Err(failed(GgufSplitFault::Name { own, count, end: name(own) }));
    };
    let mut opened = Some((source, header));
    let (mut joined, mut tensors) = (ConcatSource::default(), Tensors::default());
    let (mut parts, mut first, mut absent) = (Vec::new(), None, Vec::new());
    // names may say anything: of what is not there no more is said than a folder may hold
    let most = u64::from(u16::MAX);
    if count > most {
        return Err(failed(GgufSplitFault::Many { count, most }));
    }
    for number in 0..count {
        let name = format!("{stem}{}", name(number));
        let part = match opened.take_if(|_| number == own) {
            Some(opened) => Ok(opened),
            None => open_part(location, &name, SplitPlace { number, ..place }, options.io),
        };
        let (source, header) = match part {
            Ok(part) => part,
            Err(error) if options.index == UseOfIndex::Strict => return Err(error),
            Err(error) => {
                let reason = error.cause.to_string();
                absent.push(Absent { number: parts.len(), file: name.clone(), reason });
                parts.push(PartFile { name, start: 0 });
                continue;
            }
        };
        let pushed = joined.push(name.clone(), Arc::clone(&source));
        let start = pushed.map_err(|error| failed_source(location, error))?;
        tensors.extend(header.tensors.iter().map(|it| it.placed(parts.len(), start)));
        first.get_or_insert(GgufPart { metadata: header.metadata, source });
        parts.push(PartFile { name, start });
    }
    let said = said.filter(|_| absent.is_empty());
    if let Some(said) = said.filter(|&said| said != tensors.len() as u64) {
        return Err(failed(GgufSplitFault::Tensors { said, found: tensors.len() }));
    }
    if let Some(name) = first_repeated(tensors.names().map(Option::unwrap_or_default)) {
        let twice = GgufError::Twice { what: "of its tensors", name: name.to_owned() };
        return Err(Error::file(location, FormatError::from(twice)));
    }
    let contents = Contents::of(Format::Gguf, tensors);
    let input = Input::of_file(location, Bytes::Random(Arc::new(joined)), contents);
    for Absent { file, reason, .. } in &absent {
        options.notes.add(format_args!("{location}: {file} is missing, and its tensors: {reason}"));
    }
    Ok(Input { parts, gguf: first, absent, ..input })
}

/// A file of a model, and its header.
type OpenPart = (Arc<dyn Source>, GgufHeader);

/// Open another file of a model, which must say that it is in this place.
fn open_part(
    location: &Location,
    name: &str,
    place: SplitPlace,
    io: IoMode,
) -> Result<OpenPart, Error> {
    let part = location.with_file_name(name).unwrap_or_else(|| location.clone());
    let source: Arc<dyn Source> = match single::open_bytes(&part, io)? {
        source::Opened::Random(source) => source.into(),
        source::Opened::Forward(_) => return Err(Error::file(&part, GgufSplitFault::Pipe)),
    };
    if !gguf::begins(&single::first_bytes(&part, source.as_ref())?) {
        return Err(Error::file(&part, GgufSplitFault::NotGguf));
    }
    let header = read_header(&part, source.as_ref())?;
    let SplitPlace { number, count, .. } = place;
    match header.split {
        Some(found) if (found.number, found.count) == (number, count) => Ok((source, header)),
        _ => Err(Error::file(&part, GgufSplitFault::Place { number, count })),
    }
}

/// Why the files of a split model cannot be opened. Numbers of files count from 0, and are shown from 1.
#[derive(Debug, thiserror::Error)]
pub enum GgufSplitFault {
    /// A file that comes through a pipe, with no others beside it.
    #[error(
        "is file {} of {count} of a split model, which has to be opened by its name",
        .own.saturating_add(1)
    )]
    NoFolder {
        /// Which file it is.
        own: u64,
        /// How many there are.
        count: u64,
    },
    /// A file whose name does not tell those of the others.
    #[error(
        "is file {} of {count} of a split model, so its name has to end in {end}",
        .own.saturating_add(1)
    )]
    Name {
        /// Which file it is.
        own: u64,
        /// How many there are.
        count: u64,
        /// How its name would end.
        end: String,
    },
    /// More files than can be.
    #[error("is of a split model of {count} files, and at most {most} are read")]
    Many {
        /// How many there are.
        count: u64,
        /// How many there may be.
        most: u64,
    },
    /// Another file is in the place of one.
    #[error("has to be file {} of {count} of a split model, and does not say so", .number + 1)]
    Place {
        /// Which file it should be.
        number: u64,
        /// How many there are.
        count: u64,
    },
    /// A file of another format.
    #[error("a file of a split model has to be a .gguf")]
    NotGguf,
    /// A file that can be read only once.
    #[error("a file of a split model cannot be a pipe")]
    Pipe,
    /// Not as many tensors as the first file says.
    #[error("the files of the model should hold {said} tensors together, and hold {found}")]
    Tensors {
        /// How many there should be.
        said: u64,
        /// How many there are.
        found: usize,
    },
}

impl Fault for GgufSplitFault {}
