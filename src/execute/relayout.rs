//! Relayouts for outputs that take bytes in order, from inputs that are read by position.
//!
//! A range of such an output may need a few bytes of each page of the input, and the next range the neighbouring
//! bytes. [`in_order`] takes the first of these that is possible: pieces of the usual length; longer pieces that
//! use all bytes that they read; a copy of the selected bytes, in the order of the output, in a scratch file
//! (unnamed, in `TMPDIR`). The input is read about once in any case.

use std::ops::Range;

use super::fill::read_boxes;
use super::{
    Conversion, ExecuteError, FillError, Memory, Pieces, Progress, ReadFrom, Transfer, Workers,
    panel_bytes, run, tiling,
};
use crate::plan::{Bands, OnePass, PIECE_BYTES, Panel, PieceCuts, Plan, Tiling};
use crate::runs::Runs;
use crate::sink::{ScratchSink, Sink, SinkError, WriteOrder, scratch_fits};
use crate::source::{Source, SourceError, open_spooled};

/// The size of all workers' buffers together, in bytes, where pieces are longer than usual.
const BUFFERS_BYTES: u64 = 24 << 20;

/// The most bytes of a piece, with many workers and with a single one.
const LONG_PIECES: (u64, u64) = (1 << 20, 8 << 20);

/// Plan to read the runs of a source in the order of their dense bytes. Returns a plan, and the scratch file that
/// it reads instead of `source`, if any. No piece divides `unit` bytes. Pieces are shorter by the factor
/// `expansion`, by which a conversion makes them longer.
pub fn in_order(
    source: &dyn Source,
    runs: &Runs,
    unit: u64,
    expansion: u64,
    workers: &Workers,
) -> Result<(Plan, Option<Box<dyn Source>>), ExecuteError> {
    let room = panel_bytes(source, runs);
    let (spooled, plan) = ordered(source, runs, room, unit, expansion, workers);
    let keep = |first: Plan| spool_pieces(&[(source, &first)], workers, &Progress::default());
    Ok((plan, spooled.map(keep).transpose()?))
}

/// The plans of [`in_order`], with `room` bytes for panels, if any: a plan that fills a scratch file, where there
/// must be one, and the plan that reads the scratch file or the source.
pub(crate) fn ordered(
    source: &dyn Source,
    runs: &Runs,
    room: Option<u64>,
    unit: u64,
    expansion: u64,
    workers: &Workers,
) -> (Option<Plan>, Plan) {
    let piece = (PIECE_BYTES / expansion.max(1)).max(unit);
    if source.window_limit().is_none() {
        let plan = Plan::in_blocks(runs, unit, piece);
        return (None, plan.in_panels(room));
    }
    let (least, most) = LONG_PIECES;
    let longest = (BUFFERS_BYTES / workers.count() as u64).clamp(least, most);
    match Plan::reading_once(runs, unit, piece..longest / expansion.max(1)) {
        Some(plan) => (None, plan),
        None => {
            let plan = Plan::new(&Runs::contiguous(0, runs.bytes()), unit, piece);
            (Some(spool_plan(source, runs, room, unit)), plan)
        }
    }
}

/// Copy the dense bytes of runs to a scratch file.
pub fn spool(
    source: &dyn Source,
    runs: &Runs,
    unit: u64,
    workers: &Workers,
) -> Result<Box<dyn Source>, ExecuteError> {
    let plan = spool_plan(source, runs, panel_bytes(source, runs), unit);
    spool_pieces(&[(source, &plan)], workers, &Progress::default())
}

fn spool_plan(source: &dyn Source, runs: &Runs, panel_bytes: Option<u64>, unit: u64) -> Plan {
    Plan::tiled(runs, unit, Tiling { panel_bytes, ..tiling(source, runs.bytes()) })
}

/// Write the output of pieces to a scratch file with holes, for pieces some of which have no bytes.
pub(crate) fn spool_sparse(
    source: &dyn Source,
    pieces: &dyn Pieces,
    workers: &Workers,
    progress: &Progress,
) -> Result<Box<dyn Source>, ExecuteError> {
    let (sink, file) = ScratchSink::sparse(pieces.bytes()).map_err(unspooled)?;
    let all = Transfer { source, pieces, conversion: Conversion::None, at: 0 };
    fill_scratch(&[all], &sink, workers, progress)?;
    Ok(open_spooled(file, pieces.bytes())?)
}

