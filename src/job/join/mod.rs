//! NumPy's concatenate and stack: several inputs are joined to one output. Inputs with several tensors are joined by
//! name: all tensors of one name make one tensor.
//!
//! [`Joined::open`] reads the header of every input, several at a time, and checks that all fit together (`inputs`).
//! Of many inputs only the numbers of the joined tensors and their lengths along the joined axis stay in memory.

use inputs::Joined;

use super::assembly::members::{JoinedTensor, Members};
use super::assembly::step::{Step, check_meaning};
use super::copying::Copying;
use super::edit::conversion;
use super::slice::{HeldSlice, write_slices};
use crate::cast::{Cast, Casting};
use crate::dtype::DType;
use crate::error::{Cause, Error, ErrorKind, Fault};
use crate::execute::Progress;
use crate::input::Location;
use crate::output::{Output, TensorChange};
use crate::shape::AsTuple;
use crate::tensor::shortened;

mod inputs;

pub use inputs::JoinOptions;

pub use super::assembly::members::Along;

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

impl<'a> Copying<'a> {
    /// Join as NumPy's concatenate and stack do: read the headers of all inputs, check that they
    /// fit together, and lay out the tensors of the output.
    pub fn join(
        locations: &'a [Location],
        options: JoinOptions<'a>,
        output: Output,
    ) -> Result<Copying<'a>, Error> {
        let several = output.format.holds_several;
        let joined = Joined::open(locations, options, &output);
        let joined = joined.map_err(|error| error.of_several(several))?;
        let left = joined.check_casts()?;
        let prepared = joined.prepare(&output)?;
        Ok(Copying::new(prepared, joined.assemble(), left))
    }
}

/// Write slices to an output, side by side along an axis.
pub(crate) fn join_slices(
    slices: &[HeldSlice<'_>],
    axis: i64,
    along: Along,
    output: &Output,
) -> Result<(), Error> {
    let first = slices.first().ok_or(JoinFault::Nothing)?;
    let mut join = JoinedTensor::new(first.change.shape.clone(), axis, along)?;
    let mut steps = vec![Step::AsFirst(1)];
    for (number, slice) in slices.iter().enumerate().skip(1) {
        let failed = |cause| slice.input.failed_tensor(slice.tensor, true, cause);
        join.push(join.fit(number, &slice.change.shape).map_err(|fault| failed(fault.into()))?)?;
        steps.push(step(number, slice, first).map_err(failed)?);
    }
    let order = output.options.order;
    if let Some((_, fault)) = join.cut_byte(slices.len(), &first.tensor.dtype, order) {
        return Err(fault.into());
    }
    let TensorChange { cast, axes, .. } = first.change.clone();
    let change = TensorChange { shape: join.result(), cast, axes: join.axes(axes) };
    let mut prepared = output.prepare(first.input, first.tensor, change)?;
    let mut members = Members::default();
    members.push_joined(&Vec::from_iter((0..).take(slices.len())), Some(join));
    let progress = Progress::watched(&output.options.watcher);
    write_slices(slices, members, steps, &mut prepared, &progress)
}

fn dtype(slice: &HeldSlice<'_>) -> DType {
    slice.change.cast.map_or_else(|| slice.tensor.dtype.clone(), Cast::to)
}

/// The conversion of a slice's elements, relative to the first slice.
fn step(number: usize, slice: &HeldSlice<'_>, first: &HeldSlice<'_>) -> Result<Step, Cause> {
    check_meaning(number, slice.tensor, first.tensor)?;
    let ours = dtype(slice);
    let theirs = dtype(first);
    if conversion(&ours, &theirs).is_err() {
        let common = None;
        let names = None;
        return Err(JoinFault::DType { number, dtype: ours, first: theirs, common, names }.into());
    }
    let plain = Step::as_first(&slice.tensor.dtype, &first.tensor.dtype);
    let cast = match (slice.change.cast, first.change.cast, plain) {
        (None, None, Some(step)) => return Ok(step),
        (Some(cast), ..) => cast,
        _ => Cast::new(&slice.tensor.dtype, &theirs, Casting::Unsafe)?,
    };
    Ok(Step::own(cast, &first.tensor.dtype))
}
