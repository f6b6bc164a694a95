//! A gather as [`Pieces`]: the rows of the output that a piece holds, and how it is filled.
//!
//! A piece is a number of whole rows, or a part of one slab where slabs are large. The tuples of a
//! piece become offsets block by block, then their slabs are copied. Nothing else is held in
//! memory, except the offsets of a short list of indices.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::block::{RowBlock, RowOffsets};
use super::positions::TUPLES_AT_ONCE;
use super::prefetch::{CacheState, PageCache};
use super::rows::{BoundRows, MaskRows};
use super::{DROPPED, Gather};
use crate::execute::pack::pack;
use crate::execute::{
    ExecuteError, FillError, Pieces, ReadFrom, VisitRange, Workers, look, read_range, read_runs,
    split_first, visit_ranges,
};
use crate::plan::{PieceCuts, Plan, stretches};
use crate::runs::Runs;
use crate::source::{Source, SourceError};

/// The rows in a block that is passed to visitors of row offsets.
const VISITED_ROWS: u64 = 1 << 12;

/// The distance between blocks that are visited one after the other: a prime number of blocks.
const FAR: u64 = 1_000_003;

/// The rows that are looked up together where slabs are read by position.
const READ_ROWS: usize = 1 << 16;

pub struct GatherPieces<'a> {
    pub(super) gather: Gather,
    pub(super) rows: BoundRows<'a>,
    partition: RowPartition,
    pub(super) page_cache: PageCache,
    /// The bytes of small params that are read by position: read once.
    held: Mutex<Option<Arc<Vec<u8>>>>,
}

/// The length in bytes up to which rows are not divided.
const SHORT_ROW: u64 = 16 << 10;

/// The bytes of params that are held for each tuple that may be held.
const PARAMS_BYTES: u64 = 128;

#[derive(Clone, Debug)]
enum RowPartition {
    /// Ranges of bytes: whole rows, unless they were [divided](GatherPieces::divided).
    Cuts(PieceCuts),
    /// Parts of one slab, at offset 0 in this plan.
    Slab(Box<Plan>),
}

impl Gather {
    /// Bind the sources of its lists, in their order; `workers` put the lists' numbers in order, if
    /// necessary. No piece divides `unit` bytes, as in [`Plan::new`].
    pub fn with<'a>(
        self,
        sources: &[&'a dyn Source],
        unit: u64,
        workers: &Workers,
    ) -> Result<GatherPieces<'a>, FillError> {
        let hold = if self.bytes > 0 { self.hold } else { 0 };
        let rows = self.rows.clone().with(sources, hold, workers)?;
        let partition = match self.slab.bytes() {
            bytes if bytes <= self.piece_bytes => {
                let step = self.piece_bytes / bytes.max(1) * bytes;
                RowPartition::Cuts(PieceCuts::new(self.bytes, step, step))
            }
            _ => RowPartition::Slab(Box::new(Plan::new(&self.slab, unit, self.piece_bytes))),
        };
        let page_cache = PageCache::default();
        Ok(GatherPieces { gather: self, rows, partition, page_cache, held: Mutex::default() })
    }
}

impl GatherPieces<'_> {
    /// Cut pieces that may divide rows, to begin where a block of a file does: the first of
    /// `first_bytes`, the others of `piece_bytes`. Rows of up to 16 KiB are not divided, since both
    /// pieces would [need](Pieces::needs) the whole row.
    #[must_use]
    pub fn divided(mut self, first_bytes: u64, piece_bytes: u64) -> Self {
        let is_short = self.gather.slab.bytes() <= SHORT_ROW;
        if is_short && matches!(self.partition, RowPartition::Cuts(_)) {
            let cuts = PieceCuts::new(self.gather.bytes, first_bytes, piece_bytes);
            self.partition = RowPartition::Cuts(cuts);
        }
        self
    }
}

