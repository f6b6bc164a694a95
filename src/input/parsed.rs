//! Text that is read once, from beginning to end, and kept as the bytes of elements: in memory where
//! there are few, in an unnamed temporary file where there are many.

use std::io::{self, Read};

use crate::dtype::Endian;
use crate::error::{Error, Fault};
use crate::execute::{Progress, UNKNOWN};
use crate::format::FormatError;
use crate::input::watched::Watched;
use crate::input::{Location, TextFault, failed_source};
use crate::source::{self, MemorySource, Opened, Reader, Source};

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
    match bytes {
        Opened::Random(source) if source.is_empty() => {
            Err(Error::file(location, FormatError::Empty))
        }
        Opened::Random(source) => {
            progress.kept.begin(source.len());
            let text = Watched::new(Reader::new(source.as_ref()), progress);
            let kept = without_mark(location, text).and_then(|text| parse(location, text, parser));
            progress.kept.begin(0);
            // a file cut short in the meantime is the reason for whatever is wrong with the text
            source.verify().map_err(|error| failed_source(location, error))?;
            kept
        }
        Opened::Forward(stream) => {
            progress.kept.begin(UNKNOWN);
            let text = Watched::new(stream, progress);
            let kept = without_mark(location, text).and_then(|text| parse(location, text, parser));
            progress.kept.begin(0);
            kept
        }
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
