//! Memory for packed pieces.

use std::ops::{Deref, DerefMut};

use crate::source::{PAGE, STEP, is_slow};

/// How much further in its page a buffer lies than its bytes do in the output. The input often has them at
/// the same place as the output; processors hold loads back that end like a store before them.
const APART: usize = 512;

/// The bytes of a piece, with room before them: they lie at a place in a page that is fast for what is read
/// into them and for what is written from them (see [`is_slow`]).
#[derive(Default)]
pub(super) struct Buffer {
    memory: Vec<u8>,
    start: usize,
    len: usize,
}

/// Where in files the bytes of a piece come from and go to, as far as that is known.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PiecePlaces {
    pub(super) read: Option<u64>,
    pub(super) written: u64,
}

impl Buffer {
    /// A buffer of `len` bytes, whatever they are, in memory that is free: in the shortest that will do, so
    /// that buffers for what is packed do not become as long as those for what it is converted to.
    pub(super) fn take(spare: &mut Vec<Buffer>, len: usize, places: PiecePlaces) -> Buffer {
        let needed = len + PAGE + STEP;
        let lens = || spare.iter().map(|buffer| buffer.memory.len()).enumerate();
        let fitting = lens().filter(|(_, has)| *has >= needed).min_by_key(|(_, has)| *has);
        let best = fitting.or_else(|| lens().max_by_key(|(_, has)| *has));
        let mut memory = best.map(|(at, _)| spare.swap_remove(at).memory).unwrap_or_default();
        if memory.len() < needed {
            memory = vec![0; needed];
        }
        let start = places.start(memory.as_ptr().addr());
        Buffer { memory, start, len }
    }
}

impl PiecePlaces {
    /// How far behind an address bytes are moved fast: at most a page and a [`STEP`].
    fn start(self, address: usize) -> usize {
        let start = (self.written as usize).wrapping_add(APART).wrapping_sub(address) % PAGE;
        let is_slow = self.read.is_some_and(|read| is_slow(read as usize, address + start));
        if is_slow { start + STEP } else { start }
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.memory[self.start..][..self.len]
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..][..self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_lie_where_they_are_read_and_written_fast() {
        let mut spare = Vec::new();
        for read in (0..PAGE as u64).step_by(5) {
            for written in [0, 1, 16, 31, 128, 4095] {
                let places = PiecePlaces { read: Some(read), written };
                let buffer = Buffer::take(&mut spare, 1000, places);
                let address = buffer.as_ptr().addr();
                assert_eq!(buffer.len(), 1000);
                assert!(!is_slow(read as usize, address), "{places:?}");
                assert!(!is_slow(address, written as usize), "{places:?}");
                spare = vec![buffer];
            }
        }
    }

    #[test]
    fn the_shortest_memory_that_will_do_is_taken() {
        let taken = |spare: &mut Vec<Buffer>, len| Buffer::take(spare, len, PiecePlaces::default());
        let mut spare: Vec<Buffer> = [100, 5000, 300].map(|len| taken(&mut Vec::new(), len)).into();
        let of_medium = spare[2].memory.as_ptr();
        assert_eq!(taken(&mut spare, 200).memory.as_ptr(), of_medium);
        assert_eq!(spare.len(), 2);
        // where none is long enough, the longest gives way
        taken(&mut spare, 9000);
        assert_eq!(spare.len(), 1);
        assert_eq!(spare[0].len, 100);
    }
}
