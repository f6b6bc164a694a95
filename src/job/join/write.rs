//! Copying the inputs of a join to the output, batch by batch.
//!
//! Where the output takes bytes in any order, a batch's share of all tensors is written before the next batch
//! is opened. Where it does not, the tensors come one after the other; one that is made of several batches
//! that alternate in it is put together in a temporary file first.
//!
//! In parts (`--part`), each process reads all headers, which decide where everything goes, and elements of those
//! inputs only that give something to its part. Of the tensors that are taken once, each part compares its
//! own range in all inputs, so that all parts together compare all of them.

use std::fmt::Write;
use std::slice;

use super::batch::{BATCH, Batch, JoinedPart, is_large, through_scratch};
use super::inputs::{JoinTarget, Joined};
use super::place::{Cell, JoinedPlace, Place, bytes_of, places, whole};
use crate::error::Error;
use crate::execute::{Announced, Progress};
use crate::index::{Item, List};
use crate::input::{Bytes, Input, Location};
use crate::job::copy::{Writing, count_requests};
use crate::job::copying::{Filling, OutputRange, VisitInput, most_kept};
use crate::job::inputs::{InputRef, descriptors, source_of};
use crate::job::overwrite;
use crate::job::parts::last_name;
use crate::output::Prepared;
use crate::region::{OpenIndex, Take};
use crate::sink::{Destination, Fingerprint, WriteOrder};

impl Filling for Joined<'_> {
    fn looked_at(&self) -> Result<u64, Error> {
        self.rest_bytes()
    }

    /// Also that the tensors that are taken once are the same in all inputs, byte for byte.
    fn look(&mut self, prepared: &Prepared, progress: &Progress) -> Result<(), Error> {
        // first what takes no time
        prepared.check()?;
        self.check_overwrite(&prepared.output.destination)?;
        self.check_lists()?;
        self.check_rest(&whole(prepared), progress)
    }

    fn check(&self, _: &Prepared) -> Result<(), Error> {
        Ok(())
    }

    fn is_remote(&self) -> bool {
        self.inputs.any_remote()
    }

    /// By the same steps as they are copied, so that inputs that are opened again for it are opened here, too.
    fn requests(&mut self, prepared: &Prepared) -> Result<Option<Announced>, Error> {
        if !self.is_remote() {
            return Ok(None);
        }
        let workers = self.options.workers.clone();
        count_requests(&workers, |job| self.copy_places(job, &whole(prepared)))
    }

    fn files(&self) -> Result<Vec<(String, Location)>, Error> {
        let mut named = self.inputs.files()?;
        let lists = self.options.index.lists.lists();
        let lists = lists.filter_map(|list| Some(list.path()?.to_owned()));
        named.extend(lists.map(|path| (last_name(&path), Location::Path(path))));
        Ok(named)
    }

    fn bytes(&self, to: &OutputRange<'_>) -> u64 {
        places(to).iter().map(|place| place.bytes()).sum()
    }

    /// What is copied by itself: of many parts that are joined piece by piece nothing is shared.
    fn each_input(&self, to: &OutputRange<'_>, visit: VisitInput<'_>) -> Result<(), Error> {
        let places = places(to);
        visit(self.first(), &self.takes_kept(&places)?)?;
        self.each_cell(&places, &mut |input, take, cell| {
            if cell.rows > 1 || !is_large(&cell.dense) {
                return Ok(());
            }
            visit(input, &take.window(cell.dense, take.at + cell.at))
        })
    }

    fn temporary_bytes(&self, to: &OutputRange<'_>) -> Result<u64, Error> {
        let mut most = 0;
        self.each_cell(&places(to), &mut |input, take, cell| {
            most_kept(&mut most, input, &take.window(cell.dense, 0), &self.options.workers)
        })?;
        Ok(most)
    }

    fn reads(&self, to: &OutputRange<'_>) -> Result<u64, Error> {
        let places = places(to);
        let kept: u64 = self.windows_kept(&places)?.iter().map(Take::reads).sum();
        let mut reads = kept * self.inputs.locations.len() as u64;
        self.each_cell(&places, &mut |_, take, cell| {
            reads += take.window(cell.dense, 0).iter().map(Take::reads).sum::<u64>();
            Ok(())
        })?;
        Ok(reads)
    }

    fn identify(&self, prepared: &Prepared, work: &mut Fingerprint) -> Result<(), Error> {
        // writing never fails
        let _ = write!(work, "{:?}", (self.options.along, self.order, &self.options.seen.shape));
        identify_index(&self.options.index, work)?;
        let places = whole(prepared);
        for place in &places {
            let is_joined = self.tensors[place.target].join.is_some();
            let _ = write!(work, "{:?}", (place.start, place.conversion, is_joined));
            if !is_joined {
                let kept = self.take_kept(place)?;
                kept.region.identify(&mut |bytes| work.add(bytes))?;
            }
        }
        let targets = self.joined(&places);
        let (_, parts) = self.lend_parts(0, &targets)?;
        for (target, JoinedPart { take, .. }) in targets.iter().zip(parts) {
            let _ = write!(work, "{:?}", (target.row, take.part));
            take.region.identify(&mut |bytes| work.add(bytes))?;
        }
        Ok(())
    }

    fn copy(&mut self, to: &OutputRange<'_>, job: &Writing<'_>) -> Result<(), Error> {
        let places = places(to);
        self.check_rest(&places, &Progress::default())?;
        self.copy_places(job, &places)
    }

    fn write(&mut self, prepared: &Prepared, progress: &Progress) -> Result<(), Error> {
        if !self.is_one_pass() {
            self.inputs.spool_all(progress)?;
        }
        self.check_overwrite(&prepared.output.destination)?;
        let job = Writing::of_output(prepared, true, &[], progress)?;
        let places = whole(prepared);
        match job.sink().order() {
            WriteOrder::Any => self.copy_places(&job, &places)?,
            WriteOrder::Ascending => {
                let workers = self.options.workers.clone();
                for place in &places {
                    if self.alternates(place)? {
                        through_scratch(&job, place, &workers, |job, place| {
                            self.copy_places(job, slice::from_ref(place))
                        })?;
                    } else {
                        self.copy_places(&job, slice::from_ref(place))?;
                    }
                }
            }
        }
        job.commit()
    }
}

