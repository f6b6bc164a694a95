//! Why inputs cannot be joined.

use crate::dtype::DType;
use crate::error::Fault;
use crate::shape::AsTuple;

/// Why inputs do not fit together. The error names the file of the input at fault.
#[derive(Debug, thiserror::Error)]
pub enum JoinFault {
    /// There are no inputs.
    #[error("at least one input is needed")]
    Nothing,
    /// Standard input is named twice.
    #[error("standard input can be only one of the inputs")]
    StdinTwice,
    /// The result has no such axis.
    #[error("axis {axis} is out of bounds for array of dimension {ndim}")]
    Axis {
        /// The axis that was asked for.
        axis: i64,
        /// How many axes there are.
        ndim: usize,
    },
    /// A tensor without axes has none to be joined along.
    #[error("zero-dimensional arrays cannot be concatenated")]
    NoAxes,
    /// Another shape than that of the first input.
    #[error(
        "input {number} has shape {}, which does not fit shape {} of input 0: {}",
        AsTuple(shape), AsTuple(first),
        match axis {
            _ if shape.len() != first.len() => "they need as many axes".to_owned(),
            Some(axis) => format!("they may differ along axis {axis} only"),
            None => "they must be equal".to_owned(),
        }
    )]
    Shape {
        /// The number of the input, from 0.
        number: usize,
        /// The shape of the input, after an index.
        shape: Vec<u64>,
        /// The shape of the first input.
        first: Vec<u64>,
        /// The axis along which they may differ.
        axis: Option<usize>,
    },
    /// Another dtype than that of the first input.
    #[error("input {number} has dtype {dtype}, input 0 has {first}")]
    DType {
        /// The number of the input, from 0.
        number: usize,
        /// The dtype of the input.
        dtype: DType,
        /// The dtype of the first input.
        first: DType,
        /// The dtype that both can be cast to (np.result_type), where there is one.
        common: Option<DType>,
    },
    /// A tensor of the first input is missing.
    #[error("input {number} has no tensor {name:?}, which input 0 has")]
    Missing {
        /// The number of the input, from 0.
        number: usize,
        /// The name.
        name: String,
    },
    /// A tensor that the first input does not have.
    #[error("input {number} has a tensor {name:?}, which input 0 does not have")]
    Surplus {
        /// The number of the input, from 0.
        number: usize,
        /// The name.
        name: String,
    },
    /// A tensor that is to be taken once differs.
    #[error("input {number} has other bytes than input 0, so that it cannot be taken once")]
    Differs {
        /// The number of the input, from 0.
        number: usize,
    },
    /// Elements smaller than a byte, and a part would not begin on a whole byte.
    #[error("input {number} has {item_bits}-bit elements that do not fill whole bytes here")]
    CutsByte {
        /// The number of the input, from 0.
        number: usize,
        /// Bits an element.
        item_bits: u64,
    },
    /// An input is not what it was when its header was read first.
    #[error("the file was changed while it was being read")]
    Changed,
}

impl Fault for JoinFault {}
