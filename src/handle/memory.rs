//! Memory that a slice is read into, as a sink: its bytes may arrive in any order, from several threads.

use std::sync::{Mutex, PoisonError};

use crate::sink::{Sink, SinkError};

/// So many bytes have a lock of their own: as long as a piece commonly is, so that threads don't wait for
/// each other.
const STRETCH: usize = 256 << 10;

/// A sink that fills memory.
pub(super) struct MemorySink<'a> {
    stretches: Vec<Mutex<&'a mut [u8]>>,
    len: u64,
}

impl<'a> MemorySink<'a> {
    /// Fill these bytes.
    pub(super) fn new(bytes: &'a mut [u8]) -> MemorySink<'a> {
        let len = bytes.len() as u64;
        MemorySink { stretches: bytes.chunks_mut(STRETCH).map(Mutex::new).collect(), len }
    }
}

impl Sink for MemorySink<'_> {
    fn write_at(&self, offset: u64, mut bytes: &[u8]) -> Result<(), SinkError> {
        let (count, len) = (bytes.len() as u64, self.len);
        if offset.checked_add(count).is_none_or(|end| end > len) {
            return Err(SinkError::OutOfBounds { offset, count, len });
        }
        let (mut number, mut at) = (offset as usize / STRETCH, offset as usize % STRETCH);
        while !bytes.is_empty() {
            let mut stretch = self.stretches[number].lock().unwrap_or_else(PoisonError::into_inner);
            let now = &mut stretch[at..];
            let (first, rest) = bytes.split_at(bytes.len().min(now.len()));
            now[..first.len()].copy_from_slice(first);
            (number, at, bytes) = (number + 1, 0, rest);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_arrive_in_any_order() {
        let bytes: Vec<u8> = (0..3 * STRETCH as u32).map(|at| (at % 251) as u8).collect();
        for part in [1 << 10, 100_000, STRETCH, STRETCH + 1, bytes.len()] {
            let mut memory = vec![0; bytes.len()];
            let sink = MemorySink::new(&mut memory);
            for (number, part_bytes) in bytes.chunks(part).enumerate().rev() {
                sink.write_at((number * part) as u64, part_bytes).unwrap();
            }
            assert!(matches!(sink.write_at(sink.len, &[0]), Err(SinkError::OutOfBounds { .. })));
            sink.write_at(sink.len, &[]).unwrap();
            drop(sink);
            assert!(memory == bytes, "parts of {part}");
        }
    }
}
