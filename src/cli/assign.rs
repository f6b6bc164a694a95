//! `tslice assign TARGET [INDEX] --value FILE`: NumPy's `target[index] = value`.

use std::path::{Path, PathBuf};

use tslice::dtype::DType;
use tslice::execute::{Assignment, Copy, Spread};
use tslice::format::{Format, Tensor};
use tslice::index::resolve::resolve;
use tslice::number::{self, NumberError};
use tslice::plan::Strided;
use tslice::shape::Tuple;
use tslice::source::{self, Memory, Source};
use tslice::view::{Layout, View};

use super::args::{AssignArgs, InputArgs};
use super::edit::Target;
use super::exit::Exit;
use super::index::Index;
use super::input::{Input, failed_source, spool};
use super::print;
use super::report::Failure;

/// Write a value, or a number, into a slice.
pub(crate) fn run(args: &AssignArgs) -> Result<(), Failure> {
    let index = Index::parse(args.text.as_deref(), &args.index)?;
    index.refuse_list()?;
    let target = Target::open(&args.target, &args.to)?;
    let tensor = target.input.tensor(&args.from.tensor)?.clone();
    let selection = index.resolve(&tensor.shape)?;
    let slice = View::new(&layout(&tensor), &selection).map_err(Failure::new)?;
    let value = match &args.what.fill {
        Some(number) => Value::fill(number, &tensor, &slice)?,
        None => Value::open(args, &tensor, &slice, &selection.shape())?,
    };
    if args.to.dry_run {
        return print(&target.describe(&tensor, &selection.shape(), slice.bytes())?);
    }
    let value = value.ready(&target, &tensor)?;
    let (to, from) = Strided::pair(&slice, &value.view);
    let pieces = Assignment::new(&to, from, value.swap_width as u64);
    let edit = target.begin()?;
    let copy = Copy {
        source: value.source.as_ref(),
        pieces: &pieces,
        swap_width: value.swap_width,
        at: 0,
    };
    edit.run(copy, &Spread::new(&edit.patch, &to), &value.path)?;
    edit.finish()
}

/// How the elements of a tensor lie in its file.
fn layout(tensor: &Tensor) -> Layout<'_> {
    Layout {
        shape: &tensor.shape,
        item_bits: tensor.dtype.item_bits(),
        order: tensor.order,
        offset: tensor.offset,
    }
}

/// What is to be written: a view of the slice's shape, of an input that may yet have to be kept.
struct Value<S> {
    source: S,
    path: PathBuf,
    view: View,
    /// Bytes that change places on the way; 1 for none.
    swap_width: usize,
}

/// Where the elements come from, as long as nothing is written.
enum Origin {
    Number(Memory),
    File(Box<Input>, Tensor),
}

impl Value<Origin> {
    /// One number, everywhere.
    fn fill(text: &str, target: &Tensor, slice: &View) -> Result<Value<Origin>, Failure> {
        let element = number::element(text, &target.dtype).map_err(|error| {
            let failure = Failure::new(format_args!("--fill {text}: {error}"));
            match error {
                NumberError::NotANumber(_) => Failure { exit: Exit::Usage, ..failure },
                _ => failure,
            }
        })?;
        let view = slice.repeating(0);
        let source = Origin::Number(Memory(element));
        Ok(Value { source, path: PathBuf::new(), view, swap_width: 1 })
    }

    /// The tensor of a file, checked against the slice.
    fn open(
        args: &AssignArgs,
        target: &Tensor,
        slice: &View,
        shape: &[u64],
    ) -> Result<Value<Origin>, Failure> {
        let path = args.what.value.clone().unwrap_or_default();
        let InputArgs { io, .. } = args.from;
        let input = Input::open(&path, io)?;
        let tensor = input.tensor_by("--value-tensor", args.value_tensor.as_slice())?.clone();
        let swap_width = swap_width(&tensor.dtype, &target.dtype).ok_or_else(|| {
            let (ours, theirs) = (&tensor.dtype, &target.dtype);
            Failure::file(&path, format!("the value has dtype {ours}, the target has {theirs}"))
        })?;
        let view = fit(&path, &tensor, slice, shape, args.broadcast)?;
        Ok(Value { source: Origin::File(Box::new(input), tensor), path, view, swap_width })
    }

