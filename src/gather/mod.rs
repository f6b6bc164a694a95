//! Gathering: slabs of a tensor from the positions that an index tensor names.
//!
//! Owns the shapes and rules of gather_nd and gather (NumPy's take) with batch dimensions, as
//! TensorFlow has them, and of a list in a slice expression, as NumPy has it. All three become
//! one thing: an output whose axes go along the params, along the tuples of the indices, or along
//! both. Its innermost axes that need no indices are the *slab*, which is copied as a view is;
//! the others count the *rows*.
//!
//! ```text
//!   indices (2, 3, 1)   params (4, 5)       output (2, 3, 5)
//!   [[[3], [0], [1]],   ──────────── 0      rows 2 x 3, a slab each
//!    [[1], [1], [2]]]   ──────────── 1
//! ```
//!
//! [`Gather::with`] binds the source of the indices, which makes [`GatherPieces`] for the executor.

use std::ops::Range;

use crate::dtype::{DType, Endian, Scalar};
use crate::index::resolve::{AxisSelection, Selection};
use crate::permutation::{Permutation, PermutationError};
use crate::plan::{PIECE_BYTES, Plan};
use crate::runs::{Axis, Runs, coalesce};
use crate::shape::{self, MAX_NDIM, Order};
use crate::source::MemorySource;
use crate::view::{Layout, ViewError};

mod check;
mod copy;
mod error;
mod page_cache;
mod pieces;
mod positions;
mod prefetch;
mod ravel;
mod reader;

pub use error::GatherError;
pub use pieces::GatherPieces;
use positions::check_batch;
pub use positions::{DROPPED, Indices, OutOfRange, Positions, count_batch_dims};
pub use reader::PositionReader;

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
    /// The most tuples of an index tensor that are held in memory, as 8 bytes each.
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
    positions: Positions,
    /// The shape of the output.
    shape: Vec<u64>,
    /// The bytes of the file that the params take.
    params: Range<u64>,
    /// The axes that count the rows, outermost first.
    rows: Vec<RowAxis>,
    /// How many consecutive rows have consecutive tuples: those of the innermost axes that go along
    /// the tuples.
    tuple_run: u64,
    /// A slab; its offset is that of row 0 for a tuple of zeros.
    slab: Runs,
    bytes: u64,
    partition: RowPartition,
    hold: u64,
}

/// An axis of the output, outside the slab.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RowAxis {
    len: u64,
    /// The distance between neighbours in the params, in bytes.
    stride: i64,
    /// The distance between neighbours in tuples; 0 where all share theirs.
    step: u64,
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
            OutputAxis { len, stride, indexed: true }
        });
        let slab = batch_dims + positions.tuple_len();
        let slab = (slab..params.shape.len()).map(|axis| OutputAxis::of(params, &strides, axis));
        Gather::new(params, 0, indexed.chain(slab).collect(), positions, options)
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
        let counted = if axis < 0 { axis.checked_add(ndim as i64) } else { Some(axis) };
        let axis = counted
            .and_then(|axis| usize::try_from(axis).ok().filter(|&axis| axis < ndim))
            .ok_or(GatherError::Axis { axis, ndim })?;
        if batch_dims > axis {
            return Err(GatherError::BatchAxis { batch_dims, axis });
        }
        check_batch(params.shape, indices.shape, batch_dims, 0)?;
        let strides = params.strides()?;
        let positions = Positions::along(params, indices, axis, options.out_of_range)?
            .with_negative(options.negative);
        let whole = |axis: usize| OutputAxis::of(params, &strides, axis);
        let mut axes: Vec<OutputAxis> =
            (0..batch_dims).map(|axis| OutputAxis { indexed: true, ..whole(axis) }).collect();
        axes.extend((batch_dims..axis).map(whole));
        let gathered = &indices.shape[batch_dims..];
        axes.extend(gathered.iter().map(|&len| OutputAxis { len, stride: 0, indexed: true }));
        axes.extend((axis + 1..ndim).map(whole));
        Gather::new(params, 0, axes, positions, options)
    }

    /// The result of a selection with a list, and the source of its indices. `None` where the
    /// selection has no list.
    ///
    /// # Errors
    /// [`GatherError`], for sizes alone.
    pub fn list(
        params: &Layout<'_>,
        selection: &Selection,
        options: &Options,
    ) -> Result<Option<(Gather, MemorySource)>, GatherError> {
        let mut kept =
            selection.axes.iter().filter(|pick| !matches!(pick, AxisSelection::Index { .. }));
        let listed = kept.position(|pick| matches!(pick, AxisSelection::List { .. }));
        let mut picks = selection.axes.iter();
        let list = picks.find_map(|pick| match pick {
            AxisSelection::List { axis, positions } => Some((*axis, positions)),
            _ => None,
        });
        let (Some(listed), Some((axis, list)), Some(at)) =
            (listed, list, selection.list_output_axis())
        else {
            return Ok(None);
        };
        let (first, axes) = params.select(selection)?;
        let whole = |axis: &Axis| OutputAxis { len: axis.len, stride: axis.stride, indexed: false };
        let mut axes: Vec<OutputAxis> = axes.iter().map(whole).collect();
        let dtype = DType::Scalar(Scalar::U64, Endian::Little);
        let shape = [list.len() as u64];
        let indices = Indices { dtype: &dtype, shape: &shape, order: Order::C, offset: 0 };
        let list = MemorySource(list.iter().flat_map(|position| position.to_le_bytes()).collect());
        let positions = Positions::along(params, &indices, axis, OutOfRange::Error)?;
        axes.remove(listed);
        let gathered = OutputAxis { len: positions.count(), stride: 0, indexed: true };
        axes.insert(at.min(axes.len()), gathered);
        let gather = Gather::new(params, first, axes, positions, options)?;
        Ok(Some((gather, list)))
    }

    /// Make it from the axes of the output; `first` is the first item in elements.
    fn new(
        params: &Layout<'_>,
        first: i64,
        mut axes: Vec<OutputAxis>,
        positions: Positions,
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
        let mut gather = Gather {
            // each axis that goes along the tuples is one of theirs, in that order
            positions: positions.numbered(in_memory.restricted(|axis| axes[axis].indexed)),
            shape,
            params: params.offset..end.ok_or(ViewError::TooLarge)?,
            rows: Vec::new(),
            tuple_run: 1,
            slab: Runs { offset: 0, axes: Vec::new(), run: 0 },
            bytes,
            partition: RowPartition::Empty,
            hold: options.hold,
        };
        if bytes == 0 || size == 0 {
            // what is gathered from nothing is nothing, or an error, or the zeros of `Drop`
            gather.zeros(options);
            return Ok(gather);
        }
        axes = in_memory.permute(&axes);
        axes.retain(|axis| axis.len != 1);
        let rows = axes.iter().rposition(|axis| axis.indexed).map_or(0, |last| last + 1);
        let slab = axes.split_off(rows);
        let slab = slab.iter().map(|axis| Axis { len: axis.len, stride: axis.stride });
        gather.slab = slab_runs(params, first, &slab.collect::<Vec<_>>())?;
        gather.rows = merged_rows(params, &axes)?;
        let tuple_run = gather.rows.iter().rev().take_while(|row| row.step > 0);
        gather.tuple_run = tuple_run.map(|row| row.len).product();
        gather.partition = RowPartition::new(&gather.slab, options);
        Ok(gather)
    }

    /// One slab at the first tuple, for params without elements: no tuple of theirs is in range, so
    /// that the first one stands for all.
    fn zeros(&mut self, options: &Options) {
        if self.bytes > 0 {
            self.slab.run = self.bytes;
            self.partition = RowPartition::new(&self.slab, options);
        }
    }

    /// The shape of the output.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Bytes of the output.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    fn row_count(&self) -> u64 {
        self.rows.iter().map(|row| row.len).product()
    }
}

