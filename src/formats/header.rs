//! Helpers of the readers of headers.

use crate::error::Cause;
use std::io::Read;

use super::{FormatError, npy, safetensors};
use crate::dtype::Endian;
use crate::input::Contents;
use crate::source::{Reader, Source};

/// Append the next `len` bytes to `header`, which grows only with bytes that are really there.
pub(super) fn read_more(input: &mut dyn Read, header: &mut Vec<u8>, len: u64) -> Result<(), Cause> {
    let expected = header.len() as u64 + len;
    input.take(len).read_to_end(header)?;
    match header.len() as u64 {
        found if found < expected => Err(FormatError::HeaderCutShort { expected, found }.into()),
        _ => Ok(()),
    }
}

/// A position in a binary header. Memory grows only with bytes that are in the file.
pub(super) struct HeaderReader<'s> {
    reader: Reader<'s>,
    len: u64,
    pub(super) endian: Endian,
}

impl<'s> HeaderReader<'s> {
    pub(super) fn at(source: &'s dyn Source, position: u64, endian: Endian) -> HeaderReader<'s> {
        HeaderReader { reader: Reader::at(source, position), len: source.len(), endian }
    }

    /// The number of bytes of the file before this position.
    pub(super) fn position(&self) -> u64 {
        self.len.saturating_sub(self.reader.remaining())
    }

    /// Return an error unless `len` more bytes are in the file.
    pub(super) fn check(&self, len: u64) -> Result<(), Cause> {
        match self.reader.remaining() {
            remaining if len <= remaining => Ok(()),
            _ => Err(FormatError::HeaderCutShort {
                expected: self.position().saturating_add(len),
                found: self.len,
            }
            .into()),
        }
    }

    pub(super) fn skip(&mut self, len: u64) -> Result<(), Cause> {
        self.check(len)?;
        self.reader.skip(len);
        Ok(())
    }

    pub(super) fn read(&mut self, bytes: &mut [u8]) -> Result<(), Cause> {
        self.check(bytes.len() as u64)?;
        Ok(self.reader.read_exact(bytes)?)
    }

    pub(super) fn bytes(&mut self, len: u64) -> Result<Vec<u8>, Cause> {
        self.check(len)?;
        let mut bytes = Vec::new();
        self.reader.by_ref().take(len).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// An unsigned number of `width` bytes, up to 8.
    pub(super) fn number(&mut self, width: usize) -> Result<u64, Cause> {
        let mut bytes = [0; 8];
        let number = &mut bytes[..width];
        self.read(number)?;
        Ok(self.endian.bits(number) as u64)
    }
}

/// The number of bytes by which a format is recognised.
pub const MAGIC_LEN: usize = 9;

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
