//! Formats whose files are a header and the elements behind it: `.npy`, `.safetensors`, and raw bytes, which have
//! none.

use std::cell::RefCell;
use std::ops::Range;
use std::{io, iter};

use super::safetensors::SafetensorsHeader;
use crate::error::Cause;
use crate::input::SmallFile;
use crate::output::LayoutFault;
use crate::output::layout::{Frame, OutputFormat, Request, WriteAt};
use crate::sink::{self, Destination, Draft, SinkError, SinkOptions};

/// What a format is unless it says otherwise: the bytes of one tensor in C order, whatever its dtype.
pub(crate) const PLAIN: OutputFormat = OutputFormat {
    name: "",
    about: "",
    extensions: &[],
    holds_several: false,
    has_metadata: false,
    has_orders: false,
    has_deflate: false,
    has_chunks: false,
    has_shards: false,
    is_raw: false,
    is_folder: false,
    is_text: false,
    stored_dtype: |dtype| Some(dtype.clone()),
    lay_out: lay_out_alone,
};

/// Put the elements at the beginning.
fn lay_out_alone(request: &Request<'_>) -> Result<Box<dyn Frame>, Cause> {
    behind_header(Header::Bytes(Vec::new()), request)
}

struct Headed {
    header: Header,
    bytes: u64,
}

impl Headed {
    fn len(&self) -> u64 {
        self.header.len() + self.bytes
    }
}

impl Frame for Headed {
    fn size(&self) -> Option<u64> {
        Some(self.len())
    }

    fn starts(&self) -> Box<dyn Iterator<Item = (usize, u64)> + '_> {
        self.header.starts(0, 0)
    }

    fn create(
        &self,
        target: &Destination,
        options: SinkOptions,
    ) -> Result<Box<dyn Draft>, SinkError> {
        sink::create(target, SinkOptions { len: self.size(), ..options })
    }

    fn shared_files(&self) -> Vec<u64> {
        vec![0]
    }

    fn grow(&mut self, wanted: &dyn Fn(&Range<u64>) -> u64) -> Vec<(u64, u64)> {
        let start = self.header.len();
        let bytes = wanted(&(0..self.len()));
        if self.header.grow(bytes) { vec![(start, bytes)] } else { Vec::new() }
    }

    fn fixed(&self) -> Option<sink::FixedFrame> {
        Some(sink::FixedFrame::Header(self.header.bytes().ok()?.into()))
    }

    fn write_headers(&self, write: &WriteAt<'_>) -> Result<(), SinkError> {
        self.header.write(0, write)
    }
}

/// Put tensors one after the other behind a header.
pub(crate) fn behind_header(
    header: Header,
    request: &Request<'_>,
) -> Result<Box<dyn Frame>, Cause> {
    let bytes = request.bytes;
    header.len().checked_add(bytes).ok_or(LayoutFault::TooLarge)?;
    Ok(Box::new(Headed { header, bytes }))
}

pub(crate) enum Header {
    Bytes(Vec<u8>),
    Text(SafetensorsHeader),
    /// Those of another file.
    Copy(SmallFile),
}

impl Header {
    pub(crate) fn len(&self) -> u64 {
        match self {
            Header::Bytes(bytes) => bytes.len() as u64,
            Header::Text(text) => text.len,
            Header::Copy(file) => file.len,
        }
    }

    /// The tensors that do not begin where the one before them ends, ascending, in a file that begins with tensor
    /// `first` and at position `at` of an output: the number of each, and where it begins.
    pub(crate) fn starts(
        &self,
        first: usize,
        at: u64,
    ) -> Box<dyn Iterator<Item = (usize, u64)> + '_> {
        let data = at + self.len();
        match self {
            Header::Text(text) if !text.order.is_empty() => {
                Box::new((first..).zip(text.starts().into_iter().map(move |start| data + start)))
            }
            _ => Box::new(iter::once((first, data))),
        }
    }

    /// The permissions of a file that is copied.
    pub(crate) fn mode(&self) -> Option<u32> {
        match self {
            Header::Copy(file) => Some(file.mode),
            Header::Bytes(_) | Header::Text(_) => None,
        }
    }

    /// Make it longer by so many bytes. False if the format does not allow it.
    pub(crate) fn grow(&mut self, bytes: u64) -> bool {
        let Header::Text(text) = self else { return false };
        text.grow(bytes)
    }

    /// Write it at position `at` of an output.
    pub(crate) fn write(&self, at: u64, write: &WriteAt<'_>) -> Result<(), SinkError> {
        match self {
            Header::Bytes(bytes) => write(at, bytes),
            Header::Text(text) => {
                let mut end = at;
                // the text was made before, so that nothing is wrong with it
                let failed = |error| SinkError::Io(io::Error::other(error));
                let written = text.pieces(failed, |piece| {
                    write(end, &piece)?;
                    end += piece.len() as u64;
                    Ok(())
                });
                written.map(|_| ())
            }
            Header::Copy(file) => {
                let mut end = at;
                let copied = file.pieces(PIECE, |piece| {
                    let written = write(end, piece);
                    end += piece.len() as u64;
                    written
                });
                copied.unwrap_or_else(|error| Err(SinkError::Io(error).of_file(&file.path)))
            }
        }
    }

    /// All of it, where it is none of another file.
    fn bytes(&self) -> Result<Vec<u8>, SinkError> {
        let bytes = RefCell::new(Vec::new());
        self.write(0, &|_, piece| {
            bytes.borrow_mut().extend_from_slice(piece);
            Ok(())
        })?;
        Ok(bytes.into_inner())
    }
}

/// How much is written at a time, in bytes.
pub(crate) const PIECE: usize = 256 << 10;
