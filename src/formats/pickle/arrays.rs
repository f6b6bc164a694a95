//! Arrays and scalars of NumPy in a pickle. NumPy's functions make them of a dtype, a shape and bytes:
//!
//! ```text
//! _reconstruct(ndarray, (0,), b'b'), then its state (1, shape, dtype, is_fortran, bytes)
//! _frombuffer(bytes, dtype, shape, 'C')                           scalar(dtype, bytes)
//! _frombuffer(bytes, dtype, shape, 'K', order of the axes)
//! ```
//!
//! The state of an array of Python objects has a list of objects instead of the bytes.

use std::cell::OnceCell;
use std::rc::Rc;

use super::dtypes::ArrayDType;
use super::globals::ArrayCall;
use super::texts::BytesLocation;
use super::value::PickleValue;
use super::{MAX_DECODED, PickleError, TensorFault};
use crate::dtype::DType;
use crate::error::Cause;
use crate::shape::{Order, contiguous_strides};
use crate::tensor::{Storage, StorageKind, TensorInfo, data_bytes};

/// An array of NumPy, which may get its elements after it was made.
#[derive(Debug, Default)]
pub(crate) struct ArrayCell {
    made: OnceCell<Result<NumpyArray, PickleError>>,
    objects: OnceCell<ArrayObjects>,
}

#[derive(Debug)]
pub(crate) struct NumpyArray {
    dtype: DType,
    shape: Box<[u64]>,
    order: Order,
    /// The order in which the stored axes become the array's axes; empty if it is the stored order.
    axes: Box<[u64]>,
    pub(crate) location: BytesLocation,
}

/// The objects in an array.
#[derive(Debug)]
pub(crate) struct ArrayObjects {
    pub(crate) shape: Box<[u64]>,
    /// The list of the objects, in C order.
    pub(crate) list: PickleValue,
}

/// A function that turns a value into bytes, if it is a text that stands for bytes.
pub(crate) type BytesOf<'a> = &'a mut dyn FnMut(&PickleValue) -> Result<PickleValue, Cause>;

impl ArrayCell {
    /// Set the state, which is `(version, shape, dtype, whether the order is Fortran's, bytes)`.
    pub(crate) fn build(&self, state: &PickleValue, bytes_of: BytesOf<'_>) -> Result<(), Cause> {
        let call = ArrayCall::Reconstruct;
        let made = match state.items() {
            Some([_, shape, dtype, PickleValue::Bool(is_fortran), bytes]) => {
                let order = if *is_fortran { Order::F } else { Order::C };
                let shape = shape.axes();
                if let (PickleValue::Shared(_), Some(shape)) = (bytes, &shape) {
                    let shape = shape.as_slice().into();
                    let _ = self.objects.set(ArrayObjects { shape, list: bytes.clone() });
                }
                array(call, dtype, shape, order, &bytes_of(bytes)?)
            }
            _ => Err(call.wrong()),
        };
        // if the state is set twice, the first one stays
        let _ = self.made.set(made);
        Ok(())
    }

    /// The bytes that it takes in memory.
    pub(crate) fn bytes(&self) -> usize {
        let objects = self.objects.get().map_or(0, |objects| objects.shape.len());
        let axes = self.get().map_or(0, |made| made.shape.len() + made.axes.len());
        size_of::<ArrayCell>() + (axes + objects) * size_of::<u64>()
    }

    pub(crate) fn get(&self) -> Result<&NumpyArray, PickleError> {
        match self.made.get() {
            Some(made) => made.as_ref().map_err(Clone::clone),
            None => Err(ArrayCall::Reconstruct.wrong()),
        }
    }

    /// The objects, if it is an array of Python objects.
    pub(crate) fn objects(&self) -> Option<&ArrayObjects> {
        let is_of_objects = matches!(self.made.get(), Some(Err(PickleError::Objects)));
        self.objects.get().filter(|_| is_of_objects)
    }
}

