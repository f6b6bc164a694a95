//! Slices of inputs that a program holds, joined to one output.

use super::super::edit::conversion;
use super::JoinFault;
use super::group::{Group, JoinedPart, PartStep, through_scratch};
use super::inputs::{Along, JoinedTensor};
use super::place::{JoinedPlace, Place, whole};
use crate::cast::{Cast, Casting};
use crate::dtype::DType;
use crate::error::{Cause, Error};
use crate::execute::Progress;
use crate::job::copy::Writing;
use crate::job::copying::HeldSlice;
use crate::job::inputs::InputRef;
use crate::job::overwrite;
use crate::output::{Becomes, Output};
use crate::sink::WriteOrder;

/// Write slices to an output, side by side along an axis.
///
/// # Errors
/// [`JoinFault`] for the first slice that does not fit the first; dtypes that the output lacks, inputs
/// that fail, an output that cannot be written.
pub(crate) fn join_slices(
    slices: &[HeldSlice<'_>],
    axis: i64,
    along: Along,
    output: &Output,
) -> Result<(), Error> {
    let first = slices.first().ok_or(JoinFault::Nothing)?;
    let mut join = JoinedTensor::new(first.becomes.shape.clone(), axis, along)?;
    let mut steps = vec![PartStep::AsFirst(1)];
    for (number, slice) in slices.iter().enumerate().skip(1) {
        let failed = |cause| slice.input.failed_tensor(slice.tensor, true, cause);
        steps.push(step(number, slice, first).map_err(failed)?);
        join.push(join.fit(number, &slice.becomes.shape).map_err(|fault| failed(fault.into()))?)?;
    }
    let order = output.options.order;
    let item_bits = first.tensor.dtype.item_bits();
    if let Some(number) = join.cut_byte(slices.len(), item_bits, order) {
        return Err(JoinFault::CutsByte { number, item_bits }.into());
    }
    let Becomes { cast, axes, .. } = first.becomes.clone();
    let becomes = Becomes { shape: join.result(), cast, axes: join.axes(axes) };
    let prepared = output.prepare(first.input, first.tensor, becomes)?;
    let copy = |job: &Writing<'_>, place: &Place| -> Result<(), Error> {
        let mut group = Group::default();
        for (number, (slice, step)) in slices.iter().zip(&steps).enumerate() {
            let take = slice.take(step.conversion(place.conversion), place.start);
            let parts = vec![JoinedPart { take, step: *step }];
            group.push(number, InputRef::Borrowed(slice.input), parts)?;
        }
        group.copy(job, &[JoinedPlace::new(place, &join, 0, order)])
    };
    let lists = slices.iter().flat_map(|slice| slice.region.lists());
    overwrite::check(&output.destination, slices.iter().map(|slice| slice.input), lists)?;
    let progress = Progress::default();
    for place in &whole(&prepared) {
        let takes = slices.iter().zip(&steps);
        let takes =
            takes.map(|(slice, step)| slice.take(step.conversion(place.conversion), place.start));
        let job = Writing::of_output(&prepared, true, &Vec::from_iter(takes), &progress)?;
        let in_order = job.sink().order() == WriteOrder::Ascending;
        if in_order && join.rows_and_inner(order).0 > 1 {
            through_scratch(&job, place, &output.options.workers, copy)?;
        } else {
            copy(&job, place)?;
        }
        job.commit()?;
    }
    Ok(())
}

/// The dtype of the elements of a slice.
fn dtype(slice: &HeldSlice<'_>) -> DType {
    slice.becomes.cast.map_or_else(|| slice.tensor.dtype.clone(), Cast::to)
}

/// What the elements of a slice go through, beside those of the first one.
fn step(number: usize, slice: &HeldSlice<'_>, first: &HeldSlice<'_>) -> Result<PartStep, Cause> {
    let ours = dtype(slice);
    let theirs = dtype(first);
    if conversion(&ours, &theirs).is_err() {
        return Err(JoinFault::DType { number, dtype: ours, first: theirs, common: None }.into());
    }
    let plain = PartStep::as_first(&slice.tensor.dtype, &first.tensor.dtype);
    let cast = match (slice.becomes.cast, first.becomes.cast, plain) {
        (None, None, Some(step)) => return Ok(step),
        (Some(cast), ..) => cast,
        _ => Cast::new(&slice.tensor.dtype, &theirs, Casting::Unsafe)?,
    };
    Ok(PartStep::own(cast, &first.tensor.dtype))
}