impl Pieces for GatherPieces<'_> {
    fn bytes(&self) -> u64 {
        self.gather.bytes
    }

    fn count(&self) -> u64 {
        match &self.partition {
            RowPartition::Cuts(cuts) => cuts.pieces(),
            RowPartition::Slab(plan) => self.rows.rows.count() * plan.pieces(),
        }
    }

    fn output(&self, number: u64) -> Runs {
        match &self.partition {
            RowPartition::Cuts(cuts) => {
                let range = cuts.range(number);
                Runs::contiguous(range.start, range.end - range.start)
            }
            RowPartition::Slab(plan) => {
                let output = plan.piece(number % plan.pieces()).output;
                let row = number / plan.pieces() * self.gather.slab.bytes();
                let offset = row as i64 + output.offset;
                Runs { offset, ..output }
            }
        }
    }

    fn fill(&self, number: u64, from: &mut ReadFrom<'_>, out: &mut [u8]) -> Result<(), FillError> {
        self.fill_range(self.output(number).file_bounds(), from, out)
    }

    fn waits_for_disk(&self, source: &dyn Source) -> bool {
        self.state(source) == CacheState::ColdLong
    }

    fn needs(&self, number: u64, gap: u64, visit: VisitRange<'_>) -> Result<(), FillError> {
        let rows = self.rows_with(self.output(number).file_bounds());
        let parts = match &self.partition {
            RowPartition::Cuts(_) => vec![self.gather.slab.clone()],
            RowPartition::Slab(plan) => plan.piece(number % plan.pieces()).input,
        };
        let mut offsets = vec![0; READ_ROWS.min((rows.end - rows.start) as usize)];
        for first in rows.clone().step_by(READ_ROWS) {
            let count = (rows.end - first).min(READ_ROWS as u64) as usize;
            let offsets = &mut offsets[..count];
            self.rows.offsets(first, offsets)?;
            offsets.sort_unstable();
            for offset in offsets.iter().filter(|&&offset| offset != DROPPED) {
                for part in &parts {
                    let runs = Runs { offset: *offset as i64 + part.offset, ..part.clone() };
                    visit_ranges(&stretches(runs, gap), visit);
                }
            }
        }
        Ok(())
    }
}

