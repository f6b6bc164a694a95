//! Tensors of a union that are joined: concatenate and stack by name.
//!
//! The members of a group are neighbours among those that the output takes, in their order. Where each is one
//! range of the joined tensor, it is copied as any other tensor is, at a place of its own; where they alternate
//! in it, they are copied as the inputs of a join are.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::{mem, slice};

use super::super::select::Axes;
use super::PlacedTensor;
use super::union::Union;
use crate::error::{Cause, Error};
use crate::index::resolve::Selection;
use crate::input::{Grouping, Groups, Input, SelectFault};
use crate::job::copy::Writing;
use crate::job::copying::VisitInput;
use crate::job::inputs::{InputRef, descriptors};
use crate::job::join::batch::{BATCH, Batch, JoinedPart, PartStep, through_scratch};
use crate::job::join::inputs::JoinedTensor;
use crate::job::join::place::{JoinedPlace, Place};
use crate::job::join::{Along, JoinFault, check_meaning};
use crate::output::{Becomes, Output, Prepared};
use crate::region::{OpenIndex, Region, Take};
use crate::shape::AskedAxis;
use crate::sink::WriteOrder;

/// Which tensors are joined, and how.
#[derive(Clone)]
pub struct GroupOptions<'a> {
    /// The names of those that are joined, with pieces.
    pub pattern: &'a str,
    /// The names of the joined ones, with those pieces that the members of a group have in common.
    pub into: &'a str,
    pub along: Along,
    /// Along which axis, of joined tensors by their names.
    pub axes: Axes,
    /// What is taken of every member before it is joined.
    pub index: OpenIndex<'a>,
    /// Whether the other tensors are taken as they are.
    pub keep_rest: bool,
}

/// Which tensors of the output are joined.
#[derive(Default)]
pub(super) struct Joins {
    /// Their numbers in the output, ascending, and the axis of each.
    pub(super) entries: Vec<u32>,
    axes: Vec<AskedAxis>,
    /// How many members each has.
    size: usize,
}

impl<'a> Union<'a> {
    /// How many tensors the output has.
    pub(super) fn count(&self) -> usize {
        let Joins { entries, size, .. } = &self.joins;
        self.taken.len() - entries.len() * size + entries.len()
    }

    pub(super) fn is_joined(&self, entry: usize) -> bool {
        self.joins.entries.binary_search(&(entry as u32)).is_ok()
    }

    /// The tensors that the tensor of the output at that place is made of.
    pub(super) fn members(&self, entry: usize) -> &[u32] {
        let Joins { entries, size, .. } = &self.joins;
        let before = entries.partition_point(|&joined| (joined as usize) < entry);
        let start = entry - before + before * size;
        let is_joined = entries.get(before).is_some_and(|&joined| joined as usize == entry);
        &self.taken[start..start + if is_joined { *size } else { 1 }]
    }

    /// The tensors of the output that casts are for: all, or where some are joined, those.
    pub(super) fn cast_entries(&self) -> impl Iterator<Item = usize> + Clone {
        let all = if self.options.group.is_none() { 0..self.count() } else { 0..0 };
        all.chain(self.joins.entries.iter().map(|&entry| entry as usize))
    }

    /// Find groups among the chosen tensors, and which others the output has.
    pub(super) fn group(
        &mut self,
        grouping: &Grouping<'_>,
        mut members: Vec<usize>,
        output: &Output,
    ) -> Result<(), Error> {
        let Some(GroupOptions { pattern, axes, keep_rest, .. }) = self.options.group.clone() else {
            return Ok(());
        };
        members.retain(|&number| grouping.is_match(self.old_name(number)));
        if members.is_empty() {
            let names = self.names().map(str::to_owned).collect();
            let pattern = pattern.to_owned();
            return Err(SelectFault::NotFound { pattern, names, links: false }.into());
        }
        let mut all = if keep_rest { self.chosen(&[])? } else { members.clone() };
        self.leave_out_unreadable(&mut all, &members)?;
        self.leave_out_lacking(&mut all, &members, output);
        let all = self.winners(&all)?;
        let is_member = |number: &u32| members.binary_search(&(*number as usize)).is_ok();
        let joined: Vec<u32> = all.iter().copied().filter(is_member).collect();
        let names: Vec<&str> = joined.iter().map(|&it| self.old_name(it as usize)).collect();
        let groups = grouping.find(&names)?;
        let members = groups.members.iter().map(|&at| joined[at as usize]).collect();
        self.take_groups(&all, is_member, &Groups { members, ..groups }, grouping);
        self.check_names()?;
        let wholes = self.joins.entries.iter().map(|&entry| self.name_of_entry(entry as usize));
        let axes = axes.of_names(wholes)?;
        self.joins.axes = axes;
        Ok(())
    }

