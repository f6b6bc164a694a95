//! A merge in parts, each written by a process of its own.

use std::fmt::Write;
use std::ops::Range;

use super::merged::Merged;
use crate::error::Error;
use crate::input::Location;
use crate::job::copy::Writing;
use crate::job::parts::Divisible;
use crate::output::Prepared;
use crate::region::Take;
use crate::sink::Fingerprint;

impl Divisible for &Merged<'_> {
    fn bytes(&self, range: &Range<u64>) -> u64 {
        self.placed(range).iter().map(|placed| self.bytes_within(placed, range)).sum()
    }

    fn reads(&self, range: &Range<u64>) -> Result<u64, Error> {
        let (placed, mut reads) = (self.by_input(range), 0);
        for group in self.groups(&placed) {
            let (_, takes) = self.lend(group, range)?;
            reads += takes.iter().map(Take::reads).sum::<u64>();
        }
        Ok(reads)
    }

    fn files(&self) -> Result<Vec<(String, Location)>, Error> {
        self.union.inputs.files()
    }

    fn identify(&self, work: &mut Fingerprint) -> Result<(), Error> {
        let all = 0..u64::MAX;
        let placed = self.by_input(&all);
        for group in self.groups(&placed) {
            let (_, takes) = self.lend(group, &all)?;
            for take in takes {
                // never fails
                let _ = write!(work, "{:?}", (take.part, take.conversion, take.at));
                take.region.identify(&mut |bytes| work.add(bytes))?;
            }
        }
        Ok(())
    }

    fn shared(&self, range: &Range<u64>, _: &Prepared) -> Result<Option<u64>, Error> {
        Merged::shared(self, range)
    }

    fn copy(&mut self, range: &Range<u64>, job: &Writing<'_>) -> Result<(), Error> {
        Merged::copy(self, job, range)
    }
}
