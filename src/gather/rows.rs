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
//! Rows whose places follow each other are one entry of a block
//! (`gather/rows.rs`), a box that is packed, read, prefetched or written like any other: of a mask
//! they are found where it is true for long, of other lists among the offsets. Where neighbours are few,
//! each row stays by itself. Single items of a map that a mask keeps have no places at all: they are
//! compressed from the map by the bytes of the mask (`execute/pack/compress.rs`).

use std::ops::Range;

use super::Gather;
use super::distribution::NullSink;
use super::mask::MaskPositions;
use super::positions::DROPPED;
use super::tuples::{TupleReader, Tuples};
use crate::execute;
use crate::execute::{
    Conversion, ExecuteError, FillError, Pieces, Progress, ReadFrom, Transfer, Workers,
};
use crate::permutation::Permutation;
use crate::runs::{Axis, Runs, coalesce, distance};
use crate::source::Source;
use crate::view::{Layout, ViewError};

/// An axis of the output, in elements of the params.
#[derive(Clone, Debug)]
pub(super) struct OutputAxis {
    pub(super) len: u64,
    pub(super) stride: i64,
    /// For each list the axis of its tuples that this is; `None` where it is repeated along this
    /// one. Empty for an axis of the params alone.
    pub(super) dims: Vec<Option<usize>>,
}

impl OutputAxis {
    /// An axis of the params alone.
    pub(super) fn plain(axis: Axis) -> OutputAxis {
        OutputAxis { len: axis.len, stride: axis.stride, dims: Vec::new() }
    }

    /// A whole axis of the params.
    pub(super) fn of(params: &Layout<'_>, strides: &[i64], axis: usize) -> OutputAxis {
        OutputAxis::plain(Axis { len: params.shape[axis], stride: strides[axis] })
    }

    /// The same axis, which also goes along axis `dim` of the only list.
    pub(super) fn along(self, dim: usize) -> OutputAxis {
        OutputAxis { dims: vec![Some(dim)], ..self }
    }

    /// Whether it goes along the tuples of a list.
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
    /// Whether this axis and the one outside of it are one: in the params and in all lists.
    fn merges_with(&self, outer: &RowAxis) -> bool {
        let mut steps = self.steps.iter().zip(&outer.steps);
        self.axis.merges_with(outer.axis)
            && steps.all(|(step, outer)| *outer == step * self.axis.len)
    }
}

/// The rows, all but the positions.
#[derive(Clone, Debug)]
pub(crate) struct Rows {
    /// Where row 0 begins for the first positions in memory, in bytes of the params' file.
    pub(super) offset: i64,
    /// The row axes, outermost first, in bytes; none of length 1.
    axes: Vec<Axis>,
    pub(super) lists: Vec<RowList>,
}

/// A list, and how its tuples go along the rows.
#[derive(Clone, Debug)]
pub(super) struct RowList {
    pub(super) tuples: Tuples,
    /// So many rows after each other share a tuple.
    repeat: u64,
    /// So many tuples after each other are used one after the other.
    run: u64,
    /// How the runs lie, in tuples, outermost first.
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
        let lists: Vec<Tuples> = lists
            .into_iter()
            .enumerate()
            .map(|(list, tuples)| renumbered(tuples, list, axes))
            .collect();
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
        let before: u64 = lists.iter().map(Tuples::before).sum();
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
        let offset = offset - before as i64;
        Ok(Rows { offset, axes: merged.iter().map(|row| row.axis).collect(), lists })
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u64 {
        self.axes.iter().map(|axis| axis.len).product()
    }

