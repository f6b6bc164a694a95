//! The outputs of a split: prepared and checked one by one, written together.

use std::ops::Range;
use std::sync::Arc;

use super::super::several::{OutputSet, check_outputs, write_outputs};
use super::super::{Job, Planned};
use super::by_name::wholes;
use super::cuts::CutAxis;
use super::{Cuts, PartNames, SplitFault};
use crate::dtype::DType;
use crate::error::{Cause, Error};
use crate::execute::{Conversion, Progress, Workers};
use crate::index::resolve::Selection;
use crate::input::{Bytes, Input, Location, PartNaming, Transform};
use crate::job::copy::{Writing, forward, in_scratch, network_bytes};
use crate::job::select::{
    Axes, Casts, Choice, Select, all_indexed_alike, choices, leave_out_lacking, note_alike, select,
};
use crate::output::{LayoutFault, Omission, Output, Prepared, TensorChange, WriteOptions};
use crate::region::{OpenIndex, Region, Take};
use crate::shape;
use crate::shape::Order;
use crate::sink::{Destination, SeveralSinks};
use crate::tensor::{TensorInfo, Tensors};

pub struct SplitOptions<'a> {
    pub cuts: Cuts,
    /// Whether parts of different lengths are an error.
    pub equal: bool,
    /// The axis of the result of the index that is cut, for each tensor.
    pub axes: Axes,
    /// Whether the parts drop the axis, of which they must have one position.
    pub squeeze: bool,
    pub to: PartsTo<'a>,
    /// The selection of the tensors that are cut; it says whether the others go to every output.
    pub select: Select,
    /// The dtypes, shapes or fields that tensors are read as before they are cut.
    pub transform: Transform,
    /// The index that is applied to every tensor before it is cut.
    pub index: OpenIndex<'a>,
    /// Casts of the elements of cut tensors.
    pub casts: Casts,
}

/// The destination of parts.
pub enum PartsTo<'a> {
    /// A file for each number of a part.
    Files { names: PartNames, write: Box<WriteOptions> },
    /// Tensors of one output, with their own names.
    Tensors { naming: Box<PartNaming<'a>>, output: Box<Output> },
}

impl SplitOptions<'_> {
    /// Choose all tensors, if none are named, and the index takes something of axes that have the
    /// same length in each.
    fn mean_all(&mut self, input: &Input) -> Result<(), Error> {
        let Select { patterns, keep_rest, .. } = &self.select;
        let PartsTo::Files { .. } = &self.to else { return Ok(()) };
        if !patterns.is_empty() || *keep_rest || !self.to.output(0)?.format.holds_several {
            return Ok(());
        }
        if let Some(all) = all_indexed_alike(input, &self.index) {
            note_alike(input, all.len());
            self.select.patterns = vec!["*".to_owned()];
        }
        Ok(())
    }

    /// The numbers of the tensors that are cut, ascending.
    fn cut(&self, input: &Input) -> Result<Vec<usize>, Error> {
        let patterns = &self.select.patterns;
        match &self.to {
            PartsTo::Tensors { naming, output } => wholes(input, patterns, naming, output),
            PartsTo::Files { .. } => input.find(patterns).map_err(|error| {
                let output = self.to.output(0);
                error.of_several(output.is_ok_and(|output| output.format.holds_several))
            }),
        }
    }
}

impl PartsTo<'_> {
    /// The naming of parts that become tensors of one output.
    pub(super) fn naming(&self) -> Option<&PartNaming<'_>> {
        match self {
            PartsTo::Files { .. } => None,
            PartsTo::Tensors { naming, .. } => Some(naming),
        }
    }

    /// The output of the part with that number.
    fn output(&self, number: u64) -> Result<Output, Error> {
        match self {
            PartsTo::Files { names, write } => {
                Output::new(Destination::Path(names.path(number)), write.as_ref().clone())
            }
            PartsTo::Tensors { output, .. } => Ok(output.as_ref().clone()),
        }
    }

    fn workers(&self) -> &Workers {
        match self {
            PartsTo::Files { write, .. } => &write.workers,
            PartsTo::Tensors { output, .. } => &output.options.workers,
        }
    }
}

