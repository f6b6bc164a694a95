//! What is wrong with a `.npy` header.

use super::literal::LiteralError;
use crate::shape::MAX_NDIM;

/// The longest header text in bytes, though its version allows 4 GiB; np.load's limit is 10000.
pub(super) const MAX_HEADER: u64 = 16 << 20;

/// What is wrong with a `.npy` header.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NpyError {
    /// A version that NumPy does not know either.
    #[error("version {0}.{1} of the format is unknown; 1.0, 2.0 and 3.0 are read")]
    Version(u8, u8),
    /// Longer than the limit.
    #[error("{0} bytes long, {MAX_HEADER} are allowed")]
    TooLong(u64),
    /// Version 3.0 is UTF-8.
    #[error("the text is not UTF-8")]
    Encoding,
    /// No Python literal.
    #[error(transparent)]
    PyLiteral(#[from] LiteralError),
    /// Something else than the dictionary of three entries.
    #[error("not a dictionary of 'descr', 'fortran_order' and 'shape'")]
    Keys,
    /// Neither `True` nor `False`.
    #[error("'fortran_order' is neither True nor False")]
    FortranOrder,
    /// Not a tuple of integers.
    #[error("'shape' is not a tuple of integers")]
    Shape,
    /// A header that np.load refuses too, though it is plain what it means.
    #[error("{what}, which np.load refuses too")]
    Unusual {
        /// What is unusual about it.
        what: &'static str,
        /// The dtype, where `--dtype` can say it.
        dtype: Option<String>,
        /// The lengths of the axes, as `--shape` takes them.
        shape: String,
        /// Whether the first axis is the fastest one.
        fortran: bool,
        /// Where the elements begin, in bytes.
        start: u64,
    },
    /// A length no axis can have.
    #[error("axis {axis} has a length of {len}; 0 to 9223372036854775807 are possible")]
    AxisLength {
        /// Which axis.
        axis: usize,
        /// The length in the header.
        len: i128,
    },
    /// More than 64 axes.
    #[error("{0} axes, at most {MAX_NDIM} are possible")]
    TooManyAxes(usize),
    /// Its size does not fit 63 bits.
    #[error(
        "an array of shape {shape} with {itemsize} bytes an item is larger than 2^63 - 1 bytes"
    )]
    TooLarge {
        /// The shape, as a tuple.
        shape: String,
        /// Bytes an item.
        itemsize: u64,
    },
    /// No element type that is read.
    #[error(transparent)]
    Descr(#[from] DescrError),
}

/// The largest item: NumPy keeps sizes of strings and structures in a C int.
pub(super) const MAX_ITEMSIZE: u64 = i32::MAX as u64;

/// Why a `descr` is no element type that can be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DescrError {
    /// The elements are pointers to Python objects; the data is a pickle.
    #[error("arrays of Python objects (dtype {0}) are not read: their data is a pickle")]
    Object(String),
    /// No type string of NumPy.
    #[error("{0} is not a dtype of NumPy")]
    Unknown(String),
    /// A structure that is not made as NumPy makes them.
    #[error("the structured dtype is malformed: {0}")]
    Structure(&'static str),
    /// Two fields of one structure have one name, or a title is another's name.
    #[error("the structured dtype has two fields named '{0}'")]
    DuplicateField(String),
    /// An item that NumPy could not hold.
    #[error("an item of more than {MAX_ITEMSIZE} bytes")]
    TooLarge,
}
