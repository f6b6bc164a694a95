//! What lists of positions take of a tensor: the axes of the result, and the lists.
//!
//! Owns the shapes of gather_nd, gather, take_along_axis and NumPy's advanced indexing. What is
//! indexed is read by a [`Gather`](super::Gather) and written by a scatter.

use super::mask::{Mask, MaskPositions};
use super::positions::{Indices, Positions, check_batch, indexed_axes};
use super::rows::{OutputAxis, Rows};
use super::tuples::Tuples;
use super::{GatherError, Options};
use crate::index::resolve::Selection;
use crate::runs::{Axis, Runs, coalesce};
use crate::shape::normalize_axis;
use crate::view::{Layout, ViewError};

/// Elements of a tensor that lists of positions name.
#[derive(Clone, Debug)]
pub struct Indexed {
    /// The first element for positions of 0.
    pub(super) first: i64,
    /// The axes of the result.
    pub(super) axes: Vec<OutputAxis>,
    pub(super) lists: Vec<Tuples>,
}

impl Indexed {
    /// gather_nd: the slabs at the tuples on the last axis of `indices`; the result has shape
    /// `indices.layout.shape[:-1] + params.shape[batch_dims + N:]` for tuples of N numbers.
    ///
    /// # Errors
    /// [`GatherError`]. Source: TensorFlow's GatherNd; tuples of no numbers and slabs of no
    /// elements are allowed.
    pub fn nd(
        params: &Layout<'_>,
        indices: &Indices<'_>,
        options: &Options,
    ) -> Result<Indexed, GatherError> {
        let batch_dims = options.batch_dims;
        let positions = Positions::nd(params, indices, batch_dims, options.out_of_range)?
            .with_negative(options.negative);
        let strides = params.strides()?;
        let indexed = positions.shape.iter().enumerate().map(|(axis, &len)| {
            let stride = if axis < batch_dims { strides[axis] } else { 0 };
            OutputAxis::plain(Axis { len, stride }).along(axis)
        });
        let slab = batch_dims + positions.indexed.len();
        let slab = (slab..params.shape.len()).map(|axis| OutputAxis::of(params, strides, axis));
        let axes = indexed.chain(slab).collect();
        Ok(Indexed { first: 0, axes, lists: vec![Tuples::Numbers(positions)] })
    }

    /// gather along an axis (NumPy's take): the result has shape
    /// `params.shape[:axis] + indices.layout.shape[batch_dims:] + params.shape[axis + 1:]`.
    ///
    /// A negative `axis` counts from the end.
    ///
    /// # Errors
    /// [`GatherError`]. Source: TensorFlow's GatherV2.
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
        let positions = Positions::along(params, indices, axis, options.out_of_range)?
            .with_negative(options.negative);
        let whole = |axis: usize| OutputAxis::of(params, strides, axis);
        let mut axes: Vec<OutputAxis> =
            (0..batch_dims).map(|axis| whole(axis).along(axis)).collect();
        axes.extend((batch_dims..axis).map(whole));
        let gathered = indices.layout.shape.iter().enumerate().skip(batch_dims);
        axes.extend(
            gathered.map(|(dim, &len)| OutputAxis::plain(Axis { len, stride: 0 }).along(dim)),
        );
        axes.extend((axis + 1..ndim).map(whole));
        Ok(Indexed { first: 0, axes, lists: vec![Tuples::Numbers(positions)] })
    }

    /// One element for each index (NumPy's take_along_axis and put_along_axis, ONNX's
    /// GatherElements): the result has the shape of `indices`, broadcast against that of the params
    /// but for `axis`. A negative `axis` counts from the end.
    ///
    /// # Errors
    /// [`GatherError`]: indices of another rank, shapes that are not broadcast to one.
    pub fn elements(
        params: &Layout<'_>,
        indices: &Indices<'_>,
        axis: i64,
        options: &Options,
    ) -> Result<Indexed, GatherError> {
        let ndim = params.shape.len();
        let gathered = normalize_axis(axis, ndim).ok_or(GatherError::Axis { axis, ndim })?;
        let (params_shape, indices_shape) = (params.shape.to_vec(), indices.layout.shape.to_vec());
        if indices.layout.shape.len() != ndim {
            return Err(GatherError::ElementsRank {
                params: ndim,
                indices: indices.layout.shape.len(),
            });
        }
        let positions = Positions::along(params, indices, gathered, options.out_of_range)?
            .with_negative(options.negative);
        let strides = params.strides()?;
        let axis = |axis: usize| {
            let (ours, theirs) = (params.shape[axis], indices.layout.shape[axis]);
            let dims = vec![Some(axis).filter(|_| theirs != 1)];
            if axis == gathered {
                return Some(OutputAxis { len: theirs, stride: 0, dims });
            }
            match (ours, theirs) {
                (ours, theirs) if ours == theirs || theirs == 1 => {
                    Some(OutputAxis { len: ours, stride: strides[axis], dims })
                }
                (1, theirs) => Some(OutputAxis { len: theirs, stride: 0, dims }),
                _ => None,
            }
        };
        let axes: Option<Vec<OutputAxis>> = (0..ndim).map(axis).collect();
        let axes = axes.ok_or(GatherError::ElementsShape {
            params: params_shape,
            indices: indices_shape,
            axis: gathered,
        })?;
        Ok(Indexed { first: 0, axes, lists: vec![Tuples::Numbers(positions)] })
    }

    /// The shape of the result.
    pub fn shape(&self) -> Vec<u64> {
        self.axes.iter().map(|axis| axis.len).collect()
    }

    /// How many of the first axes of the result count rows: all up to the last that goes along a
    /// list. The others are the slab.
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

    /// Whether no element is named twice, as far as is known: each index on the axes of lists is
    /// one of a mask.
    pub(crate) fn is_unique(&self) -> bool {
        let is_mask = |list: usize| matches!(self.lists.get(list), Some(Tuples::Mask(_)));
        let by_mask = |axis: &OutputAxis| {
            let mut dims = axis.dims.iter().enumerate();
            dims.any(|(list, dim)| dim.is_some() && is_mask(list))
        };
        let mut indexed = self.axes.iter().filter(|axis| axis.len != 1 && axis.is_indexed());
        indexed.all(by_mask)
    }
}

