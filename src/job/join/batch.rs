//! Joining what a batch of inputs gives to the output: as many neighbouring inputs as may be open at a time,
//! read as one source.
//!
//! Small parts are joined piece by piece ([`Join`]); a large part of a single row, one whose layout is
//! another than the output's, and one that is gathered go by themselves.

use std::mem;
use std::ops::Range;
use std::sync::Arc;

use super::super::edit::conversion;
use super::place::{Cell, JoinedPlace, Place};
use crate::cast::Cast;
use crate::dtype::DType;
use crate::error::Error;
use crate::execute::{Conversion, StridedSink, Transfer, Workers};
use crate::input::Input;
use crate::job::copy::{Writing, written_to_scratch};
use crate::job::inputs::{InputRef, source_of};
use crate::join::{Join, JoinPart};
use crate::plan::{Plan, Tiling};
use crate::region::Take;
use crate::runs::{Axis, Runs};
use crate::sink::WriteOrder;
use crate::source::{ConcatSource, Source};
use crate::view::View;

/// As many descriptors as the inputs of a batch may take.
pub(crate) const BATCH: usize = 64;

/// Parts of a single row of at least this many bytes are copied by themselves.
const LARGE: u64 = 1 << 20;

/// Inputs that are open at a time, and what they give to each joined tensor.
#[derive(Default)]
pub(crate) struct Batch<'a> {
    inputs: Vec<OpenInput<'a>>,
    source: ConcatSource,
    /// The parts of each tensor, in their order along its axis.
    parts: Vec<Vec<BatchPart>>,
}

struct OpenInput<'a> {
    input: InputRef<'a>,
    bytes: Arc<dyn Source>,
    /// Where its bytes begin in those of the batch.
    base: u64,
}

struct BatchPart {
    /// Its number among all parts of the tensor.
    number: usize,
    /// The input in the batch that it is of.
    input: usize,
    part: JoinedPart,
}

/// What is joined with others to a tensor.
pub(crate) struct JoinedPart {
    /// All of it, as if the tensor had nothing else.
    pub(crate) take: Take,
    pub(crate) step: PartStep,
}

impl<'a> Batch<'a> {
    /// Add an input. Returns its number in the batch.
    pub(crate) fn push(&mut self, input: InputRef<'a>) -> Result<usize, Error> {
        let bytes = source_of(&input)?;
        let base = self.source.push(input.location.to_string(), Arc::clone(&bytes));
        let base = base.map_err(|error| Error::file(&input.location, error))?;
        self.inputs.push(OpenInput { input, bytes, base });
        Ok(self.inputs.len() - 1)
    }

    pub(crate) fn input(&self, at: usize) -> &Input {
        &self.inputs[at].input
    }

    /// Add part `number` of the tensor with number `at`, which is of an input of the batch.
    pub(crate) fn push_part(&mut self, at: usize, number: usize, input: usize, part: JoinedPart) {
        if self.parts.len() <= at {
            self.parts.resize_with(at + 1, Vec::new);
        }
        self.parts[at].push(BatchPart { number, input, part });
    }

    /// Copy what the inputs give to these tensors.
    pub(crate) fn copy(&self, job: &Writing<'_>, tensors: &[JoinedPlace<'_>]) -> Result<(), Error> {
        for (tensor, parts) in tensors.iter().zip(&self.parts) {
            for band in &tensor.bands {
                let mut cells = Cells {
                    job,
                    source: &self.source,
                    row: tensor.row,
                    waiting: Vec::new(),
                    at: 0,
                    rows: 0,
                    conversion: Conversion::None,
                };
                for BatchPart { number, input, part } in parts {
                    if let Some(cell) = tensor.cell(*number, band) {
                        cells.copy(&self.inputs[*input], part, &cell, tensor.place.conversion)?;
                    }
                }
                cells.flush()?;
            }
        }
        Ok(())
    }
}

/// Put a tensor together in a temporary file, which `fill` fills as if it were the output, and copy that there.
pub(crate) fn through_scratch(
    to: &Writing<'_>,
    place: &Place,
    workers: &Workers,
    fill: impl FnOnce(&Writing<'_>, &Place) -> Result<(), Error>,
) -> Result<(), Error> {
    let first = Place { start: 0, ..place.clone() };
    let source = written_to_scratch(place.bytes, &[], workers, |job| fill(job, &first))?;
    let runs = Runs { offset: 0, axes: vec![], run: place.bytes };
    let pieces = Join::new(vec![JoinPart::of_runs(runs, 1)], 1, place.bytes, 1);
    let conversion = Conversion::None;
    to.transfer(&Transfer { source: &source, pieces: &pieces, conversion, at: place.start })
}

/// What parts of a batch give to a band, one after the other; neighbours are copied together.
struct Cells<'a> {
    job: &'a Writing<'a>,
    source: &'a ConcatSource,
    row: u64,
    /// Neighbouring parts that wait to be copied together.
    waiting: Vec<JoinPart<'static>>,
    /// Where the first of them goes in bytes, how many rows they have, and what their elements go through.
    at: u64,
    rows: u64,
    conversion: Conversion,
}

