//! The job that copies: what is taken of inputs, on its way to one output.
//!
//! Slices, conversions and gathers take something of one input, merges and joins of many. They differ in what
//! fills the output ([`Filling`]), and in nothing else.

use std::fmt::Write;
use std::ops::Range;
use std::sync::Arc;
use std::{iter, slice};

use super::inputs::{InputRef, source_of};
use super::overwrite::unmap;
use super::parts::{PartFault, Parts, last_name};
use super::select::Casts;
use super::{Job, Planned};
use crate::error::{Cause, Error};
use crate::execute::{Announced, Conversion, Progress, Workers};
use crate::gather;
use crate::index::resolve::Selection;
use crate::input::{Input, Location, Seen};
use crate::job::copy::{Writing, check_indices, count_requests, temporary_bytes};
use crate::job::overwrite;
use crate::job::select::{Select, Selected, select};
use crate::output::{Becomes, Output, Prepared, Unsaid};
use crate::region::{
    IndexTensor, OpenIndex, Region, Take, arrange_axes, gathered_axes, gathered_shape,
};
use crate::shape::{Arrangement, Transposition};
use crate::sink::{Destination, Fingerprint};
use crate::tensor::{TensorInfo, shortened};

pub(crate) struct OutputRange<'a> {
    pub(super) prepared: &'a Prepared,
    pub(super) range: Range<u64>,
}

impl<'a> OutputRange<'a> {
    pub(super) fn whole(prepared: &'a Prepared) -> OutputRange<'a> {
        OutputRange { prepared, range: 0..u64::MAX }
    }
}

/// Is given each input in turn, with what is taken of it.
pub(crate) type VisitInput<'v> = &'v mut dyn FnMut(&Input, &[Take]) -> Result<(), Error>;

pub struct Copying<'a> {
    pub(super) prepared: Prepared,
    pub(super) filling: Box<dyn Filling + 'a>,
    /// How many tensors a cast leaves as they are.
    left_uncast: usize,
}

/// What is taken of the tensors of an input, and what they become.
pub struct SliceOptions<'a> {
    /// Which tensors, and what they are called in the output.
    pub select: Select,
    /// What tensors are seen as that are not kept as they are.
    pub seen: Seen,
    /// What is taken of each tensor that is not kept as it is.
    pub index: OpenIndex<'a>,
    pub transpose: Transposition,
    pub casts: Casts,
}

pub struct GatherOptions {
    /// The axis that the positions are on; without one, tuples name positions on the first axes.
    pub axis: Option<i64>,
    pub how: gather::Options,
    pub transpose: Transposition,
    pub casts: Casts,
}

impl GatherOptions {
    /// Check that indices of this dtype and shape fit a tensor.
    pub fn check_shapes(&self, tensor: &TensorInfo, indices: &TensorInfo) -> Result<(), Error> {
        self.arrange(tensor, indices).map(|_| ())
    }

    /// What becomes of the axes of what is gathered.
    fn arrange(&self, tensor: &TensorInfo, indices: &TensorInfo) -> Result<Arrangement, Error> {
        let shape = gathered_shape(tensor, indices, self.axis, &self.how)?;
        let axes = gathered_axes(tensor, indices, self.axis, &self.how);
        Ok(arrange_axes(tensor, shape, &axes, &self.transpose)?)
    }
}

