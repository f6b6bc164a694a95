//! What is known of the pages that rows lie on: a look at a few of them, here and there.

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;

use super::positions::DROPPED;
use super::rows::BoundRows;
use crate::runs::{Runs, byte_bounds, span_bytes};

/// The sample: so many rows at each of so many places.
pub(super) const NEIGHBOURS: usize = 16;
const PLACES: u64 = 16;

/// A disk is asked for no less than this, in bytes.
pub(super) const PAGE: u64 = 4096;

/// Rows of so many bytes, in params that do not fit in memory, are read by themselves.
pub(super) const LONG_ROW: u64 = 16 << 10;

/// Whether a slab has few bytes of what it spans. Those are left to the kernel's readahead.
pub(super) fn is_mostly_gaps(slab: &Runs) -> bool {
    span_bytes(&slab.axes, slab.run) > 4 * slab.bytes()
}

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
pub(crate) struct Sampled {
    /// Whether they are in memory.
    pub(super) is_cached: bool,
    /// Whether they come in the order of the file.
    pub(super) is_sorted: bool,
    /// How far apart the first and the last of neighbours in the file are, in bytes.
    pub(crate) spread: u64,
}

impl BoundRows<'_> {
    /// Look at a few of these rows, each like `slab`, here and there, where they are not in memory; `None` where all
    /// are. `is_cached` tells of a byte of the tensor's file.
    pub(crate) fn look_around(
        &self,
        rows: Range<u64>,
        slab: &Runs,
        is_cached: &dyn Fn(u64) -> bool,
    ) -> Option<Sampled> {
        let count = rows.end - rows.start;
        // one row is read when it is copied, as soon as if it were asked for
        if count == 1 && slab.bytes() < LONG_ROW {
            return None;
        }
        // few rows are copied sooner than many are looked at
        let places = (count / NEIGHBOURS as u64).clamp(1, PLACES);
        let looks = if places < PLACES { 1 } else { NEIGHBOURS };
        let part = |place| u128::from(count) * u128::from(place) / u128::from(places);
        let first = |place| rows.start + part(place) as u64;
        let looks = (0..places).map(|place| self.look(first(place), slab, looks, is_cached));
        looks.filter(|look| !look.is_cached).reduce(|one, other| Sampled {
            is_cached: false,
            is_sorted: one.is_sorted && other.is_sorted,
            spread: one.spread.max(other.spread),
        })
    }

    /// Look at a few rows from row `first` on, and whether the first `looks` of them are in memory.
    pub(super) fn look(
        &self,
        first: u64,
        slab: &Runs,
        looks: usize,
        is_cached: &dyn Fn(u64) -> bool,
    ) -> Sampled {
        let mut offsets = [DROPPED; NEIGHBOURS];
        let count = self.rows.count().saturating_sub(first).min(NEIGHBOURS as u64) as usize;
        let offsets = &mut offsets[..count];
        let bounds = byte_bounds(&slab.axes, slab.run);
        let ends = [bounds.start, bounds.end - 1];
        // where a row is short, both are on one page, or nearly
        let ends = if bounds.end - bounds.start > PAGE as i64 { &ends[..] } else { &ends[..1] };
        let is_cached =
            |offset: &u64| ends.iter().all(|end| is_cached(offset.wrapping_add_signed(*end)));
        // a bad position is reported when it is gathered
        let is_cached = self.offsets(first, offsets).is_err()
            || offsets.iter().filter(|&&offset| offset != DROPPED).take(looks).all(is_cached);
        let placed = || offsets.iter().copied().filter(|&offset| offset != DROPPED);
        let spread = placed().max().unwrap_or(0) - placed().min().unwrap_or(0);
        Sampled { is_cached, is_sorted: offsets.is_sorted(), spread }
    }
}
