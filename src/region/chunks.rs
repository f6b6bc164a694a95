//! What is taken of a tensor in chunks.

use std::ops::Range;
use std::sync::Arc;

use super::indices::Gathered;
use super::{ReadBy, ReadFor, Region, RegionPieces, Route};
use crate::chunked::{ChunkPieces, Chunked, Decoding, InOrder};
use crate::error::{Error, FileName};
use crate::execute::{Conversion, ExecuteError, Progress, Workers, spool_pieces};
use crate::format::TensorInfo;
use crate::index::resolve::Selection;
use crate::plan::{PIECE_BYTES, Plan};
use crate::runs::Runs;
use crate::shape::Order;
use crate::source::Source;

/// A region of the elements of a tensor, as if they followed each other from position 0 on, which are
/// decoded from chunks.
pub(super) struct InChunks {
    pub(super) elements: Arc<dyn Region>,
    pub(super) chunked: Arc<Chunked>,
}

impl Region for InChunks {
    fn bytes(&self) -> u64 {
        self.elements.bytes()
    }

    fn route<'a>(&'a self, by: &ReadBy<'_>) -> Result<Route<'a>, ExecuteError> {
        let chunked = self.chunked.as_ref();
        let Some(view) = self.elements.strided() else {
            // positions are those of decoded elements, not of the file
            let RegionPieces { pieces, .. } =
                self.elements.pieces(&ReadBy { to: ReadFor::Memory, ..*by })?;
            return Ok(Route::Direct(Box::new(Decoding::new(chunked, pieces))));
        };
        let in_any_order = || Box::new(ChunkPieces::new(chunked, view));
        if let ReadFor::Position(_) = by.to {
            return Ok(Route::Direct(in_any_order()));
        }
        if let Some(pieces) = InOrder::new(chunked, view, by.unit) {
            return Ok(Route::Direct(Box::new(pieces)));
        }
        let then = Plan::new(&Runs::contiguous(0, view.bytes()), by.unit, PIECE_BYTES);
        Ok(Route::Kept { first: vec![in_any_order()], then: Box::new(then), plan: None })
    }

    fn within(&self, range: Range<u64>) -> Vec<Arc<dyn Region>> {
        let parts = self.elements.within(range).into_iter();
        let part = |elements| {
            Arc::new(InChunks { elements, chunked: Arc::clone(&self.chunked) }) as Arc<dyn Region>
        };
        parts.map(part).collect()
    }

    fn identify(&self, add: &mut dyn FnMut(&[u8])) -> Result<(), Error> {
        add(b"chunks");
        self.elements.identify(add)
    }

    fn gathered(&self) -> Option<&Gathered> {
        self.elements.gathered()
    }
}

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
    let failed = |error: ExecuteError| match error.into_source() {
        Ok(error) => Error::file(file.clone(), error),
        Err(error) => Error::file(file.clone(), error),
    };
    let whole = Selection::whole(&tensor.shape);
    let region = <dyn Region>::of_selection(tensor, &whole, Order::C);
    let region = region.map_err(|cause| Error::file(file.clone(), cause))?;
    let conversion = Conversion::None;
    let unit = 1;
    let to = ReadFor::Position(0);
    let by = ReadBy { source: source.as_ref(), conversion, unit, to, workers, progress };
    let RegionPieces { pieces, .. } = region.pieces(&by).map_err(failed)?;
    let decoded = spool_pieces(source.as_ref(), &[pieces.as_ref()], workers, progress);
    Ok(Arc::from(decoded.map_err(failed)?))
}
