//! Scattering: slabs of a value tensor written at the positions that an index tensor names.
//!
//! Owns the shapes and rules of TensorFlow's TensorScatterUpdate. The positions are those that a
//! gather would read ([`Indexed`]): those of gather_nd, or of the lists in an index. The dense bytes
//! are the slabs in the order of the indices, and the sink takes them in that order only, unless no
//! position can occur twice: of two slabs for one position the later one stands, whatever the number
//! of workers that pack them.
//!
//! ```text
//!   indices (3, 1)   values (3, 4)              target (5, 4)
//!   [[3], [0], [3]]  ────────────  row 0, lost  ──────────── 0   row 1
//!                    ────────────  row 1        ──────────── 3   row 2
//!                    ────────────  row 2
//! ```

use crate::execute::{
    Assignment, Conversion, ExecuteError, FillError, Workers, in_order, unpack::unpack, write_runs,
};
use crate::gather::{
    BoundRows, DROPPED, GatherError, Indexed, Indices, Options, OutOfRange, RowBlock, Rows,
    slab_runs,
};
use crate::plan::PIECE_BYTES;
use crate::runs::{Axis, Runs};
use crate::shape::AsList;
use crate::sink::{Sink, SinkError, WritableMap, WriteOrder};
use crate::source::Source;
use crate::view::{Layout, ViewError};

/// Rows whose positions are read at a time.
const BLOCK: usize = 4096;

/// Slabs of this length in bytes have pages of their own.
const PAGE: u64 = 4096;

/// What to write where: everything but the bytes.
#[derive(Clone, Debug)]
pub struct Scatter {
    rows: Rows,
    /// A slab of the target, from where its row begins on.
    slab: Runs,
    /// The values, slab after slab, each in the order of the target's bytes.
    values: Runs,
    /// Bytes of the values that no piece divides: a slab, where it fits a piece.
    unit: u64,
    /// Bytes of all slabs in the target.
    bytes: u64,
    order: WriteOrder,
}

/// Why a scatter is not possible.
#[derive(Debug, thiserror::Error)]
pub enum ScatterError {
    /// The indices do not fit the target.
    #[error(transparent)]
    Indices(#[from] GatherError),
    /// The values are not of the shape that the others ask for.
    #[error(
        "the values have shape {}, but indices of shape {} into a target of shape {} ask for {}",
        AsList(values),
        AsList(indices),
        AsList(target),
        AsList(expected)
    )]
    Values {
        /// The shape of the values.
        values: Vec<u64>,
        /// The shape of the indices.
        indices: Vec<u64>,
        /// The shape of the target.
        target: Vec<u64>,
        /// What the values' shape should be.
        expected: Vec<u64>,
    },
}

