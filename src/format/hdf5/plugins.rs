//! Filters that the library of HDF5 loads, as hdf5plugin brings them: bzip2, blosc, LZ4, bitshuffle and Zstandard.

use std::io;

use crate::format::codecs::{self, too_long};

const BZIP2: u16 = 307;
const BLOSC: u16 = 32001;
const LZ4: u16 = 32004;
const BITSHUFFLE: u16 = 32008;
const ZSTD: u16 = 32015;

/// Whether a filter is undone by a build that has all codecs.
pub(super) fn is_known(id: u16) -> bool {
    matches!(id, BZIP2 | BLOSC | LZ4 | BITSHUFFLE | ZSTD)
}

/// Whether this build has no codec for a filter that others undo.
pub(super) fn lacks(id: u16, parameters: &[u32]) -> bool {
    let needs = matches!(id, BZIP2 | BLOSC | ZSTD)
        || id == BITSHUFFLE && Packing::of(parameters) == Packing::Zstd;
    needs && cfg!(not(feature = "zarr"))
}

/// The bytes of which a filter made these: no more than `most`, and of some of them only the first `needed`.
///
/// # Errors
/// Damaged bytes, or more of them.
pub(super) fn undo(
    id: u16,
    parameters: &[u32],
    bytes: &[u8],
    needed: usize,
    most: usize,
) -> io::Result<Vec<u8>> {
    match id {
        LZ4 => unpack_lz4(bytes, most),
        BITSHUFFLE => unpack_bitshuffle(parameters, bytes, most),
        _ => of_zarr(id, bytes, needed, most),
    }
}

#[cfg(feature = "zarr")]
fn of_zarr(id: u16, bytes: &[u8], needed: usize, most: usize) -> io::Result<Vec<u8>> {
    let wanted = codecs::Wanted { most: most as u64, needed: needed as u64 };
    match id {
        BZIP2 => codecs::bzip2(bytes, wanted.most),
        BLOSC => crate::format::zarr::blosc_bytes(bytes, wanted.most),
        ZSTD => codecs::zstd(bytes, wanted),
        _ => Err(io::Error::other("a filter that is not known")),
    }
}

#[cfg(not(feature = "zarr"))]
fn of_zarr(_: u16, _: &[u8], _: usize, _: usize) -> io::Result<Vec<u8>> {
    Err(io::Error::other("a filter whose codec this build has not"))
}

/// A number of so many bytes in front of others, which is big-endian.
fn number<const BYTES: usize>(bytes: &mut &[u8]) -> io::Result<usize> {
    let Some((number, rest)) = bytes.split_first_chunk::<BYTES>() else { return Err(early()) };
    *bytes = rest;
    let number = number.iter().fold(0u64, |all, byte| all << 8 | u64::from(*byte));
    usize::try_from(number).map_err(io::Error::other)
}

/// So many bytes in front of others, a number of them that is big-endian before these.
fn counted<'a>(bytes: &mut &'a [u8]) -> io::Result<&'a [u8]> {
    let count = number::<4>(bytes)?;
    let (taken, rest) = bytes.split_at_checked(count).ok_or_else(early)?;
    *bytes = rest;
    Ok(taken)
}

fn early() -> io::Error {
    io::Error::other("it ends early")
}

/// The bytes of all blocks, and those of a block but the last one. They stand in front of blocks.
fn lengths(bytes: &mut &[u8], most: usize) -> io::Result<(usize, usize)> {
    let (whole, block) = (number::<8>(bytes)?, number::<4>(bytes)?);
    if whole > most {
        return Err(too_long());
    }
    if block == 0 && whole > 0 {
        return Err(io::Error::other("its blocks have no bytes"));
    }
    Ok((whole, block))
}

/// Blocks of LZ4, each behind its length. Those that it would not make shorter are stored as they are.
fn unpack_lz4(bytes: &[u8], most: usize) -> io::Result<Vec<u8>> {
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

/// How blocks of bits in another order are stored.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Packing {
    Nothing,
    Lz4,
    Zstd,
}

impl Packing {
    /// As the filter has it, of which all other numbers are no codec.
    fn of(parameters: &[u32]) -> Packing {
        match parameters.get(4) {
            Some(2) => Packing::Lz4,
            Some(3) => Packing::Zstd,
            _ => Packing::Nothing,
        }
    }
}

/// Blocks of elements whose first bits stand before all second ones; what is left over of eight elements is stored
/// as it is.
fn unpack_bitshuffle(parameters: &[u32], bytes: &[u8], most: usize) -> io::Result<Vec<u8>> {
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
                let (taken, behind) = rest.split_at_checked(len).ok_or_else(early)?;
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
            return Err(early());
        }
        put_bits_back(planes, item, &mut out);
    }
    let left = whole - out.len();
    out.extend(rest.get(..left).ok_or_else(early)?);
    Ok(out)
}

/// Put elements of so many bytes behind others: `planes` are the first bits of all of them, their second bits, ...
fn put_bits_back(planes: &[u8], item: usize, out: &mut Vec<u8>) {
    let at = out.len();
    out.resize(at + planes.len(), 0);
    // bytes of a plane: each is one bit of eight elements
    let len = planes.len() / item / 8;
    for (byte, rows) in planes.chunks_exact(8 * len).enumerate() {
        let groups = out[at..].chunks_exact_mut(8 * item);
        for (column, group) in groups.enumerate() {
            let bits: [u8; 8] = std::array::from_fn(|bit| rows[bit * len + column]);
            let columns = transposed(u64::from_le_bytes(bits)).to_le_bytes();
            let places = group.iter_mut().skip(byte).step_by(item);
            places.zip(columns).for_each(|(place, byte)| *place = byte);
        }
    }
}

/// Eight rows of eight bits as eight columns.
fn transposed(bits: u64) -> u64 {
    // halves of halves of blocks change their places
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
        // nine elements of two bytes, by bitshuffle of hdf5plugin: 0, 1, ... 8
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
