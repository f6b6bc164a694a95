//! `tslice gather [PARAMS] --indices FILE`: gather_nd, and with --axis gather; a shuffle is run as
//! a slice.

use std::path::Path;

use tslice::error::{Error, FileName};
use tslice::execute::{ExecuteError, FillError};
use tslice::gather::{GatherError, Options, OutOfRange, count_batch_dims};
use tslice::index::{Item, List, Shuffle, numpy};
use tslice::job::{Copying, GatherOptions};
use tslice::shape::{AskedAxis, MAX_NDIM};
use tslice::tensor::axis_number;

use super::index::misread;
use super::operand::NamedTensor;
use super::{index, input, output, part};
use crate::cli::args::{GatherArgs, IndexArgs, SliceArgs};
use crate::cli::report::{Failure, watch};

pub(super) fn run(args: &GatherArgs) -> Result<(), Failure> {
    if let Some(shuffle) = shuffle(args)? {
        return run_shuffle(args, shuffle);
    }
    let Some(share) = part::share(&args.to)? else { return Ok(()) };
    let path = args.params.as_deref().unwrap_or(Path::new("-"));
    if path == Path::new("-") && args.indices == path {
        return Err(Failure::usage("PARAMS and --indices cannot both be standard input"));
    }
    if args.negative && args.out_of_range == OutOfRange::Wrap {
        let message = "--negative has no effect with --out-of-range wrap";
        return Err(Failure::usage(message).hint("wrap counts negative indices from the end"));
    }
    if args.batch_dims < 0 && args.axis.is_none() {
        return Err(Failure::usage("a negative --batch-dims cannot be used without --axis"));
    }
    let name = args.indices_tensor.as_ref();
    let workers = output::workers(args.to.threads);
    let indices = &args.indices;
    let flag = "--indices-tensor";
    let unpack = args.from.unpack;
    let named = NamedTensor { path: indices, flag, name, workers: &workers, unpack, scaling: None };
    let transpose = index::transposition(&args.transpose)?;
    let casts = index::casts(&args.cast)?;
    let transform = index::transform(Some(&args.field), &args.reshape, Some(&args.cast))?;
    let typed = named.typed()?;
    let output = output::open(&args.to, &input::location(path), &workers)?;
    let options = input::options(&args.from, args.field.field.as_deref(), &workers)?;
    let mut params = input::open_watched(&input::location(path), &options, args.to.quiet)?;
    let tensor = params.transformed_tensor(&options.tensors, &transform)?;
    let indices = typed.map_or_else(|| named.indices(args.from.io, args.to.quiet), Ok)?;
    let batch_dims = count_batch_dims(args.batch_dims, &indices.tensor().shape);
    let how = Options {
        batch_dims: batch_dims.map_err(Failure::new)?,
        elements: args.elements,
        negative: args.negative || args.elements,
        out_of_range: args.out_of_range,
        ..Options::default()
    };
    let axis = args.axis.as_ref().map(|axis| axis_number(&tensor, axis)).transpose();
    let axis = axis.map_err(Error::from)?;
    let options = GatherOptions { axis, how, transpose, casts };
    // shapes first: a misfit is reported before a pipe has ended
    let shapes = options.check_shapes(&tensor, indices.tensor());
    shapes.map_err(|error| misfit(error, indices.file()))?;
    let indices = watch(0, args.to.quiet, |progress| indices.into_indices(&workers, progress))?;
    let mut job = Copying::gather(params, &tensor, &indices, &options, output)?;
    output::run(&mut job, &args.to, &share, advised)
}

