//! The tensors of several inputs as one output: a union by name, in which groups of tensors may be joined.
//!
//! [`Union`](union::Union) reads the headers of all inputs, and finds out which tensors the output has: those
//! that are chosen, with their new names, each at the place of the first of its name. They are copied to their
//! places input by input: one is open at a time, or few are from the beginning to the end
//! ([`Inputs`](crate::job::inputs::Inputs)).

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use union::{MetadataUnion, Union};

use super::align::{MIN_BYTES, PlacedRange};
use super::copy::Writing;
use super::copying::{Copying, Filling, HeldSlice, OutputRange, TakenInput, VisitInput};
use super::inputs::{InputRef, source_of};
use super::join::place::{Place, bytes_of};
use super::overwrite;
use super::parts::last_name;
use super::select::check_holds;
use crate::error::{Error, Fault, FileName};
use crate::execute::Progress;
use crate::input::{Location, SelectFault};
use crate::output::{Output, Prepared};
use crate::region::GatheredList;
use crate::sink::{Destination, WriteOrder};
use crate::tensor::shortened;

mod joins;
mod union;

pub use joins::GroupOptions;
pub use union::{MergeOptions, NumberedRename, Precedence};

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

impl<'a> Copying<'a> {
    /// Merge: read the headers of all inputs, find out which tensors the output has, and give them their
    /// places.
    pub fn merge(
        locations: &'a [Location],
        options: MergeOptions<'a>,
        output: Output,
    ) -> Result<Copying<'a>, Error> {
        let union = Union::open(locations, options, &output)?;
        let mut prepared = union.prepare(&output)?;
        union.align(&mut prepared)?;
        let left = union.left_uncast();
        Ok(Copying::new(prepared, union, left))
    }
}

#[derive(Clone, Copy)]
struct PlacedTensor {
    /// Its number among those of all inputs.
    number: u32,
    /// Its number in the output.
    entry: u32,
    at: u64,
}

impl Union<'_> {
    /// Make headers longer, so that as many bytes as can be have the same place in a block as in
    /// their input.
    fn align(&self, prepared: &mut Prepared) -> Result<(), Error> {
        if prepared.frame.shared_files().is_empty() {
            return Ok(());
        }
        let count = self.inputs.locations.len();
        let is_large = Vec::from_iter((0..count).map(|input| self.bytes_of(input) >= MIN_BYTES));
        let whole = OutputRange::whole(prepared);
        let mut placed = self.by_input(&whole)?;
        placed.retain(|one| is_large[self.input_of(one.number as usize)]);
        let mut ranges = Vec::new();
        self.each_input_of(&whole, &placed, &mut |input, takes| {
            ranges.extend(PlacedRange::of_takes(input, takes));
            Ok(())
        })?;
        prepared.grow(ranges);
        Ok(())
    }

    /// The tensors that a range of the output has something of, in its order, and the places of those whose
    /// members alternate in them.
    fn placed(&self, to: &OutputRange<'_>) -> Result<(Vec<PlacedTensor>, Vec<Place>), Error> {
        let order = to.prepared.output.options.order;
        let mut placed = Vec::new();
        let mut alternating = Vec::new();
        let mut push = |number, entry, range: Range<u64>| {
            if range.start < to.range.end && range.end > to.range.start {
                placed.push(PlacedTensor { number, entry, at: range.start });
            }
        };
        for (entry, (tensor, at)) in to.prepared.places().enumerate() {
            let members = self.members(entry);
            let Some(join) = self.joined(entry)? else {
                push(members[0], entry as u32, at..at.saturating_add(tensor.bytes));
                continue;
            };
            match join.rows_and_inner(order) {
                _ if tensor.bytes == 0 => {}
                (1, inner) => {
                    let bytes = |len: u64| bytes_of(len * inner, tensor.dtype.item_bits());
                    for (place, &number) in members.iter().enumerate() {
                        let Range { start, end } = join.range(place);
                        push(number, entry as u32, at + bytes(start)..at + bytes(end));
                    }
                }
                _ => alternating.push(Place::new(entry, &tensor, at, &to.range)),
            }
        }
        placed.sort_by_key(|placed| placed.at);
        alternating.sort_by_key(|place| place.start);
        Ok((placed, alternating))
    }

    /// Those that are not joined so, input by input.
    fn by_input(&self, to: &OutputRange<'_>) -> Result<Vec<PlacedTensor>, Error> {
        let (mut placed, _) = self.placed(to)?;
        placed.sort_unstable_by_key(|placed| placed.number);
        Ok(placed)
    }

    /// The lists of an index that is applied to what is joined.
    fn lists(&self) -> impl Iterator<Item = &GatheredList> {
        self.options.group.iter().flat_map(|group| group.index.lists.lists())
    }

    /// A range of the output as far as a tensor is concerned: of one that is joined whole elements, since each
    /// member may go through another conversion.
    fn wanted(&self, to: &OutputRange<'_>, placed: &PlacedTensor) -> Range<u64> {
        let entry = placed.entry as usize;
        if !self.is_joined(entry) {
            return to.range.clone();
        }
        let place = Place::new(entry, &to.prepared.tensors.at(entry), placed.at, &to.range);
        placed.at + place.window.start..placed.at + place.window.end
    }

    fn check_overwrite(&self, output: &Destination) -> Result<(), Error> {
        overwrite::check(output, [], self.lists())?;
        self.inputs.check_overwrite(output)
    }

    /// Visit the inputs of these tensors in turn, each with what is taken of it for a range of the output.
    fn each_input_of(
        &self,
        to: &OutputRange<'_>,
        placed: &[PlacedTensor],
        visit: VisitInput<'_>,
    ) -> Result<(), Error> {
        let input_of = |placed: &PlacedTensor| self.input_of(placed.number as usize);
        for group in placed.chunk_by(|one, other| input_of(one) == input_of(other)) {
            let input = self.inputs.lend(input_of(&group[0]))?;
            let mut takes = Vec::new();
            for placed in group {
                let take = self.part(&input, to.prepared, placed)?.take;
                let Range { start, end } = self.wanted(to, placed);
                if start <= take.at && take.bytes() <= end.saturating_sub(take.at) {
                    take.push(&mut takes);
                } else {
                    takes.extend(take.within(&(start..end)));
                }
            }
            visit(&input, &takes)?;
        }
        Ok(())
    }
}

