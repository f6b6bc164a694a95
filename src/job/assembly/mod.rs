//! Assemblies: for each tensor of an output its members, which are tensors of inputs, and the position of
//! each.
//!
//! ```text
//!   concat a b     x: a.x b.x     y: a.y b.y
//!   merge  a b     x: a.x         y: a.y         z: b.z
//!   group  a b     w: a.w0 a.w1 b.w2 b.w3        z: b.z
//! ```
//!
//! 1. A builder (`job/join`, `job/merge`) reads the header of every input, several at a time, and fills the table of
//!    [`Members`]. Few inputs stay open; the others are opened again when they are copied.
//! 2. Tensors that are taken once of several inputs are compared, byte for byte (`same`).
//! 3. All is copied batch by batch (`batch`): as many inputs as may be open at a time. What a range of the output has
//!    of each member is arithmetic (`slot`).
//!
//! If the output takes bytes in any order, inputs are copied one after the other, so that each is opened once. Otherwise
//! tensors are written one after the other. A tensor whose members alternate is then put together in a temporary file
//! first, unless all its members are open.
//!
//! With `--part`, each process reads all headers, which decide where everything goes. It reads elements only of inputs
//! that have bytes in its part. A tensor that is taken once must be the same in all inputs: each part compares its own
//! range of the tensor, so that all parts together compare all of it.

use std::fmt::Write;
use std::slice;
use std::sync::Arc;

use crate::error::{Cause, Error};
use crate::execute::Progress;
use crate::input::{Input, Location};
use crate::job::align::{MIN_BYTES, UnchangedRange};
use crate::job::copy::{Writing, check_indices, network_bytes, temporary_bytes};
use crate::job::copying::OutputRange;
use crate::job::inputs::{InputRef, Inputs, last_name};
use crate::job::overwrite;
use crate::output::Prepared;
use crate::region::{GatheredList, Region, Take};
use crate::shape::Order;
use crate::sink::{Destination, Fingerprint};
use crate::tensor::TensorInfo;

mod batch;
pub(super) mod members;
mod same;
mod slot;
pub(super) mod step;

use members::{JoinedTensor, Members};
pub(super) use same::Rest;
use slot::Slot;
use step::Step;

pub(super) struct Assembly<'a> {
    pub(super) inputs: Inputs<'a>,
    pub(super) members: Members,
    pub(super) recipe: Box<dyn Recipe + 'a>,
    /// Whether positions are checked before anything is written, and tensors that are taken once are compared with the
    /// same tensors of the other inputs.
    pub(super) looks: bool,
    pub(super) rest: Option<Rest>,
}

/// The regions of an assembly's members.
pub(super) trait Recipe {
    /// The region taken of a member. It is checked again, since the input may have been opened
    /// again.
    fn taken(
        &self,
        input: &Input,
        member: &Member<'_>,
        order: Order,
    ) -> Result<MemberRegion, Error>;

    /// The index tensors by which elements are chosen.
    fn lists(&self) -> Vec<&GatheredList>;

    /// Add to the fingerprint what decides which elements are taken of members of a joined tensor
    /// after the first.
    fn identify(&self, work: &mut Fingerprint) -> Result<(), Error> {
        let _ = work;
        Ok(())
    }

    /// Check all positions in the files of lists.
    fn check_lists(&self) -> Result<(), Error> {
        Ok(())
    }
}

/// A visitor that gets each input in turn, with what is taken of it.
type VisitInput<'v> = &'v mut dyn FnMut(&Input, &[Take]) -> Result<(), Error>;

/// A tensor of an input that is a member of a tensor of the output.
pub(super) struct Member<'m> {
    /// The tensor's number among all tensors of the inputs.
    pub(super) number: u32,
    pub(super) in_input: usize,
    /// The member's number among the members of all output tensors.
    pub(super) at: usize,
    /// The number of the first member of the output tensor.
    pub(super) first: u32,
    /// How the members are joined; `None` for a single member.
    pub(super) join: Option<&'m JoinedTensor>,
}

#[derive(Clone)]
pub(super) struct MemberRegion {
    /// The file of the input that holds the tensor.
    pub(super) shard: usize,
    pub(super) region: Arc<dyn Region>,
    pub(super) step: Step,
}

impl MemberRegion {
    /// All elements of a tensor, as they are.
    pub(super) fn whole(tensor: &TensorInfo, order: Order) -> Result<MemberRegion, Cause> {
        let region = <dyn Region>::whole(tensor, order)?;
        Ok(MemberRegion { shard: tensor.shard(), region, step: Step::AsFirst(1) })
    }
}

