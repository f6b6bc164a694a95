//! How far a job is.

use std::sync::atomic::{AtomicU64, Ordering};

/// How far a job is, to be watched from another thread.
#[derive(Debug, Default)]
pub struct Progress {
    written: AtomicU64,
}

impl Progress {
    /// The bytes of output written so far.
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    pub(crate) fn add(&self, bytes: u64) {
        self.written.fetch_add(bytes, Ordering::Relaxed);
    }
}
