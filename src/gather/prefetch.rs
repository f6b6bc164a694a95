//! Bringing in the pages of rows before they are copied.
//!
//! Random rows of a file that is not in the page cache cost one disk access each, unless they are
//! prefetched some hundreds ahead. Where scattered rows touch nearly all pages of the file, mapping
//! all of them at once is cheaper: the disk reads it once, in order. A sample of the rows tells which
//! case it is. Where the file is in the cache, pages are mapped as they are touched, several at a
//! fault, which is no slower. Nothing here can fail or change a byte.

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use super::block::{RowBlock, RowOffsets};
use super::rows::BoundRows;
use super::{DROPPED, Gather, GatherPieces};
use crate::execute::{LONG_GATHERED_ROW, Memory, SHORT_PARAMS};
use crate::plan::PIECE_BYTES;
use crate::runs::{Runs, byte_bounds, span_bytes};
use crate::source::{Advice, PAGE, Source};

/// The largest gap between rows, in bytes, that are prefetched in one call.
const GAP: u64 = 4096;

const CHUNK: u64 = 16 << 20;

/// The distance in bytes within which rows are near each other.
const NEAR: u64 = 256 << 10;

/// The most rows that are prefetched before they are copied.
const AHEAD: u64 = 1024;

impl GatherPieces<'_> {
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

    /// Prefetch `count` rows, at the distance ahead of row `first` that rows are prefetched.
    pub(super) fn prefetch_ahead(&self, source: &dyn Source, first: u64, count: u64) {
        match self.page_cache.state.get() {
            Some(CacheState::Cold { ahead }) => {
                self.prefetch(source, first.saturating_add(*ahead), count)
            }
            // pages that were brought in may be gone again, if the params are larger than memory
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

    /// Whether rows that are short for a disk would be read again and again, as they do not fit in
    /// memory and are not there.
    pub(crate) fn reads_rows_again(&self, source: &dyn Source) -> bool {
        let Gather { slab, params, bytes, .. } = &self.gather;
        let is_long = slab.axes.is_empty() && slab.run >= LONG_GATHERED_ROW;
        // before the system is asked, which takes longer than a short copy
        let is_little = params.end - params.start < SHORT_PARAMS || *bytes < PIECE_BYTES;
        if is_long || is_little || source.is_remote() {
            return false;
        }
        !self.fits(*bytes) && self.cold_look(source).is_some()
    }

    pub(super) fn state(&self, source: &dyn Source) -> CacheState {
        *self.page_cache.state.get_or_init(|| self.sample(source))
    }

    /// Whether the params fit in memory, alone or with `bytes` bytes of the output.
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
        let len = params.end - params.start;
        let fits = self.fits(self.gather.bytes);
        if !fits && slab.bytes() >= LONG_GATHERED_ROW {
            source.advise(params.clone(), Advice::Random);
            return CacheState::ColdLong;
        }
        // readahead reads rows with near neighbours once
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

    /// Sample a few of the rows, here and there, if they are not in memory; `None` if all are.
    pub(super) fn cold_look(&self, source: &dyn Source) -> Option<Sampled> {
        let is_cached = |at| source.is_cached(at);
        let look = || self.rows.look_around(self.wanted_rows(), &self.gather.slab, &is_cached);
        *self.page_cache.look.get_or_init(look)
    }

    /// Read the params from beginning to end and map their pages; all workers that call this share
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

    fn prefetch(&self, source: &dyn Source, mut first: u64, count: u64) {
        let rows = self.rows.rows.count();
        let end = first.saturating_add(count).min(rows);
        let slab = &self.gather.slab;
        let mut block = RowBlock::default();
        let mut range = 0..0;
        while first < end {
            if self.rows.block(first..end, AHEAD as usize, slab, &mut block).is_err() {
                return;
            }
            for (offset, rows) in block.stretches().filter(|&(offset, _)| offset != DROPPED) {
                let Range { start, end } = block.runs(slab, offset, rows).file_bounds();
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

/// The number of neighbouring rows in each sample.
const NEIGHBOURS: usize = 16;
const SAMPLES: u64 = 16;

/// Whether a slab uses few bytes of its span. Such slabs are left to the kernel's readahead.
pub(super) fn is_mostly_gaps(slab: &Runs) -> bool {
    span_bytes(&slab.axes, slab.run) > 4 * slab.bytes()
}

#[derive(Debug, Default)]
pub(super) struct PageCache {
    pub(super) state: OnceLock<CacheState>,
    /// The result of sampling rows that are not in memory.
    pub(super) look: OnceLock<Option<Sampled>>,
    pub(super) mapped: AtomicU64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CacheState {
    Cached,
    /// Some rows must be read from the disk: this number is prefetched before they are copied.
    Cold {
        ahead: u64,
    },
    /// Some rows must be read from the disk, and scattered rows touch nearly all pages of a map.
    ColdDense,
    /// Some rows must be read from the disk, and are so long that each is read separately, in
    /// params that do not fit in memory.
    ColdLong,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Sampled {
    pub(super) is_cached: bool,
    /// Whether rows are in the order of the file.
    pub(super) is_sorted: bool,
    /// The distance of the first and the last of neighbours in the file, in bytes.
    pub(crate) spread: u64,
}

impl BoundRows<'_> {
    /// Sample a few of these rows, each like `slab`, here and there, if they are not in memory;
    /// `None` if all are. `is_cached` says whether a byte of the tensor's file is in memory.
    pub(crate) fn look_around(
        &self,
        rows: Range<u64>,
        slab: &Runs,
        is_cached: &dyn Fn(u64) -> bool,
    ) -> Option<Sampled> {
        let count = rows.end - rows.start;
        // a single row is copied as soon as it would be asked for
        if count == 1 && slab.bytes() < LONG_GATHERED_ROW {
            return None;
        }
        // copying few rows takes less time than sampling many
        let samples = (count / NEIGHBOURS as u64).clamp(1, SAMPLES);
        let looks = (count / (samples * NEIGHBOURS as u64)).clamp(1, NEIGHBOURS as u64) as usize;
        let part = |sample| u128::from(count) * u128::from(sample) / u128::from(samples);
        let first = |sample| rows.start + part(sample) as u64;
        let looks = (0..samples).map(|sample| self.look(first(sample), slab, looks, is_cached));
        looks.filter(|look| !look.is_cached).reduce(|one, other| Sampled {
            is_cached: false,
            is_sorted: one.is_sorted && other.is_sorted,
            spread: one.spread.max(other.spread),
        })
    }

    /// Sample a few rows from row `first` on, and find whether the first `looks` of them are in
    /// memory.
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
        // both ends of a short row are on one page, or nearly
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

#[cfg(test)]
mod tests {
    use super::super::{Gather, Indexed, Indices, Options};
    use super::*;
    use crate::dtype::{DType, Endian, Scalar};
    use crate::execute::Workers;
    use crate::shape::Order;
    use crate::source::{MemorySource, SourceResult};
    use crate::view::Layout;

    /// A source that counts how often it is asked whether bytes are in memory.
    struct Asked(MemorySource, AtomicU64);

    impl Source for Asked {
        fn len(&self) -> u64 {
            self.0.len()
        }

        fn window<'a>(
            &'a self,
            range: Range<u64>,
            scratch: &'a mut Vec<u8>,
        ) -> SourceResult<&'a [u8]> {
            self.0.window(range, scratch)
        }

        fn is_cached(&self, _: u64) -> bool {
            self.1.fetch_add(1, Ordering::Relaxed);
            true
        }
    }

    #[test]
    fn one_row_in_sixteen_is_asked_for_at_most() {
        for count in [2u64, 31, 255, 256, 257, 1000, 4096, 100_000] {
            let params = Asked(MemorySource(vec![0; 256]), AtomicU64::new(0));
            let list = MemorySource((0..count).map(|at| at as u8).collect());
            let dtype = DType::Scalar(Scalar::U8, Endian::Little);
            let list_shape = [count];
            let indices =
                Indices { dtype: &dtype, layout: Layout::new(&list_shape, 8, Order::C, 0) };
            let layout = Layout::new(&[256], 8, Order::C, 0);
            let options = Options::default();
            let indexed = Indexed::along(&layout, &indices, 0, &options).unwrap();
            let gather = Gather::new(&layout, indexed, &options).unwrap();
            let pieces = gather.with(&[&list], 1, &Workers::new(1)).unwrap();
            assert!(pieces.cold_look(&params).is_none());
            let asked = params.1.into_inner();
            assert!((1..=count.div_ceil(16)).contains(&asked), "{asked} of {count}");
        }
    }
}
