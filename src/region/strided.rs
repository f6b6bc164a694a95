//! Regions that are ranges of positions, fields side by side, or either of a tensor in chunks.

use std::ops::Range;
use std::sync::Arc;

use super::computed::{self, ComputedRegion};
use super::indices::Gathered;
use super::ordered::Ordered;
use super::{ReadBy, ReadFor, Region, RegionPieces, Route};
use crate::chunked::Chunked;
use crate::error::{Error, FileName};
use crate::execute::{
    Clipped, Conversion, ExecuteError, Progress, WINDOW_BYTES, Workers, spool_pieces,
};
use crate::gather;
use crate::index::resolve::Selection;
use crate::join::{Join, JoinMember};
use crate::plan::Reading;
use crate::shape::Order;
use crate::source::Source;
use crate::tensor::{Storage, StorageKind, TensorInfo};
use crate::view::{Layout, View, ViewError};

impl Region for View {
    fn bytes(&self) -> u64 {
        View::bytes(self)
    }

    fn route<'a>(&'a self, by: &ReadBy<'_>) -> Result<Route<'a>, ExecuteError> {
        Route::of_view(self, by)
    }

    fn within(&self, range: Range<u64>) -> Vec<Arc<dyn Region>> {
        self.split(range).into_iter().map(|view| Arc::new(view) as Arc<dyn Region>).collect()
    }

    fn identify(&self, add: &mut dyn FnMut(&[u8])) -> Result<(), Error> {
        add(format!("{self:?}").as_bytes());
        Ok(())
    }

    fn reading(&self) -> Option<Reading> {
        Some(Reading::of_view(self, WINDOW_BYTES))
    }

    fn strided(&self) -> Option<&View> {
        Some(self)
    }
}

/// The layout of the elements of a tensor in its input; if each element is several ranges, the
/// layout of the first ranges.
pub fn layout(tensor: &TensorInfo) -> Result<Layout<'_>, ViewError> {
    match tensor.storage.kind {
        StorageKind::Chunks(_) | StorageKind::Packed(..) => Err(ViewError::InChunks),
        _ => Ok(layouts(tensor).swap_remove(0)),
    }
}

/// The layout of the elements or, if each element is several ranges, of each of the ranges: at
/// least one. Elements in chunks, and those that are put in order first, follow each other from
/// position 0 on.
pub(super) fn layouts(tensor: &TensorInfo) -> Vec<Layout<'_>> {
    let TensorInfo { dtype, shape, storage: Storage { data, kind, .. }, .. } = tensor;
    let bits = dtype.item_bits();
    match kind {
        StorageKind::Contiguous(order) => vec![Layout::new(shape, bits, *order, data.start)],
        StorageKind::Chunks(_) | StorageKind::Reshaped(_) => {
            vec![Layout::new(shape, bits, Order::C, 0)]
        }
        StorageKind::Packed(stored, _) => layouts(stored),
        StorageKind::Strided { first, strides, ranges } => {
            let layout = |bits: u64, start: u64| {
                let offset = data.start.saturating_add(*first).saturating_add(start);
                Layout::strided(shape, bits, offset, strides.clone(), data.clone())
            };
            let range = |it: &Range<u64>| layout((it.end - it.start).saturating_mul(8), it.start);
            if ranges.is_empty() {
                vec![layout(bits, 0)]
            } else {
                ranges.iter().map(range).collect()
            }
        }
    }
}

/// All elements of a tensor.
fn in_c_order(tensor: &TensorInfo) -> Result<Arc<dyn Region>, ViewError> {
    let whole = Selection::whole(&tensor.shape);
    <dyn Region>::of_fields(tensor, &gather::Options::default(), |layout, _| {
        Ok(Arc::new(View::new(layout, &whole)?))
    })
}

impl dyn Region {
    /// The region that `make` takes of a tensor or, if its elements are several ranges, of each of
    /// these, side by side. All have the same number of elements.
    pub(super) fn of_fields<E: From<ViewError>>(
        tensor: &TensorInfo,
        options: &gather::Options,
        mut make: impl FnMut(&Layout<'_>, &gather::Options) -> Result<Arc<dyn Region>, E>,
    ) -> Result<Arc<dyn Region>, E> {
        if let StorageKind::Packed(stored, unpacking) = &tensor.storage.kind {
            let stored = <dyn Region>::of_fields(stored, options, make)?;
            let arithmetic = computed::arithmetic(unpacking).map_err(|_| ViewError::Outside)?;
            let arithmetic = Arc::new(arithmetic);
            return Ok(Arc::new(ComputedRegion { stored, arithmetic, window: None }));
        }
        let layouts = layouts(tensor);
        if let [only] = layouts.as_slice() {
            let elements = make(only, options)?;
            let chunks = match &tensor.storage.kind {
                StorageKind::Chunks(chunks) => chunks,
                StorageKind::Reshaped(whole) => {
                    return Ok(Arc::new(Ordered::new(in_c_order(whole)?, elements)));
                }
                _ => return Ok(elements),
            };
            let bits = tensor.dtype.item_bits();
            let item = bits.is_multiple_of(8).then_some(bits / 8);
            let chunks = |item| Chunked::new(Arc::clone(chunks), &tensor.shape, item);
            let chunked = Arc::new(item.and_then(chunks).ok_or(ViewError::Outside)?);
            return Ok(Arc::new(InChunks { elements, chunked }));
        }
        let bytes = |layout: &Layout<'_>| layout.item_bits / 8;
        let row: u64 = layouts.iter().map(bytes).sum();
        let rows = (options.piece_bytes / row.max(1)).max(1);
        let hold = options.hold / layouts.len() as u64;
        let mut parts = Vec::with_capacity(layouts.len());
        for layout in &layouts {
            let piece_bytes = rows * bytes(layout);
            let part = make(layout, &gather::Options { piece_bytes, hold, ..options.clone() })?;
            parts.push((bytes(layout), part));
        }
        Ok(Arc::new(SideBySide { parts, window: None }))
    }
}

#[derive(Clone)]
pub(super) struct SideBySide {
    /// The bytes of an element of each region, and the region.
    parts: Vec<(u64, Arc<dyn Region>)>,
    /// The range of the bytes that is taken, if not all.
    window: Option<Range<u64>>,
}

impl Region for SideBySide {
    fn bytes(&self) -> u64 {
        match &self.window {
            Some(window) => window.end - window.start,
            None => self.parts.iter().map(|(_, part)| part.bytes()).sum(),
        }
    }

