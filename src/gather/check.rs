//! Checking all indices before anything is written.
//!
//! Needed where the output cannot be taken back (a pipe), where gathering would not read them (an
//! output of no elements), or in another order than theirs (Fortran's, transposed). It is a job like any other,
//! whose pieces write nothing.

use super::{GatherPieces, Positions};
use crate::execute::{self, Conversion, ExecuteError, FillError, Pieces, Progress, Transfer};
use crate::plan::OutputRows;
use crate::sink::{Sink, SinkError, WriteOrder};
use crate::source::Source;

/// Tuples in a piece.
const TUPLES: u64 = 1 << 14;

impl GatherPieces<'_> {
    /// Whether gathering alone finds a bad position, and the first one first; where not,
    /// [`check`](GatherPieces::check) must come before it.
    pub fn checks_itself(&self) -> bool {
        self.gather.bytes > 0 && self.gather.positions.is_in_their_order()
    }

    /// Read all indices, with at most `threads` workers.
    ///
    /// # Errors
    /// The first bad position in the order of the indices; a failure to read them.
    pub fn check(&self, threads: usize) -> Result<(), ExecuteError> {
        let positions = self.gather.positions.clone().in_their_order();
        positions.check(self.indices, threads)
    }
}

impl Positions {
    /// Read all tuples from the indices' file, with at most `threads` workers.
    ///
    /// # Errors
    /// As [`Positions::read`]: the first bad position.
    pub fn check(&self, source: &dyn Source, threads: usize) -> Result<(), ExecuteError> {
        let transfers = [Transfer { source, pieces: self, conversion: Conversion::None, at: 0 }];
        execute::run(&transfers, &NullSink, threads, &Progress::default())
    }
}

impl Pieces for Positions {
    fn bytes(&self) -> u64 {
        Positions::bytes(self)
    }

    fn count(&self) -> u64 {
        // without numbers there is nothing to check
        if self.tuple_len() == 0 { 0 } else { Positions::count(self).div_ceil(TUPLES) }
    }

    fn output(&self, _number: u64) -> OutputRows {
        OutputRows::range(0, 0)
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

/// A sink that takes nothing, as `/dev/null`.
struct NullSink;

impl Sink for NullSink {
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
