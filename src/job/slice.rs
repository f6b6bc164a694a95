//! Slices of one input: by an index of one tensor or several, or by an index tensor of one; and
//! slices that a program holds, of any number of inputs.

use std::borrow::Cow;
use std::iter;
use std::sync::Arc;

use super::assembly::members::Members;
use super::assembly::step::Step;
use super::assembly::{Assembly, Member, MemberRegion, Recipe};
use super::copying::Copying;
use super::inputs::InputRef;
use super::select::{
    Casts, Choice, Select, Selected, all_indexed_alike, note_alike, select, with_dimensions,
};
use crate::error::{Cause, Error};
use crate::execute::Progress;
use crate::gather;
use crate::index::IndexExpr;
use crate::index::resolve::ResolveError;
use crate::input::{Input, SelectFault, Transform};
use crate::output::{Output, Prepared, TensorChange};
use crate::region::{
    GatheredList, IndexTensor, OpenIndex, Region, arrange_axes, gathered_axes, gathered_shape,
};
use crate::shape::{Arrangement, Order, Transposition};
use crate::tensor::{TensorInfo, shortened};

/// The options of a slice.
pub struct SliceOptions<'a> {
    /// The selection of the tensors, and their names in the output.
    pub select: Select,
    /// The dtypes, shapes or fields that sliced tensors are read as.
    pub transform: Transform,
    /// The index that is applied to each sliced tensor.
    pub index: OpenIndex<'a>,
    pub transpose: Transposition,
    pub casts: Casts,
}

impl SliceOptions<'_> {
    /// The selection, with tensors chosen if none are named. An index with names of dimensions slices the tensors that
    /// have one of them, and the others are kept. Any other index applies to all tensors, if the axes that it indexes
    /// have equal lengths.
    fn meant(&self, input: &Input, output: &Output) -> Result<Cow<'_, Select>, Error> {
        let IndexExpr { names, .. } = self.index.expr;
        let Select { patterns, whole, keep_rest, .. } = &self.select;
        if !patterns.is_empty() || *whole {
            return Ok(Cow::Borrowed(&self.select));
        }
        if names.is_empty() {
            let may_be_all = !keep_rest && input.exclude.is_empty() && output.format.holds_several;
            let all = may_be_all.then(|| all_indexed_alike(input, &self.index)).flatten();
            return Ok(match all {
                Some(_) => Cow::Owned(Select { whole: true, ..self.select.clone() }),
                None => Cow::Borrowed(&self.select),
            });
        }
        let count = input.named_count();
        let format = output.format;
        if count > 1 && !format.holds_several {
            let fault = SelectFault::HoldsOne { count, keep_rest: false, format: format.name };
            return Err(fault.into());
        }
        let missing = |item, fault| ResolveError::new(item, fault).into();
        let patterns = with_dimensions(input, names, missing)?;
        let keep_rest = self.select.keep_rest || count > 1;
        Ok(Cow::Owned(Select { patterns, keep_rest, ..self.select.clone() }))
    }
}

pub struct GatherOptions {
    /// The axis of the positions; without it, tuples name positions on the first axes.
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

    /// The arrangement of the axes of the result.
    fn arrange(&self, tensor: &TensorInfo, indices: &TensorInfo) -> Result<Arrangement, Error> {
        let shape = gathered_shape(tensor, indices, self.axis, &self.how)?;
        let axes = gathered_axes(tensor, indices, self.axis, &self.how);
        Ok(arrange_axes(tensor, shape, &axes, &self.transpose)?)
    }
}

impl<'a> Copying<'a> {
    /// Slice, convert, trim: write what an index selects of one tensor or several.
    pub fn slice(
        mut input: Input,
        options: &'a SliceOptions<'a>,
        output: Output,
    ) -> Result<Copying<'a>, Error> {
        if !options.transform.is_plain() {
            let meant = options.meant(&input, &output)?;
            let sliced = select(&input, &meant, &output)?.sliced_numbers();
            input.transform(&options.transform, &sliced)?;
        }
        let meant = options.meant(&input, &output)?;
        let selected = select(&input, &meant, &output)?;
        if meant.whole && !options.select.whole {
            note_alike(&input, selected.sliced());
        }
        let several = selected.sliced() > 1;
        let casts = options.casts.clone().of_several(several);
        let result = |of: &Selected| -> Result<Sliced, Error> {
            let sliced = sliced(&of.tensor, of.sliced, options, &casts, output.options.order);
            let name = of.tensor.name.as_deref();
            sliced.map_err(|cause| Error::from(cause).of_tensor(name, several))
        };
        let preparation = selected.prepare(|of| Ok(result(of)?.change))?;
        casts.refuse_unused(selected.sliced_dtypes())?;
        let left = casts.count_left(selected.sliced_dtypes());
        let mut prepared = preparation.finish(&input.contents.metadata)?;
        note_metadata(&input, &prepared.output);
        let mut members = Members::default();
        members.add_input(input.contents.tensors.len())?;
        selected.iter().for_each(|of| members.push(of.number as u32));
        let choices = selected.into_choices();
        let recipe = SliceRecipe { options, casts, choices };
        let assembly = Assembly::of_held(vec![InputRef::Owned(Box::new(input))], members, recipe);
        assembly.align(&mut prepared, |_| u64::MAX)?;
        Ok(Copying::new(prepared, assembly, left))
    }

    /// Gather: write what an index tensor names of one tensor.
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
        let change = TensorChange { shape, cast: casts.of(&tensor.dtype)?, axes };
        let axes = arranged.in_memory(output.options.order);
        let mut prepared = output.prepare(&input, tensor, change)?;
        let region = indices.arranged(tensor, *axis, how, &axes)?;
        let mut members = Members::default();
        members.add_input(1)?;
        members.push(0);
        let taken = MemberRegion { shard: tensor.shard(), region, step: Step::AsFirst(1) };
        let inputs = vec![InputRef::Owned(Box::new(input))];
        let assembly = Assembly::of_held(inputs, members, vec![taken]);
        assembly.align(&mut prepared, |_| u64::MAX)?;
        Ok(Copying::new(prepared, assembly, 0))
    }
}

