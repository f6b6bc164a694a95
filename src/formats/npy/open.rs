//! A `.npy` as one input. The data of an array of Python objects is a pickle, in which arrays are found.

use super::{NpyError, read};
use crate::error::Error;
use crate::formats::pickle;
use crate::formats::recognise::{open_headed, read_header};
use crate::input::{Input, RecognisedFile, seekable};
use crate::source::{Opened, Stream};

/// Read the header, and the pickle behind it where there is one.
pub(super) fn open(mut file: RecognisedFile<'_>) -> Result<Input, Error> {
    let location = file.location;
    let header = match &mut file.bytes {
        Opened::Random(source) => read_header(location, source.as_ref()),
        Opened::Forward(stream) => {
            read(&mut peeked_header(stream)?.as_slice()).map_err(Error::from)
        }
    };
    let objects = match &header {
        Err(error) => error.cause.downcast_ref(),
        Ok(_) => None,
    };
    match (objects, &file.bytes) {
        (Some(&NpyError::Objects { start, .. }), _) => {
            pickle::open_objects(location, seekable(file.bytes, file.progress)?, start)
        }
        (_, Opened::Random(_)) => Ok(Input::of_file(location, file.bytes, header?)),
        // it is read from the stream itself
        (_, Opened::Forward(_)) => open_headed(file),
    }
}

/// The header of a stream, as far as it is there, which is still to be read afterwards.
fn peeked_header(stream: &mut Stream) -> std::io::Result<Vec<u8>> {
    let begun = stream.peek(12)?;
    let len = match begun.get(6..12) {
        Some([1, _, low, high, ..]) => 10 + u64::from(u16::from_le_bytes([*low, *high])),
        Some([_, _, len @ ..]) => {
            12 + u64::from(len.iter().rev().fold(0, |len, &it| len << 8 | u32::from(it)))
        }
        _ => 0,
    };
    stream.peek(len.min(12 + super::MAX_HEADER) as usize)
}