    /// Make sure that all of it is there and stays as it is while the target is written: a pipe
    /// is read to its end, and what lies in the bytes that are to be written is kept elsewhere.
    fn ready(
        self,
        target: &Target<'_>,
        tensor: &Tensor,
    ) -> Result<Value<Box<dyn Source>>, Failure> {
        let Value { source, path, view, swap_width } = self;
        let (input, value) = match source {
            Origin::Number(element) => {
                return Ok(Value { source: Box::new(element), path, view, swap_width });
            }
            Origin::File(input, value) => (*input, value),
        };
        let (source, view) = match input.bytes {
            source::Input::Forward(stream) => {
                let (source, gone) = spool(&path, stream, &input.contents)?;
                (source, view.after(gone))
            }
            source::Input::Random(source)
                if target.is_written_by(&path)
                    && (path == Path::new("-") || overlap(&value, tensor)) =>
            {
                let range = value.offset..value.offset + value.bytes;
                let kept = source::keep(source.as_ref(), range)
                    .map_err(|error| failed_source(&path, &error))?;
                (kept, view.after(value.offset))
            }
            source::Input::Random(source) => (source, view),
        };
        Ok(Value { source, path, view, swap_width })
    }
}

/// Whether two tensors of one file share bytes.
fn overlap(a: &Tensor, b: &Tensor) -> bool {
    a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes
}

/// The bytes that change places between two dtypes that are one but for their byte order; `None`
/// for two different ones. What a `.npy` has as `<V2` is the bfloat16 that it was made of.
fn swap_width(value: &DType, target: &DType) -> Option<usize> {
    match (value, target) {
        (DType::Scalar(ours, from), DType::Scalar(theirs, to)) => {
            (ours == theirs).then(|| if from == to { 1 } else { target.swap_width() })
        }
        (DType::Npy(ours), DType::Npy(theirs)) => (ours == theirs).then_some(1),
        (stored @ DType::Npy(_), scalar) | (scalar, stored @ DType::Npy(_)) => {
            (Format::Npy.stored_dtype(scalar).ok().as_ref() == Some(stored)).then_some(1)
        }
    }
}

/// The view of a whole value as it meets the slice.
fn fit(
    path: &Path,
    value: &Tensor,
    slice: &View,
    shape: &[u64],
    broadcast: bool,
) -> Result<View, Failure> {
    let (ours, theirs) = (Tuple(&value.shape), Tuple(shape));
    let equal = value.shape == shape;
    let everything = resolve(&Default::default(), &value.shape, false).map_err(Failure::new)?;
    if !value.dtype.item_bits().is_multiple_of(8) {
        // runs of elements are the items here: axes don't match, but all lies in one order
        return if equal {
            Ok(slice.dense(value.offset))
        } else if broadcast {
            let dtype = &value.dtype;
            Err(Failure::file(path, format!("elements of dtype {dtype} cannot be broadcast")))
        } else {
            Err(Failure::file(path, format!("the value has shape {ours}, the slice has {theirs}")))
        };
    }
    let view = View::new(&layout(value), &everything).map_err(|e| Failure::file(path, e))?;
    let stretched = view.clone().broadcast(shape);
    match stretched {
        Some(view) if equal || broadcast => Ok(view),
        _ if broadcast => Err(Failure::file(
            path,
            format!("could not broadcast input array from shape {ours} into shape {theirs}"),
        )),
        fits => {
            let message = format!("the value has shape {ours}, the slice has shape {theirs}");
            let failure = Failure::file(path, message);
            Err(match fits {
                Some(_) => failure.hint("--broadcast stretches it, as NumPy does"),
                None => failure,
            })
        }
    }
}
