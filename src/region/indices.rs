//! An index tensor, in memory or in a file.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::ordered::Ordered;
use super::strided::{decoded_bytes, decoded_info, layout, layouts};
use super::{ReadBy, Region, Route};
use crate::dtype::{DType, Endian, Scalar};
use crate::error::{Cause, Error, FileName};
use crate::execute;
use crate::execute::{BadPosition, ExecuteError, FillError, Progress, Workers};
use crate::gather::{Gather, GatherError, Indexed, Indices, Options};
use crate::plan::Reading;
use crate::runs::Runs;
use crate::shape::{MemoryAxes, Order, normalize_axis};
use crate::source::{ConcatSource, MemorySource, Source};
use crate::tensor::TensorInfo;
use crate::view::Layout;

/// Positions to gather from.
#[derive(Clone)]
pub struct IndexTensor {
    /// The dtype, the shape, and the location in the bytes.
    pub info: TensorInfo,
    /// The bytes that hold the positions.
    #[doc(hidden)]
    pub bytes: Arc<dyn Source>,
    /// The file, for errors; `None` for indices in memory.
    pub file: Option<FileName>,
}

/// Lists in memory as indices: positions beyond 64 bits become the nearest that fit, which are
/// beyond every axis.
macro_rules! lists {
    ($($integer:ty),*) => {$(
        lists!(of $integer, &[$integer], &Vec<$integer>, Vec<$integer>);
        lists!(arrays of $integer, &[$integer; N], [$integer; N]);
    )*};
    (of $integer:ty, $($list:ty),*) => {$(
        impl From<$list> for IndexTensor {
            fn from(list: $list) -> IndexTensor {
                let values = list.iter().map(|index| i64::try_from(*index).unwrap_or(i64::MAX));
                IndexTensor::of(values, vec![list.len() as u64])
            }
        }
    )*};
    (arrays of $integer:ty, $($list:ty),*) => {$(
        impl<const N: usize> From<$list> for IndexTensor {
            fn from(list: $list) -> IndexTensor {
                (&list[..]).into()
            }
        }
    )*};
}

lists!(i32, i64, isize, u32, u64, usize);

impl IndexTensor {
    /// Indices with values in memory, in C order; as many as `shape` has elements.
    pub fn new(values: &[i64], shape: Vec<u64>) -> IndexTensor {
        IndexTensor::of(values.iter().copied(), shape)
    }

    fn of(values: impl Iterator<Item = i64>, shape: Vec<u64>) -> IndexTensor {
        let bytes: Vec<u8> = values.flat_map(i64::to_le_bytes).collect();
        let dtype = DType::Scalar(Scalar::I64, Endian::Little);
        let info = TensorInfo::new(dtype, shape, Order::C, 0);
        IndexTensor { info, bytes: Arc::new(MemorySource(bytes)), file: None }
    }

    pub(crate) fn only_value(&self) -> Option<i64> {
        let is_list = self.file.is_none() && self.info.shape == [1];
        let is_int64 = self.info.dtype == DType::Scalar(Scalar::I64, Endian::Little);
        let place = self.info.data();
        let mut value = [0; 8];
        if !is_list || !is_int64 || place.end - place.start != 8 {
            return None;
        }
        self.bytes.read(place, &mut Vec::new(), &mut value).ok()?;
        Some(i64::from_le_bytes(value))
    }

    pub fn element(bytes: Vec<u8>, dtype: &DType) -> IndexTensor {
        let info = TensorInfo::new(dtype.clone(), Vec::new(), Order::C, 0);
        IndexTensor { info, bytes: Arc::new(MemorySource(bytes)), file: None }
    }

    /// The indices with their elements as plain bytes: those in chunks are decoded to scratch.
    pub(crate) fn decoded(
        self,
        workers: &Workers,
        progress: &Progress,
    ) -> Result<IndexTensor, Error> {
        let Some(file) = &self.file else { return Ok(self) };
        let bytes = decoded_bytes(&self.info, self.bytes, file, workers, progress)?;
        Ok(IndexTensor { info: decoded_info(&self.info), bytes, file: self.file })
    }

