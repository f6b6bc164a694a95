//! Checking all indices before anything is written.
//!
//! Needed where the output cannot be taken back (a pipe), where gathering would not read them (an
//! output of no elements), or in another order than theirs (Fortran's, transposed). It is a job like
//! any other, whose pieces write nothing.

use super::Gather;
use super::null_sink::NullSink;
use super::rows::Rows;
use super::tuples::{TupleReader, Tuples};
use crate::execute::{
    self, Conversion, ExecuteError, FillError, Pieces, Progress, ReadFrom, Transfer, Workers,
};
use crate::runs::Runs;
use crate::source::Source;

/// Tuples in a piece.
const TUPLES: u64 = 1 << 14;

impl Gather {
    /// Whether gathering alone finds a bad position, and the first one of a list first; where not,
    /// [`check`](Gather::check) must come before it.
    pub fn checks_itself(&self) -> bool {
        self.bytes > 0 && self.rows.lists.iter().all(|list| list.tuples.is_in_their_order())
    }

    /// Read all lists, with these workers; `sources` are theirs.
    ///
    /// # Errors
    /// The first bad position of the first list that has one, in the order of the indices; a failure
    /// to read them.
    pub fn check(&self, sources: &[&dyn Source], workers: &Workers) -> Result<(), ExecuteError> {
        self.rows.check(sources, workers)
    }
}

impl Rows {
    /// Read all lists, as [`Gather::check`] does.
    pub(crate) fn check(
        &self,
        sources: &[&dyn Source],
        workers: &Workers,
    ) -> Result<(), ExecuteError> {
        for (number, (list, source)) in self.lists.iter().zip(sources).enumerate() {
            let tuples = list.tuples.clone().in_their_order();
            let reader = TupleReader::new(number, tuples, *source, workers)
                .map_err(|error| ExecuteError::Fill { transfer: 0, error })?;
            reader.check(workers)?;
        }
        Ok(())
    }
}

impl TupleReader<'_> {
    /// Read all tuples, with these workers; those of a mask need no check.
    fn check(&self, workers: &Workers) -> Result<(), ExecuteError> {
        let source = self.given;
        let transfers = [Transfer { source, pieces: self, conversion: Conversion::None, at: 0 }];
        execute::run(&transfers, &NullSink, workers, &Progress::default())
    }
}

impl Pieces for TupleReader<'_> {
    fn bytes(&self) -> u64 {
        match &self.tuples {
            Tuples::Numbers(positions) => positions.bytes(),
            Tuples::Mask(_) => 0,
        }
    }

    fn count(&self) -> u64 {
        // without numbers there is nothing to check
        if self.bytes() == 0 { 0 } else { self.tuples.count().div_ceil(TUPLES) }
    }

    fn output(&self, _number: u64) -> Runs {
        Runs::contiguous(0, 0)
    }

    fn fill(
        &self,
        number: u64,
        _from: &mut ReadFrom<'_>,
        _out: &mut [u8],
    ) -> Result<(), FillError> {
        let first = number * TUPLES;
        let len = TUPLES.min(self.tuples.count() - first);
        self.read(first, &mut vec![0; len as usize])
    }
}
