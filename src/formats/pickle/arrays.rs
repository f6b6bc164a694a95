//! Arrays and scalars of NumPy in a pickle: what the functions of NumPy's pickles make of a dtype, a shape and bytes.
//!
//! ```text
//! _reconstruct(ndarray, (0,), b'b'), then its state (1, shape, dtype, is_fortran, bytes)
//! _frombuffer(bytes, dtype, shape, 'C')                           scalar(dtype, bytes)
//! dtype('f4', False, True), then its state (3, '<', None, None, None, -1, -1, 0)
//! ```
//!
//! Bytes lie in the pickle as they are, from protocol 3 on; protocol 2 writes them as the characters of Latin-1, in
//! UTF-8, which are decoded.

use std::cell::OnceCell;
use std::io::BufRead;
use std::rc::Rc;

use super::globals::{ArrayCall, ElementType, Global};
use super::ops::{EARLY, damaged};
use super::value::PickleValue;
use super::{PickleError, TensorFault};
use crate::dtype::{DType, Endian};
use crate::error::Cause;
use crate::formats::npy;
use crate::shape::Order;
use crate::tensor::{TensorInfo, data_bytes};

/// The most bytes of elements that are decoded.
const MAX_DECODED: usize = 64_000_000;

/// Bytes of a pickle.
#[derive(Debug)]
pub(crate) struct PickleBytes {
    /// Where they are few, as the characters of Latin-1.
    pub(crate) key: Option<Box<str>>,
    pub(crate) place: BytesPlace,
    pub(crate) len: u64,
}

/// Where bytes of a pickle are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BytesPlace {
    /// In the pickle, from this position of its source on.
    Pickle(u64),
    /// Among those that were decoded, from this one on.
    Decoded(u64),
    /// Nowhere: a text of too many bytes.
    Undecoded,
}

/// A dtype of NumPy, which gets its byte order after it was made.
#[derive(Debug)]
pub(crate) struct ArrayDType {
    name: PickleValue,
    state: OnceCell<Result<DType, PickleError>>,
}

/// An array of NumPy, which may get its elements after it was made.
#[derive(Debug, Default)]
pub(crate) struct ArrayCell(OnceCell<Result<NumpyArray, PickleError>>);

#[derive(Debug)]
pub(crate) struct NumpyArray {
    dtype: DType,
    shape: Box<[u64]>,
    order: Order,
    pub(crate) place: BytesPlace,
}

impl ArrayDType {
    /// Set the state, which is `(version, byte order, array, names, fields, size, alignment, flags[, unit])`.
    pub(crate) fn build(&self, state: &PickleValue) {
        // of one that is set twice the first state stays
        let _ = self.state.set(self.built(state.items().unwrap_or_default()));
    }

    fn built(&self, state: &[PickleValue]) -> Result<DType, PickleError> {
        let wrong = || ArrayCall::DType.wrong();
        let [_, PickleValue::Text(order), array, names, _, _, _, _, unit @ ..] = state else {
            return Err(wrong());
        };
        if !matches!((array, names), (PickleValue::None, PickleValue::None)) {
            return Err(PickleError::DType("a structure".into()));
        }
        let name = match &self.name {
            PickleValue::Text(name) => name,
            PickleValue::Global(Global::DType(ElementType::Known(scalar))) => {
                let is_big = &**order == ">" && scalar.bits() > 8;
                return Ok(DType::Scalar(
                    *scalar,
                    if is_big { Endian::Big } else { Endian::Little },
                ));
            }
            _ => return Err(PickleError::DType("a class of another package".into())),
        };
        let unit = match unit {
            [] => String::new(),
            [unit] => {
                let [_, of] = unit.items().ok_or_else(wrong)? else { return Err(wrong()) };
                let [unit, count, ..] = of.items().ok_or_else(wrong)? else { return Err(wrong()) };
                match (unit, count.count()) {
                    (PickleValue::Bytes(unit), Some(count)) => match unit.key.as_deref() {
                        Some("generic") => String::new(),
                        Some(unit) => format!("[{count}{unit}]"),
                        None => return Err(wrong()),
                    },
                    _ => return Err(wrong()),
                }
            }
            _ => return Err(wrong()),
        };
        let dtype = npy::parse_dtype(&format!("{order}{name}{unit}"));
        dtype.map_err(|error| PickleError::Elements(error.to_string()))
    }

    /// The bytes that it takes in memory.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<ArrayDType>() + self.name.bytes()
    }

    fn get(&self) -> Result<DType, PickleError> {
        self.state.get().cloned().unwrap_or_else(|| Err(ArrayCall::DType.wrong()))
    }
}

impl ArrayCell {
    /// Set the state, which is `(version, shape, dtype, whether the order is Fortran's, bytes)`.
    pub(crate) fn build(&self, state: &PickleValue) {
        let made = match state.items() {
            Some([_, shape, dtype, PickleValue::Bool(is_fortran), bytes]) => {
                let order = if *is_fortran { Order::F } else { Order::C };
                array(ArrayCall::Reconstruct, dtype, shape.axes(), order, bytes)
            }
            _ => Err(ArrayCall::Reconstruct.wrong()),
        };
        // of one that is set twice the first state stays
        let _ = self.0.set(made);
    }

    /// The bytes that it takes in memory.
    pub(crate) fn bytes(&self) -> usize {
        let axes = self.get().map_or(0, |made| made.shape.len());
        size_of::<ArrayCell>() + axes * size_of::<u64>()
    }

    pub(crate) fn get(&self) -> Result<&NumpyArray, PickleError> {
        match self.0.get() {
            Some(made) => made.as_ref().map_err(Clone::clone),
            None => Err(ArrayCall::Reconstruct.wrong()),
        }
    }
}