/// The result of calling such a function with its arguments.
pub(crate) fn call(
    call: ArrayCall,
    items: &[PickleValue],
    bytes_of: BytesOf<'_>,
) -> Result<PickleValue, Cause> {
    let made = match (call, items) {
        (ArrayCall::DType, [name, ..]) => {
            let name = match name {
                PickleValue::Text(_) | PickleValue::Global(_) => name.clone(),
                _ => PickleValue::None,
            };
            return Ok(PickleValue::ArrayDType(Rc::new(ArrayDType::new(name))));
        }
        (ArrayCall::Reconstruct, _) => return Ok(PickleValue::Array(Rc::default())),
        // the mask of a masked array is in its state
        (ArrayCall::Masked, _) => Err(PickleError::DType("that of a masked array".into())),
        (ArrayCall::Scalar, [dtype, bytes]) => {
            array(call, dtype, Some(Vec::new()), Order::C, &bytes_of(bytes)?)
        }
        (ArrayCall::FromBuffer, [bytes, dtype, shape, PickleValue::Text(order), axes @ ..]) => {
            let made = match &**order {
                "F" => array(call, dtype, shape.axes(), Order::F, &bytes_of(bytes)?),
                _ => array(call, dtype, shape.axes(), Order::C, &bytes_of(bytes)?),
            };
            match axes {
                [axes] if &**order == "K" => made.and_then(|made| made.transposed(axes)),
                _ => made,
            }
        }
        _ => Err(call.wrong()),
    };
    let made = made.into();
    Ok(PickleValue::Array(Rc::new(ArrayCell { made, objects: OnceCell::new() })))
}

fn array(
    call: ArrayCall,
    dtype: &PickleValue,
    shape: Option<Vec<u64>>,
    order: Order,
    bytes: &PickleValue,
) -> Result<NumpyArray, PickleError> {
    let PickleValue::ArrayDType(dtype) = dtype else { return Err(call.wrong()) };
    let dtype = dtype.dtype()?;
    let shape = shape.ok_or_else(|| call.wrong())?;
    let Some(said) = data_bytes(&shape, dtype.item_bits()) else {
        return Err(TensorFault::TooLarge(shape).into());
    };
    let (location, found) = match bytes {
        PickleValue::Bytes(bytes) => (bytes.location, bytes.len),
        // empty bytes may be the result of a call of `bytes`
        PickleValue::Plain if said == 0 => (BytesLocation::Pickle(0), 0),
        _ => return Err(call.wrong()),
    };
    match location {
        BytesLocation::Undecoded => Err(PickleError::Undecoded(MAX_DECODED)),
        _ if found != said => Err(TensorFault::ShortStorage { said, found }.into()),
        _ => Ok(NumpyArray { dtype, shape: shape.into(), order, axes: Box::default(), location }),
    }
}

impl NumpyArray {
    /// The array with its axes in another order.
    fn transposed(self, axes: &PickleValue) -> Result<NumpyArray, PickleError> {
        let axes = axes.axes().ok_or_else(|| ArrayCall::FromBuffer.wrong())?;
        let ndim = self.shape.len();
        if axes.len() != ndim || !(0..ndim as u64).all(|axis| axes.contains(&axis)) {
            return Err(ArrayCall::FromBuffer.wrong());
        }
        Ok(NumpyArray { axes: axes.into(), ..self })
    }

    /// The tensor, without its name, whose first byte is at position `start`.
    pub(crate) fn at(&self, start: u64) -> TensorInfo {
        let NumpyArray { dtype, shape, order, axes, .. } = self;
        let tensor = TensorInfo::new(dtype.clone(), shape.to_vec(), *order, start);
        let strides = contiguous_strides(shape, dtype.item_bits() / 8, Order::C);
        let Some(strides) = strides.filter(|_| !axes.is_empty() && tensor.bytes() > 0) else {
            let moved = axes.iter().map(|&axis| shape[axis as usize]);
            let shape = if axes.is_empty() { shape.to_vec() } else { moved.collect() };
            return TensorInfo { shape, ..tensor };
        };
        let axes = || axes.iter().map(|&axis| axis as usize);
        let strides = axes().map(|axis| strides[axis]).collect();
        let kind = StorageKind::Strided { first: 0, strides, ranges: Vec::new() };
        let shape = axes().map(|axis| shape[axis]).collect();
        let storage = Storage { shard: 0, data: tensor.data(), kind };
        TensorInfo { shape, storage, ..tensor }
    }
}
