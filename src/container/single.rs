//! Files whose first bytes tell all: `.npy` and `.safetensors`, no archive and no index.

use std::io::Read;

use super::error::ContainerError;
use super::input::{Input, Location, failed_source};
use crate::format::{self, Contents, MAGIC_LEN};
use crate::source::{self, Advice, IoMode, Reader, Source};

/// Open the bytes of an input.
pub(super) fn open_bytes(
    location: &Location,
    io: IoMode,
) -> Result<source::Opened, ContainerError> {
    match location {
        Location::Stdin => source::open_stdin(io),
        Location::Path(path) => source::open(path, io),
        Location::Remote(address) => source::remote::open(address, io),
    }
    .map_err(|error| ContainerError::file(location, error))
}

/// Read the header.
pub(super) fn open(
    location: &Location,
    mut bytes: source::Opened,
) -> Result<Input, ContainerError> {
    let contents = match &mut bytes {
        source::Opened::Random(source) => read_header(location, source.as_ref())?,
        source::Opened::Forward(stream) => format::read_contents(stream, None)
            .map_err(|error| ContainerError::file(location, error))?,
    };
    Ok(Input::of_file(location, bytes, contents))
}

/// Read the header of a whole file.
pub(super) fn read_header(
    location: &Location,
    source: &dyn Source,
) -> Result<Contents, ContainerError> {
    if source.request_gap().is_some()
        && let Some(len) = format::header_len(&first_bytes(location, source)?)
    {
        // one request for all of a long one
        source.advise(0..len.next_multiple_of(Reader::PAGE), Advice::Sequential);
    }
    let contents = format::read_contents(&mut Reader::new(source), Some(source.len()));
    // a file cut short in the meantime is the reason for whatever its header seems to say
    source.verify().map_err(|error| failed_source(location, error))?;
    contents.map_err(|error| ContainerError::file(location, error))
}

/// The bytes by which a format is recognised.
pub(super) fn first_bytes(
    location: &Location,
    source: &dyn Source,
) -> Result<Vec<u8>, ContainerError> {
    let mut first = Vec::new();
    let read = Reader::new(source).take(MAGIC_LEN as u64).read_to_end(&mut first);
    read.map_err(|error| ContainerError::file(location, error))?;
    Ok(first)
}
