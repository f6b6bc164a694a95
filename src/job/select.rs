//! The choice of an input's tensors for an output, and their names there.
//!
//! Tensors come in the order of the file, whatever the order of the patterns.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::rename::{NewName, rename};
use crate::cast::{Cast, CastError, Casting};
use crate::dtype::{DType, NumberKind};
use crate::error::{Cause, Error, Fault};
use crate::index::resolve::AxisSelection;
use crate::index::{Item, SliceItem};
use crate::input::{Input, SelectFault, find};
use crate::output::{FormatOption, LayoutFault, Output, Preparation, TensorChange};
use crate::region::OpenIndex;
use crate::shape::{AskedAxis, NoDimension, dimension};
use crate::tensor::TensorInfo;

#[derive(Clone, Debug, Default)]
pub struct Select {
    /// Names or globs of the tensors that the index applies to; without any, the only tensor.
    pub patterns: Vec<String>,
    /// Whether all tensors are chosen without patterns, if the output holds several.
    pub whole: bool,
    /// Whether the other tensors are written too, unchanged.
    pub keep_rest: bool,
    /// New names, applied one after the other.
    pub renames: Vec<NewName>,
}

/// A tensor of an input that goes to the output.
pub(super) struct Selected {
    pub(super) number: usize,
    pub(super) tensor: TensorInfo,
    /// Whether the index applies to it; other tensors are copied whole.
    pub(super) sliced: bool,
    /// The name in the output, if the format has names.
    pub(super) name: String,
}

/// The tensors that go to an output, in the order of the file.
pub(super) struct SelectedTensors<'a> {
    input: &'a Input,
    output: &'a Output,
    /// The choice for each tensor of the input.
    choices: Vec<Choice>,
    len: usize,
    /// New names, by the position among the tensors of the output.
    renamed: HashMap<usize, String>,
}

/// Whether a tensor of an input is sliced, kept or left out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    LeftOut,
    Rest,
    Sliced,
}

/// The choice for each tensor of an input; the `chosen` ones (ascending) are sliced. A note names
/// what would be kept and cannot be read.
pub(super) fn choices(
    input: &Input,
    chosen: &[usize],
    keep_rest: bool,
) -> Result<Vec<Choice>, Error> {
    let excluded = input.excluded()?;
    let is_rest = |number: &usize| keep_rest && excluded.binary_search(number).is_err();
    let readable = input.contents.tensors.len();
    input.note_unreadable((readable..input.named_count()).filter(is_rest))?;
    let choice = |number: usize| {
        if chosen.binary_search(&number).is_ok() {
            Choice::Sliced
        } else if is_rest(&number) {
            Choice::Rest
        } else {
            Choice::LeftOut
        }
    };
    Ok((0..readable).map(choice).collect())
}

impl SelectedTensors<'_> {
    pub(super) fn sliced(&self) -> usize {
        self.choices.iter().filter(|choice| **choice == Choice::Sliced).count()
    }

    pub(super) fn sliced_numbers(&self) -> Vec<usize> {
        let sliced = self.numbers().filter(|(_, sliced)| *sliced);
        sliced.map(|(number, _)| number).collect()
    }

    pub(super) fn into_choices(self) -> Vec<Choice> {
        self.choices
    }

    pub(super) fn sliced_dtypes(&self) -> impl Iterator<Item = DType> + Clone + '_ {
        let sliced = self.numbers().filter(|(_, sliced)| *sliced);
        sliced.map(|(number, _)| self.input.contents.tensors.at(number).dtype)
    }

    fn numbers(&self) -> impl Iterator<Item = (usize, bool)> + Clone + '_ {
        let choices = self.choices.iter().enumerate();
        let taken = choices.filter(|(_, choice)| **choice != Choice::LeftOut);
        taken.map(|(number, choice)| (number, *choice == Choice::Sliced))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Selected> + Clone + '_ {
        self.numbers().enumerate().map(|(at, (number, sliced))| {
            let tensor = self.input.contents.tensors.at(number);
            let name = match self.renamed.get(&at) {
                Some(name) => name.clone(),
                None => self.output.tensor_name(&tensor, &self.input.location, sliced),
            };
            Selected { number, tensor, sliced, name }
        })
    }

    /// Begin to lay out the output; `change` gives its tensors.
    pub(super) fn prepare(
        &self,
        mut change: impl FnMut(&Selected) -> Result<TensorChange, Error>,
    ) -> Result<Preparation<'_>, Error> {
        let tensors = Arc::clone(&self.input.contents.tensors);
        let mut preparation = self.output.begin_preparing(tensors, self.input.checkpoint())?;
        for selected in self.iter() {
            let change = change(&selected)?;
            let Selected { number, tensor, name, .. } = selected;
            let pushed = preparation.push(name.clone(), &tensor, number, change);
            pushed.map_err(|error| error.of_tensor(Some(&name), self.len > 1))?;
        }
        Ok(preparation)
    }
}

