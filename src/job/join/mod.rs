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
use crate::error::{Cause, Error};
use crate::execute::Progress;
use crate::input::Location;
use crate::output::{Output, TensorChange};

mod fault;
mod inputs;

pub use fault::JoinFault;
pub use inputs::JoinOptions;

pub use super::assembly::members::Along;

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
