//! Slices of inputs that are open, joined to one output.

use std::sync::Arc;

use super::super::edit::conversion;
use super::JoinFault;
use super::inputs::{Along, JoinedTensor};
use super::place::{JoinedPlace, whole};
use super::write::{Cells, Group, PartStep, through_scratch};
use crate::cast::{Cast, Casting};
use crate::dtype::DType;
use crate::error::{Cause, Error};
use crate::execute::Progress;
use crate::format::TensorInfo;
use crate::input::Input;
use crate::job::copy::Writing;
use crate::job::inputs::Lent;
use crate::job::overwrite;
use crate::output::{Becomes, Output};
use crate::region::{Region, Take};
use crate::sink::WriteOrder;
use crate::source::Source;

/// What is taken of a tensor of an input.
pub(crate) struct JoinedSlice<'a> {
    pub(crate) input: &'a Input,
    pub(crate) source: &'a Arc<dyn Source>,
    pub(crate) tensor: &'a TensorInfo,
    pub(crate) becomes: Becomes,
    /// The bytes, in the memory order of the output.
    pub(crate) region: Arc<dyn Region>,
}

/// Write slices to an output, side by side along an axis.
///
/// # Errors
/// [`JoinFault`] for the first slice that does not fit the first; dtypes that the output lacks, inputs
/// that fail, an output that cannot be written.
pub(crate) fn join_slices(
    slices: &[JoinedSlice<'_>],
    axis: i64,
    along: Along,
    output: &Output,
) -> Result<(), Error> {
    let first = slices.first().ok_or(JoinFault::Nothing)?;
    let mut join = JoinedTensor::new(first.becomes.shape.clone(), axis, along)?;
    let mut steps = vec![PartStep::AsFirst(1)];
    for (number, slice) in slices.iter().enumerate().skip(1) {
        let failed = |cause| slice.input.failed_tensor(slice.tensor, true, cause);
        steps.push(slice.step(number, first).map_err(failed)?);
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
    let progress = Progress::default();
    for place in &whole(&prepared) {
        let takes = slices.iter().zip(&steps).map(|(slice, step)| {
            let (part, region) = (slice.tensor.part(), Arc::clone(&slice.region));
            Take::new(part, region, step.conversion(place.conversion), place.start)
        });
        let takes: Vec<Take> = takes.collect();
        for (slice, take) in slices.iter().zip(&takes) {
            let take = std::slice::from_ref(take);
            overwrite::check_output(&output.destination, slice.input, take)?;
        }
        let mut group = Group::default();
        for JoinedSlice { input, source, .. } in slices {
            group.push(Lent::Held(input), Arc::clone(source))?;
        }
        let target = JoinedPlace::new(place, &join, 0, order);
        let copy = |job: &Writing<'_>, at: u64| -> Result<(), Error> {
            for band in &target.bands {
                let mut cells = Cells::new(job, &group.source, target.row);
                for (number, ((from, take), step)) in
                    group.inputs.iter().zip(&takes).zip(&steps).enumerate()
                {
                    let Some(cell) = target.cell(number, band) else { continue };
                    let take = Take { at, region: Arc::clone(&take.region), ..*take };
                    let (width, conversion) = step.part_conversion(place.conversion);
                    cells.copy(from, &take, &cell, width, conversion)?;
                }
                cells.flush()?;
            }
            Ok(())
        };
        let job = Writing::of_output(&prepared, true, &takes, &progress)?;
        let in_order = job.sink().order() == WriteOrder::Ascending;
        match in_order && join.rows_and_inner(order).0 > 1 {
            true => {
                through_scratch(&job, place, &output.options.workers, |job| copy(job, 0))?;
            }
            false => copy(&job, place.start)?,
        }
        job.commit()?;
    }
    Ok(())
}

impl JoinedSlice<'_> {
    fn dtype(&self) -> DType {
        self.becomes.cast.map_or_else(|| self.tensor.dtype.clone(), Cast::to)
    }

    /// What its elements go through, beside those of the first slice.
    fn step(&self, number: usize, first: &JoinedSlice<'_>) -> Result<PartStep, Cause> {
        let (ours, theirs) = (self.dtype(), first.dtype());
        if conversion(&ours, &theirs).is_err() {
            let (dtype, first, common) = (ours, theirs, None);
            return Err(JoinFault::DType { number, dtype, first, common }.into());
        }
        let plain = PartStep::as_first(&self.tensor.dtype, &first.tensor.dtype);
        Ok(match (self.becomes.cast, first.becomes.cast, plain) {
            (None, None, Some(step)) => step,
            (Some(cast), ..) => PartStep::own(cast, &first.tensor.dtype),
            _ => {
                let cast = Cast::new(&self.tensor.dtype, &theirs, Casting::Unsafe)?;
                PartStep::own(cast, &first.tensor.dtype)
            }
        })
    }
}
