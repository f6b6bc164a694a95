//! Decoders of chunks that make no more bytes than allowed, whatever a stream claims, in memory
//! that is reused.

use std::any::Any;
use std::cell::Cell;
#[cfg(feature = "zarr")]
use std::cell::RefCell;
#[cfg(feature = "zarr")]
use std::io::Read;
use std::panic::AssertUnwindSafe;
use std::sync::Once;
use std::{io, panic};

use flate2::{Decompress, FlushDecompress, Status};
#[cfg(feature = "zarr")]
use zstd::zstd_safe::{self, DCtx, DParameter, InBuffer, OutBuffer, ResetDirective};

use crate::source::spare_memory;
use crate::tensor::brief;

#[cfg(feature = "zarr")]
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    pub(super) most: u64,
    /// The number of first bytes that are used. Later bytes may be omitted.
    pub(super) needed: u64,
}

/// The bytes of a stream of bzip2.
#[cfg(feature = "zarr")]
pub(super) fn bzip2(encoded: &[u8], most: u64) -> io::Result<Vec<u8>> {
    take(bzip2::read::BzDecoder::new(encoded), encoded, most)
}

/// The bytes of a stream of Zstandard.
#[cfg(feature = "zarr")]
pub(super) fn zstd(encoded: &[u8], wanted: Wanted) -> io::Result<Vec<u8>> {
    if wanted.most <= reserved(encoded, wanted.most) {
        return unpacked(encoded, wanted);
    }
    take(zstd::Decoder::new(encoded)?, encoded, wanted.most)
}

/// Append the bytes of a block of LZ4, which does not state their number.
pub(super) fn lz4(encoded: &[u8], len: usize, out: &mut Vec<u8>) -> io::Result<()> {
    // a byte represents at most 255
    if len > encoded.len().saturating_mul(255) {
        return Err(too_short());
    }
    let at = out.len();
    out.resize(at + len, 0);
    let made = lz4_flex::block::decompress_into(encoded, &mut out[at..]);
    if made.map_err(io::Error::other)? == len { Ok(()) } else { Err(too_short()) }
}

/// The bytes of memory reserved for decoded bytes of unknown number: most streams grow at most a
/// thousand times.
#[cfg(feature = "zarr")]
fn reserved(encoded: &[u8], most: u64) -> u64 {
    most.min((encoded.len() as u64).saturating_mul(1 << 10))
}

#[cfg(feature = "zarr")]
fn take(decoder: impl Read, encoded: &[u8], most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(reserved(encoded, most) as usize);
    decoder.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most { Err(too_long()) } else { Ok(bytes) }
}

/// The bytes of Zstandard that are decoded between two checks whether they are enough.
#[cfg(feature = "zarr")]
const STEP: usize = 64 << 10;

#[cfg(feature = "zarr")]
thread_local! {
    /// The decoder of this thread: to make one takes as long as to decode some kilobytes.
    static ZSTD: RefCell<DCtx<'static>> = RefCell::new(DCtx::create());
}

/// The bytes of Zstandard, in one call, which is faster; in steps if many are not needed.
#[cfg(feature = "zarr")]
fn unpacked(encoded: &[u8], wanted: Wanted) -> io::Result<Vec<u8>> {
    let failed = |code| io::Error::other(zstd_safe::get_error_name(code));
    let mut bytes = spare_memory(wanted.most as usize);
    ZSTD.with_borrow_mut(|decoder| {
        decoder.reset(ResetDirective::SessionAndParameters).map_err(failed)?;
        if wanted.needed >= wanted.most - wanted.most / 8 {
            decoder.decompress(&mut bytes, encoded).map_err(failed)?;
            return Ok(bytes);
        }
        // written to its final memory, not through memory of the decoder
        decoder.set_parameter(DParameter::StableOutBuffer(true)).map_err(failed)?;
        let mut to = OutBuffer::around(&mut bytes);
        for step in encoded.chunks(STEP) {
            let mut from = InBuffer::around(step);
            while from.pos() < step.len() && (to.pos() as u64) < wanted.needed {
                let before = (from.pos(), to.pos());
                decoder.decompress_stream(&mut to, &mut from).map_err(failed)?;
                if (from.pos(), to.pos()) == before {
                    return Err(io::Error::other("its bytes are damaged"));
                }
            }
            if to.pos() as u64 >= wanted.needed {
                return Ok(bytes);
            }
        }
        Err(too_short())
    })
}

