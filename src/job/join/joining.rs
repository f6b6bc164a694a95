//! A join as a job: inputs that fit together, and the one output that they become.

use super::inputs::{JoinOptions, Joined};
use super::part::JoinedParts;
use super::place::whole;
use crate::error::Error;
use crate::execute::{Announced, Progress};
use crate::input::Location;
use crate::job::contract::{Job, Planned};
use crate::job::parts::Parts;
use crate::output::{Output, Prepared, Unsaid};

/// Inputs on their way to one output: NumPy's concatenate and stack.
pub struct Joining<'a> {
    joined: Joined<'a>,
    prepared: Prepared,
}

impl<'a> Joining<'a> {
    /// Read the headers of all inputs, check that they fit together, and give the tensors of the
    /// output their places.
    ///
    /// # Errors
    /// [`JoinFault`](crate::job::JoinFault) for the first input that does not fit; a cast that no
    /// tensor needs; dtypes that the output lacks.
    pub fn new(
        locations: &'a [Location],
        options: JoinOptions<'a>,
        output: Output,
    ) -> Result<Joining<'a>, Error> {
        let several = output.format.holds_several;
        let joined = Joined::open(locations, options, output.options.order);
        let joined = joined.map_err(|error| error.of_several(several))?;
        joined.options.casts.refuse_unused(joined.dtypes())?;
        let prepared = joined.prepare(&output)?;
        Ok(Joining { joined, prepared })
    }
}

impl Job for Joining<'_> {
    fn bytes(&self) -> u64 {
        self.prepared.bytes
    }

    fn left_uncast(&self) -> usize {
        self.joined.left_uncast()
    }

    fn looked_at(&self) -> Result<u64, Error> {
        self.joined.rest_bytes()
    }

    fn look(&mut self, progress: &Progress) -> Result<(), Error> {
        self.joined.check(&self.prepared, progress)
    }

    fn describe(&mut self) -> Result<Vec<Planned>, Error> {
        let shared = self.joined.shared(&whole(&self.prepared), &self.prepared)?;
        Ok(vec![Planned::new(&self.prepared, shared)])
    }

    fn requests(&mut self) -> Result<Option<Announced>, Error> {
        self.joined.announced(&self.prepared)
    }

    fn unsaid(&self) -> Vec<Unsaid> {
        self.prepared.unsaid.clone()
    }

    fn write(&mut self, progress: &Progress) -> Result<(), Error> {
        self.joined.write(&self.prepared, progress)
    }

    fn parts(&mut self, count: u64) -> Result<Parts<'_>, Error> {
        Parts::new(
            &self.prepared,
            Box::new(JoinedParts { joined: &mut self.joined, prepared: &self.prepared }),
            count,
        )
    }
}
