//! A selection divided into slices along axes; `summaries` reads them.
//!
//! Some axes stay, the others are *reduced*. A slice holds the elements at one position of the axes that stay.
//! Elements are read with the axes that stay first, so that the elements of a slice are adjacent. Where the
//! innermost axes stay, as when rows are added to rows, elements are read in their stored order instead.
//!
//! The slices of a tensor that goes to a file are taken in the order of the memory, and a `StridedSink` writes
//! the results where they belong; streams and tables get results in the order of positions.

use std::cmp::Reverse;

use super::statistics::{Chosen, each_tensor};
use crate::dtype::DType;
use crate::error::{Cause, Error, faults};
use crate::execute::summaries_at_once;
use crate::input::{Input, Transform};
use crate::job::statistics::StatisticsFault;
use crate::region::{InChunks, OpenIndex};
use crate::shape::{
    AskedAxis, NoDimension, Order, Permutation, Transposition, element_count, normalize_axis,
};
use crate::statistics::{Facts, Fold, Reduction, Summary};
use crate::tensor::TensorInfo;

/// The most bytes of the columns of a worker.
const COLUMN_BYTES: usize = 3 << 20;

/// The fewest rows that make columns worthwhile.
const ROWS: u64 = 16;

/// The fewest columns of a part of the axes that alternate, where all of them are too many columns.
const WIDTH: u64 = 64;

pub struct Slices {
    /// The selection with the axes that stay first, or, with columns, the reduced axes in between.
    pub chosen: Chosen,
    /// For each axis of the original selection, whether it is reduced.
    pub reduced: Vec<bool>,
    /// The axes of the original selection: those that stay, then the others.
    axes: Permutation,
    /// The lengths of the axes that stay.
    lens: Vec<u64>,
    /// The original number of each axis of `chosen`.
    pub(super) arranged: Permutation,
    /// The number of slices whose elements alternate; 1 if the elements of each slice are adjacent.
    pub(super) width: u64,
    /// The original selection, if it is in chunks.
    pub(super) in_chunks: Option<Chosen>,
}

#[derive(Clone, Copy)]
pub struct SlicesOptions<'a> {
    /// The dtypes, shapes or fields that tensors are read as.
    pub transform: &'a Transform,
    pub index: OpenIndex<'a>,
    /// The order of the axes of the selection.
    pub transpose: &'a Transposition,
    /// The reduced axes of the result; a negative one counts from the end. `None` reduces all.
    pub axes: Option<&'a [AskedAxis]>,
}

/// The order of the slices, and of the elements in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SliceOrder {
    /// Ascending positions, the last axis fastest.
    Positions,
    /// Ascending positions, the first axis fastest.
    Reversed,
    /// The order in memory, if it is known, so that each byte is read about once.
    Memory,
}

/// The slices of several tensors, made for one tensor after the other: all at once would take much memory.
pub struct AllSlices<'a> {
    numbers: &'a [usize],
    options: SlicesOptions<'a>,
    bytes: u64,
}

impl<'a> AllSlices<'a> {
    /// The slices of the tensors with these numbers, in the order of positions.
    pub fn new(
        input: &mut Input,
        numbers: &'a [usize],
        options: SlicesOptions<'a>,
    ) -> Result<AllSlices<'a>, Error> {
        let bytes = each_tensor(input, numbers, options.transform, |tensor| {
            Ok(Slices::of(tensor, &options, SliceOrder::Positions, None::<Summary>)?.chosen.bytes())
        })?;
        Ok(AllSlices { numbers, options, bytes: bytes.iter().sum() })
    }

    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn at(&self, input: &Input, number: usize) -> Result<Slices, Error> {
        let tensor = input.contents.tensors.at(self.numbers[number]);
        Ok(Slices::of(&tensor, &self.options, SliceOrder::Positions, None::<Summary>)?)
    }
}

impl Slices {
    pub(super) fn all(
        input: &mut Input,
        numbers: &[usize],
        options: &SlicesOptions<'_>,
        order: SliceOrder,
        how: Reduction,
    ) -> Result<Vec<Slices>, Error> {
        each_tensor(input, numbers, options.transform, |tensor| {
            Ok(Slices::of(tensor, options, order, how.of(&tensor.dtype))?)
        })
    }

