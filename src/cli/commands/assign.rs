//! `tslice assign TARGET [INDEX] --value FILE`: NumPy's `target[index] = value`.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use tslice::element::{self, ElementError};
use tslice::execute::{Assignment, Conversion, ExecuteError, FillError, StridedSink, Transfer};
use tslice::format::Tensor;
use tslice::index::resolve::Selection;
use tslice::job::Casts;
use tslice::region::{GatheredList, layout_of};
use tslice::runs::Runs;
use tslice::scatter::Scatter;
use tslice::shape::{AsTuple, Order};
use tslice::source::{MemorySource, Source};
use tslice::view::{Layout, View};

use super::index::Index;
use super::target::{Target, Value, failed_value, not_broadcast, of_positions, written};
use super::{cast, output};
use crate::cli::args::AssignArgs;
use crate::cli::report::{Exit, Failure, print};

/// Write a value, or a number, into a slice, or at listed positions.
pub(super) fn run(args: &AssignArgs) -> Result<(), Failure> {
    let index = Index::parse(args.text.as_deref(), &args.index)?;
    if let Some(value) = args.what.value.as_deref() {
        index.refuse_stdin(("--value", value))?;
    }
    let workers = output::workers(args.to.threads);
    let index = index.open(args.from.io, &workers, args.to.quiet, ("TARGET", &args.target))?;
    let casts = cast::parse(&args.cast)?;
    let target = Target::open(&args.target, &args.from, &args.to, workers)?;
    let tensor = target.tensor(&args.from.tensor)?;
    let selection = index.resolve(&tensor.shape)?;
    let shape = selection.shape();
    let slice = match selection.lists.is_empty() {
        false => None,
        true => Some(View::new(&layout_of(&tensor), &selection).map_err(Failure::new)?),
    };
    let written_value = WrittenValue::open(args, (&tensor, &casts), slice.as_ref(), &shape)?;
    match slice {
        Some(slice) => into_slice(target, &tensor, (&slice, &shape), written_value),
        None => at_positions(target, &tensor, (&index, &selection), written_value),
    }
}

/// Write to ranges of positions.
fn into_slice(
    target: Target<'_>,
    tensor: &Tensor,
    (slice, shape): (&View, &[u64]),
    value: WrittenValue<'_>,
) -> Result<(), Failure> {
    let WrittenValue { view, origin, conversion, path } = value;
    let source = origin.into_kept(&target, &written(tensor, slice.bytes()))?;
    if target.is_dry_run() {
        return print(&target.describe(tensor, shape, slice.bytes())?);
    }
    let (to, from) = Runs::pair_in_memory_order(slice.runs(), view.runs());
    let pieces = Assignment::new(&to, &from, conversion, source.as_ref());
    let target = target.begin()?;
    let transfer = Transfer { source: source.as_ref(), pieces: &pieces, conversion, at: 0 };
    target.run(transfer, &StridedSink::new(target.patch(), &to), path)?;
    target.finish()
}

/// Write to positions that lists name; the last one stands where one is named twice.
fn at_positions(
    target: Target<'_>,
    tensor: &Tensor,
    (index, selection): (&Index, &Selection),
    value: WrittenValue<'_>,
) -> Result<(), Failure> {
    let WrittenValue { view, origin, conversion, path } = value;
    let (indexed, lists) = index.lists.indexed(tensor, selection).map_err(Failure::new)?;
    let scatter = Scatter::of(&layout_of(tensor), indexed, view.runs(), conversion);
    let scatter = scatter.map_err(Failure::new)?;
    let written = written(tensor, scatter.bytes());
    let kept = target.original.check_lists(&index.lists, &written);
    kept.map_err(|fault| index.failed_list(fault))?;
    let source = origin.into_kept(&target, &written)?;

    let sources: Vec<&dyn Source> = lists.iter().map(|list| list.source.as_ref()).collect();
    let failed = |error: FillError| index.failure(GatheredList::failed(&lists, error));
    scatter.check(&sources, target.workers()).map_err(|error| match error {
        ExecuteError::Fill { error, .. } => failed(error),
        error => Failure::new(error),
    })?;
    let positions = scatter.positions(&sources, target.workers()).map_err(failed)?;
    if target.is_dry_run() {
        return print(&target.describe(tensor, &selection.shape(), scatter.bytes())?);
    }
    let pieces = scatter.pieces(source.as_ref(), target.workers());
    let (pieces, spooled) = pieces.map_err(|error| failed_value(path, error))?;
    let target = target.begin()?;
    let source = spooled.as_deref().unwrap_or(source.as_ref());
    let transfer = Transfer { source, pieces: &pieces, conversion, at: 0 };
    let outcome = target.run(transfer, &scatter.sink(target.patch(), &positions), path);
    outcome.map_err(|error| match of_positions(error) {
        Ok(error) => failed(error),
        Err(error) => error.into(),
    })?;
    target.finish()
}