impl Cells<'_> {
    /// Copy what an input gives, whose parts of other bands are taken with it; `first` is what elements of
    /// the first input go through.
    fn copy(
        &mut self,
        from: &OpenInput<'_>,
        JoinedPart { take, step }: &JoinedPart,
        cell: &Cell,
        first: Conversion,
    ) -> Result<(), Error> {
        let (swap_width, conversion) = step.part_conversion(first);
        let any_order = self.job.sink().order() == WriteOrder::Any;
        let at = take.at + cell.at;
        let rows = cell.rows;
        let dense =
            conversion.input_bytes(cell.dense.start)..conversion.input_bytes(cell.dense.end);
        if self.conversion != conversion {
            self.flush()?;
        }
        match take.region.strided() {
            Some(view) if !(is_alone(view, &dense, rows) && (rows == 1 || any_order)) => {
                let runs = view.runs().clone();
                let runs = Runs { offset: runs.offset + from.base as i64, ..runs };
                let part = JoinPart::of_runs(runs, swap_width).within(dense);
                if self.waiting.is_empty() {
                    self.at = at;
                    self.rows = rows;
                    self.conversion = conversion;
                }
                self.waiting.push(part);
                return Ok(());
            }
            _ => self.flush()?,
        }
        if rows == 1 {
            let takes = take.window(cell.dense.clone(), at);
            return self.job.copy_random(&from.input, from.bytes.as_ref(), &takes);
        }
        let axes = vec![Axis { len: rows, stride: self.row as i64 }];
        let rows = Runs { offset: at as i64, axes, run: cell.run };
        let sink = StridedSink::new(self.job.sink(), &rows);
        let takes = take.window(cell.dense.clone(), 0);
        self.job.run(&sink, &from.input, from.bytes.as_ref(), &takes)
    }

    fn flush(&mut self) -> Result<(), Error> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let Cells { source, at, conversion, .. } = *self;
        // of the elements as they are before the conversion
        let row_stride = conversion.input_bytes(self.row);
        let parts = mem::take(&mut self.waiting);
        let pieces = Join::new(parts, self.rows, row_stride, conversion.unit());
        self.job.transfer(&Transfer { source, pieces: &pieces, conversion, at })
    }
}

/// Whether a range of a part is better copied by itself than together with its neighbours.
fn is_alone(view: &View, dense: &Range<u64>, rows: u64) -> bool {
    let transposed = || Plan::tiled(view.runs(), 1, Tiling::MAPPED).is_relayout();
    is_large(dense) && (rows == 1 || transposed())
}

/// Whether a range of a part is copied by itself where it is one row.
pub(crate) fn is_large(dense: &Range<u64>) -> bool {
    dense.end - dense.start >= LARGE
}

/// What the elements of an input go through.
#[derive(Clone, Copy)]
pub(crate) enum PartStep {
    /// What those of the first do, after so many bytes were reversed together: of the same type, in
    /// another byte order at most.
    AsFirst(usize),
    /// A cast of their own, to the dtype that those of the first have afterwards.
    Own(Cast),
}

impl PartStep {
    /// What elements of a dtype go through that is that of the first input but for its byte order.
    pub(crate) fn as_first(dtype: &DType, first: &DType) -> Option<PartStep> {
        match conversion(dtype, first) {
            Ok(Conversion::SwapBytes { width }) => Some(PartStep::AsFirst(width)),
            Ok(_) => Some(PartStep::AsFirst(1)),
            Err(_) => None,
        }
    }

    /// The dtype of elements that are of another type than those of the first input.
    pub(crate) fn other_dtype(self) -> Option<DType> {
        match self {
            PartStep::AsFirst(_) => None,
            PartStep::Own(cast) => Some(cast.from()),
        }
    }

    /// A cast of its own, beside a first input whose elements are `first` in its file. It is to their
    /// byte order, which what those go through may change, be it a cast to the other order.
    pub(crate) fn own(cast: Cast, first: &DType) -> PartStep {
        PartStep::Own(cast.with_order_of(first))
    }

    /// What its elements go through, where those of the first input go through `first`.
    pub(crate) fn conversion(self, first: Conversion) -> Conversion {
        let cast = match (self, first) {
            (PartStep::AsFirst(1), _) => return first,
            (PartStep::AsFirst(width), Conversion::None) => {
                return Conversion::swap_bytes(width);
            }
            (PartStep::AsFirst(_), Conversion::SwapBytes { .. }) => return Conversion::None,
            (PartStep::AsFirst(_), Conversion::Cast(cast)) => cast.of_swapped(),
            (PartStep::Own(cast), Conversion::Cast(theirs)) => cast.with_order_of(&theirs.to()),
            (PartStep::Own(cast), Conversion::SwapBytes { .. }) => cast.to_swapped(),
            (PartStep::Own(cast), Conversion::None) => cast,
        };
        match cast.swap_width() {
            Some(width) => Conversion::swap_bytes(width),
            None => Conversion::Cast(cast),
        }
    }

    /// How the bytes of a part are read, where those of the first input go through `first`:
    /// how many are reversed together, and what all parts that are copied with it go through.
    fn part_conversion(self, first: Conversion) -> (usize, Conversion) {
        match self {
            PartStep::AsFirst(width) => (width, first),
            PartStep::Own(_) => (1, self.conversion(first)),
        }
    }
}