    /// The indices with a copy of their bytes in scratch, if they are in a file.
    pub(crate) fn spooled(self, workers: &Workers) -> Result<IndexTensor, Error> {
        if self.info.is_decoded() {
            return self.decoded(workers, &Progress::default());
        }
        let Some(file) = &self.file else { return Ok(self) };
        let Range { start, end } = self.info.data();
        let runs = Runs::contiguous(start, end - start);
        let copied = execute::spool(self.bytes.as_ref(), &runs, 1, workers);
        let copied = copied.map_err(|error| Error::file(file.clone(), error))?;
        let source = ConcatSource::at(start, copied.into());
        let source = source.map_err(|error| Error::file(file.clone(), error))?;
        Ok(IndexTensor { bytes: Arc::new(source), ..self })
    }

    /// The gathered region of a tensor, with its axes as they are in the memory of the output.
    pub(crate) fn arranged(
        &self,
        params: &TensorInfo,
        axis: Option<i64>,
        options: &Options,
        axes: &MemoryAxes,
    ) -> Result<Arc<dyn Region>, Cause> {
        let shape = gathered_shape(params, &self.info, axis, options)?;
        Ordered::unless_strided(params, &shape, axes, |axes| {
            Ok(self.gathered(params, axis, &options.clone().arranged(axes))?.region)
        })
    }

    /// The gather from a tensor: along an axis or, without one, by tuples.
    pub(crate) fn gathered(
        &self,
        params: &TensorInfo,
        axis: Option<i64>,
        options: &Options,
    ) -> Result<GatheredTensor, GatherError> {
        refuse_blocks(params, &self.info, axis, options)?;
        let mut shape = Vec::new();
        let region = <dyn Region>::of_fields(params, options, |layout, options| {
            let gather = gather(layout, &self.info, axis, options)?;
            shape = gather.shape().to_vec();
            let list = GatheredList { source: Arc::clone(&self.bytes), file: self.file.clone() };
            Ok::<Arc<dyn Region>, GatherError>(Arc::new(Gathered { gather, lists: vec![list] }))
        })?;
        Ok(GatheredTensor { shape, region })
    }
}

pub(crate) struct GatheredTensor {
    pub(crate) shape: Vec<u64>,
    pub(crate) region: Arc<dyn Region>,
}

/// The shape of a gather from `params`: along an axis or, without one, by tuples.
pub fn gathered_shape(
    params: &TensorInfo,
    indices: &TensorInfo,
    axis: Option<i64>,
    options: &Options,
) -> Result<Vec<u64>, GatherError> {
    refuse_blocks(params, indices, axis, options)?;
    Ok(gather(&layouts(params).swap_remove(0), indices, axis, options)?.shape().to_vec())
}

/// For each axis of a gather, before it is transposed, the axis of the tensor that it comes from,
/// if any. In a gather along an axis, the axis of the positions comes from that one.
pub(crate) fn gathered_axes(
    params: &TensorInfo,
    indices: &TensorInfo,
    axis: Option<i64>,
    options: &Options,
) -> Vec<Option<usize>> {
    let ndim = params.shape.len();
    let batch = options.batch_dims;
    let own = indices.shape.len();
    match axis.and_then(|axis| normalize_axis(axis, ndim)) {
        Some(_) if options.elements => (0..ndim).map(Some).collect(),
        Some(axis) => {
            let positions = own.saturating_sub(batch);
            let named = Some(axis).filter(|_| positions == 1);
            let behind = (axis + 1..ndim).map(Some);
            (0..axis).map(Some).chain(vec![named; positions]).chain(behind).collect()
        }
        None => {
            let taken = indices.shape.last().map_or(0, |len| *len as usize);
            let tuples = own.saturating_sub(1 + batch);
            let behind = (batch.saturating_add(taken)..ndim).map(Some);
            (0..batch).map(Some).chain(vec![None; tuples]).chain(behind).collect()
        }
    }
}

/// Refuse positions along an axis that is stored in blocks, which is the last one.
fn refuse_blocks(
    params: &TensorInfo,
    indices: &TensorInfo,
    axis: Option<i64>,
    options: &Options,
) -> Result<(), GatherError> {
    let (Some(block), Some(last)) = (params.dtype.blocks(), params.shape.len().checked_sub(1))
    else {
        return Ok(());
    };
    let reaches = match axis {
        _ if options.elements => true,
        Some(axis) => normalize_axis(axis, last + 1) == Some(last),
        None => {
            let tuples = indices.shape.last().copied().unwrap_or(0);
            tuples.saturating_add(options.batch_dims as u64) > last as u64
        }
    };
    if reaches {
        return Err(GatherError::InBlocks { axis: last, block: block.elements });
    }
    Ok(())
}

