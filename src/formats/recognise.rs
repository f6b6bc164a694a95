//! Files that begin with a header, `.npy` and `.safetensors`, and the error of a file that begins like no format.

use std::io::Read;

use super::header::MAGIC_LEN;
use super::{Foreign, FormatError, LOOK_LEN, NotRead, npy, safetensors};
use crate::error::{Cause, Error};
use crate::input::{Contents, Input, Location, RecognisedFile};
use crate::source::{Advice, Opened, Reader, Source};

/// The bytes by which a format is recognised.
pub(crate) fn first_bytes(source: &dyn Source) -> std::io::Result<Vec<u8>> {
    let mut first = Vec::new();
    Reader::new(source).take(MAGIC_LEN as u64).read_to_end(&mut first)?;
    Ok(first)
}

/// Read the header of a file that is a header, then the data.
pub(crate) fn open_headed(file: RecognisedFile<'_>) -> Result<Input, Error> {
    let RecognisedFile { location, mut bytes, .. } = file;
    let contents = match &mut bytes {
        Opened::Random(source) => read_header(location, source.as_ref())?,
        Opened::Forward(stream) => read_contents(stream, None)?,
    };
    Ok(Input::of_file(location, bytes, contents))
}

/// Read the header of a `.npy` or `.safetensors` from `input`, and nothing after it.
///
/// `file_len` (bytes) is checked against the header; for a pipe, where it is not known, the caller
/// calls [`Contents::check_len`] at the end.
pub fn read_contents(input: &mut dyn Read, file_len: Option<u64>) -> Result<Contents, Cause> {
    let mut first = Vec::new();
    Read::take(&mut *input, 8).read_to_end(&mut first)?;
    let mut whole = first.as_slice().chain(input);
    let contents = if npy::begins(&first) {
        npy::read(&mut whole)?
    } else if first.len() == 8 {
        safetensors::read(&mut whole)?
    } else if first.is_empty() {
        return Err(FormatError::Empty.into());
    } else {
        return Err(FormatError::Unrecognised.into());
    };
    match file_len {
        Some(len) => Ok(contents.check_len(len).map(|()| contents)?),
        None => Ok(contents),
    }
}

/// Read the header of a whole `.npy` or `.safetensors`.
pub(crate) fn read_header(location: &Location, source: &dyn Source) -> Result<Contents, Error> {
    if source.is_remote()
        && let Some(len) = safetensors::header_len(&first_bytes(source)?)
    {
        // one request for a whole long header
        source.advise(0..len.next_multiple_of(Reader::PAGE), Advice::Sequential);
    }
    let contents = read_contents(&mut Reader::new(source), Some(source.len()));
    // a file truncated meanwhile is the cause of any other error
    source.verify()?;
    Ok(contents.map_err(|cause| match cause.downcast_ref() {
        Some(FormatError::Unrecognised) => unknown(foreign_in(location, source)),
        _ => cause,
    })?)
}

/// The error of a file that begins like none of the formats.
pub(crate) fn unrecognised(location: &Location, mut bytes: Opened) -> Error {
    // bytes read from a pipe are gone: its kind is found before
    let looks = match &bytes {
        Opened::Forward(_) => foreign(location, &mut bytes, LOOK_LEN),
        Opened::Random(_) => None,
    };
    let read = match &mut bytes {
        Opened::Random(source) => read_header(location, source.as_ref()),
        Opened::Forward(stream) => read_contents(stream, None).map_err(Error::from),
    };
    match read {
        // the error of a header that was begun is the most exact
        Err(error) if !is_unrecognised(&error) => error,
        _ => unknown(looks).into(),
    }
}

fn is_unrecognised(error: &Error) -> bool {
    matches!(error.cause.downcast_ref(), Some(FormatError::Unrecognised))
}

/// The error of a file of an unknown format, which may have a recognised kind.
pub(crate) fn unknown(looks: Option<Foreign>) -> Cause {
    looks.map_or_else(|| FormatError::Unrecognised.into(), |kind| NotRead(kind).into())
}

/// The kind of a file of an unknown format, by its first bytes, at most `most` of a pipe.
pub(crate) fn foreign(location: &Location, bytes: &mut Opened, most: usize) -> Option<Foreign> {
    match bytes {
        Opened::Random(source) => foreign_in(location, source.as_ref()),
        Opened::Forward(stream) => {
            Foreign::recognise(&stream.peek(most).ok()?, &location.extension())
        }
    }
}

/// Find a foreign kind as [`foreign`] does, in bytes that can be read in any order.
pub(crate) fn foreign_in(location: &Location, source: &dyn Source) -> Option<Foreign> {
    let mut first = Vec::new();
    Reader::new(source).take(LOOK_LEN as u64).read_to_end(&mut first).ok()?;
    Foreign::recognise(&first, &location.extension())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::tensor::brief;

    #[test]
    fn other_files_are_refused() {
        let message = |bytes: &[u8]| read_contents(&mut &*bytes, None).unwrap_err().to_string();
        assert_eq!(message(b""), "the file is empty");
        for other in [&b"PK\x03\x04xxxxxxxx"[..], b"hello", &[0; 100]] {
            assert_eq!(
                message(other),
                "not a .npy, .npz, .safetensors, .pt or .gguf file, nor the index of a sharded checkpoint"
            );
        }
        assert_eq!(
            message(b"\x93NUM"),
            "the file is cut short inside its header: 10 bytes are needed, the file has 4"
        );
    }

    #[test]
    fn messages_stay_short() {
        let long = "\n".repeat(1_000_000);
        assert_eq!(brief(&long), "\\n".repeat(100) + "…");
        for json in [
            format!(
                r#"{{"{}":{{"dtype":"U8","shape":[],"data_offsets":[1,2]}}}}"#,
                "x".repeat(5000)
            ),
            format!(
                r#"{{"a":{{"dtype":"{}","shape":[],"data_offsets":[0,1]}}}}"#,
                "x".repeat(5000)
            ),
            format!(r#"{{"a":{{"dtype":"U8","shape":"{}"}}}}"#, "x".repeat(5000)),
            format!(r#"{{"__metadata__":"{}"}}"#, "\\n".repeat(5000)),
        ] {
            let mut file = (json.len() as u64).to_le_bytes().to_vec();
            file.extend(json.bytes());
            let message = read_contents(&mut file.as_slice(), None).unwrap_err().to_string();
            assert!(message.len() < 600 && !message.contains('\n'), "{message}");
        }
        let text = format!("{{'descr':'{}','fortran_order':False,'shape':()}}", "x".repeat(5000));
        let mut file = b"\x93NUMPY\x01\x00".to_vec();
        file.extend((text.len() as u16).to_le_bytes());
        file.extend(text.bytes());
        let message = read_contents(&mut file.as_slice(), None).unwrap_err().to_string();
        assert!(message.len() < 600, "{message}");
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), which in 0..4) {
            let mut file: Vec<u8> = match which {
                0 => vec![],
                1 => b"\x93NUMPY\x01\x00\x40\x00".to_vec(),
                2 => b"\x93NUMPY\x03\x00\x40\x00\x00\x00".to_vec(),
                _ => b"\x20\0\0\0\0\0\0\0{".to_vec(),
            };
            file.extend(bytes);
            let _ = read_contents(&mut file.as_slice(), Some(file.len() as u64));
        }
    }
}
