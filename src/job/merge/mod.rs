//! The tensors of several inputs as one output: a union by name, in which groups of tensors may be
//! joined.
//!
//! [`Union`](union::Union) reads the headers of all inputs, and finds the tensors of the output: the chosen tensors with
//! their new names, and the tensors that are joined (`groups`). Of several tensors of one name, the output has one, at
//! the position of the first.

use std::collections::HashMap;
use std::sync::Arc;

use union::{MetadataUnion, Union};

use super::assembly::members::Members;
use super::assembly::step::Step;
use super::copying::Copying;
use super::select::check_holds;
use super::slice::{HeldSlice, write_slices};
use crate::error::{Error, Fault, FileName};
use crate::execute::Progress;
use crate::input::{Location, SelectFault};
use crate::output::{Output, Prepared};
use crate::tensor::shortened;

mod groups;
mod union;

pub use groups::GroupOptions;
pub use union::{MergeOptions, NumberedRename, Precedence};

fn tensor_named(name: &str) -> String {
    match name {
        "" => "a tensor without a name".to_owned(),
        name => format!("tensor {:?}", shortened(name)),
    }
}

/// Why inputs have no union. The error names the file of the input at fault.
#[derive(Debug, thiserror::Error)]
pub enum MergeFault {
    /// Two inputs have a tensor of the same name.
    #[error("{} is also in another input, {first}", tensor_named(name))]
    Twice {
        /// The name, in the output.
        name: String,
        /// The first input with this tensor.
        first: FileName,
    },
    /// Two inputs have different metadata texts under one key.
    #[error(
        "metadata {:?} is {:?}, and {:?} in {first}",
        shortened(key),
        shortened(value),
        shortened(other)
    )]
    Metadata {
        key: String,
        /// The text of the input at fault.
        value: String,
        /// The text of an earlier input.
        other: String,
        /// The input that has the other text.
        first: FileName,
    },
}

impl Fault for MergeFault {}

impl<'a> Copying<'a> {
    /// Merge: read the headers of all inputs, find the tensors of the output, and lay them out.
    pub fn merge(
        locations: &'a [Location],
        options: MergeOptions<'a>,
        output: Output,
    ) -> Result<Copying<'a>, Error> {
        let mut union = Union::open(locations, options, &output)?;
        let mut prepared = union.prepare(&output)?;
        let left = union.left_uncast();
        let bytes = Vec::from_iter((0..locations.len()).map(|input| union.bytes_of(input)));
        let assembly = union.assemble();
        assembly.align(&mut prepared, |input| bytes[input])?;
        Ok(Copying::new(prepared, assembly, left))
    }
}

/// Write slices to an output, in their order, each under the name of its tensor.
pub(crate) fn merge_slices(slices: &[HeldSlice<'_>], output: &Output) -> Result<(), Error> {
    if slices.is_empty() {
        return Err(SelectFault::NothingLeft.into());
    }
    check_holds(output, slices.len(), false, false)?;
    let mut members = Members::default();
    (0..).take(slices.len()).for_each(|number| members.push(number));
    let steps = vec![Step::AsFirst(1); slices.len()];
    let progress = Progress::watched(&output.options.watcher);
    write_slices(slices, members, steps, &mut prepare(slices, output)?, &progress)
}

/// Lay out the tensors of the output.
fn prepare(slices: &[HeldSlice<'_>], output: &Output) -> Result<Prepared, Error> {
    let mut preparation = output.begin_preparing(Arc::default(), None)?;
    let mut names: HashMap<String, &Location> = HashMap::new();
    let mut metadata = MetadataUnion::default();
    for HeldSlice { input, tensor, change, .. } in slices {
        let location = input.location();
        preparation.add_groups(&input.contents.tensors);
        let name = output.tensor_name(tensor, location, slices.len() == 1);
        if let Some(first) = names.insert(name.clone(), location) {
            let first = FileName::from(first);
            return Err(Error::file(location, MergeFault::Twice { name, first }));
        }
        let pushed = preparation.push(name, tensor, 0, change.clone());
        pushed.map_err(|error| input.failed_tensor(tensor, true, error.cause))?;
        let contradiction = metadata.add(location, &input.contents.metadata, None, output);
        contradiction.map_or(Ok(()), Err)?;
    }
    preparation.finish(&metadata.all())
}