/// What is written: the elements of a file, or one number everywhere.
struct WrittenValue<'a> {
    /// An item for each element of the slice.
    view: View,
    origin: Origin,
    conversion: Conversion,
    /// The file.
    path: &'a Path,
}

impl<'a> WrittenValue<'a> {
    /// Open it, and fit it to the shape of the slice, which is a view where the index has no lists.
    fn open(
        args: &'a AssignArgs,
        (tensor, casts): (&Tensor, &Casts),
        slice: Option<&View>,
        shape: &[u64],
    ) -> Result<WrittenValue<'a>, Failure> {
        let path = args.what.value.as_deref().unwrap_or(Path::new(""));
        let Some(text) = &args.what.fill else {
            let name = ("--value-tensor", args.value_tensor.as_ref());
            let value = Value::open(path, name, args.from.io, (tensor, casts))
                .map_err(|failure| or_fill(failure, path, tensor))?;
            let view = fit(path, &value.tensor, slice, shape, args.broadcast)?;
            let conversion = value.conversion;
            return Ok(WrittenValue {
                view,
                origin: Origin::File(Box::new(value)),
                conversion,
                path,
            });
        };
        let origin = Origin::Number(element(text, tensor)?);
        let view = match slice {
            Some(slice) => slice.repeating(0),
            None => everywhere(tensor.dtype.item_bits(), shape)?,
        };
        Ok(WrittenValue { view, origin, conversion: Conversion::None, path })
    }
}

/// The error of a value that cannot be opened; a number is not read from a file of that name.
fn or_fill(failure: Failure, path: &Path, target: &Tensor) -> Failure {
    let number = path.to_str().filter(|text| element::parse(text, &target.dtype).is_ok());
    match number {
        Some(number) if !path.exists() => {
            failure.hint(format_args!("--value names a file; --fill {number} writes the number"))
        }
        _ => failure,
    }
}

/// One element at position 0, in place of every element of a shape.
fn everywhere(item_bits: u64, shape: &[u64]) -> Result<View, Failure> {
    let layout = Layout::new(&[], item_bits, Order::C, 0);
    let view = View::new(&layout, &Selection::whole(&[])).map_err(Failure::new)?;
    Ok(view.clone().broadcast(shape).unwrap_or(view))
}

/// Where the elements come from.
enum Origin {
    /// One element, in the target's dtype.
    Number(Vec<u8>),
    File(Box<Value>),
}

impl Origin {
    /// The bytes, none of which may lie in `written`, the bytes of the target that are changed.
    fn into_kept(
        self,
        target: &Target<'_>,
        written: &Range<u64>,
    ) -> Result<Arc<dyn Source>, Failure> {
        match self {
            Origin::Number(element) => Ok(Arc::new(MemorySource(element))),
            Origin::File(value) => value.into_kept(target, written),
        }
    }
}

/// The element of the target's dtype that `--fill` asks for.
fn element(text: &str, target: &Tensor) -> Result<Vec<u8>, Failure> {
    element::parse(text, &target.dtype).map_err(|error| {
        let failure = Failure::new(format_args!("--fill {text}: {error}"));
        match error {
            ElementError::NotANumber(_) => Failure { exit: Exit::Usage, ..failure },
            ElementError::Range { .. } if element::parse("inf", &target.dtype).is_ok() => {
                failure.hint("--fill inf writes infinity")
            }
            _ => failure,
        }
    })
}

/// The view of a whole value as it meets the slice.
fn fit(
    path: &Path,
    value: &Tensor,
    slice: Option<&View>,
    shape: &[u64],
    broadcast: bool,
) -> Result<View, Failure> {
    let failed = |message: String| Failure::file(path, message);
    let (ours, theirs) = (AsTuple(&value.shape), AsTuple(shape));
    let equal = value.shape == shape;
    let everything = Selection::whole(&value.shape);
    if !value.dtype.item_bits().is_multiple_of(8) && (equal || broadcast) {
        // runs of elements are the items here: axes don't match, but all lies in one order
        let dtype = &value.dtype;
        let refused = || failed(format!("elements of dtype {dtype} cannot be broadcast"));
        return match slice {
            _ if !equal => Err(refused()),
            Some(slice) => Ok(slice.dense(value.offset)),
            None => View::new(&layout_of(value), &everything).map_err(Failure::new),
        };
    }
    let view = View::new(&layout_of(value), &everything).map_err(Failure::new)?;
    match view.broadcast(shape) {
        Some(view) if equal || broadcast => Ok(view),
        _ if broadcast => Err(not_broadcast(path, &value.shape, shape)),
        stretched => {
            let failure =
                failed(format!("the value has shape {ours}, the slice has shape {theirs}"));
            Err(match stretched {
                Some(_) => failure.hint("--broadcast stretches it, as NumPy does"),
                None => failure,
            })
        }
    }
}
