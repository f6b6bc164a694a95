//! Memory that chunks were decoded in, kept for those that follow: to map and clear its pages anew takes a good
//! part of the time that it takes to decode a chunk.
//!
//! There is one store of it for the process, since packages call codecs and hand none through. It is let go of
//! with the last piece of a job.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The most bytes that are kept.
const MOST: usize = 32 << 20;

/// The fewest bytes that are worth it.
const LEAST: usize = 64 << 10;

static SPARE: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

fn lock() -> MutexGuard<'static, Vec<Vec<u8>>> {
    SPARE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Empty memory for so many bytes.
#[cfg(any(feature = "hdf5", feature = "zarr"))]
pub(crate) fn empty(bytes: usize) -> Vec<u8> {
    let mut memory = take(bytes);
    memory.clear();
    memory
}

/// So many bytes, to be written over: they are zeros, or what the memory held before.
#[cfg(any(feature = "hdf5", feature = "zarr"))]
pub(crate) fn sized(bytes: usize) -> Vec<u8> {
    let mut memory = take(bytes);
    memory.resize(bytes, 0);
    memory
}

#[cfg(any(feature = "hdf5", feature = "zarr"))]
fn take(bytes: usize) -> Vec<u8> {
    let mut spare = lock();
    let fits = |(_, it): &(usize, &Vec<u8>)| it.capacity() >= bytes && it.capacity() / 2 <= bytes;
    let least = spare.iter().enumerate().filter(fits).min_by_key(|(_, it)| it.capacity());
    match least.map(|(at, _)| at) {
        Some(at) => spare.swap_remove(at),
        None => Vec::with_capacity(bytes),
    }
}

/// Keep memory that nothing uses any more, as far as there is room.
pub(crate) fn give(bytes: Vec<u8>) {
    let mut spare = lock();
    let kept: usize = spare.iter().map(Vec::capacity).sum();
    if bytes.capacity() >= LEAST && bytes.capacity() <= MOST.saturating_sub(kept) {
        spare.push(bytes);
    }
}

/// Let go of all that is kept.
pub(crate) fn clear() {
    *lock() = Vec::new();
}
