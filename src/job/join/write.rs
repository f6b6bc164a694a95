//! Copying the inputs of a join to the output, group by group.
//!
//! A group is as many neighbouring inputs as may be open at a time, read as one source. Small
//! parts are joined piece by piece ([`Join`]); a large part of a single row, one whose layout is
//! another than the output's, and one that is gathered go by themselves. Where the output takes
//! bytes in any order, a group's share of all tensors is written before the next group is opened.
//! Where it does not, the tensors come one after the other; one that is made of several groups
//! that alternate in it is put together in a temporary file first.

use std::ops::Range;
use std::sync::Arc;

use super::super::edit::conversion;
use super::inputs::{JoinTarget, Joined};
use super::place::{Cell, Place, bytes_of, whole};
use crate::cast::Cast;
use crate::dtype::DType;
use crate::error::Error;
use crate::execute::{Announced, Conversion, Progress, StridedSink, Transfer, Workers};
use crate::input::{Bytes, Input, failed_source};
use crate::job::align::shared_bytes;
use crate::job::copy::{Writing, written_to_scratch};
use crate::job::inputs::{Lent, descriptors, source_of};
use crate::job::overwrite;
use crate::join::{Join, JoinPart};
use crate::output::Prepared;
use crate::plan::{Plan, Tiling};
use crate::region::Take;
use crate::runs::{Axis, Runs};
use crate::sink::{Destination, WriteOrder};
use crate::source::{ConcatSource, Source};
use crate::view::View;

/// As many descriptors as the inputs of a group may take.
const GROUP: usize = 64;

/// Parts of a single row of at least this many bytes are copied by themselves.
const LARGE: u64 = 1 << 20;

