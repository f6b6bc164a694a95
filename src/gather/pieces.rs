//! A gather as [`Pieces`]: which rows of the output a piece holds, and how it is filled.
//!
//! A piece is a number of whole rows, or a part of one slab where slabs are large. The tuples of a
//! piece become offsets block by block, then their slabs are copied. Nothing else is held in
//! memory, except the offsets of a short list of indices.

use std::ops::Range;

use super::copy::{copy_rows, read_rows};
use super::page_cache::{AHEAD, PageCache};
use super::reader::{BLOCK, PositionReader};
use super::{DROPPED, Gather, RowAxis, RowPartition};
use crate::execute::{FillError, Pieces, read_runs};
use crate::runs::{Runs, unravel_index};
use crate::source::Source;

/// The same where slabs are read by position: the more are looked at together, the more lie near
/// each other and are read once.
const READ_BLOCK: usize = 1 << 16;

/// How many times more tuples are worth holding where they are used again and again.
const REUSE: u64 = 16;

/// A gather with the source of its indices.
pub struct GatherPieces<'a> {
    pub(super) gather: Gather,
    pub(super) positions: PositionReader<'a>,
    /// The offsets of all tuples, where there are few.
    held: Option<Vec<u64>>,
    pub(super) page_cache: PageCache,
}

impl Gather {
    /// Bind the source of its indices, which `threads` workers put in order, where they must be.
    ///
    /// # Errors
    /// A short list of indices is read at once: as [`Positions::read`](super::Positions::read). So
    /// is one that must be put in order.
    pub fn with(self, indices: &dyn Source, threads: usize) -> Result<GatherPieces<'_>, FillError> {
        let count = self.positions.count();
        let repeated = self.row_count() > count;
        let most = if repeated { self.hold.saturating_mul(REUSE) } else { self.hold };
        let hold = self.bytes > 0 && count <= most;
        let positions = PositionReader::new(self.positions.clone(), indices, threads)?;
        let held = if hold { Some(self.hold(&positions, threads)?) } else { None };
        Ok(GatherPieces { gather: self, positions, held, page_cache: PageCache::default() })
    }

    /// The offsets of all tuples.
    fn hold(&self, positions: &PositionReader<'_>, threads: usize) -> Result<Vec<u64>, FillError> {
        let mut held = vec![0; self.positions.count() as usize];
        let mut read = |positions: &PositionReader<'_>| {
            let mut blocks = held.chunks_mut(BLOCK).enumerate();
            blocks.try_for_each(|(number, block)| positions.read((number * BLOCK) as u64, block))
        };
        if !self.positions.is_in_their_order() {
            // in the order of the indices first, in which bad positions are reported
            let ordered = self.positions.clone().in_their_order();
            read(&PositionReader::new(ordered, positions.given(), threads)?)?;
        }
        read(positions)?;
        Ok(held)
    }
}

impl Pieces for GatherPieces<'_> {
    fn bytes(&self) -> u64 {
        self.gather.bytes
    }

    fn count(&self) -> u64 {
        let rows = self.gather.row_count();
        match &self.gather.partition {
            RowPartition::Empty => 0,
            RowPartition::Rows(most) => rows.div_ceil(*most),
            RowPartition::Slab(plan) => rows * plan.pieces(),
        }
    }

    fn output(&self, number: u64) -> Runs {
        let slab = self.gather.slab.bytes();
        match &self.gather.partition {
            RowPartition::Empty => Runs::contiguous(0, 0),
            RowPartition::Rows(most) => {
                let rows = self.rows(number, *most);
                Runs::contiguous(rows.start * slab, (rows.end - rows.start) * slab)
            }
            RowPartition::Slab(plan) => {
                let output = plan.piece(number % plan.pieces()).output;
                let offset = (number / plan.pieces() * slab) as i64 + output.offset;
                Runs { offset, ..output }
            }
        }
    }

    fn fill(
        &self,
        number: u64,
        source: &dyn Source,
        scratch: &mut Vec<u8>,
        out: &mut [u8],
    ) -> Result<(), FillError> {
        match &self.gather.partition {
            RowPartition::Empty => Ok(()),
            RowPartition::Rows(most) => {
                self.fill_rows(self.rows(number, *most), source, scratch, out)
            }
            RowPartition::Slab(plan) => {
                let row = number / plan.pieces();
                let mut offset = [0];
                self.offsets(row, &mut offset)?;
                if offset[0] == DROPPED {
                    out.fill(0);
                    return Ok(());
                }
                let piece = plan.piece(number % plan.pieces()).input;
                let offset = offset[0] as i64 + piece.offset;
                Ok(read_runs(&Runs { offset, ..piece }, source, scratch, out)?)
            }
        }
    }
}