    /// Bind the sources of the lists, in their order; `workers` put numbers in order, where
    /// they must be.
    ///
    /// At most `hold` positions in all are held in memory, and 16 times as many where they are used
    /// again and again: those of the lists that are short enough.
    ///
    /// # Errors
    /// A list that is held is read at once: as [`TupleReader::read`]. So is one that must be put in
    /// order.
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
            let holds = hold > 0 && tuples.count() <= most;
            let mut reader = TupleReader::new(number, tuples.clone(), source, workers)?;
            if holds {
                reader.hold(workers)?;
            }
            lists.push(reader);
        }
        Ok(BoundRows { rows: self, lists })
    }
}

/// How many times more tuples are worth holding where they are used again and again.
const REUSE: u64 = 16;

/// Tuples numbered in the order in which rows along `axes` use them, so that those of neighbouring
/// rows are neighbours.
fn renumbered(tuples: Tuples, list: usize, axes: &[OutputAxis]) -> Tuples {
    let used: Vec<usize> = axes.iter().filter_map(|axis| axis.dim(list)).collect();
    if used.is_sorted() {
        return tuples;
    }
    // axes of length 1 stand anywhere
    let ndim = tuples.shape().len();
    let order = (0..ndim).filter(|dim| !used.contains(dim)).chain(used.iter().copied());
    let order: Vec<i64> = order.map(|dim| dim as i64).collect();
    match Permutation::new(&order, ndim) {
        Ok(numbering) => tuples.numbered(numbering),
        Err(_) => tuples,
    }
}

/// Rows with the sources of their lists.
pub struct BoundRows<'a> {
    pub(super) rows: Rows,
    lists: Vec<TupleReader<'a>>,
}

/// Rows at the places where a mask is true.
pub(super) struct MaskRows<'a> {
    pub(super) positions: &'a MaskPositions,
    pub(super) source: &'a dyn Source,
    /// The number of the true element of the first row.
    pub(super) first: u64,
    /// How many rows there are.
    pub(super) count: u64,
    /// What is added to each place, in bytes, perhaps wrapped around.
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
    /// Where the slabs of the rows from `row` on begin in the params' file, in bytes, or
    /// [`DROPPED`]; as many as `out` holds.
    ///
    /// # Errors
    /// As [`TupleReader::read`].
    pub(crate) fn offsets(&self, row: u64, out: &mut [u64]) -> Result<(), FillError> {
        let lists = self.rows.lists.len();
        if lists == 0 {
            out.fill(0);
        }
        for number in 0..lists.min(1) {
            self.list_offsets(number, row, out)?;
        }
        if lists > 1 {
            let mut more = vec![0; out.len()];
            for number in 1..lists {
                self.list_offsets(number, row, &mut more)?;
                for (offset, more) in out.iter_mut().zip(&more) {
                    *offset = offset.wrapping_add(*more);
                }
            }
        }
        add_strides(&self.rows.axes, self.rows.offset, row, out);
        Ok(())
    }

    /// The first of `rows` as stretches, where they go along a mask.
    fn mask_stretches(
        &self,
        rows: &Range<u64>,
        most: usize,
        block: &mut RowBlock,
    ) -> Result<bool, FillError> {
        match self.mask_rows(rows) {
            Some(MaskRows { positions, source, first, count, base }) => {
                positions.read_stretches(first, count, base, most, source, block)
            }
            None => Ok(false),
        }
    }

    /// The first of `rows`, where they go along a mask that is read, and along nothing else.
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
            let (tuple, repeated) = (row / repeat, row % repeat);
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

