//! Formats whose files are a header, then the elements: `.npy`, `.safetensors`, `.gguf`, and raw
//! bytes, which have no header.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::iter;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use crate::error::Cause;
use crate::input::SmallFile;
use crate::output::LayoutFault;
use crate::output::layout::{MetadataKind, OutputFormat, OutputLayout, Request, WriteAt};
use crate::sink::{
    self, Destination, Draft, PlacedOutputs, Replaced, Sink, SinkError, SinkOptions, WriteOrder,
};

/// The defaults of a format: the bytes of one tensor in C order, whatever its dtype.
pub(crate) const PLAIN: OutputFormat = OutputFormat {
    name: "",
    about: "",
    extensions: &[],
    holds_several: false,
    metadata: MetadataKind::None,
    has_orders: false,
    has_deflate: false,
    has_chunks: false,
    has_shards: false,
    is_raw: false,
    is_folder: false,
    is_text: false,
    is_editable: true,
    stored_dtype: |dtype| Some(dtype.clone()),
    lay_out: lay_out_alone,
};

/// The layout of elements at the beginning of the output.
fn lay_out_alone(request: &Request<'_>) -> Result<Box<dyn OutputLayout>, Cause> {
    behind_header(Header::Bytes(Vec::new()), request)
}

struct Headed {
    header: Header,
    /// The bytes after the header.
    bytes: u64,
    /// Whether the output can only be written from its beginning to its end.
    forward: bool,
}

impl Headed {
    fn len(&self) -> u64 {
        self.header.len() + self.bytes
    }
}

impl OutputLayout for Headed {
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
        let inner = sink::create(target, SinkOptions { len: self.size(), ..options })?;
        let gaps: VecDeque<Range<u64>> =
            if self.forward { self.header.gaps().collect() } else { VecDeque::new() };
        Ok(if gaps.is_empty() {
            inner
        } else {
            Box::new(PaddedStream { inner, gaps: Mutex::new(gaps) })
        })
    }

    fn shared_files(&self) -> Vec<u64> {
        vec![0]
    }

    fn grow(&mut self, wanted: &dyn Fn(&Range<u64>) -> u64) -> Vec<(u64, u64)> {
        let start = self.header.len();
        let bytes = wanted(&(0..self.len()));
        if self.header.grow(bytes) { vec![(start, bytes)] } else { Vec::new() }
    }

    fn fixed(&self) -> Option<sink::FixedLayout> {
        Some(sink::FixedLayout::Header(self.header.bytes().ok()?.into()))
    }

    fn write_headers(&self, write: &WriteAt<'_>) -> Result<(), SinkError> {
        self.header.write(0, write)?;
        if self.forward {
            return Ok(());
        }
        self.header.gaps().try_for_each(|gap| write_zeros(gap, write))
    }
}

/// A stream that writes the bytes between tensors when their position is reached.
struct PaddedStream {
    inner: Box<dyn Draft>,
    /// The gaps that are not written yet.
    gaps: Mutex<VecDeque<Range<u64>>>,
}

impl PaddedStream {
    /// Write the gaps that begin before this position.
    fn fill(&self, until: u64) -> Result<(), SinkError> {
        let mut gaps = self.gaps.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(gap) = gaps.pop_front_if(|gap| gap.start < until) {
            write_zeros(gap, &|at, bytes| self.inner.write_at(at, bytes))?;
        }
        Ok(())
    }
}

impl Sink for PaddedStream {
    fn order(&self) -> WriteOrder {
        self.inner.order()
    }

    fn is_atomic(&self) -> bool {
        self.inner.is_atomic()
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), SinkError> {
        if self.order() == WriteOrder::Ascending {
            self.fill(offset)?;
        }
        self.inner.write_at(offset, bytes)
    }
}

impl Draft for PaddedStream {
    fn seal(&mut self) -> Result<(), SinkError> {
        self.fill(u64::MAX)?;
        self.inner.seal()
    }

    fn park(&mut self) -> Result<(), SinkError> {
        self.inner.park()
    }

    fn place(self: Box<Self>, replaced: Replaced) -> Result<PlacedOutputs, SinkError> {
        self.inner.place(replaced)
    }
}

fn write_zeros(mut range: Range<u64>, write: &WriteAt<'_>) -> Result<(), SinkError> {
    const ZEROS: [u8; 4096] = [0; 4096];
    while !range.is_empty() {
        let len = (range.end - range.start).min(ZEROS.len() as u64);
        write(range.start, &ZEROS[..len as usize])?;
        range.start += len;
    }
    Ok(())
}

