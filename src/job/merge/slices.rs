//! Slices of inputs that are open, each a tensor of one output.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::MergeFault;
use crate::error::{Error, FileName};
use crate::execute::Progress;
use crate::input::{Input, SelectFault};
use crate::job::align::PlacedRange;
use crate::job::copy::Writing;
use crate::job::join::JoinedSlice;
use crate::job::overwrite;
use crate::job::select::check_holds;
use crate::output::{Output, Prepared};
use crate::region::Take;

/// Write slices to an output, in their order, each under the name of its tensor.
///
/// # Errors
/// [`MergeFault`]: two of one name, metadata of two inputs that contradict each other; dtypes that the output
/// lacks, inputs that fail, an output that cannot be written.
pub(crate) fn merge_slices(slices: &[JoinedSlice<'_>], output: &Output) -> Result<(), Error> {
    if slices.is_empty() {
        return Err(SelectFault::NothingLeft.into());
    }
    check_holds(output, slices.len(), false, false)?;
    let mut prepared = prepare(slices, output)?;
    let mut ranges = Vec::new();
    for (slice, take) in slices.iter().zip(&takes(slices, &prepared)) {
        ranges.extend(PlacedRange::of_takes(slice.input, std::slice::from_ref(take)));
    }
    prepared.grow(&ranges);
    let (takes, progress) = (takes(slices, &prepared), Progress::default());
    for (slice, take) in slices.iter().zip(&takes) {
        let take = std::slice::from_ref(take);
        overwrite::check_output(&output.destination, slice.input, take)?;
    }
    let job = Writing::of_output(&prepared, true, &takes, &progress)?;
    let mut rest = &takes[..];
    for group in slices.chunk_by(|one, next| Arc::ptr_eq(one.source, next.source)) {
        let (now, later) = rest.split_at(group.len());
        job.copy_random(group[0].input, group[0].source.as_ref(), now)?;
        rest = later;
    }
    job.commit()
}

/// Give the tensors of the output their places.
fn prepare(slices: &[JoinedSlice<'_>], output: &Output) -> Result<Prepared, Error> {
    let mut preparation = output.begin_preparing(Arc::default(), None)?;
    let mut names: HashMap<String, &Input> = HashMap::new();
    let mut metadata = BTreeMap::new();
    for JoinedSlice { input, tensor, becomes, .. } in slices {
        preparation.add_groups(&input.contents.tensors);
        let name = output.tensor_name(tensor, input.location(), slices.len() == 1);
        if let Some(first) = names.insert(name.clone(), input) {
            let first = FileName::from(first.location());
            return Err(Error::file(input.location(), MergeFault::Twice { name, first }));
        }
        let pushed = preparation.push(name, tensor, 0, becomes.clone());
        pushed.map_err(|error| input.failed_tensor(tensor, true, error.cause))?;
        for (key, value) in &input.contents().metadata {
            let (other, first) = metadata.entry(key.clone()).or_insert((value.clone(), *input));
            if other != value && output.needs_metadata(key) {
                let fault = MergeFault::Metadata {
                    key: key.clone(),
                    value: value.clone(),
                    other: other.clone(),
                    first: FileName::from(first.location()),
                };
                return Err(Error::file(input.location(), fault));
            }
        }
    }
    let metadata = metadata.into_iter().map(|(key, (value, _))| (key, value));
    preparation.finish(&metadata.collect())
}

/// What is taken for each tensor of the output.
fn takes(slices: &[JoinedSlice<'_>], prepared: &Prepared) -> Vec<Take> {
    let places = slices.iter().zip(prepared.places());
    let take = places.map(|(slice, (to, at))| {
        Take::new(slice.tensor.part(), Arc::clone(&slice.region), to.conversion, at)
    });
    take.collect()
}