impl Joined<'_> {
    fn check_overwrite(&self, output: &Destination) -> Result<(), Error> {
        overwrite::check(output, [], self.options.index.lists.lists())?;
        self.inputs.check_overwrite(output)
    }

    /// Visit what each input gives to each band of these tensors, with the take that it is a range of.
    fn each_cell(
        &self,
        places: &[Place],
        visit: &mut dyn FnMut(&Input, &Take, Cell) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let targets = self.joined(places);
        for number in 0..self.inputs.locations.len() {
            if !targets.iter().any(|target| target.needs(number)) {
                continue;
            }
            let (input, parts) = self.lend_parts(number, &targets)?;
            for (target, JoinedPart { take, .. }) in targets.iter().zip(&parts) {
                let mut cells = target.bands.iter().filter_map(|band| target.cell(number, band));
                cells.try_for_each(|cell| visit(&input, take, cell))?;
            }
        }
        Ok(())
    }

    /// The input with that number, with what it gives to each of these tensors.
    fn lend_parts(
        &self,
        number: usize,
        targets: &[JoinedPlace<'_>],
    ) -> Result<(InputRef<'_>, Vec<JoinedPart>), Error> {
        let (input, chosen) = self.lend_checked(number)?;
        let part = |target: &JoinedPlace<'_>| {
            let chosen = &chosen[target.at];
            let take = self.take_joined(&input, chosen, target.place)?;
            Ok(JoinedPart { take, step: chosen.step })
        };
        let parts = targets.iter().map(part).collect::<Result<_, Error>>()?;
        Ok((input, parts))
    }

    /// Whether pipes are read while they are copied: there is one tensor, of one row.
    fn is_one_pass(&self) -> bool {
        let [JoinTarget { join: Some(join), .. }] = self.tensors.as_slice() else { return false };
        join.rows_and_inner(self.order).0 == 1
    }

    /// Whether the bytes of a tensor do not come in the order of the output, but in that of batches
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

    fn copy_places(&mut self, job: &Writing<'_>, places: &[Place]) -> Result<(), Error> {
        let takes = self.takes_kept(places)?;
        let first = self.first();
        // a pipe is not asked for anything
        let is_asked = !job.is_counting() || !is_unread(first);
        if is_asked && !takes.is_empty() {
            job.copy_random(first, source_of(first)?.as_ref(), &takes)?;
        }
        let mut number = 0;
        while number < self.inputs.locations.len() {
            number = if self.inputs.held.get(&number).is_some_and(is_unread) {
                self.copy_stream(job, number, &places[0])?
            } else {
                self.copy_batch(job, number, places)?
            };
        }
        Ok(())
    }

    /// What is wanted of the tensors that are taken once.
    fn windows_kept(&self, places: &[Place]) -> Result<Vec<Take>, Error> {
        let mut windows = Vec::new();
        for place in places.iter().filter(|place| self.tensors[place.target].join.is_none()) {
            let take = self.take_kept(place)?;
            windows.extend(take.window(place.window.clone(), place.start + place.window.start));
        }
        Ok(windows)
    }

    /// What is wanted of the tensors that are taken once, neighbours as one take.
    fn takes_kept(&self, places: &[Place]) -> Result<Vec<Take>, Error> {
        let mut takes = Vec::new();
        self.windows_kept(places)?.into_iter().for_each(|take| take.push(&mut takes));
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
    fn copy_batch(
        &self,
        job: &Writing<'_>,
        start: usize,
        places: &[Place],
    ) -> Result<usize, Error> {
        let targets = self.joined(places);
        let mut batch = Batch::default();
        let mut number = start;
        let mut open = 0;
        while number < self.inputs.locations.len()
            && open < BATCH
            && !self.inputs.held.get(&number).is_some_and(is_unread)
        {
            if targets.iter().any(|target| target.needs(number)) {
                let (input, parts) = self.lend_parts(number, &targets)?;
                if let InputRef::Owned(input) = &input {
                    open += descriptors(input);
                }
                let input = batch.push(input)?;
                for (at, part) in parts.into_iter().enumerate() {
                    batch.push_part(at, number, input, part);
                }
            }
            number += 1;
        }
        batch.copy(job, &targets)?;
        Ok(number)
    }
}

fn is_unread(input: &Input) -> bool {
    matches!(input.bytes, Bytes::Stream(_))
}

/// Add all that decides what an index selects, but for the bytes of files.
fn identify_index(index: &OpenIndex<'_>, work: &mut Fingerprint) -> Result<(), Error> {
    // writing never fails
    let _ = write!(work, "{:?}", index.rules);
    for item in &index.expr.items {
        let _ = match item {
            // the file may have another path elsewhere
            Item::List(List::File(file)) => write!(work, "{:?}", (&file.name, file.opposite)),
            item => write!(work, "{item:?}"),
        };
    }
    index.lists.lists().try_for_each(|list| list.identify(&mut |bytes| work.add(bytes)))
}
