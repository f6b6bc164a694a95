//! Where the elements of a tensor lie, and those of several fields of structures, which stand side by
//! side in the output.

use std::ops::Range;
use std::sync::Arc;

use crate::error::ContainerError;
use crate::execute::{Clipped, Conversion, ExecuteError, Pieces};
use crate::format::{Strided, Strides, Tensor};
use crate::gather;
use crate::join::{Join, JoinPart};
use crate::region::contract::{ReadBy, ReadFor, Region, RegionPieces};
use crate::region::list::Gathered;
use crate::view::Layout;

/// How the elements of a tensor lie in its input; where each is made of several ranges, how the first
/// of these do.
pub fn layout(tensor: &Tensor) -> Layout<'_> {
    layouts(tensor).swap_remove(0)
}

/// How the elements lie, or each of the ranges that together are one: at least one layout.
fn layouts(tensor: &Tensor) -> Vec<Layout<'_>> {
    let Tensor { dtype, shape, storage: Strided { data, strides, .. }, .. } = tensor;
    let bits = dtype.item_bits();
    match strides {
        Strides::Contiguous(order) => vec![Layout::new(shape, bits, *order, data.start)],
        Strides::Said { first, strides, ranges } => {
            let layout = |bits: u64, start: u64| {
                let offset = data.start.saturating_add(*first).saturating_add(start);
                Layout::strided(shape, bits, offset, strides.clone(), data.clone())
            };
            let range = |it: &Range<u64>| layout((it.end - it.start).saturating_mul(8), it.start);
            match ranges.is_empty() {
                true => vec![layout(bits, 0)],
                false => ranges.iter().map(range).collect(),
            }
        }
    }
}

impl dyn Region {
    /// What `make` takes of a tensor or, where its elements are several fields, of each of these, which
    /// then stand side by side. The pieces of all are as many elements.
    pub(super) fn of_fields<E>(
        tensor: &Tensor,
        options: &gather::Options,
        mut make: impl FnMut(&Layout<'_>, &gather::Options) -> Result<Arc<dyn Region>, E>,
    ) -> Result<Arc<dyn Region>, E> {
        let layouts = layouts(tensor);
        if let [only] = layouts.as_slice() {
            return make(only, options);
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

/// Regions of one shape: an element of each, and then the next ones.
#[derive(Clone)]
pub(super) struct SideBySide {
    /// The bytes of an element of each region, and the region.
    parts: Vec<(u64, Arc<dyn Region>)>,
    /// The bytes that are taken, where it is a part of all.
    window: Option<Range<u64>>,
}

impl Region for SideBySide {
    fn bytes(&self) -> u64 {
        match &self.window {
            Some(window) => window.end - window.start,
            None => self.parts.iter().map(|(_, part)| part.bytes()).sum(),
        }
    }

    fn pieces<'a>(&'a self, by: &ReadBy<'_>) -> Result<RegionPieces<'a>, ExecuteError> {
        let row = self.parts.iter().map(|(bytes, _)| bytes).sum();
        let rows = |(bytes, part): &(u64, Arc<dyn Region>)| part.bytes().checked_div(*bytes);
        let rows = self.parts.iter().filter_map(rows).max().unwrap_or(0);
        let (conversion, to) = (Conversion::None, ReadFor::Memory);
        let inner = ReadBy { conversion, unit: 1, to, ..*by };
        let mut parts = Vec::with_capacity(self.parts.len());
        for (_, part) in &self.parts {
            parts.push(match part.strided() {
                Some(view) => JoinPart::of_runs(view.runs().clone(), 1),
                None => JoinPart::of_pieces(part.pieces(&inner)?.pieces),
            });
        }
        let join = Join::new(parts, rows, row, by.unit);
        let pieces: Box<dyn Pieces + 'a> = match &self.window {
            Some(window) => Box::new(Clipped::new(join, window.clone())),
            None => Box::new(join),
        };
        Ok(RegionPieces { pieces, copied: None })
    }

    fn within(&self, range: Range<u64>) -> Vec<Arc<dyn Region>> {
        vec![Arc::new(SideBySide { parts: self.parts.clone(), window: Some(range) })]
    }

    fn identify(&self, add: &mut dyn FnMut(&[u8])) -> Result<(), ContainerError> {
        self.parts.iter().try_for_each(|(_, part)| part.identify(add))?;
        add(format!("{:?}", self.window).as_bytes());
        Ok(())
    }

    fn gathered(&self) -> Option<&Gathered> {
        self.parts.first().and_then(|(_, part)| part.gathered())
    }
}