/// Add to the offsets of rows from number `row` on what the strides of `axes` add.
fn add_strides(axes: &[Axis], base: i64, mut row: u64, offsets: &mut [u64]) {
    let strided = axes.iter().rposition(|axis| axis.stride != 0);
    let Some(inner) = strided else {
        return shift(offsets, base, 0);
    };
    // rows that go along lists only
    let same: u64 = axes[inner + 1..].iter().map(|axis| axis.len).product();
    let (inner, outer) = (axes[inner], &axes[..inner]);
    let mut left = offsets;
    while !left.is_empty() {
        let (at, repeated) = (row / same, row % same);
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

/// Add `base` to the first offset, `stride` more to each that follows.
fn shift(offsets: &mut [u64], mut base: i64, stride: i64) {
    for offset in offsets {
        if *offset != DROPPED {
            *offset = offset.wrapping_add_signed(base);
        }
        base = base.wrapping_add(stride);
    }
}

// Some rows of a gather, neighbours taken together.
//
// Where a mask is mostly true, or a list has ascending stretches, slabs that follow each other in the
// output follow each other in the params too. A `RowBlock` holds such a *stretch* as one entry,
// which is copied as a box of bytes. Where stretches are short, each row is an entry by itself.
//
// ```text
//   positions   3 4 5 6 9 10 11 12     offsets 30, 90     rows 4, 4     step 10
// ```

/// Stretches must have this many rows on average to be worth more than their rows.
const FEW: usize = 4;

/// Where rows lie that have numbers.
pub(crate) trait RowOffsets: Sync {
    /// The first of `rows` with neighbours taken together: at least one row, and about `most` entries. Each row is
    /// like `slab`.
    ///
    /// # Errors
    /// [`FillError`]: an index names no position, or cannot be read.
    fn block(
        &self,
        rows: Range<u64>,
        most: usize,
        slab: &Runs,
        block: &mut RowBlock,
    ) -> Result<(), FillError>;

    /// Make sure that what was read were offsets.
    ///
    /// # Errors
    /// [`FillError`]: what they were read from was cut short.
    fn verify(&self) -> Result<(), FillError>;
}

/// Rows one after the other in the output, and where their slabs begin in the params' file.
#[derive(Debug, Default)]
pub(crate) struct RowBlock {
    /// Where each row begins, or the first one of each stretch; or [`DROPPED`].
    offsets: Vec<u64>,
    /// The rows of each stretch; empty where all are single rows.
    lens: Vec<u64>,
    /// How far apart the rows of a stretch are, in bytes.
    step: u64,
    rows: u64,
}

impl RowBlock {
    /// How many rows there are.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// Where each row begins, if none are taken together.
    pub(crate) fn single_rows(&self) -> Option<&[u64]> {
        self.lens.is_empty().then_some(&self.offsets)
    }

    /// Where each stretch begins, and how many rows it has.
    pub(crate) fn stretches(&self) -> impl Iterator<Item = (u64, u64)> {
        let lens = self.lens.iter().copied().chain(std::iter::repeat(1));
        self.offsets.iter().copied().zip(lens)
    }

    /// Begin anew with so many single rows, whose offsets are to be filled in.
    pub(super) fn begin_rows(&mut self, rows: u64) -> &mut [u64] {
        self.lens.clear();
        self.rows = rows;
        self.offsets.resize(rows as usize, 0);
        &mut self.offsets
    }

    /// Begin anew with stretches of rows that are so far apart, in bytes.
    pub(super) fn begin_stretches(&mut self, step: u64) {
        self.offsets.clear();
        self.lens.clear();
        (self.step, self.rows) = (step, 0);
    }

    /// Add rows behind the others; how many stretches there are then.
    pub(super) fn push(&mut self, offset: u64, rows: u64) -> usize {
        self.rows += rows;
        match (self.offsets.last(), self.lens.last_mut()) {
            (Some(last), Some(len)) if last.wrapping_add(*len * self.step) == offset => {
                *len += rows
            }
            _ => {
                self.offsets.push(offset);
                self.lens.push(rows);
            }
        }
        self.lens.len()
    }

    /// Take single rows together where enough of them are neighbours. Those of contiguous slabs are
    /// where one ends and the next begins; those of others as far apart as rows in the middle are.
    pub(super) fn join_neighbours(&mut self, slab: &Runs) {
        let middle = self.offsets.len() / 2;
        let step = match (slab.axes.is_empty(), self.offsets.get(middle..middle + 2)) {
            (true, _) => slab.run,
            (false, Some(&[first, second])) => second.wrapping_sub(first),
            (false, _) => return,
        };
        // rows that are the same, or descend, stay by themselves
        if !(1..1 << 62).contains(&step) {
            return;
        }
        let follows =
            |before: u64, after: u64| before != DROPPED && after.wrapping_sub(before) == step;
        let pairs = self.offsets.array_windows::<2>();
        let joined = pairs.filter(|&&[before, after]| follows(before, after)).count();
        if (self.offsets.len() - joined) * FEW > self.offsets.len() {
            return;
        }
        self.step = step;
        let mut last = DROPPED;
        for at in 0..self.offsets.len() {
            let offset = self.offsets[at];
            match self.lens.last_mut() {
                Some(len) if follows(last, offset) => *len += 1,
                _ => {
                    self.offsets[self.lens.len()] = offset;
                    self.lens.push(1);
                }
            }
            last = offset;
        }
        self.offsets.truncate(self.lens.len());
    }

    /// The bytes of a stretch that begins at `offset`, each row of which is like `slab`.
    pub(crate) fn runs(&self, slab: &Runs, offset: u64, rows: u64) -> Runs {
        let at = slab.offset.wrapping_add_unsigned(offset);
        if slab.axes.is_empty() && (rows == 1 || self.step == slab.run) {
            return Runs { offset: at, axes: Vec::new(), run: rows * slab.run };
        }
        let outer = Axis { len: rows, stride: self.step as i64 };
        let axes = match rows {
            1 => slab.axes.clone(),
            _ => [&[outer], &slab.axes[..]].concat(),
        };
        Runs { offset: at, axes, run: slab.run }
    }
}

// Checking all indices before anything is written.
//
// Needed where the output cannot be taken back (a pipe), where gathering would not read them (an
// output of no elements), or in another order than theirs (Fortran's, transposed). It is a job like
// any other, whose pieces write nothing.

/// Tuples in a piece.
const TUPLES: u64 = 1 << 14;

impl Gather {
    /// Whether gathering alone finds a bad position, and the first one of a list first; where not,
    /// [`check`](Gather::check) must come before it.
    pub fn checks_itself(&self) -> bool {
        self.bytes > 0 && self.rows.lists.iter().all(|list| list.tuples.is_in_their_order())
    }

    /// Read all lists, with these workers; `sources` are theirs.
    ///
    /// # Errors
    /// The first bad position of the first list that has one, in the order of the indices; a failure
    /// to read them.
    pub fn check(&self, sources: &[&dyn Source], workers: &Workers) -> Result<(), ExecuteError> {
        self.rows.check(sources, workers)
    }
}

impl Rows {
    /// Read all lists, as [`Gather::check`] does.
    pub(crate) fn check(
        &self,
        sources: &[&dyn Source],
        workers: &Workers,
    ) -> Result<(), ExecuteError> {
        for (number, (list, source)) in self.lists.iter().zip(sources).enumerate() {
            let tuples = list.tuples.clone().in_their_order();
            let reader = TupleReader::new(number, tuples, *source, workers)?;
            reader.check(workers)?;
        }
        Ok(())
    }
}

impl TupleReader<'_> {
    /// Read all tuples, with these workers; those of a mask need no check.
    fn check(&self, workers: &Workers) -> Result<(), ExecuteError> {
        let source = self.given;
        let transfers = [Transfer { source, pieces: self, conversion: Conversion::None, at: 0 }];
        execute::run(&transfers, &NullSink, workers, &Progress::default())
    }
}

impl Pieces for TupleReader<'_> {
    fn bytes(&self) -> u64 {
        match &self.tuples {
            Tuples::Numbers(positions) => positions.bytes(),
            Tuples::Mask(_) => 0,
        }
    }

    fn count(&self) -> u64 {
        // without numbers there is nothing to check
        if self.bytes() == 0 { 0 } else { self.tuples.count().div_ceil(TUPLES) }
    }

    fn output(&self, _number: u64) -> Runs {
        Runs::contiguous(0, 0)
    }

    fn fill(
        &self,
        number: u64,
        _from: &mut ReadFrom<'_>,
        _out: &mut [u8],
    ) -> Result<(), FillError> {
        let first = number * TUPLES;
        let len = TUPLES.min(self.tuples.count() - first);
        self.read(first, &mut vec![0; len as usize])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::execute::pack::pack_plainly;

    /// The bytes of a row after the other, whether taken together or not.
    fn bytes(block: &RowBlock, slab: &Runs, file: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (offset, rows) in block.stretches() {
            let mut part = vec![0; (rows * slab.bytes()) as usize];
            if offset != DROPPED {
                let Runs { offset, axes, run } = block.runs(slab, offset, rows);
                pack_plainly(&axes, run, file, offset as usize, &mut part);
            }
            bytes.extend(part);
        }
        bytes
    }

    proptest! {
        #[test]
        fn stretches_are_their_rows(
            stretches in prop::collection::vec((0..50u64, 1..40u64, 0..8u8), 1..20),
            (itemsize, len, apart) in (1..5u64, 1..4u64, 1..3u64),
        ) {
            let axes = match apart {
                1 => Vec::new(),
                _ => vec![Axis { len, stride: (itemsize * apart) as i64 }],
            };
            let run = if apart == 1 { itemsize * len } else { itemsize };
            let slab = Runs { offset: 2, axes, run };
            let row = itemsize * len * apart;
            let mut offsets = Vec::new();
            for (first, rows, kind) in stretches {
                offsets.extend((0..rows).map(|at| match kind {
                    0 => DROPPED,
                    1 => first * row,
                    2 => (first + rows - at) * row,
                    _ => (first + at) * row,
                }));
            }
            let file: Vec<u8> =
                (0..3000u64).map(|at| (at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8).collect();
            let mut block = RowBlock::default();
            block.begin_rows(offsets.len() as u64).copy_from_slice(&offsets);
            prop_assert_eq!(block.single_rows(), Some(&offsets[..]));
            let expected = bytes(&block, &slab, &file);
            block.join_neighbours(&slab);
            prop_assert_eq!(bytes(&block, &slab, &file), expected);
            prop_assert_eq!(block.rows(), offsets.len() as u64);
            prop_assert_eq!(block.stretches().map(|(_, rows)| rows).sum::<u64>(), block.rows());
        }
    }

    #[test]
    fn only_neighbours_are_taken_together() {
        let joined = |offsets: &[u64], slab: &Runs| {
            let mut block = RowBlock::default();
            block.begin_rows(offsets.len() as u64).copy_from_slice(offsets);
            block.join_neighbours(slab);
            block.stretches().collect::<Vec<_>>()
        };
        let slab = Runs::contiguous(0, 10);
        assert_eq!(joined(&[30, 40, 50, 60, 90, 100, 110, 120], &slab), [(30, 4), (90, 4)]);
        // too few of them
        assert_eq!(joined(&[30, 40, 90, 20], &slab).len(), 4);
        // no place follows one that is dropped, though numbers wrap around
        let item = Runs::contiguous(0, 1);
        assert_eq!(
            joined(&[5, 6, 7, 8, 9, 10, 11, DROPPED, 0, 1, 2, 3], &item),
            [(5, 7), (DROPPED, 1), (0, 4)]
        );
        let column = Runs { offset: 0, axes: vec![Axis { len: 3, stride: 100 }], run: 4 };
        assert_eq!(joined(&[0, 4, 8, 12, 16, 20, 40, 44], &column), [(0, 6), (40, 2)]);
        assert_eq!(joined(&[20, 16, 12, 8, 4, 0], &column).len(), 6);
        assert_eq!(joined(&[], &column), []);
    }
}
