//! Copying the inputs of a join to the output, group by group.
//!
//! A group is as many neighbouring inputs as may be open at a time, read as one source. Small
//! parts are joined piece by piece ([`Join`]); a large part of a single row, one whose layout is
//! another than the output's, and one that is gathered go by themselves. Where the output takes
//! bytes in any order, a group's share of all tensors is written before the next group is opened.
//! Where it does not, the tensors come one after the other; one that is made of several groups
//! that alternate in it is put together in a temporary file first.

use std::sync::Arc;

use super::inputs::{Chosen, Joined, JoinedTensor, Lent, descriptors};
use super::same::source_of;
use crate::container::error::{Cause, ContainerError};
use crate::container::input::{Bytes, Input, failed_source};
use crate::container::job::Job;
use crate::container::layout::Entry;
use crate::container::lists::OpenIndex;
use crate::container::output::{Output, Prepared};
use crate::container::overwrite;
use crate::container::take::{Region, Take};
use crate::execute::{Conversion, Progress, StridedSink, Transfer};
use crate::index::IndexExpr;
use crate::index::resolve::resolve;
use crate::join::{Join, Part};
use crate::plan::{Pattern, Plan, Tiling};
use crate::runs::{Axis, Runs};
use crate::shape::Order;
use crate::sink::{ScratchSink, WriteOrder};
use crate::source::{ConcatSource, PreadSource, Source};
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
    /// [`JoinFault`](crate::container::JoinFault) for the first input that differs; inputs that
    /// cannot be read; an output that exists or cannot be created, or is an input; positions out of
    /// range.
    pub fn check(
        &mut self,
        output: &Output,
        prepared: &Prepared,
        progress: &Progress,
    ) -> Result<(), ContainerError> {
        output.check(prepared)?;
        self.check_overwrite(output)?;
        self.check_lists()?;
        self.check_rest(progress)
    }

    /// Refuse an output that is a descriptor of an input.
    fn check_overwrite(&self, output: &Output) -> Result<(), ContainerError> {
        self.options.index.lists.check_output(output.destination())?;
        if overwrite::overwrites(output.destination())? {
            for number in 0..self.locations.len() {
                overwrite::check_input(output.destination(), &*self.lend(number)?)?;
            }
        }
        Ok(())
    }

    /// Write the output, which was [prepared](Joined::prepare). It is put in place when all of it is
    /// written; on any error, what stood there before stays.
    ///
    /// # Errors
    /// Inputs that fail, are cut short or were changed, positions out of range, an output that
    /// cannot be written.
    pub fn write(
        &mut self,
        output: &Output,
        prepared: &Prepared,
        progress: &Progress,
    ) -> Result<(), ContainerError> {
        let order = output.options().order;
        if !self.is_one_pass(order) {
            self.spool_all(progress)?;
        }
        self.check_overwrite(output)?;
        let job = Job::of_output(output, prepared, (true, &[]), progress)?;
        let copy = Copy { job: &job, index: self.options.index, order };
        let mut places: Vec<Place<'_>> = Vec::with_capacity(self.tensors.len());
        let entries: Vec<Entry> = prepared.tensors.iter().collect();
        for (target, entry) in entries.iter().enumerate() {
            places.push(Place {
                target,
                entry,
                start: prepared.starts[target],
                conversion: entry.conversion,
            });
        }
        match job.sink().order() {
            WriteOrder::Any => self.copy(&copy, &places)?,
            WriteOrder::Ascending => {
                for place in &places {
                    match self.alternates(place, order)? {
                        true => self.copy_through_scratch(&copy, place)?,
                        false => self.copy(&copy, std::slice::from_ref(place))?,
                    }
                }
            }
        }
        job.commit()
    }

    /// Whether pipes are read while they are copied: there is one tensor, of one row.
    fn is_one_pass(&self, order: Order) -> bool {
        match self.tensors.as_slice() {
            [target] => target.join.as_ref().is_some_and(|join| join.rows_and_inner(order).0 == 1),
            _ => false,
        }
    }

    /// Whether the bytes of a tensor do not come in the order of the output, but in that of groups
    /// or of inputs.
    fn alternates(&self, place: &Place<'_>, order: Order) -> Result<bool, ContainerError> {
        let target = &self.tensors[place.target];
        let Some(join) = target.join.as_ref() else { return Ok(false) };
        if join.rows_and_inner(order).0 <= 1 {
            return Ok(false);
        }
        let first = self.first();
        let tensor = &first.contents.tensors.at(target.number);
        let index = self.options.index;
        let selection = index.resolve(&tensor.shape);
        let region = selection.and_then(|selection| index.region(tensor, &selection, order));
        let region = region.map_err(|cause| first.failed_tensor(tensor, false, cause))?;
        Ok(!matches!(region, Region::View(_)) || self.held.len() < self.locations.len())
    }

    /// Put a tensor together in a temporary file, and copy that to the output.
    fn copy_through_scratch(
        &mut self,
        copy: &Copy<'_>,
        place: &Place<'_>,
    ) -> Result<(), ContainerError> {
        let (sink, file) = ScratchSink::new(place.entry.bytes)?;
        let progress = Progress::default();
        let job = Job::into_sink(Box::new(sink), &[], self.options.threads, &progress)?;
        let there = Copy { job: &job, ..*copy };
        self.copy(&there, &[Place { start: 0, ..*place }])?;
        job.commit()?;
        let source = PreadSource::new(file, 0, place.entry.bytes);
        let runs = Runs { offset: 0, axes: vec![], run: place.entry.bytes };
        let parts = vec![Part::of_runs(runs, 1)];
        let join = Join::new(parts, 1, place.entry.bytes, 1);
        let (conversion, at) = (Conversion::None, place.start);
        copy.job.transfer(&Transfer { source: &source, pieces: &join, conversion, at })
    }

    /// Copy these tensors.
    fn copy(&mut self, copy: &Copy<'_>, places: &[Place<'_>]) -> Result<(), ContainerError> {
        let first = self.first();
        let mut takes = Vec::new();
        let mut joins = Vec::new();
        for place in places {
            let target = &self.tensors[place.target];
            match &target.join {
                Some(_) => joins.push((place, 0u64)),
                None => takes.push(copy.whole(first, target.number, place)?),
            }
        }
        if !takes.is_empty() {
            copy.job.copy_random(first, source_of(first)?.as_ref(), &takes)?;
        }
        let mut number = 0;
        while number < self.locations.len() && !joins.is_empty() {
            number = match self.held.get(&number).is_some_and(is_unread) {
                true => self.copy_stream(copy, number, &mut joins[0])?,
                false => self.copy_group(copy, number, &mut joins)?,
            };
        }
        Ok(())
    }

    /// Copy an input that is read once, in one pass where it can be, to the end of what its header
    /// promises. `done` is what was joined before it, along the axis. Returns the number of the next
    /// input.
    fn copy_stream(
        &mut self,
        copy: &Copy<'_>,
        number: usize,
        (place, done): &mut (&Place<'_>, u64),
    ) -> Result<usize, ContainerError> {
        let (input, chosen) = self.lend_checked(number)?;
        if let (Some(join), Some(chosen)) = (&self.tensors[place.target].join, chosen.first()) {
            let (_, inner) = join.rows_and_inner(copy.order);
            let take = copy.take(&input, chosen, place, *done * inner)?;
            *done += join.len(number);
            drop(input);
            if let Some(input) = self.held.get_mut(&number) {
                copy.job.copy(input, &[take])?;
            }
        }
        Ok(number + 1)
    }

    /// Copy the group that begins with an input; returns the number of the input after it.
    fn copy_group(
        &self,
        copy: &Copy<'_>,
        start: usize,
        joins: &mut [(&Place<'_>, u64)],
    ) -> Result<usize, ContainerError> {
        let mut group = Group::default();
        let mut number = start;
        let mut open = 0;
        while number < self.locations.len()
            && open < GROUP
            && !self.held.get(&number).is_some_and(is_unread)
        {
            let (input, chosen) = self.lend_checked(number)?;
            if let Lent::Again(input) = &input {
                open += descriptors(input);
            }
            group.push(input, chosen)?;
            number += 1;
        }
        for (at, (place, done)) in joins.iter_mut().enumerate() {
            if let Some(join) = &self.tensors[place.target].join {
                copy.group(&group, at, place, (join, *done))?;
                *done += (start..number).map(|number| join.len(number)).sum::<u64>();
            }
        }
        Ok(number)
    }
}

/// Whether an input is a pipe whose elements have not been read.
fn is_unread(input: &Input) -> bool {
    matches!(input.bytes, Bytes::Stream(_))
}

/// Where a tensor goes.
#[derive(Clone, Copy)]
struct Place<'a> {
    /// Its number among those of the output.
    target: usize,
    entry: &'a Entry,
    /// The position of its first element, in bytes.
    start: u64,
    conversion: Conversion,
}

/// Inputs that are open at the same time.
#[derive(Default)]
struct Group<'a> {
    inputs: Vec<GroupInput<'a>>,
    /// The bytes of all of them.
    source: ConcatSource,
}

