//! Bytes before the elements of a file.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use super::entries::{Entries, OutputTensor};
use crate::format::{FormatError, safetensors};
use crate::input::SmallFile;
use crate::sink::SinkError;

/// Writes bytes at a position of an output.
pub(crate) type WriteAt<'a> = dyn Fn(u64, &[u8]) -> Result<(), SinkError> + 'a;

/// A header.
pub(super) enum Header {
    /// Its bytes.
    Bytes(Vec<u8>),
    /// That of a `.safetensors`.
    Text(SafetensorsHeader),
    /// Those of another file.
    Copy(SmallFile),
}

impl Header {
    /// Its length in bytes.
    pub(super) fn len(&self) -> u64 {
        match self {
            Header::Bytes(bytes) => bytes.len() as u64,
            Header::Text(text) => text.len,
            Header::Copy(file) => file.len,
        }
    }

    /// The permissions of a file that is copied.
    pub(super) fn mode(&self) -> Option<u32> {
        match self {
            Header::Copy(file) => Some(file.mode),
            Header::Bytes(_) | Header::Text(_) => None,
        }
    }

    /// Make it longer by so many bytes. False if the format does not allow it.
    pub(super) fn grow(&mut self, bytes: u64) -> bool {
        let Header::Text(text) = self else { return false };
        let longer = safetensors::longer(text.len, bytes);
        text.len = longer.unwrap_or(text.len);
        longer.is_some()
    }

    /// Write it at position `at` of an output.
    ///
    /// # Errors
    /// Those of `write`.
    pub(super) fn write(&self, at: u64, write: &WriteAt<'_>) -> Result<(), SinkError> {
        match self {
            Header::Bytes(bytes) => write(at, bytes),
            Header::Text(text) => {
                let mut at = at;
                // the text was made before, so that nothing is wrong with it
                let failed = |error| SinkError::Io(io::Error::other(error));
                let written = text.pieces(failed, |piece| {
                    write(at, &piece)?;
                    at += piece.len() as u64;
                    Ok(())
                });
                written.map(|_| ())
            }
            Header::Copy(file) => {
                let mut at = at;
                let copied = file.pieces(PIECE, |piece| {
                    let written = write(at, piece);
                    at += piece.len() as u64;
                    written
                });
                copied.unwrap_or_else(|error| Err(SinkError::Io(error).of_file(&file.path)))
            }
        }
    }

    /// All of it.
    ///
    /// # Errors
    /// [`FormatError`], where it cannot be made.
    pub(super) fn bytes(&self) -> Result<Cow<'_, [u8]>, FormatError> {
        match self {
            Header::Bytes(bytes) => Ok(Cow::Borrowed(bytes)),
            // only folders have such
            Header::Copy(_) => Ok(Cow::Borrowed(&[])),
            Header::Text(text) => {
                let mut bytes = Vec::new();
                text.pieces(
                    |error| error,
                    |piece| {
                        bytes.extend(piece);
                        Ok(())
                    },
                )?;
                Ok(Cow::Owned(bytes))
            }
        }
    }
}

/// The header of a `.safetensors`. Its text, which may be 100 MB long, is never in memory as a whole:
/// it is made once to find its length, and once more when it is written.
pub(super) struct SafetensorsHeader {
    tensors: Arc<Entries>,
    /// Those that are in the file.
    range: Range<usize>,
    metadata: BTreeMap<String, String>,
    /// Bytes.
    len: u64,
}

/// How much is written at a time, in bytes.
const PIECE: usize = 256 << 10;

impl SafetensorsHeader {
    /// That of a file which holds these of the tensors.
    ///
    /// # Errors
    /// Those of [`safetensors::HeaderText`].
    pub(super) fn new(
        tensors: &Arc<Entries>,
        range: Range<usize>,
        metadata: &BTreeMap<String, String>,
    ) -> Result<SafetensorsHeader, FormatError> {
        let (tensors, metadata) = (Arc::clone(tensors), metadata.clone());
        let mut header = SafetensorsHeader { tensors, range, metadata, len: 0 };
        header.len = header.pieces(|error| error, |_| Ok(()))?;
        Ok(header)
    }

    /// Hand on its text piece by piece, and return its length in bytes.
    fn pieces<E>(
        &self,
        failed: impl Fn(FormatError) -> E,
        mut take: impl FnMut(Vec<u8>) -> Result<(), E>,
    ) -> Result<u64, E> {
        let mut text = safetensors::HeaderText::new(&self.metadata, self.len).map_err(&failed)?;
        for number in self.range.clone() {
            let OutputTensor { name, dtype, shape, bytes, .. } = self.tensors.at(number);
            text.push(&name, &dtype, &shape, bytes).map_err(&failed)?;
            if text.pending() >= PIECE {
                take(text.take())?;
            }
        }
        let len = text.finish().map_err(&failed)?;
        take(text.take())?;
        Ok(len)
    }
}
