//! Gathering: slabs of a tensor from the positions that an index tensor names.
//!
//! It has the rules of TensorFlow's gather_nd and gather (NumPy's take) with batch dimensions, and of NumPy's lists and
//! masks in an index ([`Indexed::select`]). All become the same: an output whose axes go along the params, along the
//! tuples of one or several lists of positions, or along both. The innermost axes that need no list are the *slab*,
//! which is copied as a view is. The other axes count the *rows* (`rows.rs`).
//!
//! ```text
//!   indices (2, 3, 1)   params (4, 5)       output (2, 3, 5)
//!   [[[3], [0], [1]],   ──────────── 0      rows 2 x 3, a slab each
//!    [[1], [1], [2]]]   ──────────── 1
//! ```
//!
//! [`Gather::with`] binds the sources of the lists, which makes [`GatherPieces`] for the executor.

use std::ops::Range;

use crate::execute::{ExecuteError, Workers};
use crate::index::resolve::Selection;
use crate::plan::{PIECE_BYTES, Reading};
use crate::runs::Runs;
use crate::shape::{self, AsList, MAX_NDIM, MemoryAxes, Order, Permutation, PermutationError};
use crate::source::Source;
use crate::view::{Layout, View, ViewError};

mod block;
mod distribution;
mod indexed;
mod listed;
mod mask;
mod pieces;
mod positions;
mod prefetch;
mod ravel;
mod rows;
mod shuffle;
mod stages;
mod truth;

pub(crate) use block::{RowBlock, RowOffsets};
pub use distribution::Distribution;
pub(crate) use distribution::scratch_has_room;
pub(crate) use indexed::slab_runs;
pub use indexed::{Indexed, ListTensor};
use listed::ListedAxis;
pub(crate) use listed::SortedList;
pub use mask::{Mask, is_like_mask};
pub use pieces::GatherPieces;
pub(crate) use pieces::copy_single_rows as copy_rows;
pub use positions::{DROPPED, Indices, OutOfRange, count_batch_dims};
pub use rows::BoundRows;
pub(crate) use rows::Rows;
pub(crate) use stages::{DistributedSlabs, Stages};
pub use truth::Truth;

#[derive(Clone, Debug)]
pub struct Gather {
    shape: Vec<u64>,
    /// The range of the file with the params.
    params: Range<u64>,
    rows: Rows,
    slab: Runs,
    bytes: u64,
    piece_bytes: u64,
    hold: u64,
    /// The wanted bytes of the output, if not all.
    window: Option<Range<u64>>,
    relaid: Option<Box<Relaid>>,
    listed: Option<ListedAxis>,
}

/// A gather in two steps, for a result whose axes are in another order than the params'.
///
/// A transposed gather needs a few bytes of each gathered row for one row of the output. If the rows do not fit in
/// memory, each would be read again for each row of the output. Instead whole rows are gathered to a temporary file.
/// That file is then copied as any tensor is whose axes change their order.
///
/// ```text
///   params      rows 2 0 3     file  20 21 22     output  20 00 30
///   00 01 02                         00 01 02             21 01 31
///   10 11 12 ...                     30 31 32             22 02 32
/// ```
#[derive(Clone, Debug)]
pub(crate) struct Relaid {
    pub(crate) gather: Gather,
    /// The bytes of the gathered rows, in the order of the output.
    pub(crate) view: View,
}

impl Gather {
    pub fn new(
        params: &Layout<'_>,
        indexed: Indexed,
        options: &Options,
    ) -> Result<Gather, GatherError> {
        let indexed = indexed.split(&options.splits)?;
        let ndim = indexed.axes.len();
        let transpose = match &options.transpose {
            None => Permutation::identity(ndim),
            Some(order) if order.axes().len() == ndim => order.clone(),
            Some(order) => {
                return Err(PermutationError::Count { given: order.axes().len(), ndim }.into());
            }
        };
        let in_memory = transpose.in_memory(options.order);
        let shape = transpose.permute(&indexed.shape());
        if ndim > MAX_NDIM {
            return Err(GatherError::TooManyAxes(ndim));
        }
        let bytes = shape::byte_count(&shape, params.item_bits).ok_or(ViewError::TooLarge)?;
        let range = params.bounds()?;
        let (rows, slab, relaid, listed) = if bytes == 0 || range.is_empty() {
            // a gather from an empty tensor is empty, or an error, or the zeros of `Drop`: no tuple
            // is in range, so that the first one stands for all
            let rows = Rows::new(params, 0, &[], indexed.lists)?;
            (rows, Runs { offset: 0, axes: Vec::new(), run: bytes }, None, None)
        } else {
            let relaid = Relaid::new(params, &indexed, &in_memory, options)?.map(Box::new);
            let axes = in_memory.permute(&indexed.axes);
            let listed = ListedAxis::of(params, indexed.first, &axes, &indexed.lists);
            let (rows, slab) = Indexed { axes, ..indexed }.rows(params)?;
            (rows, slab_runs(params, &slab)?, relaid, listed)
        };
        let Options { piece_bytes, hold, .. } = *options;
        let params = range;
        let window = None;
        Ok(Gather { shape, params, rows, slab, bytes, piece_bytes, hold, window, relaid, listed })
    }

    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// The bytes of the output, or of its [window](Gather::within).
    pub fn bytes(&self) -> u64 {
        self.window.as_ref().map_or(self.bytes, |window| window.end - window.start)
    }

