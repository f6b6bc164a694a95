//! Where the elements that are printed come from.

use std::convert::Infallible;

/// The elements of an array, in C order.
pub trait Elements {
    /// Why they could not be read.
    type Error;

    /// Replace `out` with the bytes of `count` elements from number `first` on.
    ///
    /// # Errors
    /// The source failed.
    fn read(&mut self, first: u64, count: u64, out: &mut Vec<u8>) -> Result<(), Self::Error>;
}

/// Elements in memory, in C order without gaps.
pub struct InMemory<'a> {
    /// The bytes of all elements.
    pub bytes: &'a [u8],
    /// Bytes an element.
    pub itemsize: usize,
}

impl Elements for InMemory<'_> {
    type Error = Infallible;

    fn read(&mut self, first: u64, count: u64, out: &mut Vec<u8>) -> Result<(), Infallible> {
        let start = first as usize * self.itemsize;
        out.clear();
        out.extend(&self.bytes[start..start + count as usize * self.itemsize]);
        Ok(())
    }
}
