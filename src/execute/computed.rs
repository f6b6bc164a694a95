//! Pieces whose elements are computed from the elements of other pieces.
//!
//! Unlike a [`Conversion`], which is applied on the way to the sink, the computation is part of
//! filling a piece, so that any reader of the pieces sees the results.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use super::{Conversion, FillError, Pieces, ReadFrom, VisitRange};
use crate::cast::Arithmetic;
use crate::plan::Panel;
use crate::runs::Runs;
use crate::source::Source;

pub struct Computed<'a> {
    of: Box<dyn Pieces + 'a>,
    arithmetic: &'a Arithmetic,
    /// Buffers that no worker uses at the moment: at most one for each worker.
    idle: Mutex<Vec<Vec<u8>>>,
}

impl<'a> Computed<'a> {
    pub fn new(of: Box<dyn Pieces + 'a>, arithmetic: &'a Arithmetic) -> Computed<'a> {
        Computed { of, arithmetic, idle: Mutex::default() }
    }

    fn conversion(&self) -> Conversion {
        Conversion::Cast(self.arithmetic.cast)
    }
}

impl Pieces for Computed<'_> {
    fn bytes(&self) -> u64 {
        self.conversion().output_bytes(self.of.bytes())
    }

    fn count(&self) -> u64 {
        self.of.count()
    }

    fn output(&self, number: u64) -> Runs {
        self.conversion().output_runs(&self.of.output(number))
    }

    fn fill(&self, number: u64, from: &mut ReadFrom<'_>, out: &mut [u8]) -> Result<(), FillError> {
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let mut stored = idle().pop().unwrap_or_default();
        stored.resize(self.conversion().input_bytes(out.len() as u64) as usize, 0);
        self.of.fill(number, from, &mut stored)?;
        self.arithmetic.run(&mut stored, out);
        idle().push(stored);
        Ok(())
    }

    fn needs(&self, number: u64, gap: u64, visit: VisitRange<'_>) -> Result<(), FillError> {
        self.of.needs(number, gap, visit)
    }

    fn panel(&self, number: u64) -> Option<Panel> {
        self.of.panel(number)
    }

    fn work(&self) -> u64 {
        self.bytes().max(self.of.work())
    }

    fn waits_for_disk(&self, source: &dyn Source) -> bool {
        self.of.waits_for_disk(source)
    }

    fn sparse_range(&self) -> Option<Range<u64>> {
        self.of.sparse_range()
    }
}
