//! What a merge copies: for each tensor of the output one of an input, input by input.

use std::ops::Range;

use super::union::Union;
use crate::error::Error;
use crate::index::resolve::Selection;
use crate::job::align::{MIN_BYTES, PlacedRange, shared_bytes};
use crate::job::copy::Writing;
use crate::job::inputs::{Lent, source_of};
use crate::output::Prepared;
use crate::output::layout::OutputTensor;
use crate::region::{Region, Take};
use crate::sink::WriteOrder;

/// The tensors of all inputs, and the places of those that the output has.
pub(super) struct Merged<'a> {
    pub(super) union: Union<'a>,
    pub(super) prepared: Prepared,
}

/// A tensor of the output.
#[derive(Clone, Copy)]
pub(super) struct PlacedTensor {
    /// Its number among those of all inputs.
    number: u32,
    /// Its number in the output.
    entry: u32,
    /// Where it goes, in bytes.
    at: u64,
}

impl Merged<'_> {
    /// Make headers longer, so that as many bytes as can be have the same place in a block as in
    /// their input.
    pub(super) fn align(&mut self) -> Result<(), Error> {
        if self.prepared.frame.shared_files().is_empty() {
            return Ok(());
        }
        let placed = self.by_input(&(0..u64::MAX));
        let mut ranges = Vec::new();
        for group in self.groups(&placed) {
            let input = self.input_of(&group[0]);
            if self.union.bytes_of(input) >= MIN_BYTES {
                let (input, takes) = self.lend(group, &(0..u64::MAX))?;
                ranges.extend(PlacedRange::of_takes(&input, &takes));
            }
        }
        ranges.sort_unstable_by_key(|range: &PlacedRange| range.at);
        self.prepared.grow(&ranges);
        Ok(())
    }

    /// The tensors of the output that a range of it has something of, in its order.
    pub(super) fn placed(&self, range: &Range<u64>) -> Vec<PlacedTensor> {
        let places = self.prepared.places().enumerate();
        let near = places.filter(|(_, (entry, at))| {
            *at < range.end && at.saturating_add(entry.bytes) > range.start
        });
        let placed = near.map(|(entry, (_, at))| PlacedTensor {
            number: self.union.taken(entry),
            entry: entry as u32,
            at,
        });
        placed.collect()
    }

    /// How many bytes of a tensor lie in a range of the output. An element that is converted on the
    /// way is not divided: it belongs to the range after the cut.
    pub(super) fn bytes_within(&self, placed: &PlacedTensor, range: &Range<u64>) -> u64 {
        let OutputTensor { bytes, conversion, .. } =
            self.prepared.tensors.at(placed.entry as usize);
        let cut = |at: u64| match at.saturating_sub(placed.at).min(bytes) {
            all if all == bytes => all,
            at => conversion.output_bytes(conversion.input_bytes(at)),
        };
        cut(range.end) - cut(range.start)
    }

    /// Those tensors, input by input.
    pub(super) fn by_input(&self, range: &Range<u64>) -> Vec<PlacedTensor> {
        let mut placed = self.placed(range);
        placed.sort_unstable_by_key(|placed| placed.number);
        placed
    }

    /// Neighbours of one input.
    pub(super) fn groups<'p>(
        &'p self,
        placed: &'p [PlacedTensor],
    ) -> impl Iterator<Item = &'p [PlacedTensor]> {
        placed.chunk_by(|one, other| self.input_of(one) == self.input_of(other))
    }

    fn input_of(&self, placed: &PlacedTensor) -> usize {
        self.union.input_of(placed.number as usize)
    }

    /// The input of a group, and what is taken of it for a range of the output.
    pub(super) fn lend(
        &self,
        group: &[PlacedTensor],
        range: &Range<u64>,
    ) -> Result<(Lent<'_>, Vec<Take>), Error> {
        let input = self.union.inputs.lend(self.input_of(&group[0]))?;
        let order = self.prepared.output.options.order;
        let mut takes = Vec::new();
        for &PlacedTensor { number, entry, at } in group {
            let (number, conversion) =
                (number as usize, self.prepared.tensors.at(entry as usize).conversion);
            let tensor = self.union.tensor_in(&input, number)?;
            let whole = Selection::whole(&tensor.shape);
            let region = <dyn Region>::of_selection(&tensor, &whole, order);
            let region = region.map_err(|cause| self.union.failed(number, cause))?;
            let take = Take::new(tensor.part(), region, conversion, at);
            match range.start <= at && take.bytes() <= range.end.saturating_sub(at) {
                true => take.push(&mut takes),
                false => takes.extend(take.within(range)),
            }
        }
        Ok((input, takes))
    }

    /// How many bytes of a range of the output would be shared with the inputs: `None` where none are.
    pub(super) fn shared(&self, range: &Range<u64>) -> Result<Option<u64>, Error> {
        let (placed, mut bytes) = (self.by_input(range), 0);
        for group in self.groups(&placed) {
            let (input, takes) = self.lend(group, range)?;
            bytes += shared_bytes(&self.prepared, &input, &takes).unwrap_or(0);
        }
        Ok((bytes > 0).then_some(bytes))
    }

    /// Copy what goes to a range of the output: input by input, or where it takes bytes in order only,
    /// in its order.
    pub(super) fn copy(&self, job: &Writing<'_>, range: &Range<u64>) -> Result<(), Error> {
        let placed = match job.sink().order() {
            WriteOrder::Any => self.by_input(range),
            WriteOrder::Ascending => self.placed(range),
        };
        for group in self.groups(&placed) {
            let (input, takes) = self.lend(group, range)?;
            // a pipe is not asked for anything
            if !job.is_counting() || input.random().is_some() {
                job.copy_random(&input, source_of(&input)?.as_ref(), &takes)?;
            }
        }
        Ok(())
    }
}
