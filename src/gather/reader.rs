//! Positions with the source of their numbers, read in blocks.
//!
//! Blocks follow the order in which tuples are numbered. Where the numbers lie in another order in
//! a file that is read by position, each block would read most of the file: then the numbers are
//! put in order in a temporary file first.

use super::positions::Positions;
use crate::execute::{ExecuteError, FillError, Workers, spool};
use crate::plan::Plan;
use crate::source::Source;

/// Tuples whose offsets are computed at a time: they stay in a level-1 cache.
pub(super) const BLOCK: usize = 2048;

/// Reads the positions that an index tensor names.
pub struct PositionReader<'a> {
    positions: Positions,
    source: &'a dyn Source,
    /// The numbers in order, where they are not in the source.
    spooled: Option<Box<dyn Source>>,
}

impl<'a> PositionReader<'a> {
    /// Read from that source; `workers` put the numbers in order, if that is necessary.
    ///
    /// # Errors
    /// [`FillError::Indices`]: the source failed, or the temporary file.
    pub fn new(
        positions: Positions,
        source: &'a dyn Source,
        workers: &Workers,
    ) -> Result<PositionReader<'a>, FillError> {
        let (numbers, tuple) = (positions.runs(), positions.tuple_bytes() as u64);
        let once = || Plan::of_runs(numbers, tuple, BLOCK as u64 * tuple).reads_once();
        if source.window_limit().is_none() || positions.bytes() == 0 || once() {
            return Ok(PositionReader { positions, source, spooled: None });
        }
        let spooled = spool(source, numbers, tuple, workers).map_err(|error| match error {
            ExecuteError::Fill { error: FillError::Source(error), .. } => {
                FillError::Indices { list: 0, error }
            }
            ExecuteError::Fill { error, .. } => error,
            error => {
                let error = std::io::Error::other(error.to_string()).into();
                FillError::Indices { list: 0, error }
            }
        })?;
        Ok(PositionReader { positions: positions.in_order(), source, spooled: Some(spooled) })
    }

    /// Read positions, as [`Positions::read`] does.
    ///
    /// # Errors
    /// Those of [`Positions::read`].
    pub fn read(&self, first: u64, out: &mut [u64]) -> Result<(), FillError> {
        self.positions.read(first, self.spooled.as_deref().unwrap_or(self.source), out)
    }

    /// Make sure that what was read were numbers of the source.
    ///
    /// # Errors
    /// [`FillError::Indices`].
    pub fn verify(&self) -> Result<(), FillError> {
        let source = self.spooled.as_deref().unwrap_or(self.source);
        source.verify().map_err(|error| FillError::Indices { list: 0, error })
    }

    /// The positions.
    pub(super) fn positions(&self) -> &Positions {
        &self.positions
    }

    /// The source of the numbers, as it was given.
    pub(super) fn given(&self) -> &'a dyn Source {
        self.source
    }
}
