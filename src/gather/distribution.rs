//! A distribution: short rows put in another order that does not fit in memory, in sequential passes.
//!
//! A list of positions indexes the rows of a tensor. The rows lie anywhere in the tensor, and one after the other in the
//! *list's order*. A gather moves rows from the tensor to the list's order, a scatter moves them back. Row by row, the
//! disk would read or write a page for each row. Instead the tensor is divided into *bands*, and the list into *ranges*.
//! Each has the size of a share of the memory. The rows are moved in passes that read and write long stretches in order:
//!
//! 1. Count the rows of each range that lie in each band. This finds bad positions.
//! 2. Give each row a place in a temporary file of rows. Places are ordered by band, and in a band by range. Two more
//!    temporary files store the position in the tensor of each place, and the place of each row of the list.
//! 3. A gather fills the temporary rows in order, one band of the tensor after the other. A scatter writes the values to
//!    their places, range by range: in each band after the values of earlier ranges.
//! 4. A gather fills the output range by range: it reads the rows of a range from each band. A scatter writes the
//!    temporary rows to the tensor in order, one band after the other.
//!
//! ```text
//!   tensor   |band 0    |band 1    |          rows 5 1 4 0 3 2, two ranges, two bands
//!            | 0  1  2  | 3  4  5  |
//!   scratch  | 1  0' 2' | 5  4  3' |          of range 0: 1 | 5 4, of range 1 ('): 0 2 | 3
//!   list     | 5  1  4  | 0' 3' 2' |
//! ```
//!
//! Passes 3 and 4 use the same description of both orders ([`DistributedSlabs`]). In a gather, the rows of one band and
//! one range may be in any order, so that workers take places from a counter. In a scatter, the last of several values
//! for one position counts: then one worker gives the places, in the order of the list.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use zerocopy::IntoBytes;

use super::DROPPED;
use super::pieces::GatherPieces;
use super::prefetch::{Sampled, is_mostly_gaps};
use super::rows::BoundRows;
use super::stages::{DistributedSlabs, POSITION_BYTES, Stages};
use crate::execute::{
    Clipped, ExecuteError, FillError, LONG_GATHERED_ROW, Memory, Pieces, Progress, ReadFrom,
    SCATTERED_COST, SHORT_PARAMS, Workers, look, spool_pieces, unspooled,
};
use crate::plan::PIECE_BYTES;
use crate::runs::Runs;
use crate::sink::{ScratchSink, Sink, scratch_fits};
use crate::source::{PAGE, Source, SourceError, open_spooled};

/// The most bands, and the most ranges: each pair has a number in memory.
const MOST: u64 = 2048;

const TOGETHER: u64 = 1 << 16;

pub struct Distribution {
    rows: Range<u64>,
    /// The bytes of the tensor's file that contain the rows.
    tensor: Range<u64>,
    slab: Runs,
    /// The binary logarithm of the bytes of a band.
    band_bits: u32,
    bands: usize,
    /// The rows of a range of the list.
    range_rows: u64,
}

/// The result of counting and placing the rows: the same rows in two orders.
pub(crate) struct DistributedRows {
    /// The rows in the order of the temporary file, band by band: the position of each in the
    /// tensor.
    pub(crate) by_tensor: DistributedSlabs,
    /// The rows in the order of the list, range by range: the position of each in the temporary
    /// file.
    pub(crate) by_list: DistributedSlabs,
}

/// Whether rows like `slab` of a tensor of this range are moved faster in passes than one by one.
/// It is computed from these arguments alone.
fn is_faster_in_passes(rows: &Range<u64>, tensor: &Range<u64>, slab: &Runs) -> bool {
    let len = tensor.end - tensor.start;
    let count = rows.end - rows.start;
    let Some(bytes) = count.checked_mul(slab.bytes()) else { return false };
    if count < 2 || len < SHORT_PARAMS || bytes == 0 || is_mostly_gaps(slab) {
        return false;
    }
    let scattered = count.saturating_mul(slab.bytes() + PAGE).saturating_mul(SCATTERED_COST);
    let moved = len.saturating_add((bytes + count * POSITION_BYTES).saturating_mul(3));
    scattered >= moved
}

/// Whether `TMPDIR` has room for scratch of `bytes` bytes, on a disk and not in memory.
pub(crate) fn scratch_has_room(bytes: u64) -> Result<bool, ExecuteError> {
    Ok(scratch_fits(bytes).map_err(SourceError::unspooled)?)
}