pub(super) fn too_short() -> io::Error {
    io::Error::other("it ends early")
}

pub(super) fn too_long() -> io::Error {
    io::Error::other("it decodes to more than a chunk has")
}

/// The format around a stream.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wrapper {
    #[cfg(feature = "zarr")]
    Gzip,
    Zlib,
}

impl Wrapper {
    /// Whether another member of the stream follows.
    fn goes_on(self, rest: &[u8]) -> bool {
        match (self, rest) {
            #[cfg(feature = "zarr")]
            (Wrapper::Gzip, rest) => rest.starts_with(b"\x1f\x8b"),
            (Wrapper::Zlib, _) => false,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InflateFault {
    Damaged,
    /// The stream has more bytes than allowed.
    TooLong,
}

/// The inflated bytes: at most `most`, or at least the first `needed`, if that is less.
pub(super) fn inflate(
    wrapper: Wrapper,
    deflated: &[u8],
    needed: usize,
    most: usize,
) -> Result<Vec<u8>, InflateFault> {
    let new_decoder = || match wrapper {
        #[cfg(feature = "zarr")]
        Wrapper::Gzip => Decompress::new_gzip(15),
        Wrapper::Zlib => Decompress::new(true),
    };
    let mut decoder = new_decoder();
    let mut rest = deflated;
    // a stream grows at most a thousand times: for a short one, little is reserved
    let mut bytes = spare_memory(needed.min(most).min(deflated.len().saturating_mul(1032)));
    loop {
        let read = decoder.total_in() as usize;
        let made = bytes.len();
        let status = decoder.decompress_vec(&rest[read..], &mut bytes, FlushDecompress::Finish);
        match status {
            _ if bytes.len() > most => return Err(InflateFault::TooLong),
            Err(_) => return Err(InflateFault::Damaged),
            Ok(Status::StreamEnd) => {
                rest = &rest[decoder.total_in() as usize..];
                if !wrapper.goes_on(rest) {
                    return Ok(bytes);
                }
                decoder = new_decoder();
            }
            Ok(_) if bytes.len() >= needed => return Ok(bytes),
            Ok(_) if bytes.len() == bytes.capacity() => {
                bytes.reserve(made.clamp(1, most - bytes.len() + 1));
            }
            Ok(_) if decoder.total_in() as usize == read && bytes.len() == made => {
                return Err(InflateFault::Damaged);
            }
            Ok(_) => {}
        }
    }
}

thread_local! {
    /// Whether a panic of this thread becomes an error.
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// The result of `work`, or the message of its panic, as one line of text. Nothing is printed then.
///
/// For packages that read files of others: no file may end the program, or the program that uses
/// this library. These packages check what they read, and where they forget to, Rust's own checks
/// panic.
///
/// Code that panicked may be called again: its state is unchanged, or its locks are poisoned, and
/// it panics again.
pub(super) fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !IS_GUARDED.get() {
                usual(panic);
            }
        }));
    });
    let before = IS_GUARDED.replace(true);
    let outcome = panic::catch_unwind(AssertUnwindSafe(work));
    IS_GUARDED.set(before);
    outcome.map_err(|panicked| format!("its reader failed: {}", brief(message(&*panicked))))
}