/// Write the outputs of pieces, each of a source, one after the other to a scratch file. Progress counts them as
/// spooled bytes.
pub fn spool_pieces(
    pieces: &[(&dyn Source, &dyn Pieces)],
    workers: &Workers,
    progress: &Progress,
) -> Result<Box<dyn Source>, ExecuteError> {
    let bytes = pieces.iter().map(|(_, pieces)| pieces.bytes()).sum();
    let (sink, file) = ScratchSink::new(bytes).map_err(unspooled)?;
    let copies = pieces.iter().scan(0, |end, &(source, pieces)| {
        let at = *end;
        *end += pieces.bytes();
        Some(Transfer { source, pieces, conversion: Conversion::None, at })
    });
    fill_scratch(&copies.collect::<Vec<_>>(), &sink, workers, progress)?;
    Ok(open_spooled(file, bytes)?)
}

/// Run transfers to `sink`, which is a scratch file. Progress counts them as spooled bytes.
pub(crate) fn fill_scratch(
    transfers: &[Transfer<'_>],
    sink: &dyn Sink,
    workers: &Workers,
    progress: &Progress,
) -> Result<(), ExecuteError> {
    let outcome = run(transfers, &SpoolSink { sink, progress }, workers, &Progress::default());
    // an input that was cut short is the reason for any other error
    transfers.iter().try_for_each(|transfer| transfer.source.verify())?;
    outcome.map_err(|error| match error {
        // an error of index lists, not of the scratch file
        ExecuteError::Sink(SinkError::Positions(_)) => error,
        ExecuteError::Sink(error) => unspooled(error).into(),
        error => error,
    })
}

struct SpoolSink<'a> {
    sink: &'a dyn Sink,
    progress: &'a Progress,
}

impl Sink for SpoolSink<'_> {
    fn order(&self) -> WriteOrder {
        self.sink.order()
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), SinkError> {
        self.sink.write_at(offset, bytes)?;
        self.progress.scratch.add(bytes.len() as u64);
        Ok(())
    }

    fn settle(&self, range: Range<u64>, wait: bool) -> Result<(), SinkError> {
        self.sink.settle(range, wait)
    }
}

/// The error for a scratch file that cannot be written or read.
pub(crate) fn unspooled(error: SinkError) -> SourceError {
    SourceError::unspooled(match error {
        SinkError::Io(error) | SinkError::Os { error, .. } => error,
        error => std::io::Error::other(error),
    })
}

pub(crate) struct TwoPasses {
    bands: Bands,
    band_bytes: u64,
}

/// The second pass of a relayout in two passes: ranges of the output, read from the scratch file with the bands.
pub(crate) struct BandPieces {
    bands: Bands,
    cuts: PieceCuts,
    /// The number of ranges that are read together, and the memory for the input of all ranges that are being read.
    together: u64,
    room: u64,
}

impl TwoPasses {
    /// The two passes of a relayout, where they are faster than one pass with `room` bytes for panels. The output
    /// takes bytes in any order, or with `in_order` only in order.
    pub(crate) fn choose(runs: &Runs, room: u64, in_order: bool) -> Option<TwoPasses> {
        let one = if in_order { OnePass::InOrder } else { OnePass::Panels(room) };
        let band_bytes = Memory::of_process().band(runs.bytes());
        let bands = Bands::choose(&runs.coalesced(), band_bytes, one)?;
        let has_room = matches!(scratch_fits(bands.scratch_bytes()), Ok(true));
        has_room.then_some(TwoPasses { bands, band_bytes })
    }

    pub(crate) fn temporary_bytes(&self) -> u64 {
        self.bands.scratch_bytes()
    }

    /// The first pass, which writes the bands of the source one after the other.
    pub(crate) fn first(&self, source: &dyn Source) -> Vec<Plan> {
        let panel_bytes = Some(Memory::of_process().bands(self.band_bytes));
        let tiling = Tiling { panel_bytes, ..tiling(source, self.bands.bytes()) };
        self.bands.input.iter().map(|runs| Plan::tiled(runs, 1, tiling)).collect()
    }

    /// The second pass, which reads the bands: the first piece has `first` bytes of output, if given, the others
    /// have `piece_bytes`.
    pub(crate) fn second(self, first: Option<u64>, piece_bytes: u64) -> BandPieces {
        let TwoPasses { bands, band_bytes } = self;
        let cuts = PieceCuts::new(bands.bytes(), first.unwrap_or(piece_bytes), piece_bytes);
        let together = (band_bytes / piece_bytes).max(1);
        BandPieces { bands, cuts, together, room: Memory::of_process().bands(band_bytes) }
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
        // the needed bytes are read ahead, panel by panel
        Some(0..self.bands.scratch_bytes())
    }
}