fn gather(
    params: &Layout<'_>,
    indices: &TensorInfo,
    axis: Option<i64>,
    options: &Options,
) -> Result<Gather, GatherError> {
    let indices = Indices { dtype: &indices.dtype, layout: layout(indices)? };
    let indexed = match axis {
        None => Indexed::nd(params, &indices, options)?,
        Some(axis) if options.elements => Indexed::elements(params, &indices, axis, options)?,
        Some(axis) => Indexed::along(params, &indices, axis, options)?,
    };
    Gather::new(params, indexed, options)
}

#[derive(Clone)]
pub struct Gathered {
    pub gather: Gather,
    pub lists: Vec<GatheredList>,
}

#[derive(Clone)]
pub struct GatheredList {
    pub source: Arc<dyn Source>,
    /// The file that holds the list, for errors; `None` for a list in the index.
    pub file: Option<FileName>,
}

impl Gathered {
    pub(crate) fn sources(&self) -> Vec<&dyn Source> {
        GatheredList::sources(&self.lists)
    }
}

impl GatheredList {
    pub(crate) fn sources(lists: &[GatheredList]) -> Vec<&dyn Source> {
        lists.iter().map(|list| list.source.as_ref()).collect()
    }

    /// Check that no list was truncated while it was read.
    pub(crate) fn verify_all(lists: &[GatheredList]) -> Result<(), Error> {
        lists.iter().try_for_each(|list| list.source.verify().map_err(|error| list.error(error)))
    }

    /// The error of index tensors that are bad, or could not be read; another error unchanged.
    pub fn failed(lists: &[GatheredList], error: impl Into<ExecuteError>) -> Error {
        let error = match error.into() {
            ExecuteError::Fill { error, .. } => error,
            error => return error.into(),
        };
        // a truncated file is the cause of any other error in it
        if let Err(error) = GatheredList::verify_all(lists) {
            return error;
        }
        let of = |list: usize, cause: Cause| match lists.get(list) {
            Some(list) => list.error(cause),
            None => cause.into(),
        };
        match error {
            FillError::Indices { list, error } => of(list, error.into()),
            FillError::Source(error) => of(0, error.into()),
            error @ FillError::Position(BadPosition::Listed { list, .. }) => {
                of(list, ExecuteError::from(error).into())
            }
            error => ExecuteError::from(error).into(),
        }
    }

    fn error(&self, cause: impl Into<Cause>) -> Error {
        Error::of_file(self.file.as_ref(), cause)
    }

    pub(crate) fn path(&self) -> Option<&Path> {
        match &self.file {
            Some(FileName::Path(path)) => Some(path),
            _ => None,
        }
    }

    /// Add to a fingerprint all bytes of indices that have no file of their own.
    pub(crate) fn identify(&self, add: &mut dyn FnMut(&[u8])) -> Result<(), Error> {
        if self.path().is_some() {
            return Ok(());
        }
        let indices = self.source.as_ref();
        let mut scratch = Vec::new();
        let limit = indices.window_limit().unwrap_or(u64::MAX).clamp(1, 1 << 20);
        let mut start = 0;
        while start < indices.len() {
            let end = (start + limit).min(indices.len());
            add(indices.window(start..end, &mut scratch)?);
            start = end;
        }
        Ok(())
    }
}

impl Region for Gathered {
    fn bytes(&self) -> u64 {
        self.gather.bytes()
    }

    fn route<'a>(&'a self, by: &ReadBy<'_>) -> Result<Route<'a>, ExecuteError> {
        Route::of_gather(&self.gather, self, by)
    }

    fn within(&self, range: Range<u64>) -> Vec<Arc<dyn Region>> {
        let gather = self.gather.clone().within(range);
        vec![Arc::new(Gathered { gather, lists: self.lists.clone() })]
    }

    fn identify(&self, add: &mut dyn FnMut(&[u8])) -> Result<(), Error> {
        add(self.gather.identity().as_bytes());
        self.lists.iter().try_for_each(|list| list.identify(add))
    }

    fn reading(&self) -> Option<Reading> {
        Some(self.gather.reading())
    }

    fn gathered(&self) -> Option<&Gathered> {
        Some(self)
    }
}
