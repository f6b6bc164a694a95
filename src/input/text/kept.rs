//! Text that is read once, from beginning to end, and kept as the bytes of elements: in memory where
//! there are few, in an unnamed temporary file where there are many.

use std::io::{self, ErrorKind, Read};

use super::TextFault;
use crate::dtype::Endian;
use crate::error::{Error, Fault};
use crate::execute::{Progress, UNKNOWN};
use crate::format::FormatError;
use crate::input::bytes::Watched;
use crate::source::{self, MemorySource, Opened, Reader, Source, SourceError};

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
    fn parse(&mut self, text: &[u8], out: &mut Vec<u8>) -> Result<(), Self::Fault>;

    fn end(&mut self, out: &mut Vec<u8>) -> Result<(), Self::Fault>;
}

/// Read all of a text, without the mark that it may begin with, and keep its elements.
pub(super) fn keep<P: TextParser>(
    bytes: &mut Opened,
    parser: &mut P,
    progress: &Progress,
) -> Result<Box<dyn Source>, Error> {
    let mut keep_all = |text: &mut dyn Read, len| {
        progress.kept.during(len, || parse(without_mark(Watched::new(text, progress))?, parser))
    };
    match bytes {
        Opened::Random(source) if source.is_empty() => Err(FormatError::Empty.into()),
        Opened::Random(source) => {
            let kept = keep_all(&mut Reader::new(source.as_ref()), source.len());
            // a file cut short in the meantime is the reason for whatever is wrong with the text
            source.verify()?;
            kept
        }
        Opened::Forward(stream) => keep_all(stream, UNKNOWN),
    }
}

/// What follows the mark that a text may begin with.
fn without_mark(mut text: impl Read) -> Result<impl Read, Error> {
    let mut first = Vec::new();
    text.by_ref().take(LOOK).read_to_end(&mut first).map_err(SourceError::from)?;
    if first.starts_with(b"\xff\xfe") || first.starts_with(b"\xfe\xff") {
        return Err(TextFault::Utf16 { unmarked: None }.into());
    }
    if first.starts_with(MARK) {
        first.drain(..MARK.len());
    } else if let Some(endian) = utf16(&first) {
        return Err(TextFault::Utf16 { unmarked: Some(endian) }.into());
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
    match elements.fault {
        Some(fault) => Err(fault.into()),
        None => Ok(kept?),
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
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                count => count?,
            };
            self.ended = count == 0;
            let parsed = if self.ended {
                self.parser.end(&mut self.out)
            } else {
                self.parser.parse(&self.chunk[..count], &mut self.out)
            };
            parsed.map_err(|fault| {
                self.fault = Some(fault);
                io::Error::from(ErrorKind::InvalidData)
            })?;
        }
        let count = (self.out.len() - self.given).min(buf.len());
        buf[..count].copy_from_slice(&self.out[self.given..self.given + count]);
        self.given += count;
        Ok(count)
    }
}
