//! Parsing a text in pieces, by several threads where its lines do not depend on each other.

use std::io;
use std::io::Read;

use super::TextFault;
use crate::dtype::Endian;
use crate::error::{Error, Fault};
use crate::execute::{Progress, UNKNOWN, Workers};
use crate::formats::FormatError;
use crate::input::Watched;
use crate::source::{self, MemorySource, Opened, Reader, Source, SourceError};

/// The bytes of elements up to which they stay in memory.
const FEW: u64 = 256 << 10;

/// The bytes of text that are read at a time for each thread.
const CHUNK: usize = 256 << 10;

/// The bytes of text that a thread parses at a time.
const PIECE: usize = 32 << 10;

/// The bytes at the beginning of a text that show its encoding.
const LOOK: u64 = 64;

/// The byte order mark that some programs write before UTF-8.
pub(super) const MARK: &[u8] = b"\xef\xbb\xbf";

/// A parser of text that comes in pieces, cut anywhere.
pub(super) trait TextParser: Sized + Send + Sync {
    /// The error for a text that is invalid for the parser.
    type Fault: Fault + 'static;

    /// Take the next piece, and append the bytes of complete elements.
    fn parse(&mut self, text: &[u8], out: &mut Vec<u8>) -> Result<(), Self::Fault>;

    fn end(&mut self, out: &mut Vec<u8>) -> Result<(), Self::Fault>;

    /// A parser for the next whole lines, with which another thread can parse them before earlier lines are parsed; `None`
    /// if they depend on earlier lines.
    fn fork(&self, _lines: &[u8]) -> Option<Self> {
        None
    }

    /// Continue after the lines of a fork.
    fn join(&mut self, _fork: Self) {}
}

/// Read a whole text, without the byte order mark, and store its elements.
pub(super) fn keep<P: TextParser>(
    bytes: &mut Opened,
    parser: &mut P,
    workers: &Workers,
    progress: &Progress,
) -> Result<Box<dyn Source>, Error> {
    let mut keep_all = |text: &mut dyn Read, len| {
        progress
            .scratch
            .during(len, || parse(without_mark(Watched::new(text, progress))?, parser, workers))
    };
    match bytes {
        Opened::Random(source) if source.is_empty() => Err(FormatError::Empty.into()),
        Opened::Random(source) => {
            let done = keep_all(&mut Reader::new(source.as_ref()), source.len());
            // a file cut short in the meantime is the reason for any fault of the text
            source.verify()?;
            done
        }
        Opened::Forward(stream) => keep_all(stream, UNKNOWN),
    }
}

/// The text after a byte order mark, if any.
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

/// The byte order of a text that looks like UTF-16: every other byte is 0 in most characters.
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

/// Parse the rest of a text, and store its elements.
pub(super) fn parse<P: TextParser>(
    text: impl Read,
    parser: &mut P,
    workers: &Workers,
) -> Result<Box<dyn Source>, Error> {
    let mut elements = ElementReader {
        text,
        parser,
        workers,
        chunk: Vec::new(),
        out: Vec::new(),
        given: 0,
        ended: false,
        fault: None,
    };
    let mut first = Vec::new();
    let done = match Read::take(&mut elements, FEW).read_to_end(&mut first) {
        Ok(len) if (len as u64) < FEW => Ok(Box::new(MemorySource(first)) as Box<dyn Source>),
        Ok(_) => source::spool(first.as_slice().chain(&mut elements)),
        Err(error) => Err(error.into()),
    };
    match elements.fault {
        Some(fault) => Err(fault.into()),
        None => Ok(done?),
    }
}

struct ElementReader<'p, R, P: TextParser> {
    text: R,
    parser: &'p mut P,
    workers: &'p Workers,
    chunk: Vec<u8>,
    out: Vec<u8>,
    /// The number of bytes of `out` that were passed on.
    given: usize,
    ended: bool,
    fault: Option<P::Fault>,
}

