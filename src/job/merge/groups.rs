//! Tensors of a union that are joined: concatenate and stack by name.
//!
//! The members of a group come in the order of the pieces of their names. The joined tensor takes
//! the position of its first member among the tensors of the output.

use std::collections::HashSet;

use super::super::select::Axes;
use super::union::Union;
use crate::error::{Cause, Error};
use crate::input::{Grouping, Groups, SelectFault};
use crate::job::assembly::members::{Along, JoinedTensor};
use crate::job::assembly::step::check_meaning;
use crate::job::join::JoinFault;
use crate::output::{Output, TensorChange};
use crate::region::OpenIndex;
use crate::shape::AskedAxis;

/// Options of the tensors that are joined.
#[derive(Clone)]
pub struct GroupOptions<'a> {
    /// The pattern of the names of members, with pieces.
    pub pattern: &'a str,
    /// The pattern of the names of joined tensors, with the pieces that members of a group share.
    pub into: &'a str,
    pub along: Along,
    /// The axis along which each tensor is joined, by the joined tensor's name.
    pub axes: Axes,
    /// The index that is applied to every member before it is joined.
    pub index: OpenIndex<'a>,
    /// Whether the other tensors are taken as they are.
    pub keep_rest: bool,
}

impl<'a> Union<'a> {
    /// The tensors of the output that casts apply to: all, or only the joined ones, if there are
    /// such.
    pub(super) fn cast_entries(&self) -> impl Iterator<Item = usize> + Clone {
        let all = if self.options.group.is_none() { 0..self.members.len() } else { 0..0 };
        all.chain(self.members.joined())
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
        self.axes = axes.of_names(self.members.joined().map(|entry| self.name_of_entry(entry)))?;
        Ok(())
    }

    /// Add these tensors to the output. The tensors of a group stand together, at the position of the first.
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
        for &number in all {
            if !is_member(&number) {
                self.members.push(number);
            } else if let Some((_, group)) = next.next_if(|(first, _)| *first == number) {
                let first = group[0] as usize;
                let whole = grouping.whole(self.old_name(first)).unwrap_or_default();
                self.renamed.insert(first, whole);
                self.members.push_joined(group, None);
            }
        }
    }

    fn name_of_entry(&self, entry: usize) -> &str {
        self.name_of(self.members.of(entry).0[0] as usize)
    }

    /// Check that no joined tensor has the name of another tensor of the output.
    fn check_names(&self) -> Result<(), SelectFault> {
        let mut wholes = HashSet::new();
        let joined = self.members.joined().map(|entry| self.name_of_entry(entry));
        let twice = joined.clone().find(|name| !wholes.insert(*name));
        let rest = (0..self.members.len()).filter(|&entry| !self.members.is_joined(entry));
        let mut rest = rest.map(|entry| self.name_of_entry(entry));
        match twice.or_else(|| rest.find(|name| wholes.contains(name))) {
            Some(name) => Err(SelectFault::SameName(name.to_owned())),
            None => Ok(()),
        }
    }

    /// Set how these tensors are joined along an axis.
    pub(super) fn join(
        &self,
        members: &[u32],
        axis: &AskedAxis,
        GroupOptions { along, index, .. }: &GroupOptions<'_>,
    ) -> Result<Option<JoinedTensor>, Error> {
        let mut joined: Option<JoinedTensor> = None;
        for (member, &number) in members.iter().enumerate() {
            let number = number as usize;
            let failed = |cause: Cause| self.misfit(members[0], number, cause);
            let tensor = self.tensor(number)?;
            let selection = index.resolve(&tensor).map_err(failed)?;
            let shape = selection.shape();
            match &mut joined {
                None => {
                    let names = || tensor.dimension_names(&selection.source_axes());
                    let axis = axis.number(names);
                    let axis = axis.map_err(|fault| failed(fault.into()))?;
                    let join = JoinedTensor::new(shape, axis, *along);
                    joined = Some(join.map_err(|fault| failed(fault.into()))?);
                }
                Some(join) => {
                    let len = join.fit(member, &shape).map_err(|fault| failed(fault.into()))?;
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
        members: &[u32],
        join: &JoinedTensor,
        output: &Output,
    ) -> Result<TensorChange, Error> {
        let number = members[0] as usize;
        let failed = |cause: Cause| self.failed(number, cause);
        let first = self.tensor(number)?;
        for (member, &number) in members.iter().enumerate().skip(1) {
            let tensor = self.tensor(number as usize)?;
            let fits = check_meaning(member, &tensor, &first).map_err(Cause::from);
            let step =
                fits.and_then(|()| self.options.casts.step(member, &tensor.dtype, &first.dtype));
            step.map_err(|cause| self.misfit(members[0], number as usize, cause))?;
        }
        let cut = join.cut_byte(members.len(), &first.dtype, output.options.order);
        if let Some((member, fault)) = cut {
            return Err(self.misfit(members[0], members[member] as usize, fault.into()));
        }
        let cast = self.options.casts.of(&first.dtype).map_err(|error| failed(error.into()))?;
        let mut axes = Vec::new();
        if let Some(group) = &self.options.group {
            axes = join.axes(group.index.resolve(&first).map_err(failed)?.source_axes());
        }
        Ok(TensorChange { shape: join.result(), cast, axes })
    }
}