impl Distribution {
    /// The distribution of rows like `slab` of a tensor, if it is faster than row by row and `TMPDIR` has room. `look`
    /// finds how far neighbours in the list are apart; it is called last, because it takes longer than a short copy, and
    /// only if the rows are not in memory.
    pub(crate) fn choose(
        rows: Range<u64>,
        tensor: &Range<u64>,
        slab: &Runs,
        look: impl FnOnce() -> Result<Option<Sampled>, ExecuteError>,
    ) -> Result<Option<Distribution>, ExecuteError> {
        if !is_faster_in_passes(&rows, tensor, slab) {
            return Ok(None);
        }
        let Some(look) = look()? else { return Ok(None) };
        let len = tensor.end - tensor.start;
        let count = rows.end - rows.start;
        let most = Memory::of_process().band(len).max(PAGE);
        let band_bits = most.ilog2().max(len.div_ceil(MOST).next_power_of_two().ilog2());
        let range_rows = (most / slab.bytes()).max(count.div_ceil(MOST)).max(1);
        let bands = len.div_ceil(1 << band_bits) as usize;
        // the bytes that are read for a row do not hold its neighbour in the list
        let are_far_apart = look.spread > Memory::of_process().window().max(1 << band_bits);
        let tensor = tensor.clone();
        let slab = slab.clone();
        let chosen = Distribution { rows, tensor, slab, band_bits, bands, range_rows };
        let pays = are_far_apart && scratch_has_room(chosen.temporary_bytes())?;
        Ok(pays.then_some(chosen))
    }

    pub(crate) fn temporary_bytes(&self) -> u64 {
        self.count() * (self.slab.bytes() + 2 * POSITION_BYTES)
    }

    fn count(&self) -> u64 {
        self.rows.end - self.rows.start
    }

    fn piece_rows(&self) -> u64 {
        PIECE_BYTES / self.slab.bytes()
    }

    fn ranges(&self) -> u64 {
        self.count().div_ceil(self.range_rows)
    }

    fn band(&self, offset: u64) -> usize {
        (offset.saturating_sub(self.tensor.start) >> self.band_bits) as usize
    }

    /// Passes 1 and 2: find the position of each row in the temporary file. With `ordered`, the
    /// rows of a band are in the order of the list. The next pass reads `source`.
    pub(crate) fn place(
        &self,
        bound: &BoundRows<'_>,
        ordered: bool,
        source: &dyn Source,
        workers: &Workers,
        progress: &Progress,
    ) -> Result<DistributedRows, ExecuteError> {
        let slab = self.slab.bytes();
        let mut table: Vec<AtomicU64> =
            (0..self.ranges() as usize * self.bands).map(|_| AtomicU64::new(0)).collect();
        look(source, self.pieces(), self.count() * POSITION_BYTES, workers, |number, _| {
            let counted = self.count_piece(number, bound, &table)?;
            progress.scratch.add(counted.offsets.len() as u64 * POSITION_BYTES);
            Ok(())
        })?;
        let bands = self.first_places(&mut table);
        let count = bands.last().copied().unwrap_or(0);
        let (origins, file) = ScratchSink::new(count * POSITION_BYTES).map_err(unspooled)?;
        let placing = PlacingPass { of: self, bound, table: &table, count, origins: &origins };
        let one = Workers::new(1);
        let workers = if ordered { &one } else { workers };
        let placed = spool_pieces(&[(source, &placing)], workers, progress)?;
        let table: Vec<u64> = table.into_iter().map(AtomicU64::into_inner).collect();
        Ok(DistributedRows {
            by_tensor: DistributedSlabs {
                offsets: open_spooled(file, count * POSITION_BYTES)?,
                slab: self.slab.clone(),
                within: self.tensor.clone(),
                stages: self.bands_ahead(&bands),
            },
            by_list: DistributedSlabs {
                offsets: placed,
                slab: Runs::contiguous(0, slab),
                within: 0..count * slab,
                stages: self.ranges_ahead(bands, table),
            },
        })
    }

    /// Turn counts into the first position of each range in each band. Returns the beginnings and
    /// ends of bands.
    fn first_places(&self, table: &mut [AtomicU64]) -> Vec<u64> {
        let mut place = 0;
        let mut bands = vec![0];
        for band in 0..self.bands {
            for cell in table[band..].iter_mut().step_by(self.bands) {
                let count = std::mem::replace(cell.get_mut(), place);
                place += count;
            }
            bands.push(place);
        }
        bands
    }

