//! Parts that become tensors of one output, each under a name made from the name of its whole
//! tensor.

use std::collections::HashSet;
use std::sync::Arc;

use super::outputs::{PartTensor, PartsTo, Split};
use crate::error::Error;
use crate::input::{Input, PartNaming, SelectFault};
use crate::job::select::check_holds;
use crate::output::{Output, Preparation};

/// The numbers of the tensors that are cut, ascending, among the tensors that the patterns choose
/// (without any, all).
pub(super) fn wholes(
    input: &Input,
    patterns: &[String],
    naming: &PartNaming<'_>,
    output: &Output,
) -> Result<Vec<usize>, Error> {
    let mut found: Vec<usize> = if patterns.is_empty() {
        let excluded = input.excluded()?;
        let all = 0..input.named_count();
        all.filter(|number| excluded.binary_search(number).is_err()).collect()
    } else {
        input.find_named(patterns)?
    };
    if found.is_empty() {
        return Err(input.failed(SelectFault::NothingLeft));
    }
    let stem = input.contents.tensors.get(0).filter(|_| input.is_nameless());
    let stem = stem.map(|tensor| output.tensor_name(&tensor, &input.location, false));
    let names = Vec::from_iter(input.names().map(|name| stem.as_deref().unwrap_or(name)));
    found.retain(|&number| naming.is_match(names[number]));
    if found.is_empty() {
        let names = names.into_iter().map(str::to_owned).collect();
        let pattern = naming.text.to_owned();
        return Err(input.failed(SelectFault::NotFound { pattern, names, links: false }));
    }
    input.leave_out_unreadable(&mut found, patterns)?;
    Ok(found)
}

impl Split<'_> {
    /// The name of a part, or of a tensor that is kept.
    fn name(&self, target: &PartTensor, number: u64, output: &Output) -> String {
        let input = &self.inputs[target.source];
        let tensor = input.contents.tensors.at(target.number);
        let name = output.tensor_name(&tensor, &input.location, false);
        let naming = self.options.to.naming().filter(|_| target.axis.is_some());
        naming.and_then(|naming| naming.part(&name, number)).unwrap_or(name)
    }

    /// Check that one output can hold all parts, each under a unique name.
    pub(super) fn check_names(&self) -> Result<(), Error> {
        let PartsTo::Tensors { output, .. } = &self.options.to else { return Ok(()) };
        let mut names = HashSet::new();
        for target in &self.tensors {
            for number in target.parts(0, true) {
                let name = self.name(target, number, output);
                if names.contains(&name) {
                    return Err(SelectFault::SameName(name).into());
                }
                names.insert(name);
            }
        }
        check_holds(output, names.len(), self.options.select.keep_rest, false)
    }

    /// Lay out the parts of all tensors, and the kept tensors, in one output.
    pub(super) fn prepare_tensors<'o>(&self, output: &'o Output) -> Result<Preparation<'o>, Error> {
        let tensors = Arc::clone(&self.inputs[0].contents.tensors);
        let mut preparation = output.begin_preparing(tensors, None)?;
        for target in &self.tensors {
            let input = &self.inputs[target.source];
            let tensor = input.contents.tensors.at(target.number);
            for number in target.parts(0, true) {
                let change = self.change(target, &tensor, number);
                let change = change.map_err(|cause| input.failed_tensor(&tensor, true, cause))?;
                let name = self.name(target, number, output);
                let pushed = preparation.push(name, &tensor, target.number, change);
                pushed.map_err(|error| input.failed_tensor(&tensor, true, error.cause))?;
            }
        }
        Ok(preparation)
    }
}
