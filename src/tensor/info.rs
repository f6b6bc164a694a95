//! One tensor of an input: its dtype, its shape, the location of its elements, and its annotations
//! (attributes, names of axes, fill values).
//!
//! Groups have annotations too ([`Tensors::annotate_group`](super::Tensors::annotate_group)). They
//! are sparse: tensors without them take no memory.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::{Chunks, StoredChunks, Unpacking};
use crate::dtype::{DType, Scalar};
use crate::shape::{AskedAxis, NoDimension, Order, byte_count, contiguous_strides};

/// A tensor of an input: its dtype, its shape, and the location of its elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorInfo {
    /// The name of the tensor, if the format names tensors.
    pub name: Option<String>,
    pub dtype: DType,
    /// The shape, in elements; for a dtype in blocks, the last axis counts blocks.
    pub shape: Vec<u64>,
    /// The location of the elements.
    pub storage: Storage,
    /// The tensor's annotations.
    #[doc(hidden)]
    pub annotated: Option<LazyAnnotations>,
}

/// The [shard](Storage::shard) of tensors whose bytes lie in several files: they have no position in one.
pub(crate) const IN_PIECES: usize = u32::MAX as usize - 1;

/// The bytes of an input that hold a tensor's elements, and their arrangement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Storage {
    /// The number of the shard that holds the bytes: 0 if the input is one file. In an archive, 0 is the archive
    /// itself, and n the deflated member n - 1.
    pub shard: usize,
    /// The range that holds all elements. In an input of several shards, positions count through all of them, as in
    /// [`ConcatSource`](crate::source::ConcatSource).
    pub data: Range<u64>,
    /// The arrangement of the elements in the range.
    pub kind: StorageKind,
}

/// How the elements of a tensor are stored in its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StorageKind {
    /// One after the other, in this order: the elements fill all bytes.
    Contiguous(Order),
    /// At any distance: fields of larger items, views of a storage that several tensors share.
    Strided {
        /// The offset of the first element in the range, in bytes.
        first: u64,
        /// The distance between neighbours along each axis, in bytes.
        strides: Vec<i64>,
        /// The byte ranges that together form an element, from its beginning; empty for a single range.
        ranges: Vec<Range<u64>>,
    },
    /// In chunks, which must be decoded.
    Chunks(Arc<dyn Chunks>),
    /// The elements of another tensor, in its C order; no strides of this shape reach them.
    Reshaped(Arc<TensorInfo>),
    /// Elements computed from the elements of another tensor of this shape.
    #[doc(hidden)]
    Packed(Arc<TensorInfo>, Arc<Unpacking>),
}

impl TensorInfo {
    /// A tensor without a name, in an input of one file, whose elements follow each other from position `start`. It
    /// must have less than 2^63 bytes.
    pub fn new(dtype: DType, shape: Vec<u64>, order: Order, start: u64) -> TensorInfo {
        let bytes = data_bytes(&shape, dtype.item_bits()).unwrap_or_default();
        let data = start..start.saturating_add(bytes);
        let storage = Storage { shard: 0, data, kind: StorageKind::Contiguous(order) };
        TensorInfo { name: None, dtype, shape, storage, annotated: None }
    }

    /// The bytes of all elements, rounded up to whole bytes: the product of shape and item size.
    pub fn bytes(&self) -> u64 {
        data_bytes(&self.shape, self.dtype.item_bits()).unwrap_or_default()
    }

    /// The shape in elements, even where [`shape`](TensorInfo::shape) counts blocks.
    pub fn element_shape(&self) -> Vec<u64> {
        match (self.dtype.blocks(), self.shape.split_last()) {
            (Some(block), Some((blocks, outer))) => {
                let last = blocks.saturating_mul(block.elements);
                [outer, &[last]].concat()
            }
            _ => self.shape.clone(),
        }
    }

    /// The range of positions that holds the elements.
    pub fn data(&self) -> Range<u64> {
        self.storage.data.clone()
    }

    /// The number of the shard that holds the elements; 0 if the input is one file.
    pub fn shard(&self) -> usize {
        self.storage.shard
    }

    /// The shape of the tensor's chunks, in elements; `None` where it is not stored in chunks.
    pub fn chunk_shape(&self) -> Option<&[u64]> {
        match &self.storage.kind {
            StorageKind::Chunks(chunks) => Some(chunks.chunk_shape()),
            StorageKind::Packed(stored, _) => stored.chunk_shape(),
            _ => None,
        }
    }

