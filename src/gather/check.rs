//! Checking all indices before anything is written.
//!
//! Needed where the output cannot be taken back (a pipe), where gathering would not read them (an
//! output of no elements), or in another order than theirs (Fortran's, transposed). It is a job like any other,
//! whose pieces write nothing.

use super::Gather;
use super::pieces::GatherPieces;
use super::reader::PositionReader;
use crate::execute::{self, Conversion, ExecuteError, FillError, Pieces, Progress, Transfer};
use crate::runs::Runs;
use crate::sink::{Sink, SinkError, WriteOrder};
use crate::source::Source;

/// Tuples in a piece.
const TUPLES: u64 = 1 << 14;

impl Gather {
    /// Whether gathering alone finds a bad position, and the first one first; where not,
    /// [`check`](GatherPieces::check) must come before it.
    pub fn checks_itself(&self) -> bool {
        self.bytes > 0 && self.positions.is_in_their_order()
    }
}

impl GatherPieces<'_> {
    /// Read all indices, with at most `threads` workers.
    ///
    /// # Errors
    /// The first bad position in the order of the indices; a failure to read them.
    pub fn check(&self, threads: usize) -> Result<(), ExecuteError> {
        if self.gather.positions.is_in_their_order() {
            return self.positions.check(threads);
        }
        let positions = self.gather.positions.clone().in_their_order();
        let reader = PositionReader::new(positions, self.positions.given(), threads);
        let reader = reader.map_err(|error| ExecuteError::Fill { transfer: 0, error })?;
        reader.check(threads)
    }
}

impl PositionReader<'_> {
    /// Read all tuples, with at most `threads` workers.
    ///
    /// # Errors
    /// As [`Positions::read`](super::Positions::read): the first bad position.
    pub fn check(&self, threads: usize) -> Result<(), ExecuteError> {
        let source = self.given();
        let transfers = [Transfer { source, pieces: self, conversion: Conversion::None, at: 0 }];
        execute::run(&transfers, &NullSink, threads, &Progress::default())
    }
}

impl Pieces for PositionReader<'_> {
    fn bytes(&self) -> u64 {
        self.positions().bytes()
    }

    fn count(&self) -> u64 {
        // without numbers there is nothing to check
        if self.positions().tuple_len() == 0 {
            0
        } else {
            self.positions().count().div_ceil(TUPLES)
        }
    }

    fn output(&self, _number: u64) -> Runs {
        Runs::contiguous(0, 0)
    }

    fn fill(
        &self,
        number: u64,
        _source: &dyn Source,
        _scratch: &mut Vec<u8>,
        _out: &mut [u8],
    ) -> Result<(), FillError> {
        let first = number * TUPLES;
        let len = TUPLES.min(self.positions().count() - first);
        self.read(first, &mut vec![0; len as usize])
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
