//! How far a job is.

use std::sync::atomic::{AtomicU64, Ordering};

/// How far a job is, to be watched from another thread.
#[derive(Debug, Default)]
pub struct Progress {
    written: AtomicU64,
    /// Bytes that are read beforehand: pipes that are kept, masks that are counted.
    pub(crate) kept: Stage,
    /// Bytes of a file that are copied, to be changed then.
    pub(crate) copied: Stage,
}

/// Something that is done before anything is written.
#[derive(Debug, Default)]
pub(crate) struct Stage {
    done: AtomicU64,
    /// How many bytes there are; 0 while nothing is done.
    total: AtomicU64,
}

/// The bytes of a pipe that does not say how many it has.
pub(crate) const UNKNOWN: u64 = u64::MAX;

impl Progress {
    /// The bytes of output written so far.
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// While a pipe is read to its end, or a mask is counted, before anything is written: the bytes read
    /// so far, and how many there will be, where that is known.
    pub fn keeping(&self) -> Option<(u64, Option<u64>)> {
        let (done, total) = self.kept.now()?;
        Some((done, (total != UNKNOWN).then_some(total)))
    }

    /// While a file is copied, before the copy is changed: the bytes copied so far, and how many there
    /// are.
    pub fn copying(&self) -> Option<(u64, u64)> {
        self.copied.now()
    }

    pub(crate) fn add(&self, bytes: u64) {
        self.written.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl Stage {
    /// Begin with so many bytes, or end it with 0.
    pub(crate) fn begin(&self, total: u64) {
        self.done.store(0, Ordering::Relaxed);
        self.total.store(total, Ordering::Relaxed);
    }

    /// So many more bytes are done.
    pub(crate) fn add(&self, bytes: u64) {
        self.done.fetch_add(bytes, Ordering::Relaxed);
    }

    /// How much is done, and of how much.
    fn now(&self) -> Option<(u64, u64)> {
        let total = self.total.load(Ordering::Relaxed);
        (total > 0).then(|| (self.done.load(Ordering::Relaxed), total))
    }
}
