//! Text that is read once, from beginning to end, and kept as the bytes of elements: in memory where
//! there are few, in an unnamed temporary file where there are many.

use std::io;
use std::io::Read;
use std::ops::Range;
use std::sync::Arc;

use super::watched::Watched;
use super::{Bytes, Input, Location};
use crate::dtype::Endian;
use crate::error::{Error, Fault};
use crate::execute::{Progress, UNKNOWN, Workers};
use crate::format::{Contents, Format, FormatError, TensorInfo};
use crate::input::TextFault;
use crate::runs::Runs;
use crate::source::{
    ConcatSource, Forward, MemorySource, Opened, Reader, Source, SourceError, Stream,
};
use crate::{execute, source};

/// Bytes of elements that are kept in memory.
const FEW: u64 = 256 << 10;

/// Bytes of text that are read at a time.
const CHUNK: usize = 64 << 10;

/// Bytes at the beginning of a text by which its encoding is known.
const LOOK: u64 = 64;

/// The byte order mark that some programs write before UTF-8.
pub(super) const MARK: &[u8] = b"\xef\xbb\xbf";

/// Makes elements of a text that comes in pieces, cut anywhere.
pub(super) trait TextParser {
    /// Why a text is none of those that it reads.
    type Fault: Fault + 'static;

    /// Take the next piece, and append the bytes of elements that are complete.
    ///
    /// # Errors
    /// What is wrong with the text.
    fn parse(&mut self, text: &[u8], out: &mut Vec<u8>) -> Result<(), Self::Fault>;

    /// The text has ended.
    ///
    /// # Errors
    /// As [`parse`](TextParser::parse).
    fn end(&mut self, out: &mut Vec<u8>) -> Result<(), Self::Fault>;
}

/// Read all of a text, without the mark that it may begin with, and keep its elements.
pub(super) fn keep<P: TextParser>(
    location: &Location,
    bytes: &mut Opened,
    parser: &mut P,
    progress: &Progress,
) -> Result<Box<dyn Source>, Error> {
    let mut keep_all = |text: &mut dyn Read, len| {
        progress.kept.during(len, || {
            let text = without_mark(location, Watched::new(text, progress))?;
            parse(location, text, parser)
        })
    };
    match bytes {
        Opened::Random(source) if source.is_empty() => {
            Err(Error::file(location, FormatError::Empty))
        }
        Opened::Random(source) => {
            let kept = keep_all(&mut Reader::new(source.as_ref()), source.len());
            // a file cut short in the meantime is the reason for whatever is wrong with the text
            source.verify().map_err(|error| failed_source(location, error))?;
            kept
        }
        Opened::Forward(stream) => keep_all(stream, UNKNOWN),
    }
}

/// What follows the mark that a text may begin with.
fn without_mark(location: &Location, mut text: impl Read) -> Result<impl Read, Error> {
    let mut first = Vec::new();
    let read = text.by_ref().take(LOOK).read_to_end(&mut first);
    read.map_err(|error| failed_source(location, error.into()))?;
    if first.starts_with(b"\xff\xfe") || first.starts_with(b"\xfe\xff") {
        return Err(Error::file(location, TextFault::Utf16 { unmarked: None }));
    }
    if first.starts_with(MARK) {
        first.drain(..MARK.len());
    } else if let Some(endian) = utf16(&first) {
        return Err(Error::file(location, TextFault::Utf16 { unmarked: Some(endian) }));
    }
    Ok(io::Cursor::new(first).chain(text))
}

/// The byte order of a text that begins as one in UTF-16: every other byte is 0 of most characters.
fn utf16(first: &[u8]) -> Option<Endian> {
    let pairs = first.len() / 2;
    let zeros = |at: usize| first.chunks_exact(2).filter(|pair| pair[at] == 0).count();
    let are_most = |zeros: usize| pairs > 1 && zeros * 4 >= pairs * 3;
    match (zeros(0), zeros(1)) {
        (0, high) if are_most(high) => Some(Endian::Little),
        (high, 0) if are_most(high) => Some(Endian::Big),
        _ => None,
    }
}

/// Keep the elements that a parser makes of all that is left of a text.
pub(super) fn parse<P: TextParser>(
    location: &Location,
    text: impl Read,
    parser: &mut P,
) -> Result<Box<dyn Source>, Error> {
    let mut elements = ElementReader {
        text,
        parser,
        chunk: vec![0; CHUNK],
        out: Vec::new(),
        given: 0,
        ended: false,
        fault: None,
    };
    let mut first = Vec::new();
    let kept = match Read::take(&mut elements, FEW).read_to_end(&mut first) {
        Ok(len) if (len as u64) < FEW => Ok(Box::new(MemorySource(first)) as Box<dyn Source>),
        Ok(_) => source::spool(first.as_slice().chain(&mut elements)),
        Err(error) => Err(error.into()),
    };
    match (elements.fault, kept) {
        (Some(fault), _) => Err(Error::file(location, fault)),
        (None, kept) => kept.map_err(|error| failed_source(location, error)),
    }
}

