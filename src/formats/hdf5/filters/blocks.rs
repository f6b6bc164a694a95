//! Chunks in blocks: the filters lz4 and bitshuffle of plugins.
//!
//! ```text
//! bytes of the chunk (8, big-endian) | bytes of a block (4) | bytes of the first packed block (4) | that block | ..
//! ```
//!
//! Bitshuffle without compression has neither head nor lengths.

use std::io;

use super::{ZSTD, of_zarr};
use crate::dtype::Endian;
use crate::formats::codecs::{self, too_long, too_short};

/// Take a big-endian number of `BYTES` bytes from the front.
fn big_endian<const BYTES: usize>(bytes: &mut &[u8]) -> io::Result<usize> {
    let Some((number, rest)) = bytes.split_first_chunk::<BYTES>() else { return Err(too_short()) };
    *bytes = rest;
    usize::try_from(Endian::Big.bits(number)).map_err(io::Error::other)
}

/// Take bytes from the front, after their number, which is big-endian.
fn counted<'a>(bytes: &mut &'a [u8]) -> io::Result<&'a [u8]> {
    let count = big_endian::<4>(bytes)?;
    let (taken, rest) = bytes.split_at_checked(count).ok_or_else(too_short)?;
    *bytes = rest;
    Ok(taken)
}

/// Take the total length and the block length from the front, which precede the blocks.
fn lengths(bytes: &mut &[u8], most: usize) -> io::Result<(usize, usize)> {
    let whole = big_endian::<8>(bytes)?;
    let block = big_endian::<4>(bytes)?;
    if whole > most {
        return Err(too_long());
    }
    if block == 0 && whole > 0 {
        return Err(io::Error::other("its blocks have no bytes"));
    }
    Ok((whole, block))
}

/// Decode blocks of LZ4, each after its length. Blocks that LZ4 would not shorten are stored unchanged.
pub(super) fn unpack_lz4(bytes: &[u8], most: usize) -> io::Result<Vec<u8>> {
    let mut rest = bytes;
    let (whole, block) = lengths(&mut rest, most)?;
    let mut out = Vec::new();
    while out.len() < whole {
        let len = block.min(whole - out.len());
        match counted(&mut rest)? {
            stored if stored.len() == len => out.extend(stored),
            packed => codecs::lz4(packed, len, &mut out)?,
        }
    }
    Ok(out)
}

/// The compression of blocks of shuffled bits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Packing {
    Nothing,
    Lz4,
    Zstd,
}

impl Packing {
    /// The compression in the filter's parameters; other numbers mean none.
    pub(super) fn of(parameters: &[u32]) -> Packing {
        match parameters.get(4) {
            Some(2) => Packing::Lz4,
            Some(3) => Packing::Zstd,
            _ => Packing::Nothing,
        }
    }
}

/// Decode blocks of bit-shuffled elements: the first bits of all elements, then all second bits, and so on. Elements
/// beyond a multiple of eight are stored unchanged.
pub(super) fn unpack_bitshuffle(
    parameters: &[u32],
    bytes: &[u8],
    most: usize,
) -> io::Result<Vec<u8>> {
    let parameter = |number: usize| parameters.get(number).copied().unwrap_or(0) as usize;
    let item = parameter(2).max(1);
    let packing = Packing::of(parameters);
    let mut rest = bytes;
    let (whole, block) = match packing {
        Packing::Nothing => {
            let count = match parameter(3) {
                0 => (8192 / item / 8 * 8).max(128),
                count => count,
            };
            (bytes.len(), count.saturating_mul(item))
        }
        _ => lengths(&mut rest, most)?,
    };
    // whole groups of eight elements
    let group = item.saturating_mul(8);
    let block = block / group * group;
    if block == 0 && whole >= group {
        return Err(io::Error::other("its blocks have fewer than eight elements"));
    }
    let mut out = Vec::new();
    while whole - out.len() >= group {
        let len = block.min((whole - out.len()) / group * group);
        let mut shuffled = Vec::new();
        let planes = match packing {
            Packing::Nothing => {
                let (taken, behind) = rest.split_at_checked(len).ok_or_else(too_short)?;
                rest = behind;
                taken
            }
            Packing::Lz4 => {
                codecs::lz4(counted(&mut rest)?, len, &mut shuffled)?;
                &shuffled
            }
            Packing::Zstd => {
                shuffled = of_zarr(ZSTD, counted(&mut rest)?, len, len)?;
                &shuffled
            }
        };
        if planes.len() != len {
            return Err(too_short());
        }
        put_bits_back(planes, item, &mut out);
    }
    let left = whole - out.len();
    out.extend(rest.get(..left).ok_or_else(too_short)?);
    Ok(out)
}

