//! The cells of a table as elements, and other ways to read a table where a cell is none.

use super::{CellRemedy, TextPosition, WIDE, is_wide};
use crate::element::{CellReader, ElementError, trimmed};
use crate::formats::text::TextFault;
use crate::tensor::shortened;

/// The reader of a table's cells.
#[derive(Clone)]
pub(super) struct Cells {
    pub(super) reader: CellReader,
    pub(super) delimiter: Option<u8>,
    /// The words that are NaN.
    pub(super) missing: Vec<String>,
    /// The number of cells of a row, once it is known.
    pub(super) columns: Option<u64>,
    /// Whether a cell is an integer that is not exact as float64.
    pub(super) has_wide: bool,
}

impl Cells {
    /// Append the element of a cell.
    #[inline]
    pub(super) fn push(
        &mut self,
        position: TextPosition,
        text: &str,
        out: &mut Vec<u8>,
    ) -> Result<(), TextFault> {
        // where NaN is not an element, the cell itself is refused
        if self.is_missing(text) && self.reader.push("nan", out).is_some() {
            return Ok(());
        }
        self.has_wide = self.has_wide || text.len() > WIDE && is_wide(trimmed(text));
        self.reader.push(text, out).ok_or_else(|| match trimmed(text) {
            "" => self.empty_cell(position),
            _ => self.refused(position, text),
        })
    }

    pub(super) fn empty_cell(&self, position: TextPosition) -> TextFault {
        TextFault::EmptyCell { position, may_be_nan: self.reader.hold_nan() }
    }

    fn is_missing(&self, text: &str) -> bool {
        let is_text = self.reader.are_strings();
        !is_text && self.missing.iter().any(|word| word == trimmed(text))
    }

    /// The error for a cell that is not an element.
    pub(super) fn refused(&self, position: TextPosition, text: &str) -> TextFault {
        let error = self.reader.refusal(text, &shortened(text));
        let is_word = matches!(error, ElementError::NotANumber(_));
        let remedy = if is_word { self.remedy(position, trimmed(text)) } else { None };
        TextFault::Cell { position, error, remedy }
    }

    /// A way to read the table in which this cell is not a number.
    fn remedy(&self, position: TextPosition, text: &str) -> Option<CellRemedy> {
        let parted = |delimiter: &char| {
            let mut parts = text.split(*delimiter).map(trimmed).filter(|part| !part.is_empty());
            text.contains(*delimiter) && parts.all(|part| self.reader.is_number(part))
        };
        let own = self.delimiter.map(char::from);
        let others = [';', '\t', ',', ' ', '|'].into_iter();
        let is_boolean = ["TRUE", "FALSE"].iter().any(|word| text.eq_ignore_ascii_case(word));
        match others.filter(|other| own != Some(*other)).find(parted) {
            // where another delimiter splits the cell, commas are decimal commas: around the cell or in it
            Some(_) if own == Some(',') && position.column > 1 => Some(CellRemedy::Points),
            Some(',') if own.is_some() && text.matches(',').count() == 1 => {
                Some(CellRemedy::Points)
            }
            Some(delimiter) => Some(CellRemedy::Delimiter(delimiter)),
            None if stands_for_none(text) => {
                self.reader.hold_nan().then(|| CellRemedy::Missing(text.to_owned()))
            }
            None if is_boolean => Some(CellRemedy::Booleans),
            None => self.columns.filter(|&columns| columns > 1).map(CellRemedy::OtherColumns),
        }
    }

    /// Whether a cell of the first line holds a number.
    pub(super) fn holds_number(&self, text: &str) -> bool {
        let is_missing = || !text.is_empty() && self.is_missing(text);
        !self.reader.are_strings() && (self.reader.is_number(text) || is_missing())
    }

    /// Whether a cell of the first line is a number, begins like one, or stands for a missing one.
    pub(super) fn is_suspect(&self, text: &str) -> bool {
        let digits = trimmed(text).trim_start_matches(['+', '-', '.']);
        let begins_as_one = digits.starts_with(|char: char| char.is_ascii_digit());
        begins_as_one || stands_for_none(trimmed(text)) || self.holds_number(text)
    }
}

/// Whether a word stands for a missing number, or one that does not fit in its column.
fn stands_for_none(text: &str) -> bool {
    let is_of = |char: char| !text.is_empty() && text.chars().all(|it| it == char);
    matches!(text, "NA" | "N/A" | "n/a" | "NULL" | "null" | "?") || is_of('-') || is_of('*')
}