    /// The bytes of the tensor that the rows of each band need.
    fn bands_ahead(&self, bands: &[u64]) -> Stages {
        let used: Vec<u64> = (0..self.bands)
            .filter(|&band| bands[band] < bands[band + 1])
            .map(|band| band as u64)
            .collect();
        let firsts = used.iter().map(|&band| bands[band as usize]);
        let firsts = firsts.chain(bands.last().copied()).collect();
        let tensor = self.tensor.clone();
        let bits = self.band_bits;
        let bounds = self.slab.byte_bounds();
        Stages::new(firsts, self.piece_rows(), move |stage| {
            let start = tensor.start + (used[stage] << bits);
            let range = start.saturating_add_signed(bounds.start)
                ..(start + (1 << bits)).saturating_add_signed(bounds.end);
            let range = range.start.max(tensor.start)..range.end.min(tensor.end);
            std::iter::once(range).collect()
        })
    }

    /// The temporary rows that each range needs; `ends` are the ends of ranges in bands.
    fn ranges_ahead(&self, bands: Vec<u64>, ends: Vec<u64>) -> Stages {
        let slab = self.slab.bytes();
        let width = self.bands;
        let first = |range: u64| (range * self.range_rows).min(self.count());
        let firsts = (0..=self.ranges()).map(first).collect();
        Stages::new(firsts, self.piece_rows(), move |stage| {
            let start = |band: usize| match stage {
                0 => bands[band],
                _ => ends[(stage - 1) * width + band],
            };
            let range = |band: usize| start(band) * slab..ends[stage * width + band] * slab;
            (0..width).map(range).collect()
        })
    }

    /// Count the rows of a piece in each band, and add the counts to the counts of the piece's range.
    fn count_piece(
        &self,
        number: u64,
        bound: &BoundRows<'_>,
        table: &[AtomicU64],
    ) -> Result<Counted, FillError> {
        let (range, rows) = self.piece(number);
        let mut offsets = vec![0; (rows.end - rows.start) as usize];
        bound.offsets(self.rows.start + rows.start, &mut offsets)?;
        let mut counts = vec![0; self.bands];
        for &offset in offsets.iter().filter(|&&offset| offset != DROPPED) {
            counts[self.band(offset)] += 1;
        }
        let cells = table[range * self.bands..].iter().zip(&counts);
        let before = cells.map(|(cell, &count)| cell.fetch_add(count, Ordering::Relaxed)).collect();
        Ok(Counted { offsets, counts, before })
    }

    fn pieces(&self) -> u64 {
        self.ranges() * self.range_rows.div_ceil(TOGETHER)
    }

    fn piece(&self, number: u64) -> (usize, Range<u64>) {
        let each = self.range_rows.div_ceil(TOGETHER);
        let range = number / each;
        let part = number % each;
        let end = ((range + 1) * self.range_rows).min(self.count());
        let start = (range * self.range_rows + part * TOGETHER).min(end);
        (range as usize, start..end.min(start + TOGETHER))
    }
}

/// The rows of a piece: the position of each in the tensor, the number of rows in each band, and
/// the counts before they were added.
struct Counted {
    offsets: Vec<u64>,
    counts: Vec<u64>,
    before: Vec<u64>,
}

/// The second pass over the list, which reads no params: its pieces make the file with the place of each row.
struct PlacingPass<'a> {
    of: &'a Distribution,
    bound: &'a BoundRows<'a>,
    /// The next position for a row of each range in each band.
    table: &'a [AtomicU64],
    count: u64,
    /// The file with the position of each temporary row in the params.
    origins: &'a ScratchSink,
}

impl Pieces for PlacingPass<'_> {
    fn bytes(&self) -> u64 {
        self.of.count() * POSITION_BYTES
    }

    fn count(&self) -> u64 {
        self.of.pieces()
    }

    fn output(&self, number: u64) -> Runs {
        let (_, rows) = self.of.piece(number);
        Runs::contiguous(rows.start * POSITION_BYTES, (rows.end - rows.start) * POSITION_BYTES)
    }

    fn fill(&self, number: u64, _: &mut ReadFrom<'_>, out: &mut [u8]) -> Result<(), FillError> {
        let Counted { offsets, counts, before } =
            self.of.count_piece(number, self.bound, self.table)?;
        // the list changed meanwhile
        let mut places = before.iter().zip(&counts);
        if places.any(|(place, count)| place.saturating_add(*count) > self.count) {
            return Err(SourceError::Changed.into());
        }
        // the rows of a band after each other, in the order of the bands
        let mut at = Vec::with_capacity(self.of.bands);
        let mut start = 0;
        for count in &counts {
            at.push(start);
            start += *count as usize;
        }
        let mut origins = vec![0; start];
        let mut next = at.clone();
        for (&offset, out) in offsets.iter().zip(out.as_chunks_mut().0) {
            let place = match offset {
                DROPPED => DROPPED,
                offset => {
                    let band = self.of.band(offset);
                    let within = next[band];
                    next[band] += 1;
                    origins[within] = offset;
                    (before[band] + (within - at[band]) as u64) * self.of.slab.bytes()
                }
            };
            *out = place.to_ne_bytes();
        }
        for ((&start, &end), &place) in at.iter().zip(&next).zip(&before) {
            let bytes = origins[start..end].as_bytes();
            if !bytes.is_empty() {
                self.origins.write_at(place * POSITION_BYTES, bytes).map_err(unspooled)?;
            }
        }
        Ok(())
    }
}

