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
//! Reads no files here: [`Gather::with`] lends it the indices' bytes, which makes
//! it [`Pieces`](crate::execute::Pieces) for the executor.

use std::ops::Range;

use crate::dtype::{DType, Endian, Scalar};
use crate::index::resolve::{AxisSelection, Selection};
use crate::plan::{PIECE_BYTES, Plan};
use crate::shape::{self, AsList, MAX_NDIM, Order, contiguous_strides};
use crate::source::MemorySource;
use crate::view::{Axis, Layout, View, ViewError, coalesce, gcd, reach};

mod ahead;
mod check;
mod copy;
mod fill;
mod merge;
mod positions;

pub use fill::Gathering;
pub use merge::Column;
pub use positions::{BadPosition, Indices, NOWHERE, OutOfRange, Positions};

/// How to gather.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How many first axes params and indices have in common, whose positions go together.
    pub batch_dims: usize,
    /// What becomes of indices out of range.
    pub out_of_range: OutOfRange,
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
    fn default() -> Options {
        Options {
            batch_dims: 0,
            out_of_range: OutOfRange::Error,
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
    order: Order,
    /// The bytes of the file that the params take.
    params: Range<u64>,
    /// Where the first item lies in the file for tuples of zeros, in bytes.
    first: i64,
    /// The axes that count the rows, outermost first.
    rows: Vec<Row>,
    /// How many rows go along neighbouring tuples: the innermost axes that go along any.
    together: u64,
    /// The axes of a slab, over runs of `run` bytes.
    slab: Vec<Axis>,
    run: u64,
    bytes: u64,
    cut: Cut,
    hold: u64,
}

/// An axis of the output, outside the slab.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Row {
    len: u64,
    /// The distance between neighbours in the params, in bytes.
    stride: i64,
    /// The distance between neighbours in tuples; 0 where all share theirs.
    step: u64,
}

/// How the output is cut into pieces.
#[derive(Clone, Debug)]
enum Cut {
    /// There is nothing to write.
    Nothing,
    /// Into so many rows at a time.
    Rows(u64),
    /// Each slab by itself. `bias` is where its first item lies in the plan's input.
    Slab { plan: Box<Plan>, bias: i64 },
}

