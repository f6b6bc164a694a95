//! Why a gather is not possible.

use crate::permutation::PermutationError;
use crate::shape::{AsList, MAX_NDIM};
use crate::view::ViewError;

/// Why a gather is not possible.
#[derive(Debug, thiserror::Error)]
pub enum GatherError {
    /// The indices are of a type that is no integer.
    #[error("indices must be integers, not {0}")]
    NotIntegers(String),
    /// Positions of elements that are stored in blocks.
    #[error("axis {axis} is stored in blocks of {block} elements, of which none can be gathered")]
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
    /// A negative number of batch axes that goes beyond the axes of the indices.
    #[error("{batch_dims} batch dims: indices of shape {} have {} axes", AsList(indices), indices.len())]
    NegativeBatchDims {
        /// How many were asked for.
        batch_dims: i64,
        /// The shape of the indices.
        indices: Vec<u64>,
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
    /// Indices of another rank than the params, one for each element.
    #[error(
        "indices and params must have the same number of axes, but have {indices} and {params}"
    )]
    ElementsRank {
        /// Axes of the params.
        params: usize,
        /// Axes of the indices.
        indices: usize,
    },
    /// Shapes that are not broadcast to one.
    #[error(
        "indices of shape {} and params of shape {} are not broadcast to one shape along the axes \
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
    /// Nothing to clip or wrap to.
    #[error("axis {0} of the params has length 0: it has no position to clip or wrap to")]
    EmptyAxis(usize),
    /// A result that NumPy could not hold.
    #[error("number of dimensions must be within [0, {MAX_NDIM}], the result would have {0}")]
    TooManyAxes(usize),
    /// The order of the axes is of another number of them.
    #[error(transparent)]
    Transpose(#[from] PermutationError),
    /// Sizes past 63 bits, or slabs that would cut a byte.
    #[error(transparent)]
    View(#[from] ViewError),
}
