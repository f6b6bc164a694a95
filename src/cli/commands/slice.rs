//! `tslice INPUT [INDEX]`: the main job.

use tslice::container::{self, Item, Region, Select, Selected, Take};
use tslice::index::IndexExpr;
use tslice::index::resolve::resolve;
use tslice::permutation::Permutation;
use tslice::shape::Order;

use super::index::Index;
use super::transpose::Transpose;
use super::{input, output};
use crate::cli::args::SliceArgs;
use crate::cli::report::{Failure, print};

/// Write the selected elements to the output.
pub(super) fn run(args: &SliceArgs) -> Result<(), Failure> {
    let index = Index::parse(args.text.as_deref(), &args.index)?;
    let transpose = Transpose::parse(&args.transpose)?;
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
    let selected = container::select(&input, &select, &output)?;
    let sliced = slice_all(&selected, &index, &transpose, output.options().order)?;
    let items: Vec<Item<'_>> =
        selected.iter().zip(&sliced).map(|(selected, (shape, _))| item(selected, shape)).collect();
    let prepared = output.prepare(&items, &input.contents().metadata, input.checkpoint())?;
    let places = prepared.tensors.iter().zip(&prepared.starts);
    let takes = sliced.into_iter().zip(places).map(|((_, region), (to, &at))| Take {
        part: to.part,
        region,
        conversion: to.conversion,
        at,
    });
    let takes: Vec<Take> = takes.collect();
    if args.to.dry_run {
        let described = output::describe(&output, &prepared, (&input, &takes), Failure::from);
        return print(&described?);
    }
    output::write(&output, &prepared, (&mut input, &takes), args.to.quiet, Failure::from)
}

/// The shape and the bytes of the result for each tensor.
fn slice_all(
    all: &[Selected<'_>],
    index: &Index,
    transpose: &Transpose,
    order: Order,
) -> Result<Vec<(Vec<u64>, Region)>, Failure> {
    let several = all.iter().filter(|selected| selected.sliced).count() > 1;
    let slice = |selected: &Selected<'_>| {
        slice(selected, index, transpose, order).map_err(|failure| match &selected.tensor.name {
            Some(name) if several => failure.of_tensor(name),
            _ => failure,
        })
    };
    all.iter().map(slice).collect()
}

/// Apply the index to a tensor, and transpose the result, unless it is only kept.
fn slice(
    Selected { tensor, sliced, .. }: &Selected<'_>,
    index: &Index,
    transpose: &Transpose,
    order: Order,
) -> Result<(Vec<u64>, Region), Failure> {
    let selection = match sliced {
        true => index.resolve(&tensor.shape)?,
        false => resolve(&IndexExpr::default(), &tensor.shape, false).map_err(Failure::new)?,
    };
    let shape = selection.shape();
    let axes = match sliced {
        true => transpose.permutation(shape.len())?,
        false => Permutation::identity(shape.len()),
    };
    let region = Region::of(tensor, &selection, &axes, order).map_err(Failure::new)?;
    Ok((axes.permute(&shape), region))
}

fn item<'a>(selected: &'a Selected<'_>, shape: &[u64]) -> Item<'a> {
    let Selected { tensor, name, .. } = selected;
    Item { name, dtype: &tensor.dtype, shape: shape.to_vec(), part: tensor.part }
}
