//! `tslice INPUT [INDEX]`: the main job.

use std::sync::Arc;

use tslice::cast::Cast;
use tslice::dtype::DType;
use tslice::error::ContainerError;
use tslice::index::resolve::Selection;
use tslice::input::{Input, OpenOptions, SelectFault};
use tslice::job::{Casts, Select, Selected, SelectedTensors};
use tslice::output::{Item, Output, Prepared};
use tslice::permutation::Permutation;
use tslice::region::{Region, Take};
use tslice::shape::Order;
use tslice::sink::Destination;

use super::index::Index;
use super::input::unreadable;
use super::transpose::Transpose;
use super::{cast, input, output, part};
use crate::cli::args::SliceArgs;
use crate::cli::report::{Failure, print};

/// Write the selected elements to the output.
pub(super) fn run(args: &SliceArgs) -> Result<(), Failure> {
    let Some(share) = part::share(&args.to)? else { return Ok(()) };
    let index = Index::parse(args.text.as_deref(), &args.index)?;
    let workers = output::workers(args.to.threads);
    let index = index.open(args.from.io, &workers, args.to.quiet, ("INPUT", &args.input))?;
    let transpose = Transpose::parse(&args.transpose)?;
    let casts = cast::parse(&args.cast)?;
    let output = output::open(&args.to, &workers)?;
    // what is left out must be there, in whatever shard
    let rest = args.keep_rest || !args.exclude.is_empty();
    let options = OpenOptions { rest, ..input::options(&args.from)? };
    let mut input = input::open_watched(&input::location(&args.input), &options, args.to.quiet)?;
    let select = Select {
        patterns: args.from.tensor.clone(),
        whole: args.takes_whole_tensors(),
        exclude: args.exclude.clone(),
        keep_rest: args.keep_rest,
        renames: args.rename.clone(),
    };
    if let Some(names) = &args.field.field {
        let sliced = selected(&input, &select, &output)?.sliced_numbers();
        input.take_fields(names, &sliced)?;
    }
    let selected = selected(&input, &select, &output)?;
    let change = Change { index, transpose, casts, order: output.options().order };
    let mut prepared = prepare(&output, &input, &selected, &change)?;
    let mut takes = takes(&prepared, &selected, &change)?;
    prepared.align(&input, &mut takes);
    if args.to.dry_run {
        let failed = |error| change.index.failure(error);
        let described = output::describe(&output, &prepared, (&mut input, &takes), &share, failed);
        return print(&described?);
    }
    let failed = |error| change.index.failure(error);
    let share = (&share, args.to.quiet);
    output::write(&output, &prepared, (&mut input, &takes), share, failed)
}

/// The tensors of the output.
fn selected<'a>(
    input: &'a Input,
    select: &Select,
    output: &'a Output,
) -> Result<SelectedTensors<'a>, Failure> {
    let selected = tslice::job::select(input, select, output);
    selected.map_err(|error| {
        let meant = meant(&error, select, output);
        let failure = unreadable(error, input, &select.patterns);
        match (meant, failure.hint.clone()) {
            (Some(Meant::Instead(hint)), _) | (Some(Meant::Also(hint)), None) => failure.hint(hint),
            (Some(Meant::Also(hint)), Some(names)) => failure.hint(format_args!("{names}; {hint}")),
            (None, _) => failure,
        }
    })
}