/// Why a gather cannot be.
#[derive(Debug, thiserror::Error)]
pub enum GatherError {
    /// The indices are of a type that is no integer.
    #[error("indices must be integers, not {0}")]
    NotIntegers(String),
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
        /// How many axes are left to the batches.
        batch_dims: usize,
    },
    /// More batch axes than one of the two tensors has.
    #[error(
        "{batch_dims} batch dims are too many: at most {most} fit {what} of shape {}",
        AsList(shape)
    )]
    BatchDims {
        /// How many were asked for.
        batch_dims: usize,
        /// How many there can be.
        most: usize,
        /// Whose shape it is.
        what: &'static str,
        /// The shape.
        shape: Vec<u64>,
    },
    /// The gathered axis would be one of the batches'.
    #[error("{batch_dims} batch dims are too many: axis {axis} cannot be gathered among them")]
    BatchAxis {
        /// How many were asked for.
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
    /// An axis that the params lack.
    #[error("axis {axis} is out of bounds for array of dimension {ndim}")]
    Axis {
        /// The axis.
        axis: i64,
        /// How many the params have.
        ndim: usize,
    },
    /// Nothing to clip or wrap to.
    #[error("axis {0} of the params has length 0: it has no position to clip or wrap to")]
    EmptyAxis(usize),
    /// A result that NumPy could not hold.
    #[error("number of dimensions must be within [0, {MAX_NDIM}], the result would have {0}")]
    TooManyAxes(usize),
    /// Sizes past 63 bits, or slabs that would cut a byte.
    #[error(transparent)]
    View(#[from] ViewError),
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
        let positions = Positions::nd(params, indices, batch_dims, options.out_of_range)?;
        let strides = element_strides(params)?;
        let indexed = positions.shape().iter().enumerate().map(|(axis, &len)| {
            let stride = if axis < batch_dims { strides[axis] } else { 0 };
            OutputAxis { len, stride, indexed: true }
        });
        let slab = batch_dims + positions.columns();
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
        let strides = element_strides(params)?;
        let positions = Positions::along(params, indices, axis, options.out_of_range)?;
        let whole = |axis: usize| OutputAxis::of(params, &strides, axis);
        let mut axes: Vec<OutputAxis> =
            (0..batch_dims).map(|axis| OutputAxis { indexed: true, ..whole(axis) }).collect();
        axes.extend((batch_dims..axis).map(whole));
        let gathered = &indices.shape[batch_dims..];
        axes.extend(gathered.iter().map(|&len| OutputAxis { len, stride: 0, indexed: true }));
        axes.extend((axis + 1..ndim).map(whole));
        Gather::new(params, 0, axes, positions, options)
    }

    /// The result of a selection with a list, and the indices to lend it. `None` where the
    /// selection has no list.
    ///
    /// # Errors
    /// [`GatherError`], for sizes alone.
    pub fn list(
        params: &Layout<'_>,
        selection: &Selection,
        options: &Options,
    ) -> Result<Option<(Gather, MemorySource)>, GatherError> {
        let strides = element_strides(params)?;
        let (mut first, mut axes, mut listed) = (0, Vec::new(), None);
        for selected in &selection.axes {
            match selected {
                &AxisSelection::Index { axis, at } => first += at as i64 * strides[axis],
                &AxisSelection::Range { axis, start, step, len } => {
                    first += start as i64 * strides[axis];
                    let stride = if len > 1 { step * strides[axis] } else { 0 };
                    axes.push(OutputAxis { len, stride, indexed: false });
                }
                AxisSelection::NewAxis => {
                    axes.push(OutputAxis { len: 1, stride: 0, indexed: false })
                }
                AxisSelection::List { axis, positions } => listed = Some((*axis, positions)),
            }
        }
        let (Some((axis, list)), Some(at)) = (listed, selection.list_output_axis()) else {
            return Ok(None);
        };
        let dtype = DType::Scalar(Scalar::U64, Endian::Little);
        let shape = [list.len() as u64];
        let indices = Indices { dtype: &dtype, shape: &shape, order: Order::C, offset: 0 };
        let list = MemorySource(list.iter().flat_map(|position| position.to_le_bytes()).collect());
        let positions = Positions::along(params, &indices, axis, OutOfRange::Error)?;
        let listed = OutputAxis { len: positions.count(), stride: 0, indexed: true };
        axes.insert(at.min(axes.len()), listed);
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
        let shape: Vec<u64> = axes.iter().map(|axis| axis.len).collect();
        if shape.len() > MAX_NDIM {
            return Err(GatherError::TooManyAxes(shape.len()));
        }
        let bits = params.item_bits;
        let bytes = shape::byte_count(&shape, bits).ok_or(ViewError::TooLarge)?;
        let size = shape::byte_count(params.shape, bits).ok_or(ViewError::TooLarge)?;
        let end = params.offset.checked_add(size).filter(|&end| i64::try_from(end).is_ok());
        let mut gather = Gather {
            positions: positions.numbered(options.order),
            shape,
            order: options.order,
            params: params.offset..end.ok_or(ViewError::TooLarge)?,
            first: 0,
            rows: Vec::new(),
            together: 1,
            slab: Vec::new(),
            run: 0,
            bytes,
            cut: Cut::Nothing,
            hold: options.hold,
        };
        if bytes == 0 || size == 0 {
            // what is gathered from nothing is nothing, or an error, or the zeros of `Nowhere`
            gather.zeros(options);
            return Ok(gather);
        }
        if options.order == Order::F {
            axes.reverse();
        }
        axes.retain(|axis| axis.len != 1);
        let rows = axes.iter().rposition(|axis| axis.indexed).map_or(0, |last| last + 1);
        let slab = axes.split_off(rows);
        let slab = slab.iter().map(|axis| Axis { len: axis.len, stride: axis.stride });
        gather.first = params.offset as i64 + whole_bytes(first, bits)?;
        (gather.slab, gather.run) = slab_bytes(&slab.collect::<Vec<_>>(), bits)?;
        gather.rows = merged_rows(&axes, bits)?;
        let together = gather.rows.iter().rev().take_while(|row| row.step > 0);
        gather.together = together.map(|row| row.len).product();
        gather.cut = Cut::new(&gather.slab, gather.run, options);
        Ok(gather)
    }

    /// Let all rows be one slab each of no axes, for params without elements.
    fn zeros(&mut self, options: &Options) {
        if self.bytes > 0 {
            let count = self.positions.count();
            self.rows = vec![Row { len: count, stride: 0, step: 1 }];
            self.together = count;
            self.run = self.bytes / count;
            self.cut = Cut::new(&[], self.run, options);
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

    /// The same gather from a file whose first `bytes` bytes are gone.
    #[must_use]
    pub fn after(mut self, bytes: u64) -> Gather {
        let Range { start, end } = self.params;
        self.params = start.saturating_sub(bytes)..end.saturating_sub(bytes);
        self.first = self.first.saturating_sub_unsigned(bytes);
        self
    }

    fn row_count(&self) -> u64 {
        self.rows.iter().map(|row| row.len).product()
    }

    fn slab_bytes(&self) -> u64 {
        self.slab.iter().map(|axis| axis.len).product::<u64>() * self.run
    }
}

impl Cut {
    fn new(slab: &[Axis], run: u64, options: &Options) -> Cut {
        let Options { unit, piece_bytes, .. } = *options;
        let bytes = slab.iter().map(|axis| axis.len).product::<u64>() * run;
        match bytes {
            0 => Cut::Nothing,
            _ if bytes <= piece_bytes => Cut::Rows(piece_bytes / bytes),
            _ => {
                let bias = -reach(slab, run).start;
                let view = View::of_bytes(bias as u64, run, slab.to_vec());
                Cut::Slab { plan: Box::new(Plan::new(&view, unit, piece_bytes)), bias }
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
fn merged_rows(axes: &[OutputAxis], item_bits: u64) -> Result<Vec<Row>, ViewError> {
    let mut step = 1;
    let mut rows: Vec<Row> = Vec::with_capacity(axes.len());
    for &OutputAxis { len, stride, indexed } in axes.iter().rev() {
        let row = Row {
            len,
            stride: whole_bytes(stride, item_bits)?,
            step: if indexed { step } else { 0 },
        };
        step *= if indexed { len } else { 1 };
        match rows.last_mut() {
            Some(inner)
                if row.step == inner.step * inner.len
                    && i128::from(row.stride)
                        == i128::from(inner.stride) * i128::from(inner.len) =>
            {
                inner.len *= len;
            }
            _ => rows.push(row),
        }
    }
    rows.reverse();
    Ok(rows)
}

/// The axes and the run of a slab in bytes, from axes in elements.
fn slab_bytes(axes: &[Axis], item_bits: u64) -> Result<(Vec<Axis>, u64), ViewError> {
    let (axes, run) = coalesce(axes, 1);
    let bytes =
        |axis: &Axis| Ok(Axis { len: axis.len, stride: whole_bytes(axis.stride, item_bits)? });
    let axes: Result<Vec<Axis>, ViewError> = axes.iter().map(bytes).collect();
    Ok((axes?, whole_bytes(run as i64, item_bits)? as u64))
}

/// Elements as bytes, where they are whole ones.
fn whole_bytes(elements: i64, item_bits: u64) -> Result<i64, ViewError> {
    let bits = i128::from(elements) * i128::from(item_bits);
    if bits % 8 != 0 {
        let multiple = 8 / gcd(item_bits, 8);
        return Err(ViewError::CutsByte { item_bits, multiple });
    }
    i64::try_from(bits / 8).map_err(|_| ViewError::TooLarge)
}

/// The strides of a layout in elements, 0 where it has none; all its bytes can be counted.
fn element_strides(layout: &Layout<'_>) -> Result<Vec<i64>, ViewError> {
    shape::byte_count(layout.shape, layout.item_bits).ok_or(ViewError::TooLarge)?;
    if layout.shape.contains(&0) {
        return Ok(vec![0; layout.shape.len()]);
    }
    contiguous_strides(layout.shape, 1, layout.order).ok_or(ViewError::TooLarge)
}

/// The rules of batch dimensions: the last axis of params, and of indices `own` axes, are not theirs.
fn check_batch(
    params: &[u64],
    indices: &[u64],
    batch_dims: usize,
    own: usize,
) -> Result<(), GatherError> {
    for (what, shape, own) in [("indices", indices, own), ("params", params, 1)] {
        let most = shape.len().saturating_sub(own);
        if batch_dims > most {
            let shape = shape.to_vec();
            return Err(GatherError::BatchDims { batch_dims, most, what, shape });
        }
    }
    match (0..batch_dims).find(|&axis| params[axis] != indices[axis]) {
        Some(axis) => Err(GatherError::BatchShape {
            params: params.to_vec(),
            indices: indices.to_vec(),
            axis,
        }),
        None => Ok(()),
    }
}