struct GroupInput<'a> {
    input: Lent<'a>,
    bytes: Arc<dyn Source>,
    chosen: Vec<Chosen>,
    /// Where its bytes begin in those of the group.
    base: u64,
}

impl<'a> Group<'a> {
    fn push(&mut self, input: Lent<'a>, chosen: Vec<Chosen>) -> Result<(), ContainerError> {
        let bytes = source_of(&input)?;
        let name = input.location.to_string();
        let base = self.source.push(name, Box::new(Arc::clone(&bytes)));
        let base = base.map_err(|error| failed_source(&input.location, error))?;
        self.inputs.push(GroupInput { input, bytes, chosen, base });
        Ok(())
    }
}

/// The output that a join is copied to.
struct Copy<'a> {
    job: &'a Job<'a>,
    index: OpenIndex<'a>,
    order: Order,
}

impl Copy<'_> {
    /// A tensor that is taken once.
    fn whole(
        &self,
        input: &Input,
        number: usize,
        place: &Place<'_>,
    ) -> Result<Take, ContainerError> {
        let tensor = &input.contents.tensors.at(number);
        let region = resolve(&IndexExpr::default(), &tensor.shape, false).map_err(Cause::from);
        let region =
            region.and_then(|selection| Region::of_selection(tensor, &selection, self.order));
        let region = region.map_err(|cause| input.failed_tensor(tensor, true, cause))?;
        Ok(Take { part: tensor.part, region, conversion: place.conversion, at: place.start })
    }

    /// What is taken of an input, where its place begins `elements` elements behind that of the
    /// tensor.
    fn take(
        &self,
        input: &Input,
        chosen: &Chosen,
        place: &Place<'_>,
        elements: u64,
    ) -> Result<Take, ContainerError> {
        let tensor = &input.contents.tensors.at(chosen.number);
        let region = self.index.region(tensor, &chosen.selection, self.order);
        let region = region.map_err(|cause| input.failed_tensor(tensor, false, cause))?;
        let conversion = after_swap(chosen.swap_width, place.conversion);
        let at = place.start + bytes_of(elements, place.entry.dtype.item_bits());
        Ok(Take { part: tensor.part, region, conversion, at })
    }

    /// Copy what a group holds of tensor number `at` of those that are joined, of which `done` is
    /// written already, along the axis.
    fn group(
        &self,
        group: &Group<'_>,
        at: usize,
        place: &Place<'_>,
        (join, done): (&JoinedTensor, u64),
    ) -> Result<(), ContainerError> {
        let (rows, inner) = join.rows_and_inner(self.order);
        let bits = place.entry.dtype.item_bits();
        let row_stride = bytes_of(join.total() * inner, bits);
        let any_order = self.job.sink().order() == WriteOrder::Any;
        let mut pending =
            Pending { parts: Vec::new(), at: place.start + bytes_of(done * inner, bits) };
        let mut before = done;
        for one in &group.inputs {
            let chosen = &one.chosen[at];
            let take = self.take(&one.input, chosen, place, before * inner)?;
            before += chosen.len();
            let view = match &take.region {
                Region::View(view) if !(is_alone(view, rows) && (rows == 1 || any_order)) => view,
                region => {
                    let (at, bytes) = (take.at, region.bytes());
                    self.flush(group, &mut pending, (rows, row_stride), place)?;
                    pending.at = at + bytes_of(chosen.len() * inner, bits);
                    if bytes == 0 {
                        continue;
                    }
                    if rows == 1 {
                        self.job.copy_random(&one.input, one.bytes.as_ref(), &[take])?;
                        continue;
                    }
                    let run = bytes_of(chosen.len() * inner, bits);
                    let axes = vec![Axis { len: rows, stride: row_stride as i64 }];
                    let rows = Runs { offset: at as i64, axes, run };
                    let sink = StridedSink::new(self.job.sink(), &rows);
                    let take = Take { at: 0, ..take };
                    self.job.run(&sink, &one.input.location, one.bytes.as_ref(), &[take])?;
                    continue;
                }
            };
            let runs = view.runs().clone();
            let runs = Runs { offset: runs.offset + one.base as i64, ..runs };
            pending.parts.push(Part::of_runs(runs, chosen.swap_width));
        }
        self.flush(group, &mut pending, (rows, row_stride), place)
    }

    /// Copy the parts that wait.
    fn flush(
        &self,
        group: &Group<'_>,
        pending: &mut Pending,
        (rows, row_stride): (u64, u64),
        place: &Place<'_>,
    ) -> Result<(), ContainerError> {
        let parts = std::mem::take(&mut pending.parts);
        if parts.is_empty() {
            return Ok(());
        }
        let conversion = place.conversion;
        // of the elements as they are before the conversion
        let row_stride = conversion.input_bytes(row_stride);
        let pieces = Join::new(parts, rows, row_stride, conversion.unit());
        self.job.transfer(&Transfer {
            source: &group.source,
            pieces: &pieces,
            conversion,
            at: pending.at,
        })
    }
}

/// Neighbouring parts that wait to be copied together.
struct Pending {
    parts: Vec<Part<'static>>,
    /// Where the first of them goes, in bytes.
    at: u64,
}

/// Whether a part is better copied by itself than together with its neighbours.
fn is_alone(view: &View, rows: u64) -> bool {
    let transposed = || Plan::tiled(view, 1, Tiling::MAPPED).pattern() == Pattern::Transposed;
    view.bytes() >= LARGE && (rows == 1 || transposed())
}

/// So many elements in bytes.
fn bytes_of(elements: u64, item_bits: u64) -> u64 {
    // the whole output has fewer than 2^63 bytes
    (u128::from(elements) * u128::from(item_bits) / 8) as u64
}

/// What elements go through that must have `swap_width` bytes reversed before `conversion`.
fn after_swap(swap_width: usize, conversion: Conversion) -> Conversion {
    match conversion {
        conversion if swap_width <= 1 => conversion,
        Conversion::None | Conversion::Whole { .. } => Conversion::swap_bytes(swap_width),
        Conversion::SwapBytes { .. } => Conversion::None,
        Conversion::Cast(cast) => Conversion::Cast(cast.of_swapped()),
    }
}
