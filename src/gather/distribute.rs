//! Short rows in another order than that of params that do not fit in memory: a distribution.
//!
//! Row by row the disk would read a page for each, most of it for nothing. Instead the params are divided
//! into *bands* and the output into *stretches*, both a share of the memory, and all is moved in passes, each
//! of which reads and writes long ranges in order:
//!
//! 1. Count the rows of each stretch that lie in each band. This finds bad positions.
//! 2. Give each row a place in a temporary file of rows, band by band, in a band stretch by stretch. Two
//!    more temporary files hold, for each place, where the row lies in the params, and for each row its place.
//! 3. Fill the temporary rows in order: one band of the params after the other is read, from its first byte to
//!    its last.
//! 4. Fill the output in order: for each stretch one range of the temporary rows of each band is read.
//!
//! ```text
//!   params   |band 0    |band 1    |          rows 5 1 4 0 3 2, two stretches, two bands
//!            | 0  1  2  | 3  4  5  |
//!   kept     | 1  0' 2' | 5  4  3' |          of stretch 0: 1 | 5 4, of stretch 1 ('): 0 2 | 3
//!   output   | 5  1  4  | 0' 3' 2' |
//! ```
//!
//! Passes 3 and 4 are the same pieces ([`PlacedSlabs`]). Rows within a band and a stretch may be kept in any
//! order, so that workers take places from one counter for each; the output does not depend on it.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use super::null_sink::NullSink;
use super::page_cache::CacheState;
use super::pieces::GatherPieces;
use super::placed::{PLACE, PlacedSlabs};
use super::positions::DROPPED;
use super::prefetch::{LONG_ROW, PAGE};
use super::rows::BoundRows;
use super::stages::Stages;
use crate::execute::{
    self, Conversion, CopyStep, ExecuteError, FillError, Memory, OutOfCore, Pieces, Progress,
    ReadFrom, Transfer, Workers, spool_pieces, unspooled,
};
use crate::plan::PIECE_BYTES;
use crate::runs::Runs;
use crate::sink::{ScratchSink, Sink, scratch_fits};
use crate::source::{Source, SourceError, open_spooled};

/// Bands and stretches are no longer than it takes for a stretch to have so many bytes of each band.
const SEGMENT: u64 = 4 << 20;

/// The most bands, and the most stretches: a number is held for each pair.
const MOST: u64 = 2048;

/// Params of fewer bytes fit in any memory.
pub(super) const SHORT: u64 = 16 << 20;

/// Rows that are counted or placed together.
const TOGETHER: u64 = 1 << 16;

/// Reading a page here and there takes the disk so many times as long as reading it with its neighbours.
const SCATTER: u64 = 4;

/// Which rows are distributed, and how.
struct Distribution<'a> {
    bound: &'a BoundRows<'a>,
    rows: Range<u64>,
    params: Range<u64>,
    slab: &'a Runs,
    /// The bytes of a band are 2 to the power of this.
    band_bits: u32,
    bands: usize,
    /// The rows of a stretch.
    stretch: u64,
}

/// Rows in the order of the output, in a temporary file, and the pieces that take them.
pub(crate) struct Distributed {
    /// The byte of the output at which the first of them begins.
    pub(crate) start: u64,
    /// The rows, band by band.
    pub(crate) kept: Box<dyn Source>,
    /// The output of these rows, made of the file.
    pub(crate) pieces: PlacedSlabs,
}