impl<R: Read, P: TextParser> ElementReader<'_, R, P> {
    /// Read some text, and parse it.
    fn refill(&mut self) -> io::Result<()> {
        self.out.clear();
        self.given = 0;
        self.chunk.clear();
        // the first elements of a small text need no thread
        let chunks = if self.chunk.capacity() == 0 { 1 } else { self.workers.count() };
        let most = (chunks * CHUNK) as u64;
        self.ended = (self.text.by_ref().take(most).read_to_end(&mut self.chunk)? as u64) < most;
        let parsed = parse_lines(self.parser, &self.chunk, self.workers, &mut self.out);
        let ended =
            if self.ended { parsed.and_then(|()| self.parser.end(&mut self.out)) } else { parsed };
        ended.map_err(|fault| {
            self.fault = Some(fault);
            io::Error::from(io::ErrorKind::InvalidData)
        })
    }
}

impl<R: Read, P: TextParser> Read for ElementReader<'_, R, P> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        while self.given == self.out.len() && !self.ended {
            self.refill()?;
        }
        let count = (self.out.len() - self.given).min(buf.len());
        buf[..count].copy_from_slice(&self.out[self.given..self.given + count]);
        self.given += count;
        Ok(count)
    }
}

/// Parse text; threads parse the whole lines where possible.
fn parse_lines<P: TextParser>(
    parser: &mut P,
    text: &[u8],
    workers: &Workers,
    out: &mut Vec<u8>,
) -> Result<(), P::Fault> {
    let begin = line_end(text).unwrap_or(text.len());
    let (begun, text) = text.split_at(begin);
    parser.parse(begun, out)?;
    let pieces = lines_in_pieces(text);
    let forks = if pieces.len() > 1 { parse_pieces(parser, &pieces, workers) } else { None };
    let Some(forks) = forks else { return parser.parse(text, out) };
    for (fork, elements) in forks {
        parser.join(fork);
        out.extend(elements);
    }
    let parsed: usize = pieces.iter().map(|piece| piece.len()).sum();
    parser.parse(&text[parsed..], out)
}

fn line_end(text: &[u8]) -> Option<usize> {
    text.iter().position(|&byte| byte == b'\n').map(|at| at + 1)
}

/// The end of the last complete line of a text.
fn last_line_end(text: &[u8]) -> Option<usize> {
    text.iter().rposition(|&byte| byte == b'\n').map(|at| at + 1)
}

/// Divide the whole lines of a text into pieces.
fn lines_in_pieces(mut text: &[u8]) -> Vec<&[u8]> {
    let mut pieces = Vec::new();
    while !text.is_empty() {
        let least = text.len().min(PIECE);
        let end = line_end(&text[least..]).map(|end| least + end);
        let Some(end) = end.or_else(|| last_line_end(text)) else { break };
        let (piece, rest) = text.split_at(end);
        pieces.push(piece);
        text = rest;
    }
    pieces
}

/// Parse pieces of whole lines at the same time. `None` where a piece depends on earlier ones, and where one has
/// a fault: only a parser that has seen all lines knows its position in the text.
fn parse_pieces<P: TextParser>(
    parser: &P,
    pieces: &[&[u8]],
    workers: &Workers,
) -> Option<Vec<(P, Vec<u8>)>> {
    let parse = |number: usize| {
        let lines = pieces[number];
        let mut elements = Vec::new();
        let mut fork = parser.fork(lines).ok_or(())?;
        fork.parse(lines, &mut elements).map_err(drop)?;
        Ok::<_, ()>((fork, elements))
    };
    workers.each(pieces.len(), parse).ok()
}

#[cfg(test)]
mod tests {
    use std::fmt;

    use super::super::integers::IntegersParser;
    use super::super::table::TableParser;
    use super::*;
    use crate::dtype::{DType, Endian, Scalar};
    use crate::element::CellReader;
    use crate::input::TextOptions;

