//! Tensor files: what their headers say and how headers are written. Never element data.
//!
//! A format is recognised by its first bytes, not by a name.

use std::collections::BTreeMap;

use crate::dtype::DType;
use crate::shape::Order;

pub mod npy;
pub mod safetensors;

/// One tensor of a file: what it is, and where in the file its bytes lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// Its name, where the format names tensors.
    pub name: Option<String>,
    /// The type of its elements.
    pub dtype: DType,
    /// Its shape, in elements.
    pub shape: Vec<u64>,
    /// The order of its elements in the file.
    pub order: Order,
    /// Where its bytes begin, in bytes from the beginning of the file.
    pub offset: u64,
    /// How many bytes its elements take: the product of shape and item size, checked.
    pub bytes: u64,
}

/// A format that tensors are read from or written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// NumPy's `.npy`.
    Npy,
    /// Hugging Face's `.safetensors`.
    Safetensors,
}

/// All that a file's header says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents {
    /// The format that was recognised.
    pub format: Format,
    /// The tensors, in the order of their bytes in the file.
    pub tensors: Vec<Tensor>,
    /// `__metadata__` of a `.safetensors`; empty elsewhere.
    pub metadata: BTreeMap<String, String>,
}
