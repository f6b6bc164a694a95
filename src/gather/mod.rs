//! Gathering: slabs of a tensor from the positions that an index tensor names.
//!
//! Owns the shapes and rules of gather_nd and gather (NumPy's take) with batch dimensions, as
//! TensorFlow has them, and of the lists and masks of an index, as NumPy has it ([`Gather::select`]).
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

use crate::permutation::{Permutation, PermutationError};
use crate::plan::{PIECE_BYTES, Plan};
use crate::runs::{Axis, Runs, coalesce};
use crate::shape::{self, MAX_NDIM, Order};
use crate::view::{Layout, ViewError};

mod check;
mod copy;
mod error;
mod mask;
mod null_sink;
mod page_cache;
mod pieces;
mod positions;
mod prefetch;
mod ravel;
mod reader;
mod rows;
mod select;
mod tuples;

pub use error::GatherError;
pub use mask::Mask;
pub use pieces::GatherPieces;
use positions::check_batch;
pub use positions::{DROPPED, Indices, OutOfRange, Positions, count_batch_dims};
pub use reader::PositionReader;
use rows::{OutputAxis, Rows};
pub use select::ListTensor;
use tuples::Tuples;

/// How to gather.
#[derive(Clone, Debug)]
pub struct Options {
    /// How many leading axes are batch axes, which params and indices share.
    pub batch_dims: usize,
    /// Whether negative indices count from the end, as in NumPy and ONNX; only those further out
    /// are out of range then. In TensorFlow all are.
    pub negative: bool,
    /// What becomes of indices out of range.
    pub out_of_range: OutOfRange,
    /// The order of the axes of the result, where it is not that of the gather itself.
    pub transpose: Option<Permutation>,
    /// The order of the output's elements.
    pub order: Order,
    /// A number of bytes that no piece may divide, as in [`Plan::new`].
    pub unit: u64,
    /// The most bytes of a piece.
    pub piece_bytes: u64,
    /// The most tuples of index tensors that are held in memory, as 8 bytes each.
    pub hold: u64,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            batch_dims: 0,
            negative: false,
            out_of_range: OutOfRange::Error,
            transpose: None,
            order: Order::C,
            unit: 1,
            piece_bytes: PIECE_BYTES,
            hold: 1 << 16,
        }
    }
}

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
    partition: RowPartition,
    hold: u64,
    /// The bytes of the output that are wanted, where not all are.
    window: Option<Range<u64>>,
}

/// How the output is divided into pieces.
#[derive(Clone, Debug)]
enum RowPartition {
    /// There is nothing to write.
    Empty,
    /// So many rows at a time.
    Rows(u64),
    /// Parts of one slab, whose offset is 0 in this plan.
    Slab(Box<Plan>),
}

impl Gather {
    /// gather_nd: the slabs at the tuples on the last axis of `indices`; the output has shape
    /// `indices.shape[:-1] + params.shape[batch_dims + N:]` for tuples of N numbers.
    ///
    /// # Errors
    /// [`GatherError`]. Source: TensorFlow's GatherNd; tuples of no numbers and slabs of no
    /// elements are allowed.
    pub fn nd(
        params: &Layout<'_>,
        indices: &Indices<'_>,
        options: &Options,
    ) -> Result<Gather, GatherError> {
        let batch_dims = options.batch_dims;
        let positions = Positions::nd(params, indices, batch_dims, options.out_of_range)?
            .with_negative(options.negative);
        let strides = params.strides()?;
        let indexed = positions.shape().iter().enumerate().map(|(axis, &len)| {
            let stride = if axis < batch_dims { strides[axis] } else { 0 };
            OutputAxis::plain(Axis { len, stride }).along(axis)
        });
        let slab = batch_dims + positions.tuple_len();
        let slab = (slab..params.shape.len()).map(|axis| OutputAxis::of(params, &strides, axis));
        let axes = indexed.chain(slab).collect();
        Gather::new(params, 0, axes, vec![Tuples::Numbers(positions)], options)
    }