    /// Numbered lines, enough for several pieces.
    fn lines(line: impl Fn(u64) -> String) -> String {
        (0..)
            .map(line)
            .scan(0, |len, line| {
                *len += line.len();
                (*len < 5 * CHUNK).then_some(line)
            })
            .collect()
    }

    /// Parse a text by pieces, and as a whole; returns whether threads did.
    fn check<P: TextParser>(
        make: impl Fn() -> P,
        text: &str,
        shape: impl Fn(&P) -> Vec<u64>,
    ) -> bool
    where
        P::Fault: PartialEq + fmt::Debug,
    {
        let text = text.as_bytes();
        let parsed = |workers: Option<usize>| {
            let mut parser = make();
            let mut out = Vec::new();
            match workers {
                None => parser.parse(text, &mut out)?,
                Some(count) => parse_lines(&mut parser, text, &Workers::new(count), &mut out)?,
            }
            parser.end(&mut out).map(|()| (shape(&parser), out))
        };
        let whole = parsed(None);
        assert!(parsed(Some(1)) == whole);
        assert!(parsed(Some(3)) == whole);
        let mut parser = make();
        let begin = line_end(text).unwrap();
        let begun = parser.parse(&text[..begin], &mut Vec::new());
        begun.is_ok()
            && parse_pieces(&parser, &lines_in_pieces(&text[begin..]), &Workers::new(2)).is_some()
    }

    #[test]
    fn lines_parsed_by_threads_are_those_parsed_in_turn() {
        let options = |columns| TextOptions {
            columns,
            missing: vec!["NA".to_owned()],
            ..TextOptions::default()
        };
        let dtype = DType::Scalar(Scalar::F64, Endian::Little);
        let table = |columns: Option<Vec<i64>>| {
            let cells = CellReader::of(&dtype).unwrap();
            move || TableParser::new(cells.clone(), Some(b','), &options(columns.clone()), true)
        };
        let shape = |table: &TableParser| table.found().unwrap().1;
        let row = |n: u64| match n % 1000 {
            7 => "\n".to_owned(),
            8 => format!("{n},NA,1e-{} # \"\n", n % 300),
            9 => format!("# {n}\r\n"),
            10 => format!(" {n} ,{n}.5, -inf\r\n"),
            _ => format!("{n},-{n}.25,0.125\n"),
        };
        let plain = |n| row(n).replace('"', "");
        assert!(check(table(None), &lines(plain), shape));
        assert!(check(table(Some(vec![-1, 0])), &lines(plain), shape));
        // the quote is in a comment, but a parser that begins there does not know this
        assert!(!check(table(None), &lines(row), shape));
        let last = format!("{}1,2", lines(plain));
        for fault in ["1,x,2\n", "1,2\n", "1,2,3,4\n", "\"1\n\",2,3\n"] {
            let at = |n| if n == 40_000 { fault.to_owned() } else { plain(n) };
            assert!(!check(table(None), &lines(at), shape), "{fault}");
        }
        check(table(None), &last, shape);
        let strings = DType::Npy(crate::dtype::NpyType::Bytes(3));
        let cells = CellReader::of(&strings).unwrap();
        let quoted = |n: u64| format!("a{n},\"b\n{n}\"\n");
        let make = || TableParser::new(cells.clone(), Some(b','), &options(None), true);
        assert!(!check(make, &lines(quoted), shape));
    }

    #[test]
    fn integers_parsed_by_threads_are_those_parsed_in_turn() {
        let row = |n: u64| match n % 1000 {
            7 => "\n# none\n".to_owned(),
            _ => format!("{n},-{n} # {n}\n"),
        };
        assert!(check(IntegersParser::default, &lines(row), IntegersParser::shape));
        let ragged = |n| if n == 50_000 { "1\n".to_owned() } else { row(n) };
        assert!(!check(IntegersParser::default, &lines(ragged), IntegersParser::shape));
    }
}
