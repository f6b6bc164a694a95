//! A selection divided into slices along axes, and a summary of each slice.
//!
//! Some axes stay, the others are *reduced*. A slice holds the elements at one position of the axes that stay.
//! Elements are read with the axes that stay first, so that the elements of a slice are adjacent.
//! Summaries are held for a band of slices at a time, as many as bounded memory has room for, and
//! any number of workers add to them: sums are exact, so that the order of adding does not matter.
//!
//! Where the innermost axes stay, as when rows are added to rows, elements are read in their stored
//! order instead. Each worker then has [columns](Columns) of its own, and adds them to the
//! summaries at the end.
//!
//! Bands of chunked tensors end where chunks do, so that each chunk is decoded for one band. If
//! there is no memory for such a band, the selection is put in order in scratch first.
//!
//! Long ranges are summed up separately first, so that workers of a few long slices do not wait for
//! each other. The slices of a tensor that goes to a file are taken in the order of the memory, and
//! a `StridedSink` writes the results where they belong; streams and tables get results in the
//! order of positions.

use std::cmp::Reverse;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::statistics::{Chosen, each_tensor};
use crate::dtype::DType;
use crate::error::{Cause, Error, faults};
use crate::execute::{Progress, Workers};
use crate::index::IndexExpr;
use crate::index::resolve::Rules;
use crate::input::{Input, Transform};
use crate::job::copy::{check_indices, in_scratch, scan};
use crate::job::statistics::StatisticsFault;
use crate::region::{Lists, OpenIndex, Take};
use crate::shape::{
    AskedAxis, NoDimension, Order, Permutation, Transposition, element_count, normalize_axis,
};
use crate::sink::WriteOrder;
use crate::statistics::{Columns, Facts, Fold, Reach, Reduction, Summary};
use crate::tensor::TensorInfo;

/// The most bytes of summaries while elements are added to them, and the most when they are
/// complete.
const BAND_BYTES: usize = 20 << 20;

/// At least so many adjacent elements of a slice are summed up separately, so that workers do not wait for each other.
const ALONE: u64 = 512;

/// The most bytes of the columns of a worker.
const COLUMN_BYTES: usize = 3 << 20;

/// The fewest rows that make columns worthwhile.
const ROWS: u64 = 16;

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
    arranged: Permutation,
    /// The number of slices whose elements alternate; 1 if the elements of each slice are adjacent.
    width: u64,
    /// The original selection, if it is in chunks.
    in_chunks: Option<Chosen>,
}

/// The slices of each period after which bands may end, without dividing a chunk or a group of
/// columns.
struct BandEnds {
    ends: Vec<u64>,
    period: u64,
}

impl BandEnds {
    /// Whether there is an end within any `most` slices.
    fn fit(&self, most: u64) -> bool {
        let last = self.ends.last().map_or(0, |end| self.period - end);
        self.ends.array_windows().map(|[end, next]| next - end).chain([last]).all(|it| it <= most)
    }

