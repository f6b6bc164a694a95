//! Arrays as text, character for character as NumPy's `print(a)` shows them.
//!
//! The reference is `numpy/_core/arrayprint.py` of NumPy 2.4 with its default options. An array is
//! read twice: once to find out how wide its numbers are (`element`), and once to write them
//! (`array`). Only shown elements are read, and no more than a line of text is held in memory. The
//! text of an element of more than 64 KiB is counted before it is written.
//!
//! ```
//! use tslice::dtype::{DType, Endian, Scalar};
//! use tslice::print::{PrintOptions, print};
//! let bytes: Vec<u8> = [0.5f32, 100.0, f32::NAN].iter().flat_map(|it| it.to_le_bytes()).collect();
//! let dtype = DType::Scalar(Scalar::F32, Endian::Little);
//! let elements = &mut |start: u64, out: &mut [u8]| {
//!     Ok::<(), ()>(out.copy_from_slice(&bytes[start as usize..][..out.len()]))
//! };
//! let mut text = String::new();
//! let write = &mut |part: &str| Ok(text.push_str(part));
//! print(&dtype, &[3], &PrintOptions::default(), elements, write).unwrap();
//! assert_eq!(text, "[  0.5 100.    nan]");
//! ```

use std::convert::Infallible;

use array::{ShownCursor, ShownElements};
use element::{Formatter, To, Words};

use crate::dtype::DType;
use crate::element::FloatFormat;

mod array;
mod element;
mod float;
mod scalar;

/// Whether elements of a dtype can be printed: all except floats of 4 and 6 bits.
pub fn can_print(dtype: &DType) -> bool {
    Formatter::new(dtype, &PrintOptions::default(), false).is_some()
}

/// Format an element as NumPy prints a scalar; empty if the dtype [cannot be](can_print).
pub fn element(dtype: &DType, bytes: &[u8]) -> String {
    let mut words = Words::<Infallible>::new(To::Held);
    let Ok(()) = scalar::write(&mut words, dtype, bytes, &PrintOptions::default());
    let Ok((_, text)) = words.end();
    text
}

/// Format a number with at most six digits, as C's `%g` does, but whole numbers below 1e15 in full.
pub fn short(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e15 {
        return value.to_string();
    }
    let mut text = String::new();
    scalar::write_small_float(&mut text, FloatFormat::DOUBLE, value.to_bits().into());
    text
}

/// Format the first characters of an element, at most `most`, with three dots if there are more.
pub fn beginning(dtype: &DType, bytes: &[u8], most: usize) -> String {
    let mut words = Words::<Infallible>::new(To::Cut(most));
    let Ok(()) = scalar::write(&mut words, dtype, bytes, &PrintOptions::default());
    let Ok((_, text)) = words.end();
    text
}

/// Write an array in pieces, without a newline at the end; nothing if it [cannot be](can_print).
pub fn print<E>(
    dtype: &DType,
    shape: &[u64],
    options: &PrintOptions,
    elements: &mut Elements<'_, E>,
    write: &mut dyn FnMut(&str) -> Result<(), E>,
) -> Result<(), E> {
    let size = dtype.item_bits() / 8;
    if shape.is_empty() {
        let mut item = vec![0; size as usize];
        elements(0, &mut item)?;
        let mut words = Words::new(To::Written(write));
        scalar::write(&mut words, dtype, &item, options)?;
        return words.end().map(drop);
    }
    if shape.contains(&0) {
        return write("[]");
    }
    let Some(mut formatter) = Formatter::new(dtype, options, false) else { return Ok(()) };
    let count = shape.iter().fold(1u64, |count, &len| count.saturating_mul(len));
    let edge = (count > options.threshold).then_some(options.edge);
    let mut cursor = ShownCursor::new(ShownElements::new(shape, edge), size);
    while formatter.observes()
        && let Some(item) = cursor.next(elements)?
    {
        formatter.observe(item);
    }
    formatter.decide();
    let cursor = ShownCursor::new(ShownElements::new(shape, edge), size);
    array::ArrayWriter { shape, edge, formatter: &formatter, cursor, elements, write }
        .write(options.line_width)
}

/// The print options of NumPy that can be changed; all others have NumPy's defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrintOptions {
    /// The most digits after the point of a float.
    pub precision: u16,
    /// Arrays with more elements are shortened; `u64::MAX` prints all.
    pub threshold: u64,
    /// The number of items shown at each end of a shortened axis.
    pub edge: u64,
    pub line_width: usize,
}

impl Default for PrintOptions {
    fn default() -> PrintOptions {
        PrintOptions { precision: 8, threshold: 1000, edge: 3, line_width: 75 }
    }
}

/// A reader of an array's elements, in C order without gaps: it fills a buffer from a position in
/// bytes.
pub type Elements<'a, E> = dyn FnMut(u64, &mut [u8]) -> Result<(), E> + 'a;
