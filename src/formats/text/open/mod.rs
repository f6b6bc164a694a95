//! Text as an input: tables (csv, tsv, txt) by the rules of np.loadtxt, and nested lists of JSON.
//!
//! The text is read once, in pieces, and its elements are stored as bytes ([`seekable`]): the result is a tensor
//! like one of raw bytes. A text is recognised by its name, or by the caller, not by its first bytes.

use std::io::Read;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{fmt, io};

use json::JsonParser;
use table::TableParser;

use crate::dtype::{DType, Endian, Scalar};
use crate::element::{CellReader, ElementError};
use crate::error::{Error, ErrorKind, Fault};
use crate::execute::{Progress, UNKNOWN, Workers};
use crate::formats::open::{foreign, unrecognised};
use crate::formats::{Foreign, FormatError, LOOK_LEN, NotRead};
use crate::input::{
    Contents, FieldFault, Format, Input, OpenOptions, RecognisedFile, TextFormat, Watched,
};
use crate::shape::{self, Order};
use crate::source::{self, MemorySource, Opened, Reader, Source, SourceError};
use crate::tensor::{TensorInfo, Tensors};

mod columns;
mod integers;
mod json;
mod table;

pub use integers::IntegersFault;
pub(crate) use integers::open_integers;

const MAX_CELL: usize = 1 << 20;

/// The most bytes of all names of columns.
const MAX_NAMES: usize = 256 << 10;

/// The most bytes of a row's cells that are held until the row ends.
const MAX_ROW: usize = 16 << 20;

/// The end of the note on integers that are not exact as float64.
pub const ROUNDED: &str = "integers beyond 2^53 are read as float64";

/// A position in a text; lines and columns count from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextPosition {
    pub line: u64,
    /// The column: the number of the cell in a table, the number of the byte in JSON.
    pub column: u64,
}

impl fmt::Display for TextPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// A way to read a table with a cell that is not a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CellRemedy {
    /// A character other than the expected one between columns.
    Delimiter(char),
    /// Decimal points instead of commas.
    Points,
    /// This word as NaN.
    Missing(String),
    /// Boolean as the dtype.
    Booleans,
    /// A choice of other columns; the number of columns.
    OtherColumns(u64),
}