impl Scatter {
    /// Write slabs of `values`, which `conversion` makes elements of the target's dtype, at the
    /// tuples on the last axis of `indices`.
    ///
    /// # Errors
    /// [`ScatterError`]. Source: TensorFlow's TensorScatterUpdate; the values have the shape
    /// `indices.shape[:-1] + target.shape[N:]` for tuples of N numbers.
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
        let axes = match values.item_bits.is_multiple_of(8) {
            true => values.axes().map_err(GatherError::View)?,
            false => Vec::new(),
        };
        let (offset, run) = (values.start().map_err(GatherError::View)?, values.item_bits / 8);
        Ok(Scatter::of(target, indexed, &Runs { offset, axes, run }, conversion)?)
    }

    /// Write values to the elements of the target that lists of positions name; where one is named
    /// twice, the last value stands, in the order of the result.
    ///
    /// `values` has an axis for each of the result, of its length, and one value as its run, which
    /// `conversion` makes an element of the target's dtype. Where these are smaller than a byte, only
    /// its offset counts: the values lie one after the other.
    ///
    /// # Errors
    /// [`GatherError::View`]: sizes past 63 bits, slabs that would cut a byte.
    pub fn of(
        target: &Layout<'_>,
        indexed: Indexed,
        values: &Runs,
        conversion: Conversion,
    ) -> Result<Scatter, GatherError> {
        let shape = indexed.shape();
        let order = match indexed.is_unique() {
            true => WriteOrder::Any,
            false => WriteOrder::Ascending,
        };
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
        Ok(Scatter { rows, slab, values, unit, bytes, order })
    }

    /// Look at all positions, with these workers, as must be done before anything is
    /// written; `sources` are those of the lists.
    ///
    /// # Errors
    /// The first bad position of the first list that has one; a failure to read them.
    pub fn check(&self, sources: &[&dyn Source], workers: &Workers) -> Result<(), ExecuteError> {
        self.rows.check(sources, workers)
    }

    /// Bind the sources of the lists; `workers` put their numbers in order, where they must
    /// be.
    ///
    /// # Errors
    /// [`FillError::Indices`]: a source failed, or a temporary file.
    pub fn positions<'a>(
        &self,
        sources: &[&'a dyn Source],
        workers: &Workers,
    ) -> Result<BoundRows<'a>, FillError> {
        let hold = if self.bytes > 0 { Options::default().hold } else { 0 };
        self.rows.clone().with(sources, hold, workers)
    }

    /// Bytes of all slabs in the target.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The values' side, for the executor: pieces of `values`, or of the source that comes with them.
    ///
    /// # Errors
    /// Those of [`in_order`].
    pub fn pieces(
        &self,
        values: &dyn Source,
        workers: &Workers,
    ) -> Result<(Assignment, Option<Box<dyn Source>>), ExecuteError> {
        let (plan, spooled) = in_order(values, &self.values, self.unit, 1, workers)?;
        Ok((plan.into(), spooled))
    }

    /// The target's side, for the executor: `sink` must take bytes in any order.
    pub fn sink<'a>(&'a self, sink: &'a dyn Sink, positions: &'a BoundRows<'a>) -> ScatterSink<'a> {
        ScatterSink { scatter: self, sink, positions }
    }
}

/// A sink that takes the slabs in order, and writes each to its position in another sink, which it
/// borrows: whoever owns that one commits it.
pub struct ScatterSink<'a> {
    scatter: &'a Scatter,
    sink: &'a dyn Sink,
    positions: &'a BoundRows<'a>,
}

impl Sink for ScatterSink<'_> {
    fn order(&self) -> WriteOrder {
        self.scatter.order
    }

    fn write_at(&self, offset: u64, mut bytes: &[u8]) -> Result<(), SinkError> {
        let slab = &self.scatter.slab;
        let (mut row, mut within) = (offset / slab.bytes(), offset % slab.bytes());
        let mut block = RowBlock::default();
        while !bytes.is_empty() {
            let left = (within + bytes.len() as u64).div_ceil(slab.bytes());
            self.positions.block(row..row + left, BLOCK, slab, &mut block).map_err(no_positions)?;
            // of a file that was cut short only zeros are left, which are positions too
            self.positions.verify().map_err(no_positions)?;
            let count = (block.rows() * slab.bytes() - within).min(bytes.len() as u64);
            let (now, later) = bytes.split_at(count as usize);
            self.write_rows(&block, within, now)?;
            row += block.rows();
            (bytes, within) = (later, 0);
        }
        Ok(())
    }
}

impl ScatterSink<'_> {
    /// Write slabs to their offsets; the first `within` bytes of the first one are left out.
    fn write_rows(
        &self,
        block: &RowBlock,
        mut within: u64,
        mut bytes: &[u8],
    ) -> Result<(), SinkError> {
        let slab = &self.scatter.slab;
        if within == 0
            && bytes.len() as u64 == block.rows() * slab.bytes()
            && let Some(shared) = self.sink.mapped(slab.bytes())
            && write_mapped(shared, block, slab, bytes)
        {
            return self.sink.verify();
        }
        for (offset, rows) in block.stretches() {
            let runs = block.runs(slab, offset, rows);
            let count = (runs.bytes() - within).min(bytes.len() as u64);
            let (mut now, later) = bytes.split_at(count as usize);
            if offset != DROPPED {
                runs.split(within..within + count, &mut |part| {
                    let (part_bytes, rest) = now.split_at(part.bytes() as usize);
                    now = rest;
                    write_runs(self.sink, &part, part_bytes)
                })?;
            }
            (bytes, within) = (later, 0);
        }
        Ok(())
    }
}

