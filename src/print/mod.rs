//! Arrays as text, character for character as NumPy's `print(a)` shows them.
//!
//! The reference is `numpy/_core/arrayprint.py` of NumPy 2.4 with its default options. An array is
//! gone through twice: once to find out how wide its numbers are (`element`), and once to write them
//! (`array`). Of one that is shortened, only the elements that are shown are read (`kept`), and
//! nothing is held but one line of text, whatever is printed.
//!
//! ```
//! use tslice::dtype::{DType, Endian, Scalar};
//! use tslice::print::{InMemory, PrintOptions, print};
//! let bytes: Vec<u8> = [0.5f32, 100.0, f32::NAN].iter().flat_map(|it| it.to_le_bytes()).collect();
//! let dtype = DType::Scalar(Scalar::F32, Endian::Little);
//! let mut elements = InMemory { bytes: &bytes, itemsize: 4 };
//! let mut text = String::new();
//! let write = &mut |part: &str| Ok(text.push_str(part));
//! print(&dtype, &[3], &PrintOptions::default(), &mut elements, write).unwrap();
//! assert_eq!(text, "[  0.5 100.    nan]");
//! ```

mod array;
mod element;
mod elements;
mod float;
mod kept;
mod number;
mod options;
mod scalar;
mod strings;

use crate::dtype::DType;
use element::Formatter;
pub use elements::{Elements, InMemory};
use kept::{Cursor, Kept};
pub use options::PrintOptions;

/// Whether elements of a dtype can be printed: all but floats of 4 and 6 bits, and descriptions
/// that no reader makes.
pub fn can_print(dtype: &DType) -> bool {
    Formatter::new(dtype, &PrintOptions::default(), false).is_some()
}

/// An element as NumPy prints one that stands alone; nothing for a dtype that
/// [cannot be printed](can_print).
pub fn element(dtype: &DType, bytes: &[u8]) -> String {
    let mut text = String::new();
    scalar::write(&mut text, dtype, bytes, &PrintOptions::default());
    text
}

/// Write an array in parts, without a newline at the end; nothing for a dtype that
/// [cannot be printed](can_print).
///
/// # Errors
/// Those of `elements` and of `write`.
pub fn print<E: Elements>(
    dtype: &DType,
    shape: &[u64],
    options: &PrintOptions,
    elements: &mut E,
    write: &mut dyn FnMut(&str) -> Result<(), E::Error>,
) -> Result<(), E::Error> {
    let itemsize = (dtype.item_bits() / 8) as usize;
    if shape.is_empty() {
        let mut bytes = Vec::new();
        elements.read(0, 1, &mut bytes)?;
        let mut text = String::new();
        scalar::write(&mut text, dtype, &bytes, options);
        return write(&text);
    }
    if shape.contains(&0) {
        return write("[]");
    }
    let Some(mut formatter) = Formatter::new(dtype, options, false) else { return Ok(()) };
    let count = shape.iter().fold(1u64, |count, &len| count.saturating_mul(len));
    let edge = (count > options.threshold).then_some(options.edge);
    let mut cursor = Cursor::new(Kept::new(shape, edge), itemsize);
    while let Some(element) = cursor.next(elements)? {
        formatter.observe(element);
    }
    formatter.decide();
    let cursor = Cursor::new(Kept::new(shape, edge), itemsize);
    array::Writer { shape, edge, formatter: &formatter, cursor, elements, write }
        .write(options.line_width)
}
