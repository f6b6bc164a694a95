//! The rows of a gather: where in the params each slab of the output begins.
//!
//! A row has an index on each *row axis*. Its slab begins at the first one's offset, plus index x
//! stride for each axis, plus one position of each list: the one whose number is the sum of index x
//! step. A step is 0 on the axes along which a list is repeated (broadcast).
//!
//! ```text
//!   a[[[2], [0]], [1, 3, 4]]     rows 2 x 3
//!     list 0   2 positions       steps 1, 0
//!     list 1   3 positions       steps 0, 1
//! ```
//!
//! Rows that follow each other in the params are one entry of a block (`gather/block.rs`): a box that is packed, read,
//! prefetched or written like any other. In a mask such rows are found where it is true for long, in other lists among
//! the offsets. If few rows are neighbours, each row is an entry by itself. Single items of a map that a mask chooses
//! need no offsets: they are compressed from the map by the bytes of the mask (`execute/pack/compress.rs`).

use std::ops::Range;

use super::block::{RowBlock, RowOffsets};
use super::mask::MaskPositions;
use super::positions::{DROPPED, TupleReader, Tuples};
use crate::execute::{ExecuteError, FillError, Workers};
use crate::runs::{Axis, Runs, byte_bounds, coalesce, distance};
use crate::source::Source;
use crate::view::{Layout, ViewError};

/// An axis of the output, in elements of the params.
#[derive(Clone, Debug)]
pub(super) struct OutputAxis {
    pub(super) len: u64,
    pub(super) stride: i64,
    /// For each list, the axis of its tuples that this axis is; `None` if the list is repeated
    /// along it. Empty for an axis of the params alone.
    pub(super) dims: Vec<Option<usize>>,
}

impl OutputAxis {
    pub(super) fn plain(axis: Axis) -> OutputAxis {
        OutputAxis { len: axis.len, stride: axis.stride, dims: Vec::new() }
    }

    pub(super) fn of(params: &Layout<'_>, strides: &[i64], axis: usize) -> OutputAxis {
        OutputAxis::plain(Axis { len: params.shape[axis], stride: strides[axis] })
    }

    /// The axis, which also goes along axis `dim` of the only list.
    pub(super) fn along(self, dim: usize) -> OutputAxis {
        OutputAxis { dims: vec![Some(dim)], ..self }
    }

    pub(super) fn is_indexed(&self) -> bool {
        self.dims.iter().any(Option::is_some)
    }

    fn dim(&self, list: usize) -> Option<usize> {
        self.dims.get(list).copied().flatten()
    }
}

/// An axis of the rows, in bytes of the params and in the tuples of each list.
struct RowAxis {
    axis: Axis,
    steps: Vec<u64>,
}

