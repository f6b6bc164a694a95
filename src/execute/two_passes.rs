//! Relayouts in two passes through an unnamed file in `TMPDIR`: when they are taken, and the pieces of the second one.
//!
//! What is done is in [`Bands`]. Where `TMPDIR` has no room for what is kept, or is in memory itself, one pass has to do.

use std::ops::Range;

use super::fill::read_boxes;
use super::relayout::spool_all;
use super::tiling::{panel_bytes, room_for_panels, tiling};
use super::{
    CopyStep, ExecuteError, FillError, Memory, OutOfCore, Pieces, Progress, ReadFrom, Workers,
};
use crate::plan::{Bands, OnePass, Panel, PieceCuts, Plan, Tiling};
use crate::runs::Runs;
use crate::sink::scratch_fits;
use crate::source::Source;

/// A copy of runs in two passes.
pub(crate) struct TwoPasses {
    bands: Bands,
    /// The most that one of them takes.
    band_bytes: u64,
}

/// The output of a relayout whose bands are kept: ranges of it in its order.
pub(crate) struct BandPieces {
    bands: Bands,
    cuts: PieceCuts,
    /// How many of them are read together, and how much memory there is for all that is read.
    together: u64,
    room: u64,
}

impl TwoPasses {
    /// The two passes in which runs of a source are copied, where that is the faster way; to an output that takes bytes in
    /// any order, or `in_order` only.
    pub(crate) fn choose(source: &dyn Source, runs: &Runs, in_order: bool) -> Option<TwoPasses> {
        TwoPasses::with_room(panel_bytes(source, runs)?, runs, in_order)
    }

    /// The same of runs of a temporary file of `len` bytes that is still to be written.
    pub(crate) fn of_spooled(len: u64, runs: &Runs, in_order: bool) -> Option<TwoPasses> {
        TwoPasses::with_room(room_for_panels(len, runs)?, runs, in_order)
    }

    fn with_room(room: u64, runs: &Runs, in_order: bool) -> Option<TwoPasses> {
        let one = if in_order { OnePass::InOrder } else { OnePass::Panels(room) };
        let band_bytes = Memory::of_process().band(runs.bytes());
        let bands = Bands::choose(&runs.coalesced(), band_bytes, one)?;
        let has_room = matches!(scratch_fits(bands.kept_bytes()), Ok(true));
        has_room.then_some(TwoPasses { bands, band_bytes })
    }

    /// What is said of them.
    pub(crate) fn out_of_core(&self) -> OutOfCore {
        let steps = vec![CopyStep::Bands, CopyStep::InOrder];
        OutOfCore { steps, temporary_bytes: self.bands.kept_bytes() }
    }

    /// The first pass; the second one is the pieces, of the source that is returned. They begin behind `first` bytes of the
    /// output, where that matters, and never divide a `unit`.
    ///
    /// # Errors
    /// The source's, and [`SourceError::Spool`](crate::source::SourceError::Spool).
    pub(crate) fn keep(
        self,
        source: &dyn Source,
        first: Option<u64>,
        piece_bytes: u64,
        workers: &Workers,
        progress: &Progress,
    ) -> Result<(BandPieces, Box<dyn Source>), ExecuteError> {
        let room = Memory::of_process().bands(self.band_bytes);
        let tiling = Tiling { panel_bytes: Some(room), ..tiling(source, self.bands.bytes()) };
        let plans: Vec<Plan> =
            self.bands.input.iter().map(|runs| Plan::tiled(runs, 1, tiling)).collect();
        let pieces: Vec<&dyn Pieces> = plans.iter().map(|plan| plan as &dyn Pieces).collect();
        progress.kept.begin(self.bands.kept_bytes());
        let kept = spool_all(source, &pieces, workers, progress)?;
        progress.kept.begin(0);
        let cuts = PieceCuts::new(self.bands.bytes(), first.unwrap_or(piece_bytes), piece_bytes);
        let together = (self.band_bytes / piece_bytes).max(1);
        Ok((BandPieces { bands: self.bands, cuts, together, room }, kept))
    }
}

impl Pieces for BandPieces {
    fn bytes(&self) -> u64 {
        self.bands.bytes()
    }

    fn count(&self) -> u64 {
        self.cuts.pieces()
    }

    fn output(&self, number: u64) -> Runs {
        let Range { start, end } = self.cuts.range(number);
        Runs::contiguous(start, end - start)
    }

    fn fill(&self, number: u64, from: &mut ReadFrom<'_>, out: &mut [u8]) -> Result<(), FillError> {
        Ok(read_boxes(&self.bands.part(self.cuts.range(number)), from, out)?)
    }

    fn panel(&self, number: u64) -> Option<Panel> {
        if number >= self.count() || !number.is_multiple_of(self.together) {
            return None;
        }
        let pieces = self.together.min(self.count() - number);
        let range = self.cuts.range(number).start..self.cuts.range(number + pieces - 1).end;
        Some(Panel { pieces, input: self.bands.needs(range), room: self.room })
    }

    fn waits_for_disk(&self, _source: &dyn Source) -> bool {
        true
    }

    fn sparse_range(&self) -> Option<Range<u64>> {
        // what is needed is read ahead, panel by panel
        Some(0..self.bands.kept_bytes())
    }
}
