//! Text as an input: tables (csv, tsv, txt) by the rules of np.loadtxt, and nested lists of JSON.
//!
//! The text is read once, in pieces, and its elements are kept as bytes ([`kept`]):
//! what is opened is a tensor like that of raw bytes. Nothing in the first bytes of a text tells that it is
//! one: its name does, or who opens it.

use std::io::{ErrorKind, Read};
use std::{fmt, io};

use json::JsonParser;
use table::TableParser;

use super::field::FieldFault;
use super::open::foreign;
use super::opened::Input;
use super::options::Location;
use crate::dtype::{DType, Endian, Scalar};
use crate::element::{CellReader, ElementError};
use crate::error::{Error, Fault};
use crate::execute::{Progress, UNKNOWN};
use crate::format::{
    Contents, Foreign, Format, FormatError, LOOK_LEN, TensorInfo, Tensors, TextFormat,
};
use crate::input::bytes::Watched;
use crate::shape::{self, Order};
use crate::source::{self, MemorySource, Opened, Reader, Source, SourceError};

mod columns;
mod integers;
mod json;
mod table;

pub use integers::IntegersFault;
pub(super) use integers::open_integers;

const MAX_CELL: usize = 1 << 20;

/// The most bytes of all names of columns.
const MAX_NAMES: usize = 256 << 10;

/// The most bytes of the cells of a row that are held until it ends.
const MAX_ROW: usize = 16 << 20;

/// What a caller can say about a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextOptions {
    /// The format; without it the name of the file tells it.
    pub format: Option<TextFormat>,
    /// The byte between the cells of a table; without it that of the format.
    pub delimiter: Option<u8>,
    /// How many lines of a table are skipped at its beginning.
    pub skip_rows: Option<u64>,
    /// Cells of a table that are read as NaN; an empty one stands for the empty cell.
    pub missing: Vec<String>,
    /// Whether the first line of a table names the fields of a structured dtype.
    pub names: bool,
    /// The fields that are to be taken, as [`Seen::fields`](crate::input::Seen::fields) has them: a
    /// table has fields by the names in its first line, and only these are read.
    pub fields: Option<String>,
    /// The columns of a table that are read, from 0 on, in this order; negative ones count from the end.
    pub columns: Option<Vec<i64>>,
}

/// A place in a text, from 1 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextPlace {
    pub line: u64,
    /// The column: of a table the number of the cell, of JSON that of the byte.
    pub column: u64,
}

