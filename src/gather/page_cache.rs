//! What is known of the pages that a gather's params lie on.

use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;

/// What is known of the params' pages.
#[derive(Debug, Default)]
pub(super) struct PageCache {
    pub(super) state: OnceLock<CacheState>,
    /// What a look at some rows told, where they are not in memory.
    pub(super) look: OnceLock<Option<Sampled>>,
    /// How many chunks of the params were mapped.
    pub(super) mapped: AtomicU64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CacheState {
    /// All the sample is in memory.
    Cached,
    /// Some of it must be read from the disk: so many rows are prefetched ahead of those that are copied.
    Cold { ahead: u64 },
    /// The same, and scattered rows touch nearly all pages of a map.
    ColdDense,
    /// The same of rows so long that each is read by itself, in params that do not fit in memory.
    ColdLong,
}

/// What a few rows tell of those around them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sampled {
    /// Whether they are in memory.
    pub(super) is_cached: bool,
    /// Whether they come in the order of the file.
    pub(super) is_sorted: bool,
    /// How far apart the first and the last of neighbours in the file are, in bytes.
    pub(super) spread: u64,
}
