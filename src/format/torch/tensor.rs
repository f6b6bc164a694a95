//! A tensor of a pickle, and where it lies in its storage.

use std::ops::Range;
use std::rc::Rc;

use crate::dtype::{DType, Endian, Scalar};
use crate::format::header::data_bytes;
use crate::format::tensor::{Storage, StorageKind, TensorInfo};
use crate::shape::{Order, contiguous_strides};

use super::error::TensorFault;
use super::globals::ElementType;

/// Bytes that tensors share: a member of the archive, or what stands behind the pickles of an old file.
#[derive(Debug)]
pub struct TorchStorage {
    /// The name of the member, behind `data/`.
    pub key: Rc<str>,
    /// Where its bytes are in the member, which may hold several: all of it, but of old files.
    pub(super) bytes: Range<u64>,
    /// How many bytes the member has.
    pub(super) whole: u64,
    pub(super) elements: ElementType,
}

/// A tensor: a view of a storage.
#[derive(Debug)]
pub struct TorchTensor {
    /// The storage that it is a view of.
    pub storage: Rc<TorchStorage>,
    pub(super) scalar: Scalar,
    /// The element of the storage that is its first.
    pub(super) offset: u64,
    pub(super) shape: Box<[u64]>,
    /// From an element to the next one along each axis, in elements.
    pub(super) strides: Box<[u64]>,
}

impl TorchTensor {
    /// The tensor, without its name, in a storage that has these bytes of a file of that byte order.
    ///
    /// # Errors
    /// [`TensorFault`]: a tensor that is not all in its storage.
    pub fn place(&self, storage: Range<u64>, endian: Endian) -> Result<TensorInfo, TensorFault> {
        let (said, found) = (self.storage.whole, storage.end.saturating_sub(storage.start));
        if found < said || self.storage.bytes.end > said {
            return Err(TensorFault::ShortStorage { said, found });
        }
        let start = storage.start + self.storage.bytes.start;
        let said = self.storage.bytes.end.saturating_sub(self.storage.bytes.start);
        let shape = self.shape.to_vec();
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
        let (first, far) = (u128::from(self.offset), far.sum::<u128>());
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
        let storage = Storage { part: 0, data, kind };
        Ok(TensorInfo { name: None, dtype, shape, storage, annotated: None })
    }
}
