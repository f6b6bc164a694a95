//! Selections of elements as HDF5 stores them. Only products are read: positions along each axis.
//!
//! ```text
//!   a[1::3, 2:4] of (7, 5)     axis 0: 1, 4      2 blocks of 1, from one to the next 3
//!                              axis 1: 2, 3      1 block of 2
//! ```

use std::collections::BTreeSet;
use std::ops::Range;

use super::file::{Cursor, Hdf5Error, damaged};
use crate::runs::{Axis, Runs};
use crate::shape::{Order, contiguous_strides};

const MAX_RANK: usize = 32;

/// The value that stands for an unlimited count or length.
const UNLIMITED: u64 = u64::MAX;

/// Positions are less than this.
const MOST: u64 = 1 << 62;

/// Blocks of neighbouring positions, equally far apart. With one block, the distance is the length of the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Blocks {
    start: u64,
    stride: u64,
    count: u64,
    block: u64,
}

/// Positions along an axis, in ascending order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Positions(Vec<Blocks>);

/// The elements at positions along each axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Selection(pub(super) Vec<Positions>);

/// A selection that was read from a file.
#[derive(Clone, Debug)]
pub(super) enum Stored {
    Nothing,
    All,
    Some(Selection),
    /// A selection that is unlimited along this axis: a block has no end, or there is no last block.
    Endless(Selection, usize),
}

impl Blocks {
    /// Check the numbers of blocks. Blocks without a gap between them become one block.
    fn new([start, stride, count, block]: [u64; 4]) -> Result<Blocks, Hdf5Error> {
        let is_endless = [count, block].contains(&UNLIMITED);
        let is_sound = if is_endless {
            (count == UNLIMITED) != (block == UNLIMITED)
                && start < MOST
                && count > 0
                && block > 0
                && (count == 1 || (block..MOST).contains(&stride))
        } else {
            let step = if count > 1 { stride } else { block };
            let end = u128::from(start) + u128::from(step) * u128::from(count);
            step >= block && end < u128::from(MOST)
        };
        if !is_sound {
            return Err(damaged("a selection cannot be true"));
        }
        let one = |block| Blocks { start, stride: block, count: 1, block };
        Ok(match (count, block) {
            (_, UNLIMITED) | (1, _) => one(block),
            (UNLIMITED, _) => Blocks { start, stride, count, block },
            _ if block == stride => one(count * block),
            _ => Blocks { start, stride: stride.max(1), count, block },
        })
    }

    fn is_endless(&self) -> bool {
        self.count == UNLIMITED || self.block == UNLIMITED
    }

    fn len(&self) -> u64 {
        self.count * self.block
    }

    /// The number of positions before `end`.
    fn before(&self, end: u64) -> u64 {
        let Some(behind) = end.checked_sub(self.start) else { return 0 };
        if self.block == UNLIMITED {
            return behind;
        }
        let whole = (behind / self.stride).min(self.count);
        let rest = if whole < self.count { behind - whole * self.stride } else { 0 };
        whole * self.block + rest.min(self.block)
    }

    /// The end of the first `count` positions.
    fn end_of(&self, count: u64) -> u64 {
        let Some(last) = count.checked_sub(1) else { return self.start };
        match self.block {
            UNLIMITED => self.start.saturating_add(count),
            block => {
                let at =
                    (last / block).saturating_mul(self.stride).saturating_add(last % block + 1);
                self.start.saturating_add(at)
            }
        }
    }
}

impl Positions {
    pub(super) fn all(len: u64) -> Positions {
        Positions(vec![Blocks { start: 0, stride: len.max(1), count: 1, block: len }])
    }

    pub(super) fn len(&self) -> u64 {
        self.0.iter().map(Blocks::len).sum()
    }

    /// The number of positions before `end`.
    pub(super) fn before(&self, end: u64) -> u64 {
        self.0.iter().map(|blocks| blocks.before(end)).sum()
    }

    /// From the first position to the end of the last one.
    pub(super) fn bounds(&self) -> Range<u64> {
        let first = self.0.first().map_or(0, |blocks| blocks.start);
        first..self.0.last().map_or(0, |blocks| blocks.end_of(blocks.len()))
    }

    /// The blocks of unlimited positions; `None` if they are limited.
    fn endless(&self) -> Option<&Blocks> {
        self.0.first().filter(|blocks| blocks.is_endless())
    }

