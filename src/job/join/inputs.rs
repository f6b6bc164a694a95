//! The inputs of concat and stack, checked against the first one.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Arc;

use super::JoinFault;
use crate::dtype::DType;
use crate::error::{Cause, Error};
use crate::execute::Workers;
use crate::index::resolve::Selection;
use crate::input::{Input, Location, Notes, OpenOptions, Transform, natural};
use crate::job::assembly::members::{Along, JoinedTensor, Members};
use crate::job::assembly::step::{Step, check_meaning};
use crate::job::assembly::{Assembly, Member, MemberRegion, Recipe, Rest};
use crate::job::inputs::Inputs;
use crate::job::select::{
    Axes, Casts, Choice, Select, UnusedCast, choices, leave_out_lacking, select, with_dimensions,
};
use crate::output::{Output, Prepared, TensorChange};
use crate::region::{GatheredList, IndexedShape, OpenIndex};
use crate::shape::{AskedAxis, Order};
use crate::sink::Fingerprint;
use crate::tensor::{TensorInfo, Tensors, shortened};

pub struct JoinOptions<'a> {
    pub along: Along,
    pub axes: Axes,
    /// How the inputs are opened, which tensors are joined (names or globs), and whether the other tensors are kept.
    pub open: OpenOptions,
    /// The dtypes, shapes or fields that joined tensors are read as.
    pub transform: Transform,
    /// The index that is applied to every tensor before it is joined.
    pub index: OpenIndex<'a>,
    /// Casts of the elements of joined tensors.
    pub casts: Casts,
    /// The number of inputs that are opened at the same time.
    pub workers: Workers,
}

/// Inputs that fit together.
pub(super) struct Joined<'a> {
    inputs: Inputs<'a>,
    recipe: JoinRecipe<'a>,
    /// The tensors of the output, in the order of the first input.
    tensors: Vec<JoinTarget>,
    /// The numbers of the tensors that are joined, input after input.
    numbers: Vec<u32>,
    members: Members,
    /// The names of tensors that are left out because the output has no such dtype.
    lacking: BTreeSet<String>,
    /// The dtypes of tensors that differ from the first input's dtypes.
    other_dtypes: Vec<DType>,
}

struct JoinTarget {
    /// The tensor's number in the first input.
    number: usize,
    /// How the tensor is joined; `None` for a tensor that is taken once.
    join: Option<JoinedTensor>,
}

/// The recipe of a join.
struct JoinRecipe<'a> {
    options: JoinOptions<'a>,
    /// The tensors of the first input.
    first: Arc<Tensors>,
    /// The shapes that an index with lists in files is applied to.
    indexed_shapes: BTreeSet<IndexedShape>,
}

/// A tensor of one input that is joined.
struct ChosenMember {
    selection: Selection,
    step: Step,
    /// The length along the joined axis.
    len: u64,
}

/// The tensors found in an input after the first.
struct FoundTensors {
    /// The number of tensors of the input, and the numbers of those that are joined.
    count: usize,
    numbers: Vec<u32>,
    lens: Vec<u64>,
    other_dtypes: Vec<DType>,
    shapes: Vec<IndexedShape>,
    note: Option<String>,
}

