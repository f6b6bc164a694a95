//! How far a job is.

use std::sync::atomic::{AtomicU64, Ordering};

/// How far a job is, to be watched from another thread.
#[derive(Debug, Default)]
pub struct Progress {
    written: AtomicU64,
    /// Bytes that have been read beforehand, and those that there are to read; 0 while none are.
    kept: AtomicU64,
    to_keep: AtomicU64,
}

impl Progress {
    /// The bytes of output written so far.
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// While a pipe is kept in a temporary file, or a mask is counted, before anything is written: the
    /// bytes read so far, and how many there are.
    pub fn keeping(&self) -> Option<(u64, u64)> {
        let total = self.to_keep.load(Ordering::Relaxed);
        (total > 0).then(|| (self.kept.load(Ordering::Relaxed), total))
    }

    /// Begin to read so many bytes beforehand, or end it with 0.
    pub(crate) fn keep(&self, total: u64) {
        self.kept.store(0, Ordering::Relaxed);
        self.to_keep.store(total, Ordering::Relaxed);
    }

    /// So many more bytes were read beforehand.
    pub(crate) fn add_kept(&self, bytes: u64) {
        self.kept.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn add(&self, bytes: u64) {
        self.written.fetch_add(bytes, Ordering::Relaxed);
    }
}
