//! Text as an input: tables (csv, tsv, txt) by the rules of np.loadtxt, and nested lists of JSON.
//!
//! The text is read once, in pieces, and its elements are kept as bytes ([`kept`]):
//! what is opened is a tensor like that of raw bytes. Nothing in the first bytes of a text tells that it is
//! one: its name does, or who opens it.

use std::fmt;

use super::field::FieldFault;
use super::looks::foreign;
use super::opened::Input;
use super::options::Location;
use crate::dtype::{DType, Endian, Scalar};
use crate::element::{CellReader, ElementError};
use crate::error::{Error, Fault};
use crate::execute::Progress;
use crate::format::{
    Contents, Foreign, Format, FormatError, LOOK_LEN, TensorInfo, Tensors, TextFormat,
};
use crate::shape::{self, Order};
use crate::source::{Opened, Reader, Source};

mod columns;
mod integers;
mod json;
mod kept;
mod table;

pub use integers::IntegersFault;
pub(super) use integers::open_integers;
use json::JsonParser;
use table::TableParser;

/// The most bytes of a cell.
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
    /// The fields that are to be taken, as [`Input::take_fields`](crate::input::Input::take_fields) has them: a
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

/// A tensor that has been read of a text.
struct Read {
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
    let Read { dtype, shape, elements } = match format {
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
) -> Result<Read, Error> {
    let dtype = dtype.cloned().unwrap_or(DType::Scalar(Scalar::F64, Endian::Little));
    let cells = CellReader::of(&dtype).ok_or(TextFault::NoText(dtype))?;
    let delimiter = options.delimiter.or(format.delimiter());
    let is_quoted = format != TextFormat::Txt && delimiter != Some(b'"');
    let mut table = TableParser::new(cells, delimiter, options, is_quoted);
    let elements = kept::keep(bytes, &mut table, progress)?;
    let (dtype, shape) = table.found()?;
    Ok(Read { dtype, shape, elements })
}

fn json(bytes: &mut Opened, dtype: Option<&DType>, progress: &Progress) -> Result<Read, Error> {
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
    let mut elements = kept::keep(bytes, &mut parser, progress)?;
    let mut shape = parser.shape();
    let dtype = match dtype {
        Some(dtype) => dtype.clone(),
        None => {
            let (dtype, recoder) = parser.dtype()?;
            if let Some(mut recoder) = recoder {
                elements = kept::parse(Reader::new(elements.as_ref()), &mut recoder)?;
            }
            dtype
        }
    };
    if part.is_some() && shape.pop() != Some(2) {
        return Err(TextFault::NotPairs.into());
    }
    Ok(Read { dtype, shape, elements })
}