impl<'a> Joined<'a> {
    /// Read the headers of all inputs, and check that they fit together.
    pub(super) fn open(
        locations: &'a [Location],
        mut options: JoinOptions<'a>,
        output: &Output,
    ) -> Result<Joined<'a>, Error> {
        note_order(locations, &options.open.notes);
        let inputs = Inputs::open(locations, &options.open, options.transform.clone())?;
        let first = inputs.first();
        let named = options.open.tensors.clone();
        join_by_dimension(first, &mut options)?;
        let (tensors, lacking) = targets(first, &mut options, &named, output)?;
        let first = Arc::clone(&first.contents.tensors);
        let joins = tensors.iter().filter(|target| target.join.is_some());
        options.casts = options.casts.of_several(joins.clone().count() > 1);
        let index = options.index;
        let shapes = joins.clone().map(|target| index.indexed_shape(&first.at(target.number)));
        let indexed_shapes = shapes.collect();
        let numbers = joins.map(|target| target.number as u32).collect();
        let mut members = Members::default();
        members.add_input(first.len())?;
        let recipe = JoinRecipe { options, first, indexed_shapes };
        let other_dtypes = Vec::new();
        let mut joined =
            Joined { inputs, recipe, tensors, numbers, members, lacking, other_dtypes };
        joined.look_at_others()?;
        joined.inputs.all_seen()?;
        Ok(joined)
    }

    fn look_at_others(&mut self) -> Result<(), Error> {
        let mut is_told = false;
        for numbers in self.inputs.others() {
            let workers = &self.recipe.options.workers;
            let found_files =
                self.inputs.look(numbers, workers, |number, input| self.choose(number, input))?;
            for found in self.inputs.keep(found_files) {
                if let Some(note) = found.note.filter(|_| !std::mem::replace(&mut is_told, true)) {
                    self.recipe.options.open.notes.add(note);
                }
                for dtype in found.other_dtypes {
                    if !self.other_dtypes.contains(&dtype) {
                        self.other_dtypes.push(dtype);
                    }
                }
                let joins = self.tensors.iter_mut().filter_map(|target| target.join.as_mut());
                for (join, len) in joins.zip(found.lens) {
                    join.push(len)?;
                }
                let before = self.members.add_input(found.count)?;
                self.numbers.extend(found.numbers.iter().map(|number| before + number));
                self.recipe.indexed_shapes.extend(found.shapes);
            }
        }
        Ok(())
    }

    /// The note about an input whose only tensor is joined to a tensor of another name.
    fn other_name(&self, input: &Input, chosen: usize) -> Option<String> {
        let [JoinTarget { number, .. }] = self.tensors.as_slice() else { return None };
        let first = self.recipe.first.name(*number)?;
        let name = name(input, chosen).filter(|name| *name != first)?;
        let [first, name] = [first, name].map(shortened);
        Some(format!("{}: its tensor {name:?} is joined to {first:?}", input.location))
    }

    fn joins(&self) -> impl Iterator<Item = (usize, &JoinedTensor)> + Clone {
        self.tensors.iter().filter_map(|target| Some((target.number, target.join.as_ref()?)))
    }

    fn dtypes(&self) -> impl Iterator<Item = DType> + Clone {
        self.joins().map(|(number, _)| self.recipe.first.at(number).dtype)
    }

    /// Refuse a cast that no tensor needs. Returns how many tensors a cast leaves unchanged.
    pub(super) fn check_casts(&self) -> Result<usize, UnusedCast> {
        let casts = &self.recipe.options.casts;
        casts.refuse_unused(self.dtypes().chain(self.other_dtypes.iter().cloned()))?;
        Ok(casts.count_left(self.dtypes()))
    }

    /// Find the tensors of an input that are joined, and check them against the first input.
    fn choose(&self, number: usize, input: &Input) -> Result<FoundTensors, Error> {
        let failed = |fault: JoinFault| Error::file(&input.location, fault);
        let several = self.joins().nth(1).is_some();
        // an input with a single unnamed array is joined by that array
        let by_name = self.recipe.chooses_by_name() && (several || !input.is_nameless());
        let open = &self.recipe.options.open;
        let mut ours = input.find(if by_name { &open.tensors } else { &[] })?;
        ours.retain(|at| name(input, *at).is_none_or(|name| !self.lacking.contains(name)));
        let is_joined = |&at: &usize| {
            let ours = name(input, at).and_then(|name| self.recipe.first.number_near(name, at));
            let target = ours.map(|ours| self.tensors.binary_search_by_key(&ours, |it| it.number));
            matches!(target, Some(Ok(target)) if self.tensors[target].join.is_some())
        };
        if let Some(surplus) = ours.iter().copied().find(|ours| by_name && !is_joined(ours)) {
            let name = name(input, surplus).unwrap_or("-").to_owned();
            return Err(failed(JoinFault::Surplus { number, name }));
        }
        let tensors = &input.contents.tensors;
        let count = tensors.len();
        let (numbers, lens) = (Vec::with_capacity(ours.len()), Vec::with_capacity(ours.len()));
        let (other_dtypes, shapes, note) = (Vec::new(), Vec::new(), None);
        let mut all = FoundTensors { count, numbers, lens, other_dtypes, shapes, note };
        for (likely, join) in self.joins() {
            let theirs = &self.recipe.first.at(likely);
            let found = match theirs.name.as_deref().filter(|_| by_name) {
                Some(name) => tensors.number_near(name, likely),
                None => ours.first().copied(),
            };
            let Some(found) = found.filter(|found| ours.binary_search(found).is_ok()) else {
                let name = theirs.name.clone().unwrap_or_default();
                return Err(failed(JoinFault::Missing { number, name }));
            };
            let tensor = &tensors.at(found);
            let chosen = self.recipe.fit(number, tensor, theirs, join);
            let chosen = chosen.map_err(|cause| input.failed_tensor(tensor, several, cause))?;
            all.note = self.other_name(input, found);
            all.numbers.push(found as u32);
            all.lens.push(chosen.len);
            all.other_dtypes.extend(chosen.step.other_dtype());
            if !self.recipe.options.index.lists.is_empty() {
                all.shapes.push(self.recipe.options.index.indexed_shape(tensor));
            }
        }
        Ok(all)
    }

    pub(super) fn prepare(&self, output: &Output) -> Result<Prepared, Error> {
        let first = self.inputs.first();
        let JoinOptions { open, index, casts, .. } = &self.recipe.options;
        let patterns = open.tensors.clone();
        let select_all = Select { patterns, keep_rest: open.rest, ..Select::default() };
        let selected = select(first, &select_all, output)?;
        let mut targets = self.tensors.iter();
        let preparation = selected.prepare(|of| {
            let Some(join) = targets.next().and_then(|target| target.join.as_ref()) else {
                return Ok(TensorChange::unchanged(of.tensor.shape.clone()));
            };
            let axes = index.resolve(&of.tensor)?.source_axes();
            let cast = casts.of(&of.tensor.dtype)?;
            Ok(TensorChange { shape: join.result(), cast, axes: join.axes(axes) })
        })?;
        let prepared = preparation.finish(&first.contents.metadata)?;
        for (number, join) in self.joins() {
            let dtype = self.recipe.first.at(number).dtype;
            let count = self.inputs.locations.len();
            if let Some((number, fault)) = join.cut_byte(count, &dtype, output.options.order) {
                return Err(Error::file(&self.inputs.locations[number], fault));
            }
        }
        Ok(prepared)
    }

    pub(super) fn assemble(self) -> Assembly<'a> {
        let Joined { inputs, recipe, tensors, numbers, mut members, lacking, .. } = self;
        let joined = tensors.iter().filter(|target| target.join.is_some()).count();
        let mut before = 0;
        for JoinTarget { number, join } in tensors {
            if let Some(join) = join {
                let each = numbers.iter().skip(before).step_by(joined).copied();
                members.push_joined(&Vec::from_iter(each), Some(join));
                before += 1;
            } else {
                members.push(number as u32);
            }
        }
        let rest = recipe.options.open.rest.then_some(Rest { lacking });
        Assembly { inputs, members, recipe: Box::new(recipe), looks: true, rest }
    }
}

