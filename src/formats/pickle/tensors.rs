//! Tensors of PyTorch: views of storages.

use std::ops::Range;
use std::rc::Rc;

use super::TensorFault;
use super::globals::ElementType;
use super::items::{push_number, take_number};
use crate::dtype::{DType, Endian, Scalar};
use crate::shape::{Order, contiguous_strides};
use crate::tensor::{Storage, StorageKind, TensorInfo, data_bytes};

/// Bytes that tensors share: a member of the archive, or a range after the pickles of an old file.
#[derive(Debug)]
pub(crate) struct TorchStorage {
    /// The name of the member, without `data/`.
    pub(crate) key: Rc<str>,
    /// The range of its bytes in the member: the whole member, except in old files.
    pub(crate) bytes: Range<u64>,
    /// The length of the member, in bytes.
    pub(crate) whole: u64,
    pub(crate) elements: ElementType,
}

/// A tensor: a view of a storage.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TorchTensor<'a> {
    /// The storage of the tensor: the fields of [`TorchStorage`].
    pub(crate) key: &'a str,
    pub(crate) bytes: Range<u64>,
    pub(crate) whole: u64,
    pub(crate) scalar: Scalar,
    /// The number of the storage's element that is the tensor's first.
    pub(crate) offset: u64,
    pub(crate) shape: Vec<u64>,
    /// The strides, in elements.
    pub(crate) strides: Vec<u64>,
}

impl<'a> TorchTensor<'a> {
    /// The tensor in some 15 bytes, as there may be a million of them.
    pub(crate) fn pack(&self) -> Rc<[u8]> {
        let TorchTensor { key, bytes, whole, scalar, offset, shape, strides } = self;
        let mut packed = Vec::with_capacity(32);
        push_number(&mut packed, key.len() as u64);
        packed.extend_from_slice(key.as_bytes());
        let bytes_left = whole.wrapping_sub(bytes.end);
        for number in [*whole, bytes.start, bytes_left, *scalar as u64, *offset] {
            push_number(&mut packed, number);
        }
        push_number(&mut packed, shape.len() as u64);
        shape.iter().chain(strides).for_each(|&number| push_number(&mut packed, number));
        packed.into()
    }

    /// The tensor that was packed in these bytes.
    pub(crate) fn unpack(packed: &'a [u8]) -> TorchTensor<'a> {
        let mut rest = packed;
        let key_len = take_number(&mut rest) as usize;
        let (key, mut rest) = rest.split_at(key_len);
        let mut number = || take_number(&mut rest);
        let whole = number();
        let start = number();
        let end = whole.wrapping_sub(number());
        let scalar = Scalar::ALL[number() as usize];
        let offset = number();
        let ndim = number();
        let shape = (0..ndim).map(|_| number()).collect();
        let strides = (0..ndim).map(|_| number()).collect();
        let key = std::str::from_utf8(key).expect("it was a text");
        TorchTensor { key, bytes: start..end, whole, scalar, offset, shape, strides }
    }

    /// The tensor without a name; `bytes` is the range of its storage in the file.
    pub(crate) fn place(
        &self,
        storage: Range<u64>,
        endian: Endian,
    ) -> Result<TensorInfo, TensorFault> {
        let said = self.whole;
        let found = storage.end.saturating_sub(storage.start);
        if found < said || self.bytes.end > said {
            return Err(TensorFault::ShortStorage { said, found });
        }
        let start = storage.start + self.bytes.start;
        let said = self.bytes.end.saturating_sub(self.bytes.start);
        let shape = self.shape.clone();
        let item = self.scalar.bits() / 8;
        let dtype = DType::Scalar(self.scalar, if item == 1 { Endian::Little } else { endian });
        match data_bytes(&shape, self.scalar.bits()) {
            None => return Err(TensorFault::TooLarge(shape)),
            Some(0) => return Ok(TensorInfo::new(dtype, shape, Order::C, start)),
            Some(_) => {}
        }
        // the lengths multiplied are less than 2^63, strides less than 2^64, and axes few
        let axes = || self.shape.iter().zip(&self.strides);
        let far = axes().map(|(&len, &stride)| u128::from(len - 1) * u128::from(stride));
        let first = u128::from(self.offset);
        let far = far.sum::<u128>();
        let end = first + far + 1;
        if end > u128::from(said / item) {
            return Err(TensorFault::Outside(said));
        }
        // no more than the bytes of the storage
        let data = start + self.offset * item..start + end as u64 * item;
        let dense = |order: &Order| {
            let strides = contiguous_strides(&shape, 1, *order).unwrap_or_default();
            let mut axes = axes().zip(strides);
            axes.all(|((&len, &stride), dense)| len == 1 || stride == dense as u64)
        };
        if let Some(order) = [Order::C, Order::F].into_iter().find(dense) {
            return Ok(TensorInfo::new(dtype, shape, order, data.start));
        }
        // an axis of length 1 leads nowhere, whatever its stride is
        let strides =
            axes().map(|(&len, &stride)| if len == 1 { 0 } else { (stride * item) as i64 });
        let strides = strides.collect();
        let kind = StorageKind::Strided { first: 0, strides, ranges: Vec::new() };
        let storage = Storage { shard: 0, data, kind };
        Ok(TensorInfo { name: None, dtype, shape, storage, annotated: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensors_are_packed_in_few_bytes() {
        let bytes = 0..4_000_000;
        let shape = vec![4, 0, u64::MAX];
        let strides = vec![1, 4, 1 << 40];
        let key = "123456";
        let whole = 4_000_000;
        let scalar = Scalar::F32;
        let offset = 900_000;
        let mut tensor = TorchTensor { key, bytes, whole, scalar, offset, shape, strides };
        assert_eq!(TorchTensor::unpack(&tensor.pack()), tensor);
        (tensor.shape, tensor.strides) = (vec![4, 2], vec![2, 1]);
        assert!(tensor.pack().len() < 24);
        // whatever a file says
        for (bytes, whole) in [(7..9, 8), (u64::MAX - 1..u64::MAX, 0), (0..0, u64::MAX)] {
            (tensor.bytes, tensor.whole) = (bytes, whole);
            assert_eq!(TorchTensor::unpack(&tensor.pack()), tensor);
        }
    }
}
