//! The filters of chunks, undone: deflate, shuffle, fletcher32, scale-offset and h5py's lzf, and those of plugins.

use std::ops::Range;

use super::super::error::brief;
use super::error::{Hdf5Error, damaged};
use super::file::H5File;
use super::{plugins, scale_offset};
use crate::format::inflated::{InflateFault, Wrapper, inflate};
use crate::format::spare;

/// A filter of chunks.
pub(super) struct Filter {
    id: u16,
    name: Vec<u8>,
    parameters: Vec<u32>,
}

impl Filter {
    /// The filters of a message, in the order in which they were applied.
    ///
    /// # Errors
    /// [`Hdf5Error::Damaged`].
    pub(super) fn parse(file: &H5File, message: &[u8]) -> Result<Vec<Filter>, Hdf5Error> {
        let mut input = file.cursor(message);
        let (version, count) = (input.u8()?, input.u8()?);
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
            // padding, which the last one may lack
            if is_old && parameters.len() % 2 == 1 {
                input.skip(input.rest.len().min(4))?;
            }
            Ok(Filter { id, name, parameters })
        };
        (0..count).map(one).collect()
    }

    /// What it is called in messages.
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

/// Refuse filters that are not undone here.
///
/// # Errors
/// [`Hdf5Error::Filter`] and [`Hdf5Error::Codec`], which name one.
pub(super) fn check(filters: &[Filter]) -> Result<(), Hdf5Error> {
    if filters.len() > 32 {
        return Err(Hdf5Error::Damaged("it has more than 32 filters".to_owned()));
    }
    for filter in filters {
        let is_own = matches!(filter.id, DEFLATE | SHUFFLE | FLETCHER32 | SCALE_OFFSET | LZF);
        if !is_own && !plugins::is_known(filter.id) {
            return Err(Hdf5Error::Filter(brief(&filter.named())));
        }
        if plugins::lacks(filter.id, &filter.parameters) {
            return Err(Hdf5Error::Codec(filter.named()));
        }
    }
    Ok(())
}

/// The elements of a chunk by its bytes in the file: as many bytes as `wanted` ends with, and those from where it
/// begins may be left out. Filters whose bit is set in `skipped` were not applied to it.
///
/// # Errors
/// What is wrong with the bytes.
pub(super) fn undo(
    filters: &[Filter],
    skipped: u32,
    stored: Vec<u8>,
    wanted: Range<usize>,
) -> Result<Vec<u8>, String> {
    let len = wanted.end;
    // other filters need all of a stream
    let is_part = filters.len() == 1 && wanted.start < len;
    let needed = if is_part { wanted.start } else { usize::MAX };
    // no filter makes it much longer
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
            SCALE_OFFSET => scale_offset::undo(&filter.parameters, bytes, most)?,
            LZF => unpack_lzf(&bytes, most)?,
            id => match plugins::undo(id, &filter.parameters, &bytes, needed, most) {
                Ok(made) => used(bytes, made),
                Err(error) => {
                    return Err(format!("its bytes of {} are damaged: {error}", filter.named()));
                }
            },
        };
    }
    Ok(bytes)
}

/// What a filter makes of bytes that are not used any more.
fn used(bytes: Vec<u8>, made: Vec<u8>) -> Vec<u8> {
    spare::give(bytes);
    made
}

/// First bytes of all elements, second bytes, ...: back to elements. What is left over stands at the end.
fn unshuffle(bytes: Vec<u8>, item: usize) -> Vec<u8> {
    if item < 2 {
        return bytes;
    }
    let count = bytes.len() / item;
    let mut out = spare::sized(bytes.len());
    // as many elements at a time as stay in the nearest cache
    for start in (0..count).step_by(BLOCK) {
        let end = (start + BLOCK).min(count);
        let block = &mut out[start * item..end * item];
        for (byte, plane) in bytes.chunks_exact(count).take(item).enumerate() {
            let places = block[byte..].iter_mut().step_by(item);
            places.zip(&plane[start..end]).for_each(|(place, byte)| *place = *byte);
        }
    }
    out[count * item..].copy_from_slice(&bytes[count * item..]);
    used(bytes, out)
}

/// Elements that are unshuffled at a time.
const BLOCK: usize = 1024;

/// The bytes in front of their checksum.
fn checked(mut bytes: Vec<u8>) -> Result<Vec<u8>, &'static str> {
    let Some(at) = bytes.len().checked_sub(4) else { return Err("its checksum is missing") };
    let tail = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
    bytes.truncate(at);
    let sum = fletcher32(&bytes);
    // libraries before 1.6.3 stored the halves with their bytes swapped
    let swapped = (sum & 0x00ff_00ff) << 8 | (sum >> 8 & 0x00ff_00ff);
    let stored = u32::from_le_bytes(tail);
    if stored == sum || stored == swapped { Ok(bytes) } else { Err("its checksum is another one") }
}

/// Fletcher's checksum of 16-bit words, as H5_checksum_fletcher32 has it.
fn fletcher32(bytes: &[u8]) -> u32 {
    let (mut first, mut second) = (0u32, 0u32);
    let fold = |sum: u32| (sum & 0xffff) + (sum >> 16);
    // so many words that the sums do not overflow
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

/// LZF: runs of literal bytes, and copies of what stands so far behind.
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
            // it may go on in what it writes
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
        // abc, then six bytes from three behind
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
        // by H5_checksum_fletcher32
        assert_eq!(fletcher32(b""), 0);
        assert_eq!(fletcher32(&[0, 1, 0, 2]), 0x0004_0003);
    }
}
