//! The inputs of a join, checked against the first one.

use std::collections::BTreeSet;
use std::ops::Range;

use super::super::edit::conversion;
use super::super::select::{Axes, Casts, UnusedCast};
use super::batch::PartStep;
use super::{JoinFault, check_meaning};
use crate::cast::{Cast, CastError, Casting, result_type};
use crate::dtype::DType;
use crate::error::{Cause, Error};
use crate::execute::Workers;
use crate::index::resolve::Selection;
use crate::input::{Input, Location, Notes, OpenOptions, Seen, natural};
use crate::job::inputs::{InputRef, Inputs};
use crate::job::select::{Choice, Select, choices, leave_out_lacking, select};
use crate::output::{Becomes, LayoutFault, Output, Prepared};
use crate::region::OpenIndex;
use crate::shape::{AskedAxis, Order, dimension, normalize_axis};
use crate::tensor::{TensorInfo, shortened};

pub struct JoinOptions<'a> {
    pub along: Along,
    pub axes: Axes,
    /// How the inputs are opened; names or globs of the tensors that are joined, and whether the
    /// others are kept, stand here too.
    pub open: OpenOptions,
    /// What tensors that are joined are seen as.
    pub seen: Seen,
    /// What is taken of every tensor before it is joined.
    pub index: OpenIndex<'a>,
    /// What the elements of joined tensors are cast to.
    pub casts: Casts,
    /// How many inputs are opened at a time.
    pub workers: Workers,
}

/// Inputs that fit together.
pub(super) struct Joined<'a> {
    pub(super) options: JoinOptions<'a>,
    pub(super) inputs: Inputs<'a>,
    pub(super) order: Order,
    /// The tensors of the output, in the order of the first input.
    pub(super) tensors: Vec<JoinTarget>,
    /// The names of tensors that are left out, since the output has no such dtype.
    pub(super) lacking: BTreeSet<String>,
    /// The shapes that the index is applied to, where its lists are in files.
    indexed_shapes: BTreeSet<Vec<u64>>,
    /// The dtypes of tensors that are of another type than those of the first input.
    other_dtypes: Vec<DType>,
}

pub(super) struct JoinTarget {
    /// Its number in the first input.
    pub(super) number: usize,
    /// How many of those before it are joined.
    pub(super) before: usize,
    /// How it is joined; `None` for a tensor that is taken once.
    pub(super) join: Option<JoinedTensor>,
}

/// What is copied of one tensor of one input.
pub(super) struct ChosenPart {
    pub(super) number: usize,
    pub(super) selection: Selection,
    pub(super) step: PartStep,
    /// Its length along the joined axis.
    len: u64,
}

