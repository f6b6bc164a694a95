//! The slabs of a tensor that lists of positions name: the axes of the result, and the lists.
//!
//! It has the rules of shapes for gather_nd, gather, take_along_axis and NumPy's advanced indexing. A
//! [`Gather`](super::Gather) reads the slabs, a scatter writes them.

use std::cmp::Reverse;
use std::{mem, slice};

use super::mask::{Mask, MaskPositions};
use super::positions::{ErrorContext, Indices, Positions, Tuples, check_batch, indexed_axes};
use super::rows::{OutputAxis, Rows};
use super::shuffle::ComputedPositions;
use super::{GatherError, Options};
use crate::index::resolve::{OtherPositions, SelectedList, Selection, Shuffled};
use crate::runs::{Axis, Runs, coalesce, split_axes};
use crate::shape::{Permutation, normalize_axis};
use crate::view::{Layout, ViewError};

#[derive(Clone, Debug)]
pub struct Indexed {
    pub(super) first: i64,
    pub(super) axes: Vec<OutputAxis>,
    pub(super) lists: Vec<Tuples>,
}

impl Indexed {
    /// TensorFlow's GatherNd: the slabs at the tuples on the last axis of `indices`, which index
    /// the axes after the batches. The result has shape
    /// `indices.layout.shape[:-1] + params.shape[batch_dims + N:]` for tuples of N numbers. Tuples
    /// of no numbers and slabs of no elements are allowed.
    pub fn nd(
        params: &Layout<'_>,
        indices: &Indices<'_>,
        options: &Options,
    ) -> Result<Indexed, GatherError> {
        let batch_dims = options.batch_dims;
        let ndim = params.shape.len();
        let Some((&count, shape)) = indices.layout.shape.split_last() else {
            return Err(GatherError::NoTuples);
        };
        check_batch(params.shape, indices.layout.shape, batch_dims, 1)?;
        let count = usize::try_from(count).ok().filter(|&count| count <= ndim - batch_dims);
        let count = count.ok_or_else(|| GatherError::LongTuples {
            indices: indices.layout.shape.to_vec(),
            params: params.shape.to_vec(),
            batch_dims,
        })?;
        let slab = batch_dims + count;
        let named = indexed_axes(params, batch_dims..slab)?;
        let layout = &indices.layout;
        let integers = indices.integers()?;
        let context = ErrorContext::Params { shape: params.shape.to_vec(), batch_dims };
        let positions = Positions::new(layout, integers, shape, named, options, context)?;
        let strides = params.strides()?;
        let indexed = shape.iter().enumerate().map(|(axis, &len)| {
            let stride = if axis < batch_dims { strides[axis] } else { 0 };
            OutputAxis::plain(Axis { len, stride }).along(axis)
        });
        let slab = (slab..ndim).map(|axis| OutputAxis::of(params, strides, axis));
        Ok(Indexed::by(positions, indexed.chain(slab).collect()))
    }

    /// TensorFlow's GatherV2, NumPy's take: the slabs at positions along an axis; the result has shape
    /// `params.shape[:axis] + indices.layout.shape[batch_dims:] + params.shape[axis + 1:]`.
    ///
    /// A negative `axis` counts from the end.
    pub fn along(
        params: &Layout<'_>,
        indices: &Indices<'_>,
        axis: i64,
        options: &Options,
    ) -> Result<Indexed, GatherError> {
        let batch_dims = options.batch_dims;
        let ndim = params.shape.len();
        let axis = normalize_axis(axis, ndim).ok_or(GatherError::Axis { axis, ndim })?;
        if batch_dims > axis {
            return Err(GatherError::BatchAxis { batch_dims, axis });
        }
        check_batch(params.shape, indices.layout.shape, batch_dims, 0)?;
        let strides = params.strides()?;
        let positions = along_axis(params, indices, axis, options)?;
        let whole = |axis: usize| OutputAxis::of(params, strides, axis);
        let named = indices.layout.shape.iter().enumerate().skip(batch_dims);
        let mut axes: Vec<OutputAxis> =
            (0..batch_dims).map(|axis| whole(axis).along(axis)).collect();
        axes.extend((batch_dims..axis).map(whole));
        axes.extend(named.map(|(dim, &len)| OutputAxis::plain(Axis { len, stride: 0 }).along(dim)));
        axes.extend((axis + 1..ndim).map(whole));
        Ok(Indexed::by(positions, axes))
    }

