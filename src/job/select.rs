//! Which tensors of an input go to an output, and what they are called there.
//!
//! Tensors come in the order of the file, however the patterns stand.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::error::Error;
use crate::format::TensorInfo;
use crate::input::{Input, SelectFault};
use crate::job::rename::rename;
use crate::output::{Becomes, FormatOption, LayoutFault, Output, Preparation};

/// Which tensors are meant.
#[derive(Clone, Debug, Default)]
pub struct Select {
    /// Names or globs of the tensors that the index applies to; without any, the only one.
    pub patterns: Vec<String>,
    /// Whether all tensors are meant where there are no patterns, and the output holds several.
    pub whole: bool,
    /// Whether the others are written too, as they are.
    pub keep_rest: bool,
    /// New names, each as `OLD=NEW`; a `*` in both carries over.
    pub renames: Vec<String>,
}

/// A tensor on its way to the output.
pub struct Selected {
    /// The number of the tensor in the input.
    pub number: usize,
    /// The tensor.
    pub tensor: TensorInfo,
    /// Whether the index applies to it; the others are kept whole.
    pub sliced: bool,
    /// The name that it has in the output, if it has one there.
    pub name: String,
}

/// The tensors that go to an output, in the order of the file.
pub struct SelectedTensors<'a> {
    input: &'a Input,
    output: &'a Output,
    /// What becomes of each tensor of the input.
    fates: Vec<Fate>,
    len: usize,
    /// New names, by the place among those that go to the output.
    renamed: HashMap<usize, String>,
}

/// What becomes of a tensor of the input.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    LeftOut,
    Kept,
    Sliced,
}

impl SelectedTensors<'_> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many the index applies to.
    pub fn sliced(&self) -> usize {
        self.fates.iter().filter(|fate| **fate == Fate::Sliced).count()
    }

    /// The numbers of those that the index applies to.
    pub fn sliced_numbers(&self) -> Vec<usize> {
        let sliced = self.numbers().filter(|(_, sliced)| *sliced);
        sliced.map(|(number, _)| number).collect()
    }

    /// The number of each, and whether the index applies to it.
    fn numbers(&self) -> impl Iterator<Item = (usize, bool)> + Clone + '_ {
        let fates = self.fates.iter().enumerate().filter(|(_, fate)| **fate != Fate::LeftOut);
        fates.map(|(number, fate)| (number, *fate == Fate::Sliced))
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = Selected> + Clone + '_ {
        self.numbers().enumerate().map(|(at, (number, sliced))| {
            let tensor = self.input.contents.tensors.at(number);
            let name = match self.renamed.get(&at) {
                Some(name) => name.clone(),
                None => self.output.tensor_name(&tensor, &self.input.location, sliced),
            };
            Selected { number, tensor, sliced, name }
        })
    }

    /// Begin to give places in the output to what `becomes` of each.
    pub(super) fn prepare(
        &self,
        mut becomes: impl FnMut(&Selected) -> Result<Becomes, Error>,
    ) -> Result<Preparation<'_>, Error> {
        let tensors = Arc::clone(&self.input.contents.tensors);
        let mut preparation = self.output.begin_preparing(tensors, self.input.checkpoint())?;
        for selected in self.iter() {
            let becomes = becomes(&selected)?;
            let Selected { number, tensor, name, .. } = selected;
            let pushed = preparation.push(name.clone(), &tensor, number, becomes);
            pushed.map_err(|error| error.of_tensor(Some(&name), self.len > 1))?;
        }
        Ok(preparation)
    }
}

/// The tensors that go to the output, in the order of the file.
///
/// # Errors
/// [`SelectFault`], and [`BadMember`](crate::input::BadMember) for one that cannot be read.
pub fn select<'a>(
    input: &'a Input,
    select: &Select,
    output: &'a Output,
) -> Result<SelectedTensors<'a>, Error> {
    let excluded = input.excluded()?;
    let mut chosen = chosen(input, select, output)?;
    input.leave_out_unreadable(&mut chosen, &select.patterns)?;
    let is_sliced = |number: usize| chosen.binary_search(&number).is_ok();
    let is_kept = |number: &usize| {
        (select.keep_rest && excluded.binary_search(number).is_err()) || is_sliced(*number)
    };
    let readable = input.contents.tensors.len();
    input.note_unreadable((readable..input.named_count()).filter(is_kept))?;
    if chosen.is_empty() {
        return Err(Error::file(&input.location, SelectFault::NothingLeft));
    }
    let fate = |number| match is_kept(&number) {
        true if is_sliced(number) => Fate::Sliced,
        true => Fate::Kept,
        false => Fate::LeftOut,
    };
    let fates: Vec<Fate> = (0..readable).map(fate).collect();
    let count = fates.iter().filter(|fate| **fate != Fate::LeftOut).count();
    if count > 1 && output.options.name.is_some() && chosen.len() > 1 {
        return Err(SelectFault::OneName.into());
    }
    check_holds(output, count, select.keep_rest, !select.renames.is_empty())?;
    let mut selection =
        SelectedTensors { input, output, fates, len: count, renamed: HashMap::new() };
    if select.renames.is_empty() && output.options.name.is_none() {
        // the names of a file differ
        return Ok(selection);
    }
    let tensors = &input.contents.tensors;
    let old: Vec<_> = selection.numbers().map(|(number, _)| tensors.name(number)).collect();
    selection.renamed = rename(&old, &select.renames)?;
    let mut names = HashSet::new();
    let twice = selection.iter().map(|it| it.name).find(|name| !names.insert(name.clone()));
    match twice {
        Some(twice) if count > 1 => Err(SelectFault::SameName(twice).into()),
        _ => Ok(selection),
    }
}

/// Refuse an output that cannot hold so many tensors, or their names.
///
/// # Errors
/// [`SelectFault::HoldsOne`], [`LayoutFault::NoEffect`].
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
    match renames {
        true => Err(LayoutFault::NoEffect { option: FormatOption::Rename, format }.into()),
        false => Ok(()),
    }
}

/// The numbers of the tensors that the index applies to, ascending.
fn chosen(input: &Input, select: &Select, output: &Output) -> Result<Vec<usize>, Error> {
    let holds_several = output.format.holds_several;
    let count = input.named_count();
    let all = select.whole && holds_several && input.exclude.is_empty();
    if select.patterns.is_empty() && count > 1 && all && !select.keep_rest {
        return Ok((0..count).collect());
    }
    input.find_named(&select.patterns).map_err(|error| error.of_several(holds_several))
}