impl<'a> Joined<'a> {
    /// Read the headers of all inputs, and check that they fit together.
    pub(super) fn open(
        locations: &'a [Location],
        mut options: JoinOptions<'a>,
        output: &Output,
    ) -> Result<Joined<'a>, Error> {
        let order = output.options.order;
        note_order(locations, &options.open.notes);
        let inputs = Inputs::open(locations, &options.open, options.seen.clone())?;
        let first = inputs.first();
        let named = options.open.tensors.clone();
        join_by_dimension(first, &mut options)?;
        let (tensors, lacking) = targets(first, &mut options, &named, output)?;
        let joins = tensors.iter().filter(|target| target.join.is_some());
        options.casts = options.casts.of_several(joins.clone().count() > 1);
        let shapes = joins.map(|target| first.contents.tensors.at(target.number).shape);
        let indexed_shapes = shapes.collect();
        let other_dtypes = Vec::new();
        let mut joined =
            Joined { options, inputs, order, tensors, lacking, indexed_shapes, other_dtypes };
        joined.look_at_others()?;
        joined.inputs.all_seen()?;
        Ok(joined)
    }

    fn look_at_others(&mut self) -> Result<(), Error> {
        let mut is_told = false;
        for numbers in self.inputs.others() {
            let seen = self.inputs.look(numbers, &self.options.workers, |number, input| {
                let chosen = self.choose(number, input)?;
                let other_name = self.other_name(input, &chosen);
                let lens: Vec<u64> = chosen.iter().map(|chosen| chosen.len).collect();
                let dtypes: Vec<DType> =
                    chosen.iter().filter_map(|one| one.step.other_dtype()).collect();
                let mut shapes = Vec::new();
                if !self.options.index.lists.is_empty() {
                    shapes.extend(chosen.into_iter().map(|one| one.selection.source_shape));
                }
                Ok((lens, dtypes, shapes, other_name))
            })?;
            for (lens, dtypes, shapes, other_name) in self.inputs.keep(seen) {
                if let Some(note) = other_name.filter(|_| !std::mem::replace(&mut is_told, true)) {
                    self.options.open.notes.add(note);
                }
                for dtype in dtypes {
                    if !self.other_dtypes.contains(&dtype) {
                        self.other_dtypes.push(dtype);
                    }
                }
                let joins = self.tensors.iter_mut().filter_map(|target| target.join.as_mut());
                for (join, len) in joins.zip(lens) {
                    join.push(len)?;
                }
                self.indexed_shapes.extend(shapes);
            }
        }
        Ok(())
    }

    /// What there is to say of an input whose only tensor has another name than the one that it is joined to.
    fn other_name(&self, input: &Input, chosen: &[ChosenPart]) -> Option<String> {
        let [JoinTarget { number, .. }] = self.tensors.as_slice() else { return None };
        let first = self.first().contents.tensors.name(*number)?;
        let name = name(input, chosen.first()?.number).filter(|name| *name != first)?;
        let [first, name] = [first, name].map(shortened);
        Some(format!("{}: its tensor {name:?} is joined to {first:?}", input.location))
    }

    /// Look at all positions in the files of lists, for every shape of an input.
    pub(super) fn check_lists(&self) -> Result<(), Error> {
        self.options.index.check_lists(&self.indexed_shapes)
    }

    pub(super) fn first(&self) -> &Input {
        self.inputs.first()
    }

    /// What becomes of the tensor of the first input that has the name of one of another input.
    pub(super) fn counterpart_of(&self, input: &Input, number: usize) -> Option<&JoinTarget> {
        let ours = self.first().contents.tensors.number_of(name(input, number)?)?;
        let target = self.tensors.binary_search_by_key(&ours, |target| target.number);
        self.tensors.get(target.ok()?)
    }

    fn dtypes(&self) -> impl Iterator<Item = DType> + Clone {
        let joined = self.tensors.iter().filter(|target| target.join.is_some());
        joined.map(|target| self.first().contents.tensors.at(target.number).dtype)
    }

    /// Refuse a cast that no tensor needs. Returns how many tensors a cast leaves as they are.
    pub(super) fn check_casts(&self) -> Result<usize, UnusedCast> {
        let casts = &self.options.casts;
        casts.refuse_unused(self.dtypes().chain(self.other_dtypes.iter().cloned()))?;
        Ok(casts.count_left(self.dtypes()))
    }

    pub(super) fn is_mixed(&self) -> bool {
        !self.other_dtypes.is_empty()
    }

    /// The input with that number, with what is copied of each joined tensor.
    pub(super) fn lend_checked(
        &self,
        number: usize,
    ) -> Result<(InputRef<'_>, Vec<ChosenPart>), Error> {
        let input = self.inputs.lend(number)?;
        let chosen = self.choose(number, &input)?;
        let joins = self.tensors.iter().filter_map(|target| target.join.as_ref());
        if joins.zip(&chosen).any(|(join, chosen)| join.len(number) != chosen.len) {
            return Err(Error::file(&input.location, JoinFault::Changed));
        }
        Ok((input, chosen))
    }

    /// What is joined of an input, checked against the first one.
    fn choose(&self, number: usize, input: &Input) -> Result<Vec<ChosenPart>, Error> {
        let failed = |fault: JoinFault| Error::file(&input.location, fault);
        let joins = || self.tensors.iter().filter(|target| target.join.is_some());
        let first = &self.first().contents.tensors;
        let chooses =
            !self.options.open.tensors.is_empty() || !self.options.open.exclude.is_empty();
        // an array without a name is the tensor that is joined, where that is one
        let by_name = chooses && !(input.is_nameless() && joins().count() == 1);
        let patterns = if by_name { self.options.open.tensors.as_slice() } else { &[] };
        let mut ours = input.find(patterns)?;
        ours.retain(|number| !self.is_lacking(input, *number));
        let is_joined = |&number: &usize| {
            self.counterpart_of(input, number).is_some_and(|target| target.join.is_some())
        };
        if let Some(surplus) = ours.iter().copied().find(|ours| by_name && !is_joined(ours)) {
            let name = name(input, surplus).unwrap_or("-").to_owned();
            return Err(failed(JoinFault::Surplus { number, name }));
        }
        let several = joins().nth(1).is_some();
        let mut all = Vec::with_capacity(ours.len());
        for target in joins() {
            let Some(join) = &target.join else { continue };
            let theirs = &first.at(target.number);
            let found = match theirs.name.as_deref().filter(|_| by_name) {
                Some(name) => input.contents.tensors.number_of(name),
                None => ours.first().copied(),
            };
            let Some(found) = found.filter(|found| ours.binary_search(found).is_ok()) else {
                let name = theirs.name.clone().unwrap_or_default();
                return Err(failed(JoinFault::Missing { number, name }));
            };
            let tensor = &input.contents.tensors.at(found);
            let chosen = self.fit(number, found, tensor, theirs, join);
            all.push(chosen.map_err(|cause| input.failed_tensor(tensor, several, cause))?);
        }
        Ok(all)
    }

    /// Whether a tensor has the name of one that is left out, since the output has no such dtype.
    pub(super) fn is_lacking(&self, input: &Input, number: usize) -> bool {
        name(input, number).is_some_and(|name| self.lacking.contains(name))
    }

    /// Check the shape and the dtype of a tensor against those of the first input.
    fn fit(
        &self,
        number: usize,
        found: usize,
        tensor: &TensorInfo,
        theirs: &TensorInfo,
        join: &JoinedTensor,
    ) -> Result<ChosenPart, Cause> {
        let selection = self.options.index.resolve(tensor)?;
        let len = join.fit(number, &selection.shape())?;
        // last: unpacking and casts help where the shapes fit
        check_meaning(number, tensor, theirs)?;
        let step = self.options.casts.step(number, &tensor.dtype, &theirs.dtype)?;
        Ok(ChosenPart { number: found, selection, step, len })
    }

    pub(super) fn prepare(&self, output: &Output) -> Result<Prepared, Error> {
        let first = self.first();
        let patterns = self.options.open.tensors.clone();
        let select_all =
            Select { patterns, keep_rest: self.options.open.rest, ..Select::default() };
        let selected = select(first, &select_all, output)?;
        let mut targets = self.tensors.iter();
        let preparation = selected.prepare(|of| {
            let Some(join) = targets.next().and_then(|target| target.join.as_ref()) else {
                return Ok(Becomes::kept(of.tensor.shape.clone()));
            };
            let axes = self.options.index.resolve(&of.tensor)?.source_axes();
            let cast = self.options.casts.of(&of.tensor.dtype)?;
            Ok(Becomes { shape: join.result(), cast, axes: join.axes(axes) })
        })?;
        let prepared = preparation.finish(&first.contents.metadata)?;
        for target in &self.tensors {
            let bits = first.contents.tensors.at(target.number).dtype.item_bits();
            if let Some(join) = target.join.as_ref().filter(|_| !bits.is_multiple_of(8)) {
                let cut = join.cut_byte(self.inputs.locations.len(), bits, self.order);
                if let Some(number) = cut {
                    let fault = JoinFault::CutsByte { number, item_bits: bits, names: None };
                    return Err(Error::file(&self.inputs.locations[number], fault));
                }
            }
        }
        Ok(prepared)
    }
}

