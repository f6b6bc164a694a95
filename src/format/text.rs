//! The text formats: `.csv`, `.txt` and `.json`, which are written only.

use crate::dtype::{DType, Endian, Field, NpyType, Scalar, TimeUnit};
use crate::element::writes_number;
use crate::shape::MAX_NDIM;

/// A text format for elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextFormat {
    /// Columns separated by commas.
    Csv,
    /// Columns separated by spaces, as np.loadtxt reads them.
    Txt,
    /// Nested lists.
    Json,
}

impl TextFormat {
    /// The most axes that a tensor may have in this format.
    pub fn max_ndim(self) -> usize {
        match self {
            TextFormat::Csv | TextFormat::Txt => 2,
            TextFormat::Json => MAX_NDIM,
        }
    }

    /// How many rows, or lists, the text of a tensor without elements consists of; of one with
    /// elements, 0.
    pub fn empty_rows(self, shape: &[u64]) -> u64 {
        match (self, shape.iter().position(|&len| len == 0)) {
            (_, None) => 0,
            (TextFormat::Csv | TextFormat::Txt, Some(_)) => match shape {
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

/// The most [`empty_rows`](TextFormat::empty_rows) that are written: a shape without elements may
/// have any number of them.
pub const MAX_EMPTY_ROWS: u64 = 10_000_000;

/// The dtype that elements must have to be written as text: numbers in little-endian order. `None`
/// for dtypes without a text form.
pub fn stored_dtype(dtype: &DType) -> Option<DType> {
    let stored = match dtype {
        DType::Scalar(scalar, _) => DType::Scalar(*scalar, Endian::Little),
        DType::Npy(_) => dtype.clone(),
    };
    let has_columns = |value: TextValue| value.columns() > 0 && stored.item_bits() > 0;
    TextValue::of(&stored).is_some_and(has_columns).then_some(stored)
}

/// What is written of an element: a value or, of a structure, several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextValue {
    /// A number.
    Number(Scalar, Endian),
    /// `S`: a UTF-8 string, padded with zeros.
    Bytes,
    /// `U`: a string of 4-byte code points, padded with zeros.
    Unicode(Endian),
    /// A point in time, in ISO 8601.
    Datetime(Endian, TimeUnit),
    /// A length of time, as the number of its units.
    Timedelta(Endian),
    /// Fields of a structure.
    Fields(Vec<TextField>),
}

/// A field of a structure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextField {
    /// The name of the field.
    pub name: String,
    /// Where it begins in the structure, in bytes.
    pub offset: usize,
    /// Bytes of a value.
    pub size: usize,
    /// The shape of a subarray; empty for one value.
    pub shape: Vec<u64>,
    /// What is written of each.
    pub value: TextValue,
}

impl TextValue {
    /// `None` for a dtype that has no text form.
    pub fn of(dtype: &DType) -> Option<TextValue> {
        let npy = match dtype {
            &DType::Scalar(scalar, endian) => {
                return writes_number(scalar).then_some(TextValue::Number(scalar, endian));
            }
            DType::Npy(npy) => npy,
        };
        match npy {
            NpyType::Bytes(_) => Some(TextValue::Bytes),
            NpyType::Unicode(_, endian) => Some(TextValue::Unicode(*endian)),
            NpyType::Datetime(endian, unit) => Some(TextValue::Datetime(*endian, *unit)),
            NpyType::Timedelta(endian, _) => Some(TextValue::Timedelta(*endian)),
            NpyType::Structure(structure) => {
                let field = |field: &Field| {
                    Some(TextField {
                        offset: usize::try_from(field.offset).ok()?,
                        size: usize::try_from(field.itemsize()).ok()?,
                        value: TextValue::of(&field.dtype)?,
                        name: field.name.clone(),
                        shape: field.shape.clone(),
                    })
                };
                Some(TextValue::Fields(structure.fields.iter().map(field).collect::<Option<_>>()?))
            }
            NpyType::Void(..) | NpyType::LongDouble(_) | NpyType::ComplexLongDouble(_) => None,
        }
    }

    /// How many columns of csv or txt it takes: one for each value of each field.
    pub fn columns(&self) -> u64 {
        let TextValue::Fields(fields) = self else { return 1 };
        let columns = |field: &TextField| {
            let values = field.shape.iter().fold(1u64, |count, &len| count.saturating_mul(len));
            values.saturating_mul(field.value.columns())
        };
        fields.iter().map(columns).fold(0, u64::saturating_add)
    }
}