/// What a call of such a function makes of its arguments.
pub(crate) fn call(call: ArrayCall, items: &[PickleValue]) -> PickleValue {
    let made = match (call, items) {
        (ArrayCall::DType, [name, ..]) => {
            let name = match name {
                PickleValue::Text(_) | PickleValue::Global(_) => name.clone(),
                _ => PickleValue::None,
            };
            let dtype = ArrayDType { name, state: OnceCell::new() };
            return PickleValue::ArrayDType(Rc::new(dtype));
        }
        (ArrayCall::Reconstruct, _) => return PickleValue::Array(Rc::default()),
        // its state says which elements are masked
        (ArrayCall::Masked, _) => Err(PickleError::DType("that of a masked array".into())),
        (ArrayCall::Scalar, [dtype, bytes]) => {
            array(call, dtype, Some(Vec::new()), Order::C, bytes)
        }
        (ArrayCall::FromBuffer, [bytes, dtype, shape, PickleValue::Text(order)]) => {
            let order = if &**order == "F" { Order::F } else { Order::C };
            array(call, dtype, shape.axes(), order, bytes)
        }
        _ => Err(call.wrong()),
    };
    PickleValue::Array(Rc::new(ArrayCell(made.into())))
}

fn array(
    call: ArrayCall,
    dtype: &PickleValue,
    shape: Option<Vec<u64>>,
    order: Order,
    bytes: &PickleValue,
) -> Result<NumpyArray, PickleError> {
    let PickleValue::ArrayDType(dtype) = dtype else { return Err(call.wrong()) };
    let dtype = dtype.get()?;
    let shape = shape.ok_or_else(|| call.wrong())?;
    let Some(said) = data_bytes(&shape, dtype.item_bits()) else {
        return Err(TensorFault::TooLarge(shape).into());
    };
    let (place, found) = match bytes {
        PickleValue::Bytes(bytes) => (bytes.place, bytes.len),
        // what is empty may be made by a call of `bytes`
        PickleValue::Plain if said == 0 => (BytesPlace::Pickle(0), 0),
        _ => return Err(call.wrong()),
    };
    match place {
        BytesPlace::Undecoded => Err(PickleError::Undecoded(MAX_DECODED)),
        _ if found != said => Err(TensorFault::ShortStorage { said, found }.into()),
        _ => Ok(NumpyArray { dtype, shape: shape.into(), order, place }),
    }
}

impl NumpyArray {
    /// The tensor, without its name, whose first byte is at position `start`.
    pub(crate) fn at(&self, start: u64) -> TensorInfo {
        TensorInfo::new(self.dtype.clone(), self.shape.to_vec(), self.order, start)
    }
}

/// Bytes that were written as the characters of Latin-1.
#[derive(Debug, Default)]
pub(crate) struct Decoded {
    bytes: Vec<u8>,
    /// Whether there were more than are decoded.
    is_full: bool,
}

impl Decoded {
    /// Decode a text of so many bytes of UTF-8, and say where it is. What is no text of Latin-1 has no place.
    pub(crate) fn add(&mut self, text: &mut dyn BufRead, len: u64) -> Result<PickleBytes, Cause> {
        let nowhere = PickleBytes { key: None, place: BytesPlace::Undecoded, len: 0 };
        // a character takes two bytes at most
        if self.is_full || len / 2 > (MAX_DECODED - self.bytes.len()) as u64 {
            return Ok(nowhere);
        }
        if self.bytes.capacity() == 0 && self.bytes.try_reserve_exact(MAX_DECODED).is_err() {
            self.is_full = true;
            return Ok(nowhere);
        }
        let start = self.bytes.len();
        let mut left = len;
        let mut high = None;
        while left > 0 {
            let piece = text.fill_buf()?;
            let count = piece.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            for &byte in &piece[..count] {
                let decoded = match (high.take(), byte) {
                    (None, 0..0x80) => byte,
                    (None, 0xc2 | 0xc3) => {
                        high = Some(byte << 6);
                        continue;
                    }
                    (Some(high), 0x80..0xc0) => high | byte & 0x3f,
                    _ => {
                        self.bytes.truncate(start);
                        return Ok(nowhere);
                    }
                };
                if self.bytes.len() == MAX_DECODED {
                    self.bytes.truncate(start);
                    self.is_full = true;
                    return Ok(nowhere);
                }
                self.bytes.push(decoded);
            }
            if count == 0 {
                return Err(damaged(EARLY));
            }
            text.consume(count);
            left -= count as u64;
        }
        let len = (self.bytes.len() - start) as u64;
        Ok(PickleBytes { key: None, place: BytesPlace::Decoded(start as u64), len })
    }

    pub(crate) fn into_bytes(mut self) -> Vec<u8> {
        self.bytes.shrink_to_fit();
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_of_latin1_are_bytes() {
        let all: Vec<u8> = (0..=255).collect();
        let text: String = all.iter().copied().map(char::from).collect();
        let mut decoded = Decoded::default();
        let add = |decoded: &mut Decoded, text: &str| {
            decoded.add(&mut text.as_bytes(), text.len() as u64).unwrap()
        };
        assert_eq!(add(&mut decoded, "é").len, 1);
        // no character of Latin-1
        assert_eq!(add(&mut decoded, "aĀ").place, BytesPlace::Undecoded);
        let bytes = add(&mut decoded, &text);
        assert_eq!((bytes.place, bytes.len), (BytesPlace::Decoded(1), 256));
        assert_eq!(decoded.into_bytes()[1..], all);
    }
}
