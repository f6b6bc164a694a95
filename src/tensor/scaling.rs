//! Scaling of elements by the user's factor and offset, as NumPy computes `a * F + N`.

use std::sync::Arc;

use super::{LazyAnnotations, Storage, StorageKind, TensorInfo, Unpacking};
use crate::dtype::{DType, Endian, NumberKind, Scalar};
use crate::element::FloatFormat;

/// The factor and the offset of elements, and the replacement for NaN afterwards. Integers become float64, floats
/// keep their type; each step is rounded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scaling {
    pub multiply: Option<f64>,
    pub add: Option<f64>,
    pub nan: Option<f64>,
    /// Whether tensors of dtypes that cannot be scaled stay as they are; for several tensors.
    pub numbers_alone: bool,
}

/// The error for elements that are neither integers nor floats of whole bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("elements of dtype {0} are not scaled, only integers and floats are")]
pub struct ScalingFault(pub DType);

impl Scaling {
    pub fn of(&self, tensor: &TensorInfo) -> Result<TensorInfo, ScalingFault> {
        let scaled = match tensor.dtype {
            DType::Scalar(scalar, _) => self.result(scalar),
            _ => None,
        };
        let Some(scalar) = scaled else {
            let dtype = tensor.dtype.clone();
            return if self.numbers_alone { Ok(tensor.clone()) } else { Err(ScalingFault(dtype)) };
        };
        let Scaling { multiply, add, nan, .. } = *self;
        let is_integer = FloatFormat::of(scalar).is_none();
        if is_integer || multiply.or(add).or(nan).is_none() {
            // no integer is NaN
            return Ok(tensor.clone());
        }
        // a number of Python takes the dtype of the array
        let format = FloatFormat::of(scalar);
        let rounded = |value: f64| format.map_or(value, |format| format.nearest(value));
        let to = DType::Scalar(scalar, Endian::Little);
        let unpacking = Unpacking {
            from: tensor.dtype.clone(),
            to: to.clone(),
            fills: Vec::new(),
            scale: multiply.map(rounded),
            offset: add.map(rounded),
            nan: nan.map(rounded),
        };
        let kind = StorageKind::Packed(tensor.clone().into(), Arc::new(unpacking));
        let storage = Storage { kind, ..tensor.storage.clone() };
        let annotated = tensor.annotated.clone();
        let annotated = annotated.map(|it| LazyAnnotations::by(move || it.get().without_packing()));
        let TensorInfo { name, shape, .. } = tensor.clone();
        Ok(TensorInfo { name, dtype: to, shape, storage, annotated })
    }

    /// The type of the results; `None` for elements that cannot be scaled.
    fn result(&self, of: Scalar) -> Option<Scalar> {
        match of.kind() {
            NumberKind::Signed | NumberKind::Unsigned => {
                Some(if self.multiply.or(self.add).is_some() { Scalar::F64 } else { of })
            }
            NumberKind::Float => Some(of).filter(|of| of.bits() >= 8),
            NumberKind::Bool | NumberKind::Complex => None,
        }
    }
}