    pub fn reading(&self) -> Reading {
        Reading::of_slabs(&self.slab, self.rows.count())
    }

    #[must_use]
    pub fn within(self, window: Range<u64>) -> Gather {
        Gather { window: Some(window), ..self }
    }

    /// The wanted bytes of the output, if not all.
    pub fn window(&self) -> Option<Range<u64>> {
        self.window.clone()
    }

    /// The gather in two steps, if the output has another order than the params and all of it is
    /// wanted.
    pub(crate) fn relaid(&self) -> Option<&Relaid> {
        self.relaid.as_deref().filter(|_| self.window.is_none())
    }

    /// Whether gathering itself finds bad positions, the first one of a list first; if not,
    /// [`check`](Gather::check) must be called before.
    pub fn checks_itself(&self) -> bool {
        self.bytes > 0 && self.rows.check_themselves()
    }

    /// Check all lists with these workers; `sources` are the lists' sources. The first bad position
    /// of the first list is reported, in the order of the indices.
    pub fn check(&self, sources: &[&dyn Source], workers: &Workers) -> Result<(), ExecuteError> {
        self.rows.check(sources, workers)
    }

    pub fn identity(&self) -> String {
        let Gather { shape, params, rows, slab, .. } = self;
        format!("{:?}", (shape, params, rows, slab))
    }
}

impl Relaid {
    /// The two steps to a result whose axes are `in_memory` in that order; `None` if that is the
    /// order of the params.
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
        let of_gathered = order.inverse().then(in_memory);
        let transpose = Some(order);
        let splits = Vec::new();
        let options = Options { splits, transpose, order: Order::C, ..options.clone() };
        let gather = Gather::new(params, indexed.clone(), &options)?;
        let gathered = Layout::new(&gather.shape, params.item_bits, Order::C, 0);
        let all = Selection::whole(&gather.shape);
        let view = View::permuted(&gathered, &all, &of_gathered)?;
        Ok(Some(Relaid { gather, view }))
    }
}

#[derive(Clone, Debug)]
pub struct Options {
    /// The number of leading batch axes that params and indices share.
    pub batch_dims: usize,
    /// Whether each index names an element along an axis, as in np.take_along_axis, instead of a
    /// slab.
    pub elements: bool,
    /// Whether negative indices count from the end, as in NumPy and ONNX: then only indices below -len are out of range.
    /// In TensorFlow all negative indices are out of range.
    pub negative: bool,
    /// The treatment of indices out of range.
    pub out_of_range: OutOfRange,
    /// The lengths that each axis of the result is split into; empty if no axis is split.
    pub splits: Vec<Vec<u64>>,
    /// The order of the axes of the result, after splitting; `None` for the order of the gather
    /// itself.
    pub transpose: Option<Permutation>,
    /// The order of the output's elements.
    pub order: Order,
    /// The most bytes of a piece.
    pub piece_bytes: u64,
    /// The most tuples of index tensors that are held in memory, in 8 bytes each.
    pub hold: u64,
}

impl Options {
    /// The options with the axes of the result split, and in this order in memory.
    pub(crate) fn arranged(self, axes: &MemoryAxes) -> Options {
        let splits = axes.splits().unwrap_or_default().to_vec();
        Options { splits, transpose: Some(axes.order().clone()), order: Order::C, ..self }
    }
}

impl Default for Options {
    fn default() -> Self {
        Options {
            batch_dims: 0,
            elements: false,
            negative: false,
            out_of_range: OutOfRange::Error,
            splits: Vec::new(),
            transpose: None,
            order: Order::C,
            piece_bytes: PIECE_BYTES,
            hold: 1 << 16,
        }
    }
}

