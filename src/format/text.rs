//! The text formats: `.csv`, `.tsv`, `.txt` and `.json`.

use std::fmt;

use crate::dtype::{DType, Endian, Field};
use crate::element::{FloatFormat, Meaning};
use crate::shape::MAX_NDIM;

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

    /// The name, which files have as their extension.
    pub fn name(self) -> &'static str {
        match self {
            TextFormat::Csv => "csv",
            TextFormat::Tsv => "tsv",
            TextFormat::Txt => "txt",
            TextFormat::Json => "json",
        }
    }

    /// The format of files with that extension, in small letters.
    pub fn by_extension(extension: &str) -> Option<TextFormat> {
        TextFormat::ALL.into_iter().find(|format| format.name() == extension)
    }

    /// What parts the columns: white space where there is none.
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

    /// How many rows, or lists, the text of a tensor without elements consists of; of one with
    /// elements, 0.
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

/// The most [`empty_rows`](TextFormat::empty_rows) that are written: a shape without elements may
/// have any number of them.
pub const MAX_EMPTY_ROWS: u64 = 10_000_000;

/// The dtype that elements must have to be written as text: numbers in little-endian order. `None`
/// for dtypes without a text form.
pub fn stored_dtype(dtype: &DType) -> Option<DType> {
    let stored = match dtype {
        DType::Scalar(scalar, _) => DType::Scalar(*scalar, Endian::Little),
        DType::Npy(_) | DType::Blocks(_) => dtype.clone(),
    };
    (has_text(dtype) && columns(dtype) > 0 && stored.item_bits() > 0).then_some(stored)
}

/// Whether elements of a dtype have a text form.
fn has_text(dtype: &DType) -> bool {
    if let Some(structure) = dtype.structure() {
        return structure.fields.iter().all(|field| has_text(&field.dtype));
    }
    match Meaning::of(dtype) {
        Some(Meaning::Float(format, _) | Meaning::Complex(format, _)) => {
            format != FloatFormat::EXTENDED
        }
        meaning => !matches!(meaning, None | Some(Meaning::Void)),
    }
}

/// How many columns of csv or txt an element takes: one for each value of each field.
pub fn columns(dtype: &DType) -> u64 {
    let Some(structure) = dtype.structure() else { return 1 };
    let columns = |field: &Field| field.count().saturating_mul(columns(&field.dtype));
    structure.fields.iter().map(columns).fold(0, u64::saturating_add)
}
