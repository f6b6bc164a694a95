//! Which tensors of an input go to an output, and what they are called there.
//!
//! Tensors come in the order of the file, however the patterns stand.

use std::collections::HashSet;

use super::error::ContainerError;
use super::fault::SelectFault;
use super::input::Input;
use super::output::Output;
use crate::format::Tensor;

/// Which tensors are meant.
#[derive(Clone, Debug, Default)]
pub struct Select {
    /// Names or globs of the tensors that the index applies to; without any, the only one.
    pub patterns: Vec<String>,
    /// Whether the others are written too, as they are.
    pub keep_rest: bool,
    /// New names, each as `OLD=NEW`.
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
/// [`SelectFault`].
pub fn select<'a>(
    input: &'a Input,
    select: &Select,
    output: &Output,
) -> Result<Vec<Selected<'a>>, ContainerError> {
    let sliced: HashSet<usize> = input.find(&select.patterns)?.into_iter().collect();
    let tensors = input.contents.tensors.iter().enumerate();
    let selected = tensors.filter_map(|(number, tensor)| {
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
    rename(&mut selected, &select.renames)?;
    let mut names = HashSet::new();
    match selected.iter().find(|selected| !names.insert(selected.name.as_str())) {
        Some(twice) if count > 1 => Err(SelectFault::SameName(twice.name.clone()).into()),
        _ => Ok(selected),
    }
}

/// Give each tensor that `OLD=NEW` speaks of its new name.
fn rename(selected: &mut [Selected<'_>], renames: &[String]) -> Result<(), SelectFault> {
    let mut done = HashSet::new();
    for rename in renames {
        // a name may hold a `=` itself: the first split that gives a tensor's name counts
        let splits = rename.match_indices('=').map(|(at, _)| (&rename[..at], &rename[at + 1..]));
        let Some((first, _)) = splits.clone().next() else {
            return Err(SelectFault::NoRename(rename.clone()));
        };
        let found = splits.clone().find_map(|(old, new)| {
            let is_old = |it: &Selected<'_>| it.tensor.name.as_deref() == Some(old);
            Some((selected.iter().position(is_old)?, new))
        });
        let Some((at, new)) = found else {
            let (rename, old) = (rename.clone(), first.to_owned());
            return Err(SelectFault::RenameNotFound { rename, old });
        };
        if !done.insert(at) {
            return Err(SelectFault::RenamedTwice(rename.clone()));
        }
        selected[at].name = new.to_owned();
    }
    Ok(())
}
