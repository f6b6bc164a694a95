//! CRC-32 of bytes that arrive in pieces, in any order and from any number of threads.
//!
//! The CRC of the whole is the XOR of its pieces' CRCs, each shifted by the bytes that follow.

use std::io::{self, Read};
use std::sync::atomic::{AtomicU32, Ordering};

use crc32fast::Hasher;

/// The CRC-32 over the pieces that were added so far.
#[derive(Debug, Default)]
pub(crate) struct PiecesCrc(AtomicU32);

impl PiecesCrc {
    /// Add a piece that is followed by `follow` bytes of the whole.
    pub(crate) fn add(&self, piece: &[u8], follow: u64) {
        self.add_sum(shifted(crc32fast::hash(piece), follow));
    }

    /// Add the contribution of a piece, as [`shifted`] computes it.
    pub(crate) fn add_sum(&self, sum: u32) {
        self.0.fetch_xor(sum, Ordering::AcqRel);
    }

    pub(crate) fn get(&self) -> u32 {
        self.0.load(Ordering::Acquire)
    }
}

/// The contribution of a piece with this CRC to the CRC of the whole, where `follow` bytes come
/// after the piece.
pub(crate) fn shifted(crc: u32, follow: u64) -> u32 {
    let mut hasher = Hasher::new_with_initial_len(crc, 0);
    hasher.combine(&Hasher::new_with_initial_len(0, follow));
    hasher.finalize()
}

/// A reader that computes the CRC-32 of the bytes read through it.
pub(crate) struct CrcReader<R> {
    inner: R,
    hasher: Hasher,
}

impl<R> CrcReader<R> {
    pub(crate) fn new(inner: R) -> CrcReader<R> {
        CrcReader { inner, hasher: Hasher::new() }
    }

    pub(crate) fn crc(self) -> u32 {
        self.hasher.finalize()
    }
}

impl<R: Read> Read for CrcReader<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buf)?;
        self.hasher.update(&buf[..count]);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_crc_of_a_whole_comes_from_its_pieces_in_any_order() {
        let whole: Vec<u8> = (0..1000u32).map(|i| (i * i % 251) as u8).collect();
        let crc = PiecesCrc::default();
        for range in [300..700, 0..1, 999..1000, 700..999, 1..300] {
            crc.add(&whole[range.clone()], (1000 - range.end) as u64);
        }
        assert_eq!(crc.get(), crc32fast::hash(&whole));
    }
}