impl RowAxis {
    /// Whether this axis and the next outer one can be merged: in the params and in all lists.
    fn merges_with(&self, outer: &RowAxis) -> bool {
        let mut steps = self.steps.iter().zip(&outer.steps);
        self.axis.merges_with(outer.axis)
            && steps.all(|(step, outer)| *outer == step * self.axis.len)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Rows {
    /// The position of row 0 for the first positions in memory, in bytes of the params' file.
    pub(super) offset: i64,
    /// The row axes, outermost first, in bytes; none of length 1.
    axes: Vec<Axis>,
    pub(super) lists: Vec<RowList>,
}

#[derive(Clone, Debug)]
pub(super) struct RowList {
    pub(super) tuples: Tuples,
    /// The number of adjacent rows that share a tuple.
    repeat: u64,
    /// The number of adjacent tuples that are used one after the other.
    run: u64,
    /// The axes of the runs, in tuples, outermost first.
    outer: Vec<Axis>,
}

impl Rows {
    /// Rows along `axes` of `params`, outermost first, none of length 1.
    pub(super) fn new(
        params: &Layout<'_>,
        offset: i64,
        axes: &[OutputAxis],
        lists: Vec<Tuples>,
    ) -> Result<Rows, ViewError> {
        let lists = lists.into_iter().enumerate().map(|(list, tuples)| {
            // in the order in which rows use them, so that neighbouring rows use neighbouring
            // tuples
            let used: Vec<usize> = axes.iter().filter_map(|axis| axis.dim(list)).collect();
            if used.is_sorted() { tuples } else { tuples.numbered(&used) }
        });
        let lists: Vec<Tuples> = lists.collect();
        let mut steps = vec![1; lists.len()];
        let mut merged: Vec<RowAxis> = Vec::with_capacity(axes.len());
        for axis in axes.iter().rev() {
            let own = steps.iter_mut().enumerate().map(|(list, step)| match axis.dim(list) {
                Some(_) => std::mem::replace(step, *step * axis.len),
                None => 0,
            });
            let row = RowAxis {
                steps: own.collect(),
                axis: Axis { len: axis.len, stride: params.bytes(axis.stride)? },
            };
            match merged.last_mut() {
                Some(inner) if inner.merges_with(&row) => inner.axis.len *= axis.len,
                _ => merged.push(row),
            }
        }
        merged.reverse();
        // offsets of tuples count from the first element that the axes reach, backwards too
        let before: i64 = lists.iter().map(|list| byte_bounds(list.indexed(), 0).start).sum();
        let list = |(number, tuples): (usize, Tuples)| {
            let steps = merged
                .iter()
                .map(|row| Axis { len: row.axis.len, stride: row.steps[number] as i64 });
            let mut steps: Vec<Axis> = steps.collect();
            let moved = steps.iter().rposition(|axis| axis.stride != 0).map_or(0, |at| at + 1);
            let repeat = steps.split_off(moved).iter().map(|axis| axis.len).product();
            let (outer, run) = coalesce(&steps, 1);
            RowList { tuples, repeat, run, outer }
        };
        let lists = lists.into_iter().enumerate().map(list).collect();
        Ok(Rows {
            offset: offset + before,
            axes: merged.iter().map(|row| row.axis).collect(),
            lists,
        })
    }

    pub(crate) fn count(&self) -> u64 {
        self.axes.iter().map(|axis| axis.len).product()
    }

    /// Bind the sources of the lists, in their order; `workers` put numbers in order, if necessary.
    ///
    /// At most `hold` positions in all are held in memory, and 16 times as many if they are used
    /// repeatedly: the positions of the lists that are short enough.
    pub(crate) fn with<'a>(
        self,
        sources: &[&'a dyn Source],
        hold: u64,
        workers: &Workers,
    ) -> Result<BoundRows<'a>, FillError> {
        let share = hold / self.lists.len().max(1) as u64;
        let count = self.count();
        let mut lists = Vec::with_capacity(self.lists.len());
        for (number, (list, &source)) in self.lists.iter().zip(sources).enumerate() {
            let tuples = &list.tuples;
            let most = if count > tuples.count() { share.saturating_mul(REUSE) } else { share };
            let mut reader = TupleReader::new(number, tuples.clone(), source, workers)?;
            if hold > 0 && tuples.count() <= most {
                reader.hold(workers)?;
            }
            lists.push(reader);
        }
        Ok(BoundRows { rows: self, lists })
    }

    /// Whether reading the rows finds bad positions, the first one of a list first.
    pub(super) fn check_themselves(&self) -> bool {
        self.lists.iter().all(|list| list.tuples.is_in_their_order())
    }

    /// Check all lists before anything is written, with these workers; `sources` are the lists'
    /// sources. The first bad position of the first list is reported, in the order of the indices.
    ///
    /// Call this if written bytes cannot be taken back (a pipe), if gathering would not read the lists (an output of no
    /// elements), or if gathering would read them in another order (Fortran order, transposed).
    pub(crate) fn check(
        &self,
        sources: &[&dyn Source],
        workers: &Workers,
    ) -> Result<(), ExecuteError> {
        for (number, (list, source)) in self.lists.iter().zip(sources).enumerate() {
            let tuples = list.tuples.clone().numbered(&[]);
            TupleReader::new(number, tuples, *source, workers)?.check(workers)?;
        }
        Ok(())
    }
}

/// The factor by which more tuples are worth holding if they are used repeatedly.
const REUSE: u64 = 16;

pub struct BoundRows<'a> {
    pub(super) rows: Rows,
    lists: Vec<TupleReader<'a>>,
}

pub(super) struct MaskRows<'a> {
    pub(super) positions: &'a MaskPositions,
    pub(super) source: &'a dyn Source,
    /// The rank of the true element of the first row.
    pub(super) first: u64,
    pub(super) count: u64,
    /// The number of bytes added to each position, perhaps wrapped around.
    pub(super) base: u64,
}

impl RowOffsets for BoundRows<'_> {
    fn block(
        &self,
        rows: Range<u64>,
        most: usize,
        slab: &Runs,
        block: &mut RowBlock,
    ) -> Result<(), FillError> {
        if !self.mask_stretches(&rows, most, block)? {
            let count = (rows.end - rows.start).min(most as u64);
            self.offsets(rows.start, block.begin_rows(count))?;
            block.join_neighbours(slab);
        }
        Ok(())
    }

    fn verify(&self) -> Result<(), FillError> {
        self.lists.iter().try_for_each(TupleReader::verify)
    }
}