impl GatherPieces<'_> {
    /// The rows of a piece of `most` rows.
    fn rows(&self, number: u64, most: u64) -> Range<u64> {
        let start = number * most;
        start..(start + most).min(self.gather.row_count())
    }

    fn fill_rows(
        &self,
        rows: Range<u64>,
        source: &dyn Source,
        scratch: &mut Vec<u8>,
        out: &mut [u8],
    ) -> Result<(), FillError> {
        let Gather { params, slab, .. } = &self.gather;
        let slab_bytes = slab.bytes() as usize;
        let reads = source.window_limit().is_some();
        let block = if reads { READ_BLOCK } else { BLOCK };
        let mut offsets = vec![0; block.min((rows.end - rows.start) as usize)];
        let mut row = rows.start;
        // the rows of a short piece were prefetched with those before it
        self.prepare(source, row, row == 0 || rows.end - rows.start > AHEAD);
        for part in out.chunks_mut(block * slab_bytes) {
            let offsets = &mut offsets[..part.len() / slab_bytes];
            self.offsets(row, offsets)?;
            self.prefetch_ahead(source, row, offsets.len() as u64);
            if reads {
                read_rows(source, offsets, slab, scratch, part)?;
            } else {
                let input = source.window(params.clone(), scratch)?;
                copy_rows(input, params.start, offsets, slab, part);
            }
            row += offsets.len() as u64;
        }
        Ok(())
    }

    /// Where the slabs of the rows from `row` on lie in the params' file, in bytes, or
    /// [`DROPPED`]; as many as `out` holds.
    pub(super) fn offsets(&self, mut row: u64, out: &mut [u64]) -> Result<(), FillError> {
        let Gather { rows, tuple_run, slab, .. } = &self.gather;
        let indexed = rows.iter().rev().take_while(|axis| axis.step > 0).count();
        let (outer, inner) = rows.split_at(rows.len() - indexed);
        let mut left = out;
        while !left.is_empty() {
            // rows of consecutive tuples
            let within = row % tuple_run;
            let len = (tuple_run - within).min(left.len() as u64);
            let (now, later) = left.split_at_mut(len as usize);
            let (mut base, mut tuple) = (slab.offset, within);
            for (axis, index) in RowAxis::unravel(outer, row / tuple_run) {
                base += index as i64 * axis.stride;
                tuple += index * axis.step;
            }
            match &self.held {
                Some(held) => now.copy_from_slice(&held[tuple as usize..][..len as usize]),
                None => self.positions.read(tuple, now)?,
            }
            add_strides(inner, base, within, now);
            row += len;
            left = later;
        }
        Ok(())
    }
}

impl RowAxis {
    /// The index of row `number` on each axis, innermost first.
    fn unravel(axes: &[RowAxis], number: u64) -> impl Iterator<Item = (&RowAxis, u64)> {
        axes.iter().rev().zip(unravel_index(axes.iter().rev().map(|axis| axis.len), number))
    }
}

/// Add to the offsets of rows from number `row` on what the strides of `axes` add.
fn add_strides(axes: &[RowAxis], base: i64, mut row: u64, offsets: &mut [u64]) {
    let Some((inner, outer)) = axes.split_last() else {
        return shift(offsets, base, 0);
    };
    let mut left = offsets;
    while !left.is_empty() {
        let within = row % inner.len;
        let along = RowAxis::unravel(outer, row / inner.len);
        let base = base + along.map(|(axis, index)| index as i64 * axis.stride).sum::<i64>();
        let len = ((inner.len - within) as usize).min(left.len());
        let (now, later) = left.split_at_mut(len);
        shift(now, base + within as i64 * inner.stride, inner.stride);
        row += len as u64;
        left = later;
    }
}

/// Add `base` to the first offset, `stride` more to each that follows.
fn shift(offsets: &mut [u64], mut base: i64, stride: i64) {
    for offset in offsets {
        if *offset != DROPPED {
            *offset = offset.wrapping_add_signed(base);
        }
        base = base.wrapping_add(stride);
    }
}
