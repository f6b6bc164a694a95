//! The job that copies an assembly to one output: slices, gathers, joins and merges.

use std::ops::Range;

use super::assembly::Assembly;
use super::parts::Parts;
use super::{Job, Planned};
use crate::error::Error;
use crate::execute::Progress;
use crate::output::{Omission, Prepared};

pub(crate) struct OutputRange<'a> {
    pub(super) prepared: &'a Prepared,
    pub(super) range: Range<u64>,
}

impl<'a> OutputRange<'a> {
    pub(super) fn whole(prepared: &'a Prepared) -> OutputRange<'a> {
        OutputRange { prepared, range: 0..u64::MAX }
    }
}

pub struct Copying<'a> {
    pub(super) prepared: Prepared,
    pub(super) assembly: Assembly<'a>,
    /// The number of tensors that a cast leaves unchanged.
    left_uncast: usize,
}

impl<'a> Copying<'a> {
    pub(super) fn new(
        prepared: Prepared,
        assembly: Assembly<'a>,
        left_uncast: usize,
    ) -> Copying<'a> {
        Copying { prepared, assembly, left_uncast }
    }
}

impl Job for Copying<'_> {
    fn bytes(&self) -> u64 {
        self.prepared.bytes
    }

    fn looked_at(&self) -> Result<u64, Error> {
        self.assembly.looked_at()
    }

    fn look(&mut self, progress: &Progress) -> Result<(), Error> {
        self.assembly.look(&self.prepared, progress)
    }

    fn left_uncast(&self) -> usize {
        self.left_uncast
    }

    fn check(&mut self) -> Result<(), Error> {
        self.assembly.check(&self.prepared)
    }

    fn describe(&mut self) -> Result<Vec<Planned>, Error> {
        let whole = OutputRange::whole(&self.prepared);
        Ok(vec![Planned::new(&self.prepared, self.assembly.temporary_bytes(&whole)?)])
    }

    fn network_bytes(&mut self) -> Result<u64, Error> {
        self.assembly.network_bytes(&self.prepared)
    }

    fn omissions(&self) -> Vec<Omission> {
        self.prepared.omissions.clone()
    }

    fn write(&mut self, progress: &Progress) -> Result<(), Error> {
        self.assembly.write(&self.prepared, progress)
    }

    fn parts(&mut self, count: u64) -> Result<Parts<'_>, Error> {
        Parts::new(&self.prepared, &self.assembly, count)
    }
}