impl<'a> Copying<'a> {
    pub(super) fn new(
        prepared: Prepared,
        filling: impl Filling + 'a,
        left_uncast: usize,
    ) -> Copying<'a> {
        Copying { prepared, filling: Box::new(filling), left_uncast }
    }

    /// Slice, convert, trim: what an index takes of one tensor or several.
    pub fn slice(
        mut input: Input,
        options: &SliceOptions<'_>,
        output: Output,
    ) -> Result<Copying<'a>, Error> {
        if !options.seen.is_plain() {
            let sliced = select(&input, &options.select, &output)?.sliced_numbers();
            input.see(&options.seen, &sliced)?;
        }
        let selected = select(&input, &options.select, &output)?;
        let several = selected.sliced() > 1;
        let casts = options.casts.clone().of_several(several);
        let result = |of: &Selected| -> Result<Sliced, Error> {
            let sliced = sliced(of, options, &casts, &output);
            let name = of.tensor.name.as_deref();
            sliced.map_err(|cause| Error::from(cause).of_tensor(name, several))
        };
        let preparation = selected.prepare(|of| Ok(result(of)?.becomes))?;
        casts.refuse_unused(selected.sliced_dtypes())?;
        let left = casts.count_left(selected.sliced_dtypes());
        let mut prepared = preparation.finish(&input.contents.metadata)?;
        note_metadata(&input, &prepared.output);
        let mut takes = Vec::new();
        // those that are kept are looked at once more, so that nothing is held of each of a million
        for (of, (to, at)) in selected.iter().zip(prepared.places()) {
            Take::new(to.part, result(&of)?.region, to.conversion, at).push(&mut takes);
        }
        takes.sort_by_key(|take| take.at);
        drop(selected);
        let mut inputs = vec![TakenInput { input: InputRef::Owned(Box::new(input)), takes }];
        prepared.align(&mut inputs);
        Ok(Copying::new(prepared, inputs, left))
    }

    /// Gather: what an index tensor names of one tensor.
    pub fn gather(
        input: Input,
        tensor: &TensorInfo,
        indices: &IndexTensor,
        options: &GatherOptions,
        output: Output,
    ) -> Result<Copying<'a>, Error> {
        let GatherOptions { axis, how, casts, .. } = options;
        casts.refuse_unused(iter::once(tensor.dtype.clone()))?;
        let arranged = options.arrange(tensor, &indices.info)?;
        let of_tensor = gathered_axes(tensor, &indices.info, *axis, how);
        let axes = arranged.of_whole_axes(&of_tensor);
        let shape = arranged.shape().to_vec();
        let becomes = Becomes { shape, cast: casts.of(&tensor.dtype)?, axes };
        let axes = arranged.in_memory(output.options.order);
        let region = || indices.arranged(tensor, *axis, how, &axes);
        let input = InputRef::Owned(Box::new(input));
        let (prepared, taken) = single(input, tensor, becomes, &output, region)?;
        Ok(Copying::new(prepared, vec![taken], 0))
    }
}

/// Say of a checkpoint whose files differ in a text of their metadata that an output that is one file has the last.
fn note_metadata(input: &Input, output: &Output) {
    let Some(checkpoint) = input.checkpoint().filter(|_| !output.is_of_folders()) else { return };
    let all = &input.contents.metadata;
    let mut texts = checkpoint.metadata.iter().flatten();
    if let Some((key, _)) =
        texts.find(|(key, text)| output.needs_metadata(key) && all.get(*key) != Some(text))
    {
        let location = &input.location;
        input.notes.add(format_args!(
            "{location}: metadata {:?} differ among its files; the last one's are taken",
            shortened(key)
        ));
    }
}

/// What fills the elements of an output, any range of it by itself.
pub(crate) trait Filling {
    /// Bytes that [`look`](Filling::look) reads.
    fn looked_at(&self) -> Result<u64, Error> {
        Ok(0)
    }

    /// Look at what takes long to be known, before anything is written.
    fn look(&mut self, prepared: &Prepared, progress: &Progress) -> Result<(), Error> {
        let _ = (prepared, progress);
        Ok(())
    }

    /// Make the checks that writing would fail at and that [`look`](Filling::look) did not make.
    fn check(&self, prepared: &Prepared) -> Result<(), Error>;

    fn is_remote(&self) -> bool;

    /// The requests that reading the elements would take, where an input is remote.
    fn requests(&mut self, prepared: &Prepared) -> Result<Option<Announced>, Error> {
        if !self.is_remote() {
            return Ok(None);
        }
        let whole = OutputRange::whole(prepared);
        count_requests(&prepared.output.options.workers, |job| {
            self.each_input(&whole, &mut |input, takes| job.count(input, takes))
        })
    }

    /// All files that any part reads, in order, and the names by which they are known to parts on
    /// other machines.
    fn files(&self) -> Result<Vec<(String, Location)>, Error>;

