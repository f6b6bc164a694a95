//! The filters of chunks, undone: deflate, shuffle, fletcher32, scale-offset, h5py's lzf, and filters of plugins.

use std::io;
use std::ops::Range;

use super::file::{H5File, Hdf5Error, damaged, fletcher32};
use crate::formats::codecs::{self, InflateFault, Wrapper, inflate, too_long};
use crate::tensor::{brief, keep_spare, spare_bytes};

pub(super) struct Filter {
    id: u16,
    name: Vec<u8>,
    parameters: Vec<u32>,
}

impl Filter {
    /// Parse the filters of a message, in the order in which they were applied.
    pub(super) fn parse(file: &H5File, message: &[u8]) -> Result<Vec<Filter>, Hdf5Error> {
        let mut input = file.cursor(message);
        let version = input.u8()?;
        let count = input.u8()?;
        let is_old = match version {
            1 => true,
            2 => false,
            _ => return Err(damaged("its filters are of no known version")),
        };
        input.skip(if is_old { 6 } else { 0 })?;
        let one = |_| {
            let id = input.u16()?;
            let has_name = is_old || id >= 256;
            let name_len = if has_name { input.u16()?.into() } else { 0 };
            input.skip(2)?;
            let parameters = input.u16()?;
            let name_len = if is_old { usize::next_multiple_of(name_len, 8) } else { name_len };
            let name = input.take(name_len)?.to_vec();
            let parameters = (0..parameters).map(|_| input.u32());
            let parameters = parameters.collect::<Result<Vec<u32>, _>>()?;
            // padding, which the last filter may lack
            if is_old && parameters.len() % 2 == 1 {
                input.skip(input.rest.len().min(4))?;
            }
            Ok(Filter { id, name, parameters })
        };
        (0..count).map(one).collect()
    }

    fn named(&self) -> String {
        let known = match self.id {
            4 => "szip",
            5 => "nbit",
            307 => "bzip2",
            32001 => "blosc",
            32004 => "lz4",
            32008 => "bitshuffle",
            32013 => "zfp",
            32015 => "zstd",
            32026 => "blosc2",
            _ => "",
        };
        let name = String::from_utf8_lossy(&self.name);
        match (known, name.trim_end_matches('\0')) {
            ("", "") => format!("of number {}", self.id),
            ("", name) => format!("{name:?} (number {})", self.id),
            (known, _) => known.to_owned(),
        }
    }
}

const DEFLATE: u16 = 1;
const SHUFFLE: u16 = 2;
const FLETCHER32: u16 = 3;
const SCALE_OFFSET: u16 = 6;
const LZF: u16 = 32000;

/// Refuse filters that cannot be undone here.
pub(super) fn check(filters: &[Filter]) -> Result<(), Hdf5Error> {
    if filters.len() > 32 {
        return Err(Hdf5Error::Damaged("it has more than 32 filters".to_owned()));
    }
    for filter in filters {
        let is_own = matches!(filter.id, DEFLATE | SHUFFLE | FLETCHER32 | SCALE_OFFSET | LZF);
        if !is_own && !is_known(filter.id) {
            return Err(Hdf5Error::Filter(brief(&filter.named())));
        }
        if lacks(filter.id, &filter.parameters) {
            return Err(Hdf5Error::Codec(filter.named()));
        }
    }
    Ok(())
}

/// Decode the stored bytes of a chunk to `wanted.end` bytes; bytes after `wanted.start` may be omitted. Filters whose
/// bit is set in `skipped` were not applied.
pub(super) fn undo(
    filters: &[Filter],
    skipped: u32,
    stored: Vec<u8>,
    wanted: Range<usize>,
) -> Result<Vec<u8>, String> {
    let len = wanted.end;
    // other filters need the whole stream
    let is_part = filters.len() == 1 && wanted.start < len;
    let needed = if is_part { wanted.start } else { usize::MAX };
    // no filter makes a chunk much longer
    let most = len + len / 16 + 4096;
    let mut bytes = stored;
    for (number, filter) in filters.iter().enumerate().rev() {
        if skipped >> number & 1 == 1 {
            continue;
        }
        bytes = match filter.id {
            DEFLATE => match inflate(Wrapper::Zlib, &bytes, needed, most) {
                Ok(inflated) => used(bytes, inflated),
                Err(InflateFault::TooLong) => {
                    return Err("it inflates to more than a chunk has".to_owned());
                }
                Err(InflateFault::Damaged) => {
                    return Err("its deflated bytes are damaged".to_owned());
                }
            },
            SHUFFLE => unshuffle(bytes, filter.parameters.first().copied().unwrap_or(1) as usize),
            FLETCHER32 => checked(bytes)?,
            SCALE_OFFSET => undo_scale_offset(&filter.parameters, bytes, most)?,
            LZF => unpack_lzf(&bytes, most)?,
            id => match undo_plugin(id, &filter.parameters, &bytes, needed, most) {
                Ok(made) => used(bytes, made),
                Err(error) => {
                    return Err(format!("its bytes of {} are damaged: {error}", filter.named()));
                }
            },
        };
    }
    Ok(bytes)
}