    /// The slices of a tensor; in columns, where the summary `empty` allows it.
    fn of(
        tensor: &TensorInfo,
        options: &SlicesOptions<'_>,
        order: SliceOrder,
        empty: Option<impl Fold>,
    ) -> Result<Slices, Cause> {
        let SlicesOptions { index, transpose, axes, .. } = *options;
        let plain = Chosen::of(tensor, index, transpose, Order::C)?;
        let names = || tensor.dimension_names(&plain.axes);
        let number = |axis: &AskedAxis| axis.number(names).map_err(AxisFault::from);
        let axes = axes.map(|axes| axes.iter().map(number).collect::<Result<Vec<_>, _>>());
        let reduced = reduced(axes.transpose()?.as_deref(), plain.shape.len())?;
        let strides = strides(&plain);
        let mut axes: Vec<usize> = (0..reduced.len()).collect();
        if order == SliceOrder::Reversed {
            axes.reverse();
        }
        if order == SliceOrder::Memory
            && let Some(strides) = &strides
        {
            axes.sort_by_key(|&axis| Reverse(strides[axis]));
        }
        axes.sort_by_key(|&axis| reduced[axis]);
        let stay = reduced.iter().filter(|reduced| !**reduced).count();
        let (staying, others) = axes.split_at(stay);
        let len = |axes: &[usize]| {
            element_count(&axes.iter().map(|&axis| plain.shape[axis]).collect::<Vec<_>>())
        };
        let beside = strides.map_or(0, |strides| beside(staying, others, &strides));
        let is_chunked = plain.region.chunked().is_some();
        let most =
            empty.map_or(0, |empty| plain.most_columns(empty, len(staying).unwrap_or(u64::MAX)));
        let fits = |count: &usize| {
            let width = len(&staying[stay - count..]).unwrap_or(u64::MAX);
            // a chunk has short parts of rows
            width <= most && (*count == beside || width >= WIDTH && !is_chunked)
        };
        let has_rows = len(others) >= Some(ROWS);
        let beside = (0..=beside).rev().filter(|_| has_rows).find(fits).unwrap_or(0);
        let (apart, beside) = staying.split_at(stay - beside);
        let width = len(beside).unwrap_or(1);
        let arranged = match width {
            0 | 1 => axes.clone(),
            _ => [apart, others, beside].concat(),
        };
        let arranged = Permutation::of_axes(arranged);
        let lens = staying.iter().map(|&axis| plain.shape[axis]).collect();
        let chosen =
            Chosen::arranged(tensor, index, transpose, Order::C, |axes| axes.then(&arranged))?;
        let axes = Permutation::of_axes(axes);
        let in_chunks = is_chunked.then_some(plain);
        Ok(Slices { chosen, reduced, axes, lens, arranged, width: width.max(1), in_chunks })
    }

    /// The lengths of the axes that stay, in the order of the slices.
    pub fn lens(&self) -> &[u64] {
        &self.lens
    }

    /// The shape of the original selection.
    pub fn selected(&self) -> Vec<u64> {
        self.arranged.inverse().permute(&self.chosen.shape)
    }

    pub fn count(&self) -> u64 {
        // a selection without elements may have more slices than can be counted
        element_count(self.lens()).unwrap_or(u64::MAX)
    }

