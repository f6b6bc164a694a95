//! Along which axis tensors are joined or cut: one for all, others for some.

use crate::error::Error;
use crate::input::{Input, find};

/// The axes along which tensors are joined or cut; negative ones count from the end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Axes {
    /// The axis of all tensors that have no other.
    pub default: i64,
    /// Names or globs of tensors, and their axis; of several that mean one tensor the last counts.
    pub named: Vec<(String, i64)>,
}

impl Axes {
    /// The axis of each of these tensors of an input.
    ///
    /// # Errors
    /// [`SelectFault`](crate::input::SelectFault): a name or glob that means none of them.
    pub(crate) fn of_tensors(&self, input: &Input, chosen: &[usize]) -> Result<Vec<i64>, Error> {
        let mut axes = vec![self.default; chosen.len()];
        let name = |&number: &usize| input.contents.tensors.name(number).unwrap_or("-");
        for (pattern, axis) in &self.named {
            let found = find(chosen.iter().map(name), std::slice::from_ref(pattern));
            let found = found.map_err(|fault| Error::file(&input.location, fault))?;
            found.into_iter().for_each(|at| axes[at] = *axis);
        }
        Ok(axes)
    }
}
