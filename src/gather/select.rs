//! What a selection with lists takes: NumPy's advanced indexing.

use super::error::GatherError;
use super::indexed::Indexed;
use super::mask::Mask;
use super::mask_positions::MaskPositions;
use super::positions::{Indices, Positions, indexed_axes};
use super::rows::OutputAxis;
use super::tuples::Tuples;
use crate::index::resolve::Selection;
use crate::runs::Axis;
use crate::view::Layout;

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