    /// The first `count` of unlimited positions.
    pub(super) fn first(&self, count: u64) -> Positions {
        let Some(&Blocks { start, stride, block, .. }) = self.endless() else {
            return self.clone();
        };
        if block == UNLIMITED {
            return Positions(vec![Blocks { start, stride: count, count: 1, block: count }]);
        }
        let whole = Blocks { start, stride, count: count / block, block };
        let rest = start.saturating_add(whole.count.saturating_mul(stride));
        let rest = Blocks { start: rest, stride: block, count: 1, block: count % block };
        Positions([whole, rest].into_iter().filter(|blocks| blocks.len() > 0).collect())
    }

    /// Block `number` of unlimited positions.
    pub(super) fn block(&self, number: u64) -> Option<Positions> {
        let &Blocks { start, stride, block, .. } =
            self.endless().filter(|blocks| blocks.block != UNLIMITED)?;
        let start = stride.checked_mul(number)?.checked_add(start).filter(|it| *it < MOST)?;
        Some(Positions(vec![Blocks { start, stride: block, count: 1, block }]))
    }

    /// The end of the first `count` of unlimited positions.
    pub(super) fn end_of(&self, count: u64) -> u64 {
        self.endless().filter(|_| count > 0).map_or(0, |blocks| blocks.end_of(count))
    }

    /// Positions number `range`, in parts of one step each: the first position, the step, the count, and the number of
    /// the first position.
    fn parts(&self, range: &Range<u64>) -> Vec<[u64; 4]> {
        let mut parts = Vec::new();
        let mut passed = 0;
        for blocks in &self.0 {
            let Blocks { start, stride, block, .. } = *blocks;
            let mut at = range.start.max(passed);
            let end = range.end.min(passed + blocks.len());
            while at < end {
                let (number, within) = ((at - passed) / block, (at - passed) % block);
                let len = if block == 1 { end - at } else { (block - within).min(end - at) };
                parts.push([
                    start + number * stride + within,
                    if block == 1 { stride } else { 1 },
                    len,
                    at,
                ]);
                at += len;
            }
            passed += blocks.len();
        }
        parts
    }
}

/// A part of a selection with one step along each axis: in the tensor, and in the selected elements side by side.
pub(super) struct StridedPart {
    pub(super) there: Runs,
    pub(super) dense: Runs,
}

impl Selection {
    pub(super) fn lens(&self) -> Vec<u64> {
        self.0.iter().map(Positions::len).collect()
    }

    /// The number of elements.
    pub(super) fn count(&self) -> Option<u64> {
        self.0.iter().try_fold(1u64, |count, positions| count.checked_mul(positions.len()))
    }

    /// Visit the parts of the elements with these numbers along each axis. Positions count from `origin`, in a box of
    /// elements of `item` bytes.
    pub(super) fn each_part<E>(
        &self,
        numbers: &[Range<u64>],
        (origin, shape): (&[u64], &[u64]),
        item: u64,
        visit: &mut dyn FnMut(StridedPart) -> Result<(), E>,
    ) -> Result<(), E> {
        let lens: Vec<u64> = numbers.iter().map(|range| range.end - range.start).collect();
        let strides = |shape| contiguous_strides(shape, item, Order::C).unwrap_or_default();
        let (strides, dense) = (strides(shape), strides(&lens));
        let parts = self.0.iter().zip(numbers).map(|(positions, range)| positions.parts(range));
        let parts: Vec<Vec<[u64; 4]>> = parts.collect();
        if parts.iter().any(Vec::is_empty) {
            return Ok(());
        }
        let mut at = vec![0; parts.len()];
        loop {
            let empty = || Runs { offset: 0, axes: Vec::new(), run: item };
            let mut part = StridedPart { there: empty(), dense: empty() };
            for (axis, &number) in at.iter().enumerate() {
                let [first, step, len, number] = parts[axis][number];
                part.there.offset += (first - origin[axis]) as i64 * strides[axis];
                part.there.axes.push(Axis { len, stride: step as i64 * strides[axis] });
                part.dense.offset += (number - numbers[axis].start) as i64 * dense[axis];
                part.dense.axes.push(Axis { len, stride: dense[axis] });
            }
            visit(part)?;
            let next = (0..at.len()).rev().find(|&axis| at[axis] + 1 < parts[axis].len());
            let Some(axis) = next else { return Ok(()) };
            at[axis] += 1;
            at[axis + 1..].fill(0);
        }
    }
}

