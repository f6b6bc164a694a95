//! The tensors of several inputs as one output: a union by name.
//!
//! 1. [`Union`](union::Union) reads the headers of all inputs, and finds out which tensors the output
//!    has: those that are chosen, with their new names, each at the place of the first of its name.
//! 2. [`Merged`](merged::Merged) copies them to their places, input by input: one is open at a time, or
//!    few are from the beginning to the end ([`Inputs`](crate::job::inputs::Inputs)). Any range of the
//!    output can be written by itself (`part`).

use std::fmt::Write;
use std::ops::Range;

use union::Union;

use super::align::{MIN_BYTES, PlacedRange, shared_bytes};
use super::copy::Writing;
use super::inputs::{Lent, source_of};
use super::parts::{Divisible, Parts};
use super::{Job, Planned};
use crate::error::{Error, Fault, FileName};
use crate::execute::{Announced, Progress};
use crate::format::shortened;
use crate::index::resolve::Selection;
use crate::input::Location;
use crate::output::layout::OutputTensor;
use crate::output::{Output, Prepared, Unsaid};
use crate::region::{Region, Take};
use crate::sink::{Fingerprint, WriteOrder};

mod slices;
mod union;

pub(crate) use slices::merge_slices;
pub use union::{MergeOptions, NumberedRename, Wins};

/// How a message speaks of a tensor.
fn tensor_named(name: &str) -> String {
    match name {
        "" => "a tensor without a name".to_owned(),
        name => format!("tensor {:?}", shortened(name)),
    }
}

/// Why inputs have no union. The error names the file of the input at fault.
#[derive(Debug, thiserror::Error)]
pub enum MergeFault {
    /// Two inputs have a tensor of one name.
    #[error("{} is in {first} too", tensor_named(name))]
    Twice {
        /// The name, in the output.
        name: String,
        /// The input that has it first.
        first: FileName,
    },
    /// Two inputs have a text of metadata under one key.
    #[error(
        "metadata {:?} is {:?}, and {:?} in {first}",
        shortened(key),
        shortened(value),
        shortened(other)
    )]
    Metadata {
        /// The key.
        key: String,
        /// The text of the input at fault.
        value: String,
        /// The text of an earlier input.
        other: String,
        /// The input that has the other text.
        first: FileName,
    },
}

impl Fault for MergeFault {}

/// The tensors of all inputs, and the places of those that the output has.
pub(super) struct Merged<'a> {
    union: Union<'a>,
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

/// Inputs on their way to one output that has the tensors of all.
pub struct Merging<'a>(Merged<'a>);

impl<'a> Merging<'a> {
    /// Read the headers of all inputs, find out which tensors the output has, and give them their places.
    ///
    /// # Errors
    /// [`MergeFault`](crate::job::MergeFault), [`SelectFault`](crate::input::SelectFault); a cast that no
    /// tensor needs, dtypes that the output lacks.
    pub fn new(
        locations: &'a [Location],
        options: MergeOptions,
        output: Output,
    ) -> Result<Merging<'a>, Error> {
        let union = Union::open(locations, options, &output)?;
        let prepared = union.prepare(&output)?;
        let mut merged = Merged { union, prepared };
        merged.align()?;
        Ok(Merging(merged))
    }
}

impl Job for Merging<'_> {
    fn left_uncast(&self) -> usize {
        self.0.union.left_uncast()
    }

    fn bytes(&self) -> u64 {
        self.0.prepared.bytes
    }

    fn check(&mut self) -> Result<(), Error> {
        self.0.prepared.check()?;
        self.0.union.inputs.check_overwrite(&self.0.prepared.output.destination)
    }

    fn describe(&mut self) -> Result<Vec<Planned>, Error> {
        let shared = self.0.shared(&(0..u64::MAX))?;
        Ok(vec![Planned::new(&self.0.prepared, shared)])
    }

    fn requests(&mut self) -> Result<Option<Announced>, Error> {
        if !self.0.union.inputs.any_remote() {
            return Ok(None);
        }
        let progress = Progress::default();
        let job = Writing::counting(&self.0.union.options.workers, &progress);
        self.0.copy(&job, &(0..u64::MAX))?;
        Ok(job.counted())
    }

    fn unsaid(&self) -> Vec<Unsaid> {
        self.0.prepared.unsaid.clone()
    }

    fn write(&mut self, progress: &Progress) -> Result<(), Error> {
        self.0.union.inputs.spool_all(progress)?;
        self.0.union.inputs.check_overwrite(&self.0.prepared.output.destination)?;
        let job = Writing::of_output(&self.0.prepared, true, &[], progress)?;
        self.0.copy(&job, &(0..u64::MAX))?;
        job.commit()
    }

    fn parts(&mut self, count: u64) -> Result<Parts<'_>, Error> {
        Parts::new(&self.0.prepared, Box::new(&self.0), count)
    }
}

impl Divisible for &Merged<'_> {
    fn bytes(&self, range: &Range<u64>) -> u64 {
        self.placed(range).iter().map(|placed| self.bytes_within(placed, range)).sum()
    }

    fn reads(&self, range: &Range<u64>) -> Result<u64, Error> {
        let (placed, mut reads) = (self.by_input(range), 0);
        for group in self.groups(&placed) {
            let (_, takes) = self.lend(group, range)?;
            reads += takes.iter().map(Take::reads).sum::<u64>();
        }
        Ok(reads)
    }

    fn files(&self) -> Result<Vec<(String, Location)>, Error> {
        self.union.inputs.files()
    }

    fn identify(&self, work: &mut Fingerprint) -> Result<(), Error> {
        let all = 0..u64::MAX;
        let placed = self.by_input(&all);
        for group in self.groups(&placed) {
            let (_, takes) = self.lend(group, &all)?;
            for take in takes {
                // never fails
                let _ = write!(work, "{:?}", (take.part, take.conversion, take.at));
                take.region.identify(&mut |bytes| work.add(bytes))?;
            }
        }
        Ok(())
    }

    fn shared(&self, range: &Range<u64>, _: &Prepared) -> Result<Option<u64>, Error> {
        Merged::shared(self, range)
    }

    fn copy(&mut self, range: &Range<u64>, job: &Writing<'_>) -> Result<(), Error> {
        Merged::copy(self, job, range)
    }
}
