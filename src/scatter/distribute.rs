//! Scatters of short rows to a target that does not fit in memory, by a [distribution](Distribution).
//!
//! The values are kept in the order of the target's bands first, which is a scatter to a temporary file; then
//! they go to the target band by band, which is another one, of rows that are near each other.

use super::Scatter;
use super::sink::ScatterSink;
use super::staged::StagedSink;
use crate::execute::{
    Conversion, CopyStep, ExecuteError, FillError, KeptSink, Memory, OutOfCore, Progress, Transfer,
    Workers, run, unspooled,
};
use crate::gather::{BoundRows, Distribution, PlacedRows, PlacedSlabs, has_room, pays};
use crate::plan::{PIECE_BYTES, Plan};
use crate::runs::Runs;
use crate::sink::{ScratchSink, Sink, SinkError, WriteOrder};
use crate::source::{Source, open_spooled};

/// Rows of so many bytes are written by themselves.
const LONG_ROW: u64 = 64 << 10;

/// Values in a temporary file, in the order of the target's bands.
pub(crate) struct KeptValues {
    /// The values, as the target has them.
    pub(crate) source: Box<dyn Source>,
    /// How they are read.
    pub(crate) pieces: Plan,
    /// Where they go.
    bands: PlacedSlabs,
    order: WriteOrder,
}

impl Scatter {
    /// The plan where the target does not fit in memory; `None` where it does.
    ///
    /// # Errors
    /// Bad positions, and temporary files that have no room in `TMPDIR`.
    pub(crate) fn out_of_core(
        &self,
        sources: &[&dyn Source],
        workers: &Workers,
    ) -> Result<Option<OutOfCore>, ExecuteError> {
        if !self.is_large() {
            return Ok(None);
        }
        let positions = self.positions(sources, workers);
        let positions = positions.map_err(|error| ExecuteError::Fill { transfer: 0, error })?;
        let Some(distribution) = self.distribution(&positions) else { return Ok(None) };
        let bytes = distribution.temporary_bytes();
        Ok(has_room(bytes)?.then(|| OutOfCore::of(CopyStep::Distribution, bytes)))
    }

    /// Whether it may be distributed, as far as its sizes tell.
    fn is_large(&self) -> bool {
        let (rows, len) = (0..self.rows.count(), self.target.end - self.target.start);
        self.slab.bytes() < LONG_ROW
            && pays(&rows, &self.target, &self.slab)
            && !Memory::of_process().keeps(len)
    }

    /// How to distribute the values, where that is the faster way.
    fn distribution<'a>(&'a self, positions: &'a BoundRows<'a>) -> Option<Distribution<'a>> {
        if !self.is_large() {
            return None;
        }
        let rows = 0..self.rows.count();
        let look = positions.look_around(rows.clone(), &self.slab, &|_| false)?;
        let distribution = Distribution::new(positions, rows, self.target.clone(), &self.slab);
        Some(distribution).filter(|it| it.is_needed(look.spread))
    }

    /// Put the values, which `conversion` makes elements of the target, in order in temporary files, where that is the
    /// faster way.
    ///
    /// # Errors
    /// Bad positions, sources that cannot be read, no room in `TMPDIR`.
    pub(crate) fn distributed(
        &self,
        positions: &BoundRows<'_>,
        values: &dyn Source,
        conversion: Conversion,
        workers: &Workers,
        progress: &Progress,
    ) -> Result<Option<KeptValues>, ExecuteError> {
        let Some(distribution) = self.distribution(positions) else { return Ok(None) };
        let bytes = distribution.temporary_bytes();
        if !has_room(bytes)? {
            return Ok(None);
        }
        progress.kept.begin(bytes);
        let ordered = self.order == WriteOrder::Ascending;
        let PlacedRows { bands, stretches } =
            distribution.place(ordered, values, workers, progress)?;
        let source = self.keep(&stretches, values, conversion, workers, progress)?;
        progress.kept.begin(0);
        let (slab, room) = (self.slab.bytes(), Memory::of_process().stages());
        let pieces = Plan::new(&Runs::contiguous(0, source.len()), slab, PIECE_BYTES);
        Ok(Some(KeptValues { source, pieces: pieces.in_panels(room), bands, order: self.order }))
    }

    /// Write the values to their places in a temporary file.
    fn keep(
        &self,
        places: &PlacedSlabs,
        values: &dyn Source,
        conversion: Conversion,
        workers: &Workers,
        progress: &Progress,
    ) -> Result<Box<dyn Source>, ExecuteError> {
        let failed = |error| ExecuteError::Fill { transfer: 0, error: FillError::Source(error) };
        let bytes = places.within().end;
        let unkept = |error| failed(unspooled(error));
        let (file, reader) = ScratchSink::mapped(bytes).map_err(unkept)?;
        let (pieces, spooled) = self.pieces(values, workers)?;
        let pieces = pieces.in_panels(Memory::of_process().stages());
        let source = spooled.as_deref().unwrap_or(values);
        let rows = ScatterSink::new(WriteOrder::Any, places.slab(), places, &file);
        let slab = places.slab().bytes();
        let staged = StagedSink::new(&rows, slab, &file, places.stages(), false);
        let sink = KeptSink { sink: &staged, progress };
        let transfer = Transfer { source, pieces: &pieces, conversion, at: 0 };
        let outcome = run(&[transfer], &sink, workers, &Progress::default());
        source.verify().map_err(failed)?;
        outcome.and_then(|()| Ok(file.verify()?)).map_err(|error| match error {
            ExecuteError::Sink(SinkError::Positions(reason)) => SinkError::Positions(reason).into(),
            ExecuteError::Sink(error) => unkept(error),
            error => error,
        })?;
        open_spooled(reader, bytes).map_err(failed)
    }
}

impl KeptValues {
    /// Run `write` with the target's side, for the executor: `sink` must take bytes in any order.
    pub(crate) fn write<T>(&self, sink: &dyn Sink, write: impl FnOnce(&dyn Sink) -> T) -> T {
        let KeptValues { bands, order, .. } = self;
        let rows = ScatterSink::new(*order, bands.slab(), bands, sink);
        write(&StagedSink::new(&rows, bands.slab().bytes(), sink, bands.stages(), true))
    }
}
