//! Relayouts for outputs in order, from inputs that are read by position.
//!
//! A range of such an output may need a few bytes of each page of the input, and the next range the
//! bytes beside them. [`in_order`] chooses, in this order: pieces as long as usual, longer pieces that
//! use up what they read, and where memory does not hold those, a copy of the selected bytes in
//! the order of the output, in an unnamed file in `TMPDIR`. The input is read about once in any case.

use std::ops::Range;

use super::{
    Conversion, ExecuteError, FillError, Pieces, Progress, Transfer, Workers, panel_bytes, run,
    tiling,
};
use crate::plan::{PIECE_BYTES, Plan, Tiling};
use crate::runs::Runs;
use crate::sink::{ScratchSink, Sink, SinkError, WriteOrder};
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
        return Ok((plan.with_panels(panel_bytes(source, runs)), None));
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
    let failed = |error| ExecuteError::Fill { transfer: 0, error: FillError::Source(error) };
    let bytes = pieces.iter().map(|pieces| pieces.bytes()).sum();
    let (sink, file) = ScratchSink::new(bytes).map_err(|error| failed(unspooled(error)))?;
    let sink = KeptSink { sink: &sink, progress };
    let copies = pieces.iter().scan(0, |end, &pieces| {
        let at = *end;
        *end += pieces.bytes();
        Some(Transfer { source, pieces, conversion: Conversion::None, at })
    });
    run(&copies.collect::<Vec<_>>(), &sink, workers, &Progress::default()).map_err(|error| {
        match error {
            ExecuteError::Sink(error) => failed(unspooled(error)),
            error => error,
        }
    })?;
    source.verify().map_err(failed)?;
    open_spooled(file, bytes).map_err(failed)
}

/// The sink of a temporary file whose bytes are told as those that are kept.
pub(crate) struct KeptSink<'a> {
    pub(crate) sink: &'a dyn Sink,
    pub(crate) progress: &'a Progress,
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