/// The tensors that go to the output, in the order of the file.
pub(super) fn select<'a>(
    input: &'a Input,
    select: &Select,
    output: &'a Output,
) -> Result<SelectedTensors<'a>, Error> {
    let mut chosen = chosen(input, select, output)?;
    input.leave_out_unreadable(&mut chosen, &select.patterns)?;
    let mut choices = choices(input, &chosen, select.keep_rest)?;
    leave_out_lacking(input, &select.patterns, output, &mut choices);
    if chosen.is_empty() {
        return Err(Error::file(&input.location, SelectFault::NothingLeft));
    }
    let count = choices.iter().filter(|choice| **choice != Choice::LeftOut).count();
    if count > 1 && output.options.name.is_some() && chosen.len() > 1 {
        return Err(SelectFault::OneName.into());
    }
    check_holds(output, count, select.keep_rest, !select.renames.is_empty())?;
    let mut selection =
        SelectedTensors { input, output, choices, len: count, renamed: HashMap::new() };
    if select.renames.is_empty() && output.options.name.is_none() {
        // the names in a file are unique
        return Ok(selection);
    }
    let tensors = &input.contents.tensors;
    let old: Vec<_> = selection.numbers().map(|(number, _)| tensors.name(number)).collect();
    selection.renamed = rename(&old, &select.renames, &input.notes)?;
    let mut names = HashSet::new();
    let twice = selection.iter().map(|it| it.name).find(|name| !names.insert(name.clone()));
    match twice {
        Some(twice) if count > 1 => Err(SelectFault::SameName(twice).into()),
        _ => Ok(selection),
    }
}

/// The names of the tensors that have a dimension of one of these names; `missing` makes the error
/// for a name that no tensor has, from its number.
pub(super) fn with_dimensions(
    input: &Input,
    names: &[String],
    missing: impl Fn(usize, NoDimension) -> Cause,
) -> Result<Vec<String>, Error> {
    let excluded = input.excluded()?;
    let mut all: Vec<Option<String>> = Vec::new();
    let mut found = Vec::new();
    for (number, tensor) in input.contents.tensors.iter().enumerate() {
        let own = tensor.axis_names();
        let is_taken = excluded.binary_search(&number).is_err();
        if is_taken && names.iter().any(|name| dimension(name, &own).is_ok()) {
            found.extend(tensor.name);
        }
        let new = own.into_iter().filter(|name| is_taken && !all.contains(name));
        let new: Vec<_> = new.collect();
        all.extend(new);
    }
    for (number, name) in names.iter().enumerate() {
        let there = dimension(name, &all).map_err(|fault| missing(number, fault));
        there.map_err(|cause| Error::file(&input.location, cause))?;
    }
    Ok(found)
}

