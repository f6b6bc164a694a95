//! `tslice INPUT [INDEX]`: the main job.

use tslice::format::Format;
use tslice::gather::{Gather, Options};
use tslice::index::IndexExpr;
use tslice::index::resolve::{Selection, resolve};
use tslice::shape::Order;
use tslice::view::{Layout, View};

use super::args::SliceArgs;
use super::choose::{Chosen, choose};
use super::declared::Declared;
use super::folder;
use super::index::Index;
use super::input::{Input, Wanted};
use super::job::{Cut, Job, Taken};
use super::output::{Item, Output};
use super::print;
use super::report::Failure;

/// Write the selected elements to the output.
pub(crate) fn run(args: &SliceArgs) -> Result<(), Failure> {
    let index = Index::parse(args.text.as_deref(), &args.index)?;
    let output = Output::new(&args.to)?;
    let declared = Declared::parse(&args.raw)?;
    let wanted =
        Wanted { io: args.from.io, patterns: &args.from.tensor, rest: args.keep_rest, declared };
    let input = Input::open_wanted(&args.input, &wanted)?;
    let chosen = choose(&input, args, &output)?;
    let picked = pick_all(&chosen, &index, output.order)?;
    let items: Vec<Item<'_>> = chosen.iter().zip(&picked).map(item).collect();
    let prepared = match (&input.checkpoint, output.format) {
        (Some(checkpoint), Format::Sharded) => {
            let shards: Vec<usize> = chosen.iter().map(|chosen| chosen.tensor.part).collect();
            folder::prepare(&output, &items, &shards, checkpoint)?
        }
        _ => output.prepare(&items, &input.contents.metadata)?,
    };
    if args.to.dry_run {
        return print(&output.describe(&prepared)?);
    }
    let job = Job::begin(&output, &prepared, &args.to)?;
    let taken = picked.into_iter().map(|picked| picked.taken);
    let cuts = chosen.iter().zip(taken).zip(&prepared.tensors).map(|((chosen, taken), placed)| {
        Cut { part: chosen.tensor.part, taken, swap_width: placed.swap_width, at: placed.at }
    });
    let cuts: Vec<Cut> = cuts.collect();
    job.copy(input, &cuts)?;
    job.commit()
}

/// What is taken of a tensor.
struct Picked {
    /// The shape of the result.
    shape: Vec<u64>,
    /// Its bytes, in the order of the output.
    taken: Taken,
}

/// Apply the index to every tensor that is not only kept.
fn pick_all(chosen: &[Chosen<'_>], index: &Index, order: Order) -> Result<Vec<Picked>, Failure> {
    let several = chosen.iter().filter(|chosen| chosen.sliced).count() > 1;
    let pick = |chosen: &Chosen<'_>| {
        pick(chosen, index, order).map_err(|failure| match &chosen.tensor.name {
            Some(name) if several => failure.of_tensor(name),
            _ => failure,
        })
    };
    chosen.iter().map(pick).collect()
}

fn pick(chosen: &Chosen<'_>, index: &Index, order: Order) -> Result<Picked, Failure> {
    let tensor = chosen.tensor;
    let selection = match chosen.sliced {
        true => index.resolve(&tensor.shape)?,
        false => resolve(&IndexExpr::default(), &tensor.shape, false).map_err(Failure::new)?,
    };
    let unit = tensor.dtype.swap_width() as u64;
    let layout = Layout {
        shape: &tensor.shape,
        item_bits: tensor.dtype.item_bits(),
        order: tensor.order,
        offset: tensor.offset,
    };
    Ok(Picked { shape: selection.shape(), taken: take(&layout, &selection, order, unit)? })
}

/// The bytes of a selection, in the order of the output; `unit` bytes are not to be parted.
fn take(
    layout: &Layout<'_>,
    selection: &Selection,
    order: Order,
    unit: u64,
) -> Result<Taken, Failure> {
    let options = Options { order, unit, ..Options::default() };
    if let Some(list) = Gather::list(layout, selection, &options).map_err(Failure::new)? {
        return Ok(Taken::List(Box::new(list)));
    }
    let view = View::new(layout, selection).map_err(Failure::new)?;
    Ok(Taken::View(if order == Order::F { view.transposed() } else { view }))
}

fn item<'a>((chosen, picked): (&'a Chosen<'_>, &Picked)) -> Item<'a> {
    Item { name: &chosen.name, dtype: &chosen.tensor.dtype, shape: picked.shape.clone() }
}