    pub fn len(&self) -> u64 {
        element_count(&self.reduced_lens()).unwrap_or(u64::MAX)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn reduced_lens(&self) -> Vec<u64> {
        let axes = self.arranged.axes().iter().zip(&self.chosen.shape);
        axes.filter(|(axis, _)| self.reduced[**axis]).map(|(_, &len)| len).collect()
    }

    /// The axes of the selection that results have: with `keepdims` all, reduced ones with length 1.
    fn result_axes(&self, keepdims: bool) -> impl Iterator<Item = usize> {
        (0..self.reduced.len()).filter(move |&axis| keepdims || !self.reduced[axis])
    }

    /// The shape of the results, one element for each slice; with `keepdims`, reduced axes stay
    /// with length 1.
    pub(super) fn shape(&self, keepdims: bool) -> Vec<u64> {
        let lens = self.selected();
        let len = |axis: usize| if self.reduced[axis] { 1 } else { lens[axis] };
        self.result_axes(keepdims).map(len).collect()
    }

    /// For each axis of [`shape`](Slices::shape), the axis of the tensor that it comes from, if
    /// any.
    pub(super) fn source_axes(&self, keepdims: bool) -> Vec<Option<usize>> {
        let axes = self.arranged.inverse().permute(&self.chosen.axes);
        self.result_axes(keepdims).map(|axis| axes[axis]).collect()
    }

    /// The axes that stay, in the order of the slices, as numbers among those.
    pub(super) fn staying(&self) -> impl Iterator<Item = usize> {
        let rank = |&axis: &usize| self.reduced[..axis].iter().filter(|it| !**it).count();
        self.axes.axes()[..self.lens.len()].iter().map(rank)
    }

    /// The index in the selection of element `element` of slice `slice`.
    pub fn position(&self, slice: u64, element: u64) -> Vec<u64> {
        let at = [
            super::statistics::position_of(&self.lens, slice),
            super::statistics::position_of(&self.reduced_lens(), element),
        ]
        .concat();
        self.axes.inverse().permute(&at)
    }

    pub fn nothing(&self, facts: Facts) -> Result<Summary, Error> {
        let empty = match self.chosen.dtype {
            DType::Scalar(scalar, endian) => Summary::new(scalar, endian, facts),
            DType::Npy(_) | DType::Blocks(_) => None,
        };
        Ok(empty.ok_or_else(|| StatisticsFault(self.chosen.dtype.clone()))?)
    }
}

/// For each of `ndim` axes, whether it is reduced, by the rules of NumPy's `axis`.
fn reduced(axes: Option<&[i64]>, ndim: usize) -> Result<Vec<bool>, AxisFault> {
    let Some(axes) = axes else { return Ok(vec![true; ndim]) };
    // an array without axes may be reduced along axis 0, as in NumPy
    let counted_axes = if axes.len() == 1 { ndim.max(1) } else { ndim };
    let mut reduced = vec![false; counted_axes];
    for &axis in axes {
        match normalize_axis(axis, counted_axes) {
            Some(counted) if reduced[counted] => return Err(AxisFault::Twice),
            Some(counted) => reduced[counted] = true,
            None => return Err(AxisFault::OutOfBounds { axis, ndim }),
        }
    }
    reduced.truncate(ndim);
    Ok(reduced)
}

/// Axes that a selection cannot be reduced along; the messages are NumPy's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AxisFault {
    #[error("axis {axis} is out of bounds for array of dimension {ndim}")]
    OutOfBounds { axis: i64, ndim: usize },
    #[error("duplicate value in 'axis'")]
    Twice,
    #[error(transparent)]
    Dimension(#[from] NoDimension),
}

faults!(Index: AxisFault);

/// The distance between neighbours on each axis, if it is known.
fn strides(chosen: &Chosen) -> Option<Vec<u64>> {
    let region = chosen.region.as_ref();
    let in_chunks = || region.chunked()?.parts().map(|(_, view)| view);
    let axes = region.strided().or_else(in_chunks)?.axes();
    let strides = axes.iter().map(|axis| axis.stride.unsigned_abs());
    (axes.len() == chosen.shape.len()).then(|| strides.collect())
}

/// The number of the last axes that stay that lie inside of all reduced ones.
fn beside(staying: &[usize], others: &[usize], strides: &[u64]) -> usize {
    let innermost = others.iter().map(|&axis| strides[axis]).min().unwrap_or(0);
    staying.iter().rev().take_while(|&&axis| strides[axis] < innermost).count()
}

impl Chosen {
    /// The number of `count` summaries that are held at a time.
    pub(super) fn summaries_at_once(&self, empty: &impl Fold, count: u64) -> u64 {
        let chunks = self.region.chunked().and_then(InChunks::parts);
        summaries_at_once(empty.bytes(), count, chunks.map_or(0, |(of, _)| of.chunk_bytes()))
    }

    /// The most columns of a part of `count` slices.
    fn most_columns(&self, mut empty: impl Fold, count: u64) -> u64 {
        let of_band = self.summaries_at_once(&empty, count);
        empty.by_columns().map_or(0, |(_, bytes)| of_band.min((COLUMN_BYTES / bytes) as u64))
    }
}
