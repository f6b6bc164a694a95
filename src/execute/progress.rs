//! The progress of a job, for who watches it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The progress of a job, to be watched from another thread.
#[derive(Debug, Default)]
pub struct Progress {
    written: AtomicU64,
    watcher: Watcher,
    /// The bytes read before the job: pipes that are spooled, masks that are counted.
    pub(crate) scratch: Stage,
    /// The bytes copied of a file that is then changed.
    pub(crate) copied: Stage,
}

/// A function that is told how many bytes of the output are written, in any of the threads that write.
#[derive(Clone, Default)]
pub struct Watcher(Option<Arc<dyn Fn(u64) + Send + Sync>>);

impl Watcher {
    pub fn new(watch: impl Fn(u64) + Send + Sync + 'static) -> Watcher {
        Watcher(Some(Arc::new(watch)))
    }
}

impl fmt::Debug for Watcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Watcher(..)" } else { "Watcher" })
    }
}

/// A stage before anything is written.
#[derive(Debug, Default)]
pub(crate) struct Stage {
    done: AtomicU64,
    /// The number of bytes; 0 while the stage is not running.
    total: AtomicU64,
}

/// The total for a pipe of unknown length.
pub(crate) const UNKNOWN: u64 = u64::MAX;

impl Progress {
    /// Progress that a watcher is told.
    pub fn watched(watcher: &Watcher) -> Progress {
        Progress { watcher: watcher.clone(), ..Progress::default() }
    }

    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// While a pipe is read to its end, or a mask is counted: the bytes read so far, and the total where it is
    /// known.
    pub fn keeping(&self) -> Option<(u64, Option<u64>)> {
        let (done, total) = self.scratch.now()?;
        Some((done, (total != UNKNOWN).then_some(total)))
    }

    /// While a file is copied before it is changed: the bytes copied so far, and the total.
    pub fn copying(&self) -> Option<(u64, u64)> {
        self.copied.now()
    }

    pub(crate) fn add(&self, bytes: u64) {
        let before = self.written.fetch_add(bytes, Ordering::Relaxed);
        self.watcher.0.iter().for_each(|watch| watch(before + bytes));
    }
}

impl Stage {
    pub(crate) fn during<T>(&self, total: u64, work: impl FnOnce() -> T) -> T {
        let begin = |total| {
            self.done.store(0, Ordering::Relaxed);
            self.total.store(total, Ordering::Relaxed);
        };
        begin(total);
        let made = work();
        begin(0);
        made
    }

    pub(crate) fn add(&self, bytes: u64) {
        self.done.fetch_add(bytes, Ordering::Relaxed);
    }

    fn now(&self) -> Option<(u64, u64)> {
        let total = self.total.load(Ordering::Relaxed);
        (total > 0).then(|| (self.done.load(Ordering::Relaxed), total))
    }
}
