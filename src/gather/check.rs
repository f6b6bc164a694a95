//! Looking at all indices before anything is written.
//!
//! Needed where the output cannot be taken back (a pipe), where gathering would not look at them
//! (an output of no elements), or would look in another order than theirs (Fortran's). It is a
//! job like any other, whose pieces write nothing.

use super::{Gathering, Positions};
use crate::execute::{self, Copy, ExecuteError, FillError, Pieces, Progress};
use crate::plan::Place;
use crate::shape::Order;
use crate::sink::{Sink, SinkError, WriteOrder};
use crate::source::Source;

/// Tuples in a piece.
const TUPLES: u64 = 1 << 14;

impl Gathering<'_> {
    /// Whether a bad position is found, and the first one first, by gathering alone; where not,
    /// [`check`](Gathering::check) has to be asked beforehand.
    pub fn checks_itself(&self) -> bool {
        self.gather.bytes > 0 && self.gather.order == Order::C
    }

    /// Look at all indices, with at most `threads` workers.
    ///
    /// # Errors
    /// The first bad position in the order of the indices, and what kept it from being read.
    pub fn check(&self, threads: usize) -> Result<(), ExecuteError> {
        let positions = self.gather.positions.clone().numbered(Order::C);
        positions.check(self.indices, threads)
    }
}

impl Positions {
    /// Read all tuples from the indices' file, with at most `threads` workers.
    ///
    /// # Errors
    /// As [`Positions::read`]: the first bad position.
    pub fn check(&self, source: &dyn Source, threads: usize) -> Result<(), ExecuteError> {
        let copies = [Copy { source, pieces: self, swap_width: 1, at: 0 }];
        execute::run(&copies, &Nowhere, threads, &Progress::default())
    }
}

impl Pieces for Positions {
    fn bytes(&self) -> u64 {
        Positions::bytes(self)
    }

    fn count(&self) -> u64 {
        // without numbers there is nothing to look at
        if self.columns() == 0 { 0 } else { Positions::count(self).div_ceil(TUPLES) }
    }

    fn place(&self, _number: u64) -> Place {
        Place::range(0, 0)
    }

    fn fill(
        &self,
        number: u64,
        source: &dyn Source,
        _scratch: &mut Vec<u8>,
        _out: &mut [u8],
    ) -> Result<(), FillError> {
        let first = number * TUPLES;
        let len = TUPLES.min(Positions::count(self) - first);
        self.read(first, source, &mut vec![0; len as usize])
    }
}

/// An output of nothing.
struct Nowhere;

impl Sink for Nowhere {
    fn order(&self) -> WriteOrder {
        WriteOrder::Any
    }

    fn write_at(&self, _offset: u64, _bytes: &[u8]) -> Result<(), SinkError> {
        Ok(())
    }

    fn commit(self: Box<Self>) -> Result<(), SinkError> {
        Ok(())
    }
}