impl GatherPieces<'_> {
    /// Put the rows that hold what is wanted of the output in order in temporary files, where that is the
    /// faster way. `source` is that of the params; the files are read by the pieces.
    ///
    /// # Errors
    /// Bad positions, sources that cannot be read, and [`SourceError::Spool`]: no room in `TMPDIR`.
    pub(crate) fn distributed(
        &self,
        source: &dyn Source,
        workers: &Workers,
        progress: &Progress,
    ) -> Result<Option<Distributed>, ExecuteError> {
        let Some(distribution) = self.distribution(source) else { return Ok(None) };
        match has_room(distribution.temporary_bytes())? {
            true => distribution.run(source, workers, progress).map(Some),
            false => Ok(None),
        }
    }

    /// The plan of what is wanted where it does not fit in memory, that of
    /// [`distributed`](GatherPieces::distributed) among others; `None` where it does, or is there.
    pub(crate) fn out_of_core(&self, source: &dyn Source) -> Option<OutOfCore> {
        if self.fits(self.gather.bytes()) {
            return None;
        }
        let distribution = self.distribution(source);
        if let Some(distribution) = distribution.filter(|_| !matches!(scratch_fits(0), Ok(false))) {
            return Some(OutOfCore::of(CopyStep::Distribution, distribution.temporary_bytes()));
        }
        match self.state(source) {
            CacheState::Cold { .. } | CacheState::ColdLong => {
                Some(OutOfCore::of(CopyStep::Rows, 0))
            }
            CacheState::ColdDense => None,
            CacheState::Cached => {
                self.cold_look(source)?;
                Some(OutOfCore::of(CopyStep::InOrder, 0))
            }
        }
    }

    /// How to distribute the rows, where that is the faster way.
    fn distribution(&self, source: &dyn Source) -> Option<Distribution<'_>> {
        let rows = self.wanted_rows();
        let (params, slab) = (self.gather.params.clone(), &self.gather.slab);
        let (len, count) = (params.end - params.start, rows.end - rows.start);
        let bytes = count.checked_mul(slab.bytes())?;
        // before anything is asked of the system, which takes longer than a short copy
        if count < 2
            || len < SHORT
            || bytes == 0
            || slab.bytes() >= LONG_ROW
            || self.is_mostly_gaps()
            || source.request_gap().is_some()
        {
            return None;
        }
        let scattered = count.saturating_mul(slab.bytes() + PAGE).saturating_mul(SCATTER);
        let moved = len.saturating_add((bytes + count * PLACE).saturating_mul(3));
        if scattered < moved {
            return None;
        }
        if self.fits(bytes) {
            return None;
        }
        let memory = Memory::of_process();
        let most = memory.stage().min(((len as f64 * SEGMENT as f64).sqrt()) as u64).max(PAGE);
        let band_bits = most.ilog2().max(len.div_ceil(MOST).next_power_of_two().ilog2());
        let stretch = (most / slab.bytes()).max(count.div_ceil(MOST)).max(1);
        // where a few neighbours are near each other, what is read for one serves the others
        let look = self.cold_look(source)?;
        let bands = len.div_ceil(1 << band_bits) as usize;
        let bound = &self.rows;
        (look.spread > memory.window().max(1 << band_bits)).then_some(Distribution {
            bound,
            rows,
            params,
            slab,
            band_bits,
            bands,
            stretch,
        })
    }
}

/// Whether `TMPDIR` is on a disk.
///
/// # Errors
/// Temporary files of so many bytes in all do not fit there.
pub(crate) fn has_room(bytes: u64) -> Result<bool, ExecuteError> {
    scratch_fits(bytes).map_err(|error| failed(SourceError::unspooled(error)))
}

/// The error of a source.
fn failed(error: SourceError) -> ExecuteError {
    ExecuteError::Fill { transfer: 0, error: FillError::Source(error) }
}