    /// Take these tensors, those of groups together where the first of their group stands.
    fn take_groups(
        &mut self,
        all: &[u32],
        is_member: impl Fn(&u32) -> bool,
        groups: &Groups,
        grouping: &Grouping<'_>,
    ) {
        let groups_of = groups.members.chunks(groups.size.max(1));
        let with_first = groups_of.filter_map(|group| Some((*group.iter().min()?, group)));
        let mut next = with_first.peekable();
        let mut entry = 0;
        for &number in all {
            if !is_member(&number) {
                self.taken.push(number);
            } else if let Some((_, group)) = next.next_if(|(first, _)| *first == number) {
                let first = group[0] as usize;
                let whole = grouping.whole(self.old_name(first)).unwrap_or_default();
                self.renamed.insert(first, whole);
                self.taken.extend(group);
                self.joins.entries.push(entry);
            } else {
                continue;
            }
            entry += 1;
        }
        self.joins.size = groups.size;
    }

    fn name_of_entry(&self, entry: usize) -> &str {
        self.name_of(self.members(entry)[0] as usize)
    }

    /// Make sure that no joined tensor has the name of another one.
    fn check_names(&self) -> Result<(), SelectFault> {
        let mut wholes = HashSet::new();
        let joined = self.joins.entries.iter().map(|&entry| self.name_of_entry(entry as usize));
        let twice = joined.clone().find(|name| !wholes.insert(*name));
        let kept = (0..self.count()).filter(|&entry| !self.is_joined(entry));
        let mut kept = kept.map(|entry| self.name_of_entry(entry));
        match twice.or_else(|| kept.find(|name| wholes.contains(name))) {
            Some(name) => Err(SelectFault::SameName(name.to_owned())),
            None => Ok(()),
        }
    }

    /// How the tensor of the output at that place is joined; `None` for one that is taken as it is.
    pub(super) fn joined(&self, entry: usize) -> Result<Option<JoinedTensor>, Error> {
        let Ok(at) = self.joins.entries.binary_search(&(entry as u32)) else { return Ok(None) };
        let Some(GroupOptions { along, index, .. }) = &self.options.group else { return Ok(None) };
        let members = self.members(entry);
        let mut joined: Option<JoinedTensor> = None;
        for (place, &number) in members.iter().enumerate() {
            let number = number as usize;
            let failed = |cause: Cause| self.misfit(members[0], number, cause);
            let tensor = self.tensor(number)?;
            let selection = index.resolve(&tensor).map_err(failed)?;
            let shape = selection.shape();
            match &mut joined {
                None => {
                    let names = || tensor.dimension_names(&selection.source_axes());
                    let axis = self.joins.axes[at].number(names);
                    let axis = axis.map_err(|fault| failed(fault.into()))?;
                    let join = JoinedTensor::new(shape, axis, *along);
                    joined = Some(join.map_err(|fault| failed(fault.into()))?);
                }
                Some(join) => {
                    let len = join.fit(place, &shape).map_err(|fault| failed(fault.into()))?;
                    join.push(len)?;
                }
            }
        }
        Ok(joined)
    }

    /// The error of a member of a group, which says how it differs from the first one.
    fn misfit(&self, first: u32, number: usize, cause: Cause) -> Error {
        match cause.downcast::<JoinFault>() {
            Ok(fault) if first as usize != number => {
                let both = [first as usize, number].map(|number| self.old_name(number));
                Error::file(self.location_of(number), fault.of_tensors(both))
            }
            Ok(fault) => self.failed(number, fault),
            Err(cause) => self.failed(number, cause),
        }
    }

    pub(super) fn becomes_joined(
        &self,
        entry: usize,
        join: &JoinedTensor,
        output: &Output,
    ) -> Result<Becomes, Error> {
        let members = self.members(entry);
        let number = members[0] as usize;
        let failed = |cause: Cause| self.failed(number, cause);
        let first = self.tensor(number)?;
        let item_bits = first.dtype.item_bits();
        for (place, &number) in members.iter().enumerate().skip(1) {
            let tensor = self.tensor(number as usize)?;
            let fits = check_meaning(place, &tensor, &first).map_err(Cause::from);
            let step =
                fits.and_then(|()| self.options.casts.step(place, &tensor.dtype, &first.dtype));
            step.map_err(|cause| self.misfit(members[0], number as usize, cause))?;
        }
        if let Some(place) = join.cut_byte(members.len(), item_bits, output.options.order) {
            let number = place;
            let fault = JoinFault::CutsByte { number, item_bits, names: None };
            return Err(self.misfit(members[0], members[place] as usize, fault.into()));
        }
        let cast = self.options.casts.of(&first.dtype).map_err(|error| failed(error.into()))?;
        let mut axes = Vec::new();
        if let Some(group) = &self.options.group {
            axes = join.axes(group.index.resolve(&first).map_err(failed)?.source_axes());
        }
        Ok(Becomes { shape: join.result(), cast, axes })
    }
}