fn used(bytes: Vec<u8>, made: Vec<u8>) -> Vec<u8> {
    keep_spare(bytes);
    made
}

/// Undo shuffle: from the first bytes of all elements, their second bytes, and so on, to elements. The rest stays at
/// the end.
fn unshuffle(bytes: Vec<u8>, item: usize) -> Vec<u8> {
    if item < 2 {
        return bytes;
    }
    let count = bytes.len() / item;
    let mut out = spare_bytes(bytes.len());
    // as many elements at a time as stay in the first cache
    for start in (0..count).step_by(BLOCK) {
        let end = (start + BLOCK).min(count);
        let block = &mut out[start * item..end * item];
        for (byte, plane) in bytes.chunks_exact(count).take(item).enumerate() {
            let bytes_out = block[byte..].iter_mut().step_by(item);
            bytes_out.zip(&plane[start..end]).for_each(|(out_byte, byte)| *out_byte = *byte);
        }
    }
    out[count * item..].copy_from_slice(&bytes[count * item..]);
    used(bytes, out)
}

const BLOCK: usize = 1024;

/// Check and remove the checksum at the end.
fn checked(mut bytes: Vec<u8>) -> Result<Vec<u8>, &'static str> {
    let Some(at) = bytes.len().checked_sub(4) else { return Err("its checksum is missing") };
    let tail = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
    bytes.truncate(at);
    let sum = fletcher32(&bytes);
    // libraries before 1.6.3 stored the halves with their bytes swapped
    let swapped = (sum & 0x00ff_00ff) << 8 | (sum >> 8 & 0x00ff_00ff);
    let stored = u32::from_le_bytes(tail);
    if stored == sum || stored == swapped { Ok(bytes) } else { Err("its checksum does not match") }
}

/// Decode LZF: runs of literal bytes, and copies of earlier output.
fn unpack_lzf(bytes: &[u8], most: usize) -> Result<Vec<u8>, &'static str> {
    const DAMAGED: &str = "its lzf bytes are damaged";
    let mut out: Vec<u8> = Vec::new();
    let mut input = bytes.iter().copied();
    while let Some(control) = input.next().map(usize::from) {
        let mut next = || input.next().ok_or(DAMAGED);
        if control < 32 {
            for _ in 0..=control {
                out.push(next()?);
            }
        } else {
            let count = match control >> 5 {
                7 => 7 + usize::from(next()?),
                count => count,
            };
            let behind = (control & 31) << 8 | usize::from(next()?);
            let from = out.len().checked_sub(behind + 1).ok_or(DAMAGED)?;
            // a copy may overlap its own output
            (from..from + count + 2).for_each(|at| out.push(out[at]));
        }
        if out.len() > most {
            return Err("it unpacks to more than a chunk has");
        }
    }
    Ok(out)
}

const BZIP2: u16 = 307;
const BLOSC: u16 = 32001;
const LZ4: u16 = 32004;
const BITSHUFFLE: u16 = 32008;
const ZSTD: u16 = 32015;

/// Whether a build with all codecs can undo a filter.
pub(super) fn is_known(id: u16) -> bool {
    matches!(id, BZIP2 | BLOSC | LZ4 | BITSHUFFLE | ZSTD)
}

/// Whether this build lacks the codec for a filter that other builds undo.
pub(super) fn lacks(id: u16, parameters: &[u32]) -> bool {
    let needs = matches!(id, BZIP2 | BLOSC | ZSTD)
        || id == BITSHUFFLE && Packing::of(parameters) == Packing::Zstd;
    needs && cfg!(not(feature = "zarr"))
}

/// Undo a filter of a plugin: at most `most` bytes, for some filters only the first `needed` bytes.
fn undo_plugin(
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
        BLOSC => crate::formats::zarr::blosc_bytes(bytes, wanted.most),
        ZSTD => codecs::zstd(bytes, wanted),
        _ => Err(io::Error::other("a filter that is not known")),
    }
}