/// The shuffle that --indices names in place of a file.
fn shuffle(args: &GatherArgs) -> Result<Option<Shuffle>, Failure> {
    let Some(text) = args.indices.to_str().filter(|text| text.starts_with("shuffle(")) else {
        return Ok(None);
    };
    let parsed = numpy::parse(text).map_err(|error| {
        misread("--indices", text)(error)
            .hint("a file whose name begins with 'shuffle(' is reached as ./shuffle(...")
    })?;
    let [Item::List(List::Shuffle(shuffle))] = parsed.expr.items[..] else {
        return Err(Failure::usage("--indices takes one shuffle").at(text, 0..text.len()));
    };
    if args.axis.is_none() {
        let message = "--indices shuffle(...) is the order of one axis, and needs --axis";
        return Err(Failure::usage(message).hint("--axis 0 shuffles the first axis"));
    }
    let flags = [
        (args.batch_dims != 0, "--batch-dims"),
        (args.elements, "--elements"),
        (args.negative, "--negative"),
        (args.out_of_range != OutOfRange::Error, "--out-of-range"),
        (args.indices_tensor.is_some(), "--indices-tensor"),
    ];
    match flags.into_iter().find(|(is_given, _)| *is_given) {
        Some((_, flag)) => {
            let message = "has no effect: a shuffle takes each position of its axis once";
            Err(Failure::usage(format_args!("{flag} {message}")))
        }
        None => Ok(Some(shuffle)),
    }
}

/// Run the main job with an index that is this shuffle along the axis.
fn run_shuffle(args: &GatherArgs, shuffle: Shuffle) -> Result<(), Failure> {
    let axis = match &args.axis {
        None => 0,
        Some(AskedAxis::Number(axis)) => *axis,
        Some(named) => {
            let path = args.params.as_deref().unwrap_or(Path::new("-"));
            let workers = output::workers(args.to.threads);
            let options = input::options(&args.from, args.field.field.as_deref(), &workers)?;
            let transform = index::transform(Some(&args.field), &args.reshape, Some(&args.cast))?;
            let mut params = input::open_watched(&input::location(path), &options, args.to.quiet)?;
            let tensor = params.transformed_tensor(&options.tensors, &transform)?;
            axis_number(&tensor, named).map_err(Error::from)?
        }
    };
    // more axes are beyond every tensor
    let whole = |count: u64| ":, ".repeat(count.min(MAX_NDIM as u64) as usize);
    let text = if axis < 0 {
        format!("[..., {shuffle}, {}]", whole(axis.unsigned_abs() - 1))
    } else {
        format!("[{}{shuffle}]", whole(axis.unsigned_abs()))
    };
    super::slice::run(&SliceArgs {
        input: args.params.clone().unwrap_or_else(|| "-".into()),
        index: IndexArgs {
            text: Some(text),
            reshape: args.reshape.clone(),
            ..IndexArgs::default()
        },
        field: args.field.clone(),
        transpose: args.transpose.clone(),
        cast: args.cast.clone(),
        from: args.from.clone(),
        to: args.to.clone(),
        keep_rest: false,
        rename: Vec::new(),
        rename_from: None,
    })
}

fn misfit(error: Error, file: Option<&FileName>) -> Failure {
    match (error.cause.downcast_ref(), file) {
        (Some(error @ GatherError::NotIntegers(_)), Some(file)) => {
            Failure::new(format_args!("{file}: {error}"))
        }
        (Some(GatherError::LongTuples { indices, .. }), _) if indices.len() == 1 => {
            Failure::from(error).hint(ALONG)
        }
        _ => error.into(),
    }
}

/// A hint at the usual meaning of a flat list of indices.
const ALONG: &str = "--axis 0 takes each number as a position on the first axis";

/// Word the error of indices, with the flag that would make them right.
fn advised(error: Error) -> Failure {
    let hint = match error.cause.downcast_ref() {
        Some(ExecuteError::Fill { error: FillError::Position(bad), .. }) => match bad {
            bad if bad.fits_first_axis() => Some(ALONG),
            bad if bad.counts_from_the_end() => {
                Some("--negative counts negative indices from the end, as np.take does")
            }
            _ => None,
        },
        _ => None,
    };
    Failure::from(error).hint_if(hint)
}