impl RowPartition {
    fn new(slab: &Runs, options: &Options) -> RowPartition {
        let Options { unit, piece_bytes, .. } = *options;
        match slab.bytes() {
            0 => RowPartition::Empty,
            bytes if bytes <= piece_bytes => RowPartition::Rows(piece_bytes / bytes),
            _ => {
                let slab = Runs { offset: 0, ..slab.clone() };
                RowPartition::Slab(Box::new(Plan::of_runs(&slab, unit, piece_bytes)))
            }
        }
    }
}

/// An axis of the output, in elements of the params.
#[derive(Clone, Copy, Debug)]
struct OutputAxis {
    len: u64,
    stride: i64,
    /// Whether it goes along the tuples too.
    indexed: bool,
}

impl OutputAxis {
    /// A whole axis of the params.
    fn of(params: &Layout<'_>, strides: &[i64], axis: usize) -> OutputAxis {
        OutputAxis { len: params.shape[axis], stride: strides[axis], indexed: false }
    }
}

/// The axes outside the slab, none of length 1, with neighbours merged.
fn merged_rows(params: &Layout<'_>, axes: &[OutputAxis]) -> Result<Vec<RowAxis>, ViewError> {
    let mut step = 1;
    let mut rows: Vec<RowAxis> = Vec::with_capacity(axes.len());
    for &OutputAxis { len, stride, indexed } in axes.iter().rev() {
        let stride = params.bytes(stride)?;
        let row = RowAxis { len, stride, step: if indexed { step } else { 0 } };
        step *= if indexed { len } else { 1 };
        match rows.last_mut() {
            Some(inner) if inner.merges_with(row) => inner.len *= len,
            _ => rows.push(row),
        }
    }
    rows.reverse();
    Ok(rows)
}

impl RowAxis {
    /// As [`Axis::merges_with`], in the params and in the tuples.
    fn merges_with(self, outer: RowAxis) -> bool {
        let axis = |row: RowAxis| Axis { len: row.len, stride: row.stride };
        outer.step == self.step * self.len && axis(self).merges_with(axis(outer))
    }
}

/// The slab of row 0 for a tuple of zeros, from its first element and axes in elements.
fn slab_runs(params: &Layout<'_>, first: i64, axes: &[Axis]) -> Result<Runs, ViewError> {
    let offset = params.offset as i64 + params.bytes(first)?;
    let (mut axes, run) = coalesce(axes, 1);
    for axis in &mut axes {
        axis.stride = params.bytes(axis.stride)?;
    }
    Ok(Runs { offset, axes, run: params.bytes(run as i64)? as u64 })
}
