//! Options of texts: the format, and how columns are read.

use std::fmt;

use crate::shape::MAX_NDIM;

/// Options of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextOptions {
    /// The format; `None` to take it from the name of the file.
    pub format: Option<TextFormat>,
    /// The byte between the cells of a table; `None` for the format's own.
    pub delimiter: Option<u8>,
    /// The number of lines skipped at the beginning of a table.
    pub skip_rows: Option<u64>,
    /// Cells of a table that are read as NaN; an empty text means an empty cell.
    pub missing: Vec<String>,
    /// Whether the first line of a table names the fields of a structured dtype.
    pub names: bool,
    /// The fields that are taken, written as in [`Transform::fields`](crate::input::Transform::fields): a
    /// table has fields named in its first line, and only these are read.
    pub fields: Option<String>,
    /// The columns of a table that are read, counted from 0, in this order; negative ones count
    /// from the end.
    pub columns: Option<Vec<i64>>,
}

/// A text format for elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextFormat {
    Csv,
    Tsv,
    /// Columns separated by spaces, as np.loadtxt reads them.
    Txt,
    Json,
}

impl TextFormat {
    pub const ALL: [TextFormat; 4] =
        [TextFormat::Csv, TextFormat::Tsv, TextFormat::Txt, TextFormat::Json];

    /// The name, which is the extension of its files.
    pub fn name(self) -> &'static str {
        match self {
            TextFormat::Csv => "csv",
            TextFormat::Tsv => "tsv",
            TextFormat::Txt => "txt",
            TextFormat::Json => "json",
        }
    }

    /// The format of files with that extension, in lower case.
    pub fn by_extension(extension: &str) -> Option<TextFormat> {
        TextFormat::ALL.into_iter().find(|format| format.name() == extension)
    }

    /// The byte between columns; `None` for white space.
    pub fn delimiter(self) -> Option<u8> {
        match self {
            TextFormat::Csv => Some(b','),
            TextFormat::Tsv => Some(b'\t'),
            TextFormat::Txt | TextFormat::Json => None,
        }
    }

    /// The most axes that a tensor may have in this format.
    pub fn max_ndim(self) -> usize {
        match self {
            TextFormat::Csv | TextFormat::Tsv | TextFormat::Txt => 2,
            TextFormat::Json => MAX_NDIM,
        }
    }

    /// The number of rows, or lists, in the text of a tensor without elements; 0 for a tensor with
    /// elements.
    pub fn empty_rows(self, shape: &[u64]) -> u64 {
        match (self, shape.iter().position(|&len| len == 0)) {
            (_, None) => 0,
            (TextFormat::Csv | TextFormat::Tsv | TextFormat::Txt, Some(_)) => match shape {
                &[rows, 0] => rows,
                _ => 0,
            },
            (TextFormat::Json, Some(axis)) => {
                let mut lists = 1u64;
                let inner = shape[..axis].iter().map(|&len| {
                    lists = lists.saturating_mul(len);
                    lists
                });
                inner.fold(1, u64::saturating_add)
            }
        }
    }
}

impl fmt::Display for TextFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