impl fmt::Display for TextPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// Why a text holds no tensor.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextFault {
    #[error("{place}: {error}")]
    Cell { place: TextPlace, error: ElementError },
    #[error("{place}: '{text}' is not a number")]
    OtherDelimiter { place: TextPlace, text: String, delimiter: char },
    #[error("{place}: the quotes of the cell are not closed")]
    OpenQuote { place: TextPlace },
    #[error("the text is UTF-16, and UTF-8 is read")]
    Utf16 { unmarked: Option<Endian> },
    #[error("{place}: the cell is longer than {} bytes", MAX_CELL)]
    TooLong { place: TextPlace },
    #[error("{place}: the cell is empty")]
    EmptyCell { place: TextPlace },
    #[error("{place}: the bytes are not UTF-8")]
    NotUtf8 { place: TextPlace },
    #[error("{place}: the row ends after {}, and those before it have {expected}",
        counted(place.column - 1))]
    ShortRow { place: TextPlace, expected: u64 },
    #[error("{place}: the row has more cells than those before it, which have {expected}")]
    LongRow { place: TextPlace, expected: u64 },
    #[error("{place}: '{text}' is a number in a line of names")]
    NumberInNames { place: TextPlace, text: String },
    #[error("{place}: there is another column named '{name}'")]
    NameTwice { place: TextPlace, name: String },
    #[error("{place}: the names of the columns have more than {} bytes", MAX_NAMES)]
    LongNames { place: TextPlace },
    #[error("{place}: the chosen cells of the row have more than {} bytes", MAX_ROW)]
    LongCells { place: TextPlace },
    #[error("line {line}: there is no column {number}: they count from 0, and the row has {}", counted(*.found))]
    NoColumn { line: u64, number: i64, found: u64 },
    #[error(transparent)]
    Field(#[from] FieldFault),
    #[error("it holds no row of {}", if *.strings { "cells" } else { "numbers" })]
    NoRows { strings: bool },
    #[error("elements of dtype {0} are not read from text")]
    NoText(DType),
    #[error("{place}: {what}")]
    Json { place: TextPlace, what: &'static str },
    #[error("{place}: a list of length {found} ends, and those before it have length {expected}")]
    RaggedLists { place: TextPlace, found: u64, expected: u64 },
    #[error("complex numbers are lists of two: [real, imaginary]")]
    NotPairs,
    #[error("it holds too many elements")]
    TooLarge,
}

impl Fault for TextFault {}

fn counted(cells: u64) -> String {
    if cells == 1 { "1 cell".to_owned() } else { format!("{cells} cells") }
}

struct ReadTensor {
    dtype: DType,
    shape: Vec<u64>,
    elements: Box<dyn Source>,
}

/// Read all of a text as elements of a dtype; without one, as np.loadtxt does, or as JSON tells.
pub(super) fn open(
    location: &Location,
    mut bytes: Opened,
    format: TextFormat,
    dtype: Option<&DType>,
    options: &TextOptions,
    progress: &Progress,
) -> Result<Input, Error> {
    let looks = foreign(location, &mut bytes, LOOK_LEN);
    if let Some(kind) = looks.filter(Foreign::is_no_text) {
        return Err(FormatError::Foreign(kind).into());
    }
    let ReadTensor { dtype, shape, elements } = match format {
        TextFormat::Json => json(&mut bytes, dtype, progress)?,
        _ => table(&mut bytes, format, dtype, options, progress)?,
    };
    if shape::byte_count(&shape, dtype.item_bits()).is_none() {
        return Err(TextFault::TooLarge.into());
    }
    let tensor = TensorInfo::new(dtype, shape, Order::C, 0);
    let contents = Contents::of(Format::Text(format), Tensors::from_iter([tensor]));
    Ok(Input::of_file(location, Opened::Random(elements), contents))
}

fn table(
    bytes: &mut Opened,
    format: TextFormat,
    dtype: Option<&DType>,
    options: &TextOptions,
    progress: &Progress,
) -> Result<ReadTensor, Error> {
    let dtype = dtype.cloned().unwrap_or(DType::Scalar(Scalar::F64, Endian::Little));
    let cells = CellReader::of(&dtype).ok_or(TextFault::NoText(dtype))?;
    let delimiter = options.delimiter.or(format.delimiter());
    let is_quoted = format != TextFormat::Txt && delimiter != Some(b'"');
    let mut table = TableParser::new(cells, delimiter, options, is_quoted);
    let elements = keep(bytes, &mut table, progress)?;
    let (dtype, shape) = table.found()?;
    Ok(ReadTensor { dtype, shape, elements })
}

fn json(
    bytes: &mut Opened,
    dtype: Option<&DType>,
    progress: &Progress,
) -> Result<ReadTensor, Error> {
    // a complex number is a list of two, as it is written
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
    let mut elements = keep(bytes, &mut parser, progress)?;
    let mut shape = parser.shape();
    let dtype = match dtype {
        Some(dtype) => dtype.clone(),
        None => {
            let (dtype, recoder) = parser.dtype()?;
            if let Some(mut recoder) = recoder {
                elements = parse(Reader::new(elements.as_ref()), &mut recoder)?;
            }
            dtype
        }
    };
    if part.is_some() && shape.pop() != Some(2) {
        return Err(TextFault::NotPairs.into());
    }
    Ok(ReadTensor { dtype, shape, elements })
}

/// Bytes of elements that are kept in memory.
const FEW: u64 = 256 << 10;

/// Bytes of text that are read at a time.
const CHUNK: usize = 64 << 10;

/// Bytes at the beginning of a text by which its encoding is known.
const LOOK: u64 = 64;

/// The byte order mark that some programs write before UTF-8.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// Makes elements of a text that comes in pieces, cut anywhere.
trait TextParser {
    /// Why a text is none of those that it reads.
    type Fault: Fault + 'static;

    /// Take the next piece, and append the bytes of elements that are complete.
    fn parse(&mut self, text: &[u8], out: &mut Vec<u8>) -> Result<(), Self::Fault>;

    fn end(&mut self, out: &mut Vec<u8>) -> Result<(), Self::Fault>;
}

/// Read all of a text, without the mark that it may begin with, and keep its elements.
fn keep<P: TextParser>(
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
fn parse<P: TextParser>(text: impl Read, parser: &mut P) -> Result<Box<dyn Source>, Error> {
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