fn message(panicked: &(dyn Any + Send)) -> &str {
    let text = panicked.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panicked.downcast_ref::<&str>().copied())
        .unwrap_or("for no reason that it gives")
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn blocks_of_lz4_have_as_many_bytes_as_are_said() {
        // a literal of one byte, copied nine times, and five literals
        let block = [0x15, b'a', 1, 0, 0x50, b'b', b'c', b'd', b'e', b'f'];
        let mut out = b"x".to_vec();
        lz4(&block, 15, &mut out).unwrap();
        assert_eq!(out, b"xaaaaaaaaaabcdef");
        for len in [0, 14, 16, 1 << 40] {
            assert!(lz4(&block, len, &mut Vec::new()).is_err());
        }
    }

    #[cfg(feature = "zarr")]
    #[test]
    fn no_more_is_decoded_than_fits() {
        let long = vec![7; 1 << 20];
        let zstd = zstd::bulk::compress(&long, 1).unwrap();
        for needed in [1, 70_000, 1 << 19, (1 << 20) - 1, 1 << 20] {
            for most in [1 << 20, 1 << 21] {
                let bytes = unpacked(&zstd, Wanted { most, needed }).unwrap();
                assert!(bytes.len() as u64 >= needed && long.starts_with(&bytes));
            }
        }
        assert!(unpacked(&zstd, Wanted { most: 1 << 19, needed: 1 << 19 }).is_err());
        assert!(unpacked(&zstd, Wanted { most: 1 << 21, needed: (1 << 20) + 1 }).is_err());
        assert!(unpacked(&zstd[..20], Wanted { most: 1 << 20, needed: 1 << 19 }).is_err());
        // nothing is reserved for a number that is not known to be small
        assert_eq!(reserved(&zstd, 1 << 60), zstd.len() as u64 * 1024);
    }

    fn deflated(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::read::ZlibEncoder::new(bytes, flate2::Compression::fast());
        let mut deflated = Vec::new();
        encoder.read_to_end(&mut deflated).unwrap();
        deflated
    }

    #[test]
    fn no_more_is_inflated_than_fits() {
        let long: Vec<u8> = (0..1u32 << 18).flat_map(|at| (at / 3).to_le_bytes()).collect();
        let stream = deflated(&long);
        let inflate = |needed, most| inflate(Wrapper::Zlib, &stream, needed, most);
        let len = long.len();
        for most in [len, len + 7, 2 * len, usize::MAX] {
            assert!(inflate(usize::MAX, most).as_ref() == Ok(&long), "{most}");
        }
        for most in [0, 1, len / 2, len - 1] {
            assert_eq!(inflate(usize::MAX, most), Err(InflateFault::TooLong), "{most}");
        }
        for needed in [1, 5000, 65_537, len - 1, len] {
            let first = inflate(needed, len).unwrap();
            assert!(first.len() >= needed && long.starts_with(&first), "{needed}");
        }
        assert!(inflate(5000, len).unwrap().len() < 20_000);
    }

    #[test]
    fn streams_without_an_end_are_damaged() {
        let stream = deflated(&[7; 5000]);
        for end in 0..stream.len() {
            let cut = inflate(Wrapper::Zlib, &stream[..end], usize::MAX, 5000);
            assert_eq!(cut, Err(InflateFault::Damaged), "{end}");
        }
        let mut other = stream.clone();
        *other.last_mut().unwrap() ^= 1;
        assert_eq!(inflate(Wrapper::Zlib, &other, usize::MAX, 5000), Err(InflateFault::Damaged));
    }

    #[test]
    fn a_panic_is_an_error() {
        let bytes: Vec<u8> = vec![1, 2];
        assert_eq!(guarded(|| bytes[1]), Ok(2));
        let error = guarded(|| bytes[bytes.len()]).unwrap_err();
        assert_eq!(
            error,
            "its reader failed: index out of bounds: the len is 2 but the index is 2"
        );
        // also within another guarded call, which continues
        assert_eq!(guarded(|| guarded(|| bytes[9]).is_err()), Ok(true));
        assert!(guarded(|| std::panic::panic_any(7)).unwrap_err().ends_with("that it gives"));
    }
}