/// A slab from its first byte on, of axes in elements.
pub(crate) fn slab_runs(params: &Layout<'_>, axes: &[Axis]) -> Result<Runs, ViewError> {
    let (mut axes, run) = coalesce(axes, params.item_units());
    for axis in &mut axes {
        axis.stride = params.bytes(axis.stride)?;
    }
    Ok(Runs { offset: 0, axes, run: params.bytes(run as i64)? as u64 })
}

/// Where the tuples of a list of a selection are.
#[derive(Clone, Debug)]
pub enum ListTensor<'a> {
    /// Tuples on the last axis, all in bounds: a list that was typed.
    Tuples(Indices<'a>),
    /// Integers, negative ones counting from the end.
    Integers(Indices<'a>),
    /// A mask.
    Mask(Mask),
}

impl Indexed {
    /// What a selection with lists takes; `lists` says where each of them is.
    ///
    /// # Errors
    /// [`GatherError`]: sizes past 63 bits, a tensor that is none of integers.
    pub fn select(
        params: &Layout<'_>,
        selection: &Selection,
        lists: &[ListTensor<'_>],
    ) -> Result<Indexed, GatherError> {
        let (first, kept) = params.select(selection)?;
        // NumPy does not look at lists that are broadcast to nothing
        let lists = match selection.lists_are_empty() {
            true => Vec::new(),
            false => tuples(params, selection, lists)?,
        };
        Ok(Indexed { first, axes: output_axes(selection, &kept), lists })
    }
}

/// The axes of the result of a selection; `kept` are those that come from no list.
fn output_axes(selection: &Selection, kept: &[Axis]) -> Vec<OutputAxis> {
    let mut kept = kept.iter().map(|&axis| OutputAxis::plain(axis));
    let (mut axes, mut before) = (Vec::new(), 0);
    for block in &selection.blocks {
        axes.extend(kept.by_ref().take(block.at - before));
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
    axes.extend(kept);
    axes
}

/// The tuples of each list, as positions in the params.
fn tuples(
    params: &Layout<'_>,
    selection: &Selection,
    lists: &[ListTensor<'_>],
) -> Result<Vec<Tuples>, GatherError> {
    let tuples = |(number, tensor): (usize, &ListTensor<'_>)| {
        let list = &selection.lists[number];
        let axes = list.axes.clone();
        Ok(match tensor {
            ListTensor::Tuples(indices) => {
                Tuples::Numbers(Positions::listed(params, indices, axes, number, list.item, true)?)
            }
            ListTensor::Integers(indices) => {
                Tuples::Numbers(Positions::listed(params, indices, axes, number, list.item, false)?)
            }
            ListTensor::Mask(mask) => {
                Tuples::Mask(MaskPositions::new(mask.clone(), &indexed_axes(params, axes)?)?)
            }
        })
    };
    lists.iter().enumerate().map(tuples).collect()
}