impl GatherPieces<'_> {
    /// The rows that hold the wanted bytes of the output.
    pub(super) fn wanted_rows(&self) -> Range<u64> {
        self.rows_with(self.gather.window().unwrap_or(0..self.gather.bytes))
    }

    pub(crate) fn wanted_count(&self) -> u64 {
        let rows = self.wanted_rows();
        rows.end - rows.start
    }

    /// The rows that hold these bytes of the output.
    fn rows_with(&self, bytes: Range<u64>) -> Range<u64> {
        let slab = self.gather.slab.bytes().max(1);
        bytes.start / slab..bytes.end.div_ceil(slab)
    }

    /// Call `visit` with the offsets of the wanted rows and the bytes of a row: many at a time, in
    /// no order, until it returns false. A bad position is skipped; gathering reports it.
    pub(crate) fn visit_rows(
        &self,
        source: &dyn Source,
        workers: &Workers,
        visit: impl Fn(&[u64], &Range<i64>) -> bool + Sync,
    ) -> Result<(), ExecuteError> {
        let rows = self.wanted_rows();
        let row = self.gather.slab.byte_bounds();
        let count = self.wanted_count();
        let blocks = count.div_ceil(VISITED_ROWS);
        // blocks from all over the rows, so that it is soon known if they are scattered
        let step = if blocks.is_multiple_of(FAR) { 1 } else { FAR };
        let is_over = AtomicBool::new(false);
        look(source, blocks, count.saturating_mul(8), workers, |number, _| {
            if is_over.load(Ordering::Relaxed) {
                return Ok(());
            }
            let first = number.wrapping_mul(step) % blocks * VISITED_ROWS;
            let mut offsets = vec![0; VISITED_ROWS.min(count - first) as usize];
            match self.rows.offsets(rows.start + first, &mut offsets) {
                Err(FillError::Position(_)) => return Ok(()),
                outcome => outcome?,
            }
            offsets.retain(|offset| *offset != DROPPED);
            is_over.fetch_or(!visit(&offsets, &row), Ordering::Relaxed);
            Ok(())
        })
    }

    /// All bytes of the params, if they are few and most are used: rows in another order than the
    /// params would read them again for each piece.
    fn held_params(&self, source: &dyn Source) -> Result<Option<Arc<Vec<u8>>>, FillError> {
        let Gather { params, bytes, hold, .. } = &self.gather;
        let len = params.end - params.start;
        if len == 0 || len > *bytes || len > hold.saturating_mul(PARAMS_BYTES) {
            return Ok(None);
        }
        // locked while they are read, so that they are read once
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if held.is_none() {
            let mut bytes = vec![0; len as usize];
            let from = &mut ReadFrom { source, scratch: &mut Vec::new() };
            read_runs(&Runs::contiguous(params.start, len), from, &mut bytes)?;
            *held = Some(Arc::new(bytes));
        }
        Ok(held.clone())
    }

    fn fill_range(
        &self,
        range: Range<u64>,
        from: &mut ReadFrom<'_>,
        out: &mut [u8],
    ) -> Result<(), FillError> {
        let slab = self.gather.slab.bytes();
        let mut at = range.start;
        let mut rest = out;
        while at < range.end {
            let row = at / slab;
            let skipped = at % slab;
            let whole = (range.end - at) / slab;
            let count = if skipped > 0 { 0 } else { whole };
            let len = if count > 0 { count * slab } else { (slab - skipped).min(range.end - at) };
            let now = split_first(&mut rest, len);
            if count > 0 {
                self.fill_rows(row..row + count, from, now)?;
            } else {
                self.fill_part(row, skipped..skipped + len, from, now)?;
            }
            at += len;
        }
        Ok(())
    }

    fn fill_part(
        &self,
        row: u64,
        range: Range<u64>,
        from: &mut ReadFrom<'_>,
        out: &mut [u8],
    ) -> Result<(), FillError> {
        let mut offset = [0];
        self.rows.offsets(row, &mut offset)?;
        if offset[0] == DROPPED {
            out.fill(0);
            return Ok(());
        }
        let mut slab = self.gather.slab.clone();
        slab.offset += offset[0] as i64;
        if self.state(from.source) == CacheState::ColdLong && slab.axes.is_empty() {
            let start = slab.offset as u64;
            let range = start + range.start..start + range.end;
            return Ok(from.source.read(range, from.scratch, out)?);
        }
        Ok(read_range(&slab, range, from, out)?)
    }

    fn fill_rows(
        &self,
        rows: Range<u64>,
        from: &mut ReadFrom<'_>,
        out: &mut [u8],
    ) -> Result<(), FillError> {
        let Gather { params, slab, .. } = &self.gather;
        let source = from.source;
        let reads = source.window_limit().is_some();
        let held = if reads { self.held_params(source)? } else { None };
        let most = rows_at_once(source);
        let mut block = RowBlock::default();
        let mut row = rows.start;
        let mut rest = out;
        self.prepare(source, rows.clone());
        while row < rows.end {
            if let Some(count) = self.compress(row..rows.end, from, rest)? {
                split_first(&mut rest, count * slab.run);
                row += count;
                continue;
            }
            self.rows.block(row..rows.end, most, slab, &mut block)?;
            let part = split_first(&mut rest, block.rows() * slab.bytes());
            self.prefetch_ahead(source, row, block.rows());
            if self.state(source) == CacheState::ColdLong {
                read_long_rows(from, &block, slab, part)?;
            } else {
                copy_block(from, held.as_deref().map(Vec::as_slice), params, &block, slab, part)?;
            }
            row += block.rows();
        }
        Ok(())
    }

    /// Copy the first of `rows` to the beginning of `out`, if they are items of a map that a mask
    /// chooses. Returns their number.
    fn compress(
        &self,
        rows: Range<u64>,
        from: &mut ReadFrom<'_>,
        out: &mut [u8],
    ) -> Result<Option<u64>, FillError> {
        let Gather { params, slab, .. } = &self.gather;
        if from.source.window_limit().is_some() || !slab.axes.is_empty() {
            return Ok(None);
        }
        let found = self.rows.mask_rows(&rows).filter(|found| found.positions.compresses(slab.run));
        let Some(MaskRows { positions, source: mask, first, count, base }) = found else {
            return Ok(None);
        };
        self.prefetch_ahead(from.source, rows.start, count);
        let input = from.window(params.clone())?;
        let base = base.wrapping_sub(params.start);
        let size = slab.run;
        let out = &mut out[..(count * size) as usize];
        let copied = positions.compress(first, base, size, mask, input, out);
        copied.map_err(|error| error.of_list(0))?;
        Ok(Some(count))
    }
}

