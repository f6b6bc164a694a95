//! Element types: their sizes, byte orders and names, the fields of structures and their places.
//!
//! A dtype is a value, made once where a header or a flag is read: nothing else parses the text of
//! one. What goes through the parts of an element, to print, write or compare them, goes by
//! [`Walk`]. Scalars have one table, the names that NumPy and the safetensors format have for them
//! among its columns.
//!
//! ```
//! use tslice::dtype::{DType, Endian, Scalar};
//! let dtype = DType::Scalar(Scalar::C64, Endian::Big);
//! assert_eq!((dtype.item_bits(), dtype.swap_width()), (64, 4));
//! assert_eq!(dtype.to_string(), ">c8");
//! ```

mod blocks;
mod integers;
mod literal;
mod repr;
mod scalar;
mod time;
mod types;
mod walk;

pub use blocks::BlockType;
pub(crate) use integers::Integers;
pub use literal::literal;
pub use repr::is_printable;
pub(crate) use repr::{CodePoints, write_str};
pub use scalar::{Endian, NumberKind, Scalar};
pub use time::{TimeKind, TimeUnit};
pub use types::{DType, Field, NpyType, Structure};
pub(crate) use walk::Shortened;
pub use walk::{Paused, Step, Walk};
