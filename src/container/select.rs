//! Which tensors of an input go to an output, and what they are called there.
//!
//! Tensors come in the order of the file, however the patterns stand.

use std::collections::HashSet;

use super::error::{Cause, ContainerError};
use super::fault::{FormatOption, LayoutFault, SelectFault};
use super::input::Input;
use super::output::Output;
use super::rename::rename;
use crate::format::Tensor;

/// Which tensors are meant.
#[derive(Clone, Debug, Default)]
pub struct Select {
    /// Names or globs of the tensors that the index applies to; without any, the only one.
    pub patterns: Vec<String>,
    /// Whether all tensors are meant where there are no patterns, and the output holds several.
    pub whole: bool,
    /// Names or globs of tensors that are left out. With them and without patterns, all others are
    /// meant.
    pub exclude: Vec<String>,
    /// Whether the others are written too, as they are.
    pub keep_rest: bool,
    /// New names, each as `OLD=NEW`; a `*` in both carries over.
    pub renames: Vec<String>,
}

/// A tensor on its way to the output.
pub struct Selected<'a> {
    /// The tensor.
    pub tensor: &'a Tensor,
    /// Whether the index applies to it; the others are kept whole.
    pub sliced: bool,
    /// The name that it has in the output, if it has one there.
    pub name: String,
}

/// The tensors that go to the output, in the order of the file.
///
/// # Errors
/// [`SelectFault`], and [`Cause::Member`] for one that cannot be read.
pub fn select<'a>(
    input: &'a Input,
    select: &Select,
    output: &Output,
) -> Result<Vec<Selected<'a>>, ContainerError> {
    let excluded = excluded(input, &select.exclude)?;
    let mut sliced = chosen(input, select, output)?;
    sliced.retain(|number| !excluded.contains(number));
    let unreadable = input.contents.tensors.len()..input.named_count();
    let mut unreadable = unreadable.filter(|number| !excluded.contains(number));
    if let Some(number) = unreadable.find(|it| select.keep_rest || sliced.contains(it)) {
        input.refuse_unreadable(number)?;
    }
    if sliced.is_empty() {
        return Err(ContainerError::file(&input.location, SelectFault::NothingLeft));
    }
    let tensors = input.contents.tensors.iter().enumerate();
    let kept = tensors.filter(|(number, _)| !excluded.contains(number));
    let selected = kept.filter_map(|(number, tensor)| {
        let sliced = sliced.contains(&number);
        let name = output.tensor_name(tensor, &input.location, sliced);
        (sliced || select.keep_rest).then_some(Selected { tensor, sliced, name })
    });
    let mut selected: Vec<Selected<'a>> = selected.collect();
    let count = selected.len();
    if count > 1 && output.options.name.is_some() && sliced.len() > 1 {
        return Err(SelectFault::OneName.into());
    }
    if (count > 1 || select.keep_rest) && !output.format.holds_several {
        let (keep_rest, format) = (select.keep_rest, output.format.name);
        return Err(SelectFault::HoldsOne { count, keep_rest, format }.into());
    }
    if !select.renames.is_empty() && !output.format.holds_several {
        let (option, format) = (FormatOption::Rename, output.format.name);
        return Err(LayoutFault::NoEffect { option, format }.into());
    }
    let old: Vec<_> = selected.iter().map(|selected| selected.tensor.name.as_deref()).collect();
    for (number, name) in rename(&old, &select.renames)? {
        selected[number].name = name;
    }
    let mut names = HashSet::new();
    match selected.iter().find(|selected| !names.insert(selected.name.as_str())) {
        Some(twice) if count > 1 => Err(SelectFault::SameName(twice.name.clone()).into()),
        _ => Ok(selected),
    }
}

/// The numbers of the tensors that the index applies to.
fn chosen(
    input: &Input,
    select: &Select,
    output: &Output,
) -> Result<HashSet<usize>, ContainerError> {
    let holds_several = output.format.holds_several;
    let count = input.named_count();
    let all = (select.whole && holds_several) || !select.exclude.is_empty();
    if select.patterns.is_empty() && count > 1 && all && !select.keep_rest {
        return Ok((0..count).collect());
    }
    let found = input.find_named(&select.patterns).map_err(|mut error| {
        if let Cause::Select(SelectFault::NotNamed { holds_several: known, .. }) =
            error.cause.as_mut()
        {
            *known = holds_several;
        }
        error
    });
    Ok(found?.into_iter().collect())
}

/// The numbers of the tensors that are left out.
fn excluded(input: &Input, patterns: &[String]) -> Result<HashSet<usize>, ContainerError> {
    if patterns.is_empty() {
        return Ok(HashSet::new());
    }
    let found = input.find_named(patterns).map_err(|error| match *error.cause {
        Cause::Select(fault) => {
            let cause = Box::new(SelectFault::Excluded(Box::new(fault)).into());
            ContainerError { cause, ..error }
        }
        cause => ContainerError { cause: Box::new(cause), ..error },
    });
    Ok(found?.into_iter().collect())
}