impl Distribution<'_> {
    /// Bytes of the temporary files, at most.
    fn temporary_bytes(&self) -> u64 {
        self.count() * (self.slab.bytes() + 2 * PLACE)
    }

    fn count(&self) -> u64 {
        self.rows.end - self.rows.start
    }

    /// The rows of a piece that copies slabs.
    fn piece_rows(&self) -> u64 {
        PIECE_BYTES / self.slab.bytes()
    }

    fn stretches(&self) -> u64 {
        self.count().div_ceil(self.stretch)
    }

    /// The band that a row lies in, by the place of its slab.
    fn band(&self, offset: u64) -> usize {
        (offset.saturating_sub(self.params.start) >> self.band_bits) as usize
    }

    fn run(
        self,
        source: &dyn Source,
        workers: &Workers,
        progress: &Progress,
    ) -> Result<Distributed, ExecuteError> {
        let slab = self.slab.bytes();
        progress.kept.begin(self.temporary_bytes());
        let table: Vec<AtomicU64> =
            (0..self.stretches() as usize * self.bands).map(|_| AtomicU64::new(0)).collect();
        let counting = ListPass { of: &self, table: &table, places: None, progress };
        let transfer = Transfer { source, pieces: &counting, conversion: Conversion::None, at: 0 };
        execute::run(&[transfer], &NullSink, workers, &Progress::default())?;
        let mut table: Vec<AtomicU64> = table;
        let bands = self.first_places(&mut table);
        let kept = bands.last().copied().unwrap_or(0);
        let (sink, file) =
            ScratchSink::new(kept * PLACE).map_err(|error| failed(unspooled(error)))?;
        let places = Some(PlaceFile { count: kept, origins: &sink });
        let placing = ListPass { of: &self, table: &table, places, progress };
        let places = spool_pieces(source, &placing, workers, progress)?;
        let table: Vec<u64> = table.into_iter().map(AtomicU64::into_inner).collect();
        let origins = open_spooled(file, kept * PLACE).map_err(failed)?;
        let first_pass = PlacedSlabs {
            places: origins,
            slab: self.slab.clone(),
            within: self.params.clone(),
            stages: self.bands_ahead(&bands),
        };
        let rows = spool_pieces(source, &first_pass, workers, progress)?;
        let second_pass = PlacedSlabs {
            places,
            slab: Runs::contiguous(0, slab),
            within: 0..kept * slab,
            stages: self.stretches_ahead(bands, table),
        };
        progress.kept.begin(0);
        Ok(Distributed { start: self.rows.start * slab, kept: rows, pieces: second_pass })
    }

    /// Turn counts into the first place of each stretch in each band; where bands begin, and end.
    fn first_places(&self, table: &mut [AtomicU64]) -> Vec<u64> {
        let (mut place, mut bands) = (0, vec![0]);
        for band in 0..self.bands {
            for cell in table[band..].iter_mut().step_by(self.bands) {
                let count = std::mem::replace(cell.get_mut(), place);
                place += count;
            }
            bands.push(place);
        }
        bands
    }

    /// What of the params the places of each band need.
    fn bands_ahead(&self, bands: &[u64]) -> Stages {
        let used: Vec<u64> = (0..self.bands)
            .filter(|&band| bands[band] < bands[band + 1])
            .map(|band| band as u64)
            .collect();
        let firsts = used.iter().map(|&band| bands[band as usize]);
        let firsts = firsts.chain(bands.last().copied()).collect();
        let (params, bits, bounds) = (self.params.clone(), self.band_bits, self.slab.byte_bounds());
        Stages::new(firsts, self.piece_rows(), move |stage| {
            let start = params.start + (used[stage] << bits);
            let range = start.saturating_add_signed(bounds.start)
                ..(start + (1 << bits)).saturating_add_signed(bounds.end);
            let range = range.start.max(params.start)..range.end.min(params.end);
            std::iter::once(range).collect()
        })
    }

    /// What of the kept rows each stretch needs; `ends` are the ends of stretches in bands.
    fn stretches_ahead(&self, bands: Vec<u64>, ends: Vec<u64>) -> Stages {
        let (stretch, count, slab, width) =
            (self.stretch, self.count(), self.slab.bytes(), self.bands);
        let firsts = (0..=self.stretches()).map(|at| (at * stretch).min(count)).collect();
        Stages::new(firsts, self.piece_rows(), move |stage| {
            let start = |band: usize| match stage {
                0 => bands[band],
                _ => ends[(stage - 1) * width + band],
            };
            let range = |band: usize| start(band) * slab..ends[stage * width + band] * slab;
            (0..width).map(range).collect()
        })
    }

    /// The pieces of passes over the rows: each of one stretch.
    fn pieces(&self) -> u64 {
        self.stretches() * self.stretch.div_ceil(TOGETHER)
    }

    /// The stretch of a piece, and its rows, counted from the first that is distributed.
    fn piece(&self, number: u64) -> (usize, Range<u64>) {
        let each = self.stretch.div_ceil(TOGETHER);
        let (stretch, part) = (number / each, number % each);
        let end = ((stretch + 1) * self.stretch).min(self.count());
        let start = (stretch * self.stretch + part * TOGETHER).min(end);
        (stretch as usize, start..end.min(start + TOGETHER))
    }

    /// Where the slabs of some rows lie in the params.
    fn offsets(&self, rows: &Range<u64>) -> Result<Vec<u64>, FillError> {
        let mut offsets = vec![0; (rows.end - rows.start) as usize];
        self.bound.offsets(self.rows.start + rows.start, &mut offsets)?;
        Ok(offsets)
    }
}

