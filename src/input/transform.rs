//! Changes to tensors before an index is applied: fields taken in place of structures, elements
//! scaled, another shape.
//!
//! A tensor in another shape has other strides. If no strides give its elements in C order, as in a
//! Fortran-order file whose axes are merged, it is [reshaped](StorageKind::Reshaped): its elements
//! are put in order in scratch before they are read.

use std::sync::Arc;

use super::field::take_fields;
use super::opened::Input;
use crate::error::{Cause, Error, Fault, faults};
use crate::runs::{Axis, reshaped};
use crate::shape::{NewShape, NoDimension, Order, ReshapeError, contiguous_strides};
use crate::tensor::{
    Annotations, LazyAnnotations, Scaling, ScalingFault, Storage, StorageKind, TensorInfo,
};

/// Changes to tensors before an index is applied; none by default.
#[derive(Clone, Debug, Default)]
pub struct Transform {
    /// The field taken in place of structures, by name or title; `a.b` is a field of a field.
    /// Several names, `x,y`, make a structure without padding, as NumPy's
    /// `repack_fields(a[['x', 'y']])`; so does one name with a comma, `x,`. A field whose own name
    /// has a dot or a comma comes first.
    pub fields: Option<String>,
    /// The number that elements are multiplied with, and the number that is added.
    pub scaling: Option<Scaling>,
    /// The new shape, if it changes.
    pub shape: Option<NewShape>,
}

/// A reshape that would cut blocks of elements.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("elements are stored in blocks of {0}, which stay together on the last axis")]
pub struct CutBlocks(pub u64);

impl Fault for ReshapeError {}
faults!(Index: NoDimension);
impl Fault for CutBlocks {}
impl Fault for ScalingFault {}

impl Input {
    /// Apply the changes to the tensors with these numbers.
    pub fn transform(&mut self, transform: &Transform, numbers: &[usize]) -> Result<(), Error> {
        if transform.is_plain() {
            return Ok(());
        }
        let several = numbers.len() > 1;
        let transform = transform.of_several(several);
        for &number in numbers {
            let Some(tensor) = self.contents.tensors.get(number) else { continue };
            let other = transform.of(&tensor);
            let other = other.map_err(|cause| self.failed_tensor(&tensor, several, cause))?;
            Arc::make_mut(&mut self.contents.tensors).replace(number, &other);
        }
        Ok(())
    }
}

impl Transform {
    pub fn is_plain(&self) -> bool {
        self.fields.is_none() && self.scaling.is_none() && self.shape.is_none()
    }

    /// The changes for one of several tensors, of which only numbers are scaled, or for the only
    /// tensor.
    #[must_use]
    pub(crate) fn of_several(&self, several: bool) -> Transform {
        let scaling = self.scaling.clone();
        let scaling = scaling.map(|scaling| Scaling { numbers_alone: several, ..scaling });
        Transform { scaling, ..self.clone() }
    }

    /// The changed tensor.
    pub fn of(&self, tensor: &TensorInfo) -> Result<TensorInfo, Cause> {
        let fields = self.fields.as_ref().map(|names| take_fields(tensor, names)).transpose()?;
        let tensor = fields.as_ref().unwrap_or(tensor);
        let scaled = self.scaling.as_ref().map(|scaling| scaling.of(tensor)).transpose()?;
        let tensor = scaled.as_ref().unwrap_or(tensor);
        self.shape.as_ref().map_or_else(|| Ok(tensor.clone()), |shape| in_shape(tensor, shape))
    }
}

/// A tensor in another shape, with its elements in C order. Its axes have no names.
fn in_shape(tensor: &TensorInfo, to: &NewShape) -> Result<TensorInfo, Cause> {
    let mut shape = to.of(&tensor.element_shape())?;
    if let Some(block) = tensor.dtype.blocks() {
        let cut = CutBlocks(block.elements);
        let last = shape.last_mut().filter(|len| len.is_multiple_of(block.elements)).ok_or(cut)?;
        *last /= block.elements;
    }
    if shape == tensor.shape {
        return Ok(tensor.clone());
    }
    let kind = match &tensor.storage.kind {
        StorageKind::Packed(stored, unpacking) => {
            StorageKind::Packed(in_shape(stored, to)?.into(), Arc::clone(unpacking))
        }
        _ => kind_in(tensor, &shape),
    };
    let annotated = tensor.annotated.clone().map(|all| {
        LazyAnnotations::by(move || Annotations { dimension_names: Vec::new(), ..all.get() })
    });
    let storage = Storage { kind, ..tensor.storage.clone() };
    Ok(TensorInfo {
        name: tensor.name.clone(),
        dtype: tensor.dtype.clone(),
        shape,
        storage,
        annotated,
    })
}

/// The storage of a tensor that has another shape.
fn kind_in(tensor: &TensorInfo, shape: &[u64]) -> StorageKind {
    let item = tensor.dtype.item_bits() / 8;
    let (first, strides, ranges) = match &tensor.storage.kind {
        StorageKind::Contiguous(Order::C) => return StorageKind::Contiguous(Order::C),
        _ if tensor.bytes() == 0 => return StorageKind::Contiguous(Order::C),
        StorageKind::Contiguous(Order::F) => {
            (0, contiguous_strides(&tensor.shape, item, Order::F), Vec::new())
        }
        StorageKind::Strided { first, strides, ranges } => {
            (*first, Some(strides.clone()), ranges.clone())
        }
        StorageKind::Chunks(_) | StorageKind::Reshaped(_) | StorageKind::Packed(..) => {
            (0, None, Vec::new())
        }
    };
    let axes = |strides: Vec<i64>| -> Vec<Axis> {
        let axes = tensor.shape.iter().zip(strides);
        axes.map(|(&len, stride)| Axis { len, stride }).collect()
    };
    match strides.and_then(|strides| reshaped(&axes(strides), item, shape)) {
        Some(axes) => {
            let strides = axes.iter().map(|axis| axis.stride).collect();
            StorageKind::Strided { first, strides, ranges }
        }
        None => StorageKind::Reshaped(Arc::new(tensor.clone())),
    }
}