    /// One element for each index (NumPy's take_along_axis and put_along_axis, ONNX's
    /// GatherElements): the result has the shape of `indices`, broadcast against that of the params
    /// but for `axis`. A negative `axis` counts from the end.
    pub fn elements(
        params: &Layout<'_>,
        indices: &Indices<'_>,
        axis: i64,
        options: &Options,
    ) -> Result<Indexed, GatherError> {
        let ndim = params.shape.len();
        let shape = indices.layout.shape;
        let gathered = normalize_axis(axis, ndim).ok_or(GatherError::Axis { axis, ndim })?;
        if shape.len() != ndim {
            return Err(GatherError::ElementsRank { params: ndim, indices: shape.len() });
        }
        let positions = along_axis(params, indices, gathered, options)?;
        let strides = params.strides()?;
        let axis = |axis: usize| {
            let ours = params.shape[axis];
            let theirs = shape[axis];
            let dims = vec![Some(axis).filter(|_| theirs != 1)];
            if axis == gathered {
                Some(OutputAxis { len: theirs, stride: 0, dims })
            } else if ours == theirs || theirs == 1 {
                Some(OutputAxis { len: ours, stride: strides[axis], dims })
            } else {
                (ours == 1).then_some(OutputAxis { len: theirs, stride: 0, dims })
            }
        };
        let axes: Option<Vec<OutputAxis>> = (0..ndim).map(axis).collect();
        let axes = axes.ok_or_else(|| GatherError::ElementsShape {
            params: params.shape.to_vec(),
            indices: shape.to_vec(),
            axis: gathered,
        })?;
        Ok(Indexed::by(positions, axes))
    }

    fn by(positions: Positions, axes: Vec<OutputAxis>) -> Indexed {
        Indexed { first: 0, axes, lists: vec![Tuples::Numbers(positions)] }
    }

    pub fn shape(&self) -> Vec<u64> {
        self.axes.iter().map(|axis| axis.len).collect()
    }

    /// Split each axis into axes of these lengths, if any are given.
    pub(super) fn split(mut self, splits: &[Vec<u64>]) -> Result<Indexed, GatherError> {
        if splits.is_empty() {
            return Ok(self);
        }
        for (axis, lens) in mem::take(&mut self.axes).into_iter().zip(splits) {
            if lens.len() == 1 {
                self.axes.push(axis);
            } else if axis.is_indexed() {
                return Err(GatherError::NoStrides);
            } else {
                let whole = Axis { len: axis.len, stride: axis.stride };
                let parts = split_axes(&[whole], slice::from_ref(lens));
                self.axes.extend(parts.into_iter().map(OutputAxis::plain));
            }
        }
        Ok(self)
    }

    /// The number of leading axes of the result that count rows: all up to the last that goes along
    /// a list. The other axes are the slab.
    pub(crate) fn row_axes(&self) -> usize {
        let moves = |axis: &OutputAxis| axis.len != 1 && axis.is_indexed();
        self.axes.iter().rposition(moves).map_or(0, |last| last + 1)
    }

    /// The rows, and the axes of the slab, in elements.
    pub(crate) fn rows(self, params: &Layout<'_>) -> Result<(Rows, Vec<Axis>), ViewError> {
        let at = self.row_axes();
        let Indexed { first, mut axes, lists } = self;
        let slab = axes.split_off(at);
        axes.retain(|axis| axis.len != 1);
        let offset = params.start()? + params.bytes(first)?;
        let slab = slab.iter().map(|axis| Axis { len: axis.len, stride: axis.stride }).collect();
        Ok((Rows::new(params, offset, &axes, lists)?, slab))
    }

    /// The order of the axes of the result that follows the order of the params as closely as the
    /// lists allow.
    pub(super) fn params_order(&self, params: &Layout<'_>) -> Result<Permutation, ViewError> {
        let longest_stride = |list: &Tuples| {
            let strides = list.indexed().iter().map(|axis| axis.stride.unsigned_abs());
            strides.max().unwrap_or(0)
        };
        let lists: Vec<u64> = self.lists.iter().map(longest_stride).collect();
        let mut order = Vec::with_capacity(self.axes.len());
        for (number, axis) in self.axes.iter().enumerate() {
            let own = params.bytes(axis.stride)?.unsigned_abs();
            let along = axis.dims.iter().zip(&lists).filter(|(dim, _)| dim.is_some());
            order.push((Reverse(along.fold(own, |most, (_, list)| most.max(*list))), number));
        }
        order.sort_unstable();
        Ok(Permutation::of_axes(order.into_iter().map(|(_, number)| number).collect()))
    }

    /// Whether it is known that no element occurs twice: each list is from a mask, or computed.
    pub(crate) fn is_unique(&self) -> bool {
        let is_unique = |list: &Tuples| matches!(list, Tuples::Mask(_) | Tuples::Computed(_));
        let by_unique = |axis: &OutputAxis| {
            let mut dims = axis.dims.iter().zip(&self.lists);
            dims.any(|(dim, list)| dim.is_some() && is_unique(list))
        };
        let mut indexed = self.axes.iter().filter(|axis| axis.len != 1 && axis.is_indexed());
        indexed.all(by_unique)
    }
}

/// Take each number of `indices` as a position on one axis of `params`.
fn along_axis(
    params: &Layout<'_>,
    indices: &Indices<'_>,
    axis: usize,
    options: &Options,
) -> Result<Positions, GatherError> {
    let named = indexed_axes(params, axis..axis + 1)?;
    let layout = &indices.layout;
    let context = ErrorContext::Axis(axis);
    Positions::new(layout, indices.integers()?, layout.shape, named, options, context)
}