    /// The number of the tensor's stored chunks; `None` where it has no chunks, or it takes long to find out.
    pub fn stored_chunks(&self) -> Option<StoredChunks> {
        match &self.storage.kind {
            StorageKind::Chunks(chunks) => chunks.stored(),
            _ => None,
        }
    }

    /// The names of the axes of a result; `axes` gives the tensor's axis for each, `None` for a new axis.
    pub fn dimension_names(&self, axes: &[Option<usize>]) -> Vec<Option<String>> {
        let said = self.annotated.as_ref().map(|said| said.get().of_axes(axes));
        said.map(|said| said.dimension_names).unwrap_or_default()
    }

    /// The names of all of its axes.
    pub(crate) fn axis_names(&self) -> Vec<Option<String>> {
        self.dimension_names(&(0..self.shape.len()).map(Some).collect::<Vec<_>>())
    }

    /// Whether the elements lie in pieces of several files.
    pub fn is_in_pieces(&self) -> bool {
        self.storage.shard == IN_PIECES
    }

    /// Whether the elements are computed from the file's bytes: decoded or unpacked.
    pub(crate) fn is_decoded(&self) -> bool {
        matches!(self.storage.kind, StorageKind::Chunks(_) | StorageKind::Packed(..))
    }

    /// The memory order of the elements in the file. With strides it is Fortran if the first axis longer than 1 has a
    /// shorter stride than the second one.
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
            StorageKind::Packed(stored, _) => stored.order(),
            StorageKind::Chunks(_) | StorageKind::Reshaped(_) => Order::C,
        }
    }

    /// The distance between neighbours along each axis, in bytes, where the elements are contiguous in neither order.
    pub fn strides(&self) -> Option<&[i64]> {
        let StorageKind::Strided { strides, .. } = &self.storage.kind else { return None };
        let item = self.dtype.item_bits() / 8;
        let is_in = |order| {
            let plain = contiguous_strides(&self.shape, item, order).unwrap_or_default();
            let axes = self.shape.iter().zip(strides).zip(&plain);
            axes.into_iter().all(|((len, own), plain)| *len == 1 || own == plain)
        };
        let is_empty = self.shape.contains(&0);
        (!is_empty && !is_in(Order::C) && !is_in(Order::F)).then_some(strides)
    }

    /// This tensor in a shard that begins at position `base`.
    pub(crate) fn placed(mut self, shard: usize, base: u64) -> TensorInfo {
        let Range { start, end } = self.storage.data;
        self.storage.shard = shard;
        if let StorageKind::Packed(stored, _) = &mut self.storage.kind {
            *stored = Arc::new(stored.as_ref().clone().placed(shard, base));
        }
        self.storage.data = start.saturating_add(base)..end.saturating_add(base);
        self
    }
}

/// The bytes of a tensor, rounded up to whole bytes; `None` if they exceed 2^63 - 1.
///
/// As in NumPy, the product of the other axes must fit even if an axis has length 0.
pub(crate) fn data_bytes(shape: &[u64], item_bits: u64) -> Option<u64> {
    let mut filled = shape.iter().filter(|len| **len > 0);
    let count = filled.try_fold(1u64, |product, &len| product.checked_mul(len))?;
    let bytes = byte_count(&[count], item_bits)?;
    Some(if shape.contains(&0) { 0 } else { bytes })
}

/// The number of an axis of a tensor as the user names it; a negative number is returned unchanged.
pub fn axis_number(tensor: &TensorInfo, asked: &AskedAxis) -> Result<i64, NoDimension> {
    let axes: Vec<Option<usize>> = (0..tensor.shape.len()).map(Some).collect();
    asked.number(|| tensor.dimension_names(&axes))
}

/// The attribute that holds netCDF's value of missing elements.
pub(crate) const FILL_VALUE: &str = "_FillValue";

/// The annotations of a tensor or a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Annotations {
    pub attributes: Map<String, Value>,
    /// The name of each axis that has one; empty, or one entry for each axis of the tensor.
    pub dimension_names: Vec<Option<String>>,
    /// The value of elements that are not stored: the bytes of one element, in the tensor's own dtype.
    pub fill_value: Option<Vec<u8>>,
    /// Whether elements equal to the fill value are missing, as xarray treats Zarr 2.
    pub fill_masks: bool,
    /// The dtypes of attributes that are numbers, where the format has number types.
    pub types: BTreeMap<String, Scalar>,
    /// The names of attributes that are omitted, since JSON cannot express them.
    pub omitted: Vec<String>,
    /// The names of attributes with a [word](number) for a number that JSON lacks.
    pub reworded: Vec<String>,
    /// Whether the attributes come from HDF5, where `_FillValue` is netCDF's: a number, or a list of one number.
    pub is_hdf5: bool,
    /// Notes of the reader on interpretations that dtype and shape do not show, one line each.
    pub notes: Vec<String>,
}

