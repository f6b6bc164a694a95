//! Why a text holds no tensor, and where.

use std::fmt;

use crate::dtype::{DType, Endian};
use crate::element::ElementError;
use crate::error::Fault;
use crate::input::field::FieldFault;

/// A place in a text, from 1 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextPlace {
    /// The line.
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
    /// What stands in a cell is no element.
    #[error("{place}: {error}")]
    Cell {
        /// Where.
        place: TextPlace,
        /// What is wrong with it.
        error: ElementError,
    },
    /// A cell would be several elements under another delimiter.
    #[error("{place}: '{text}' is not a number")]
    OtherDelimiter {
        /// Where.
        place: TextPlace,
        /// The cell.
        text: String,
        /// The delimiter.
        delimiter: char,
    },
    /// A cell in quotes does not end.
    #[error("{place}: the quotes of the cell are not closed")]
    OpenQuote {
        /// Where the text ends.
        place: TextPlace,
    },
    /// The text is in another encoding.
    #[error("the text is UTF-16, and UTF-8 is read")]
    Utf16 {
        /// The byte order, where no mark at the beginning says it.
        unmarked: Option<Endian>,
    },
    /// A cell has more bytes than are held in memory.
    #[error("{place}: the cell is longer than {} bytes", super::MAX_CELL)]
    TooLong {
        /// Where.
        place: TextPlace,
    },
    /// Nothing stands in a cell.
    #[error("{place}: the cell is empty")]
    EmptyCell {
        /// Where.
        place: TextPlace,
    },
    /// A cell is no text.
    #[error("{place}: the bytes are not UTF-8")]
    NotUtf8 {
        /// Where.
        place: TextPlace,
    },
    /// A row ends too early.
    #[error("{place}: the row ends after {}, and those before it have {expected}",
        counted(place.column - 1))]
    ShortRow {
        /// The cell that is missing.
        place: TextPlace,
        /// How many cells a row has.
        expected: u64,
    },
    /// A row is too long.
    #[error("{place}: the row has more cells than those before it, which have {expected}")]
    LongRow {
        /// The first cell that is too many.
        place: TextPlace,
        /// How many cells a row has.
        expected: u64,
    },
    /// A line of names holds a number.
    #[error("{place}: '{text}' is a number in a line of names")]
    NumberInNames {
        /// Where.
        place: TextPlace,
        /// The number.
        text: String,
    },
    /// Two columns have one name.
    #[error("{place}: there is another column named '{name}'")]
    NameTwice {
        /// The second one.
        place: TextPlace,
        /// The name.
        name: String,
    },
    /// The names take too much memory.
    #[error("{place}: the names of the columns have more than {} bytes", super::MAX_NAMES)]
    LongNames {
        /// The first that is too many.
        place: TextPlace,
    },
    /// The cells of a row that are chosen take too much memory.
    #[error("{place}: the chosen cells of the row have more than {} bytes", super::MAX_ROW)]
    LongCells {
        /// The first that is too many.
        place: TextPlace,
    },
    /// A row has no column of a number that is asked for.
    #[error("line {line}: there is no column {number}: they count from 0, and the row has {}", counted(*.found))]
    NoColumn {
        /// The line of the row.
        line: u64,
        /// The number.
        number: i64,
        /// How many cells the row has.
        found: u64,
    },
    /// The line of names has none of the fields.
    #[error(transparent)]
    Field(#[from] FieldFault),
    /// There are no elements.
    #[error("it holds no row of {}", if *.strings { "cells" } else { "numbers" })]
    NoRows {
        /// Whether the elements would be strings.
        strings: bool,
    },
    /// Elements of this dtype are not read from text.
    #[error("elements of dtype {0} are not read from text")]
    NoText(DType),
    /// The text breaks the rules of JSON, or holds other things than lists of numbers.
    #[error("{place}: {what}")]
    Json {
        /// Where.
        place: TextPlace,
        /// What stands there, or should.
        what: &'static str,
    },
    /// A list of JSON has another length than those beside it.
    #[error("{place}: a list of length {found} ends, and those before it have length {expected}")]
    RaggedLists {
        /// The end of the list.
        place: TextPlace,
        /// The length of the list.
        found: u64,
        /// The length of those before it.
        expected: u64,
    },
    /// Complex numbers of JSON are lists of two.
    #[error("complex numbers are lists of two: [real, imaginary]")]
    NotPairs,
    /// A tensor of this shape is too large.
    #[error("it holds too many elements")]
    TooLarge,
}

impl Fault for TextFault {}

fn counted(cells: u64) -> String {
    if cells == 1 { "1 cell".to_owned() } else { format!("{cells} cells") }
}
