//! What is taken of a tensor: a region in bytes, on its way to its place in an output.

use std::sync::Arc;

use super::error::{Cause, FileName};
use crate::execute::{Conversion, WINDOW_BYTES};
use crate::format::Tensor;
use crate::gather::{self, Gather};
use crate::index::resolve::Selection;
use crate::permutation::Permutation;
use crate::plan::Plan;
use crate::shape::Order;
use crate::source::Source;
use crate::view::{Layout, View};

/// How the elements of a tensor lie in its input.
pub fn layout(tensor: &Tensor) -> Layout<'_> {
    Layout {
        shape: &tensor.shape,
        item_bits: tensor.dtype.item_bits(),
        order: tensor.order,
        offset: tensor.offset,
    }
}

/// Bytes of one tensor, in the order of the output.
#[derive(Clone)]
pub enum Region {
    /// Ranges of positions.
    View(View),
    /// Positions that an index tensor names.
    Gather(Box<Gathered>),
}

/// Positions that an index tensor names.
#[derive(Clone)]
pub struct Gathered {
    /// What to gather.
    pub gather: Gather,
    /// The bytes of the index tensor.
    pub indices: Arc<dyn Source>,
    /// The file of the index tensor, for errors; `None` for a list in an index.
    pub file: Option<FileName>,
}

impl Region {
    /// The bytes of a selection, its axes in the order `axes`, in the memory order of the output.
    ///
    /// # Errors
    /// [`Cause::View`] and [`Cause::Gather`]: sizes past 63 bits, a selection that would cut a
    /// byte.
    pub fn of(
        tensor: &Tensor,
        selection: &Selection,
        axes: &Permutation,
        order: Order,
    ) -> Result<Region, Cause> {
        let (layout, unit) = (layout(tensor), tensor.dtype.unit());
        let transpose = Some(axes.clone());
        let options = gather::Options { order, unit, transpose, ..gather::Options::default() };
        if let Some((gather, list)) = Gather::list(&layout, selection, &options)? {
            let gathered = Gathered { gather, indices: Arc::new(list), file: None };
            return Ok(Region::Gather(Box::new(gathered)));
        }
        Ok(Region::View(View::permuted(&layout, selection, &axes.in_memory(order))?))
    }

    /// The same with the axes as they are.
    pub(super) fn of_selection(
        tensor: &Tensor,
        selection: &Selection,
        order: Order,
    ) -> Result<Region, Cause> {
        let axes = Permutation::identity(selection.shape().len());
        Region::of(tensor, selection, &axes, order)
    }

    /// The bytes of the region.
    pub fn bytes(&self) -> u64 {
        match self {
            Region::View(view) => view.bytes(),
            Region::Gather(gathered) => gathered.gather.bytes(),
        }
    }
}

/// A region on its way to its place in the output.
pub struct Take {
    /// The part of the input that it is taken of.
    pub part: usize,
    /// What is taken.
    pub region: Region,
    /// What elements go through on the way.
    pub conversion: Conversion,
    /// Where it goes in the output, in bytes.
    pub at: u64,
}

impl Take {
    /// How many bytes belong together.
    pub(super) fn unit(&self) -> u64 {
        self.conversion.unit()
    }

    /// How it is read in one pass of a stream that begins at position `start`, where it can be.
    pub(super) fn forward(&self, start: u64) -> Option<Plan> {
        match &self.region {
            Region::View(view) => {
                let window = WINDOW_BYTES / self.conversion.expansion();
                Plan::forward(&view.clone().after(start), self.unit(), window)
            }
            Region::Gather(_) => None,
        }
    }
}