    fn bytes(&self, to: &OutputRange<'_>) -> u64;

    /// Visit each input that gives something to a range of the output, with what is taken of it as it is.
    fn each_input(&self, to: &OutputRange<'_>, visit: VisitInput<'_>) -> Result<(), Error>;

    /// About how many bytes of elements are read for a range of the output, in whole cache lines.
    fn reads(&self, to: &OutputRange<'_>) -> Result<u64, Error> {
        let mut reads = 0;
        self.each_input(to, &mut |_, takes| {
            reads += takes.iter().map(Take::reads).sum::<u64>();
            Ok(())
        })?;
        Ok(reads)
    }

    /// Add all that decides the elements of the output, but for the bytes of the files.
    fn identify(&self, prepared: &Prepared, work: &mut Fingerprint) -> Result<(), Error> {
        self.each_input(&OutputRange::whole(prepared), &mut |_, takes| {
            takes.iter().try_for_each(|take| {
                // never fails
                let _ = write!(work, "{:?}", (take.part, take.conversion, take.at));
                take.region.identify(&mut |bytes| work.add(bytes))
            })
        })
    }

    /// The bytes of temporary files by way of which a range of the output is copied, one input after the other.
    fn temporary_bytes(&self, to: &OutputRange<'_>) -> Result<u64, Error> {
        let workers = &to.prepared.output.options.workers;
        let mut most = 0;
        self.each_input(to, &mut |input, takes| most_kept(&mut most, input, takes, workers))?;
        Ok(most)
    }

    fn copy(&mut self, to: &OutputRange<'_>, job: &Writing<'_>) -> Result<(), Error>;

    /// Write the output. It is put in place when all of it is written.
    fn write(&mut self, prepared: &Prepared, progress: &Progress) -> Result<(), Error>;
}

/// The bytes of temporary files of these takes, if they are more than those of others.
pub(super) fn most_kept(
    most: &mut u64,
    input: &Input,
    takes: &[Take],
    workers: &Workers,
) -> Result<(), Error> {
    for take in takes.iter().filter(|take| take.region.is_kept()) {
        *most = (*most).max(temporary_bytes(input, slice::from_ref(take), workers)?);
    }
    Ok(())
}

impl Job for Copying<'_> {
    fn bytes(&self) -> u64 {
        self.prepared.bytes
    }

    fn looked_at(&self) -> Result<u64, Error> {
        self.filling.looked_at()
    }

    fn look(&mut self, progress: &Progress) -> Result<(), Error> {
        self.filling.look(&self.prepared, progress)
    }

    fn left_uncast(&self) -> usize {
        self.left_uncast
    }

    fn check(&mut self) -> Result<(), Error> {
        self.filling.check(&self.prepared)
    }

    fn describe(&mut self) -> Result<Vec<Planned>, Error> {
        let whole = OutputRange::whole(&self.prepared);
        Ok(vec![Planned::new(&self.prepared, self.filling.temporary_bytes(&whole)?)])
    }

    fn requests(&mut self) -> Result<Option<Announced>, Error> {
        self.filling.requests(&self.prepared)
    }

    fn unsaid(&self) -> Vec<Unsaid> {
        self.prepared.unsaid.clone()
    }

    fn write(&mut self, progress: &Progress) -> Result<(), Error> {
        self.filling.write(&self.prepared, progress)
    }

    fn parts(&mut self, count: u64) -> Result<Parts<'_>, Error> {
        Parts::new(&self.prepared, self.filling.as_mut(), count)
    }
}

/// An open input, and what is taken of it, in the order of the output.
pub(crate) struct TakenInput<'a> {
    pub(crate) input: InputRef<'a>,
    pub(crate) takes: Vec<Take>,
}

impl TakenInput<'_> {
    fn within(&self, range: &Range<u64>) -> Vec<Take> {
        let first = self.takes.partition_point(|take| take.at + take.bytes() <= range.start);
        let near = self.takes[first..].iter().take_while(|take| take.at < range.end);
        near.flat_map(|take| take.within(range)).collect()
    }
}

/// What a program takes of a tensor of an input that it holds.
pub(crate) struct HeldSlice<'a> {
    pub(crate) input: &'a Input,
    pub(crate) tensor: &'a TensorInfo,
    pub(crate) becomes: Becomes,
    /// The bytes, in the memory order of the output.
    pub(crate) region: Arc<dyn Region>,
}

impl HeldSlice<'_> {
    /// It on its way to position `at` of an output.
    pub(super) fn take(&self, conversion: Conversion, at: u64) -> Take {
        Take::new(self.tensor.part(), Arc::clone(&self.region), conversion, at)
    }
}

