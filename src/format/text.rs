//! The text formats: `.csv`, `.txt` and `.json`, which are written only.

use crate::dtype::{DType, Endian};
use crate::element::ElementKind;
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
}

/// The dtype that elements must have to be written as text: numbers in little-endian order. `None`
/// for dtypes without a text form.
pub fn stored_dtype(dtype: &DType) -> Option<DType> {
    let stored = match dtype {
        DType::Scalar(scalar, _) => DType::Scalar(*scalar, Endian::Little),
        DType::Npy(_) => dtype.clone(),
    };
    ElementKind::new(&stored).map(|_| stored)
}