/// The slices of the tensors of an input.
struct SliceRecipe<'a> {
    options: &'a SliceOptions<'a>,
    casts: Casts,
    /// The choice for each tensor.
    choices: Vec<Choice>,
}

impl Recipe for SliceRecipe<'_> {
    fn taken(
        &self,
        input: &Input,
        member: &Member<'_>,
        order: Order,
    ) -> Result<MemberRegion, Error> {
        let SliceRecipe { options, casts, choices } = self;
        let tensor = &input.contents.tensors.at(member.in_input);
        let is_sliced = choices[member.in_input] == Choice::Sliced;
        let sliced = sliced(tensor, is_sliced, options, casts, order);
        let sliced =
            sliced.map_err(|cause| Error::from(cause).of_tensor(tensor.name.as_deref(), true))?;
        Ok(MemberRegion { shard: tensor.shard(), region: sliced.region, step: Step::AsFirst(1) })
    }

    fn lists(&self) -> Vec<&GatheredList> {
        self.options.index.lists.lists().collect()
    }
}

/// Regions that were made before.
impl Recipe for Vec<MemberRegion> {
    fn taken(&self, _: &Input, member: &Member<'_>, _: Order) -> Result<MemberRegion, Error> {
        Ok(self[member.number as usize].clone())
    }

    fn lists(&self) -> Vec<&GatheredList> {
        self.iter().flat_map(|taken| taken.region.lists()).collect()
    }
}

/// Note that the files of a checkpoint have different texts under one key of their metadata, and that a single output
/// file has the last text.
fn note_metadata(input: &Input, output: &Output) {
    let Some(checkpoint) = input.checkpoint().filter(|_| !output.is_of_folders()) else { return };
    let all = &input.contents.metadata.texts;
    let mut texts = checkpoint.metadata.iter().flatten();
    if let Some((key, _)) =
        texts.find(|(key, text)| output.needs_metadata(key) && all.get(*key) != Some(text))
    {
        let location = &input.location;
        input.notes.add(format_args!(
            "{location}: metadata {:?} differ between its files; the last file's text is taken",
            shortened(key)
        ));
    }
}

struct Sliced {
    change: TensorChange,
    region: Arc<dyn Region>,
}

/// The description of a tensor in the output: sliced, or only copied.
fn sliced(
    tensor: &TensorInfo,
    is_sliced: bool,
    options: &SliceOptions<'_>,
    casts: &Casts,
    order: Order,
) -> Result<Sliced, Cause> {
    if !is_sliced {
        let region = <dyn Region>::whole(tensor, order)?;
        return Ok(Sliced { change: TensorChange::unchanged(tensor.shape.clone()), region });
    }
    let selection = options.index.resolve(tensor)?;
    let axes = OpenIndex::arrange(tensor, &selection, &options.transpose)?;
    let cast = casts.of(&tensor.dtype)?;
    let region = options.index.lists.region(tensor, &selection, &axes.in_memory(order))?;
    let shape = axes.shape().to_vec();
    let axes = axes.of_whole_axes(&selection.source_axes());
    Ok(Sliced { change: TensorChange { shape, cast, axes }, region })
}

/// A slice of a tensor of an input, held by a program.
pub(crate) struct HeldSlice<'a> {
    pub(crate) input: &'a Input,
    pub(crate) tensor: &'a TensorInfo,
    pub(crate) change: TensorChange,
    /// The bytes, in the memory order of the output.
    pub(crate) region: Arc<dyn Region>,
}

/// Write slices, which are the members of an output in their order, each with the step of its
/// elements.
pub(super) fn write_slices(
    slices: &[HeldSlice<'_>],
    mut members: Members,
    steps: Vec<Step>,
    prepared: &mut Prepared,
    progress: &Progress,
) -> Result<(), Error> {
    let mut inputs = Vec::new();
    for of_one in slices.chunk_by(|one, other| std::ptr::eq(one.input, other.input)) {
        inputs.push(InputRef::Borrowed(of_one[0].input));
        members.add_input(of_one.len())?;
    }
    let taken = slices.iter().zip(steps).map(|(HeldSlice { tensor, region, .. }, step)| {
        MemberRegion { shard: tensor.shard(), region: Arc::clone(region), step }
    });
    let mut assembly = Assembly::of_held(inputs, members, Vec::from_iter(taken));
    assembly.align(prepared, |_| u64::MAX)?;
    assembly.write(prepared, progress)
}