/// A pass over the list, by which nothing is read of the params: the first to count, as pieces that write
/// nothing, and the second, as those of the file that holds the place of each row.
struct ListPass<'a> {
    of: &'a Distribution<'a>,
    /// How many rows of each stretch lie in each band, or the next place for one of them.
    table: &'a [AtomicU64],
    places: Option<PlaceFile<'a>>,
    progress: &'a Progress,
}

/// The places that are given to rows.
struct PlaceFile<'a> {
    /// How many there are.
    count: u64,
    /// The file that holds for each place where the row lies in the params.
    origins: &'a ScratchSink,
}

impl Pieces for ListPass<'_> {
    fn bytes(&self) -> u64 {
        self.of.count() * PLACE
    }

    fn count(&self) -> u64 {
        self.of.pieces()
    }

    fn output(&self, number: u64) -> Runs {
        let (_, rows) = self.of.piece(number);
        let count = if self.places.is_some() { rows.end - rows.start } else { 0 };
        Runs::contiguous(rows.start * PLACE, count * PLACE)
    }

    fn fill(&self, number: u64, _: &mut ReadFrom<'_>, out: &mut [u8]) -> Result<(), FillError> {
        let (stretch, rows) = self.of.piece(number);
        let offsets = self.of.offsets(&rows)?;
        let mut counts = vec![0; self.of.bands];
        for &offset in offsets.iter().filter(|&&offset| offset != DROPPED) {
            counts[self.of.band(offset)] += 1;
        }
        let cells = self.table[stretch * self.of.bands..].iter().zip(&counts);
        let before = cells.map(|(cell, &count)| cell.fetch_add(count, Ordering::Relaxed));
        let before: Vec<u64> = before.collect();
        match &self.places {
            Some(places) => places.give(self.of, &offsets, &counts, &before, out)?,
            None => self.progress.kept.add((rows.end - rows.start) * PLACE),
        }
        Ok(())
    }
}