impl Joined<'_> {
    /// Make all the checks that writing would fail at, and write nothing: also that the tensors
    /// that are taken once are the same in all inputs, byte for byte.
    ///
    /// # Errors
    /// [`JoinFault`](super::JoinFault) for the first input that differs; inputs that
    /// cannot be read; an output that exists or cannot be created, or is an input; positions out of
    /// range.
    pub(super) fn check(&mut self, prepared: &Prepared, progress: &Progress) -> Result<(), Error> {
        prepared.check()?;
        self.check_overwrite(&prepared.output.destination)?;
        self.check_lists()?;
        self.check_rest(&whole(prepared), progress)
    }

    /// Refuse an output that is a descriptor of an input.
    fn check_overwrite(&self, output: &Destination) -> Result<(), Error> {
        overwrite::check_lists(output, self.options.index.lists.lists())?;
        self.inputs.check_overwrite(output)
    }

    /// Write the output, which was [prepared](Joined::prepare). It is put in place when all of it is
    /// written; on any error, what stood there before stays.
    ///
    /// # Errors
    /// Inputs that fail, are cut short or were changed, positions out of range, an output that
    /// cannot be written.
    pub(super) fn write(&mut self, prepared: &Prepared, progress: &Progress) -> Result<(), Error> {
        if !self.is_one_pass() {
            self.inputs.spool_all(progress)?;
        }
        self.check_overwrite(&prepared.output.destination)?;
        let job = Writing::of_output(prepared, true, &[], progress)?;
        let places = whole(prepared);
        match job.sink().order() {
            WriteOrder::Any => self.copy(&job, &places)?,
            WriteOrder::Ascending => {
                for place in &places {
                    match self.alternates(place)? {
                        true => self.copy_through_scratch(&job, place)?,
                        false => self.copy(&job, std::slice::from_ref(place))?,
                    }
                }
            }
        }
        job.commit()
    }

    /// The requests that [`write`](Joined::write) would make for elements of remote inputs: by the same
    /// steps, so that inputs that are opened again for it are opened here, too. `None` without remote
    /// inputs.
    ///
    /// # Errors
    /// An input that cannot be opened again, positions out of range.
    pub(super) fn announced(&mut self, prepared: &Prepared) -> Result<Option<Announced>, Error> {
        if !self.inputs.any_remote() {
            return Ok(None);
        }
        let progress = Progress::default();
        let job = Writing::counting(&self.options.workers, &progress);
        self.copy(&job, &whole(prepared))?;
        Ok(job.counted())
    }

    /// How many bytes of these tensors, or of what is wanted of them, would be shared with the inputs:
    /// `None` where none are. By the same steps in which they are copied.
    ///
    /// # Errors
    /// An input that cannot be opened again.
    pub(super) fn shared(
        &self,
        places: &[Place],
        prepared: &Prepared,
    ) -> Result<Option<u64>, Error> {
        let of_input = |input: &Input, takes: &[Take]| shared_bytes(prepared, input, takes);
        let mut bytes = of_input(self.first(), &self.takes_kept(places)?).unwrap_or(0);
        let targets = self.joined(places);
        for number in 0..self.inputs.locations.len() {
            if !targets.iter().any(|target| target.needs(number)) {
                continue;
            }
            let (input, chosen) = self.lend_checked(number)?;
            let mut takes = Vec::new();
            for target in &targets {
                let place = target.place;
                let take = self.take_joined(&input, &chosen[target.at], place)?;
                let cells = target.bands.iter().filter_map(|band| target.cell(number, band));
                for cell in cells.filter(|cell| cell.rows == 1 && is_large(&cell.dense)) {
                    takes.extend(take.window(cell.dense, place.start + cell.at));
                }
            }
            bytes += of_input(&input, &takes).unwrap_or(0);
        }
        Ok((bytes > 0).then_some(bytes))
    }

    /// Whether pipes are read while they are copied: there is one tensor, of one row.
    fn is_one_pass(&self) -> bool {
        let [JoinTarget { join: Some(join), .. }] = self.tensors.as_slice() else { return false };
        join.rows_and_inner(self.order).0 == 1
    }

    /// Whether the bytes of a tensor do not come in the order of the output, but in that of groups
    /// or of inputs.
    fn alternates(&self, place: &Place) -> Result<bool, Error> {
        let target = &self.tensors[place.target];
        let Some(join) = target.join.as_ref() else { return Ok(false) };
        if join.rows_and_inner(self.order).0 <= 1 {
            return Ok(false);
        }
        let first = self.first();
        let tensor = &first.contents.tensors.at(target.number);
        let index = self.options.index;
        let selection = index.resolve(tensor);
        let region = selection.and_then(|selection| index.region(tensor, &selection, self.order));
        let region = region.map_err(|cause| first.failed_tensor(tensor, false, cause))?;
        let in_one_pass = region.strided().is_some() && !self.is_mixed();
        Ok(!in_one_pass || self.inputs.held.len() < self.inputs.locations.len())
    }

    /// Put a tensor together in a temporary file, and copy that to the output.
    fn copy_through_scratch(&mut self, to: &Writing<'_>, place: &Place) -> Result<(), Error> {
        let workers = self.options.workers.clone();
        through_scratch(to, place, &workers, |job| {
            self.copy(job, &[Place { start: 0, ..place.clone() }])
        })
    }

    /// Copy these tensors, or what is wanted of them.
    pub(super) fn copy(&mut self, job: &Writing<'_>, places: &[Place]) -> Result<(), Error> {
        let (first, takes) = (self.first(), self.takes_kept(places)?);
        // a pipe is not asked for anything
        let is_asked = !job.is_counting() || !is_unread(first);
        if is_asked && !takes.is_empty() {
            job.copy_random(first, source_of(first)?.as_ref(), &takes)?;
        }
        let mut number = 0;
        while number < self.inputs.locations.len() {
            number = match self.inputs.held.get(&number).is_some_and(is_unread) {
                true => self.copy_stream(job, number, &places[0])?,
                false => self.copy_group(job, number, places)?,
            };
        }
        Ok(())
    }

    /// What is wanted of the tensors that are taken once.
    fn takes_kept(&self, places: &[Place]) -> Result<Vec<Take>, Error> {
        let mut takes = Vec::new();
        for place in places.iter().filter(|place| self.tensors[place.target].join.is_none()) {
            let take = self.take_kept(place)?;
            let window = take.window(place.window.clone(), place.start + place.window.start);
            window.into_iter().for_each(|take| take.push(&mut takes));
        }
        Ok(takes)
    }

    /// Copy an input that is read once, in one pass where it can be, to the end of what its header
    /// promises. Returns the number of the next input.
    fn copy_stream(
        &mut self,
        job: &Writing<'_>,
        number: usize,
        place: &Place,
    ) -> Result<usize, Error> {
        let (input, chosen) = self.lend_checked(number)?;
        if let (Some(join), Some(chosen)) = (&self.tensors[place.target].join, chosen.first()) {
            let (_, inner) = join.rows_and_inner(self.order);
            let before = join.range(number).start.saturating_mul(inner);
            let at = place.start + bytes_of(before, place.item_bits);
            let take = Take { at, ..self.take_joined(&input, chosen, place)? };
            drop(input);
            if let Some(input) = self.inputs.held.get_mut(&number) {
                job.copy(input, &[take])?;
            }
        }
        Ok(number + 1)
    }

    /// Copy as many inputs as may be open at a time, from number `start` on, but for those that nothing
    /// is wanted of. Returns the number of the next input.
    fn copy_group(
        &self,
        job: &Writing<'_>,
        start: usize,
        places: &[Place],
    ) -> Result<usize, Error> {
        let targets = self.joined(places);
        let (mut group, mut inputs) = (Group::default(), Vec::new());
        let mut number = start;
        let mut open = 0;
        while number < self.inputs.locations.len()
            && open < GROUP
            && !self.inputs.held.get(&number).is_some_and(is_unread)
        {
            if targets.iter().any(|target| target.needs(number)) {
                let (input, chosen) = self.lend_checked(number)?;
                if let Lent::Again(input) = &input {
                    open += descriptors(input);
                }
                let bytes = source_of(&input)?;
                group.push(input, bytes)?;
                inputs.push((number, chosen));
            }
            number += 1;
        }
        for target in &targets {
            for band in &target.bands {
                let mut cells = Cells::new(job, &group.source, target.row);
                for (from, (number, chosen)) in group.inputs.iter().zip(&inputs) {
                    let Some(cell) = target.cell(*number, band) else { continue };
                    let chosen = &chosen[target.at];
                    let take = self.take_joined(&from.input, chosen, target.place)?;
                    let (width, conversion) = chosen.step.part_conversion(target.place.conversion);
                    cells.copy(from, &take, &cell, width, conversion)?;
                }
                cells.flush()?;
            }
        }
        Ok(number)
    }
}

