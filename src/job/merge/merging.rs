//! A merge as a job.

use super::merged::Merged;
use super::union::{MergeOptions, Union};
use crate::error::Error;
use crate::execute::{Announced, Progress};
use crate::input::Location;
use crate::job::contract::{Job, Planned};
use crate::job::copy::Writing;
use crate::job::parts::Parts;
use crate::output::{Output, Unsaid};

/// Inputs on their way to one output that has the tensors of all.
pub struct Merging<'a>(Merged<'a>);

impl<'a> Merging<'a> {
    /// Read the headers of all inputs, find out which tensors the output has, and give them their places.
    ///
    /// # Errors
    /// [`MergeFault`](crate::job::MergeFault), [`SelectFault`](crate::input::SelectFault); a cast that no
    /// tensor needs, dtypes that the output lacks.
    pub fn new(
        locations: &'a [Location],
        options: MergeOptions,
        output: Output,
    ) -> Result<Merging<'a>, Error> {
        let union = Union::open(locations, options, &output)?;
        let prepared = union.prepare(&output)?;
        let mut merged = Merged { union, prepared };
        merged.align()?;
        Ok(Merging(merged))
    }
}

impl Job for Merging<'_> {
    fn left_uncast(&self) -> usize {
        self.0.union.left_uncast()
    }

    fn bytes(&self) -> u64 {
        self.0.prepared.bytes
    }

    fn check(&mut self) -> Result<(), Error> {
        self.0.prepared.check()?;
        self.0.union.inputs.check_overwrite(&self.0.prepared.output.destination)
    }

    fn describe(&mut self) -> Result<Vec<Planned>, Error> {
        let shared = self.0.shared(&(0..u64::MAX))?;
        Ok(vec![Planned::new(&self.0.prepared, shared)])
    }

    fn requests(&mut self) -> Result<Option<Announced>, Error> {
        if !self.0.union.inputs.any_remote() {
            return Ok(None);
        }
        let progress = Progress::default();
        let job = Writing::counting(&self.0.union.options.workers, &progress);
        self.0.copy(&job, &(0..u64::MAX))?;
        Ok(job.counted())
    }

    fn unsaid(&self) -> Vec<Unsaid> {
        self.0.prepared.unsaid.clone()
    }

    fn write(&mut self, progress: &Progress) -> Result<(), Error> {
        self.0.union.inputs.spool_all(progress)?;
        self.0.union.inputs.check_overwrite(&self.0.prepared.output.destination)?;
        let job = Writing::of_output(&self.0.prepared, true, &[], progress)?;
        self.0.copy(&job, &(0..u64::MAX))?;
        job.commit()
    }

    fn parts(&mut self, count: u64) -> Result<Parts<'_>, Error> {
        Parts::new(&self.0.prepared, Box::new(&self.0), count)
    }
}
