//! `tslice assign TARGET [INDEX] --value FILE`: NumPy's `target[index] = value`.

use std::path::Path;
use std::sync::Arc;

use tslice::container::layout_of;
use tslice::element::{self, ElementError};
use tslice::execute::{Assignment, Conversion, StridedSink, Transfer};
use tslice::format::Tensor;
use tslice::index::resolve::resolve;
use tslice::runs::Runs;
use tslice::shape::AsTuple;
use tslice::source::{MemorySource, Source};
use tslice::view::View;

use super::cast;
use super::index::Index;
use super::target::{Target, Value, written};
use crate::cli::args::AssignArgs;
use crate::cli::report::{Exit, Failure, print};

/// Write a value, or a number, into a slice.
pub(super) fn run(args: &AssignArgs) -> Result<(), Failure> {
    let index = Index::parse(args.text.as_deref(), &args.index)?;
    index.refuse_list()?;
    let casts = cast::parse(&args.cast)?;
    let target = Target::open(&args.target, &args.to)?;
    let tensor = target.tensor(&args.from.tensor)?;
    let selection = index.resolve(&tensor.shape)?;
    let slice = View::new(&layout_of(&tensor), &selection).map_err(Failure::new)?;
    let shape = selection.shape();
    let path = args.what.value.as_deref().unwrap_or(Path::new(""));
    let (view, origin, conversion) = match &args.what.fill {
        Some(text) => {
            (slice.repeating(0), Origin::Number(element(text, &tensor)?), Conversion::None)
        }
        None => {
            let name = ("--value-tensor", args.value_tensor.as_ref());
            let value = Value::open(path, name, args.from.io, (&tensor, &casts))?;
            let view = fit(path, &value.tensor, &slice, &shape, args.broadcast)?;
            let conversion = value.conversion;
            (view, Origin::File(Box::new(value)), conversion)
        }
    };
    let source: Arc<dyn Source> = match origin {
        Origin::Number(element) => Arc::new(MemorySource(element)),
        Origin::File(value) => value.into_kept(&target, &written(&tensor, slice.bytes()))?,
    };
    if args.to.dry_run {
        return print(&target.describe(&tensor, &shape, slice.bytes())?);
    }
    let (to, from) = Runs::pair_in_memory_order(slice.runs(), view.runs());
    let limit = source.window_limit();
    let pieces = Assignment::new(&to, &from, conversion, limit);
    let target = target.begin()?;
    let transfer = Transfer { source: source.as_ref(), pieces: &pieces, conversion, at: 0 };
    target.run(transfer, &StridedSink::new(target.patch(), &to), path)?;
    target.finish()
}

/// Where the elements come from.
enum Origin {
    /// One element, in the target's dtype.
    Number(Vec<u8>),
    File(Box<Value>),
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
    slice: &View,
    shape: &[u64],
    broadcast: bool,
) -> Result<View, Failure> {
    let failed = |message: String| Failure::file(path, message);
    let (ours, theirs) = (AsTuple(&value.shape), AsTuple(shape));
    let equal = value.shape == shape;
    if !value.dtype.item_bits().is_multiple_of(8) && (equal || broadcast) {
        // runs of elements are the items here: axes don't match, but all lies in one order
        let dtype = &value.dtype;
        let refused = || failed(format!("elements of dtype {dtype} cannot be broadcast"));
        return equal.then(|| slice.dense(value.offset)).ok_or_else(refused);
    }
    let everything = resolve(&Default::default(), &value.shape, false).map_err(Failure::new)?;
    let view = View::new(&layout_of(value), &everything).map_err(Failure::new)?;
    match view.broadcast(shape) {
        Some(view) if equal || broadcast => Ok(view),
        _ if broadcast => Err(failed(format!(
            "could not broadcast input array from shape {ours} into shape {theirs}"
        ))),
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
