//! Files whose first bytes tell all: `.npy` and `.safetensors`, no archive and no index.

use super::error::ContainerError;
use super::input::{Input, Location, failed_source};
use crate::format;
use crate::source::{self, IoMode, Reader};

/// Open the bytes of an input.
pub(super) fn open_bytes(
    location: &Location,
    io: IoMode,
) -> Result<source::Opened, ContainerError> {
    match location {
        Location::Stdin => source::open_stdin(io),
        Location::Path(path) => source::open(path, io),
    }
    .map_err(|error| ContainerError::file(location, error))
}

/// Read the header.
pub(super) fn open(
    location: &Location,
    mut bytes: source::Opened,
) -> Result<Input, ContainerError> {
    let contents = match &mut bytes {
        source::Opened::Random(source) => {
            let mut reader = Reader::new(source.as_ref());
            let contents = format::read_contents(&mut reader, Some(source.len()));
            // a file cut short in the meantime is the reason for whatever its header seems to say
            source.verify().map_err(|error| failed_source(location, error))?;
            contents
        }
        source::Opened::Forward(stream) => format::read_contents(stream, None),
    };
    let contents = contents.map_err(|error| ContainerError::file(location, error))?;
    Ok(Input::of_file(location, bytes, contents))
}