#[cfg(not(feature = "zarr"))]
fn of_zarr(_: u16, _: &[u8], _: usize, _: usize) -> io::Result<Vec<u8>> {
    Err(io::Error::other("a filter that this build does not support"))
}

/// Take a big-endian number of `BYTES` bytes from the front.
fn big_endian<const BYTES: usize>(bytes: &mut &[u8]) -> io::Result<usize> {
    let Some((number, rest)) = bytes.split_first_chunk::<BYTES>() else { return Err(early()) };
    *bytes = rest;
    let number = number.iter().fold(0u64, |all, byte| all << 8 | u64::from(*byte));
    usize::try_from(number).map_err(io::Error::other)
}

/// Take bytes from the front, after their number, which is big-endian.
fn counted<'a>(bytes: &mut &'a [u8]) -> io::Result<&'a [u8]> {
    let count = big_endian::<4>(bytes)?;
    let (taken, rest) = bytes.split_at_checked(count).ok_or_else(early)?;
    *bytes = rest;
    Ok(taken)
}

fn early() -> io::Error {
    io::Error::other("it ends early")
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

/// The compression of blocks of shuffled bits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Packing {
    Nothing,
    Lz4,
    Zstd,
}

impl Packing {
    /// The compression in the filter's parameters; other numbers mean none.
    fn of(parameters: &[u32]) -> Packing {
        match parameters.get(4) {
            Some(2) => Packing::Lz4,
            Some(3) => Packing::Zstd,
            _ => Packing::Nothing,
        }
    }
}

/// Decode blocks of bit-shuffled elements: the first bits of all elements, then all second bits, and so on. Elements
/// beyond a multiple of eight are stored unchanged.
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

const HEADER: usize = 21;

const DAMAGED: &str = "its bytes after scale-offset are damaged";

/// Undo the filter scale-offset: the elements of a chunk, of at most `most` bytes, by the parameters of the filter.
///
/// A chunk begins with 21 bytes, which hold the number of bits of each number, and the smallest element. The numbers
/// follow, their highest bits first. For integers they are added to the smallest element; for floats they count units
/// of 10^-D above it. Where a dataset has a fill value, the highest number of so many bits stands for it.
fn undo_scale_offset(
    parameters: &[u32],
    bytes: Vec<u8>,
    most: usize,
) -> Result<Vec<u8>, &'static str> {
    let &[scale, factor, count, class, size, _, order, has_fill, ref fill @ ..] = parameters else {
        return Err(DAMAGED);
    };
    let is_float = match (class, size, scale) {
        (0, 1 | 2 | 4 | 8, 2) => false,
        (1, 4 | 8, 0) => true,
        _ => return Err("a kind of scale-offset that is not known"),
    };
    // no bits were dropped
    if !is_float && factor == size * 8 {
        return Ok(bytes);
    }
    let (header, packed) = bytes.split_at_checked(HEADER).ok_or(DAMAGED)?;
    let bits = u32::from_le_bytes([header[0], header[1], header[2], header[3]]);
    let least = number_of(&header[5..5 + usize::from(header[4].min(8))]);
    let fill: Vec<u8> = fill.iter().flat_map(|word| word.to_le_bytes()).collect();
    let fill = number_of(&fill[..fill.len().min(8)]);
    let count = count as usize;
    let size = size as usize;
    let needed = count.saturating_mul(bits as usize).div_ceil(8);
    let len = count.saturating_mul(size);
    if bits as usize > size * 8 || needed > packed.len() || len > most {
        return Err(DAMAGED);
    }
    let mut out = Vec::with_capacity(len);
    if bits as usize == size * 8 {
        out.extend_from_slice(&packed[..len]);
    } else {
        let all = (1 << bits) - 1;
        let mut numbers = PackedNumbers { packed, bits, held: 0, count: 0 };
        let element = above_least(is_float, size, factor as i32, least);
        for _ in 0..count {
            let element = match numbers.next() {
                number if number == all && has_fill == 1 => fill,
                number => element(number),
            };
            out.extend_from_slice(&element.to_le_bytes()[..size]);
        }
    }
    if order == 1 {
        out.chunks_exact_mut(size).for_each(<[u8]>::reverse);
    }
    Ok(out)
}

