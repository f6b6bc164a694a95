//! Gathering: slabs of a tensor from the positions that an index tensor names.
//!
//! Owns the shapes and rules of gather_nd and gather (NumPy's take) with batch dimensions, as
//! TensorFlow has them, and of the lists and masks of an index, as NumPy has it ([`Indexed::select`]).
//! All become one thing: an output whose axes go along the params, along the tuples of one or
//! several lists of positions, or along both. Its innermost axes that need no list are the *slab*,
//! which is copied as a view is; the others count the *rows* (`rows.rs`).
//!
//! ```text
//!   indices (2, 3, 1)   params (4, 5)       output (2, 3, 5)
//!   [[[3], [0], [1]],   ──────────── 0      rows 2 x 3, a slab each
//!    [[1], [1], [2]]]   ──────────── 1
//! ```
//!
//! [`Gather::with`] binds the sources of the lists, which makes [`GatherPieces`] for the executor.

use std::ops::Range;

use crate::index::resolve::Selection;
use crate::permutation::{Permutation, PermutationError};
use crate::plan::Reading;
use crate::runs::Runs;
use crate::shape::{self, MAX_NDIM, Order};
use crate::view::{Layout, View, ViewError};

mod check;
mod copy;
mod distribute;
mod distribution;
mod error;
mod indexed;
mod mask;
mod mask_positions;
mod null_sink;
mod options;
mod page_cache;
mod pieces;
mod placed;
mod positions;
mod prefetch;
mod ravel;
mod relaid;
mod row_block;
mod rows;
mod select;
mod stages;
mod tuples;

pub(crate) use distribute::Distributed;
pub(crate) use distribution::{Distribution, PlacedRows, has_room, pays};
pub use error::GatherError;
pub use indexed::Indexed;
pub(crate) use indexed::slab_runs;
pub use mask::Mask;
pub(crate) use null_sink::NullSink;
pub use options::Options;
pub use pieces::GatherPieces;
pub(crate) use placed::PlacedSlabs;
pub use positions::{DROPPED, Indices, OutOfRange, Positions, count_batch_dims};
pub(crate) use row_block::{RowBlock, RowOffsets};
pub use rows::BoundRows;
pub(crate) use rows::Rows;
pub use select::ListTensor;
pub(crate) use stages::Stages;

/// What to gather: everything but the bytes.
#[derive(Clone, Debug)]
pub struct Gather {
    /// The shape of the output.
    shape: Vec<u64>,
    /// The bytes of the file that the params take.
    params: Range<u64>,
    rows: Rows,
    /// A slab, from its first byte on.
    slab: Runs,
    bytes: u64,
    piece_bytes: u64,
    hold: u64,
    /// The bytes of the output that are wanted, where not all are.
    window: Option<Range<u64>>,
    /// Where the output has another order than the params.
    relaid: Option<Box<Relaid>>,
}

/// A result in another order than the params', in two steps.
#[derive(Clone, Debug)]
pub(crate) struct Relaid {
    /// The same elements in the order of the params.
    pub(crate) gather: Gather,
    /// The bytes of those in the order of the output.
    pub(crate) view: View,
}

impl Gather {
    /// What is indexed, on its way to an output.
    ///
    /// # Errors
    /// [`GatherError`]: sizes past 63 bits, slabs that would cut a byte, too many axes.
    pub fn new(
        params: &Layout<'_>,
        Indexed { first, axes, lists }: Indexed,
        options: &Options,
    ) -> Result<Gather, GatherError> {
        let ndim = axes.len();
        let transpose = match &options.transpose {
            None => Permutation::identity(ndim),
            Some(order) if order.axes().len() == ndim => order.clone(),
            Some(order) => {
                return Err(PermutationError::Count { given: order.axes().len(), ndim }.into());
            }
        };
        let in_memory = transpose.in_memory(options.order);
        let shape = transpose.permute(&axes).iter().map(|axis| axis.len).collect::<Vec<_>>();
        if shape.len() > MAX_NDIM {
            return Err(GatherError::TooManyAxes(shape.len()));
        }
        let bits = params.item_bits;
        let bytes = shape::byte_count(&shape, bits).ok_or(ViewError::TooLarge)?;
        let range = params.bounds()?;
        let is_empty = bytes == 0 || range.is_empty();
        let indexed = Indexed { first, axes, lists };
        let relaid = match is_empty {
            true => None,
            false => Relaid::new(params, &indexed, &in_memory, options)?.map(Box::new),
        };
        let Indexed { axes, lists, .. } = indexed;
        let gather = |rows: Rows, slab: Runs| Gather {
            relaid,
            shape,
            params: range,
            rows,
            slab,
            bytes,
            piece_bytes: options.piece_bytes,
            hold: options.hold,
            window: None,
        };
        if is_empty {
            // what is gathered from nothing is nothing, or an error, or the zeros of `Drop`: no tuple
            // is in range, so that the first one stands for all
            let rows = Rows::new(params, 0, &[], lists)?;
            return Ok(gather(rows, Runs { offset: 0, axes: Vec::new(), run: bytes }));
        }
        let (rows, slab) = Indexed { first, axes: in_memory.permute(&axes), lists }.rows(params)?;
        Ok(gather(rows, slab_runs(params, &slab)?))
    }

    /// The shape of the output.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Bytes of the output, or of its [window](Gather::within).
    pub fn bytes(&self) -> u64 {
        self.window.as_ref().map_or(self.bytes, |window| window.end - window.start)
    }

    /// How the params are read.
    pub fn reading(&self) -> Reading {
        Reading::of_slabs(&self.slab, self.rows.count())
    }

    /// Only these bytes of the output.
    #[must_use]
    pub fn within(self, window: Range<u64>) -> Gather {
        Gather { window: Some(window), ..self }
    }

    /// The bytes of the output that are wanted, where not all are.
    pub fn window(&self) -> Option<Range<u64>> {
        self.window.clone()
    }

    /// The same in two steps, where the output has another order than the params and all of it is wanted.
    pub(crate) fn relaid(&self) -> Option<&Relaid> {
        self.relaid.as_deref().filter(|_| self.window.is_none())
    }

    /// A text that is the same for equal gathers only.
    pub fn identity(&self) -> String {
        let Gather { shape, params, rows, slab, .. } = self;
        format!("{:?}", (shape, params, rows, slab))
    }
}

impl Relaid {
    /// The two steps to a result whose axes are `in_memory` in that order; `None` where it is the order of the
    /// params.
    fn new(
        params: &Layout<'_>,
        indexed: &Indexed,
        in_memory: &Permutation,
        options: &Options,
    ) -> Result<Option<Relaid>, GatherError> {
        if !params.item_bits.is_multiple_of(8) {
            return Ok(None);
        }
        let order = indexed.params_order(params)?;
        let counts = |axis: &&usize| indexed.axes[**axis].len != 1;
        if order.axes().iter().filter(counts).eq(in_memory.axes().iter().filter(counts)) {
            return Ok(None);
        }
        let mut places = vec![0; order.axes().len()];
        (0..).zip(order.axes()).for_each(|(place, &axis)| places[axis] = place);
        let axes = in_memory.axes().iter().map(|&axis| places[axis]).collect();
        let options = Options { transpose: Some(order), order: Order::C, ..options.clone() };
        let gather = Gather::new(params, indexed.clone(), &options)?;
        let kept = Layout::new(&gather.shape, params.item_bits, Order::C, 0);
        let all = Selection::whole(&gather.shape);
        let view = View::permuted(&kept, &all, &Permutation::of_axes(axes))?;
        Ok(Some(Relaid { gather, view }))
    }
}