impl Casts {
    /// What elements of part `number` go through, beside a first part whose elements are `first`.
    pub(crate) fn step(
        &self,
        number: usize,
        dtype: &DType,
        first: &DType,
    ) -> Result<PartStep, Cause> {
        if let Some(step) = PartStep::as_first(dtype, first) {
            return Ok(step);
        }
        let after = |dtype: &DType| -> Result<DType, CastError> {
            Ok(self.of(dtype)?.map_or_else(|| dtype.clone(), Cast::to))
        };
        let ours = after(dtype)?;
        let theirs = after(first)?;
        let is_whole = |dtype: &DType| dtype.item_bits().is_multiple_of(8);
        if conversion(&ours, &theirs).is_ok() && is_whole(dtype) && is_whole(first) {
            let cast = match self.of(dtype)? {
                Some(cast) => cast,
                None => Cast::new(dtype, &theirs, Casting::Unsafe)?,
            };
            return Ok(PartStep::own(cast, first));
        }
        let can_be = |common: &DType| {
            let can =
                |dtype| Cast::new(dtype, common, Casting::SameKind).is_ok() && is_whole(dtype);
            can(dtype) && can(first)
        };
        let common = result_type(&ours, &theirs).filter(can_be);
        let dtype = dtype.clone();
        let first = first.clone();
        Err(JoinFault::DType { number, dtype, first, common, names: None }.into())
    }
}

