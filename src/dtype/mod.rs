//! Element types: sizes, byte orders, names, and the fields of structures.
//!
//! A dtype is parsed once, where a header or a flag is read; everything else uses the value.
//! [`Walk`] visits the parts of an element, to print, write or compare them. One table lists the
//! scalars with the names that NumPy and the safetensors format have for them.
//!
//! ```
//! use tslice::dtype::{DType, Endian, Scalar};
//! let dtype = DType::Scalar(Scalar::C64, Endian::Big);
//! assert_eq!((dtype.item_bits(), dtype.swap_width()), (64, 4));
//! assert_eq!(dtype.to_string(), ">c8");
//! ```

mod literal;
mod scalar;
mod types;
mod walk;

pub(crate) use literal::{CodePoints, write_str};
pub use literal::{is_printable, literal};
pub(crate) use scalar::Integers;
pub use scalar::{Endian, NumberKind, Scalar};
pub use types::{BlockType, DType, Field, NpyType, Structure, TimeKind, TimeUnit};
pub(crate) use walk::Shortened;
pub use walk::{Paused, Step, Walk};
