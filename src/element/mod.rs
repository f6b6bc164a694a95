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
pub(crate) use dragon4::{Big, Decimal, Trim};
pub(crate) use float::{FloatFormat, Magnitude, Specials};
pub(crate) use format::{
    Meaning, NAT, Notation, civil, days_of_civil, write_datetime, write_number, write_timedelta,
};
pub(crate) use parse::integer_literal;
pub use parse::{ElementError, parse};