impl Annotations {
    pub fn is_empty(&self) -> bool {
        *self == Annotations::default()
    }

    /// Remove the attribute that declares integers of 8 bits as xarray's booleans; returns whether it was there.
    #[cfg(any(feature = "hdf5", feature = "zarr"))]
    pub(crate) fn take_bool(&mut self) -> bool {
        let is_bool = self.attributes.get("dtype").is_some_and(|said| said == "bool");
        if is_bool {
            self.attributes.remove("dtype");
        }
        is_bool
    }

    /// The annotations for a result whose axes are these axes of the tensor, or new ones. Fill values are about
    /// elements, and stay.
    #[must_use]
    pub fn of_axes(mut self, axes: &[Option<usize>]) -> Annotations {
        let old = std::mem::take(&mut self.dimension_names);
        let name = |axis: &Option<usize>| axis.and_then(|axis| old.get(axis).cloned().flatten());
        let names: Vec<Option<String>> = axes.iter().map(name).collect();
        if names.iter().any(Option::is_some) {
            self.dimension_names = names;
        }
        self
    }

    /// The annotations of the tensor once its values are unpacked.
    #[must_use]
    pub(super) fn without_packing(mut self) -> Annotations {
        self.keep_packing(|_| false);
        self
    }
}

/// [`Annotations`] that are read on demand, as reading may take long.
#[derive(Clone)]
pub struct LazyAnnotations(Arc<dyn Fn() -> Annotations + Send + Sync>);

impl LazyAnnotations {
    pub fn of(annotations: Annotations) -> LazyAnnotations {
        LazyAnnotations::by(move || annotations.clone())
    }

    /// Annotations that a function makes, anew at each call.
    pub fn by(read: impl Fn() -> Annotations + Send + Sync + 'static) -> LazyAnnotations {
        LazyAnnotations(Arc::new(read))
    }

    /// These annotations without a fill value, for tensors with other elements.
    #[must_use]
    pub fn without_fill(&self) -> LazyAnnotations {
        let all = self.clone();
        LazyAnnotations::by(move || Annotations { fill_value: None, ..all.get() })
    }

    pub fn get(&self) -> Annotations {
        (self.0)()
    }
}

impl fmt::Debug for LazyAnnotations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LazyAnnotations")
    }
}

/// Annotations do not count in the comparison of tensors.
impl PartialEq for LazyAnnotations {
    fn eq(&self, _: &LazyAnnotations) -> bool {
        true
    }
}

impl Eq for LazyAnnotations {}

/// A number as JSON; a word where JSON lacks the number: `"NaN"`, `"Infinity"`, `"-Infinity"`.
pub fn number(value: f64) -> Value {
    match value {
        _ if value.is_nan() => "NaN".into(),
        f64::INFINITY => "Infinity".into(),
        f64::NEG_INFINITY => "-Infinity".into(),
        _ => value.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_axes_do_not_excuse_the_others() {
        assert_eq!(data_bytes(&[3, 0], 32), Some(0));
        assert_eq!(data_bytes(&[1 << 62, 0], 32), None);
        assert_eq!(data_bytes(&[1 << 62], 0), Some(0));
    }

    #[test]
    fn names_follow_their_axes() {
        let names = |names: &[&str]| -> Vec<Option<String>> {
            names.iter().map(|name| Some(name.to_string()).filter(|name| name != "-")).collect()
        };
        let of = |said: &[&str], axes: &[Option<usize>]| {
            let all = Annotations { dimension_names: names(said), ..Annotations::default() };
            all.of_axes(axes).dimension_names
        };
        assert_eq!(of(&["x", "y", "-"], &[Some(1), None, Some(0)]), names(&["y", "-", "x"]));
        // with fewer names than axes, as for a field that has axes of its own
        assert_eq!(of(&["x"], &[Some(0), Some(1)]), names(&["x", "-"]));
        assert_eq!(of(&["x", "-"], &[Some(1), None]), []);
        assert_eq!(of(&[], &[Some(0)]), []);
    }
}