impl Union<'_> {
    /// What is taken of a tensor of an input, on its way to position `at`.
    pub(super) fn part(
        &self,
        input: &Input,
        prepared: &Prepared,
        placed: &PlacedTensor,
    ) -> Result<JoinedPart, Error> {
        let PlacedTensor { number, entry, at } = *placed;
        let failed = |cause: Cause| self.failed(number as usize, cause);
        let tensor = self.tensor_in(input, number as usize, entry as usize)?;
        let order = prepared.output.options.order;
        let conversion = prepared.tensors.conversion(entry as usize);
        let (region, step) = match &self.options.group {
            Some(group) if self.is_joined(entry as usize) => {
                let selection = group.index.resolve(&tensor).map_err(failed)?;
                let region = group.index.region(&tensor, &selection, order);
                let first = self.tensor(self.members(entry as usize)[0] as usize)?;
                let step = self.options.casts.step(1, &tensor.dtype, &first.dtype);
                (region, step.map_err(failed)?)
            }
            _ => {
                let whole = Selection::whole(&tensor.shape);
                (<dyn Region>::of_selection(&tensor, &whole, order), PartStep::AsFirst(1))
            }
        };
        let region = region.map_err(failed)?;
        let take = Take::new(tensor.part(), region, step.conversion(conversion), at);
        Ok(JoinedPart { take, step })
    }

    /// Look at all positions in the files of lists, for every shape of a member.
    pub(super) fn check_lists(&self) -> Result<(), Error> {
        let Some(GroupOptions { index, .. }) = &self.options.group else { return Ok(()) };
        if index.lists.is_empty() {
            return Ok(());
        }
        let mut shapes = BTreeSet::new();
        for &number in self.cast_entries().flat_map(|entry| self.members(entry)) {
            shapes.insert(self.tensor(number as usize)?.shape);
        }
        index.check_lists(&shapes)
    }

    /// Visit the members of tensors in which they alternate, each with what a range of the output has of it,
    /// as if it were in its place at once.
    pub(super) fn each_alternating(
        &self,
        prepared: &Prepared,
        places: &[Place],
        visit: VisitInput<'_>,
    ) -> Result<(), Error> {
        let order = prepared.output.options.order;
        for place in places {
            let Some(join) = self.joined(place.target)? else { continue };
            let joined = JoinedPlace::new(place, &join, 0, order);
            for (number, placed) in self.needed_members(&joined) {
                let input = self.inputs.lend(self.input_of(placed.number as usize))?;
                let JoinedPart { take, .. } = self.part(&input, prepared, &placed)?;
                for band in &joined.bands {
                    let Some(cell) = joined.cell(number, band) else { continue };
                    visit(&input, &take.window(cell.dense, take.at + cell.at))?;
                }
            }
        }
        Ok(())
    }

    /// Those members of a joined tensor that something is wanted of, each with its number among all.
    fn needed_members(&self, joined: &JoinedPlace<'_>) -> Vec<(usize, PlacedTensor)> {
        let Place { target, start, .. } = *joined.place;
        let members = self.members(target).iter().enumerate();
        let needed = members.filter(|(at, _)| joined.needs(*at));
        let placed = |number| PlacedTensor { number, entry: target as u32, at: start };
        needed.map(|(at, &number)| (at, placed(number))).collect()
    }

    /// Copy a tensor in which its members alternate: batch by batch, or where the output takes bytes in order only,
    /// through a temporary file.
    pub(super) fn copy_alternating(
        &self,
        prepared: &Prepared,
        place: &Place,
        job: &Writing<'_>,
    ) -> Result<(), Error> {
        if job.sink().order() == WriteOrder::Any {
            return self.copy_batches(prepared, place, job);
        }
        through_scratch(job, place, &self.options.workers, |job, place| {
            self.copy_batches(prepared, place, job)
        })
    }

    fn copy_batches(
        &self,
        prepared: &Prepared,
        place: &Place,
        job: &Writing<'_>,
    ) -> Result<(), Error> {
        let Some(join) = self.joined(place.target)? else { return Ok(()) };
        let joined = JoinedPlace::new(place, &join, 0, prepared.output.options.order);
        let mut batch = Batch::default();
        let mut open = 0;
        let mut in_batch: HashMap<usize, usize> = HashMap::new();
        for (number, placed) in self.needed_members(&joined) {
            let input = self.input_of(placed.number as usize);
            if open >= BATCH && !in_batch.contains_key(&input) {
                mem::take(&mut batch).copy(job, slice::from_ref(&joined))?;
                in_batch.clear();
                open = 0;
            }
            let at = match in_batch.entry(input) {
                Entry::Occupied(at) => *at.get(),
                Entry::Vacant(at) => {
                    let lent = self.inputs.lend(input)?;
                    if let InputRef::Owned(input) = &lent {
                        open += descriptors(input);
                    }
                    *at.insert(batch.push(lent)?)
                }
            };
            let part = self.part(batch.input(at), prepared, &placed)?;
            batch.push_part(0, number, at, part);
        }
        batch.copy(job, slice::from_ref(&joined))
    }
}