impl JoinRecipe<'_> {
    fn chooses_by_name(&self) -> bool {
        let OpenOptions { tensors, exclude, .. } = &self.options.open;
        !tensors.is_empty() || !exclude.is_empty()
    }

    /// Check the shape and the dtype of a tensor against the first input's.
    fn fit(
        &self,
        number: usize,
        tensor: &TensorInfo,
        theirs: &TensorInfo,
        join: &JoinedTensor,
    ) -> Result<ChosenMember, Cause> {
        let selection = self.options.index.resolve(tensor)?;
        let len = join.fit(number, &selection.shape())?;
        // last, as unpacking and casts help only where the shapes fit
        check_meaning(number, tensor, theirs)?;
        let step = self.options.casts.step(number, &tensor.dtype, &theirs.dtype)?;
        Ok(ChosenMember { selection, step, len })
    }
}

impl Recipe for JoinRecipe<'_> {
    fn taken(
        &self,
        input: &Input,
        member: &Member<'_>,
        order: Order,
    ) -> Result<MemberRegion, Error> {
        let changed = || Error::file(&input.location, JoinFault::Changed);
        let tensor = &input.contents.tensors.get(member.in_input).ok_or_else(changed)?;
        let failed = |cause| input.failed_tensor(tensor, member.join.is_none(), cause);
        let Some(join) = member.join else {
            return MemberRegion::whole(tensor, order).map_err(failed);
        };
        let theirs = &self.first.at(member.first as usize);
        let is_other = self.chooses_by_name() && tensor.name != theirs.name;
        let chosen = self.fit(member.at, tensor, theirs, join).map_err(failed)?;
        if is_other && tensor.name.is_some() || join.len(member.at) != chosen.len {
            return Err(changed());
        }
        let region = self.options.index.region(tensor, &chosen.selection, order);
        let region = region.map_err(failed)?;
        Ok(MemberRegion { shard: tensor.shard(), region, step: chosen.step })
    }

    fn identify(&self, work: &mut Fingerprint) -> Result<(), Error> {
        // writing never fails
        let _ = write!(work, "{:?}", self.options.transform);
        self.options.index.identify(&mut |bytes| work.add(bytes))
    }

    fn lists(&self) -> Vec<&GatheredList> {
        self.options.index.lists.lists().collect()
    }

    fn check_lists(&self) -> Result<(), Error> {
        self.options.index.check_lists(&self.indexed_shapes)
    }
}

