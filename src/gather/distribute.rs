//! Gathers of short rows from params that do not fit in memory, by a [distribution](super::distribution).

use super::distribution::{Distribution, PlacedRows, has_room, pays};
use super::page_cache::{CacheState, LONG_ROW};
use super::pieces::GatherPieces;
use super::placed::PlacedSlabs;
use crate::execute::{CopyStep, ExecuteError, OutOfCore, Progress, Workers, spool_pieces};
use crate::source::Source;
#[cfg(doc)]
use crate::source::SourceError;

/// Rows in the order of the output, in a temporary file, and the pieces that take them.
pub(crate) struct Distributed {
    /// The byte of the output at which the first of them begins.
    pub(crate) start: u64,
    /// The rows, band by band.
    pub(crate) kept: Box<dyn Source>,
    /// The output of these rows, made of the file.
    pub(crate) pieces: PlacedSlabs,
}

impl GatherPieces<'_> {
    /// Put the rows that hold what is wanted of the output in order in temporary files, where that is the
    /// faster way. `source` is that of the params; the files are read by the pieces.
    ///
    /// # Errors
    /// Bad positions, sources that cannot be read, and [`SourceError::Spool`]: no room in `TMPDIR`.
    pub(crate) fn distributed(
        &self,
        source: &dyn Source,
        workers: &Workers,
        progress: &Progress,
    ) -> Result<Option<Distributed>, ExecuteError> {
        let Some(distribution) = self.distribution(source) else { return Ok(None) };
        let bytes = distribution.temporary_bytes();
        if !has_room(bytes)? {
            return Ok(None);
        }
        progress.kept.begin(bytes);
        let PlacedRows { bands, stretches } =
            distribution.place(false, source, workers, progress)?;
        let kept = spool_pieces(source, &bands, workers, progress)?;
        progress.kept.begin(0);
        let start = self.wanted_rows().start * self.gather.slab.bytes();
        Ok(Some(Distributed { start, kept, pieces: stretches }))
    }

    /// The plan of what is wanted where it does not fit in memory, that of
    /// [`distributed`](GatherPieces::distributed) among others; `None` where it does, or is there.
    ///
    /// # Errors
    /// No room in `TMPDIR`.
    pub(crate) fn out_of_core(
        &self,
        source: &dyn Source,
    ) -> Result<Option<OutOfCore>, ExecuteError> {
        if self.fits(self.gather.bytes()) {
            return Ok(None);
        }
        if let Some(distribution) = self.distribution(source) {
            let bytes = distribution.temporary_bytes();
            if has_room(bytes)? {
                return Ok(Some(OutOfCore::of(CopyStep::Distribution, bytes)));
            }
        }
        Ok(match self.state(source) {
            CacheState::Cold { .. } | CacheState::ColdLong => {
                Some(OutOfCore::of(CopyStep::Rows, 0))
            }
            CacheState::ColdDense => None,
            CacheState::Cached => {
                self.cold_look(source).map(|_| OutOfCore::of(CopyStep::InOrder, 0))
            }
        })
    }

    /// How to distribute the rows, where that is the faster way.
    fn distribution(&self, source: &dyn Source) -> Option<Distribution<'_>> {
        let rows = self.wanted_rows();
        let (params, slab) = (self.gather.params.clone(), &self.gather.slab);
        // before anything is asked of the system, which takes longer than a short copy
        let is_short = slab.bytes() < LONG_ROW && source.request_gap().is_none();
        if !is_short
            || !pays(&rows, &params, slab)
            || self.fits((rows.end - rows.start) * slab.bytes())
        {
            return None;
        }
        let look = self.cold_look(source)?;
        let distribution = Distribution::new(&self.rows, rows, params, slab);
        Some(distribution).filter(|it| it.is_needed(look.spread))
    }
}