pub struct Split<'a> {
    pub(super) options: SplitOptions<'a>,
    /// The input and, if the index has lists, the elements that they choose, which are copied to
    /// scratch before they are cut.
    pub(super) inputs: Vec<Input>,
    /// The tensors of each output, in the order of the input.
    pub(super) tensors: Vec<PartTensor>,
    /// The number of outputs.
    count: u64,
    /// The bytes of the elements of all outputs, once they were checked.
    bytes: u64,
    /// The note about the first tensor whose parts have different lengths.
    uneven: Option<Error>,
    /// The bytes that are copied to scratch, and from there to the outputs.
    temporary_bytes: u64,
}

pub(super) struct PartTensor {
    /// The index of the input in `inputs`, and the number of the tensor in it.
    pub(super) source: usize,
    pub(super) number: usize,
    selection: Selection,
    /// The axis that is cut; `None` for a tensor that is copied whole.
    pub(super) axis: Option<CutAxis>,
}

impl PartTensor {
    /// The parts of it that an output has: all, or the part with the output's number.
    pub(super) fn parts(&self, number: u64, has_all: bool) -> Range<u64> {
        match &self.axis {
            Some(cut) if has_all => 0..cut.count,
            _ => number..number + 1,
        }
    }
}

impl<'a> Split<'a> {
    /// Find what is cut, and into how many parts. What lists in the index choose is copied to
    /// scratch.
    pub fn new(mut input: Input, mut options: SplitOptions<'a>) -> Result<Split<'a>, Error> {
        options.mean_all(&input)?;
        let mut cut = options.cut(&input)?;
        let mut choices = choices(&input, &cut, options.select.keep_rest)?;
        let output = options.to.output(0)?;
        leave_out_lacking(&input, &options.select.patterns, &output, &mut choices);
        cut.retain(|number| choices[*number] == Choice::Sliced);
        input.transform(&options.transform, &cut)?;
        let mut axes = options.axes.of_tensors(&input, &cut)?.into_iter();
        let several = cut.len() > 1;
        options.casts = std::mem::take(&mut options.casts).of_several(several);
        let cuts = Arc::new(options.cuts.clone());
        let mut tensors = Vec::new();
        let mut counts: Option<(u64, usize)> = None;
        let mut uneven = None;
        for (number, (tensor, choice)) in input.contents.tensors.iter().zip(choices).enumerate() {
            if choice == Choice::Rest {
                let selection = Selection::whole(&tensor.shape);
                tensors.push(PartTensor { number, source: 0, selection, axis: None });
            }
            if choice != Choice::Sliced {
                continue;
            }
            let failed = |cause: Cause| input.failed_tensor(&tensor, several, cause);
            let asked = axes.next().expect("an axis for each tensor that is cut");
            let selection = options.index.resolve(&tensor).map_err(failed)?;
            let axis =
                CutAxis::new(&options, &cuts, &tensor, &selection, &asked).map_err(failed)?;
            let count = axis.count;
            let texts = options.to.naming().and_then(PartNaming::count);
            axis.check_texts(texts).map_err(|fault| failed(fault.into()))?;
            let (first, of) = *counts.get_or_insert((count, number));
            if first != count && options.to.naming().is_none() {
                let first_name = input.contents.tensors.name(of).unwrap_or_default().to_owned();
                return Err(failed(SplitFault::Counts { count, first_name, first }.into()));
            }
            if uneven.is_none()
                && let Some(fault) = axis.uneven()
            {
                uneven = Some(failed(fault.into()));
            }
            tensors.push(PartTensor { number, source: 0, selection, axis: Some(axis) });
        }
        let has_all = options.to.naming().is_some();
        let count = if has_all { 1 } else { counts.map_or(0, |(count, _)| count) };
        if let Some(error) = uneven.take_if(|_| options.equal) {
            return Err(error);
        }
        let inputs = vec![input];
        let mut split =
            Split { options, inputs, tensors, count, bytes: 0, uneven, temporary_bytes: 0 };
        split.check_names()?;
        split.options.casts.refuse_unused(split.dtypes())?;
        split.choose()?;
        Ok(split)
    }

    /// The place for a number with which names would sort as parts do, if they do not.
    pub fn better_place(&self) -> Option<String> {
        match &self.options.to {
            PartsTo::Files { names, .. } => names.better_place(self.count),
            PartsTo::Tensors { .. } => None,
        }
    }

    /// The note about the first tensor whose parts have different lengths.
    pub fn take_uneven(&mut self) -> Option<Error> {
        self.uneven.take()
    }

    /// Copy what lists choose, and all that is not a view, to scratch, from which parts are slices.
    fn choose(&mut self) -> Result<(), Error> {
        let mut takes = Vec::new();
        let mut contents = Tensors::default();
        let mut end = 0u64;
        for target in &mut self.tensors {
            let tensor = &self.inputs[0].contents.tensors.at(target.number);
            let region = self.options.index.region(tensor, &target.selection, Order::C);
            let region =
                region.map_err(|cause| self.inputs[0].failed_tensor(tensor, true, cause))?;
            if region.gathered().is_none() && !region.is_spooled() {
                continue;
            }
            let shape = target.selection.shape();
            let bytes = shape::byte_count(&shape, tensor.dtype.item_bits());
            let bytes = bytes.ok_or(LayoutFault::TooLarge)?;
            if region.is_spooled() {
                // once to scratch, and once from there to the output
                self.temporary_bytes = self.temporary_bytes.saturating_add(bytes.saturating_mul(2));
            }
            takes.push(Take::new(tensor.shard(), region, Conversion::None, end));
            target.number = contents.len();
            target.source = 1;
            let made = TensorInfo::new(tensor.dtype.clone(), shape, Order::C, end);
            let made = TensorInfo { name: tensor.name.clone(), ..made };
            target.selection = Selection::whole(&made.shape);
            contents.push(&made);
            end = end.checked_add(bytes).ok_or(LayoutFault::TooLarge)?;
        }
        if takes.is_empty() {
            return Ok(());
        }
        let location = self.inputs[0].location.clone();
        let workers = self.options.to.workers();
        let copy = |job: &Writing<'_>| job.copy(&mut self.inputs[0], &takes);
        let chosen = in_scratch(&location, contents, end, &takes, workers, copy)?;
        self.inputs.push(chosen);
        Ok(())
    }

    fn dtypes(&self) -> impl Iterator<Item = DType> + Clone {
        let cut = self.tensors.iter().filter(|target| target.axis.is_some());
        cut.map(|target| self.inputs[target.source].contents.tensors.at(target.number).dtype)
    }

    fn prepare(&self, number: u64) -> Result<Prepared, Error> {
        let metadata = &self.inputs[0].contents.metadata;
        if let PartsTo::Tensors { output, .. } = &self.options.to {
            return self.prepare_tensors(output)?.finish(metadata);
        }
        let output = self.options.to.output(number)?;
        let selected = select(&self.inputs[0], &self.options.select, &output)?;
        let mut targets = self.tensors.iter();
        let preparation = selected.prepare(|of| match targets.next() {
            Some(target) => Ok(self.change(target, &of.tensor, number)?),
            None => Ok(TensorChange::unchanged(of.tensor.shape.clone())),
        })?;
        preparation.finish(metadata)
    }

    /// The description of a part of a tensor, or of a kept tensor.
    pub(super) fn change(
        &self,
        target: &PartTensor,
        tensor: &TensorInfo,
        number: u64,
    ) -> Result<TensorChange, Cause> {
        let PartTensor { selection, axis: Some(cut), .. } = target else {
            return Ok(TensorChange::unchanged(tensor.shape.clone()));
        };
        let range = cut.part(number);
        let mut shape = selection.shape();
        let mut axes = selection.source_axes();
        if self.options.squeeze {
            shape.remove(cut.axis);
            axes.remove(cut.axis);
        } else {
            shape[cut.axis] = range.end - range.start;
        }
        let cast = self.options.casts.of(&tensor.dtype)?;
        Ok(TensorChange { shape, cast, axes })
    }

    /// The takes of one output, each with the index of its input.
    fn takes(&self, number: u64, prepared: &Prepared) -> Result<Vec<(usize, Take)>, Error> {
        let order = prepared.output.options.order;
        let mut takes = Vec::with_capacity(self.tensors.len());
        let has_all = self.options.to.naming().is_some();
        let parts = self
            .tensors
            .iter()
            .flat_map(|target| target.parts(number, has_all).map(move |number| (target, number)));
        for ((target, number), (entry, at)) in parts.zip(prepared.tensor_offsets()) {
            let input = &self.inputs[target.source];
            let tensor = &input.contents.tensors.at(target.number);
            let selection = match &target.axis {
                None => Some(target.selection.clone()),
                Some(cut) => {
                    let range = cut.part(number);
                    // an empty part takes nothing
                    if range.is_empty() {
                        continue;
                    }
                    target.selection.narrowed(cut.axis, range.start, range.end - range.start)
                }
            };
            let Some(selection) = selection else { continue };
            let region = <dyn Region>::of_selection(tensor, &selection, order);
            let region = region.map_err(|cause| input.failed_tensor(tensor, true, cause))?;
            let take = Take::new(tensor.shard(), region, entry.conversion, at);
            takes.push((target.source, take));
        }
        takes.sort_by_key(|(_, take)| take.at);
        Ok(takes)
    }

    /// Whether a pipe gives all outputs in one pass.
    fn is_one_pass(&self) -> Result<bool, Error> {
        let mut takes = Vec::new();
        for number in 0..self.count {
            let of_one = self.takes(number, &self.prepare(number)?)?;
            takes.extend(of_one.into_iter().map(|(_, take)| take));
        }
        Ok(forward(&takes).is_some())
    }
}

impl Job for Split<'_> {
    fn left_uncast(&self) -> usize {
        self.options.casts.count_left(self.dtypes())
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn look(&mut self, _: &Progress) -> Result<(), Error> {
        self.bytes = check_outputs(self)?;
        Ok(())
    }

    fn describe(&mut self) -> Result<Vec<Planned>, Error> {
        let planned = |number| {
            let prepared = self.prepare(number)?;
            Ok(Planned::new(&prepared, if number == 0 { self.temporary_bytes } else { 0 }))
        };
        (0..self.count).map(planned).collect()
    }

    fn network_bytes(&mut self) -> Result<u64, Error> {
        let mut bytes = 0;
        if matches!(self.inputs[0].location, Location::Remote(_)) {
            for number in 0..self.count {
                // what lists choose is in scratch already
                let remote = self.part(number)?.1.into_iter().filter(|(source, _)| *source == 0);
                let takes = Vec::from_iter(remote.map(|(_, take)| take));
                bytes += network_bytes(&self.inputs[0], &takes);
            }
        }
        Ok(bytes)
    }

    fn omissions(&self) -> Vec<Omission> {
        self.prepare(0).map(|prepared| prepared.omissions).unwrap_or_default()
    }

    fn write(&mut self, progress: &Progress) -> Result<(), Error> {
        let batch = SeveralSinks::batch(self.count);
        if batch < self.count
            && matches!(self.inputs[0].bytes, Bytes::Stream(_))
            && !self.is_one_pass()?
        {
            self.inputs[0].spool_watched(progress)?;
        }
        write_outputs(self, progress)
    }
}

impl OutputSet for Split<'_> {
    fn count(&self) -> u64 {
        self.count
    }

    fn workers(&self) -> &Workers {
        self.options.to.workers()
    }

    fn part(&self, number: u64) -> Result<(Prepared, Vec<(usize, Take)>), Error> {
        let mut prepared = self.prepare(number)?;
        let takes = self.takes(number, &prepared)?;
        if takes.iter().any(|(source, _)| *source == 1) {
            return Ok((prepared, takes));
        }
        let mut takes = Vec::from_iter(takes.into_iter().map(|(_, take)| take));
        prepared.align(&self.inputs[0], &mut takes);
        Ok((prepared, takes.into_iter().map(|take| (0, take)).collect()))
    }

    fn copy(
        &mut self,
        job: &Writing<'_>,
        source: usize,
        takes: &[Take],
        is_last: bool,
    ) -> Result<(), Error> {
        if is_last {
            job.copy(&mut self.inputs[source], takes)
        } else {
            job.copy_some(&mut self.inputs[source], takes)
        }
    }
}