/// All tensors, if there are several, and each axis that the index selects from has the same length in all of them.
pub(super) fn all_indexed_alike(input: &Input, index: &OpenIndex<'_>) -> Option<Vec<usize>> {
    let count = input.contents.tensors.len();
    if index.expr.is_named() || count < 2 || input.named_count() > count {
        return None;
    }
    let mut lens: Option<Vec<u64>> = None;
    for tensor in input.contents.tensors.iter() {
        let selection = index.resolve(&tensor).ok()?;
        let of_item = |(pick, item): (&AxisSelection, Option<usize>)| {
            let axis = pick.axis()?;
            let is_whole = match index.expr.items.get(item?)? {
                Item::Slice(slice) => *slice == SliceItem::default(),
                item => *item == Item::Ellipsis,
            };
            (!is_whole).then_some(axis)
        };
        let axes = selection.axes.iter().zip(selection.items(index.expr)).filter_map(of_item);
        let own: Vec<u64> = axes.map(|axis| selection.source_shape[axis]).collect();
        if own.is_empty() || *lens.get_or_insert_with(|| own.clone()) != own {
            return None;
        }
    }
    let excluded = input.excluded().ok()?;
    let all = (0..count).filter(|number| excluded.binary_search(number).is_err());
    Some(all.collect()).filter(|all: &Vec<usize>| !all.is_empty())
}

/// Note that an index applies to all tensors, though none is named.
pub(super) fn note_alike(input: &Input, count: usize) {
    let location = &input.location;
    input.notes.add(format_args!(
        "{location}: the index applies to all {count} tensors: the axes that it indexes have one length in each"
    ));
}

/// Leave out, with notes, tensors of dtypes that the output cannot hold. A tensor that is given by its exact name, or is
/// the only one, stays and is refused later.
pub(super) fn leave_out_lacking(
    input: &Input,
    patterns: &[String],
    output: &Output,
    choices: &mut [Choice],
) {
    let lacking = choices.iter().enumerate().filter(|(_, choice)| **choice != Choice::LeftOut);
    let lacking = lacking.filter_map(|(number, _)| {
        let tensor = input.contents.tensors.at(number);
        let is_named = tensor.name.as_ref().is_some_and(|name| patterns.contains(name));
        let fault = output.lacks(&tensor.dtype).filter(|_| !is_named)?;
        Some((number, input.failed_tensor(&tensor, true, fault)))
    });
    let lacking: Vec<(usize, Error)> = lacking.collect();
    let sliced = |number: &usize| choices[*number] == Choice::Sliced;
    let left = choices.iter().filter(|choice| **choice == Choice::Sliced).count();
    if lacking.iter().filter(|(number, _)| sliced(number)).count() == left {
        return;
    }
    input.notes.add_left_out(lacking.iter().map(|(_, error)| error));
    lacking.iter().for_each(|(number, _)| choices[*number] = Choice::LeftOut);
}

/// Refuse an output that cannot hold so many tensors, or their names.
pub(super) fn check_holds(
    output: &Output,
    count: usize,
    keep_rest: bool,
    renames: bool,
) -> Result<(), Error> {
    if output.format.holds_several {
        return Ok(());
    }
    let format = output.format.name;
    if count > 1 || keep_rest {
        return Err(SelectFault::HoldsOne { count, keep_rest, format }.into());
    }
    if renames {
        return Err(LayoutFault::NoEffect { option: FormatOption::Rename, format }.into());
    }
    Ok(())
}

/// The numbers of the tensors that the index applies to, ascending.
fn chosen(input: &Input, select: &Select, output: &Output) -> Result<Vec<usize>, Error> {
    let holds_several = output.format.holds_several;
    let count = input.named_count();
    let names_none = select.patterns.is_empty() && input.exclude.is_empty();
    if names_none && select.whole && holds_several && count > 1 && !select.keep_rest {
        return Ok((0..count).collect());
    }
    input.find_named(&select.patterns).map_err(|error| error.of_several(holds_several))
}

/// The casts of a job: a dtype for all tensors, or for those of a dtype.
#[derive(Clone, Debug, Default)]
pub struct Casts {
    /// The dtype that each rule applies to, in any byte order (`None`: all others), and the dtype
    /// that it casts to.
    rules: Vec<(Option<DType>, DType)>,
    casting: Casting,
    /// Whether the rule for all others applies to integers and booleans among several tensors, too.
    pub to_all: bool,
    several: bool,
}

impl Casts {
    /// The casts that `casting` allows. Of several rules for a type, the first counts; a rule for
    /// all types comes last.
    pub fn new(mut rules: Vec<(Option<DType>, DType)>, casting: Casting) -> Casts {
        rules.sort_by_key(|(from, _)| from.is_none());
        Casts { rules, casting, to_all: false, several: false }
    }