impl Filling for Union<'_> {
    fn look(&mut self, _: &Prepared, _: &Progress) -> Result<(), Error> {
        self.check_lists()
    }

    fn check(&self, prepared: &Prepared) -> Result<(), Error> {
        prepared.check()?;
        self.check_overwrite(&prepared.output.destination)
    }

    fn is_remote(&self) -> bool {
        self.inputs.any_remote()
    }

    fn files(&self) -> Result<Vec<(String, Location)>, Error> {
        let mut named = self.inputs.files()?;
        let lists = self.lists().filter_map(|list| Some(list.path()?.to_owned()));
        named.extend(lists.map(|path| (last_name(&path), Location::Path(path))));
        Ok(named)
    }

    /// An element that is converted on the way is not divided: it belongs to the range after the cut.
    fn bytes(&self, to: &OutputRange<'_>) -> u64 {
        let within = to.prepared.places().enumerate().map(|(entry, (tensor, start))| {
            if self.is_joined(entry) {
                return Place::new(entry, &tensor, start, &to.range).bytes();
            }
            let cut = |at: u64| match at.saturating_sub(start).min(tensor.bytes) {
                all if all == tensor.bytes => all,
                at => tensor.conversion.output_bytes(tensor.conversion.input_bytes(at)),
            };
            cut(to.range.end) - cut(to.range.start)
        });
        within.sum()
    }

    fn each_input(&self, to: &OutputRange<'_>, visit: VisitInput<'_>) -> Result<(), Error> {
        let (_, alternating) = self.placed(to)?;
        self.each_input_of(to, &self.by_input(to)?, visit)?;
        self.each_alternating(to.prepared, &alternating, visit)
    }

    /// Copy input by input or, where the output takes bytes in order only, in its order.
    fn copy(&mut self, to: &OutputRange<'_>, job: &Writing<'_>) -> Result<(), Error> {
        let (mut placed, alternating) = self.placed(to)?;
        let in_order = job.sink().order() == WriteOrder::Ascending;
        if !in_order {
            placed.sort_unstable_by_key(|placed| placed.number);
        }
        let copy = |placed: &[PlacedTensor]| {
            self.each_input_of(to, placed, &mut |input, takes| {
                job.copy_random(input, source_of(input)?.as_ref(), takes)
            })
        };
        let mut rest = placed.as_slice();
        for place in &alternating {
            if in_order {
                let is_before = |placed: &PlacedTensor| placed.at < place.start;
                let (before, behind) = rest.split_at(rest.partition_point(is_before));
                copy(before)?;
                rest = behind;
            }
            self.copy_alternating(to.prepared, place, job)?;
        }
        copy(rest)
    }

    fn write(&mut self, prepared: &Prepared, progress: &Progress) -> Result<(), Error> {
        self.inputs.spool_all(progress)?;
        self.check_overwrite(&prepared.output.destination)?;
        let job = Writing::of_output(prepared, true, &[], progress)?;
        self.copy(&OutputRange::whole(prepared), &job)?;
        job.commit()
    }
}

/// Write slices to an output, in their order, each under the name of its tensor.
pub(crate) fn merge_slices(slices: &[HeldSlice<'_>], output: &Output) -> Result<(), Error> {
    if slices.is_empty() {
        return Err(SelectFault::NothingLeft.into());
    }
    check_holds(output, slices.len(), false, false)?;
    let mut prepared = prepare(slices, output)?;
    let mut inputs: Vec<TakenInput<'_>> = Vec::new();
    let mut places = Vec::from_iter(slices.iter().zip(prepared.places()));
    places.sort_by_key(|(_, (_, at))| *at);
    for (slice, (to, at)) in places {
        let take = slice.take(to.conversion, at);
        match inputs.last_mut() {
            Some(last) if std::ptr::eq(&*last.input, slice.input) => last.takes.push(take),
            _ => {
                let input = InputRef::Borrowed(slice.input);
                inputs.push(TakenInput { input, takes: vec![take] });
            }
        }
    }
    prepared.align(&mut inputs);
    inputs.write(&prepared, &Progress::default())
}

/// Give the tensors of the output their places.
fn prepare(slices: &[HeldSlice<'_>], output: &Output) -> Result<Prepared, Error> {
    let mut preparation = output.begin_preparing(Arc::default(), None)?;
    let mut names: HashMap<String, &Location> = HashMap::new();
    let mut metadata = MetadataUnion::default();
    for HeldSlice { input, tensor, becomes, .. } in slices {
        let location = input.location();
        preparation.add_groups(&input.contents.tensors);
        let name = output.tensor_name(tensor, location, slices.len() == 1);
        if let Some(first) = names.insert(name.clone(), location) {
            let first = FileName::from(first);
            return Err(Error::file(location, MergeFault::Twice { name, first }));
        }
        let pushed = preparation.push(name, tensor, 0, becomes.clone());
        pushed.map_err(|error| input.failed_tensor(tensor, true, error.cause))?;
        let contradiction = metadata.add(location, &input.contents.metadata, None, output);
        contradiction.map_or(Ok(()), Err)?;
    }
    preparation.finish(&metadata.texts())
}
