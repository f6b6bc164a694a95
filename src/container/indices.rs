//! An index tensor, in memory or in a file.

use std::sync::Arc;

use super::error::{ContainerError, FileName};
use super::take::{Gathered, GatheredList, Region, layout};
use crate::dtype::{DType, Endian, Scalar};
use crate::format::Tensor;
use crate::gather::{Gather, Indices, Options};
use crate::shape::Order;
use crate::source::{MemorySource, Source};

/// Positions to gather from.
#[derive(Clone)]
pub struct IndexTensor {
    /// Its dtype, shape, and place in the bytes.
    pub info: Tensor,
    /// The bytes that it lies in.
    pub bytes: Arc<dyn Source>,
    /// The file, for errors; `None` for indices in memory.
    pub file: Option<FileName>,
}

impl From<&[i64]> for IndexTensor {
    fn from(indices: &[i64]) -> IndexTensor {
        IndexTensor::new(indices, vec![indices.len() as u64])
    }
}

impl<const N: usize> From<&[i64; N]> for IndexTensor {
    fn from(indices: &[i64; N]) -> IndexTensor {
        indices.as_slice().into()
    }
}

impl IndexTensor {
    /// Values in memory, in C order; as many as `shape` has elements.
    pub fn new(values: &[i64], shape: Vec<u64>) -> IndexTensor {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let info = Tensor {
            name: None,
            dtype: DType::Scalar(Scalar::I64, Endian::Little),
            shape,
            order: Order::C,
            part: 0,
            offset: 0,
            bytes: bytes.len() as u64,
        };
        IndexTensor { info, bytes: Arc::new(MemorySource(bytes)), file: None }
    }

    /// What to gather of a tensor: along an axis or, without one, by tuples.
    ///
    /// # Errors
    /// [`Cause::Gather`](super::Cause::Gather): indices that are no integers or do not fit.
    pub fn gather(
        &self,
        params: &Tensor,
        axis: Option<i64>,
        options: &Options,
    ) -> Result<Gather, ContainerError> {
        gather(params, &self.info, axis, options)
    }

    /// The bytes of that.
    pub(super) fn region(
        &self,
        params: &Tensor,
        axis: Option<i64>,
        options: &Options,
    ) -> Result<Region, ContainerError> {
        let gather = self.gather(params, axis, options)?;
        let list = GatheredList { source: Arc::clone(&self.bytes), file: self.file.clone() };
        Ok(Region::Gather(Box::new(Gathered { gather, lists: vec![list] })))
    }
}

/// What to gather of `params`: along an axis or, without one, by tuples. Of the options, the unit
/// is that of the dtype.
///
/// # Errors
/// [`Cause::Gather`](super::Cause::Gather): indices that are no integers or do not fit.
pub fn gather(
    params: &Tensor,
    indices: &Tensor,
    axis: Option<i64>,
    options: &Options,
) -> Result<Gather, ContainerError> {
    let Tensor { dtype, shape, order, offset, .. } = indices;
    let indices = Indices { dtype, shape, order: *order, offset: *offset };
    let options = Options { unit: params.dtype.unit(), ..options.clone() };
    Ok(match axis {
        None => Gather::nd(&layout(params), &indices, &options)?,
        Some(axis) if options.elements => {
            Gather::elements(&layout(params), &indices, axis, &options)?
        }
        Some(axis) => Gather::along(&layout(params), &indices, axis, &options)?,
    })
}