/// A slab, starting at its first byte, from axes in elements.
pub(crate) fn slab_runs(params: &Layout<'_>, axes: &[Axis]) -> Result<Runs, ViewError> {
    let (mut axes, run) = coalesce(axes, params.item_units());
    for axis in &mut axes {
        axis.stride = params.bytes(axis.stride)?;
    }
    Ok(Runs { offset: 0, axes, run: params.bytes(run as i64)? as u64 })
}

#[derive(Clone, Debug)]
pub enum ListTensor<'a> {
    /// Tuples on the last axis, all in bounds: a list written in the index.
    Tuples(Indices<'a>),
    /// Integers, negative ones counting from the end.
    Integers(Indices<'a>),
    Mask(Mask),
    Shuffle(Shuffled),
    Others(OtherPositions),
}

impl Indexed {
    /// The slabs that a selection with lists names; `lists` are the lists' contents.
    pub fn select(
        params: &Layout<'_>,
        selection: &Selection,
        lists: &[ListTensor<'_>],
    ) -> Result<Indexed, GatherError> {
        let (first, unlisted) = params.select(selection)?;
        let only_axis = |number: usize| {
            let axes = indexed_axes(params, selection.lists[number].axes.clone())?;
            let [axis] = axes[..] else { return Err(ViewError::TooLarge.into()) };
            Ok::<_, GatherError>(axis)
        };
        let tuples = |(number, tensor): (usize, &ListTensor<'_>)| {
            Ok(match tensor {
                ListTensor::Tuples(indices) | ListTensor::Integers(indices) => {
                    let has_tuples = matches!(tensor, ListTensor::Tuples(_));
                    Tuples::Numbers(listed(params, selection, number, indices, has_tuples)?)
                }
                ListTensor::Mask(mask) => {
                    let axes = indexed_axes(params, selection.lists[number].axes.clone())?;
                    Tuples::Mask(MaskPositions::new(mask.clone(), &axes)?)
                }
                ListTensor::Shuffle(shuffled) => {
                    Tuples::Computed(ComputedPositions::shuffled(shuffled, only_axis(number)?))
                }
                ListTensor::Others(others) => {
                    Tuples::Computed(ComputedPositions::others(others, only_axis(number)?))
                }
            })
        };
        // NumPy does not check lists that are broadcast to nothing
        let looked_at = if selection.lists_are_empty() { &[] } else { lists };
        let lists = looked_at.iter().enumerate().map(tuples).collect::<Result<_, GatherError>>()?;
        Ok(Indexed { first, axes: output_axes(selection, &unlisted), lists })
    }
}

/// List `number` of a selection as positions on axes of `params`; negative ones count from the end.
/// Tuples are on its last axis, if it has tuples; otherwise each number is a position.
fn listed(
    params: &Layout<'_>,
    selection: &Selection,
    number: usize,
    indices: &Indices<'_>,
    has_tuples: bool,
) -> Result<Positions, GatherError> {
    let SelectedList { item, axes, .. } = &selection.lists[number];
    let context = ErrorContext::List { list: number, item: *item, axis: axes.start };
    let named = indexed_axes(params, axes.clone())?;
    let layout = &indices.layout;
    let integers = indices.integers()?;
    // NumPy casts an index array to its signed 64-bit integers, but not a single number
    let wraps = !layout.shape.is_empty() && !has_tuples;
    let integers = if wraps { integers.wrapped() } else { integers };
    let shape = match layout.shape {
        [shape @ .., _] if has_tuples => shape,
        shape => shape,
    };
    let options = Options { negative: true, ..Options::default() };
    Positions::new(layout, integers, shape, named, &options, context)
}

/// The axes of the result of a selection; `unlisted` are the axes without a list.
fn output_axes(selection: &Selection, unlisted: &[Axis]) -> Vec<OutputAxis> {
    let mut unlisted = unlisted.iter().map(|&axis| OutputAxis::plain(axis));
    let mut axes = Vec::new();
    let mut before = 0;
    for block in &selection.blocks {
        axes.extend(unlisted.by_ref().take(block.at - before));
        before = block.at;
        let ndim = block.shape.len();
        let nowhere = vec![None; selection.lists.len()];
        let axis = |&len| OutputAxis { len, stride: 0, dims: nowhere.clone() };
        let mut own: Vec<OutputAxis> = block.shape.iter().map(axis).collect();
        for list in block.lists.clone() {
            let shape = &selection.lists[list].shape;
            let axes = own[ndim - shape.len()..].iter_mut();
            for (dim, (axis, &len)) in axes.zip(shape).enumerate() {
                axis.dims[list] = Some(dim).filter(|_| len == axis.len);
            }
        }
        axes.extend(own);
    }
    axes.extend(unlisted);
    axes
}
