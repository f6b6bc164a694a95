//! Where the elements that are printed come from.

use std::convert::Infallible;

/// The elements of an array, in C order.
pub trait Elements {
    /// Why they could not be read.
    type Error;

    /// Replace `out` with `len` bytes of the elements from byte `start` on, elements one after the
    /// other without gaps.
    ///
    /// # Errors
    /// The source failed.
    fn read(&mut self, start: u64, len: usize, out: &mut Vec<u8>) -> Result<(), Self::Error>;
}

/// Elements in memory, in C order without gaps.
pub struct InMemory<'a> {
    /// The bytes of all elements.
    pub bytes: &'a [u8],
}

impl Elements for InMemory<'_> {
    type Error = Infallible;

    fn read(&mut self, start: u64, len: usize, out: &mut Vec<u8>) -> Result<(), Infallible> {
        out.clear();
        out.extend(&self.bytes[start as usize..start as usize + len]);
        Ok(())
    }
}