/// Append elements of `item` bytes from bit planes: the first bits of all elements, their second bits, and so on.
fn put_bits_back(planes: &[u8], item: usize, out: &mut Vec<u8>) {
    let at = out.len();
    out.resize(at + planes.len(), 0);
    // the bytes of a plane: each is one bit of eight elements
    let len = planes.len() / item / 8;
    for (byte, rows) in planes.chunks_exact(8 * len).enumerate() {
        let groups = out[at..].chunks_exact_mut(8 * item);
        for (column, group) in groups.enumerate() {
            let bits: [u8; 8] = std::array::from_fn(|bit| rows[bit * len + column]);
            let columns = transposed(u64::from_le_bytes(bits)).to_le_bytes();
            let bytes_out = group.iter_mut().skip(byte).step_by(item);
            bytes_out.zip(columns).for_each(|(out_byte, byte)| *out_byte = byte);
        }
    }
}

/// Eight rows of eight bits as eight columns.
fn transposed(bits: u64) -> u64 {
    // exchange halves in blocks of growing size
    let steps =
        [(7, 0x00aa_00aa_00aa_00aa), (14, 0x0000_cccc_0000_cccc), (28, 0x0000_0000_f0f0_f0f0)];
    steps.into_iter().fold(bits, |bits, (shift, mask)| {
        let changed = (bits ^ bits >> shift) & mask;
        bits ^ changed ^ changed << shift
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_go_back_to_their_elements() {
        let columns = transposed(u64::from_le_bytes([1, 0, 0, 0, 0, 0, 0, 0x81])).to_le_bytes();
        assert_eq!(columns, [0x81, 0, 0, 0, 0, 0, 0, 0x80]);
        // nine elements of two bytes from hdf5plugin's bitshuffle: 0, 1, ... 8
        let mut planes = vec![0b1010_1010, 0b1100_1100, 0b1111_0000];
        planes.extend([0; 13]);
        planes.extend([8, 0]);
        let numbers: Vec<u8> = (0..9).flat_map(|number| [number, 0]).collect();
        assert_eq!(unpack_bitshuffle(&[0, 4, 2, 0, 0], &planes, 18).unwrap(), numbers);
    }

    #[test]
    fn no_more_is_unpacked_than_fits() {
        let stored = |whole: u64, block: u32| {
            [&whole.to_be_bytes()[..], &block.to_be_bytes(), &[0, 0, 0, 3], b"abc"].concat()
        };
        assert_eq!(unpack_lz4(&stored(3, 3), 3).unwrap(), b"abc");
        assert_eq!(unpack_lz4(&stored(3, 1 << 30), 3).unwrap(), b"abc");
        for (whole, block, most) in [(3, 3, 2), (4, 3, 9), (u64::MAX, 3, 9), (3, 0, 3)] {
            assert!(unpack_lz4(&stored(whole, block), most).is_err());
            assert!(unpack_bitshuffle(&[0, 4, 1, 0, 2], &stored(whole << 3, block), most).is_err());
        }
        assert!(unpack_lz4(&stored(1 << 40, 1 << 31), 1 << 41).is_err());
        assert!(unpack_bitshuffle(&[0, 4, u32::MAX, 0, 2], &stored(1 << 40, 8), 1 << 41).is_err());
    }
}
