//! `tslice INPUT [INDEX]`: the main job.

use tslice::cast::Cast;
use tslice::container::{self, Casts, Item, Region, Select, Selected, Take};
use tslice::index::IndexExpr;
use tslice::index::resolve::resolve;
use tslice::permutation::Permutation;
use tslice::shape::Order;

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
    let index = index.open(args.from.io, ("INPUT", &args.input))?;
    let transpose = Transpose::parse(&args.transpose)?;
    let casts = cast::parse(&args.cast)?;
    let output = output::open(&args.to)?;
    // what is left out must be there, in whatever shard
    let rest = args.keep_rest || !args.exclude.is_empty();
    let options = input::options(&args.from, &args.raw, rest)?;
    let mut input =
        container::open(&input::location(&args.input), &options).map_err(input::advised)?;
    let select = Select {
        patterns: args.from.tensor.clone(),
        whole: args.takes_whole_tensors(),
        exclude: args.exclude.clone(),
        keep_rest: args.keep_rest,
        renames: args.rename.clone(),
    };
    let selected = container::select(&input, &select, &output);
    let selected = selected.map_err(|error| unreadable(error, &input, &select.patterns))?;
    let changed = selected.iter().filter(|selected| selected.sliced);
    cast::refuse_unused(&casts, changed.map(|selected| &selected.tensor.dtype))?;
    let change = Change { index, transpose, casts, order: output.options().order };
    let sliced = slice_all(&selected, &change)?;
    let items: Vec<Item<'_>> =
        selected.iter().zip(&sliced).map(|(selected, sliced)| item(selected, sliced)).collect();
    let prepared = output.prepare(&items, &input.contents().metadata, input.checkpoint())?;
    let places = prepared.tensors.iter().zip(&prepared.starts);
    let takes = sliced.into_iter().zip(places).map(|(sliced, (to, &at))| Take {
        part: to.part,
        region: sliced.region,
        conversion: to.conversion,
        at,
    });
    let takes: Vec<Take> = takes.collect();
    if args.to.dry_run {
        let failed = |error| change.index.failure(error);
        let described = output::describe(&output, &prepared, (&input, &takes), &share, failed);
        return print(&described?);
    }
    let failed = |error| change.index.failure(error);
    let share = (&share, args.to.quiet);
    output::write(&output, &prepared, (&mut input, &takes), share, failed)
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
    region: Region,
    cast: Option<Cast>,
}

/// The results for all tensors.
fn slice_all(all: &[Selected<'_>], change: &Change) -> Result<Vec<Sliced>, Failure> {
    let several = all.iter().filter(|selected| selected.sliced).count() > 1;
    let slice = |selected: &Selected<'_>| {
        slice(selected, change).map_err(|failure| match &selected.tensor.name {
            Some(name) if several => failure.of_tensor(name),
            _ => failure,
        })
    };
    all.iter().map(slice).collect()
}

/// Apply the change to a tensor, unless it is only kept.
fn slice(
    Selected { tensor, sliced, .. }: &Selected<'_>,
    change: &Change,
) -> Result<Sliced, Failure> {
    let selection = match sliced {
        true => change.index.resolve(&tensor.shape)?,
        false => resolve(&IndexExpr::default(), &tensor.shape, false).map_err(Failure::new)?,
    };
    let shape = selection.shape();
    let (axes, cast) = match sliced {
        true => (
            change.transpose.permutation(shape.len())?,
            change.casts.of(&tensor.dtype).map_err(|error| cast::failed(&error))?,
        ),
        false => (Permutation::identity(shape.len()), None),
    };
    let lists = &change.index.lists;
    let region = lists.region(tensor, &selection, &axes, change.order).map_err(Failure::new)?;
    Ok(Sliced { shape: axes.permute(&shape), region, cast })
}

fn item<'a>(selected: &'a Selected<'_>, sliced: &Sliced) -> Item<'a> {
    let Selected { tensor, name, .. } = selected;
    let (shape, cast) = (sliced.shape.clone(), sliced.cast);
    Item { name, dtype: &tensor.dtype, shape, cast, part: tensor.part }
}