impl PlaceFile<'_> {
    /// Give places to the slabs at `offsets`, in each band as many as `counts` says from the one in `first` on,
    /// and fill `out` with them.
    fn give(
        &self,
        of: &Distribution<'_>,
        offsets: &[u64],
        counts: &[u64],
        first: &[u64],
        out: &mut [u8],
    ) -> Result<(), FillError> {
        // the list was changed meanwhile
        if first.iter().zip(counts).any(|(place, count)| place.saturating_add(*count) > self.count)
        {
            return Err(SourceError::Changed.into());
        }
        // those of a band after each other, in the order of the bands
        let (mut at, mut start) = (Vec::with_capacity(of.bands), 0);
        for count in counts {
            at.push(start);
            start += *count as usize;
        }
        let mut origins = vec![0; start * PLACE as usize];
        let mut next = at.clone();
        for (&offset, out) in offsets.iter().zip(out.as_chunks_mut().0) {
            let place = match offset {
                DROPPED => DROPPED,
                offset => {
                    let band = of.band(offset);
                    let within = next[band];
                    next[band] += 1;
                    origins.as_chunks_mut().0[within] = offset.to_ne_bytes();
                    (first[band] + (within - at[band]) as u64) * of.slab.bytes()
                }
            };
            *out = place.to_ne_bytes();
        }
        for ((&start, &end), &place) in at.iter().zip(&next).zip(first) {
            let bytes = &origins[start * PLACE as usize..end * PLACE as usize];
            let written =
                if bytes.is_empty() { Ok(()) } else { self.origins.write_at(place * PLACE, bytes) };
            written.map_err(|error| FillError::Source(unspooled(error)))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::{DType, Endian, Scalar};
    use crate::gather::{Gather, Indexed, Indices, Options, OutOfRange};
    use crate::shape::Order;
    use crate::source::MemorySource;
    use crate::view::Layout;

    /// The output of pieces.
    fn bytes(source: &dyn Source, pieces: &dyn Pieces) -> Vec<u8> {
        let mut all = vec![0; pieces.bytes() as usize];
        for number in 0..pieces.count() {
            let rows = pieces.output(number);
            let out = &mut all[rows.offset as usize..][..rows.run as usize];
            pieces.fill(number, &mut ReadFrom { source, scratch: &mut Vec::new() }, out).unwrap();
        }
        all
    }

    #[test]
    fn rows_of_any_bands_and_stretches_are_those_of_a_gather() {
        let random = |at: u64| (at + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
        let (len, row, count) = (300_000, 3, 200_003);
        let params = MemorySource((0..8 + len * row).map(|at| random(at) as u8).collect());
        // some are dropped, some are repeated
        let positions = (0..count).map(|at| (random(at) % (len + len / 50)) as i64);
        let list = MemorySource(positions.flat_map(i64::to_le_bytes).collect());
        let (shape, list_shape) = ([len, row], [count]);
        let layout = Layout::new(&shape, 8, Order::C, 8);
        let dtype = DType::Scalar(Scalar::I64, Endian::Little);
        let indices = Indices { dtype: &dtype, layout: Layout::new(&list_shape, 64, Order::C, 0) };
        let options = Options { out_of_range: OutOfRange::Drop, ..Options::default() };
        let indexed = Indexed::along(&layout, &indices, 0, &options).unwrap();
        let gather = Gather::new(&layout, indexed, &options).unwrap();
        let workers = Workers::new(4);
        let gathered = gather.with(&[&list], 1, &workers).unwrap();
        let expected = bytes(&params, &gathered);
        for (rows, band_bits, stretch) in [
            (0..count, 12, 10_000),
            (0..count, 17, 70_001),
            (5..6, 5, 1),
            (77..199_000, 19, 150_000),
            (0..count, 30, count),
        ] {
            let bands = (len * row).div_ceil(1 << band_bits) as usize;
            let (bound, slab, params_bytes) =
                (&gathered.rows, &gathered.gather.slab, 8..8 + len * row);
            let of = Distribution {
                bound,
                rows: rows.clone(),
                params: params_bytes,
                slab,
                band_bits,
                bands,
                stretch,
            };
            let done = of.run(&params, &workers, &Progress::default()).unwrap();
            assert_eq!(done.start, rows.start * row);
            let expected = &expected[(rows.start * row) as usize..(rows.end * row) as usize];
            assert!(
                bytes(done.kept.as_ref(), &done.pieces) == expected,
                "{rows:?}, {band_bits}, {stretch}"
            );
        }
    }
}