    /// The end of the band of at most `most` slices that begins with slice `first`; `None` if there
    /// is no such end.
    fn of_band(&self, first: u64, most: u64) -> Option<u64> {
        let last = first.saturating_add(most);
        let period = last / self.period * self.period;
        let before = self.ends.partition_point(|end| period.saturating_add(*end) <= last);
        let end = period + self.ends.get(before.checked_sub(1)?)?;
        Some(end).filter(|end| *end > first)
    }
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
        let (apart, beside) = staying.split_at(stay - beside);
        let fits = |width: &u64| len(others) >= Some(ROWS) && *width <= most_columns(empty);
        let width = len(beside).filter(fits).unwrap_or(1);
        let arranged = match width {
            0 | 1 => axes.clone(),
            _ => [apart, others, beside].concat(),
        };
        let arranged = Permutation::of_axes(arranged);
        let lens = staying.iter().map(|&axis| plain.shape[axis]).collect();
        let chosen =
            Chosen::arranged(tensor, index, transpose, Order::C, |axes| axes.then(&arranged))?;
        let axes = Permutation::of_axes(axes);
        let in_chunks = Some(plain).filter(|plain| plain.region.chunked().is_some());
        Ok(Slices { chosen, reduced, axes, lens, arranged, width: width.max(1), in_chunks })
    }

    /// The lengths of the axes that stay, in the order of the slices.
    pub fn lens(&self) -> &[u64] {
        &self.lens
    }

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

    /// The shape of the results, one element for each slice; with `keepdims`, reduced axes stay
    /// with length 1.
    pub(super) fn shape(&self, keepdims: bool) -> Vec<u64> {
        let mut shape = vec![1; self.reduced.len()];
        for (&axis, &len) in self.axes.axes().iter().zip(self.lens()) {
            shape[axis] = len;
        }
        let stays = |axis: &usize| keepdims || !self.reduced[*axis];
        (0..shape.len()).filter(stays).map(|axis| shape[axis]).collect()
    }

    /// For each axis of [`shape`](Slices::shape), the axis of the tensor that it comes from, if
    /// any.
    pub(super) fn source_axes(&self, keepdims: bool) -> Vec<Option<usize>> {
        let axes = self.arranged.inverse().permute(&self.chosen.axes);
        let stays = |axis: &usize| keepdims || !self.reduced[*axis];
        (0..axes.len()).filter(stays).map(|axis| axes[axis]).collect()
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

    /// The summary of the first slice; there is at least one.
    pub fn summary(
        &self,
        input: &mut Input,
        workers: &Workers,
        progress: &Progress,
    ) -> Result<Summary, Error> {
        let empty = self.nothing(Facts::ALL)?;
        let mut found = empty.clone();
        self.summaries(input, &empty, workers, progress, |_, band| {
            band.iter().take(1).for_each(|summary| found.clone_from(summary));
            Ok::<(), Error>(())
        })?;
        Ok(found)
    }

    /// Read the input once: `visit` gets the summaries of the slices in order, each begun from
    /// `empty`, a band at a time, with the number of the first.
    pub fn summaries<S: Fold, E: From<Error>>(
        &self,
        input: &mut Input,
        empty: &S,
        workers: &Workers,
        progress: &Progress,
        mut visit: impl FnMut(u64, &[S]) -> Result<(), E>,
    ) -> Result<(), E> {
        let count = self.count();
        let len = self.len();
        let itemsize = self.chosen.dtype.item_bits() / 8;
        let most = ((BAND_BYTES / empty.bytes()) as u64).max(1);
        let of_chunks = self.ends_of_chunks().filter(|ends| ends.fit(most));
        let mut spooled = None;
        if let Some(plain) = self.in_chunks.as_ref().filter(|_| most < count && of_chunks.is_none())
        {
            spooled = Some(self.keep(plain, input, workers)?);
        }
        let ends = of_chunks.unwrap_or(BandEnds { ends: vec![0], period: self.width });
        let (input, take) = match &mut spooled {
            Some((input, chosen)) => (input, chosen.take(0)),
            None => (input, self.chosen.take(0)),
        };
        if most < count {
            // which positions are bad does not depend on the bands
            check_indices(&take, workers, false)?;
        }
        // reused for each band, since allocating so much memory takes time
        let mut adding = Vec::new();
        let mut complete = Vec::new();
        let mut first = 0;
        while first < count {
            let end = ends.of_band(first, most).unwrap_or(first.saturating_add(most));
            let slices = end.min(count) - first;
            let bytes = |slice: u64| slice * len * itemsize;
            adding.resize_with(slices as usize, || Mutex::new(empty.clone()));
            let mut band = Band {
                itemsize,
                len,
                width: self.width,
                empty,
                idle: Mutex::default(),
                slices: adding,
            };
            if len > 0 {
                let range = bytes(first)..bytes(first + slices);
                band.read(&take, range, input, workers, progress)?;
            }
            complete.clear();
            complete.extend(band.summaries());
            adding = band.slices;
            visit(first, &complete)?;
            first += slices;
        }
        Ok(())
    }

    /// The ends of bands that divide no chunk; `None` if it is not known which elements lie in one.
    fn ends_of_chunks(&self) -> Option<BandEnds> {
        let (chunked, view) = self.chosen.region.chunked()?.parts()?;
        let firsts = chunked.first_items(view.runs());
        if firsts.len() != self.chosen.shape.len() {
            return None;
        }
        let axes = self.arranged.axes().iter().zip(&self.chosen.shape).zip(&firsts);
        let mut staying = axes.filter(|((axis, _), _)| !self.reduced[**axis]);
        // chunks along axes before the first one along which they are long are in one band in any
        // case
        let long = staying.find(|((_, len), firsts)| (firsts.len() as u64) < **len);
        let inner: u64 = staying.map(|((_, len), _)| len).product();
        let (period, ends) = match long {
            Some(((_, len), firsts)) => (len * inner, firsts.iter().map(|it| it * inner).collect()),
            None => (1, vec![0]),
        };
        // a band does not divide columns either
        let of_columns = BandEnds { ends: vec![0], period: self.width };
        Some(if period > self.width { BandEnds { ends, period } } else { of_columns })
    }

    /// Put the original selection in scratch; returns the input there, and the take of its elements.
    fn keep(
        &self,
        plain: &Chosen,
        input: &mut Input,
        workers: &Workers,
    ) -> Result<(Input, Chosen), Error> {
        let takes = [Take { unit: 1, ..plain.take(0) }];
        let tensor = TensorInfo::new(plain.dtype.clone(), plain.shape.clone(), Order::C, 0);
        let location = input.location.clone();
        let tensors = [tensor.clone()].into_iter().collect();
        let spooled = in_scratch(&location, tensors, plain.bytes(), &takes, workers, |job| {
            job.copy(input, &takes)
        })?;
        let index = OpenIndex {
            expr: &IndexExpr::default(),
            rules: Rules::default(),
            lists: &Lists::default(),
        };
        let chosen = Chosen::arranged(&tensor, index, &Transposition::None, Order::C, |axes| {
            axes.then(&self.arranged)
        })?;
        Ok((spooled, chosen))
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

fn most_columns(empty: Option<impl Fold>) -> u64 {
    let Some(mut empty) = empty else { return 0 };
    let of_band = BAND_BYTES / empty.bytes();
    empty.by_columns().map_or(0, |(_, bytes)| of_band.min(COLUMN_BYTES / bytes) as u64)
}

/// Summaries of adjacent slices, to which any number of workers add.
struct Band<'a, S> {
    itemsize: u64,
    len: u64,
    width: u64,
    empty: &'a S,
    slices: Vec<Mutex<S>>,
    /// Columns that no worker uses now, and the group of slices of each.
    idle: Mutex<Vec<(u64, Columns)>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<S: Fold> Band<'_, S> {
    fn read(
        &self,
        take: &Take,
        range: Range<u64>,
        input: &mut Input,
        workers: &Workers,
        progress: &Progress,
    ) -> Result<(), Error> {
        let look = |offset: u64, bytes: &[u8]| {
            self.add(offset / self.itemsize, bytes);
            Ok(())
        };
        let order = WriteOrder::Any;
        if range == (0..take.bytes()) {
            let takes = std::slice::from_ref(take);
            return scan(order, takes, workers, progress, look, |job| job.copy(input, takes));
        }
        let source = input.spool_watched(progress)?;
        let takes = take.window(range, 0);
        scan(order, &takes, workers, progress, look, |job| {
            job.run(job.sink(), input, source.as_ref(), &takes)
        })
    }

    /// Add elements, from element `element` of the band on.
    fn add(&self, mut element: u64, mut bytes: &[u8]) {
        if self.width > 1 {
            self.add_rows(element, bytes);
            return;
        }
        while !bytes.is_empty() {
            let slice = &self.slices[(element / self.len) as usize];
            let first = element % self.len;
            let items = (self.len - first).min(bytes.len() as u64 / self.itemsize);
            let (now, later) = bytes.split_at((items * self.itemsize) as usize);
            if items >= ALONE {
                let mut alone = self.empty.clone();
                alone.add(now, first);
                locked(slice).merge(alone);
            } else {
                locked(slice).add(now, first);
            }
            bytes = later;
            element += items;
        }
    }

    /// Add elements of alternating slices, from element `element` of the band on.
    fn add_rows(&self, mut element: u64, mut bytes: &[u8]) -> Option<()> {
        let group_len = self.len * self.width;
        let mut empty = self.empty.clone();
        let (numbers, _) = empty.by_columns()?;
        let each = numbers.len();
        let taken = locked(&self.idle).pop();
        let (mut group, mut columns) =
            taken.unwrap_or_else(|| (0, Columns::new(&numbers[0], self.width as usize * each)));
        while !bytes.is_empty() {
            if element / group_len != group {
                self.flush(group, &mut columns);
                group = element / group_len;
            }
            let first = element % group_len;
            let items = (group_len - first).min(bytes.len() as u64 / self.itemsize);
            let (now, later) = bytes.split_at((items * self.itemsize) as usize);
            let reach: Reach<'_> = &|column, look| self.reach(group, column, each, look);
            columns.add(now, first * each as u64, reach);
            bytes = later;
            element += items;
        }
        locked(&self.idle).push((group, columns));
        Some(())
    }

    fn flush(&self, group: u64, columns: &mut Columns) {
        let each = self.empty.clone().by_columns().map_or(1, |(numbers, _)| numbers.len());
        columns.flush(&|column, look| self.reach(group, column, each, look));
    }

    /// Call `look` for the values of a column, `each` of which belong to one element.
    fn reach(&self, group: u64, column: usize, each: usize, look: &mut dyn FnMut(&mut Summary)) {
        let slice = group as usize * self.width as usize + column / each;
        if let Some((numbers, _)) = locked(&self.slices[slice]).by_columns() {
            look(&mut numbers[column % each]);
        }
    }

    /// Take the complete summaries.
    fn summaries(&mut self) -> impl Iterator<Item = S> {
        for (group, mut columns) in std::mem::take(&mut *locked(&self.idle)) {
            self.flush(group, &mut columns);
        }
        let count = (self.width > 1).then_some(self.len);
        self.slices.drain(..).map(move |slice| {
            let mut slice = slice.into_inner().unwrap_or_else(PoisonError::into_inner);
            if let (Some(count), Some((numbers, _))) = (count, slice.by_columns()) {
                numbers.iter_mut().for_each(|summary| summary.count = count);
            }
            slice
        })
    }
}