/// Without chosen tensors and with a dimension named, join the tensors that have it, and keep the
/// others.
fn join_by_dimension(first: &Input, options: &mut JoinOptions<'_>) -> Result<(), Error> {
    let AskedAxis::Name(name) = &options.axes.default else { return Ok(()) };
    if !options.open.tensors.is_empty() || first.is_nameless() {
        return Ok(());
    }
    options.open.tensors =
        with_dimensions(first, std::slice::from_ref(name), |_, fault| fault.into())?;
    options.open.rest = true;
    Ok(())
}

/// The tensors of the output according to the first input, and the names of those without a dtype
/// in the output's format. Those are left out, unless they are in `named`.
fn targets(
    first: &Input,
    options: &mut JoinOptions<'_>,
    named: &[String],
    output: &Output,
) -> Result<(Vec<JoinTarget>, BTreeSet<String>), Error> {
    let mut chosen = first.find(&options.open.tensors)?;
    let mut choices = choices(first, &chosen, options.open.rest)?;
    let all = choices.clone();
    leave_out_lacking(first, named, output, &mut choices);
    chosen.retain(|number| choices[*number] == Choice::Sliced);
    let lacking = (0..all.len()).filter(|number| choices[*number] != all[*number]);
    let lacking = lacking.filter_map(|number| name(first, number).map(str::to_owned)).collect();
    options.open.tensors.retain(|name| !BTreeSet::contains(&lacking, name));
    let mut axes = options.axes.of_tensors(first, &chosen)?.into_iter();
    let several = chosen.len() > 1;
    let mut targets = Vec::new();
    for (number, (tensor, choice)) in first.contents.tensors.iter().zip(choices).enumerate() {
        let join = match choice {
            Choice::LeftOut => continue,
            Choice::Rest => None,
            Choice::Sliced => {
                let axis = axes.next().expect("an axis for each tensor that is chosen");
                let selection = options.index.resolve(&tensor);
                let join = selection.and_then(|selection| {
                    let axis = axis.number(|| tensor.dimension_names(&selection.source_axes()))?;
                    Ok(JoinedTensor::new(selection.shape(), axis, options.along)?)
                });
                Some(join.map_err(|cause| first.failed_tensor(&tensor, several, cause))?)
            }
        };
        targets.push(JoinTarget { number, join });
    }
    Ok((targets, lacking))
}

/// Note that the numbers in the names of the inputs do not ascend, if the names differ only in numbers.
fn note_order(locations: &[Location], notes: &Notes) {
    let names = Vec::from_iter(locations.iter().map(Location::to_string));
    let outline = |name: &String| {
        let mut outline = String::new();
        for char in name.chars() {
            match char.is_ascii_digit() {
                false => outline.push(char),
                true if outline.ends_with('0') => {}
                true => outline.push('0'),
            }
        }
        outline
    };
    if names.windows(2).all(|two| outline(&two[0]) == outline(&two[1]))
        && let Some([one, other]) = names.windows(2).find(|two| natural(&two[0], &two[1]).is_gt())
    {
        notes.add(format_args!(
            "{one} is joined before {other}: inputs are joined in the order given"
        ));
    }
}

fn name(input: &Input, number: usize) -> Option<&str> {
    input.contents.tensors.name(number)
}
