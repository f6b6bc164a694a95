//! Tensors in chunks for who reads elements where they lie, such as lists of positions and values that are
//! assigned: all of one is decoded to a temporary file.

use std::sync::Arc;

use crate::error::{Error, FileName};
use crate::execute::{Conversion, ExecuteError, FillError, Progress, Workers, spool_pieces};
use crate::format::TensorInfo;
use crate::index::resolve::Selection;
use crate::region::contract::{ReadBy, ReadFor, Region, RegionPieces};
use crate::shape::Order;
use crate::source::Source;

/// Where the elements of a tensor are to who reads them where they lie: those in chunks follow each other
/// from position 0 on.
pub(crate) fn decoded_info(tensor: &TensorInfo) -> TensorInfo {
    let TensorInfo { name, dtype, shape, .. } = tensor;
    match tensor.chunk_shape() {
        None => tensor.clone(),
        Some(_) => {
            let decoded = TensorInfo::new(dtype.clone(), shape.clone(), Order::C, 0);
            TensorInfo { name: name.clone(), ..decoded }
        }
    }
}

/// The bytes that [`decoded_info`] speaks of.
///
/// # Errors
/// A chunk that cannot be decoded, a temporary file that cannot be written.
pub(crate) fn decoded_bytes(
    tensor: &TensorInfo,
    source: Arc<dyn Source>,
    file: &FileName,
    workers: &Workers,
    progress: &Progress,
) -> Result<Arc<dyn Source>, Error> {
    if tensor.chunk_shape().is_none() {
        return Ok(source);
    }
    let failed = |error| match error {
        ExecuteError::Fill { error: FillError::Source(error), .. } => {
            Error::file(file.clone(), error)
        }
        error => Error::file(file.clone(), error),
    };
    let whole = Selection::whole(&tensor.shape);
    let region = <dyn Region>::of_selection(tensor, &whole, Order::C);
    let region = region.map_err(|cause| Error::file(file.clone(), cause))?;
    let (conversion, unit, to) = (Conversion::None, 1, ReadFor::Position(0));
    let by = ReadBy { source: source.as_ref(), conversion, unit, to, workers, progress };
    let RegionPieces { pieces, .. } = region.pieces(&by).map_err(failed)?;
    let decoded = spool_pieces(source.as_ref(), pieces.as_ref(), workers, progress);
    Ok(Arc::from(decoded.map_err(failed)?))
}
