//! Why inputs do not fit together.

use crate::dtype::DType;
use crate::error::{ErrorKind, Fault};
use crate::shape::AsTuple;
use crate::tensor::shortened;

/// Why inputs do not fit together. The error names the file of the input at fault.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
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
    /// A tensor without axes cannot be joined along an axis.
    #[error("zero-dimensional arrays cannot be concatenated")]
    NoAxes,
    /// An input's shape does not fit the shape of the first input.
    #[error(
        "{} has shape {}, which does not fit shape {} of {}: {}",
        called(*number, names), AsTuple(shape), AsTuple(first), called(0, names),
        match axis {
            _ if shape.len() != first.len() => "they need the same number of axes".to_owned(),
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
        /// The names of the two tensors, where tensors are joined across all inputs.
        names: Option<[String; 2]>,
    },
    /// An input's dtype differs from the dtype of the first input.
    #[error("{} has dtype {dtype}, {} has {first}", called(*number, names), called(0, names))]
    DType {
        /// The number of the input, from 0.
        number: usize,
        /// The dtype of the input.
        dtype: DType,
        /// The dtype of the first input.
        first: DType,
        /// The dtype that both can be cast to (np.result_type), if there is one.
        common: Option<DType>,
        /// The names of the two tensors, where tensors are joined across all inputs.
        names: Option<[String; 2]>,
    },
    /// An attribute that gives elements their meaning (a scale, a unit) differs from the first input's.
    #[error(
        "{} has {attribute} {}, {} has {}",
        called(*number, names), values[1], called(0, names), values[0]
    )]
    Meaning {
        /// The number of the input, from 0.
        number: usize,
        /// The attribute that differs.
        attribute: &'static str,
        /// The values of the first input and of the other one.
        values: Box<[String; 2]>,
        /// Whether unpacked values can be joined.
        is_packing: bool,
        /// The names of the two tensors, where tensors are joined across all inputs.
        names: Option<[String; 2]>,
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
    /// A tensor that is to be taken once has different elements in two inputs.
    #[error("input {number} has different elements than input 0: it cannot be taken once")]
    Differs {
        /// The number of the input, from 0.
        number: usize,
    },
    /// Elements are smaller than a byte, and a member would not begin on a whole byte.
    #[error(
        "{} has {item_bits}-bit elements that do not fill whole bytes here", called(*number, names)
    )]
    CutsByte {
        /// The number of the input, from 0.
        number: usize,
        /// Bits an element.
        item_bits: u64,
        /// The names of the two tensors, where tensors are joined across all inputs.
        names: Option<[String; 2]>,
    },
    /// An input changed after its header was first read.
    #[error("the file was changed while it was being read")]
    Changed,
}

impl Fault for JoinFault {
    fn kind(&self) -> ErrorKind {
        match self {
            JoinFault::Axis { .. } => ErrorKind::Index,
            JoinFault::DType { .. } => ErrorKind::DType,
            _ => ErrorKind::Invalid,
        }
    }
}

/// What a message calls input `number`: "input 3" or, where `names` are given, the name of the first tensor (0) or of
/// the other tensor.
fn called(number: usize, names: &Option<[String; 2]>) -> String {
    match (names, number) {
        (None, _) => format!("input {number}"),
        (Some([first, _]), 0) => format!("{:?}", shortened(first)),
        (Some([_, other]), _) => format!("{:?}", shortened(other)),
    }
}

impl JoinFault {
    /// Name the two tensors in the fault: the first one, and the one at fault.
    pub(crate) fn of_tensors(mut self, both: [&str; 2]) -> JoinFault {
        if let JoinFault::Shape { names, .. }
        | JoinFault::Meaning { names, .. }
        | JoinFault::DType { names, .. }
        | JoinFault::CutsByte { names, .. } = &mut self
        {
            *names = Some(both.map(str::to_owned));
        }
        self
    }
}