    /// The casts for several tensors: a cast of all to a float dtype leaves integers and booleans
    /// unchanged.
    pub(crate) fn of_several(mut self, several: bool) -> Casts {
        self.several = several;
        self
    }

    /// Whether elements of a dtype stay unchanged, though there is a rule for all.
    pub(crate) fn leaves(&self, dtype: &DType) -> bool {
        let kind = |dtype: &DType| match dtype {
            DType::Scalar(scalar, _) => Some(scalar.kind()),
            _ => None,
        };
        let bool = NumberKind::Bool;
        let signed = NumberKind::Signed;
        let unsigned = NumberKind::Unsigned;
        let is_integer = |kind| [bool, signed, unsigned].contains(&kind);
        match self.rule(dtype) {
            Some((None, to)) if self.several && !self.to_all => {
                kind(to) == Some(NumberKind::Float) && kind(dtype).is_some_and(is_integer)
            }
            _ => false,
        }
    }

    /// The number of these dtypes that stay unchanged.
    pub(crate) fn count_left(&self, dtypes: impl Iterator<Item = DType>) -> usize {
        dtypes.filter(|dtype| self.leaves(dtype)).count()
    }

    fn rule(&self, dtype: &DType) -> Option<&(Option<DType>, DType)> {
        let applies =
            |from: &Option<DType>| from.as_ref().is_none_or(|from| from.is_type_of(dtype));
        self.rules.iter().find(|(from, _)| applies(from))
    }

    /// The cast of elements of a dtype; `None` without a rule for it.
    pub fn of(&self, dtype: &DType) -> Result<Option<Cast>, CastError> {
        let rule = self.rule(dtype).filter(|_| !self.leaves(dtype));
        rule.map(|(_, to)| Cast::new(dtype, to, self.casting)).transpose()
    }

    /// Refuse a rule for a type that is not in `dtypes`.
    pub fn refuse_unused(
        &self,
        dtypes: impl Iterator<Item = DType> + Clone,
    ) -> Result<(), UnusedCast> {
        let is_there = |from: &DType| dtypes.clone().any(|dtype| from.is_type_of(&dtype));
        let mut rules = self.rules.iter().filter_map(|(from, _)| from.as_ref());
        rules.find(|from| !is_there(from)).map_or(Ok(()), |from| Err(UnusedCast(from.clone())))
    }
}

/// A rule for a type that no tensor has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no tensor has dtype {}", .0.type_name())]
pub struct UnusedCast(pub DType);

impl Fault for UnusedCast {}

/// The axes along which tensors are joined or cut; a negative axis counts from the end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Axes {
    /// The axis of all tensors without one in `named`.
    pub default: AskedAxis,
    /// Names or globs of tensors, and their axis; the last one that matches counts.
    pub named: Vec<(String, AskedAxis)>,
}

impl Axes {
    /// The first dimension name among them.
    pub fn name(&self) -> Option<&str> {
        let all = std::iter::once(&self.default).chain(self.named.iter().map(|(_, axis)| axis));
        all.filter_map(|axis| match axis {
            AskedAxis::Name(name) => Some(name.as_str()),
            AskedAxis::Number(_) => None,
        })
        .next()
    }

    /// The axis of each of these tensors of an input.
    pub(crate) fn of_tensors(
        &self,
        input: &Input,
        chosen: &[usize],
    ) -> Result<Vec<AskedAxis>, Error> {
        let name = |&number: &usize| input.contents.tensors.name(number).unwrap_or("-");
        let axes = self.of_names(chosen.iter().map(name));
        axes.map_err(|fault| Error::file(&input.location, fault))
    }

    /// The axis of the tensor of each of these names.
    pub(crate) fn of_names<'n>(
        &self,
        names: impl Iterator<Item = &'n str> + Clone,
    ) -> Result<Vec<AskedAxis>, SelectFault> {
        let mut axes = vec![self.default.clone(); names.clone().count()];
        for (pattern, axis) in &self.named {
            let found = find(names.clone(), std::slice::from_ref(pattern))?;
            found.into_iter().for_each(|at| axes[at] = axis.clone());
        }
        Ok(axes)
    }
}
