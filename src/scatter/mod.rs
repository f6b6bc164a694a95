//! Scattering: slabs of a value tensor written at the positions that an index tensor names.
//!
//! The shapes and rules are TensorFlow's TensorScatterUpdate. The positions are [`Indexed`], as in a gather:
//! by gather_nd, or by the lists in an index. The dense bytes are the slabs in the order of the indices. The
//! sink takes them in this order only, unless no position can occur twice: of two slabs for one position the
//! later one wins, whatever the number of workers.
//!
//! ```text
//!   indices (3, 1)   values (3, 4)              target (5, 4)
//!   [[3], [0], [3]]  ────────────  row 0, lost  ──────────── 0   row 1
//!                    ────────────  row 1        ──────────── 3   row 2
//!                    ────────────  row 2
//! ```

use std::ops::Range;

use sink::StagedSink;

use crate::execute::{
    Assignment, Conversion, ExecuteError, FillError, LONG_SCATTERED_ROW, Memory, Progress,
    Transfer, Workers, fill_scratch, in_order, unspooled,
};
use crate::gather::{
    BoundRows, DistributedSlabs, Distribution, GatherError, Indexed, Indices, Options, OutOfRange,
    Rows, slab_runs,
};
use crate::plan::{PIECE_BYTES, Plan};
use crate::runs::{Axis, Runs};
use crate::shape::AsList;
use crate::sink::{ScratchSink, Sink, WriteOrder};
use crate::source::{Source, open_spooled};
use crate::view::{Layout, ViewError};

mod sink;

pub use sink::ScatterSink;

#[derive(Clone, Debug)]
pub struct Scatter {
    rows: Rows,
    target: Range<u64>,
    slab: Runs,
    /// The values, slab after slab, each in the byte order of the target's slab.
    values: Runs,
    /// The bytes of values that no piece divides: a slab, where it fits in a piece.
    unit: u64,
    bytes: u64,
    order: WriteOrder,
}

#[derive(Debug, thiserror::Error)]
pub enum ScatterError {
    #[error(transparent)]
    Indices(#[from] GatherError),
    /// The values have another shape than the indices and the target require.
    #[error(
        "the values have shape {}, but indices of shape {} into a target of shape {} need {}",
        AsList(values),
        AsList(indices),
        AsList(target),
        AsList(expected)
    )]
    Values { values: Vec<u64>, indices: Vec<u64>, target: Vec<u64>, expected: Vec<u64> },
}

impl Scatter {
    /// Write slabs of `values`, which `conversion` converts to the target's dtype, at the tuples on the last
    /// axis of `indices`.
    pub fn new(
        target: &Layout<'_>,
        indices: &Indices<'_>,
        values: &Layout<'_>,
        out_of_range: OutOfRange,
        conversion: Conversion,
    ) -> Result<Scatter, ScatterError> {
        let options = Options { out_of_range, ..Options::default() };
        let indexed = Indexed::nd(target, indices, &options)?;
        let expected = indexed.shape();
        if values.shape != expected {
            return Err(ScatterError::Values {
                values: values.shape.to_vec(),
                indices: indices.layout.shape.to_vec(),
                target: target.shape.to_vec(),
                expected,
            });
        }
        let has_bytes = values.item_bits.is_multiple_of(8);
        let axes = if has_bytes { values.axes().map_err(GatherError::View)? } else { Vec::new() };
        let offset = values.start().map_err(GatherError::View)?;
        let values = Runs { offset, axes, run: values.item_bits / 8 };
        Ok(Scatter::of(target, indexed, &values, conversion)?)
    }

    /// Write values to the elements of the target that lists of positions name. Where an element is named
    /// twice, the last value wins, in the order of the result.
    ///
    /// `values` has an axis for each axis of the result, of its length, and one value as its run;
    /// `conversion` converts a value to the target's dtype. For elements smaller than a byte, only the
    /// offset of `values` counts: the values lie one after the other.
    pub fn of(
        target: &Layout<'_>,
        indexed: Indexed,
        values: &Runs,
        conversion: Conversion,
    ) -> Result<Scatter, GatherError> {
        let shape = indexed.shape();
        let bounds = target.bounds()?;
        let order = if indexed.is_unique() { WriteOrder::Any } else { WriteOrder::Ascending };
        let row_axes = indexed.row_axes();
        let (rows, slab) = indexed.rows(target)?;
        let runs = |offset, axes, run| Runs { offset, axes, run };
        let (slab, values) = if shape.contains(&0) {
            let nothing = runs(0, vec![Axis { len: 0, stride: 0 }], 1);
            (nothing.clone(), nothing)
        } else if target.item_bits.is_multiple_of(8) {
            let bytes =
                |axis: &Axis| Ok(Axis { len: axis.len, stride: target.bytes(axis.stride)? });
            let slab: Vec<Axis> = slab.iter().map(bytes).collect::<Result<_, ViewError>>()?;
            let slab = runs(0, slab, target.item_bits / 8);
            let (outer, inner) = values.axes.split_at(row_axes.min(values.axes.len()));
            let value = runs(values.offset, inner.to_vec(), values.run);
            let (slab, value) = Runs::pair_in_memory_order(&slab, &value);
            let axes = [outer, &value.axes].concat();
            (slab, Runs { axes, ..value }.coalesced())
        } else {
            // elements smaller than a byte are in C order on both sides, so that slabs are runs
            let slab = slab_runs(target, &slab)?;
            if !slab.axes.is_empty() {
                return Err(GatherError::View(ViewError::cuts_byte(target.item_bits)));
            }
            let all = Axis { len: rows.count(), stride: slab.run as i64 };
            (slab.clone(), runs(values.offset, vec![all], slab.run).coalesced())
        };
        let unit = match conversion.input_bytes(slab.bytes()) {
            bytes if bytes > 0 && bytes <= PIECE_BYTES => bytes,
            _ => conversion.unit(),
        };
        let bytes = conversion.output_bytes(values.bytes());
        Ok(Scatter { rows, target: bounds, slab, values, unit, bytes, order })
    }