/// The distance in bytes below which neighbours are read together.
const NEAR: u64 = 1024;

/// The number of rows of a source that are looked up together: the more, the more are near each
/// other and read once. For a map, they stay in a level-1 cache.
pub(super) fn rows_at_once(source: &dyn Source) -> usize {
    if source.window_limit().is_some() { READ_ROWS } else { TUPLES_AT_ONCE }
}

/// Fill `out` with the rows of a block, which lie in the bytes `within` of the source; `held` are
/// those bytes, if they are in memory.
pub(super) fn copy_block(
    from: &mut ReadFrom<'_>,
    held: Option<&[u8]>,
    within: &Range<u64>,
    block: &RowBlock,
    slab: &Runs,
    out: &mut [u8],
) -> Result<(), SourceError> {
    if held.is_none() && from.source.window_limit().is_some() {
        return read_rows(from, block, slab, out);
    }
    let input = held.map_or_else(|| from.window(within.clone()), Ok)?;
    match block.single_rows() {
        Some(offsets) => copy_single_rows(input, within.start, offsets, slab, out),
        None => copy_stretches(input, within.start, block, slab, out),
    }
    Ok(())
}

/// Copy neighbours together; `input` is the file from position `start` on.
fn copy_stretches(input: &[u8], start: u64, block: &RowBlock, slab: &Runs, out: &mut [u8]) {
    let slab_bytes = slab.bytes();
    let mut rest = out;
    for (offset, rows) in block.stretches() {
        let now = split_first(&mut rest, rows * slab_bytes);
        if offset == DROPPED {
            now.fill(0);
            continue;
        }
        let Runs { offset, axes, run } = block.runs(slab, offset, rows);
        let first = offset as usize - start as usize;
        if axes.is_empty() {
            now.copy_from_slice(&input[first..][..run as usize]);
        } else {
            pack(&axes, run, input, first, now);
        }
    }
}

/// Copy rows to `out`, one after the other: each has its offset in the file, whose bytes from `start` on are `input`.
pub(crate) fn copy_single_rows(
    input: &[u8],
    start: u64,
    offsets: &[u64],
    slab: &Runs,
    out: &mut [u8],
) {
    let run = slab.run;
    if !slab.axes.is_empty() {
        let slab_bytes = out.len() / offsets.len().max(1);
        for (row, &offset) in out.chunks_exact_mut(slab_bytes.max(1)).zip(offsets) {
            match offset {
                DROPPED => row.fill(0),
                offset => pack(&slab.axes, run, input, (offset - start) as usize, row),
            }
        }
        return;
    }
    match run {
        1 => copy_items::<1>(input, start, offsets, out),
        2 => copy_items::<2>(input, start, offsets, out),
        4 => copy_items::<4>(input, start, offsets, out),
        8 => copy_items::<8>(input, start, offsets, out),
        16 => copy_items::<16>(input, start, offsets, out),
        _ => {
            for (row, &offset) in out.chunks_exact_mut(run as usize).zip(offsets) {
                match offset {
                    DROPPED => row.fill(0),
                    offset => row.copy_from_slice(&input[(offset - start) as usize..][..row.len()]),
                }
            }
        }
    }
}