/// A function from a number above the smallest element to the element, of `size` bytes. Floats are rounded at each
/// step, as in the library.
fn above_least(is_float: bool, size: usize, digits: i32, least: u64) -> impl Fn(u64) -> u64 {
    let units = 10f32.powf(digits as f32);
    let long_units = 10f64.powf(digits.into());
    move |number| match (is_float, size) {
        (false, _) => number.wrapping_add(least),
        (true, 4) => (number as f32 / units + f32::from_bits(least as u32)).to_bits().into(),
        (true, _) => (number as f64 / long_units + f64::from_bits(least)).to_bits(),
    }
}

/// A little-endian number of at most 8 bytes.
fn number_of(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// A reader of numbers of less than 64 bits each.
struct PackedNumbers<'a> {
    packed: &'a [u8],
    bits: u32,
    /// The bits read; the last `count` were not used yet.
    held: u128,
    count: u32,
}

impl PackedNumbers<'_> {
    fn next(&mut self) -> u64 {
        while self.count < self.bits {
            let (byte, packed) = self.packed.split_first().unwrap_or((&0, &[]));
            (self.held, self.packed) = (self.held << 8 | u128::from(*byte), packed);
            self.count += 8;
        }
        self.count -= self.bits;
        (self.held >> self.count) as u64 & ((1 << self.bits) - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lzf_copies_what_it_has_written() {
        // abc, then six bytes copied from distance three
        assert_eq!(unpack_lzf(b"\x02abc\x80\x02", 100).unwrap(), b"abcabcabc");
        for damaged in [&b"\x05ab"[..], b"\x20\x00", b"\xe0", b"\x80"] {
            assert!(unpack_lzf(damaged, 100).is_err());
        }
        assert!(unpack_lzf(b"\x02abc\xe0\xff\x02", 100).is_err());
    }

    #[test]
    fn bytes_go_back_to_their_elements() {
        assert_eq!(unshuffle(b"abcdABCD".to_vec(), 2), b"aAbBcCdD");
        assert_eq!(unshuffle(b"acebdfx".to_vec(), 2), b"abcdefx");
    }

    #[test]
    fn checksums_are_those_of_the_library() {
        // from H5_checksum_fletcher32
        assert_eq!(fletcher32(b""), 0);
        assert_eq!(fletcher32(&[0, 1, 0, 2]), 0x0004_0003);
    }

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

    fn chunk(bits: u8, least: u64, packed: &[u8]) -> Vec<u8> {
        let mut bytes = vec![bits, 0, 0, 0, 8];
        bytes.extend(least.to_le_bytes());
        bytes.resize(HEADER, 0);
        bytes.extend(packed);
        bytes
    }

    #[test]
    fn numbers_are_above_the_smallest_one() {
        // three bits each: 1, 7, 2
        let packed = &[0b0011_1101, 0];
        let elements = |order, has_fill, least: i16| {
            let parameters = [2, 0, 3, 0, 2, 1, order, has_fill, 99];
            undo_scale_offset(&parameters, chunk(3, least as u64, packed), 6)
        };
        assert_eq!(elements(0, 0, -2).unwrap(), [255, 255, 5, 0, 0, 0]);
        assert_eq!(elements(0, 1, -2).unwrap(), [255, 255, 99, 0, 0, 0]);
        assert_eq!(elements(1, 0, 1).unwrap(), [0, 2, 0, 8, 0, 3]);
    }

    #[test]
    fn floats_are_units_above_the_smallest_one() {
        let parameters = [0, 2, 2, 1, 4, 0, 0, 0];
        let least = u64::from(1.5f32.to_bits());
        let found = undo_scale_offset(&parameters, chunk(4, least, &[0x31]), 8).unwrap();
        let expected: Vec<u8> = [1.53f32, 1.51].iter().flat_map(|it| it.to_le_bytes()).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn damaged_ones_are_refused() {
        let parameters = [2, 0, 3, 0, 2, 1, 0, 0];
        for bytes in [vec![0; 20], chunk(3, 0, &[0]), chunk(17, 0, &[0; 9]), chunk(255, 0, &[])] {
            assert!(undo_scale_offset(&parameters, bytes, 6).is_err());
        }
        assert!(undo_scale_offset(&parameters, chunk(0, 0, &[]), 5).is_err());
        assert!(undo_scale_offset(&[2, 0, 3, 0, 3, 1, 0, 0], chunk(3, 0, &[0; 9]), 99).is_err());
        assert!(undo_scale_offset(&[1], chunk(3, 0, &[0; 9]), 99).is_err());
    }
}
