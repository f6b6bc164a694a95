//! The text formats: `.csv`, `.tsv`, `.txt` and `.json`.

use crate::dtype::{DType, Endian, Field};
use crate::element::{FloatFormat, Meaning};

mod open;
pub(super) mod output;

pub(crate) use open::{CSV, JSON, TSV, TXT, open, open_integers, open_numbers};
pub use open::{CellRemedy, IntegersFault, ROUNDED, TextFault, TextPosition};

/// The dtype of elements that are written as text: numbers in little-endian order. `None` for
/// dtypes without a text form.
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

/// The number of columns of an element in csv or txt: one for each value of each field.
pub fn columns(dtype: &DType) -> u64 {
    let Some(structure) = dtype.structure() else { return 1 };
    let columns = |field: &Field| field.count().saturating_mul(columns(&field.dtype));
    structure.fields.iter().map(columns).fold(0, u64::saturating_add)
}