/// Refuse an output that is a descriptor of what is read.
pub(super) fn check_overwrite(
    inputs: &[TakenInput<'_>],
    destination: &Destination,
) -> Result<(), Error> {
    let lists = all_takes(inputs).flat_map(|take| take.region.lists());
    overwrite::check(destination, inputs.iter().map(|of| &*of.input), lists)
}

pub(super) fn all_takes<'t>(inputs: &'t [TakenInput<'_>]) -> impl Iterator<Item = &'t Take> {
    inputs.iter().flat_map(|of| &of.takes)
}

/// Copy from an input that is a pipe, if its owner copies, or can be read in any order.
fn copy(input: &mut InputRef<'_>, takes: &[Take], job: &Writing<'_>) -> Result<(), Error> {
    match input {
        InputRef::Borrowed(input) => job.copy_random(input, source_of(input)?.as_ref(), takes),
        InputRef::Owned(input) => job.copy(input, takes),
    }
}

impl Filling for Vec<TakenInput<'_>> {
    fn check(&self, prepared: &Prepared) -> Result<(), Error> {
        prepared.check()?;
        let output = &prepared.output;
        check_overwrite(self, &output.destination)?;
        all_takes(self).try_for_each(|take| check_indices(take, &output.options.workers, false))
    }

    fn is_remote(&self) -> bool {
        self.iter().any(|of| matches!(of.input.location, Location::Remote(_)))
    }

    fn files(&self) -> Result<Vec<(String, Location)>, Error> {
        let mut files = Vec::new();
        for TakenInput { input, .. } in self {
            let unfit = || Error::file(&input.location, PartFault::NotAFile);
            files.extend(input.files().ok_or_else(unfit)?);
        }
        let lists = all_takes(self).flat_map(|take| take.region.lists());
        files.extend(lists.filter_map(|list| Some(Location::Path(list.path()?.to_owned()))));
        files.dedup();
        Ok(files.into_iter().map(|file| (last_name(&file.as_path()), file)).collect())
    }

    fn bytes(&self, to: &OutputRange<'_>) -> u64 {
        self.iter().flat_map(|of| of.within(&to.range)).map(|take| take.bytes()).sum()
    }

    fn each_input(&self, to: &OutputRange<'_>, visit: VisitInput<'_>) -> Result<(), Error> {
        self.iter().try_for_each(|of| {
            if to.range == (0..u64::MAX) {
                visit(&of.input, &of.takes)
            } else {
                visit(&of.input, &of.within(&to.range))
            }
        })
    }

    fn temporary_bytes(&self, to: &OutputRange<'_>) -> Result<u64, Error> {
        let workers = &to.prepared.output.options.workers;
        let mut most = 0;
        self.each_input(to, &mut |input, takes| {
            most = most.max(temporary_bytes(input, takes, workers)?);
            Ok(())
        })?;
        Ok(most)
    }

    fn copy(&mut self, to: &OutputRange<'_>, job: &Writing<'_>) -> Result<(), Error> {
        self.iter_mut().try_for_each(|of| {
            let takes = of.within(&to.range);
            job.check(&takes)?;
            copy(&mut of.input, &takes, job)
        })
    }

    fn write(&mut self, prepared: &Prepared, progress: &Progress) -> Result<(), Error> {
        let job = Writing::begin(prepared, self, progress)?;
        for TakenInput { input, takes } in self.iter_mut() {
            copy(input, takes, &job)?;
        }
        job.commit()?;
        let workers = &prepared.output.options.workers;
        for of in self.iter() {
            if let (InputRef::Owned(_), Some(source)) = (&of.input, of.input.random()) {
                unmap(source.as_ref(), workers);
            }
        }
        Ok(())
    }
}

/// The place of one tensor in an output, and what is taken for it.
pub(crate) fn single<'a>(
    input: InputRef<'a>,
    tensor: &TensorInfo,
    becomes: Becomes,
    output: &Output,
    region: impl FnOnce() -> Result<Arc<dyn Region>, Cause>,
) -> Result<(Prepared, TakenInput<'a>), Error> {
    let mut prepared = output.prepare(&input, tensor, becomes)?;
    let region = region()?;
    let takes = prepared
        .places()
        .map(|(to, at)| Take::new(to.part, Arc::clone(&region), to.conversion, at))
        .collect();
    let mut taken = TakenInput { input, takes };
    prepared.align(slice::from_mut(&mut taken));
    Ok((prepared, taken))
}

struct Sliced {
    becomes: Becomes,
    region: Arc<dyn Region>,
}

/// What becomes of a tensor that is sliced, or only kept.
fn sliced(
    Selected { tensor, sliced, .. }: &Selected,
    options: &SliceOptions<'_>,
    casts: &Casts,
    output: &Output,
) -> Result<Sliced, Cause> {
    let order = output.options.order;
    if !sliced {
        let region = <dyn Region>::of_selection(tensor, &Selection::whole(&tensor.shape), order)?;
        return Ok(Sliced { becomes: Becomes::kept(tensor.shape.clone()), region });
    }
    let selection = options.index.resolve(tensor)?;
    let axes = OpenIndex::arrange(tensor, &selection, &options.transpose)?;
    let cast = casts.of(&tensor.dtype)?;
    let region = options.index.lists.region(tensor, &selection, &axes.in_memory(order))?;
    let shape = axes.shape().to_vec();
    let axes = axes.of_whole_axes(&selection.source_axes());
    Ok(Sliced { becomes: Becomes { shape, cast, axes }, region })
}