    /// Check all positions, with these workers, before anything is written; `sources` hold the lists.
    pub fn check(&self, sources: &[&dyn Source], workers: &Workers) -> Result<(), ExecuteError> {
        self.rows.check(sources, workers)
    }

    /// Bind the lists to their `sources`; `workers` sort the numbers where this is needed.
    pub fn positions<'a>(
        &self,
        sources: &[&'a dyn Source],
        workers: &Workers,
    ) -> Result<BoundRows<'a>, FillError> {
        let hold = if self.bytes > 0 { Options::default().hold } else { 0 };
        self.rows.clone().with(sources, hold, workers)
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The input of the executor: pieces of `values`, or of the returned source.
    pub fn pieces(
        &self,
        values: &dyn Source,
        workers: &Workers,
    ) -> Result<(Assignment, Option<Box<dyn Source>>), ExecuteError> {
        let (plan, spooled) = in_order(values, &self.values, self.unit, 1, workers)?;
        Ok((plan.into(), spooled))
    }

    /// The output of the executor: `sink` must take bytes in any order.
    pub fn sink<'a>(&'a self, sink: &'a dyn Sink, positions: &'a BoundRows<'a>) -> ScatterSink<'a> {
        ScatterSink::new(self.order, &self.slab, positions, sink)
    }
}

// Scatters of short rows to a target that does not fit in memory, by a distribution.
//
// A first scatter writes the values to a scratch file, in the order of the target's bands. A second one
// writes them to the target band by band, so that rows written together are near each other.

/// Values in a scratch file, in the order of the target's bands.
pub(crate) struct SpooledValues {
    pub(crate) source: Box<dyn Source>,
    pub(crate) pieces: Plan,
    bands: DistributedSlabs,
    order: WriteOrder,
}

impl Scatter {
    /// The distribution of the values, where this is faster; `sources` hold the lists.
    pub(crate) fn distribution(
        &self,
        sources: &[&dyn Source],
        workers: &Workers,
    ) -> Result<Option<Distribution>, ExecuteError> {
        let rows = 0..self.rows.count();
        if self.slab.bytes() >= LONG_SCATTERED_ROW {
            return Ok(None);
        }
        Distribution::choose(rows.clone(), &self.target, &self.slab, || {
            if Memory::of_process().keeps(self.target.end - self.target.start) {
                return Ok(None);
            }
            let positions = self.positions(sources, workers)?;
            Ok(positions.look_around(rows, &self.slab, &|_| false))
        })
    }

    /// Write the values, which `conversion` converts to the target's dtype, to scratch files in the order of
    /// the bands.
    pub(crate) fn distribute(
        &self,
        distribution: &Distribution,
        positions: &BoundRows<'_>,
        values: &dyn Source,
        conversion: Conversion,
        workers: &Workers,
        progress: &Progress,
    ) -> Result<SpooledValues, ExecuteError> {
        let ordered = self.order == WriteOrder::Ascending;
        let spooled = progress.scratch.during(distribution.temporary_bytes(), || {
            let placed = distribution.place(positions, ordered, values, workers, progress)?;
            let source = self.keep(&placed.by_list, values, conversion, workers, progress)?;
            Ok::<_, ExecuteError>((source, placed.by_tensor))
        });
        let (source, bands) = spooled?;
        let slab = self.slab.bytes();
        let room = Memory::of_process().stages();
        let pieces = Plan::new(&Runs::contiguous(0, source.len()), slab, PIECE_BYTES);
        let pieces = pieces.in_panels(Some(room));
        Ok(SpooledValues { source, pieces, bands, order: self.order })
    }

    /// Write the values to their positions in a scratch file.
    fn keep(
        &self,
        slabs: &DistributedSlabs,
        values: &dyn Source,
        conversion: Conversion,
        workers: &Workers,
        progress: &Progress,
    ) -> Result<Box<dyn Source>, ExecuteError> {
        let bytes = slabs.within.end;
        let (file, reader) = ScratchSink::mapped(bytes).map_err(unspooled)?;
        let (pieces, spooled) = self.pieces(values, workers)?;
        let pieces = pieces.in_panels(Memory::of_process().stages());
        let source = spooled.as_deref().unwrap_or(values);
        let rows = ScatterSink::new(WriteOrder::Any, &slabs.slab, slabs, &file);
        let slab = slabs.slab.bytes();
        let staged = StagedSink::new(&rows, slab, &file, &slabs.stages, false);
        let transfer = Transfer { source, pieces: &pieces, conversion, at: 0 };
        fill_scratch(&[transfer], &staged, workers, progress)?;
        file.verify().map_err(unspooled)?;
        Ok(open_spooled(reader, bytes)?)
    }
}

impl SpooledValues {
    /// Call `write` with the output of the executor: `sink` must take bytes in any order.
    pub(crate) fn write<T>(&self, sink: &dyn Sink, write: impl FnOnce(&dyn Sink) -> T) -> T {
        let SpooledValues { bands, order, .. } = self;
        let rows = ScatterSink::new(*order, &bands.slab, bands, sink);
        write(&StagedSink::new(&rows, bands.slab.bytes(), sink, &bands.stages, true))
    }
}