/// A reader of text as a reader of its elements.
struct ElementReader<'p, R, P: TextParser> {
    text: R,
    parser: &'p mut P,
    chunk: Vec<u8>,
    out: Vec<u8>,
    /// How much of `out` has been handed on.
    given: usize,
    ended: bool,
    fault: Option<P::Fault>,
}

impl<R: Read, P: TextParser> Read for ElementReader<'_, R, P> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        while self.given == self.out.len() && !self.ended {
            self.out.clear();
            self.given = 0;
            let count = match self.text.read(&mut self.chunk) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                count => count?,
            };
            self.ended = count == 0;
            let parsed = match self.ended {
                false => self.parser.parse(&self.chunk[..count], &mut self.out),
                true => self.parser.end(&mut self.out),
            };
            parsed.map_err(|fault| {
                self.fault = Some(fault);
                io::Error::from(io::ErrorKind::InvalidData)
            })?;
        }
        let count = (self.out.len() - self.given).min(buf.len());
        buf[..count].copy_from_slice(&self.out[self.given..self.given + count]);
        self.given += count;
        Ok(count)
    }
}

impl Input {
    /// Make sure that its bytes can be read in any order: what is left of a pipe is copied to a
    /// temporary file.
    ///
    /// # Errors
    /// A pipe that fails or ends before its tensors do, a temporary file that cannot be written.
    pub fn spool(&mut self) -> Result<Arc<dyn Source>, Error> {
        self.spool_watched(&Progress::default())
    }

    /// The bytes of one of its tensors, at their positions, for who reads them more than once: those
    /// of a remote file are copied to a temporary file too.
    ///
    /// # Errors
    /// As [`spool`](Input::spool).
    pub fn nearby(
        &mut self,
        tensor: &TensorInfo,
        workers: &Workers,
        progress: &Progress,
    ) -> Result<Arc<dyn Source>, Error> {
        let source = self.spool_watched(progress)?;
        let Range { start, end } = tensor.data();
        if source.request_gap().is_none() || start == end {
            return Ok(source);
        }
        let runs = Runs::contiguous(start, end - start);
        let copied = execute::spool(source.as_ref(), &runs, 1, workers);
        let copied = copied.map_err(|error| match error.into_source() {
            Ok(error) => failed_source(&self.location, error),
            Err(error) => error.into(),
        })?;
        self.at(start, copied)
    }

    /// Bytes of which the first stands at position `start`.
    fn at(&self, start: u64, rest: Box<dyn Source>) -> Result<Arc<dyn Source>, Error> {
        let source = ConcatSource::at(start, rest.into());
        Ok(Arc::new(source.map_err(|error| failed_source(&self.location, error))?))
    }

    /// Keep a tensor as [`spool`](Input::spool) does, where another thread watches how far it is:
    /// [`Progress::keeping`].
    ///
    /// # Errors
    /// As [`spool`](Input::spool).
    pub fn spool_watched(&mut self, progress: &Progress) -> Result<Arc<dyn Source>, Error> {
        let stream = match &mut self.bytes {
            Bytes::Random(source) => return Ok(Arc::clone(source)),
            Bytes::Stream(stream) => stream,
        };
        let start = stream.position();
        let left = self.contents.expected_len().saturating_sub(start);
        let rest = progress.kept.during(left, || source::spool(Watched::new(stream, progress)));
        let rest = rest.map_err(|error| failed_source(&self.location, error))?;
        check_len(&self.location, start + rest.len(), &self.contents)?;
        let source = self.at(start, rest)?;
        self.bytes = Bytes::Random(Arc::clone(&source));
        Ok(source)
    }
}

/// No more of a pipe is needed. One that [drains](Stream::drains) is read to the end of what its format
/// promises, so that a short one is found out; of another one, whose writer would be waited for, only
/// that nothing follows the last byte of the data is looked at, where that was needed.
pub(crate) fn finish(
    location: &Location,
    stream: &mut Stream,
    contents: &Contents,
) -> Result<(), Error> {
    let rest = contents.expected_len().saturating_sub(stream.position());
    if rest > 0 && !stream.drains() {
        return Ok(());
    }
    stream.skip(rest).map_err(|error| failed_stream(location, stream, contents, error))?;
    let io = |error| Error::file(location, source::SourceError::Io(error));
    if !contents.allows_trailing_bytes() && stream.read(&mut [0]).map_err(io)? > 0 {
        // how many follow is known only to whoever reads them all
        return check_len(location, stream.position(), contents);
    }
    Ok(())
}

fn check_len(location: &Location, len: u64, contents: &Contents) -> Result<(), Error> {
    contents.check_len(len).map_err(|error| Error::file(location, error))
}

/// The error of a stream; of one that ended too early, the same as of a file that is cut short.
pub(crate) fn failed_stream(
    location: &Location,
    stream: &Stream,
    contents: &Contents,
    error: SourceError,
) -> Error {
    let ended = matches!(error, SourceError::UnexpectedEnd(_) | SourceError::Truncated);
    match check_len(location, stream.position(), contents) {
        Err(short) if ended && contents.format != Format::Raw => short,
        _ => failed_source(location, error),
    }
}

/// The error of the bytes of an input.
pub(crate) fn failed_source(location: &Location, error: SourceError) -> Error {
    Error::file(location, error)
}
