//! Where the elements of a tensor lie, and those of several fields of structures, which stand side by
//! side in the output.

use std::ops::Range;
use std::sync::Arc;

use crate::error::ContainerError;
use crate::execute::{Clipped, Conversion, ExecuteError, Pieces};
use crate::format::{Fields, Tensor};
use crate::gather;
use crate::join::{Join, Part};
use crate::region::contract::{ReadBy, ReadFor, Region, RegionPieces};
use crate::region::list::Gathered;
use crate::view::{Layout, Within};

/// How the elements of a tensor lie in its input; where they are several fields, how the items do.
pub fn layout(tensor: &Tensor) -> Layout<'_> {
    let bits = tensor.dtype.item_bits();
    let plain = |bits| Layout::new(&tensor.shape, bits, tensor.order, tensor.offset);
    match &tensor.fields {
        None => plain(bits),
        Some(Fields { item, parts, strides }) => match parts.as_slice() {
            [part] => {
                let within = Within { item: *item, offset: part.start, strides };
                Layout { within: Some(within), ..plain(bits) }
            }
            _ => plain(item.saturating_mul(8)),
        },
    }
}

/// The same for each of several fields that together are the elements.
fn layouts(tensor: &Tensor) -> Vec<Layout<'_>> {
    match &tensor.fields {
        Some(Fields { item, parts, .. }) if parts.len() > 1 => {
            let field = |part: &Range<u64>| {
                let within = Within { item: *item, offset: part.start, strides: &[] };
                let bits = (part.end - part.start).saturating_mul(8);
                let layout = Layout::new(&tensor.shape, bits, tensor.order, tensor.offset);
                Layout { within: Some(within), ..layout }
            };
            parts.iter().map(field).collect()
        }
        _ => vec![layout(tensor)],
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
        let inner = ReadBy { conversion: Conversion::None, to: ReadFor::Memory, ..*by };
        let mut parts = Vec::with_capacity(self.parts.len());
        for (_, part) in &self.parts {
            parts.push(match part.strided() {
                Some(view) => Part::of_runs(view.runs().clone(), 1),
                None => Part::of_pieces(part.pieces(&inner)?.pieces),
            });
        }
        let join = Join::new(parts, rows, row, by.conversion.unit());
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