/// Where a dimension is named, and no tensors are, join those that have it, and keep the others.
fn join_by_dimension(first: &Input, options: &mut JoinOptions<'_>) -> Result<(), Error> {
    let AskedAxis::Name(name) = &options.axes.default else { return Ok(()) };
    if !options.open.tensors.is_empty() || first.is_nameless() {
        return Ok(());
    }
    let excluded = first.excluded()?;
    let mut all: Vec<Option<String>> = Vec::new();
    for (number, tensor) in first.contents.tensors.iter().enumerate() {
        let axes: Vec<Option<usize>> = (0..tensor.shape.len()).map(Some).collect();
        let names = tensor.dimension_names(&axes);
        let is_taken = excluded.binary_search(&number).is_err();
        if is_taken && dimension(name, &names).is_ok() {
            options.open.tensors.extend(tensor.name);
        }
        let is_new = |name: &Option<String>| !all.contains(name);
        let new: Vec<_> = names.into_iter().filter(is_new).collect();
        all.extend(new);
    }
    if options.open.tensors.is_empty() {
        dimension(name, &all).map_err(|fault| Error::file(&first.location, fault))?;
    }
    options.open.rest = true;
    Ok(())
}

/// The tensors of the output, by what the first input holds, and the names of those that the output has no dtype for;
/// these are left out, but for those that are `named` themselves.
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
    let mut before = 0;
    for (number, (tensor, choice)) in first.contents.tensors.iter().zip(choices).enumerate() {
        let join = match choice {
            Choice::LeftOut => continue,
            Choice::Kept => None,
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
        targets.push(JoinTarget { number, before, join });
        before += usize::from(choice == Choice::Sliced);
    }
    Ok((targets, lacking))
}

/// Say of inputs whose names differ in numbers alone that these do not ascend.
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
        notes.add(format_args!("{one} is joined before {other}: inputs stand in the order given"));
    }
}

fn name(input: &Input, number: usize) -> Option<&str> {
    input.contents.tensors.name(number)
}

/// The kind of axis along which tensors are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Along {
    /// One that they have (np.concatenate).
    Existing,
    /// A new one (np.stack).
    New,
}

pub(crate) struct JoinedTensor {
    /// The shape of the first input's, after the index, and with the new axis of a stack.
    pub(crate) shape: Vec<u64>,
    /// The kind of axis along which it is joined, and its number.
    along: Along,
    axis: usize,
    /// Where each input ends along that axis; empty where all have length 1.
    ends: Vec<u64>,
    total: u64,
}