/// Copy items whose size the compiler knows, with moves instead of calls.
fn copy_items<const SIZE: usize>(input: &[u8], start: u64, offsets: &[u64], out: &mut [u8]) {
    for (item, &offset) in out.as_chunks_mut::<SIZE>().0.iter_mut().zip(offsets) {
        match offset {
            DROPPED => *item = [0; SIZE],
            offset => item.copy_from_slice(&input[(offset - start) as usize..][..SIZE]),
        }
    }
}

/// Fill `out` with the rows of a block, reading each stretch separately.
fn read_long_rows(
    from: &mut ReadFrom<'_>,
    block: &RowBlock,
    slab: &Runs,
    out: &mut [u8],
) -> Result<(), SourceError> {
    let slab_bytes = slab.bytes();
    let mut rest = out;
    for (offset, rows) in block.stretches() {
        let now = split_first(&mut rest, rows * slab_bytes);
        match (offset, block.runs(slab, offset, rows)) {
            (DROPPED, _) => now.fill(0),
            (_, Runs { offset, axes, run }) if axes.is_empty() => {
                from.source.read(offset as u64..offset as u64 + run, from.scratch, now)?;
            }
            (_, runs) => read_runs(&runs, from, now)?,
        }
    }
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Stretch {
    offset: u64,
    /// The number of its first row in the block.
    first: u32,
    rows: u32,
}

impl Stretch {
    fn runs(&self, block: &RowBlock, slab: &Runs) -> Runs {
        block.runs(slab, self.offset, u64::from(self.rows))
    }

    /// The range in the block's bytes.
    fn range_in_block(&self, slab: &Runs) -> Range<usize> {
        let start = u64::from(self.first) * slab.bytes();
        start as usize..(start + u64::from(self.rows) * slab.bytes()) as usize
    }
}

/// The stretches of a block in the order of the file. Dropped rows are filled with zeros.
fn stretches_by_offset(block: &RowBlock, slab: &Runs, out: &mut [u8]) -> Vec<Stretch> {
    let mut stretches = Vec::new();
    let mut first = 0;
    for (offset, rows) in block.stretches() {
        let stretch = Stretch { offset, first, rows: rows as u32 };
        if offset == DROPPED {
            out[stretch.range_in_block(slab)].fill(0);
        } else {
            stretches.push(stretch);
        }
        first += stretch.rows;
    }
    stretches.sort_unstable();
    stretches
}

/// Fill `out` with the rows of a block from a source that reads: each stretch separately, but
/// stretches that are near each other in the file together.
fn read_rows(
    from: &mut ReadFrom<'_>,
    block: &RowBlock,
    slab: &Runs,
    out: &mut [u8],
) -> Result<(), SourceError> {
    let stretches = stretches_by_offset(block, slab, out);
    let limit = from.source.window_limit().unwrap_or(u64::MAX);
    let mut rest = &stretches[..];
    while let Some(first) = rest.first() {
        let runs = first.runs(block, slab);
        let Range { start, mut end } = runs.file_bounds();
        if end - start > limit {
            read_runs(&runs, from, &mut out[first.range_in_block(slab)])?;
            rest = &rest[1..];
            continue;
        }
        let mut count = 1;
        while let Some(stretch) = rest.get(count) {
            let next = stretch.runs(block, slab).file_bounds();
            if next.start > end.saturating_add(NEAR) || next.end.max(end) - start > limit {
                break;
            }
            end = end.max(next.end);
            count += 1;
        }
        let (now, later) = rest.split_at(count);
        let window = from.window(start..end)?;
        for stretch in now {
            let Runs { offset, axes, run } = stretch.runs(block, slab);
            let at = (offset as u64 - start) as usize;
            pack(&axes, run, window, at, &mut out[stretch.range_in_block(slab)]);
        }
        rest = later;
    }
    Ok(())
}