impl BoundRows<'_> {
    /// The offsets of the slabs of the rows from `row` on in the params' file, in bytes, or
    /// [`DROPPED`]; as many as `out` holds.
    pub(crate) fn offsets(&self, row: u64, out: &mut [u64]) -> Result<(), FillError> {
        let lists = self.rows.lists.len();
        match lists {
            0 => out.fill(0),
            _ => self.list_offsets(0, row, out)?,
        }
        let mut more = Vec::new();
        for number in 1..lists {
            more.resize(out.len(), 0);
            self.list_offsets(number, row, &mut more)?;
            for (offset, more) in out.iter_mut().zip(&more) {
                *offset = offset.wrapping_add(*more);
            }
        }
        add_strides(&self.rows.axes, self.rows.offset, row, out);
        Ok(())
    }

    /// The first of `rows` as stretches, if they go along a mask.
    fn mask_stretches(
        &self,
        rows: &Range<u64>,
        most: usize,
        block: &mut RowBlock,
    ) -> Result<bool, FillError> {
        let Some(MaskRows { positions, source, first, count, base }) = self.mask_rows(rows) else {
            return Ok(false);
        };
        let read = positions.read_stretches(first, count, base, most, source, block);
        read.map_err(|error| error.of_list(0))
    }

    /// The first of `rows`, if they go along a mask that is read, and along nothing else.
    pub(super) fn mask_rows(&self, rows: &Range<u64>) -> Option<MaskRows<'_>> {
        let Rows { offset, axes, lists } = &self.rows;
        let ([RowList { repeat: 1, run, outer, .. }], [reader]) = (&lists[..], &self.lists[..])
        else {
            return None;
        };
        let (Tuples::Mask(positions), None) = (&reader.tuples, &reader.held) else {
            return None;
        };
        if axes.last().is_some_and(|axis| axis.stride != 0) {
            return None;
        }
        let within = rows.start % run;
        let first = distance(outer, rows.start / run) as u64 + within;
        let count = (rows.end - rows.start).min(run - within);
        let mut base = [0];
        add_strides(axes, *offset, rows.start, &mut base);
        Some(MaskRows { positions, source: reader.given, first, count, base: base[0] })
    }

    /// The positions of one list for the rows from `row` on.
    fn list_offsets(&self, number: usize, mut row: u64, out: &mut [u64]) -> Result<(), FillError> {
        let RowList { repeat, run, ref outer, .. } = self.rows.lists[number];
        let mut left = out;
        let mut positions = Vec::new();
        while !left.is_empty() {
            let tuple = row / repeat;
            let repeated = row % repeat;
            let within = tuple % run;
            let first = distance(outer, tuple / run) as u64 + within;
            let rows = if repeat == 1 {
                let rows = (run - within).min(left.len() as u64);
                self.lists[number].read(first, &mut left[..rows as usize])?;
                rows
            } else {
                let tuples = (repeated + left.len() as u64).div_ceil(repeat).min(run - within);
                let rows = (tuples * repeat - repeated).min(left.len() as u64);
                positions.resize(tuples as usize, 0);
                self.lists[number].read(first, &mut positions)?;
                let mut part = &mut left[..rows as usize];
                let mut len = repeat - repeated;
                for &position in &positions {
                    let (now, later) = part.split_at_mut(len.min(part.len() as u64) as usize);
                    now.fill(position);
                    (part, len) = (later, repeat);
                }
                rows
            };
            row += rows;
            left = left.split_at_mut(rows as usize).1;
        }
        Ok(())
    }
}

/// Add the strides of `axes` to the offsets of rows from number `row` on.
fn add_strides(axes: &[Axis], base: i64, mut row: u64, offsets: &mut [u64]) {
    let strided = axes.iter().rposition(|axis| axis.stride != 0);
    let Some(inner) = strided else {
        return shift(offsets, base, 0);
    };
    // rows that go along lists only
    let same: u64 = axes[inner + 1..].iter().map(|axis| axis.len).product();
    let outer = &axes[..inner];
    let inner = axes[inner];
    let mut left = offsets;
    while !left.is_empty() {
        let at = row / same;
        let repeated = row % same;
        let within = at % inner.len;
        let first = base + distance(outer, at / inner.len) + within as i64 * inner.stride;
        let (len, stride) = match same {
            1 => (inner.len - within, inner.stride),
            same => (same - repeated, 0),
        };
        let (now, later) = left.split_at_mut(len.min(left.len() as u64) as usize);
        shift(now, first, stride);
        row += now.len() as u64;
        left = later;
    }
}

/// Add `base` to the first offset, and `stride` more to each next one.
fn shift(offsets: &mut [u64], mut base: i64, stride: i64) {
    for offset in offsets {
        if *offset != DROPPED {
            *offset = offset.wrapping_add_signed(base);
        }
        base = base.wrapping_add(stride);
    }
}
