//! Copying the members of an assembly to the output: as many inputs at a time as may be open, read
//! as one source.
//!
//! A tensor with one member is copied as a slice is. Small members of joined tensors are joined piece by piece
//! ([`Join`]). These members are copied alone: a large member of a single row, a member with another layout than the
//! output, a member of an archive with a checksum, and a member that is gathered.

use std::collections::BTreeMap;
use std::mem;
use std::ops::Range;
use std::sync::Arc;

use super::slot::{Cell, Slot};
use super::step::Step;
use super::{Assembly, WantedMember};
use crate::error::Error;
use crate::execute::{Conversion, StridedSink, Transfer};
use crate::job::copy::{Writing, written_to_scratch};
use crate::job::copying::OutputRange;
use crate::job::inputs::{InputRef, descriptors, source_of};
use crate::join::{Join, JoinMember};
use crate::plan::{Plan, Tiling};
use crate::region::Take;
use crate::runs::{Axis, Runs};
use crate::sink::WriteOrder;
use crate::source::{ConcatSource, Source};
use crate::view::View;

/// The most descriptors that the inputs of a batch may take.
const BATCH: usize = 64;

/// So many tensors of opened inputs count as one descriptor, because their headers take memory.
const TENSORS: usize = 4096;

/// The size in bytes from which a member of a single row is copied alone.
const LARGE: u64 = 1 << 20;

/// The most members that are joined in one run of the executor.
const RUN_MEMBERS: usize = 1 << 13;

/// Inputs that are open at the same time.
#[derive(Default)]
struct Batch<'a> {
    /// Open inputs by their numbers.
    inputs: BTreeMap<usize, OpenInput<'a>>,
    source: ConcatSource,
    /// The number of descriptors of the inputs opened for the batch, with the count for their headers.
    open: usize,
}

struct OpenInput<'a> {
    input: InputRef<'a>,
    bytes: Arc<dyn Source>,
    /// The position in the batch's bytes where the input's bytes begin.
    base: u64,
}

impl OpenInput<'_> {
    fn copy(&self, job: &Writing<'_>, takes: &[Take]) -> Result<(), Error> {
        job.copy_random(&self.input, self.bytes.as_ref(), takes)
    }
}

impl<'a> Batch<'a> {
    fn push(&mut self, number: usize, input: InputRef<'a>) -> Result<(), Error> {
        if let InputRef::Owned(input) = &input {
            self.open += descriptors(input) + input.contents.tensors.len() / TENSORS;
        }
        let bytes = source_of(&input)?;
        let base = self.source.push(input.location.to_string(), Arc::clone(&bytes));
        let base = base.map_err(|error| Error::file(&input.location, error))?;
        self.inputs.insert(number, OpenInput { input, bytes, base });
        Ok(())
    }
}

