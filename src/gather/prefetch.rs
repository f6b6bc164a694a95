//! Bringing in the pages of rows before they are copied.
//!
//! Random rows of a file that is not in the page cache cost one disk access each, unless they are
//! prefetched some hundreds ahead. Where scattered rows touch nearly all pages of the file, mapping
//! all of them at once is cheaper: the disk reads it once, in order. A sample of the rows tells which
//! case it is. Where the file is in the cache, pages are mapped as they are touched, several at a
//! fault, which is no slower. Nothing here can fail or change a byte.

use std::sync::atomic::Ordering;

use super::page_cache::{AHEAD, State};
use super::row_block::RowBlock;
use super::{DROPPED, GatherPieces};
use crate::runs::{byte_bounds, span_bytes};
use crate::source::{Advice, Source};

/// The sample: so many rows at each of so many places.
const NEIGHBOURS: usize = 16;
const PLACES: u64 = 16;

/// Rows with gaps up to this, in bytes, are prefetched in one call.
const GAP: u64 = 4096;

/// A disk is asked for no less than this, in bytes.
const PAGE: u64 = 4096;

/// What is mapped in one call, in bytes.
const CHUNK: u64 = 16 << 20;

impl GatherPieces<'_> {
    /// Called before the rows from row `first` on are copied; `fresh` where nobody has prefetched
    /// them.
    pub(super) fn prepare(&self, source: &dyn Source, first: u64, fresh: bool) {
        match *self.page_cache.state.get_or_init(|| self.sample(source)) {
            State::Cached => {}
            State::ColdDense => self.map(source),
            State::Cold if fresh => self.prefetch(source, first, AHEAD),
            State::Cold => {}
        }
    }

    /// Prefetch `count` rows that lie [`AHEAD`] of row `first`.
    pub(super) fn prefetch_ahead(&self, source: &dyn Source, first: u64, count: u64) {
        match self.page_cache.state.get() {
            Some(State::Cold) => self.prefetch(source, first.saturating_add(AHEAD), count),
            // what was brought in may have gone again, where the params are larger than memory
            Some(State::ColdDense) if !self.is_cached(source, first.saturating_add(AHEAD)) => {
                self.prefetch(source, first.saturating_add(AHEAD), count);
            }
            _ => {}
        }
    }

    fn sample(&self, source: &dyn Source) -> State {
        let gather = &self.gather;
        let rows = self.rows.rows.count();
        let slab = &gather.slab;
        let size = gather.params.end - gather.params.start;
        let lowest = byte_bounds(&slab.axes, slab.run).start;
        // a slab that is mostly gaps is left to the kernel's readahead
        let gaps = span_bytes(&slab.axes, slab.run) > 4 * slab.bytes();
        let mut offsets = [DROPPED; NEIGHBOURS];
        for place in 0..PLACES {
            let first = (u128::from(rows) * u128::from(place) / u128::from(PLACES)) as u64;
            let count = (rows - first).min(NEIGHBOURS as u64) as usize;
            // a bad position is reported when it is gathered
            if self.rows.offsets(first, &mut offsets[..count]).is_err() {
                continue;
            }
            for offset in offsets[..count].iter().filter(|&&offset| offset != DROPPED) {
                if !gaps && !source.is_cached(offset.wrapping_add_signed(lowest)) {
                    let touched = rows.saturating_mul(slab.bytes().max(PAGE));
                    let scattered = !offsets[..count].is_sorted();
                    if scattered && source.window_limit().is_none() && touched >= size {
                        return State::ColdDense;
                    }
                    if source.window_limit().is_none() {
                        source.advise(gather.params.clone(), Advice::Random);
                    }
                    return State::Cold;
                }
            }
        }
        State::Cached
    }

    /// Whether the rows from row `first` on are in memory, as far as a few of them tell.
    fn is_cached(&self, source: &dyn Source, first: u64) -> bool {
        let mut offsets = [DROPPED; NEIGHBOURS];
        let count = self.rows.rows.count().saturating_sub(first).min(NEIGHBOURS as u64) as usize;
        let slab = &self.gather.slab;
        let lowest = byte_bounds(&slab.axes, slab.run).start;
        // a bad position is reported when it is gathered
        self.rows.offsets(first, &mut offsets[..count]).is_err()
            || offsets[..count]
                .iter()
                .filter(|&&offset| offset != DROPPED)
                .all(|offset| source.is_cached(offset.wrapping_add_signed(lowest)))
    }

    /// Read the params from beginning to end and map their pages; all workers that come here share
    /// the work.
    fn map(&self, source: &dyn Source) {
        let params = &self.gather.params;
        loop {
            let chunk = self.page_cache.mapped.fetch_add(1, Ordering::Relaxed);
            let start = params.start.saturating_add(chunk.saturating_mul(CHUNK));
            if start >= params.end {
                // so that the count cannot wrap around
                self.page_cache.mapped.fetch_sub(1, Ordering::Relaxed);
                return;
            }
            let range = start..params.end.min(start + CHUNK);
            source.advise(range.clone(), Advice::WillNeed);
            source.advise(range, Advice::Populate);
        }
    }

    /// Begin to read `count` rows from row `first` on.
    fn prefetch(&self, source: &dyn Source, mut first: u64, count: u64) {
        let rows = self.rows.rows.count();
        let end = first.saturating_add(count).min(rows);
        let (slab, mut block, mut range) = (&self.gather.slab, RowBlock::default(), 0..0);
        while first < end {
            if self.rows.block(first..end, AHEAD as usize, slab, &mut block).is_err() {
                return;
            }
            for (offset, rows) in block.stretches().filter(|&(offset, _)| offset != DROPPED) {
                let bounds = block.runs(slab, offset, rows).byte_bounds();
                let (start, end) = (bounds.start as u64, bounds.end as u64);
                if start >= range.start && start <= range.end + GAP {
                    range.end = range.end.max(end);
                } else {
                    if !range.is_empty() {
                        source.advise(range, Advice::WillNeed);
                    }
                    range = start..end;
                }
            }
            first += block.rows();
        }
        if !range.is_empty() {
            source.advise(range, Advice::WillNeed);
        }
    }
}