impl Stored {
    /// Read a selection.
    pub(super) fn read(input: &mut Cursor<'_>) -> Result<Stored, Hdf5Error> {
        let kind = input.u32()?;
        let version = input.u32()?;
        match (kind, version) {
            (0, _) => input.skip(8).map(|()| Stored::Nothing),
            (3, _) => input.skip(8).map(|()| Stored::All),
            (1, _) => Err(Hdf5Error::Mapping("points, one by one")),
            (2, 1) => {
                input.skip(8)?;
                let rank = rank(input)?;
                blocks(input, rank, 4)
            }
            (2, 2) => {
                input.skip(5)?;
                let rank = rank(input)?;
                regular(input, rank, 8)
            }
            (2, 3) => {
                let is_regular = input.u8()? & 1 != 0;
                let wide = usize::from(input.u8()?);
                let rank = rank(input)?;
                if is_regular { regular(input, rank, wide) } else { blocks(input, rank, wide) }
            }
            _ => Err(damaged("a selection is of no known kind")),
        }
    }
}

fn rank(input: &mut Cursor<'_>) -> Result<usize, Hdf5Error> {
    let rank = input.u32()? as usize;
    if (1..=MAX_RANK).contains(&rank) { Ok(rank) } else { Err(damaged("a selection has no axes")) }
}

/// Blocks that are equally far apart along each axis.
fn regular(input: &mut Cursor<'_>, rank: usize, wide: usize) -> Result<Stored, Hdf5Error> {
    if !matches!(wide, 2 | 4 | 8) {
        return Err(damaged("a selection has numbers of no known length"));
    }
    let all_ones = UNLIMITED >> (64 - 8 * wide);
    let mut axes = Vec::new();
    for _ in 0..rank {
        let mut numbers = [0; 4];
        for number in &mut numbers {
            *number = input.uint(wide)?;
        }
        for number in numbers[2..].iter_mut().filter(|number| **number == all_ones) {
            *number = UNLIMITED;
        }
        axes.push(Positions(vec![Blocks::new(numbers)?]));
    }
    let mut endless = (0..rank).filter(|&axis| axes[axis].endless().is_some());
    match (endless.next(), endless.next()) {
        (None, _) => Ok(Stored::Some(Selection(axes))),
        (Some(axis), None) => Ok(Stored::Endless(Selection(axes), axis)),
        _ => Err(damaged("a selection has no end along several axes")),
    }
}

/// A list of boxes, which must be the product of ranges along each axis.
fn blocks(input: &mut Cursor<'_>, rank: usize, wide: usize) -> Result<Stored, Hdf5Error> {
    let count = input.uint(wide)?;
    let mut ranges = vec![BTreeSet::new(); rank];
    for _ in 0..count {
        let mut bounds = || (0..rank).map(|_| input.uint(wide)).collect::<Result<Vec<_>, _>>();
        let (first, last) = (bounds()?, bounds()?);
        for (ranges, range) in ranges.iter_mut().zip(first.into_iter().zip(last)) {
            ranges.insert(range);
        }
    }
    let product =
        ranges.iter().try_fold(1u64, |product, axis| product.checked_mul(axis.len() as u64));
    if product != Some(count) {
        return Err(Hdf5Error::Mapping("boxes that make no grid"));
    }
    let axes = ranges.into_iter().map(|ranges| {
        let mut positions: Vec<Blocks> = Vec::new();
        let mut end = 0;
        for (first, last) in ranges {
            if first < end || last < first || last >= MOST {
                return Err(Hdf5Error::Mapping("boxes that make no grid"));
            }
            end = last + 1;
            let block = end - first;
            match positions.last_mut() {
                Some(it) if it.block == block && it.count == 1 => {
                    (it.stride, it.count) = (first - it.start, 2)
                }
                Some(it) if it.block == block && first == it.start + it.stride * it.count => {
                    it.count += 1
                }
                _ => positions.push(Blocks { start: first, stride: block, count: 1, block }),
            }
        }
        Ok(Positions(positions))
    });
    Ok(Stored::Some(Selection(axes.collect::<Result<_, _>>()?)))
}
