//! Which tensors of a file are meant (`-t`, `--keep-rest`), and what they are to be called.
//!
//! A pattern that is the very name of a tensor means that tensor, whatever else it would match as
//! a glob. Tensors come in the order of the file, however the patterns stand.

use std::collections::HashSet;

use globset::{GlobBuilder, GlobMatcher};
use tslice::format::Tensor;

use super::args::SliceArgs;
use super::input::Input;
use super::output::Output;
use super::report::Failure;

/// A tensor on its way to the output.
pub(crate) struct Chosen<'a> {
    pub(crate) tensor: &'a Tensor,
    /// Whether the index applies to it; the others are kept whole.
    pub(crate) sliced: bool,
    /// The name that it has in the output, if it has one there.
    pub(crate) name: String,
}

/// The tensors that go to the output, in the order of the file.
pub(crate) fn choose<'a>(
    input: &'a Input,
    args: &SliceArgs,
    output: &Output,
) -> Result<Vec<Chosen<'a>>, Failure> {
    let sliced: HashSet<usize> = input.find(&args.from.tensor)?.into_iter().collect();
    let tensors = input.contents.tensors.iter().enumerate();
    let chosen = tensors.filter_map(|(number, tensor)| {
        let sliced = sliced.contains(&number);
        let name = output.tensor_name(tensor, &input.path, sliced);
        (sliced || args.keep_rest).then_some(Chosen { tensor, sliced, name })
    });
    let mut chosen: Vec<Chosen<'a>> = chosen.collect();
    if chosen.len() > 1 && args.to.name.is_some() && sliced.len() > 1 {
        return Err(Failure::usage("--name names one tensor, and several are chosen")
            .hint("--rename OLD=NEW names each"));
    }
    if (chosen.len() > 1 || args.keep_rest) && !output.format.holds_several() {
        let message = match args.keep_rest {
            true => format!("--keep-rest: an output of format {} holds one tensor", output.format),
            false => {
                let count = chosen.len();
                let format = output.format;
                format!("{count} tensors are chosen, and an output of format {format} holds one")
            }
        };
        return Err(Failure::usage(message).hint("use a .safetensors or .npz output"));
    }
    rename(&mut chosen, &args.rename)?;
    let mut names = HashSet::new();
    match chosen.iter().find(|chosen| !names.insert(chosen.name.as_str())) {
        Some(twice) if chosen.len() > 1 => Err(Failure::new(format_args!(
            "two tensors of the output would be named {:?}",
            twice.name
        ))),
        _ => Ok(chosen),
    }
}

/// Give each tensor that `OLD=NEW` speaks of its new name.
fn rename(chosen: &mut [Chosen<'_>], renames: &[String]) -> Result<(), Failure> {
    let mut done = HashSet::new();
    for rename in renames {
        // a name may hold a `=` itself: the first split that gives a tensor's name counts
        let splits = rename.match_indices('=').map(|(at, _)| (&rename[..at], &rename[at + 1..]));
        if splits.clone().next().is_none() {
            return Err(Failure::usage(format_args!("--rename {rename}: OLD=NEW is needed")));
        }
        let found = splits.clone().find_map(|(old, new)| {
            let is_old = |chosen: &Chosen<'_>| chosen.tensor.name.as_deref() == Some(old);
            Some((chosen.iter().position(is_old)?, new))
        });
        let Some((at, new)) = found else {
            let old = splits.map(|(old, _)| old).next().unwrap_or_default();
            return Err(Failure::new(format_args!(
                "--rename {rename}: no tensor of the output is named {old:?} in the input"
            )));
        };
        if !done.insert(at) {
            return Err(Failure::usage(format_args!(
                "--rename {rename}: that tensor is renamed twice"
            )));
        }
        chosen[at].name = new.to_owned();
    }
    Ok(())
}

/// A value of `-t`: a name or a glob.
pub(crate) struct Pattern {
    pub(crate) text: String,
    /// What it means where it is nobody's name; the reason where it is no glob.
    glob: Result<GlobMatcher, String>,
}

impl Pattern {
    pub(crate) fn new(text: &str) -> Pattern {
        let glob = GlobBuilder::new(text).build().map(|glob| glob.compile_matcher());
        Pattern { text: text.to_owned(), glob: glob.map_err(|error| error.kind().to_string()) }
    }

    /// The positions of the names that are meant, ascending; empty where none is.
    ///
    /// # Errors
    ///
    /// A usage error for a text that is nobody's name and no glob.
    pub(crate) fn find<'n>(
        &self,
        names: impl Iterator<Item = &'n str> + Clone,
    ) -> Result<Vec<usize>, Failure> {
        if let Some(exact) = names.clone().position(|name| name == self.text) {
            return Ok(vec![exact]);
        }
        match &self.glob {
            Ok(glob) => {
                Ok(names.enumerate().filter(|(_, name)| glob.is_match(name)).map(|n| n.0).collect())
            }
            Err(reason) => Err(Failure::usage(format_args!("-t {}: {reason}", self.text))),
        }
    }
}
