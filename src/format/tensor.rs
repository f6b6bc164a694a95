//! One tensor of an input: what it is, and where its elements are.

use std::ops::Range;
use std::sync::Arc;

use super::annotations::Annotated;
use super::chunks::Chunks;
use super::header::data_bytes;
use crate::dtype::DType;
use crate::shape::Order;

/// A tensor of an input: its type, its shape, and where its elements are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorInfo {
    /// The name of the tensor, if the format names tensors.
    pub name: Option<String>,
    /// The type of its elements.
    pub dtype: DType,
    /// The shape, in elements; of a dtype in blocks the last axis counts these.
    pub shape: Vec<u64>,
    /// Where its elements are.
    pub storage: Storage,
    /// What else the format says of it.
    pub annotated: Option<Annotated>,
}

/// Which bytes of an input hold the elements of a tensor, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Storage {
    /// Number of the part of the input that holds the bytes: a shard, or a deflated member (from
    /// 1 on); 0 if the input is one file.
    pub part: usize,
    /// The bytes that hold all elements. For an input of several parts their positions count
    /// through all of them, as those of [`ConcatSource`](crate::source::ConcatSource) do.
    pub data: Range<u64>,
    /// Where each element is among them.
    pub kind: StorageKind,
}

/// How the elements of a tensor are stored in its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StorageKind {
    /// One after the other, in this order: the elements are all of the bytes.
    Contiguous(Order),
    /// Anywhere: fields of larger items, views of a storage that several tensors share.
    Strided {
        /// From the first of the bytes to where the first element begins.
        first: u64,
        /// From an element to the next one along each axis, in bytes.
        strides: Vec<i64>,
        /// The bytes that together are an element, from where it begins; none for one range.
        ranges: Vec<Range<u64>>,
    },
    /// In chunks, which are decoded.
    Chunks(Arc<dyn Chunks>),
}

impl TensorInfo {
    /// A tensor without a name, whose elements begin at position `start` of an input of one part and
    /// follow each other. It must have fewer than 2^63 bytes.
    pub fn new(dtype: DType, shape: Vec<u64>, order: Order, start: u64) -> TensorInfo {
        let bytes = data_bytes(&shape, dtype.item_bits()).unwrap_or_default();
        let data = start..start.saturating_add(bytes);
        let storage = Storage { part: 0, data, kind: StorageKind::Contiguous(order) };
        TensorInfo { name: None, dtype, shape, storage, annotated: None }
    }

    /// The bytes of its elements, rounded up to whole bytes: the product of shape and item size.
    pub fn bytes(&self) -> u64 {
        data_bytes(&self.shape, self.dtype.item_bits()).unwrap_or_default()
    }

    /// The shape in elements, where [`shape`](TensorInfo::shape) counts blocks of them too.
    pub fn element_shape(&self) -> Vec<u64> {
        match (self.dtype.blocks(), self.shape.split_last()) {
            (Some(block), Some((blocks, outer))) => {
                let last = blocks.saturating_mul(block.elements);
                [outer, &[last]].concat()
            }
            _ => self.shape.clone(),
        }
    }

    /// The positions of the bytes that it lies in.
    pub fn data(&self) -> Range<u64> {
        self.storage.data.clone()
    }

    /// The number of the part of the input that holds its bytes.
    pub fn part(&self) -> usize {
        self.storage.part
    }

    /// The shape of the chunks that it is stored in, in elements; `None` where it is not.
    pub fn chunk_shape(&self) -> Option<&[u64]> {
        match &self.storage.kind {
            StorageKind::Chunks(chunks) => Some(chunks.chunk_shape()),
            _ => None,
        }
    }

    /// The order of its elements in the file. Where strides are said, it is Fortran's if the first of
    /// the axes longer than 1 has a shorter one than the second.
    pub fn order(&self) -> Order {
        match &self.storage.kind {
            StorageKind::Contiguous(order) => *order,
            StorageKind::Strided { strides, .. } => {
                let axes = self.shape.iter().zip(strides).filter(|(len, _)| **len > 1);
                let mut apart = axes.map(|(_, stride)| stride.unsigned_abs());
                match (apart.next(), apart.next()) {
                    (Some(outer), Some(inner)) if outer < inner => Order::F,
                    _ => Order::C,
                }
            }
            StorageKind::Chunks(_) => Order::C,
        }
    }

    /// This tensor in a part of an input whose first byte is at position `base`.
    pub(crate) fn placed(mut self, part: usize, base: u64) -> TensorInfo {
        let Range { start, end } = self.storage.data;
        self.storage.part = part;
        self.storage.data = start.saturating_add(base)..end.saturating_add(base);
        self
    }
}
