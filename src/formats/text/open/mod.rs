//! Text as an input: tables (csv, tsv, txt) by the rules of np.loadtxt, and nested lists of JSON.
//!
//! The text is read once, in pieces, and its elements are stored as bytes ([`keep`]): the result is a tensor
//! like one of raw bytes. A text is recognised by its name, or by the caller, not by its first bytes.

use std::fmt;
use std::io::Read;

use json::JsonParser;
use pieces::{keep, parse};
use table::TableParser;

use crate::dtype::{DType, Endian, Scalar};
use crate::element::{CellReader, ElementError};
use crate::error::{Error, ErrorKind, Fault};
use crate::execute::Progress;
use crate::formats::recognise::{foreign, unrecognised};
use crate::formats::{Foreign, LOOK_LEN, NotRead};
use crate::input::{Contents, FieldFault, Format, Input, OpenOptions, RecognisedFile, TextFormat};
use crate::shape::{self, Order};
use crate::source::{Opened, Reader, Source, SourceError};
use crate::tensor::{TensorInfo, Tensors};

mod cells;
mod columns;
mod integers;
mod json;
mod names;
mod pieces;
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
    let cells = part.as_ref().or(dtype).map(|read| {
        let cells = CellReader::of(read).filter(|cells| !cells.are_strings());
        cells.ok_or_else(|| TextFault::NoText(dtype.unwrap_or(read).clone()))
    });
    let mut parser = JsonParser::new(cells.transpose()?);
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

/// The most bytes of a text that is surely no [wide](is_wide) integer.
const WIDE: usize = 15;

/// Whether a text is an integer beyond those that are exact as float64.
fn is_wide(text: &str) -> bool {
    text.len() > WIDE
        && text.parse().is_ok_and(|value: i128| value.unsigned_abs() > 1 << f64::MANTISSA_DIGITS)
}
