//! Relayouts for outputs in order, from inputs that are read by position.
//!
//! A range of such an output may need a few bytes of each page of the input, and the next range the
//! bytes beside them. [`in_order`] chooses, in this order: pieces as long as usual, longer pieces that
//! use up what they read, and where memory does not hold those, a copy of the selected bytes in
//! the order of the output, in an unnamed file in `TMPDIR`. The input is read about once in any case.

use std::ops::Range;

use super::fill::read_boxes;
use super::memory::room_for_panels;
use super::{
    Conversion, CopyStep, ExecuteError, FillError, Memory, OutOfCore, Pieces, Progress, ReadFrom,
    Transfer, Workers, panel_bytes, run, tiling,
};
use crate::plan::{Bands, OnePass, PIECE_BYTES, Panel, PieceCuts, Plan, Tiling};
use crate::runs::Runs;
use crate::sink::{ScratchSink, Sink, SinkError, WriteOrder, scratch_fits};
use crate::source::{Source, SourceError, open_spooled};

/// The buffers of all workers together, in bytes, where pieces are longer than usual.
const BUFFERS_BYTES: u64 = 24 << 20;

/// The longest pieces of any number of workers, and the longest of one, in bytes.
const LONG_PIECES: (u64, u64) = (1 << 20, 8 << 20);

/// How to read the runs of a source in the order of their dense bytes: a plan, and the source that
/// it is of where that is another. `unit` bytes are never divided. Pieces are shorter by a factor of
/// `expansion`: they are converted to so many times as many bytes.
///
/// # Errors
/// The source's, and [`SourceError::Spool`](crate::source::SourceError::Spool).
pub fn in_order(
    source: &dyn Source,
    runs: &Runs,
    unit: u64,
    expansion: u64,
    workers: &Workers,
) -> Result<(Plan, Option<Box<dyn Source>>), ExecuteError> {
    let piece = (PIECE_BYTES / expansion.max(1)).max(unit);
    if source.window_limit().is_none() {
        let plan = Plan::new(runs, unit, piece);
        return Ok((plan.in_panels(panel_bytes(source, runs)), None));
    }
    let (least, most) = LONG_PIECES;
    let longest = (BUFFERS_BYTES / workers.count() as u64).clamp(least, most);
    if let Some(plan) = Plan::reading_once(runs, unit, piece..longest / expansion.max(1)) {
        return Ok((plan, None));
    }
    let spooled = spool(source, runs, unit, workers)?;
    Ok((Plan::new(&Runs::contiguous(0, runs.bytes()), unit, piece), Some(spooled)))
}

/// The dense bytes of runs, in an unnamed file in `TMPDIR`.
///
/// # Errors
/// Those of [`in_order`].
pub fn spool(
    source: &dyn Source,
    runs: &Runs,
    unit: u64,
    workers: &Workers,
) -> Result<Box<dyn Source>, ExecuteError> {
    let panel_bytes = panel_bytes(source, runs);
    let tiling = Tiling { panel_bytes, ..tiling(source, runs.bytes()) };
    let plan = Plan::tiled(runs, unit, tiling);
    spool_pieces(source, &plan, workers, &Progress::default())
}

/// The output of pieces, in an unnamed file in `TMPDIR`. Its bytes are told as those that are kept.
///
/// # Errors
/// Those of [`in_order`].
pub fn spool_pieces(
    source: &dyn Source,
    pieces: &dyn Pieces,
    workers: &Workers,
    progress: &Progress,
) -> Result<Box<dyn Source>, ExecuteError> {
    spool_all(source, &[pieces], workers, progress)
}

/// The outputs of several pieces of one source, one after the other.
///
/// # Errors
/// Those of [`in_order`].
pub(super) fn spool_all(
    source: &dyn Source,
    pieces: &[&dyn Pieces],
    workers: &Workers,
    progress: &Progress,
) -> Result<Box<dyn Source>, ExecuteError> {
    let bytes = pieces.iter().map(|pieces| pieces.bytes()).sum();
    let (sink, file) = ScratchSink::new(bytes).map_err(unspooled)?;
    let copies = pieces.iter().scan(0, |end, &pieces| {
        let at = *end;
        *end += pieces.bytes();
        Some(Transfer { source, pieces, conversion: Conversion::None, at })
    });
    fill_scratch(&copies.collect::<Vec<_>>(), &sink, workers, progress)?;
    Ok(open_spooled(file, bytes)?)
}

/// Fill a temporary file, whose bytes are told as those that are kept; `sink` takes them.
///
/// # Errors
/// A source that fails or is cut short; positions that cannot be read again; [`SourceError::Spool`].
pub(crate) fn fill_scratch(
    transfers: &[Transfer<'_>],
    sink: &dyn Sink,
    workers: &Workers,
    progress: &Progress,
) -> Result<(), ExecuteError> {
    let outcome = run(transfers, &KeptSink { sink, progress }, workers, &Progress::default());
    // an input that was cut short is the reason for whatever else went wrong
    transfers.iter().try_for_each(|transfer| transfer.source.verify())?;
    outcome.map_err(|error| match error {
        // of lists beside the source, not of the file
        ExecuteError::Sink(SinkError::Positions(_)) => error,
        ExecuteError::Sink(error) => unspooled(error).into(),
        error => error,
    })
}

/// The sink of a temporary file whose bytes are told as those that are kept.
struct KeptSink<'a> {
    sink: &'a dyn Sink,
    progress: &'a Progress,
}

impl Sink for KeptSink<'_> {
    fn order(&self) -> WriteOrder {
        self.sink.order()
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), SinkError> {
        self.sink.write_at(offset, bytes)?;
        self.progress.kept.add(bytes.len() as u64);
        Ok(())
    }

    fn settle(&self, range: Range<u64>, wait: bool) -> Result<(), SinkError> {
        self.sink.settle(range, wait)
    }
}

/// The error of a temporary file that was to be read again.
pub(crate) fn unspooled(error: SinkError) -> SourceError {
    SourceError::unspooled(match error {
        SinkError::Io(error) | SinkError::Os { error, .. } => error,
        error => std::io::Error::other(error),
    })
}

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
        let spool = || spool_all(source, &pieces, workers, progress);
        let kept = progress.kept.during(self.bands.kept_bytes(), spool)?;
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
