//! Where the elements that are printed come from.

/// Reads the bytes of an array's elements from a position on, in C order without gaps, as many as
/// there is room for.
pub type Elements<'a, E> = dyn FnMut(u64, &mut [u8]) -> Result<(), E> + 'a;
