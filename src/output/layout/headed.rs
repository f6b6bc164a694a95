//! Formats whose files are a header and the elements behind it: `.npy`, `.safetensors`, and raw bytes, which have
//! none.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::{io, iter};

use super::{Entries, Frame, OutputFormat, OutputTensor, PLAIN, Request, WriteAt, only};
use crate::dtype::stored_by_numpy;
use crate::error::Cause;
use crate::format::{npy, safetensors};
use crate::input::SmallFile;
use crate::output::LayoutFault;
use crate::sink::{self, Destination, Draft, SinkError, SinkOptions};

pub(super) static NPY: OutputFormat = OutputFormat {
    name: "npy",
    about: "NumPy's .npy",
    extensions: &["npy"],
    has_orders: true,
    stored_dtype: stored_by_numpy,
    lay_out: |request| {
        let only = only(request.tensors, NPY.name)?;
        let header = npy::header(&only.dtype, &only.shape, request.order)?;
        behind_header(Header::Bytes(header), request)
    },
    ..PLAIN
};

pub(super) static SAFETENSORS: OutputFormat = OutputFormat {
    name: "safetensors",
    about: ".safetensors",
    extensions: &["safetensors"],
    holds_several: true,
    has_metadata: true,
    stored_dtype: safetensors::stored_dtype,
    lay_out: |request| {
        let all = 0..request.tensors.len();
        let metadata = request.change.of(request.metadata);
        let header = SafetensorsHeader::new(request, all, &metadata)?;
        behind_header(Header::Text(header), request)
    },
    ..PLAIN
};

pub(super) static RAW: OutputFormat = OutputFormat {
    name: "raw",
    about: "The bytes of the elements alone (.bin, .raw)",
    extensions: &["bin", "raw"],
    has_orders: true,
    stored_dtype: |dtype| match dtype.blocks() {
        Some(_) => stored_by_numpy(dtype),
        None => Some(dtype.clone()),
    },
    ..PLAIN
};

/// Put the elements at the beginning.
pub(super) fn lay_out_alone(request: &Request<'_>) -> Result<Box<dyn Frame>, Cause> {
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
fn behind_header(header: Header, request: &Request<'_>) -> Result<Box<dyn Frame>, Cause> {
    let bytes = request.bytes;
    header.len().checked_add(bytes).ok_or(LayoutFault::TooLarge)?;
    Ok(Box::new(Headed { header, bytes }))
}

pub(super) enum Header {
    Bytes(Vec<u8>),
    Text(SafetensorsHeader),
    /// Those of another file.
    Copy(SmallFile),
}

impl Header {
    pub(super) fn len(&self) -> u64 {
        match self {
            Header::Bytes(bytes) => bytes.len() as u64,
            Header::Text(text) => text.len,
            Header::Copy(file) => file.len,
        }
    }

    /// The tensors that do not begin where the one before them ends, ascending, in a file that begins with tensor
    /// `first` and at position `at` of an output: the number of each, and where it begins.
    pub(super) fn starts(
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
    pub(super) fn write(&self, at: u64, write: &WriteAt<'_>) -> Result<(), SinkError> {
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

/// The header of a `.safetensors`. Its text, which may be 100 MB long, is never in memory as a whole:
/// it is made once to find its length, and once more when it is written.
pub(super) struct SafetensorsHeader {
    tensors: Arc<Entries>,
    /// Those that are in the file.
    range: Range<usize>,
    /// Their numbers in the order of the file; empty where that is the order in which they were given.
    order: Vec<u32>,
    metadata: BTreeMap<String, String>,
    len: u64,
}

/// How much is written at a time, in bytes.
const PIECE: usize = 256 << 10;

impl SafetensorsHeader {
    /// That of a file which holds these of the tensors.
    pub(super) fn new(
        request: &Request<'_>,
        range: Range<usize>,
        metadata: &BTreeMap<String, String>,
    ) -> Result<SafetensorsHeader, Cause> {
        let tensors = Arc::clone(request.tensors);
        let order = if request.keeps_order { Vec::new() } else { aligned(&tensors, range.clone()) };
        let metadata = metadata.clone();
        let mut header = SafetensorsHeader { tensors, range, order, metadata, len: 0 };
        header.len = header.pieces(|error| error, |_| Ok(()))?;
        Ok(header)
    }

    /// The numbers of the tensors in the order of the file.
    fn in_order(&self) -> impl Iterator<Item = usize> {
        let given = if self.order.is_empty() { self.range.clone() } else { 0..0 };
        given.chain(self.order.iter().map(|&number| number as usize))
    }

    /// Where each tensor begins behind the header, in the order in which they were given.
    fn starts(&self) -> Vec<u64> {
        let mut starts = vec![0; self.range.len()];
        let mut end = 0;
        for number in self.in_order() {
            starts[number - self.range.start] = end;
            end += self.tensors.at(number).bytes;
        }
        starts
    }

    /// Hand on its text piece by piece, and return its length in bytes.
    fn pieces<E>(
        &self,
        failed: impl Fn(Cause) -> E,
        mut take: impl FnMut(Vec<u8>) -> Result<(), E>,
    ) -> Result<u64, E> {
        let mut text = safetensors::HeaderText::new(&self.metadata, self.len).map_err(&failed)?;
        for number in self.in_order() {
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

/// An order of tensors in which each begins at a multiple of the size of its items; empty where they do as they
/// stand. Else those of larger items come first.
fn aligned(tensors: &Entries, range: Range<usize>) -> Vec<u32> {
    let item_bits = |number: usize| tensors.at(number).dtype.item_bits();
    let mut end = 0u64;
    let is_aligned = |number: usize| {
        let OutputTensor { dtype, bytes, .. } = tensors.at(number);
        let is_aligned = end.is_multiple_of((dtype.item_bits() / 8).max(1));
        end += bytes;
        is_aligned
    };
    if range.clone().all(is_aligned) {
        return Vec::new();
    }
    let mut order: Vec<u32> = range.map(|number| number as u32).collect();
    order.sort_by_cached_key(|&number| Reverse(item_bits(number as usize)));
    order
}