/// Why a gather is not possible.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GatherError {
    /// Indices of a type that is not an integer type.
    #[error("indices must be integers, not {0}")]
    NotIntegers(String),
    /// Positions of elements that are stored in blocks.
    #[error(
        "axis {axis} is stored in blocks of {block} elements: single elements cannot be gathered"
    )]
    InBlocks {
        /// The axis.
        axis: usize,
        /// Elements of a block.
        block: u64,
    },
    /// A scalar cannot hold tuples.
    #[error("indices must have an axis of tuples, but have shape []")]
    NoTuples,
    /// Tuples with more numbers than there are axes.
    #[error(
        "indices of shape {} hold tuples of {} numbers, but params of shape {} have {} axes{}",
        AsList(indices), indices.last().unwrap_or(&0), AsList(params), params.len(),
        if *batch_dims > 0 { format!(" after {batch_dims} of batches") } else { String::new() }
    )]
    LongTuples {
        /// The shape of the indices.
        indices: Vec<u64>,
        /// The shape of the params.
        params: Vec<u64>,
        /// The number of batch axes.
        batch_dims: usize,
    },
    /// More batch axes than one of the two tensors has.
    #[error(
        "{batch_dims} batch dims are too many: at most {most} fit {what} of shape {}",
        AsList(shape)
    )]
    BatchDims {
        /// The requested number of batch axes.
        batch_dims: usize,
        /// The most batch axes.
        most: usize,
        /// The tensor with too few axes.
        what: &'static str,
        /// The shape.
        shape: Vec<u64>,
    },
    /// A negative number of batch axes beyond the axes of the indices.
    #[error("{batch_dims} batch dims: indices of shape {} have {} axes", AsList(indices), indices.len())]
    NegativeBatchDims {
        /// The requested number of batch axes.
        batch_dims: i64,
        /// The shape of the indices.
        indices: Vec<u64>,
    },
    /// The gathered axis is one of the batch axes.
    #[error("{batch_dims} batch dims are too many: axis {axis} cannot be gathered among them")]
    BatchAxis {
        /// The requested number of batch axes.
        batch_dims: usize,
        /// The axis to gather along.
        axis: usize,
    },
    /// Batches of different shapes.
    #[error(
        "params of shape {} and indices of shape {} differ in axis {axis} of the batches",
        AsList(params),
        AsList(indices)
    )]
    BatchShape {
        /// The shape of the params.
        params: Vec<u64>,
        /// The shape of the indices.
        indices: Vec<u64>,
        /// The first axis that differs.
        axis: usize,
    },
    /// An axis that the params do not have.
    #[error("axis {axis} is out of bounds for array of dimension {ndim}")]
    Axis {
        /// The axis.
        axis: i64,
        /// The number of axes of the params.
        ndim: usize,
    },
    /// Indices for single elements have another rank than the params.
    #[error(
        "indices and params must have the same number of axes, but have {indices} and {params}"
    )]
    ElementsRank {
        /// Axes of the params.
        params: usize,
        /// Axes of the indices.
        indices: usize,
    },
    /// Shapes that cannot be broadcast together.
    #[error(
        "indices of shape {} and params of shape {} cannot be broadcast to one shape along the axes \
         other than {axis}",
        AsList(indices),
        AsList(params)
    )]
    ElementsShape {
        /// The shape of the params.
        params: Vec<u64>,
        /// The shape of the indices.
        indices: Vec<u64>,
        /// The axis of the positions.
        axis: usize,
    },
    /// An axis without positions to clip or wrap to.
    #[error("axis {0} of the params has length 0: it has no position to clip or wrap to")]
    EmptyAxis(usize),
    /// A result with more axes than NumPy allows.
    #[error("number of dimensions must be within [0, {MAX_NDIM}], the result would have {0}")]
    TooManyAxes(usize),
    /// An axis along a list, or along chunks, cannot be split.
    #[error("an axis without strides cannot be split")]
    NoStrides,
    /// A permutation of another number of axes.
    #[error(transparent)]
    Transpose(#[from] PermutationError),
    /// Sizes beyond 63 bits, or slabs that do not begin on a whole byte.
    #[error(transparent)]
    #[doc(hidden)]
    View(#[from] ViewError),
}

#[cfg(test)]
mod tests {
    use super::{Gather, Indices, Options, *};
    use crate::dtype::{DType, Endian, Scalar};
    use crate::execute::{Pieces, ReadFrom};
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
        let shape = [3, 5, 4];
        let list_shape = [3, 2];
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
                let gathered = bytes(&steps.gather, &params, &list_fits);
                let laid: Vec<u8> = steps
                    .view
                    .runs()
                    .starts()
                    .flat_map(|at| gathered[at as usize..at as usize + 2].to_vec())
                    .collect();
                assert!(laid == direct, "{axes:?} {order:?} {axis} {stored:?}");
            }
        }
        assert!(relaid > 150, "{relaid}");
    }
}