    fn route<'a>(&'a self, by: &ReadBy<'_>) -> Result<Route<'a>, ExecuteError> {
        let row = self.parts.iter().map(|(bytes, _)| bytes).sum();
        let rows = |(bytes, part): &(u64, Arc<dyn Region>)| part.bytes().checked_div(*bytes);
        let rows = self.parts.iter().filter_map(rows).max().unwrap_or(0);
        let conversion = Conversion::None;
        let to = ReadFor::Memory;
        let inner = ReadBy { conversion, unit: 1, to, ..*by };
        let mut parts = Vec::with_capacity(self.parts.len());
        for (_, part) in &self.parts {
            parts.push(match part.strided() {
                Some(view) => JoinMember::of_runs(view.runs().clone(), 1),
                None => JoinMember::of_pieces(part.pieces(&inner)?.pieces),
            });
        }
        let join = Join::new(parts, rows, row, by.unit);
        Ok(Route::Direct(match &self.window {
            Some(window) => Box::new(Clipped::new(join, window.clone())),
            None => Box::new(join),
        }))
    }

    fn within(&self, range: Range<u64>) -> Vec<Arc<dyn Region>> {
        vec![Arc::new(SideBySide { parts: self.parts.clone(), window: Some(range) })]
    }

    fn identify(&self, add: &mut dyn FnMut(&[u8])) -> Result<(), Error> {
        self.parts.iter().try_for_each(|(_, part)| part.identify(add))?;
        add(format!("{:?}", self.window).as_bytes());
        Ok(())
    }

    fn gathered(&self) -> Option<&Gathered> {
        self.parts.first().and_then(|(_, part)| part.gathered())
    }
}

/// A region of the elements of a tensor that are decoded from chunks, as if they followed each
/// other from position 0 on.
pub struct InChunks {
    pub(super) elements: Arc<dyn Region>,
    pub(super) chunked: Arc<Chunked>,
}

impl InChunks {
    /// The chunks, and the view of the elements, if it is one view.
    pub(crate) fn parts(&self) -> Option<(&Chunked, &View)> {
        Some((&self.chunked, self.elements.strided()?))
    }

    /// Whether it takes the same part of each chunk as another region takes of the same chunk of
    /// another tensor.
    pub(super) fn is_like(&self, other: &InChunks) -> bool {
        let views = self.elements.strided().zip(other.elements.strided());
        views.is_some_and(|(own, theirs)| {
            self.chunked.is_like(own.runs(), &other.chunked, theirs.runs())
        })
    }
}

impl Region for InChunks {
    fn bytes(&self) -> u64 {
        self.elements.bytes()
    }

    fn route<'a>(&'a self, by: &ReadBy<'_>) -> Result<Route<'a>, ExecuteError> {
        Route::of_chunks(self, by)
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

    fn chunked(&self) -> Option<&InChunks> {
        Some(self)
    }

    fn gathered(&self) -> Option<&Gathered> {
        self.elements.gathered()
    }
}

/// The description of a tensor for readers of its plain bytes: elements in chunks follow each other
/// from position 0 on.
pub(crate) fn decoded_info(tensor: &TensorInfo) -> TensorInfo {
    let TensorInfo { name, dtype, shape, annotated, .. } = tensor;
    if !tensor.is_decoded() {
        return tensor.clone();
    }
    let decoded = TensorInfo::new(dtype.clone(), shape.clone(), Order::C, 0);
    TensorInfo { name: name.clone(), annotated: annotated.clone(), ..decoded }
}

/// The bytes that [`decoded_info`] describes.
pub(crate) fn decoded_bytes(
    tensor: &TensorInfo,
    source: Arc<dyn Source>,
    file: &FileName,
    workers: &Workers,
    progress: &Progress,
) -> Result<Arc<dyn Source>, Error> {
    if !tensor.is_decoded() {
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
    let decoded = spool_pieces(&[(source.as_ref(), pieces.as_ref())], workers, progress);
    Ok(Arc::from(decoded.map_err(failed)?))
}
