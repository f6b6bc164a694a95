//! `tslice INPUT [INDEX]`: the main job.

use tslice::format::Tensor;
use tslice::index::resolve::Selection;
use tslice::shape::Order;
use tslice::view::{Layout, View};

use super::args::SliceArgs;
use super::index::Index;
use super::input::Input;
use super::job::Job;
use super::output::Output;
use super::print;
use super::report::Failure;

/// Write the selected elements to the output.
pub(crate) fn run(args: &SliceArgs) -> Result<(), Failure> {
    let index = Index::parse(args.text.as_deref(), &args.index)?;
    let output = Output::new(&args.to)?;
    let input = Input::open(&args.input, args.from.io)?;
    let tensor = input.tensor(args.from.tensor.as_deref())?;
    let selection = index.resolve(&tensor.shape)?;
    let view = view(tensor, &selection, output.order)?;
    let metadata = &input.contents.metadata;
    let prepared = output.prepare(tensor, &input.path, selection.shape(), metadata)?;
    if args.to.dry_run {
        return print(&output.describe(&prepared)?);
    }
    let job = Job::begin(&output, &prepared.header, prepared.bytes, &args.to)?;
    job.copy(input, &view, prepared.swap_width, prepared.header.len() as u64)?;
    job.commit()
}

/// The bytes that a selection of a tensor takes, in the order of the output.
fn view(tensor: &Tensor, selection: &Selection, order: Order) -> Result<View, Failure> {
    let layout = Layout {
        shape: &tensor.shape,
        item_bits: tensor.dtype.item_bits(),
        order: tensor.order,
        offset: tensor.offset,
    };
    let view = View::new(&layout, selection).map_err(Failure::new)?;
    Ok(if order == Order::F { view.transposed() } else { view })
}
