//! Single elements: from text to bytes ([`parse()`]), and from bytes to numbers and text.
//!
//! Tensors, files and separators between elements are not known here.
//!
//! ```
//! use tslice::dtype::{DType, Endian, Scalar};
//! use tslice::element;
//! let big = DType::Scalar(Scalar::I16, Endian::Big);
//! assert_eq!(element::parse("-2", &big), Ok(vec![0xff, 0xfe]));
//! let half = DType::Scalar(Scalar::F16, Endian::Little);
//! assert_eq!(element::parse("65519", &half), Ok(vec![0xff, 0x7b]));
//! assert!(element::parse("300", &DType::Scalar(Scalar::U8, Endian::Little)).is_err());
//! ```

mod cell;
mod dragon4;
mod float;
mod format;
mod parse;

pub(crate) use cell::{CellReader, trimmed};
pub(crate) use dragon4::{Decimal, Trim};
pub(crate) use float::{FloatFormat, Magnitude, Specials};
pub(crate) use format::{
    Meaning, NAT, Notation, civil, days_of_civil, write_datetime, write_number, write_timedelta,
};
pub use parse::{ElementError, parse};

use crate::dtype::DType;

/// The largest element, in bytes, that is held in memory to be printed, written as text or
/// compared.
const MOST_HELD: u64 = 16 << 20;

/// The error for an element so large that it can only be copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "elements of {0} bytes are copied only: to be printed, written as text or compared, an element has at \
     most {MOST_HELD}"
)]
pub struct LargeElement(pub u64);

/// Check that an element of a dtype is small enough to be held in memory.
pub fn check_held(dtype: &DType) -> Result<(), LargeElement> {
    let bytes = dtype.item_bits() / 8;
    if bytes > MOST_HELD { Err(LargeElement(bytes)) } else { Ok(()) }
}
