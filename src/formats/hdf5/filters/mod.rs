//! The filters of chunks, undone: deflate, shuffle, fletcher32, scale-offset, h5py's lzf, and filters of plugins.

use std::io;
use std::ops::Range;

use blocks::{Packing, unpack_bitshuffle, unpack_lz4};
use scale_offset::undo_scale_offset;

use super::file::{H5File, Hdf5Error, damaged};
#[cfg(feature = "zarr")]
use crate::formats::codecs;
use crate::formats::codecs::{InflateFault, Wrapper, inflate};
use crate::source::{keep_spare, spare_bytes};
use crate::tensor::brief;

mod blocks;
mod scale_offset;

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
            BZIP2 => "bzip2",
            BLOSC => "blosc",
            LZ4 => "lz4",
            BITSHUFFLE => "bitshuffle",
            32013 => "zfp",
            ZSTD => "zstd",
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
const BZIP2: u16 = 307;
const LZF: u16 = 32000;
const BLOSC: u16 = 32001;
const LZ4: u16 = 32004;
const BITSHUFFLE: u16 = 32008;
const ZSTD: u16 = 32015;

/// Refuse filters that cannot be undone here.
pub(super) fn check(filters: &[Filter]) -> Result<(), Hdf5Error> {
    if filters.len() > 32 {
        return Err(Hdf5Error::Damaged("it has more than 32 filters".to_owned()));
    }
    filters.iter().try_for_each(|filter| match filter.id {
        DEFLATE | SHUFFLE | FLETCHER32 | SCALE_OFFSET | LZF | LZ4 => Ok(()),
        BITSHUFFLE if Packing::of(&filter.parameters) != Packing::Zstd => Ok(()),
        BITSHUFFLE | BZIP2 | BLOSC | ZSTD if cfg!(feature = "zarr") => Ok(()),
        BITSHUFFLE | BZIP2 | BLOSC | ZSTD => Err(Hdf5Error::Codec(filter.named())),
        _ => Err(Hdf5Error::Filter(brief(&filter.named()))),
    })
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
        let parameters = &filter.parameters[..];
        if skipped >> number & 1 == 1 {
            continue;
        }
        bytes = match filter.id {
            DEFLATE => {
                let made = inflate(Wrapper::Zlib, &bytes, needed, most);
                let made = made.map_err(|fault| match fault {
                    InflateFault::TooLong => "it inflates to more than a chunk has",
                    InflateFault::Damaged => "its deflated bytes are damaged",
                });
                used(bytes, made?)
            }
            SHUFFLE => unshuffle(bytes, parameters.first().copied().unwrap_or(1) as usize),
            FLETCHER32 => checked(bytes)?,
            SCALE_OFFSET => undo_scale_offset(parameters, bytes, most)?,
            LZF => unpack_lzf(&bytes, most)?,
            id => {
                let made = match id {
                    LZ4 => unpack_lz4(&bytes, most),
                    BITSHUFFLE => unpack_bitshuffle(parameters, &bytes, most),
                    _ => of_zarr(id, &bytes, needed, most),
                };
                let damaged =
                    |error| format!("its bytes of {} are damaged: {error}", filter.named());
                used(bytes, made.map_err(damaged)?)
            }
        };
    }
    Ok(bytes)
}

/// Undo a filter whose codec Zarr has too: at most `most` bytes, for some filters only the first `needed` bytes.
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
    let Some((_, &stored)) = bytes.split_last_chunk() else {
        return Err("its checksum is missing");
    };
    bytes.truncate(bytes.len() - 4);
    let sum = fletcher32(&bytes);
    // libraries before 1.6.3 stored the halves with their bytes swapped
    let swapped = (sum & 0x00ff_00ff) << 8 | (sum >> 8 & 0x00ff_00ff);
    let stored = u32::from_le_bytes(stored);
    if stored == sum || stored == swapped { Ok(bytes) } else { Err("its checksum does not match") }
}

/// Fletcher's checksum of 16-bit words, as in H5_checksum_fletcher32.
fn fletcher32(bytes: &[u8]) -> u32 {
    let mut first = 0u32;
    let mut second = 0u32;
    let fold = |sum: u32| (sum & 0xffff) + (sum >> 16);
    // few enough words that the sums do not overflow
    for words in bytes.chunks(720) {
        for word in words.chunks(2) {
            let low = word.get(1).copied().unwrap_or(0);
            first += u32::from(word[0]) << 8 | u32::from(low);
            second += first;
        }
        (first, second) = (fold(first), fold(second));
    }
    fold(second) << 16 | fold(first)
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
}