    /// gather along an axis (NumPy's take): the output has shape
    /// `params.shape[:axis] + indices.shape[batch_dims:] + params.shape[axis + 1:]`.
    ///
    /// A negative `axis` counts from the end.
    ///
    /// # Errors
    /// [`GatherError`]. Source: TensorFlow's GatherV2.
    pub fn along(
        params: &Layout<'_>,
        indices: &Indices<'_>,
        axis: i64,
        options: &Options,
    ) -> Result<Gather, GatherError> {
        let batch_dims = options.batch_dims;
        let ndim = params.shape.len();
        let axis = counted_axis(axis, ndim)?;
        if batch_dims > axis {
            return Err(GatherError::BatchAxis { batch_dims, axis });
        }
        check_batch(params.shape, indices.shape, batch_dims, 0)?;
        let strides = params.strides()?;
        let positions = Positions::along(params, indices, axis, options.out_of_range)?
            .with_negative(options.negative);
        let whole = |axis: usize| OutputAxis::of(params, &strides, axis);
        let mut axes: Vec<OutputAxis> =
            (0..batch_dims).map(|axis| whole(axis).along(axis)).collect();
        axes.extend((batch_dims..axis).map(whole));
        let gathered = indices.shape.iter().enumerate().skip(batch_dims);
        axes.extend(
            gathered.map(|(dim, &len)| OutputAxis::plain(Axis { len, stride: 0 }).along(dim)),
        );
        axes.extend((axis + 1..ndim).map(whole));
        Gather::new(params, 0, axes, vec![Tuples::Numbers(positions)], options)
    }

    /// Make it from the axes of the output; `first` is the first item in elements.
    fn new(
        params: &Layout<'_>,
        first: i64,
        mut axes: Vec<OutputAxis>,
        lists: Vec<Tuples>,
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
        let size = shape::byte_count(params.shape, bits).ok_or(ViewError::TooLarge)?;
        let end = params.offset.checked_add(size).filter(|&end| i64::try_from(end).is_ok());
        let range = params.offset..end.ok_or(ViewError::TooLarge)?;
        let gather = |rows: Rows, slab: Runs| Gather {
            partition: RowPartition::new(&slab, options),
            shape,
            params: range,
            rows,
            slab,
            bytes,
            hold: options.hold,
            window: None,
        };
        if bytes == 0 || size == 0 {
            // what is gathered from nothing is nothing, or an error, or the zeros of `Drop`: no tuple
            // is in range, so that the first one stands for all
            let rows = Rows::new(params, 0, &[], lists)?;
            return Ok(gather(rows, Runs { offset: 0, axes: Vec::new(), run: bytes }));
        }
        axes = in_memory.permute(&axes);
        axes.retain(|axis| axis.len != 1);
        let rows = axes.iter().rposition(OutputAxis::is_indexed).map_or(0, |last| last + 1);
        let slab = axes.split_off(rows);
        let slab = slab.iter().map(|axis| Axis { len: axis.len, stride: axis.stride });
        let slab = slab_runs(params, &slab.collect::<Vec<_>>())?;
        let offset = params.offset as i64 + params.bytes(first)?;
        Ok(gather(Rows::new(params, offset, &axes, lists)?, slab))
    }

    /// The shape of the output.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Bytes of the output, or of its [window](Gather::within).
    pub fn bytes(&self) -> u64 {
        self.window.as_ref().map_or(self.bytes, |window| window.end - window.start)
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

    /// A text that is the same for equal gathers only.
    pub fn identity(&self) -> String {
        let Gather { shape, params, rows, slab, .. } = self;
        format!("{:?}", (shape, params, rows, slab))
    }
}

impl RowPartition {
    fn new(slab: &Runs, options: &Options) -> RowPartition {
        let Options { unit, piece_bytes, .. } = *options;
        match slab.bytes() {
            0 => RowPartition::Empty,
            bytes if bytes <= piece_bytes => RowPartition::Rows(piece_bytes / bytes),
            _ => RowPartition::Slab(Box::new(Plan::of_runs(slab, unit, piece_bytes))),
        }
    }
}

/// An axis that may count from the end.
fn counted_axis(axis: i64, ndim: usize) -> Result<usize, GatherError> {
    let counted = if axis < 0 { axis.checked_add(ndim as i64) } else { Some(axis) };
    counted
        .and_then(|axis| usize::try_from(axis).ok().filter(|&axis| axis < ndim))
        .ok_or(GatherError::Axis { axis, ndim })
}

/// A slab from its first byte on, of axes in elements.
fn slab_runs(params: &Layout<'_>, axes: &[Axis]) -> Result<Runs, ViewError> {
    let (mut axes, run) = coalesce(axes, 1);
    for axis in &mut axes {
        axis.stride = params.bytes(axis.stride)?;
    }
    Ok(Runs { offset: 0, axes, run: params.bytes(run as i64)? as u64 })
}