/// Put a tensor together in a temporary file, and copy that to the output.
pub(super) fn through_scratch(
    to: &Writing<'_>,
    place: &Place,
    workers: &Workers,
    fill: impl FnOnce(&Writing<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    let source = written_to_scratch(place.bytes, &[], workers, fill)?;
    let runs = Runs { offset: 0, axes: vec![], run: place.bytes };
    let join = Join::new(vec![JoinPart::of_runs(runs, 1)], 1, place.bytes, 1);
    let (conversion, at) = (Conversion::None, place.start);
    to.transfer(&Transfer { source: &source, pieces: &join, conversion, at })
}

/// An input of a group, its bytes, and where these begin in those of the group.
pub(super) struct InGroup<'a> {
    input: Lent<'a>,
    bytes: Arc<dyn Source>,
    base: u64,
}

/// What inputs of a group give to a band, one after the other; neighbours are copied together.
pub(super) struct Cells<'a> {
    job: &'a Writing<'a>,
    /// The bytes of the group.
    source: &'a ConcatSource,
    /// Bytes of a row of the output.
    row: u64,
    pending: Pending,
}

impl<'a> Cells<'a> {
    pub(super) fn new(job: &'a Writing<'a>, source: &'a ConcatSource, row: u64) -> Cells<'a> {
        Cells { job, source, row, pending: Pending::default() }
    }

    /// Copy what an input gives, all of which `take` would write from the place of the tensor on:
    /// `swap_width` bytes are reversed together, and then all that is copied with it is converted.
    pub(super) fn copy(
        &mut self,
        from: &InGroup<'_>,
        take: &Take,
        cell: &Cell,
        swap_width: usize,
        conversion: Conversion,
    ) -> Result<(), Error> {
        let any_order = self.job.sink().order() == WriteOrder::Any;
        let (at, rows) = (take.at + cell.at, cell.rows);
        let dense =
            conversion.input_bytes(cell.dense.start)..conversion.input_bytes(cell.dense.end);
        if self.pending.conversion != conversion {
            self.flush()?;
        }
        match take.region.strided() {
            Some(view) if !(is_alone(view, &dense, rows) && (rows == 1 || any_order)) => {
                let runs = view.runs().clone();
                let runs = Runs { offset: runs.offset + from.base as i64, ..runs };
                let part = JoinPart::of_runs(runs, swap_width).within(dense);
                self.pending.push(at, rows, conversion, part);
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

    /// Copy the parts that wait.
    pub(super) fn flush(&mut self) -> Result<(), Error> {
        let Pending { parts, at, rows, conversion } = std::mem::take(&mut self.pending);
        if parts.is_empty() {
            return Ok(());
        }
        // of the elements as they are before the conversion
        let row_stride = conversion.input_bytes(self.row);
        let pieces = Join::new(parts, rows, row_stride, conversion.unit());
        self.job.transfer(&Transfer { source: self.source, pieces: &pieces, conversion, at })
    }
}

/// Whether an input is a pipe whose elements have not been read.
fn is_unread(input: &Input) -> bool {
    matches!(input.bytes, Bytes::Stream(_))
}

/// Inputs that are open at the same time.
#[derive(Default)]
pub(super) struct Group<'a> {
    pub(super) inputs: Vec<InGroup<'a>>,
    /// The bytes of all of them.
    pub(super) source: ConcatSource,
}

impl<'a> Group<'a> {
    pub(super) fn push(&mut self, input: Lent<'a>, bytes: Arc<dyn Source>) -> Result<(), Error> {
        let base = self.source.push(input.location.to_string(), Arc::clone(&bytes));
        let base = base.map_err(|error| failed_source(&input.location, error))?;
        self.inputs.push(InGroup { input, bytes, base });
        Ok(())
    }
}

/// Neighbouring parts that wait to be copied together.
#[derive(Default)]
struct Pending {
    parts: Vec<JoinPart<'static>>,
    /// Where the first of them goes, in bytes.
    at: u64,
    /// How many rows they have.
    rows: u64,
    /// What their elements go through.
    conversion: Conversion,
}

impl Pending {
    /// Add a part, which goes to `at`: beside the one before it, if there is one.
    fn push(&mut self, at: u64, rows: u64, conversion: Conversion, part: JoinPart<'static>) {
        if self.parts.is_empty() {
            (self.at, self.rows, self.conversion) = (at, rows, conversion);
        }
        self.parts.push(part);
    }
}

/// Whether a range of a part is better copied by itself than together with its neighbours.
fn is_alone(view: &View, dense: &Range<u64>, rows: u64) -> bool {
    let transposed = || Plan::tiled(view.runs(), 1, Tiling::MAPPED).is_relayout();
    is_large(dense) && (rows == 1 || transposed())
}

/// Whether a range of a part is copied by itself where it is one row.
fn is_large(dense: &Range<u64>) -> bool {
    dense.end - dense.start >= LARGE
}

/// What the elements of an input go through.
#[derive(Clone, Copy)]
pub(super) enum PartStep {
    /// What those of the first do, after so many bytes were reversed together: of the same type, in
    /// another byte order at most.
    AsFirst(usize),
    /// A cast of their own, to the dtype that those of the first have afterwards.
    Own(Cast),
}

impl PartStep {
    /// What elements of a dtype go through that is that of the first input but for its byte order.
    pub(super) fn as_first(dtype: &DType, first: &DType) -> Option<PartStep> {
        match conversion(dtype, first) {
            Ok(Conversion::SwapBytes { width }) => Some(PartStep::AsFirst(width)),
            Ok(_) => Some(PartStep::AsFirst(1)),
            Err(_) => None,
        }
    }

    /// The dtype of elements that are of another type than those of the first input.
    pub(super) fn other_dtype(self) -> Option<DType> {
        match self {
            PartStep::AsFirst(_) => None,
            PartStep::Own(cast) => Some(cast.from()),
        }
    }

    /// A cast of its own, beside a first input whose elements are `first` in its file. It is to their
    /// byte order, which what those go through may change, be it a cast to the other order.
    pub(super) fn own(cast: Cast, first: &DType) -> PartStep {
        PartStep::Own(cast.with_order_of(first))
    }

    /// What its elements go through, where those of the first input go through `first`.
    pub(super) fn conversion(self, first: Conversion) -> Conversion {
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
    pub(super) fn part_conversion(self, first: Conversion) -> (usize, Conversion) {
        match self {
            PartStep::AsFirst(width) => (width, first),
            PartStep::Own(_) => (1, self.conversion(first)),
        }
    }
}
