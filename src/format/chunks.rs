//! Elements in chunks: boxes of one shape that tile a tensor, each of which is decoded by itself.

use std::fmt;

use crate::source::{Source, SourceError};

/// The chunks of a tensor. Chunk `at` holds the elements from index `at * chunk_shape()` on along each axis;
/// at the end of an axis chunks are as short as the tensor is.
///
/// A format keeps here where in the input each chunk lies, and what it is compressed by.
pub trait Chunks: fmt::Debug + Send + Sync {
    /// The shape of a chunk, in elements: a length of 1 or more for each axis of the tensor.
    fn chunk_shape(&self) -> &[u64];

    /// The elements of a chunk of an input in C order, as many as there are; `at` is its number along
    /// each axis.
    ///
    /// # Errors
    /// The source's, and [`SourceError::Chunk`] for bytes that are no such chunk, or are more than
    /// memory holds.
    fn decode(&self, at: &[u64], source: &dyn Source) -> Result<Vec<u8>, SourceError>;
}

/// Only a table is equal to itself.
impl PartialEq for dyn Chunks {
    fn eq(&self, other: &dyn Chunks) -> bool {
        std::ptr::addr_eq(self, other)
    }
}

impl Eq for dyn Chunks {}
