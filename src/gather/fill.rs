//! A gather as pieces of work: which rows of the output a piece holds, and their bytes.
//!
//! A piece is a number of whole rows, or a part of one slab where slabs are large. The tuples of
//! a piece become offsets block by block, then their slabs are copied; nothing else is held, but
//! that a short list of indices is held as offsets from the beginning.

use std::ops::Range;

use super::ahead::{AHEAD, Ahead};
use super::copy::{copy_rows, read_rows};
use super::{Cut, Gather, NOWHERE};
use crate::execute::{FillError, Pieces, fill_box};
use crate::plan::Place;
use crate::shape::Order;
use crate::source::Source;

/// Rows whose offsets are worked out at a time: they stay in a level-1 cache.
const BLOCK: usize = 2048;

/// How many times more tuples are worth holding where they are used again and again.
const REUSE: u64 = 16;

/// A gather with the bytes of its indices.
pub struct Gathering<'a> {
    pub(super) gather: Gather,
    pub(super) indices: &'a dyn Source,
    /// The offsets of all tuples, where there are few.
    held: Option<Vec<u64>>,
    pub(super) ahead: Ahead,
}

impl Gather {
    /// Lend it the file of its indices.
    ///
    /// # Errors
    /// A short list of indices is read at once: as [`Positions::read`](super::Positions::read).
    pub fn with(self, indices: &dyn Source) -> Result<Gathering<'_>, FillError> {
        let count = self.positions.count();
        let repeated = self.row_count() > count;
        let most = if repeated { self.hold.saturating_mul(REUSE) } else { self.hold };
        let hold = self.bytes > 0 && count <= most;
        let held = if hold { Some(self.hold(indices)?) } else { None };
        Ok(Gathering { gather: self, indices, held, ahead: Ahead::default() })
    }

    /// The offsets of all tuples.
    fn hold(&self, indices: &dyn Source) -> Result<Vec<u64>, FillError> {
        let mut held = vec![0; self.positions.count() as usize];
        // in the order of the indices first, in which bad positions are reported
        let orders = if self.order == Order::C { &[Order::C][..] } else { &[Order::C, Order::F] };
        for &order in orders {
            let positions = self.positions.clone().numbered(order);
            for (number, block) in held.chunks_mut(BLOCK).enumerate() {
                positions.read((number * BLOCK) as u64, indices, block)?;
            }
        }
        Ok(held)
    }
}

impl Pieces for Gathering<'_> {
    fn bytes(&self) -> u64 {
        self.gather.bytes
    }

    fn count(&self) -> u64 {
        let rows = self.gather.row_count();
        match &self.gather.cut {
            Cut::Nothing => 0,
            Cut::Rows(most) => rows.div_ceil(*most),
            Cut::Slab { plan, .. } => rows * plan.pieces(),
        }
    }

    fn place(&self, number: u64) -> Place {
        let slab = self.gather.slab_bytes();
        match &self.gather.cut {
            Cut::Nothing => Place::range(0, 0),
            Cut::Rows(most) => {
                let rows = self.rows(number, *most);
                Place::range(rows.start * slab, (rows.end - rows.start) * slab)
            }
            Cut::Slab { plan, .. } => {
                let place = plan.piece(number % plan.pieces()).place;
                Place { output: number / plan.pieces() * slab + place.output, ..place }
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
        match &self.gather.cut {
            Cut::Nothing => Ok(()),
            Cut::Rows(most) => self.fill_rows(self.rows(number, *most), source, scratch, out),
            Cut::Slab { plan, bias } => {
                let row = number / plan.pieces();
                let mut offset = [0];
                self.offsets(row, &mut offset)?;
                if offset[0] == NOWHERE {
                    out.fill(0);
                    return Ok(());
                }
                let piece = plan.piece(number % plan.pieces());
                let first = offset[0] as i64 + piece.input as i64 - bias;
                Ok(fill_box(&piece.axes, piece.run, first, source, scratch, out)?)
            }
        }
    }
}

impl Gathering<'_> {
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
        let Gather { params, slab, run, .. } = &self.gather;
        let slab_bytes = self.gather.slab_bytes() as usize;
        let mut offsets = vec![0; BLOCK.min((rows.end - rows.start) as usize)];
        let mut row = rows.start;
        // the rows of a short piece are asked for by those before it
        self.prepare(source, row, row == 0 || rows.end - rows.start > AHEAD);
        for part in out.chunks_mut(BLOCK * slab_bytes) {
            let offsets = &mut offsets[..part.len() / slab_bytes];
            self.offsets(row, offsets)?;
            self.look_ahead(source, row, offsets.len() as u64);
            if source.window_limit().is_some() {
                read_rows(source, offsets, slab, *run, scratch, part)?;
            } else {
                let input = source.window(params.clone(), scratch)?;
                copy_rows(input, params.start, offsets, slab, *run, part);
            }
            row += offsets.len() as u64;
        }
        Ok(())
    }

    /// Where the slabs of the rows from `row` on lie in the params' file, in bytes, or
    /// [`NOWHERE`]; as many as `out` holds.
    pub(super) fn offsets(&self, mut row: u64, out: &mut [u64]) -> Result<(), FillError> {
        let Gather { rows, together, first, positions, .. } = &self.gather;
        let mut left = out;
        while !left.is_empty() {
            // the neighbours that go along neighbouring tuples
            let within = row % together;
            let len = (together - within).min(left.len() as u64);
            let (now, later) = left.split_at_mut(len as usize);
            let (mut rest, mut base, mut tuple) = (row / together, *first, within);
            let outer = rows.len() - rows.iter().rev().take_while(|axis| axis.step > 0).count();
            for axis in rows[..outer].iter().rev() {
                base += (rest % axis.len) as i64 * axis.stride;
                tuple += rest % axis.len * axis.step;
                rest /= axis.len;
            }
            match &self.held {
                Some(held) => now.copy_from_slice(&held[tuple as usize..][..len as usize]),
                None => positions.read(tuple, self.indices, now)?,
            }
            add_strides(&rows[outer..], base, within, now);
            row += len;
            left = later;
        }
        Ok(())
    }
}

/// Add to the offsets of rows from number `row` on what their own place along `axes` adds.
fn add_strides(axes: &[super::Row], base: i64, mut row: u64, offsets: &mut [u64]) {
    let Some((inner, outer)) = axes.split_last() else {
        return shift(offsets, base, 0);
    };
    let mut left = offsets;
    while !left.is_empty() {
        let (within, mut rest, mut base) = (row % inner.len, row / inner.len, base);
        for axis in outer.iter().rev() {
            base += (rest % axis.len) as i64 * axis.stride;
            rest /= axis.len;
        }
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
        if *offset != NOWHERE {
            *offset = offset.wrapping_add_signed(base);
        }
        base = base.wrapping_add(stride);
    }
}
