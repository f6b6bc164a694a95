//! Decoders of chunks that make no more bytes than there may be, whatever a stream says of itself.

use std::io;
#[cfg(feature = "zarr")]
use std::io::Read;

#[cfg(feature = "zarr")]
use zstd::zstd_safe::{self, DCtx, DParameter, InBuffer, OutBuffer};

#[cfg(feature = "zarr")]
use super::spare;

/// How many bytes are decoded.
#[cfg(feature = "zarr")]
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    /// No more than these.
    pub(super) most: u64,
    /// The first ones that are used. Others may be left out.
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

/// Put the bytes of a block of LZ4, which does not say how many they are, behind others.
pub(super) fn lz4(encoded: &[u8], len: usize, out: &mut Vec<u8>) -> io::Result<()> {
    // a byte stands for 255 at most
    if len > encoded.len().saturating_mul(255) {
        return Err(too_short());
    }
    let at = out.len();
    out.resize(at + len, 0);
    let made = lz4_flex::block::decompress_into(encoded, &mut out[at..]);
    if made.map_err(io::Error::other)? == len { Ok(()) } else { Err(too_short()) }
}

/// The bytes that are reserved for what so many become, before it is known how many that are: most streams
/// become at most a thousand times as long.
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

/// So many bytes of Zstandard are decoded before it is asked whether they are enough.
#[cfg(feature = "zarr")]
const STEP: usize = 64 << 10;

/// The bytes of Zstandard, in one call, which is faster; in steps where not all are needed.
#[cfg(feature = "zarr")]
fn unpacked(encoded: &[u8], wanted: Wanted) -> io::Result<Vec<u8>> {
    let mut bytes = spare::empty(wanted.most as usize);
    if wanted.needed >= wanted.most {
        zstd::bulk::Decompressor::new()?.decompress_to_buffer(encoded, &mut bytes)?;
        return Ok(bytes);
    }
    let failed = |code| io::Error::other(zstd_safe::get_error_name(code));
    let mut decoder = DCtx::create();
    // straight to its place, and not through memory of the decoder
    decoder.set_parameter(DParameter::StableOutBuffer(true)).map_err(failed)?;
    let mut to = OutBuffer::around(&mut bytes);
    let mut decoded = 0;
    for step in encoded.chunks(STEP) {
        let mut from = InBuffer::around(step);
        while from.pos() < step.len() && (to.pos() as u64) < wanted.needed {
            let before = (from.pos(), to.pos());
            decoder.decompress_stream(&mut to, &mut from).map_err(failed)?;
            if (from.pos(), to.pos()) == before {
                return Err(io::Error::other("its bytes are damaged"));
            }
        }
        decoded = to.pos() as u64;
        if decoded >= wanted.needed {
            break;
        }
    }
    if decoded < wanted.needed { Err(too_short()) } else { Ok(bytes) }
}

fn too_short() -> io::Error {
    io::Error::other("it ends early")
}

pub(super) fn too_long() -> io::Error {
    io::Error::other("it decodes to more than a chunk has")
}

#[cfg(all(test, feature = "zarr"))]
mod tests {
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
        // what is not known to be short is not reserved
        assert_eq!(reserved(&zstd, 1 << 60), zstd.len() as u64 * 1024);
    }
}