impl JoinedTensor {
    /// The tensor whose first part has this shape, joined along an axis of which a negative one counts
    /// from the end.
    pub(crate) fn new(mut shape: Vec<u64>, asked: i64, along: Along) -> Result<Self, JoinFault> {
        let ndim = match along {
            Along::Existing if shape.is_empty() => return Err(JoinFault::NoAxes),
            Along::Existing => shape.len(),
            Along::New => shape.len() + 1,
        };
        let axis = normalize_axis(asked, ndim).ok_or(JoinFault::Axis { axis: asked, ndim })?;
        if along == Along::New {
            shape.insert(axis, 1);
        }
        let total = shape[axis];
        let ends = if total == 1 { vec![] } else { vec![total] };
        Ok(JoinedTensor { shape, along, axis, ends, total })
    }

    /// The length along the joined axis of a part of this shape, from input `number`.
    pub(crate) fn fit(&self, number: usize, shape: &[u64]) -> Result<u64, JoinFault> {
        let mut first = self.shape.clone();
        let (fits, len, axis) = match self.along {
            Along::New => {
                first.remove(self.axis);
                (shape == first, 1, None)
            }
            Along::Existing => {
                let same = |(axis, (a, b)): (usize, (&u64, &u64))| axis == self.axis || a == b;
                let fits =
                    shape.len() == first.len() && shape.iter().zip(&first).enumerate().all(same);
                (fits, shape.get(self.axis).copied().unwrap_or(0), Some(self.axis))
            }
        };
        if !fits {
            let shape = shape.to_vec();
            return Err(JoinFault::Shape { number, shape, first, axis, names: None });
        }
        Ok(len)
    }

    /// Add a part of this length behind the others.
    pub(crate) fn push(&mut self, len: u64) -> Result<(), Cause> {
        let before = self.total;
        self.total = before.checked_add(len).ok_or(LayoutFault::TooLarge)?;
        if self.ends.is_empty() && len == 1 {
            return Ok(());
        }
        if self.ends.is_empty() {
            self.ends = (1..=before).collect();
        }
        self.ends.push(self.total);
        Ok(())
    }

    /// Of `count` parts, the first whose rows are not whole bytes, where elements are smaller.
    pub(crate) fn cut_byte(&self, count: usize, item_bits: u64, order: Order) -> Option<usize> {
        let (_, inner) = self.rows_and_inner(order);
        let cuts = |number: &usize| {
            let bits = u128::from(self.len(*number)) * u128::from(inner) * u128::from(item_bits);
            bits % 8 != 0
        };
        (0..count).find(cuts)
    }

    /// Where an input lies along the joined axis of the result.
    pub(crate) fn range(&self, number: usize) -> Range<u64> {
        let start = match number.checked_sub(1) {
            Some(before) => self.ends.get(before).copied().unwrap_or(number as u64),
            None => 0,
        };
        start..self.ends.get(number).copied().unwrap_or(start + 1)
    }

    pub(crate) fn len(&self, number: usize) -> u64 {
        let Range { start, end } = self.range(number);
        end - start
    }

    pub(crate) fn result(&self) -> Vec<u64> {
        let mut shape = self.shape.clone();
        shape[self.axis] = self.total;
        shape
    }

    /// The axes of the result by those of an input, of which each is one of a tensor or a new one.
    pub(crate) fn axes(&self, mut axes: Vec<Option<usize>>) -> Vec<Option<usize>> {
        if self.along == Along::New {
            axes.insert(self.axis.min(axes.len()), None);
        }
        axes
    }

    /// The number of rows of the result, one for each position on the axes before the joined one in
    /// the order of the output; and how many elements each position on the joined axis has in a row.
    pub(crate) fn rows_and_inner(&self, order: Order) -> (u64, u64) {
        let before = &self.shape[..self.axis];
        let after = &self.shape[self.axis + 1..];
        let (rows, inner) = if order == Order::C { (before, after) } else { (after, before) };
        // a result without elements may have axes of any length
        let product = |lens: &[u64]| lens.iter().fold(1u64, |all, &len| all.saturating_mul(len));
        (product(rows), product(inner))
    }
}
