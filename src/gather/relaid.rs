//! When a result in another order than the params' is gathered in their order first.
//!
//! A transposed gather needs a few bytes of each row for one row of the output. Where the rows do not fit in
//! memory, each is read again for each of these. Instead they are gathered whole to a temporary file
//! ([`Relaid`](super::Relaid)), which is then copied as any tensor is whose axes change their order.
//!
//! ```text
//!   params      rows 2 0 3     kept  20 21 22     output  20 00 30
//!   00 01 02                         00 01 02             21 01 31
//!   10 11 12 ...                     30 31 32             22 02 32
//! ```

use std::cmp::Reverse;

use super::distribution::SHORT;
use super::indexed::Indexed;
use super::page_cache::LONG_ROW;
use super::pieces::GatherPieces;
use crate::permutation::Permutation;
use crate::plan::PIECE_BYTES;
use crate::source::Source;
use crate::view::{Layout, ViewError};

impl Indexed {
    /// The order of the axes of the result in which its elements lie as near to each other in the params as
    /// lists let them.
    pub(super) fn params_order(&self, params: &Layout<'_>) -> Result<Permutation, ViewError> {
        let lists: Vec<u64> = self.lists.iter().map(|list| list.longest_stride()).collect();
        let mut order = Vec::with_capacity(self.axes.len());
        for (number, axis) in self.axes.iter().enumerate() {
            let own = params.bytes(axis.stride)?.unsigned_abs();
            let along = axis.dims.iter().zip(&lists).filter(|(dim, _)| dim.is_some());
            order.push((Reverse(along.fold(own, |most, (_, list)| most.max(*list))), number));
        }
        order.sort_unstable();
        Ok(Permutation::of_axes(order.into_iter().map(|(_, number)| number).collect()))
    }
}

impl GatherPieces<'_> {
    /// Whether rows that are shorter than a disk likes would be read again and again, as they do not fit in
    /// memory and are not there.
    pub(crate) fn reads_rows_again(&self, source: &dyn Source) -> bool {
        let gather = &self.gather;
        let (slab, len) = (&gather.slab, gather.params.end - gather.params.start);
        let is_long = slab.axes.is_empty() && slab.run >= LONG_ROW;
        // before anything is asked of the system, which takes longer than a short copy
        if is_long || len < SHORT || gather.bytes < PIECE_BYTES || source.request_gap().is_some() {
            return false;
        }
        !self.fits(gather.bytes) && self.cold_look(source).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::{DType, Endian, Scalar};
    use crate::execute::{Pieces, ReadFrom, Workers};
    use crate::gather::{Gather, Indices, Options};
    use crate::shape::Order;
    use crate::source::MemorySource;

    /// All bytes of a gather, whose pieces are ranges in the order of its output.
    fn bytes(gather: &Gather, params: &dyn Source, list: &dyn Source) -> Vec<u8> {
        let pieces = gather.clone().with(&[list], 1, &Workers::new(1)).unwrap();
        let fill = |number: u64| {
            let mut out = vec![0; pieces.output(number).run as usize];
            let from = &mut ReadFrom { source: params, scratch: &mut Vec::new() };
            pieces.fill(number, from, &mut out).unwrap();
            out
        };
        (0..pieces.count()).flat_map(fill).collect()
    }

    #[test]
    fn two_steps_make_the_same_result() {
        let params = MemorySource((0..8 + 3 * 5 * 4 * 2).collect());
        let list = MemorySource(vec![4, 0, 2, 2, 1, 3]);
        let (shape, list_shape) = ([3, 5, 4], [3, 2]);
        let dtype = DType::Scalar(Scalar::U8, Endian::Little);
        let indices = Indices { dtype: &dtype, layout: Layout::new(&list_shape, 8, Order::C, 0) };
        let mut relaid = 0;
        for (number, order) in (0..256).flat_map(|at| [(at, Order::C), (at, Order::F)]) {
            let axes = [number & 3, number >> 2 & 3, number >> 4 & 3, number >> 6];
            let Ok(transpose) = Permutation::new(&axes, 4) else { continue };
            for (axis, stored) in [(0, Order::C), (1, Order::C), (1, Order::F), (2, Order::F)] {
                let layout = Layout::new(&shape, 16, stored, 8);
                let options =
                    Options { transpose: Some(transpose.clone()), order, ..Options::default() };
                let list_fits = MemorySource(list.0.iter().map(|at| at % 3).collect());
                let indexed = Indexed::along(&layout, &indices, axis, &options).unwrap();
                let gather = Gather::new(&layout, indexed, &options).unwrap();
                let direct = bytes(&gather, &params, &list_fits);
                let Some(steps) = gather.relaid() else { continue };
                relaid += 1;
                assert!(steps.gather.relaid().is_none());
                let kept = bytes(&steps.gather, &params, &list_fits);
                let laid: Vec<u8> = steps
                    .view
                    .runs()
                    .starts()
                    .flat_map(|at| kept[at as usize..at as usize + 2].to_vec())
                    .collect();
                assert!(laid == direct, "{axes:?} {order:?} {axis} {stored:?}");
            }
        }
        assert!(relaid > 150, "{relaid}");
    }
}