/// A hint for a choice of tensors that cannot be made.
enum Meant {
    /// In place of that of the error.
    Instead(&'static str),
    /// Behind the names that there are.
    Also(&'static str),
}

/// What else was meant, where tensors of a file of several cannot be chosen.
fn meant(error: &ContainerError, select: &Select, output: &Output) -> Option<Meant> {
    let fault = error.cause.downcast_ref()?;
    let to_npy = *output.destination() == Destination::Stdout && !output.format().holds_several;
    match fault {
        SelectFault::NotNamed { .. } if select.keep_rest && !select.exclude.is_empty() => {
            Some(Meant::Instead("--exclude without --keep-rest takes all other tensors"))
        }
        SelectFault::NotNamed { .. } if to_npy && select.whole => {
            Some(Meant::Also("--to safetensors writes all"))
        }
        SelectFault::NotNamed { .. } if to_npy => {
            Some(Meant::Also("-t '*' --to safetensors writes all"))
        }
        SelectFault::HoldsOne { .. } if to_npy => {
            Some(Meant::Instead("--to safetensors holds several"))
        }
        _ => None,
    }
}

/// What is done to every tensor that is chosen.
struct Change {
    index: Index,
    transpose: Transpose,
    casts: Casts,
    /// The memory order of the output.
    order: Order,
}

/// What becomes of a tensor.
struct Sliced {
    shape: Vec<u64>,
    region: Arc<dyn Region>,
    cast: Option<Cast>,
}

/// Give the results for all tensors their places.
fn prepare(
    output: &Output,
    input: &Input,
    selected: &SelectedTensors<'_>,
    change: &Change,
) -> Result<Prepared, Failure> {
    let mut preparation = output.begin_preparing(Some(input))?;
    let several = selected.len() > 1;
    let mut dtypes: Vec<DType> = Vec::new();
    for (selected, sliced) in results(selected, change) {
        let Sliced { shape, cast, .. } = sliced?;
        let Selected { number, tensor, name, .. } = &selected;
        let (dtype, part, number) = (&tensor.dtype, tensor.part, *number);
        let item = Item { name, dtype, shape, cast, part, number };
        let pushed = preparation.push(&item);
        pushed.map_err(|error| if several { error.of_tensor(name) } else { error })?;
        if selected.sliced && !dtypes.contains(&tensor.dtype) {
            dtypes.push(tensor.dtype.clone());
        }
    }
    cast::refuse_unused(&change.casts, dtypes.into_iter())?;
    Ok(preparation.finish(&input.contents().metadata)?)
}

/// What is taken of each tensor. Those that are kept are looked at once more, so that nothing is
/// held of each of a million.
fn takes(
    prepared: &Prepared,
    selected: &SelectedTensors<'_>,
    change: &Change,
) -> Result<Vec<Take>, Failure> {
    let mut takes = Vec::with_capacity(selected.len());
    for ((_, sliced), (to, at)) in results(selected, change).zip(prepared.places()) {
        let (part, conversion) = (to.part, to.conversion);
        Take { part, region: sliced?.region, conversion, at }.push(&mut takes);
    }
    Ok(takes)
}

/// The tensors, and what becomes of each.
fn results<'a>(
    all: &'a SelectedTensors<'_>,
    change: &'a Change,
) -> impl Iterator<Item = (Selected, Result<Sliced, Failure>)> + 'a {
    let several = all.sliced() > 1;
    all.iter().map(move |selected| {
        let sliced = slice(&selected, change);
        let sliced = sliced.map_err(|failure| match &selected.tensor.name {
            Some(name) if several => failure.of_tensor(name),
            _ => failure,
        });
        (selected, sliced)
    })
}

/// Apply the change to a tensor, unless it is only kept.
fn slice(Selected { tensor, sliced, .. }: &Selected, change: &Change) -> Result<Sliced, Failure> {
    if !sliced {
        let selection = Selection::whole(&tensor.shape);
        let shape = selection.shape();
        let axes = Permutation::identity(shape.len());
        let region =
            <dyn Region>::of(tensor, &selection, &axes, change.order).map_err(Failure::new)?;
        return Ok(Sliced { shape, region, cast: None });
    }
    let selection = change.index.resolve(&tensor.shape)?;
    let shape = selection.shape();
    let axes = change.transpose.permutation(shape.len())?;
    let cast = change.casts.of(&tensor.dtype).map_err(|error| cast::failed(&error))?;
    let region = change.index.lists.region(tensor, &selection, &axes, change.order);
    Ok(Sliced { shape: axes.permute(&shape), region: region.map_err(Failure::new)?, cast })
}
