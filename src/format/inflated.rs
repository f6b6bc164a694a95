//! Streams of deflate, whole or their first bytes, in one call to memory that is used again.

use flate2::{Decompress, FlushDecompress, Status};

use super::spare;

/// What is around a stream.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wrapper {
    #[cfg(feature = "zarr")]
    Gzip,
    Zlib,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InflateFault {
    Damaged,
    /// It goes on behind the bytes that there may be.
    TooLong,
}

/// What a stream becomes: no more than `most` bytes, or its first ones, at least
/// `needed`, where that is less.
pub(super) fn inflate(
    wrapper: Wrapper,
    deflated: &[u8],
    needed: usize,
    most: usize,
) -> Result<Vec<u8>, InflateFault> {
    let mut decoder = match wrapper {
        #[cfg(feature = "zarr")]
        Wrapper::Gzip => Decompress::new_gzip(15),
        Wrapper::Zlib => Decompress::new(true),
    };
    // a stream becomes at most some thousand times as long: a short one reserves little
    let mut bytes = spare::empty(needed.min(most).min(deflated.len().saturating_mul(1032)));
    loop {
        let read = decoder.total_in() as usize;
        let made = bytes.len();
        let status = decoder.decompress_vec(&deflated[read..], &mut bytes, FlushDecompress::Finish);
        match status {
            _ if bytes.len() > most => return Err(InflateFault::TooLong),
            Err(_) => return Err(InflateFault::Damaged),
            Ok(Status::StreamEnd) => return Ok(bytes),
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

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

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
}