impl GatherPieces<'_> {
    /// Put the rows of the wanted output in order in scratch; `source` is the source of the params.
    /// The returned pieces read the returned file.
    pub(crate) fn distribute(
        &self,
        distribution: &Distribution,
        source: &dyn Source,
        workers: &Workers,
        progress: &Progress,
    ) -> Result<(Clipped<DistributedSlabs>, Box<dyn Source>), ExecuteError> {
        progress.scratch.during(distribution.temporary_bytes(), || {
            let placed = distribution.place(&self.rows, false, source, workers, progress)?;
            let spooled = spool_pieces(&[(source, &placed.by_tensor)], workers, progress)?;
            let start = distribution.rows.start * self.gather.slab.bytes();
            let window = self.gather.window().unwrap_or(0..self.gather.bytes);
            let window = window.start - start..window.end - start;
            Ok((Clipped::new(placed.by_list, window), spooled))
        })
    }

    pub(crate) fn distribution(
        &self,
        source: &dyn Source,
    ) -> Result<Option<Distribution>, ExecuteError> {
        let rows = self.wanted_rows();
        let slab = &self.gather.slab;
        if slab.bytes() >= LONG_GATHERED_ROW || source.is_remote() {
            return Ok(None);
        }
        let bytes = rows.end.saturating_sub(rows.start).saturating_mul(slab.bytes());
        Distribution::choose(rows, &self.gather.params, slab, || {
            Ok(if self.fits(bytes) { None } else { self.cold_look(source) })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Gather, Indexed, Indices, Options, OutOfRange};
    use super::*;
    use crate::dtype::{DType, Endian, Scalar};
    use crate::shape::Order;
    use crate::source::MemorySource;
    use crate::view::Layout;

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
    fn rows_of_any_bands_and_ranges_are_those_of_a_gather() {
        let random = |at: u64| (at + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
        let len = 300_000;
        let row = 3;
        let count = 200_003;
        let params = MemorySource((0..8 + len * row).map(|at| random(at) as u8).collect());
        // some positions are dropped, some repeated
        let positions = (0..count).map(|at| (random(at) % (len + len / 50)) as i64);
        let list = MemorySource(positions.flat_map(i64::to_le_bytes).collect());
        let shape = [len, row];
        let list_shape = [count];
        let layout = Layout::new(&shape, 8, Order::C, 8);
        let dtype = DType::Scalar(Scalar::I64, Endian::Little);
        let indices = Indices { dtype: &dtype, layout: Layout::new(&list_shape, 64, Order::C, 0) };
        let options = Options { out_of_range: OutOfRange::Drop, ..Options::default() };
        let indexed = Indexed::along(&layout, &indices, 0, &options).unwrap();
        let gather = Gather::new(&layout, indexed, &options).unwrap();
        let workers = Workers::new(4);
        let gathered = gather.with(&[&list], 1, &workers).unwrap();
        let expected = bytes(&params, &gathered);
        for (rows, band_bits, range_rows) in [
            (0..count, 12, 10_000),
            (0..count, 17, 70_001),
            (5..6, 5, 1),
            (77..199_000, 19, 150_000),
            (0..count, 30, count),
        ] {
            let bands = (len * row).div_ceil(1 << band_bits) as usize;
            let bound = &gathered.rows;
            let slab = &gathered.gather.slab;
            let tensor = 8..8 + len * row;
            let of = Distribution {
                rows: rows.clone(),
                tensor,
                slab: slab.clone(),
                band_bits,
                bands,
                range_rows,
            };
            let expected = &expected[(rows.start * row) as usize..(rows.end * row) as usize];
            for ordered in [false, true] {
                let none = Progress::default();
                let placed = of.place(bound, ordered, &params, &workers, &none);
                let DistributedRows { by_tensor, by_list } = placed.unwrap();
                let spooled = spool_pieces(&[(&params, &by_tensor)], &workers, &none).unwrap();
                assert!(
                    bytes(spooled.as_ref(), &by_list) == expected,
                    "{:?}, {band_bits}, {range_rows}",
                    of.rows
                );
            }
        }
    }
}
