//! Bringing in the pages of rows before they are copied.
//!
//! Random rows of a file that is not in the page cache cost one disk access each, unless they are
//! prefetched some hundreds ahead. Where scattered rows touch nearly all pages of the file, mapping
//! all of them at once is cheaper: the disk reads it once, in order. A sample of the rows tells which
//! case it is. Where the file is in the cache, pages are mapped as they are touched, several at a
//! fault, which is no slower. Nothing here can fail or change a byte.

use std::ops::Range;
use std::sync::atomic::Ordering;

use super::page_cache::{CacheState, LONG_ROW, NEIGHBOURS, PAGE, Sampled, is_mostly_gaps};
use super::row_block::{RowBlock, RowOffsets};
use super::{DROPPED, Gather, GatherPieces};
use crate::execute::Memory;
use crate::source::{Advice, Source};

/// Rows with gaps up to this, in bytes, are prefetched in one call.
const GAP: u64 = 4096;

/// What is mapped in one call, in bytes.
const CHUNK: u64 = 16 << 20;

/// Rows are near each other within so many bytes.
const NEAR: u64 = 256 << 10;

/// How many rows are prefetched ahead of those that are copied, at most.
const AHEAD: u64 = 1024;

impl GatherPieces<'_> {
    /// Called before some rows are copied.
    pub(super) fn prepare(&self, source: &dyn Source, rows: Range<u64>) {
        match self.state(source) {
            CacheState::Cached => {}
            CacheState::ColdDense => self.map(source),
            CacheState::Cold { ahead } => {
                // the rows of a short piece were prefetched with those before it
                if rows.start == 0 || rows.end - rows.start > ahead {
                    self.prefetch(source, rows.start, ahead);
                }
            }
            CacheState::ColdLong => self.prefetch(source, rows.start, rows.end - rows.start),
        }
    }

    /// Prefetch `count` rows that lie as far ahead of row `first` as rows are prefetched.
    pub(super) fn prefetch_ahead(&self, source: &dyn Source, first: u64, count: u64) {
        match self.page_cache.state.get() {
            Some(CacheState::Cold { ahead }) => {
                self.prefetch(source, first.saturating_add(*ahead), count)
            }
            // what was brought in may have gone again, where the params are larger than memory
            Some(CacheState::ColdDense) if !self.is_cached(source, first.saturating_add(AHEAD)) => {
                self.prefetch(source, first.saturating_add(AHEAD), count);
            }
            _ => {}
        }
    }

    /// Whether a few rows from row `first` on are in memory.
    fn is_cached(&self, source: &dyn Source, first: u64) -> bool {
        let is_cached = |at| source.is_cached(at);
        self.rows.look(first, &self.gather.slab, NEIGHBOURS, &is_cached).is_cached
    }

    /// Whether each row is read by itself.
    pub(super) fn reads_long_rows(&self) -> bool {
        self.page_cache.state.get() == Some(&CacheState::ColdLong)
    }

    /// What is known of the params' pages.
    pub(super) fn state(&self, source: &dyn Source) -> CacheState {
        *self.page_cache.state.get_or_init(|| self.sample(source))
    }

    /// Whether the params fit in memory, alone or with so many bytes of the output.
    pub(super) fn fits(&self, bytes: u64) -> bool {
        let Range { start, end } = self.gather.params;
        let memory = Memory::of_process();
        memory.keeps(end - start) || memory.holds(end - start, bytes)
    }

    fn sample(&self, source: &dyn Source) -> CacheState {
        let Gather { params, slab, .. } = &self.gather;
        let count = self.rows.rows.count();
        let cold = if is_mostly_gaps(slab) { None } else { self.cold_look(source) };
        let Some(cold) = cold else { return CacheState::Cached };
        let (fits, len) = (self.fits(self.gather.bytes), params.end - params.start);
        if !fits && slab.bytes() >= LONG_ROW {
            source.advise(params.clone(), Advice::Random);
            return CacheState::ColdLong;
        }
        // rows that neighbours are near of are read by readahead, which reads them once
        let touched = count.saturating_mul(slab.bytes().max(PAGE));
        let near = if touched >= len { Memory::of_process().window() } else { 0 };
        if !fits && !cold.is_sorted && cold.spread <= near.max(NEAR) {
            return CacheState::Cached;
        }
        let row = slab.bytes().saturating_add(PAGE);
        let ahead = (Memory::of_process().rows_ahead() / row).clamp(1, AHEAD);
        if source.window_limit().is_some() {
            return CacheState::Cold { ahead };
        }
        if fits && !cold.is_sorted && touched >= len {
            return CacheState::ColdDense;
        }
        source.advise(params.clone(), Advice::Random);
        CacheState::Cold { ahead }
    }

    /// Look at a few of the rows, here and there, where they are not in memory; `None` where all are.
    pub(super) fn cold_look(&self, source: &dyn Source) -> Option<Sampled> {
        let is_cached = |at| source.is_cached(at);
        let look = || self.rows.look_around(self.wanted_rows(), &self.gather.slab, &is_cached);
        *self.page_cache.look.get_or_init(look)
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