/// Write small slabs to the mapped target; false, and nothing done, where its pages cannot be
/// brought in.
fn write_mapped(shared: &WritableMap, block: &RowBlock, slab: &Runs, bytes: &[u8]) -> bool {
    let bounds = slab.byte_bounds();
    let span_bytes = (bounds.end - bounds.start) as u64;
    if span_bytes > PIECE_BYTES {
        return false;
    }
    let there = || block.stretches().filter(|&(offset, _)| offset != DROPPED);
    // the slab may begin before its first element, where its axes run backwards
    let place = |runs: &Runs| {
        let bounds = runs.byte_bounds();
        bounds.start as u64..bounds.end as u64
    };
    // one call for each of many scattered elements takes longer than the faults that it saves
    if span_bytes >= PAGE {
        let mut ascending: Vec<(u64, u64)> = there().collect();
        ascending.sort_unstable();
        let places = ascending.into_iter().map(|(at, rows)| place(&block.runs(slab, at, rows)));
        if !shared.populate(places) {
            return false;
        }
    }
    let mut bytes = bytes;
    for (offset, rows) in block.stretches() {
        let (now, later) = bytes.split_at((rows * slab.bytes()) as usize);
        bytes = later;
        if offset == DROPPED {
            continue;
        }
        let runs = block.runs(slab, offset, rows);
        let place = place(&runs);
        let Some(cells) = shared.cells(place.clone()) else { return false };
        unpack(&runs.axes, runs.run, now, cells, (runs.offset as u64 - place.start) as usize);
    }
    true
}

/// The indices were checked before: this can fail only where they have changed since.
fn no_positions(error: FillError) -> SinkError {
    SinkError::Positions(Box::new(error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::{DType, Endian, Scalar};
    use crate::shape::Order;
    use crate::source::{MemorySource, SourceError};
    use std::ops::Range;

    /// Zeros, as a mapped file has them where it was cut short.
    struct CutShort(MemorySource);

    impl Source for CutShort {
        fn len(&self) -> u64 {
            self.0.len()
        }

        fn window<'a>(
            &'a self,
            range: Range<u64>,
            scratch: &'a mut Vec<u8>,
        ) -> Result<&'a [u8], SourceError> {
            self.0.window(range, scratch)
        }

        fn verify(&self) -> Result<(), SourceError> {
            Err(SourceError::Truncated)
        }
    }

    /// A target that nothing is written to.
    struct Untouched;

    impl Sink for Untouched {
        fn write_at(&self, _offset: u64, _bytes: &[u8]) -> Result<(), SinkError> {
            unreachable!("what was read are no positions")
        }
    }

    #[test]
    fn positions_that_cannot_be_read_are_not_the_targets_fault() {
        let layout = |shape| Layout::new(shape, 8, Order::C, 0);
        let dtype = DType::Scalar(Scalar::I8, Endian::Little);
        let shape = [2, 1];
        let bits = dtype.item_bits();
        let indices = Indices { dtype: &dtype, layout: Layout::new(&shape, bits, Order::C, 0) };
        let (target, values) = (layout(&[4, 3]), layout(&[2, 3]));
        let scatter =
            Scatter::new(&target, &indices, &values, OutOfRange::Error, Conversion::None).unwrap();
        let source = CutShort(MemorySource(vec![0; 2]));
        let positions = scatter.positions(&[&source], &Workers::new(1)).unwrap();
        let written = scatter.sink(&Untouched, &positions).write_at(0, &[1; 6]);
        let Err(SinkError::Positions(reason)) = written else { panic!("{written:?}") };
        assert_eq!(reason.to_string(), "the file was cut short while it was being read");
    }
}
