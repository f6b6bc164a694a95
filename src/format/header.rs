//! What the readers of headers share.

use std::io::Read;

use super::error::FormatError;
use crate::shape::byte_count;

/// Append the next `len` bytes to `header`, which grows only with bytes that are really there.
pub(super) fn read_more(
    input: &mut dyn Read,
    header: &mut Vec<u8>,
    len: u64,
) -> Result<(), FormatError> {
    let expected = header.len() as u64 + len;
    input.take(len).read_to_end(header)?;
    match header.len() as u64 {
        found if found < expected => Err(FormatError::HeaderCutShort { expected, found }),
        _ => Ok(()),
    }
}

/// The bytes of a tensor, rounded up to whole ones; `None` if they exceed 2^63 - 1.
///
/// As in NumPy, the product of the other axes must fit even if an axis has length 0.
pub(super) fn data_bytes(shape: &[u64], item_bits: u64) -> Option<u64> {
    let filled: Vec<u64> = shape.iter().copied().filter(|&len| len > 0).collect();
    let bytes = byte_count(&filled, item_bits)?;
    Some(if filled.len() < shape.len() { 0 } else { bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_axes_do_not_excuse_the_others() {
        assert_eq!(data_bytes(&[3, 0], 32), Some(0));
        assert_eq!(data_bytes(&[1 << 62, 0], 32), None);
        assert_eq!(data_bytes(&[1 << 62], 0), Some(0));
    }
}