/// Why a text holds no tensor.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextFault {
    #[error("{position}: {error}")]
    Cell { position: TextPosition, error: ElementError, remedy: Option<CellRemedy> },
    #[error("{position}: the quotes of the cell are not closed")]
    OpenQuote { position: TextPosition },
    #[error("the text is UTF-16, and UTF-8 is read")]
    Utf16 { unmarked: Option<Endian> },
    #[error("{position}: the cell is longer than {} bytes", MAX_CELL)]
    TooLong { position: TextPosition },
    #[error("{position}: the cell is empty")]
    EmptyCell { position: TextPosition, may_be_nan: bool },
    #[error("{position}: the bytes are not UTF-8")]
    NotUtf8 { position: TextPosition },
    #[error("{position}: the row has only {}, earlier rows have {expected}",
        counted(position.column - 1))]
    ShortRow { position: TextPosition, expected: u64 },
    #[error("{position}: the row has more cells than earlier rows, which have {expected}")]
    LongRow { position: TextPosition, expected: u64 },
    #[error("{position}: '{text}' is a number in a line of names")]
    NumberInNames { position: TextPosition, text: String },
    #[error("{position}: there is another column named '{name}'")]
    NameTwice { position: TextPosition, name: String },
    #[error("{position}: the names of the columns have more than {} bytes", MAX_NAMES)]
    LongNames { position: TextPosition },
    #[error("{position}: the chosen cells of the row have more than {} bytes", MAX_ROW)]
    LongCells { position: TextPosition },
    #[error("line {line}: there is no column {number}: columns count from 0, and the row has {}", counted(*.found))]
    NoColumn { line: u64, number: i64, found: u64 },
    #[error(transparent)]
    Field(#[from] FieldFault),
    #[error("the text has no row of {}", if *.strings { "cells" } else { "numbers" })]
    NoRows { strings: bool },
    #[error("elements of dtype {0} are not read from text")]
    NoText(DType),
    #[error("{position}: {what}")]
    Json { position: TextPosition, what: &'static str },
    #[error("{position}: a list has length {found}, earlier lists have length {expected}")]
    RaggedLists { position: TextPosition, found: u64, expected: u64 },
    #[error("complex numbers are lists of two: [real, imaginary]")]
    NotPairs,
    #[error("it holds too many elements")]
    TooLarge,
}

impl Fault for TextFault {
    fn kind(&self) -> ErrorKind {
        match self {
            TextFault::NoText(_) => ErrorKind::DType,
            TextFault::Field(fault) => fault.kind(),
            TextFault::NoColumn { .. } => ErrorKind::Invalid,
            _ => ErrorKind::Damaged,
        }
    }
}

fn counted(cells: u64) -> String {
    if cells == 1 { "1 cell".to_owned() } else { format!("{cells} cells") }
}

struct ReadTensor {
    dtype: DType,
    shape: Vec<u64>,
    elements: Box<dyn Source>,
    /// Whether integers were read that are not exact as float64.
    rounds: bool,
}

/// Columns separated by commas.
pub(crate) static CSV: Format = text("csv", TextFormat::Csv, |file| open(file, TextFormat::Csv));

/// Columns separated by tabs.
pub(crate) static TSV: Format = text("tsv", TextFormat::Tsv, |file| open(file, TextFormat::Tsv));

/// Columns separated by white space.
pub(crate) static TXT: Format = text("txt", TextFormat::Txt, |file| open(file, TextFormat::Txt));

/// Nested lists.
pub(crate) static JSON: Format =
    text("json", TextFormat::Json, |file| open(file, TextFormat::Json));

const fn text(
    name: &'static str,
    form: TextFormat,
    open: fn(RecognisedFile<'_>) -> Result<Input, Error>,
) -> Format {
    Format { text: Some(form), ..Format::new(name, |_| false, open) }
}

fn format_of(form: TextFormat) -> &'static Format {
    match form {
        TextFormat::Csv => &CSV,
        TextFormat::Tsv => &TSV,
        TextFormat::Txt => &TXT,
        TextFormat::Json => &JSON,
    }
}

/// Read a whole text as elements of the given dtype; without one, as by np.loadtxt, or by the numbers in JSON.
pub(crate) fn open(file: RecognisedFile<'_>, format: TextFormat) -> Result<Input, Error> {
    let RecognisedFile { location, mut bytes, options, progress } = file;
    let looks = foreign(location, &mut bytes, LOOK_LEN);
    if let Some(kind) = looks.filter(Foreign::is_no_text) {
        return Err(NotRead(kind).into());
    }
    let ReadTensor { dtype, shape, elements, rounds } = match format {
        TextFormat::Json => json(&mut bytes, options, progress)?,
        _ => table(&mut bytes, format, options, progress)?,
    };
    if rounds && options.raw.dtype.is_none() {
        options.notes.add(format_args!("{location}: {ROUNDED}"));
    }
    if shape::byte_count(&shape, dtype.item_bits()).is_none() {
        return Err(TextFault::TooLarge.into());
    }
    let tensor = TensorInfo::new(dtype, shape, Order::C, 0);
    let contents = Contents::of(format_of(format), Tensors::from_iter([tensor]));
    Ok(Input::of_file(location, Opened::Random(elements), contents))
}

/// Read a text as a table, its columns separated by commas where there are any near its beginning.
pub(crate) fn open_numbers(mut file: RecognisedFile<'_>) -> Result<Input, Error> {
    let first = match &mut file.bytes {
        Opened::Forward(stream) => stream.peek(LOOK_LEN)?,
        Opened::Random(source) => {
            let mut first = Vec::new();
            let reader = Reader::new(source.as_ref()).take(LOOK_LEN as u64).read_to_end(&mut first);
            reader.map_err(SourceError::from)?;
            first
        }
    };
    if !integers::is_plain(&first) {
        return Err(unrecognised(file.location, file.bytes));
    }
    open(file, if first.contains(&b',') { TextFormat::Csv } else { TextFormat::Txt })
}

fn table(
    bytes: &mut Opened,
    format: TextFormat,
    options: &OpenOptions,
    progress: &Progress,
) -> Result<ReadTensor, Error> {
    let OpenOptions { raw, workers, .. } = options;
    let dtype = raw.dtype.clone().unwrap_or(DType::Scalar(Scalar::F64, Endian::Little));
    let cells = CellReader::of(&dtype).ok_or(TextFault::NoText(dtype))?;
    let options = &raw.text;
    let delimiter = options.delimiter.or(format.delimiter());
    let is_quoted = format != TextFormat::Txt && delimiter != Some(b'"');
    let mut table = TableParser::new(cells, delimiter, options, is_quoted);
    let elements = keep(bytes, &mut table, workers, progress)?;
    let (dtype, shape) = table.found()?;
    Ok(ReadTensor { dtype, shape, elements, rounds: table.rounds() })
}

fn json(
    bytes: &mut Opened,
    options: &OpenOptions,
    progress: &Progress,
) -> Result<ReadTensor, Error> {
    let workers = &options.workers;
    let dtype = options.raw.dtype.as_ref();
    // a complex number is a list of two numbers, as in outputs
    let part = match dtype {
        Some(DType::Scalar(scalar, endian)) => {
            scalar.part().map(|part| DType::Scalar(part, *endian))
        }
        _ => None,
    };
    let cells = match part.as_ref().or(dtype) {
        None => None,
        Some(read) => {
            let cells = CellReader::of(read).filter(|cells| !cells.are_strings());
            let unfit = || TextFault::NoText(dtype.unwrap_or(read).clone());
            Some(cells.ok_or_else(unfit)?)
        }
    };
    let mut parser = JsonParser::new(cells);
    let mut elements = keep(bytes, &mut parser, workers, progress)?;
    let mut shape = parser.shape();
    let dtype = match dtype {
        Some(dtype) => dtype.clone(),
        None => {
            let (dtype, recoder) = parser.dtype()?;
            if let Some(mut recoder) = recoder {
                elements = parse(Reader::new(elements.as_ref()), &mut recoder, workers)?;
            }
            dtype
        }
    };
    if part.is_some() && shape.pop() != Some(2) {
        return Err(TextFault::NotPairs.into());
    }
    let rounds = parser.has_wide() && dtype == DType::Scalar(Scalar::F64, Endian::Little);
    Ok(ReadTensor { dtype, shape, elements, rounds })
}

/// Whether a text is an integer beyond those that are exact as float64.
fn is_wide(text: &str) -> bool {
    let is_long = text.len() > 15;
    is_long
        && text.parse().is_ok_and(|value: i128| value.unsigned_abs() > 1 << f64::MANTISSA_DIGITS)
}

/// The bytes of elements up to which they stay in memory.
const FEW: u64 = 256 << 10;

/// The bytes of text that are read at a time for each thread.
const CHUNK: usize = 256 << 10;

/// The bytes of text that a thread parses at a time.
const PIECE: usize = 32 << 10;

/// The bytes at the beginning of a text that show its encoding.
const LOOK: u64 = 64;

/// The byte order mark that some programs write before UTF-8.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// A parser of text that comes in pieces, cut anywhere.
trait TextParser: Sized + Send + Sync {
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
fn keep<P: TextParser>(
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
fn parse<P: TextParser>(
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
    let next = AtomicUsize::new(0);
    let parsed: Vec<_> = pieces.iter().map(|_| OnceLock::new()).collect();
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(lines) = pieces.get(number) else { return };
            let mut elements = Vec::new();
            let fork = parser.fork(lines);
            let done =
                fork.and_then(|mut fork| fork.parse(lines, &mut elements).ok().map(|()| fork));
            let Some(fork) = done else {
                // the other pieces are useless
                return next.store(pieces.len(), Ordering::Relaxed);
            };
            // each number is taken once
            let _ = parsed[number].set((fork, elements));
        }
    };
    workers.broadcast(pieces.len().min(workers.count()), work).ok()?;
    parsed.into_iter().map(OnceLock::into_inner).collect()
}

#[cfg(test)]
mod tests {
    use super::integers::IntegersParser;
    use super::*;
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