/// The layout of tensors one after the other, after a header.
pub(crate) fn behind_header(
    header: Header,
    request: &Request<'_>,
) -> Result<Box<dyn OutputLayout>, Cause> {
    let mut len = header.len().checked_add(request.bytes).ok_or(LayoutFault::TooLarge)?;
    for gap in header.gaps() {
        len = len.checked_add(gap.end - gap.start).ok_or(LayoutFault::TooLarge)?;
    }
    let bytes = len - header.len();
    Ok(Box::new(Headed { header, bytes, forward: request.forward }))
}

/// A header that is made each time it is written.
pub(crate) trait MadeHeader: Send + Sync {
    /// The length in bytes.
    fn len(&self) -> u64;

    /// The position of each tensor after the header, in the order in which they were given; empty
    /// if each begins at the end of the one before.
    fn starts(&self) -> Vec<u64> {
        Vec::new()
    }

    /// The bytes after the header that belong to no tensor and are zeros, ascending.
    fn gaps(&self) -> Box<dyn Iterator<Item = Range<u64>> + '_> {
        Box::new(iter::empty())
    }

    /// Make the header longer by this number of bytes. Returns false if the format does not allow
    /// it.
    fn grow(&mut self, bytes: u64) -> bool {
        let _ = bytes;
        false
    }

    /// Pass the header to `take` piece by piece.
    fn pieces(&self, take: &mut dyn FnMut(&[u8]) -> Result<(), SinkError>)
    -> Result<(), SinkError>;
}

pub(crate) enum Header {
    Bytes(Vec<u8>),
    /// A header that is made piece by piece, as it may be long.
    Made(Box<dyn MadeHeader>),
    /// A copy of another file's bytes.
    Copy(SmallFile),
}

impl Header {
    pub(crate) fn len(&self) -> u64 {
        match self {
            Header::Bytes(bytes) => bytes.len() as u64,
            Header::Made(made) => made.len(),
            Header::Copy(file) => file.len,
        }
    }

    /// The bytes of the file after its header that are zeros.
    fn gaps(&self) -> Box<dyn Iterator<Item = Range<u64>> + '_> {
        let Header::Made(made) = self else { return Box::new(iter::empty()) };
        let data = made.len();
        Box::new(made.gaps().map(move |gap| data + gap.start..data + gap.end))
    }

    /// The tensors that do not begin at the end of the one before, ascending, as number and
    /// position. The file begins with tensor `first`, at position `at` of an output.
    pub(crate) fn starts(
        &self,
        first: usize,
        at: u64,
    ) -> Box<dyn Iterator<Item = (usize, u64)> + '_> {
        let data = at + self.len();
        let starts = if let Header::Made(made) = self { made.starts() } else { Vec::new() };
        if starts.is_empty() {
            return Box::new(iter::once((first, data)));
        }
        Box::new((first..).zip(starts.into_iter().map(move |start| data + start)))
    }

    /// The permissions of a file that is copied.
    pub(crate) fn mode(&self) -> Option<u32> {
        match self {
            Header::Copy(file) => Some(file.mode),
            Header::Bytes(_) | Header::Made(_) => None,
        }
    }

    /// Make the header longer by this number of bytes. Returns false if the format does not allow
    /// it.
    pub(crate) fn grow(&mut self, bytes: u64) -> bool {
        let Header::Made(made) = self else { return false };
        made.grow(bytes)
    }

    /// Write the header at position `at` of an output.
    pub(crate) fn write(&self, at: u64, write: &WriteAt<'_>) -> Result<(), SinkError> {
        match self {
            Header::Bytes(bytes) => write(at, bytes),
            Header::Made(made) => {
                let mut end = at;
                made.pieces(&mut |piece| {
                    write(end, piece)?;
                    end += piece.len() as u64;
                    Ok(())
                })
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

    /// The whole header; empty for a copy of another file.
    fn bytes(&self) -> Result<Vec<u8>, SinkError> {
        let bytes = RefCell::new(Vec::new());
        self.write(0, &|_, piece| {
            bytes.borrow_mut().extend_from_slice(piece);
            Ok(())
        })?;
        Ok(bytes.into_inner())
    }
}

/// The number of bytes that are written at a time.
pub(crate) const PIECE: usize = 256 << 10;