/// A member of which something is wanted.
#[derive(Clone, Copy)]
struct WantedMember {
    tensor: u32,
    is_joined: bool,
    /// The member's number in its tensor, and the number among all tensors of the inputs.
    member: u32,
    number: u32,
    /// The position in the output where the tensor begins.
    start: u64,
}

impl<'a> Assembly<'a> {
    /// The assembly of inputs that are open.
    pub(super) fn of_held(
        inputs: Vec<InputRef<'a>>,
        members: Members,
        recipe: impl Recipe + 'a,
    ) -> Assembly<'a> {
        let inputs = Inputs::held(inputs);
        Assembly { inputs, members, recipe: Box::new(recipe), looks: false, rest: None }
    }

    /// The tensors that a range of the output covers, each with the covered part.
    fn slots(&self, to: &OutputRange<'_>) -> impl Iterator<Item = (usize, Slot<'_>)> {
        let order = to.prepared.output.options.order;
        to.prepared.tensor_offsets().enumerate().map(move |(tensor, (entry, start))| {
            let (_, join) = self.members.of(tensor);
            (tensor, Slot::new(&entry, start, &to.range, join, order))
        })
    }

    /// The members that a range of the output covers, in the order of its tensors.
    fn wanted(&self, to: &OutputRange<'_>) -> Vec<WantedMember> {
        let mut wanted = Vec::new();
        for (tensor, slot) in self.slots(to) {
            let (numbers, join) = self.members.of(tensor);
            for (member, &number) in numbers.iter().enumerate() {
                if slot.cells(member).next().is_some() {
                    let (tensor, member) = (tensor as u32, member as u32);
                    let (is_joined, start) = (join.is_some(), slot.start);
                    wanted.push(WantedMember { tensor, is_joined, member, number, start });
                }
            }
        }
        wanted
    }

    /// Whether there is a single input, and no tensor is joined.
    fn is_of_one(&self) -> bool {
        self.inputs.locations.len() == 1 && self.members.joined().next().is_none()
    }

    /// The takes of a range of the output from the only input, in the order of the output. Nothing
    /// else is held for each tensor, of which there may be a million.
    fn takes_of_one(&self, to: &OutputRange<'_>) -> Result<Vec<Take>, Error> {
        let mut takes = Vec::new();
        for (tensor, slot) in self.slots(to) {
            self.push_takes(self.inputs.first(), to, &slot, tensor, 0, &mut takes)?;
        }
        takes.sort_by_key(|take| take.at);
        Ok(takes)
    }

    fn slot(&self, to: &OutputRange<'_>, wanted: &WantedMember) -> Slot<'_> {
        let tensor = wanted.tensor as usize;
        let (_, join) = self.members.of(tensor);
        let entry = to.prepared.tensors.at(tensor);
        Slot::new(&entry, wanted.start, &to.range, join, to.prepared.output.options.order)
    }

    fn input_of(&self, wanted: &WantedMember) -> usize {
        self.members.locate(wanted.number).0
    }

    /// The region of a member as if it were a whole tensor, and the conversion of its elements.
    fn take(
        &self,
        input: &Input,
        to: &OutputRange<'_>,
        slot: &Slot<'_>,
        tensor: usize,
        at: usize,
    ) -> Result<(Take, Step), Error> {
        let (numbers, join) = self.members.of(tensor);
        let number = numbers[at];
        let (_, in_input) = self.members.locate(number);
        let member = Member { number, in_input, at, first: numbers[0], join };
        let taken = self.recipe.taken(input, &member, to.prepared.output.options.order)?;
        let MemberRegion { shard, region, step } = taken;
        Ok((Take::new(shard, region, step.conversion(slot.conversion), slot.start), step))
    }

    /// Add what is taken of a member: neighbours as one region, and rows between which other
    /// members stand as if they were adjacent.
    fn push_takes(
        &self,
        input: &Input,
        to: &OutputRange<'_>,
        slot: &Slot<'_>,
        tensor: usize,
        member: usize,
        takes: &mut Vec<Take>,
    ) -> Result<(), Error> {
        if slot.bands.is_empty() && slot.bytes > 0 {
            return Ok(());
        }
        let (take, _) = self.take(input, to, slot, tensor, member)?;
        if slot.bytes == 0 {
            // positions are checked even where they choose nothing
            take.push(takes);
            return Ok(());
        }
        for cell in slot.cells(member) {
            let at = take.at + cell.at;
            if cell.dense == (0..take.bytes()) {
                Take { at, ..take.clone() }.push(takes);
            } else {
                takes.extend(take.window(cell.dense, at));
            }
        }
        Ok(())
    }

    /// The takes of a range of the output from members of one input.
    fn takes(
        &self,
        input: &Input,
        to: &OutputRange<'_>,
        wanted: &[WantedMember],
    ) -> Result<Vec<Take>, Error> {
        let mut takes = Vec::new();
        for wanted in wanted {
            let slot = self.slot(to, wanted);
            let (tensor, member) = (wanted.tensor as usize, wanted.member as usize);
            self.push_takes(input, to, &slot, tensor, member, &mut takes)?;
        }
        Ok(takes)
    }

    /// Visit the inputs of these members in the order of the inputs, each with what is taken of it.
    fn each_input_of(
        &self,
        to: &OutputRange<'_>,
        mut wanted: Vec<WantedMember>,
        visit: VisitInput<'_>,
    ) -> Result<(), Error> {
        wanted.sort_unstable_by_key(|wanted| wanted.number);
        for group in wanted.chunk_by(|one, other| self.input_of(one) == self.input_of(other)) {
            let input = self.inputs.lend(self.input_of(&group[0]))?;
            visit(&input, &self.takes(&input, to, group)?)?;
        }
        Ok(())
    }

    /// Lengthen headers so that as many bytes as possible have the same offset in a file system
    /// block as in their input. `bytes_of` gives the bytes of elements of an input.
    pub(super) fn align(
        &self,
        prepared: &mut Prepared,
        bytes_of: impl Fn(usize) -> u64,
    ) -> Result<(), Error> {
        if prepared.layout.shared_files().is_empty() || prepared.bytes < MIN_BYTES {
            return Ok(());
        }
        let count = self.inputs.locations.len();
        let is_large = Vec::from_iter((0..count).map(|input| bytes_of(input) >= MIN_BYTES));
        let whole = OutputRange::whole(prepared);
        let mut ranges = Vec::new();
        let mut add = |input: &Input, takes: &[Take]| {
            ranges.extend(UnchangedRange::of_takes(input, takes));
            Ok(())
        };
        if self.is_of_one() {
            self.each_input(&whole, &mut add)?;
        } else {
            let mut wanted = self.wanted(&whole);
            wanted.retain(|wanted| {
                is_large[self.input_of(wanted)] && !self.slot(&whole, wanted).alternates()
            });
            self.each_input_of(&whole, wanted, &mut add)?;
        }
        prepared.grow(ranges);
        Ok(())
    }

    fn check_overwrite(&self, output: &Destination) -> Result<(), Error> {
        overwrite::check(output, [], self.recipe.lists())?;
        self.inputs.check_overwrite(output)
    }

    /// Whether pipes are read while they are copied: there is one tensor, and members do not alternate in it.
    fn is_one_pass(&self, prepared: &Prepared) -> bool {
        let order = prepared.output.options.order;
        let alternates = |join: &JoinedTensor| join.rows_and_inner(order).0 > 1;
        self.members.len() == 1 && !self.members.of(0).1.is_some_and(alternates)
    }

    /// The number of bytes that [`look`](Assembly::look) reads.
    pub(super) fn looked_at(&self) -> Result<u64, Error> {
        self.rest_bytes()
    }

    /// Make the checks that take long, before anything is written.
    pub(super) fn look(&mut self, prepared: &Prepared, progress: &Progress) -> Result<(), Error> {
        if !self.looks {
            return Ok(());
        }
        // first the checks that take no time
        prepared.check()?;
        self.check_overwrite(&prepared.output.destination)?;
        self.recipe.check_lists()?;
        if self.rest.is_some() && self.inputs.locations.len() > 1 {
            self.inputs.spool_all(progress)?;
            self.check_rest(&OutputRange::whole(prepared), progress)?;
        }
        Ok(())
    }

    /// Make the checks that writing would fail at and that [`look`](Assembly::look) did not make.
    pub(super) fn check(&self, prepared: &Prepared) -> Result<(), Error> {
        if self.looks {
            return Ok(());
        }
        prepared.check()?;
        self.check_overwrite(&prepared.output.destination)?;
        let workers = &prepared.output.options.workers;
        self.each_input(&OutputRange::whole(prepared), &mut |_, takes| {
            takes.iter().try_for_each(|take| check_indices(take, workers, false))
        })
    }

    /// About how many bytes of remote inputs are fetched.
    pub(super) fn network_bytes(&self, prepared: &Prepared) -> Result<u64, Error> {
        let mut bytes = 0;
        if self.inputs.any_remote() {
            self.each_input(&OutputRange::whole(prepared), &mut |input, takes| {
                bytes += network_bytes(input, takes);
                Ok(())
            })?;
        }
        Ok(bytes)
    }

    /// All files that any part reads, in order, and the names by which parts on other machines know
    /// them. An input that is given twice is listed twice, as the output depends on it.
    pub(super) fn files(&self) -> Result<Vec<(String, Location)>, Error> {
        let mut named = self.inputs.files()?;
        let lists = self.recipe.lists().into_iter().filter_map(|list| list.path());
        named.extend(lists.map(|path| (last_name(path), Location::Path(path.to_owned()))));
        Ok(named)
    }

    pub(super) fn bytes(&self, to: &OutputRange<'_>) -> u64 {
        let window = |(_, slot): (usize, Slot<'_>)| slot.window();
        self.slots(to).map(window).map(|window| window.end - window.start).sum()
    }

    /// Visit each input that a range of the output needs, with what is taken of it.
    fn each_input(&self, to: &OutputRange<'_>, visit: VisitInput<'_>) -> Result<(), Error> {
        if self.is_of_one() {
            return visit(self.inputs.first(), &self.takes_of_one(to)?);
        }
        self.each_input_of(to, self.wanted(to), visit)
    }

    /// About how many bytes of elements a range of the output reads, in whole cache lines.
    pub(super) fn reads(&self, to: &OutputRange<'_>) -> Result<u64, Error> {
        let mut reads = self.compared_reads(to)?;
        self.each_input(to, &mut |_, takes| {
            reads += takes.iter().map(Take::reads).sum::<u64>();
            Ok(())
        })?;
        Ok(reads)
    }

    /// Add to the fingerprint all that decides the elements of the output, except the bytes of the
    /// files.
    pub(super) fn identify(
        &self,
        prepared: &Prepared,
        work: &mut Fingerprint,
    ) -> Result<(), Error> {
        self.recipe.identify(work)?;
        for tensor in self.members.joined() {
            // writing never fails
            let _ = write!(work, "{:?}", self.members.of(tensor));
        }
        let whole = OutputRange::whole(prepared);
        let mut identify = |_: &Input, takes: &[Take]| {
            takes.iter().try_for_each(|take| {
                let _ = write!(work, "{:?}", (take.shard, take.conversion, take.at));
                take.region.identify(&mut |bytes| work.add(bytes))
            })
        };
        if self.is_of_one() {
            return self.each_input(&whole, &mut identify);
        }
        // the first member of each tensor, so that no other input of a join is opened for it
        let mut wanted = self.wanted(&whole);
        wanted.dedup_by_key(|wanted| wanted.tensor);
        self.each_input_of(&whole, wanted, &mut identify)
    }

    /// The bytes of scratch that copying a range of the output needs, one input after the other.
    pub(super) fn temporary_bytes(&self, to: &OutputRange<'_>) -> Result<u64, Error> {
        let workers = &to.prepared.output.options.workers;
        let is_of_one = self.is_of_one();
        let mut most = 0;
        self.each_input(to, &mut |input, takes| {
            if is_of_one {
                most = temporary_bytes(input, takes, workers)?;
            }
            for take in takes.iter().filter(|take| take.region.is_spooled()) {
                most = most.max(temporary_bytes(input, slice::from_ref(take), workers)?);
            }
            Ok(())
        })?;
        Ok(most)
    }

    /// Copy a range of the output alone, from inputs that are not pipes.
    pub(super) fn copy_part(&self, to: &OutputRange<'_>, job: &Writing<'_>) -> Result<(), Error> {
        self.check_rest(to, &Progress::default())?;
        self.copy_wanted(to, job)
    }

    /// Write the output. It is put in place when it is complete.
    pub(super) fn write(&mut self, prepared: &Prepared, progress: &Progress) -> Result<(), Error> {
        let whole = OutputRange::whole(prepared);
        if self.is_of_one() {
            let takes = self.takes_of_one(&whole)?;
            let job = Writing::begin(prepared, self.inputs.first(), &takes, progress)?;
            self.inputs.copy(0, &job, &takes)?;
            job.commit()?;
            self.inputs.unmap(&prepared.output.options.workers);
            return Ok(());
        }
        if !self.is_one_pass(prepared) {
            self.inputs.spool_all(progress)?;
        }
        self.check_overwrite(&prepared.output.destination)?;
        let mut gathered = Vec::new();
        if !self.looks {
            self.each_input(&whole, &mut |_, takes| {
                let lists = takes.iter().filter(|take| take.region.gathered().is_some());
                gathered.extend(lists.cloned());
                Ok(())
            })?;
        }
        let job = Writing::of_output(prepared, true, &gathered, progress)?;
        self.copy(&whole, &job)?;
        job.commit()
    }
}
