//! Files whose first bytes tell all: `.npy` and `.safetensors`, no archive and no index.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use crate::error::Error;
use crate::execute::Progress;
use crate::format::{self, Contents, Foreign, FormatError, LOOK_LEN, MAGIC_LEN, safetensors};
use crate::input::watched::spool_all;
use crate::input::{Input, Location, failed_source, recognise};
use crate::source::{self, Advice, IoMode, Reader, Source, first_of_gzip};

/// Open the bytes of an input.
pub(crate) fn open_bytes(location: &Location, io: IoMode) -> Result<source::Opened, Error> {
    match location {
        Location::Stdin => source::open_stdin(io),
        // what lies there is a tensor already
        Location::Memory => Err(std::io::Error::from(std::io::ErrorKind::NotFound).into()),
        Location::Path(path) => source::open(path, io),
        Location::Remote(address) => source::remote::open(address, io),
    }
    .map_err(|error| Error::file(location, error))
}

/// The bytes of an input that is read in any order: what comes through a pipe is kept in a temporary file.
///
/// # Errors
/// As [`source::spool`].
pub(super) fn kept(
    location: &Location,
    bytes: source::Opened,
    progress: &Progress,
) -> Result<Arc<dyn Source>, Error> {
    match bytes {
        source::Opened::Random(source) => Ok(source.into()),
        source::Opened::Forward(stream) => {
            let kept = spool_all(stream, progress);
            Ok(kept.map_err(|error| failed_source(location, error))?.into())
        }
    }
}

/// Read the header.
pub(crate) fn open(location: &Location, mut bytes: source::Opened) -> Result<Input, Error> {
    let contents = match &mut bytes {
        source::Opened::Random(source) => read_header(location, source.as_ref())?,
        source::Opened::Forward(stream) => {
            format::read_contents(stream, None).map_err(|error| Error::file(location, error))?
        }
    };
    Ok(Input::of_file(location, bytes, contents))
}

/// The error of a file that begins as none of the formats.
pub(crate) fn unrecognised(location: &Location, mut bytes: source::Opened) -> Error {
    // what is read of a pipe is gone: how it looks is found out before
    let looks = match &bytes {
        source::Opened::Forward(_) => foreign(location, &mut bytes, LOOK_LEN),
        source::Opened::Random(_) => None,
    };
    // a header that was begun says best what is wrong with it
    let error = match &mut bytes {
        source::Opened::Random(source) => match read_header(location, source.as_ref()) {
            Err(error) => return error,
            Ok(_) => FormatError::Unrecognised,
        },
        source::Opened::Forward(stream) => match format::read_contents(stream, None) {
            Err(error) => named(error, looks),
            Ok(_) => FormatError::Unrecognised,
        },
    };
    Error::file(location, error)
}

/// The same for bytes that can be read in any order.
pub(crate) fn unrecognised_in(location: &Location, source: &dyn Source) -> Error {
    let looks = foreign_in(location, source);
    Error::file(location, named(FormatError::Unrecognised, looks))
}

/// Read the header of a whole file.
pub(crate) fn read_header(location: &Location, source: &dyn Source) -> Result<Contents, Error> {
    if source.request_gap().is_some()
        && let Some(len) = safetensors::header_len(&first_bytes(location, source)?)
    {
        // one request for all of a long one
        source.advise(0..len.next_multiple_of(Reader::PAGE), Advice::Sequential);
    }
    let contents = format::read_contents(&mut Reader::new(source), Some(source.len()));
    // a file cut short in the meantime is the reason for whatever its header seems to say
    source.verify().map_err(|error| failed_source(location, error))?;
    contents.map_err(|error| {
        let looks = match error {
            FormatError::Unrecognised => foreign_in(location, source),
            _ => None,
        };
        Error::file(location, named(error, looks))
    })
}

/// What a file of gzip holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InGzip {
    /// A file of a format that is read.
    Tensors,
    /// A file of a kind that is known, and not read.
    Foreign(Foreign),
    /// Something else.
    Unknown,
    /// Nothing that can be inflated.
    Damaged,
}

/// What a file of gzip holds, by its first bytes.
pub fn in_gzip(path: &Path) -> InGzip {
    let first = first_of_gzip(path, LOOK_LEN);
    let extension =
        path.with_extension("").extension().unwrap_or_default().to_string_lossy().to_lowercase();
    match Foreign::recognise(&first, &extension) {
        _ if first.is_empty() => InGzip::Damaged,
        _ if recognise(&first[..first.len().min(MAGIC_LEN)]).is_some() => InGzip::Tensors,
        Some(kind) => InGzip::Foreign(kind),
        None => InGzip::Unknown,
    }
}

/// The error of a header, where the file is of a kind that is known, and not read.
pub(crate) fn named(error: FormatError, looks: Option<Foreign>) -> FormatError {
    match (error, looks) {
        (FormatError::Unrecognised, Some(kind)) => FormatError::Foreign(kind),
        (error, _) => error,
    }
}

/// What a file is that is none of those that are read, by its first bytes, at most `most` of a pipe.
pub(crate) fn foreign(
    location: &Location,
    bytes: &mut source::Opened,
    most: usize,
) -> Option<Foreign> {
    match bytes {
        source::Opened::Random(source) => foreign_in(location, source.as_ref()),
        source::Opened::Forward(stream) => {
            Foreign::recognise(&stream.peek(most).ok()?, &extension(location))
        }
    }
}

/// The same for bytes that can be read in any order.
fn foreign_in(location: &Location, source: &dyn Source) -> Option<Foreign> {
    let mut first = Vec::new();
    Reader::new(source).take(LOOK_LEN as u64).read_to_end(&mut first).ok()?;
    Foreign::recognise(&first, &extension(location))
}

/// The extension of a file's name, in small letters.
pub(crate) fn extension(location: &Location) -> String {
    let name = location.file_name().map(Path::new);
    let extension = name.and_then(Path::extension).unwrap_or_default();
    extension.to_string_lossy().to_lowercase()
}

/// The bytes by which a format is recognised.
pub(crate) fn first_bytes(location: &Location, source: &dyn Source) -> Result<Vec<u8>, Error> {
    let mut first = Vec::new();
    let read = Reader::new(source).take(MAGIC_LEN as u64).read_to_end(&mut first);
    read.map_err(|error| Error::file(location, error))?;
    Ok(first)
}