impl Assembly<'_> {
    /// Copy a range of the output. Pipes that were not stored yet are read once, each to its end.
    pub(crate) fn copy(&mut self, to: &OutputRange<'_>, job: &Writing<'_>) -> Result<(), Error> {
        if !self.inputs.any_stream() {
            return self.copy_wanted(to, job);
        }
        let mut wanted = self.wanted(to);
        let input_of = |wanted: &WantedMember| self.members.locate(wanted.number).0;
        let inputs = Vec::from_iter(wanted.iter().map(input_of));
        let mut rest = wanted.as_mut_slice();
        for inputs in inputs.chunk_by(|one, other| one == other) {
            let (now, later) = rest.split_at_mut(inputs.len());
            rest = later;
            if self.inputs.is_stream(inputs[0]) {
                let takes = self.takes(&*self.inputs.lend(inputs[0])?, to, now)?;
                self.inputs.copy(inputs[0], job, &takes)?;
            } else {
                self.copy_batches(to, job, now)?;
            }
        }
        Ok(())
    }

    /// Copy what a range of the output needs of all members, from inputs that can be read in any
    /// order; or count the requests for it.
    pub(super) fn copy_wanted(&self, to: &OutputRange<'_>, job: &Writing<'_>) -> Result<(), Error> {
        if self.is_of_one() {
            let takes = self.takes_of_one(to)?;
            let input = self.inputs.first();
            job.check(&takes)?;
            return job.copy_random(input, source_of(input)?.as_ref(), &takes);
        }
        let mut wanted = self.wanted(to);
        // a pipe is not asked for anything
        wanted.retain(|wanted| !self.inputs.is_stream(self.input_of(wanted)));
        if job.sink().order() == WriteOrder::Any {
            wanted.sort_unstable_by_key(|wanted| wanted.number);
            return self.copy_batches(to, job, &mut wanted);
        }
        wanted.sort_by_key(|wanted| (wanted.start, wanted.member));
        let alternates = |wanted: &WantedMember| self.slot(to, wanted).alternates();
        let apart = |one: &WantedMember, other: &WantedMember| {
            one.tensor == other.tensor || !(alternates(one) || alternates(other))
        };
        let ends = Vec::from_iter(wanted.chunk_by(apart).map(<[WantedMember]>::len));
        let mut rest = wanted.as_mut_slice();
        for len in ends {
            let (group, others) = mem::take(&mut rest).split_at_mut(len);
            rest = others;
            let slot = self.slot(to, &group[0]);
            if !slot.alternates() || self.is_at_once(to, &slot, group)? {
                self.copy_batches(to, job, group)?;
                continue;
            }
            let (at, bytes) = (slot.start, slot.bytes);
            group.iter_mut().for_each(|wanted| wanted.start = 0);
            let workers = &to.prepared.output.options.workers;
            let source = written_to_scratch(bytes, &[], workers, |job| {
                self.copy_batches(&OutputRange::whole(to.prepared), job, group)
            })?;
            let pieces = whole(bytes);
            let transfer =
                Transfer { source: &source, pieces: &pieces, conversion: Conversion::None, at };
            job.transfer(&source, &[transfer])?;
        }
        Ok(())
    }

    /// Whether the members of a tensor can be joined in the order of the output: all are open, and
    /// none must be copied alone.
    fn is_at_once(
        &self,
        to: &OutputRange<'_>,
        slot: &Slot<'_>,
        wanted: &[WantedMember],
    ) -> Result<bool, Error> {
        for wanted in wanted {
            let Some(input) = self.inputs.held.get(&self.input_of(wanted)) else {
                return Ok(false);
            };
            let (tensor, member) = (wanted.tensor as usize, wanted.member as usize);
            let (take, step) = self.take(input, to, slot, tensor, member)?;
            let (_, conversion) = step.member_conversion(slot.conversion);
            if take.region.strided().is_none() || conversion != slot.conversion {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Copy the wanted members in this order, as many inputs at a time as may be open; in any
    /// order, where the output takes bytes in any order.
    fn copy_batches(
        &self,
        to: &OutputRange<'_>,
        job: &Writing<'_>,
        mut wanted: &mut [WantedMember],
    ) -> Result<(), Error> {
        while !wanted.is_empty() {
            let mut batch = Batch::default();
            let mut count = 0;
            for one in wanted.iter() {
                let input = self.input_of(one);
                if !batch.inputs.contains_key(&input) {
                    if batch.open >= BATCH {
                        break;
                    }
                    batch.push(input, self.inputs.lend(input)?)?;
                }
                count += 1;
            }
            let (now, later) = wanted.split_at_mut(count);
            wanted = later;
            if job.sink().order() == WriteOrder::Any {
                now.sort_by_key(|it| (it.is_joined, if it.is_joined { it.tensor } else { 0 }));
            }
            self.copy_batch(to, job, &batch, now)?;
        }
        Ok(())
    }

    fn copy_batch(
        &self,
        to: &OutputRange<'_>,
        job: &Writing<'_>,
        batch: &Batch<'_>,
        wanted: &[WantedMember],
    ) -> Result<(), Error> {
        let mut queue = JoinQueue::new(job, &batch.source);
        let together =
            |one: &WantedMember, other: &WantedMember| match (one.is_joined, other.is_joined) {
                (true, true) => one.tensor == other.tensor,
                (false, false) => self.input_of(one) == self.input_of(other),
                _ => false,
            };
        for group in wanted.chunk_by(together) {
            let from = |wanted: &WantedMember| &batch.inputs[&self.input_of(wanted)];
            if !group[0].is_joined {
                queue.flush_before()?;
                let input = from(&group[0]);
                input.copy(job, &self.takes(&input.input, to, group)?)?;
                continue;
            }
            let slot = self.slot(to, &group[0]);
            let mut members = Vec::with_capacity(group.len());
            for wanted in group {
                let (tensor, member) = (wanted.tensor as usize, wanted.member as usize);
                let (take, step) = self.take(&from(wanted).input, to, &slot, tensor, member)?;
                members.push((wanted, take, step));
            }
            members.sort_by_key(|(wanted, ..)| wanted.member);
            for band in &slot.bands {
                for (wanted, take, step) in &members {
                    if let Some(cell) = slot.cell(wanted.member as usize, band) {
                        queue.copy(from(wanted), &slot, take, *step, &cell)?;
                    }
                }
            }
        }
        queue.flush()
    }
}

fn whole(bytes: u64) -> Join<'static> {
    let runs = Runs { offset: 0, axes: vec![], run: bytes };
    Join::new(vec![JoinMember::of_runs(runs, 1)], 1, bytes, 1)
}

/// Cells that are joined: neighbours as one piece of work, and many pieces in one run.
struct JoinQueue<'a> {
    job: &'a Writing<'a>,
    source: &'a ConcatSource,
    /// Neighbouring members, each with the next one beside it.
    members: Vec<JoinMember<'static>>,
    /// The positions in bytes where the first neighbour begins and where the last one ends.
    at: u64,
    end: u64,
    /// The number of rows of the neighbours, and the bytes from one row to the next.
    rows: u64,
    row: u64,
    conversion: Conversion,
    /// Complete joins, the conversion of their elements, and their positions in the output.
    complete: Vec<(Join<'static>, Conversion, u64)>,
    /// The number of members in the complete joins.
    count: usize,
}

impl<'a> JoinQueue<'a> {
    fn new(job: &'a Writing<'a>, source: &'a ConcatSource) -> JoinQueue<'a> {
        let (members, complete) = (Vec::new(), Vec::new());
        let (at, end, rows, row, count, conversion) = (0, 0, 0, 0, 0, Conversion::None);
        JoinQueue { job, source, members, at, end, rows, row, conversion, complete, count }
    }

    /// Copy a cell of a member; `take` is the whole member.
    fn copy(
        &mut self,
        from: &OpenInput<'_>,
        slot: &Slot<'_>,
        take: &Take,
        step: Step,
        cell: &Cell,
    ) -> Result<(), Error> {
        let (swap_width, conversion) = step.member_conversion(slot.conversion);
        let any_order = self.job.sink().order() == WriteOrder::Any;
        let at = take.at + cell.at;
        let Cell { rows, run, .. } = *cell;
        let dense =
            conversion.input_bytes(cell.dense.start)..conversion.input_bytes(cell.dense.end);
        let has_sums = !from.input.container.stored.is_empty();
        match take.region.strided() {
            Some(view)
                if !(rows == 1 && has_sums)
                    && !(is_alone(view, &dense, rows) && (rows == 1 || any_order)) =>
            {
                let follows = self.end == at
                    && (self.rows, self.conversion) == (rows, conversion)
                    && (rows == 1 || self.row == slot.row);
                if !follows || self.members.len() >= RUN_MEMBERS {
                    self.complete()?;
                }
                let runs = view.runs().clone();
                let runs = Runs { offset: runs.offset + from.base as i64, ..runs };
                if self.members.is_empty() {
                    (self.at, self.rows, self.row, self.conversion) =
                        (at, rows, slot.row, conversion);
                }
                self.members.push(JoinMember::of_runs(runs, swap_width).within(dense));
                self.end = at + run;
                return Ok(());
            }
            _ => self.flush_before()?,
        }
        if rows == 1 {
            return from.copy(self.job, &take.window(cell.dense.clone(), at));
        }
        let axes = vec![Axis { len: rows, stride: slot.row as i64 }];
        let rows = Runs { offset: at as i64, axes, run };
        let sink = StridedSink::new(self.job.sink(), &rows);
        let takes = take.window(cell.dense.clone(), 0);
        self.job.run(&sink, &from.input, from.bytes.as_ref(), &takes)
    }

    /// End the current run of neighbours as a complete join.
    fn complete(&mut self) -> Result<(), Error> {
        if self.members.is_empty() {
            return Ok(());
        }
        let JoinQueue { conversion, at, rows, .. } = *self;
        self.count += self.members.len();
        // the bytes of a row before the conversion
        let row = conversion.input_bytes(self.row);
        let join = Join::new(mem::take(&mut self.members), rows, row, conversion.unit());
        self.complete.push((join, conversion, at));
        if self.count >= RUN_MEMBERS { self.run() } else { Ok(()) }
    }

    fn run(&mut self) -> Result<(), Error> {
        let mut transfers = Vec::with_capacity(self.complete.len());
        for (join, conversion, at) in &self.complete {
            let (conversion, at) = (*conversion, *at);
            transfers.push(Transfer { source: self.source, pieces: join, conversion, at });
        }
        self.job.transfer(self.source, &transfers)?;
        self.complete.clear();
        self.count = 0;
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.complete()?;
        if self.complete.is_empty() { Ok(()) } else { self.run() }
    }

    /// Copy the joins before a member is copied alone, if the output takes bytes in order only.
    fn flush_before(&mut self) -> Result<(), Error> {
        if self.job.sink().order() == WriteOrder::Any { Ok(()) } else { self.flush() }
    }
}

/// Whether a range of a member is better copied alone than together with its neighbours.
fn is_alone(view: &View, dense: &Range<u64>, rows: u64) -> bool {
    let transposed = || Plan::tiled(view.runs(), 1, Tiling::MAPPED).is_relayout();
    dense.end - dense.start >= LARGE && (rows == 1 || transposed())
}
