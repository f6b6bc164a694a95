//! `tslice INPUT [INDEX]`: the main job.

use tslice::execute::{self, Copy, ExecuteError, FillError, Progress, WINDOW_BYTES};
use tslice::format::Tensor;
use tslice::index::resolve::Selection;
use tslice::plan::{PIECE_BYTES, Plan};
use tslice::shape::Order;
use tslice::sink::Sink;
use tslice::source;
use tslice::view::{Layout, View};

use super::args::SliceArgs;
use super::index::Index;
use super::input::{Input, failed_source, finish, spool};
use super::output::{Output, Prepared};
use super::report::Failure;
use super::{print, progress};

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
    let sink = output.create(prepared.header.len() as u64 + prepared.bytes)?;
    let (progress, threads) = (Progress::default(), threads(args.to.threads));
    progress::watch(&progress, prepared.bytes, args.to.quiet, || {
        write(input, &view, &prepared, &output, sink.as_ref(), threads, &progress)
    })?;
    sink.commit().map_err(|error| output.failed(&error))
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

/// Write header and elements, and make sure that all of the input was there.
fn write(
    input: Input,
    view: &View,
    prepared: &Prepared,
    output: &Output,
    sink: &dyn Sink,
    threads: usize,
    progress: &Progress,
) -> Result<(), Failure> {
    let Input { path, bytes, contents } = input;
    let failed = |error| match error {
        ExecuteError::Fill { error: FillError::Source(error), .. } => failed_source(&path, &error),
        ExecuteError::Sink(error) => output.failed(&error),
        error => Failure::new(error),
    };
    sink.write_at(0, &prepared.header).map_err(|error| output.failed(&error))?;
    let (at, swap_width) = (prepared.header.len() as u64, prepared.swap_width);
    let (source, gone) = match bytes {
        source::Input::Random(source) => (source, 0),
        source::Input::Forward(mut stream) => {
            if let Some(plan) = Plan::forward(view, swap_width as u64, WINDOW_BYTES) {
                execute::run_forward(&mut stream, &plan, swap_width, sink, at, progress)
                    .map_err(failed)?;
                return finish(&path, stream, &contents);
            }
            spool(&path, stream, &contents)?
        }
    };
    let plan = Plan::new(&view.clone().after(gone), swap_width as u64, PIECE_BYTES);
    let copies = [Copy { source: source.as_ref(), pieces: &plan, swap_width, at }];
    execute::run(&copies, sink, threads, progress).map_err(failed)?;
    source.verify().map_err(|error| failed_source(&path, &error))
}

/// The workers to use: as many as asked for, or as there are cores.
fn threads(asked: Option<u16>) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    asked.map_or_else(cores, usize::from)
}
