//! Memory of decoded chunks, for reuse: to map and clear pages anew takes a good part of the time that it takes to
//! decode a chunk. The process has one such store, since codecs are called through packages that pass nothing on. It
//! is freed with the last piece of a job.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The most bytes held.
const MOST_SPARE: usize = 32 << 20;

/// The fewest bytes worth reuse.
pub(crate) const LEAST_SPARE: usize = 64 << 10;

static SPARE: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

fn lock_spare() -> MutexGuard<'static, Vec<Vec<u8>>> {
    SPARE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Empty memory with room for `bytes` bytes.
#[cfg(any(feature = "hdf5", feature = "zarr"))]
pub(crate) fn spare_memory(bytes: usize) -> Vec<u8> {
    let mut memory = take_spare(bytes);
    memory.clear();
    memory
}

/// Memory of `bytes` bytes, to be overwritten: zeros, or old content.
pub(crate) fn spare_bytes(bytes: usize) -> Vec<u8> {
    let mut memory = take_spare(bytes);
    memory.resize(bytes, 0);
    memory
}

fn take_spare(bytes: usize) -> Vec<u8> {
    // few different lengths, as encoded chunks differ a little
    let bytes = bytes.next_multiple_of((bytes.next_power_of_two() / 16).max(1));
    let mut spare = lock_spare();
    let fits = |(_, it): &(usize, &Vec<u8>)| it.capacity() >= bytes && it.capacity() / 2 <= bytes;
    let least = spare.iter().enumerate().filter(fits).min_by_key(|(_, it)| it.capacity());
    match least.map(|(at, _)| at) {
        Some(at) => spare.remove(at),
        None => Vec::with_capacity(bytes),
    }
}

/// Store unused memory for reuse; where there is no room, what was not used for longest is freed.
pub(crate) fn keep_spare(bytes: Vec<u8>) {
    if !(LEAST_SPARE..=MOST_SPARE).contains(&bytes.capacity()) {
        return;
    }
    let mut spare = lock_spare();
    let mut held = bytes.capacity() + spare.iter().map(Vec::capacity).sum::<usize>();
    while held > MOST_SPARE {
        held -= spare.remove(0).capacity();
    }
    spare.push(bytes);
}

/// Free all stored memory.
pub(crate) fn drop_spare() {
    *lock_spare() = Vec::new();
}
