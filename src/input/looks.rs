//! What a file is by its looks: the header of a `.npy` or `.safetensors`, or a kind that is known and not read.

use std::io::Read;
use std::path::Path;

use super::bytes::first_bytes;
use super::open::recognise;
use super::options::Location;
use crate::error::Error;
use crate::format::{self, Contents, Foreign, FormatError, LOOK_LEN, MAGIC_LEN, safetensors};
use crate::source::{Advice, Opened, Reader, Source, first_of_gzip};

/// Read the header of a whole `.npy` or `.safetensors`.
pub(super) fn read_header(location: &Location, source: &dyn Source) -> Result<Contents, Error> {
    if source.request_gap().is_some()
        && let Some(len) = safetensors::header_len(&first_bytes(source)?)
    {
        // one request for all of a long one
        source.advise(0..len.next_multiple_of(Reader::PAGE), Advice::Sequential);
    }
    let contents = format::read_contents(&mut Reader::new(source), Some(source.len()));
    // a file cut short in the meantime is the reason for whatever its header seems to say
    source.verify()?;
    Ok(contents.map_err(|error| match error {
        FormatError::Unrecognised => unknown(foreign_in(location, source)),
        error => error,
    })?)
}

/// The error of a file that begins as none of the formats.
pub(crate) fn unrecognised(location: &Location, mut bytes: Opened) -> Error {
    // what is read of a pipe is gone: how it looks is found out before
    let looks = match &bytes {
        Opened::Forward(_) => foreign(location, &mut bytes, LOOK_LEN),
        Opened::Random(_) => None,
    };
    let read = match &mut bytes {
        Opened::Random(source) => read_header(location, source.as_ref()),
        Opened::Forward(stream) => format::read_contents(stream, None).map_err(Error::from),
    };
    match read {
        // a header that was begun says best what is wrong with it
        Err(error) if !is_unrecognised(&error) => error,
        _ => unknown(looks).into(),
    }
}

fn is_unrecognised(error: &Error) -> bool {
    matches!(error.cause.downcast_ref(), Some(FormatError::Unrecognised))
}

/// The error of a file of no format that is read, which may look like one of another program.
pub(super) fn unknown(looks: Option<Foreign>) -> FormatError {
    looks.map_or(FormatError::Unrecognised, FormatError::Foreign)
}

/// What a file is that is none of those that are read, by its first bytes, at most `most` of a pipe.
pub(super) fn foreign(location: &Location, bytes: &mut Opened, most: usize) -> Option<Foreign> {
    match bytes {
        Opened::Random(source) => foreign_in(location, source.as_ref()),
        Opened::Forward(stream) => {
            Foreign::recognise(&stream.peek(most).ok()?, &extension(location))
        }
    }
}

/// As [`foreign`], for bytes that can be read in any order.
pub(super) fn foreign_in(location: &Location, source: &dyn Source) -> Option<Foreign> {
    let mut first = Vec::new();
    Reader::new(source).take(LOOK_LEN as u64).read_to_end(&mut first).ok()?;
    Foreign::recognise(&first, &extension(location))
}

/// The extension of a file's name, in small letters.
pub(super) fn extension(location: &Location) -> String {
    let name = location.file_name().map(Path::new);
    let extension = name.and_then(Path::extension).unwrap_or_default();
    extension.to_string_lossy().to_lowercase()
}

/// What a file of gzip holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InGzip {
    /// A file of a format that is read.
    Tensors,
    /// A file of a kind that is known, and not read.
    Foreign(Foreign),
    Unknown,
    /// Nothing that can be inflated.
    Damaged,
}

/// What a file of gzip holds, by its first bytes.
pub fn in_gzip(path: &Path) -> InGzip {
    let first = first_of_gzip(path, LOOK_LEN);
    let inner = path.with_extension("");
    let extension = inner.extension().unwrap_or_default().to_string_lossy().to_lowercase();
    match Foreign::recognise(&first, &extension) {
        _ if first.is_empty() => InGzip::Damaged,
        _ if recognise(&first[..first.len().min(MAGIC_LEN)]).is_some() => InGzip::Tensors,
        Some(kind) => InGzip::Foreign(kind),
        None => InGzip::Unknown,
    }
}
