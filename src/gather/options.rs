//! How to gather.

use super::positions::OutOfRange;
use crate::permutation::Permutation;
use crate::plan::PIECE_BYTES;
use crate::shape::Order;

/// How to gather.
#[derive(Clone, Debug)]
pub struct Options {
    /// How many leading axes are batch axes, which params and indices share.
    pub batch_dims: usize,
    /// Along an axis: one element for each index, as np.take_along_axis has it, in place of a slab.
    pub elements: bool,
    /// Whether negative indices count from the end, as in NumPy and ONNX; only those further out
    /// are out of range then. In TensorFlow all are.
    pub negative: bool,
    /// What to do with indices out of range.
    pub out_of_range: OutOfRange,
    /// The order of the axes of the result, where it is not that of the gather itself.
    pub transpose: Option<Permutation>,
    /// The order of the output's elements.
    pub order: Order,
    /// The most bytes of a piece.
    pub piece_bytes: u64,
    /// The most tuples of index tensors that are held in memory, as 8 bytes each.
    pub hold: u64,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            batch_dims: 0,
            elements: false,
            negative: false,
            out_of_range: OutOfRange::Error,
            transpose: None,
            order: Order::C,
            piece_bytes: PIECE_BYTES,
            hold: 1 << 16,
        }
    }
}
