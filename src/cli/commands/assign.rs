//! `tslice assign TARGET [INDEX] --value FILE`: NumPy's `target[index] = value`.

use std::path::Path;

use tslice::dtype::DType;
use tslice::element;
use tslice::element::ElementError;
use tslice::error::Error;
use tslice::execute::{ExecuteError, FillError, Workers};
use tslice::format::TensorInfo;
use tslice::gather::GatherError;
use tslice::index::list::parse as parse_list;
use tslice::input::OpenOptions;
use tslice::job::{Casts, Editing, Operand, ScatterOptions};
use tslice::output::WriteOptions;
use tslice::region::IndexTensor;
use tslice::scatter::ScatterError;
use tslice::source::IoMode;

use super::super::args::{EditArgs, InputArgs, ReshapeArgs, ScatterArgs};
use super::super::report::of_flag;
use super::index::{Index, misread};
use super::output::Dry;
use super::part::Share;
use super::{index, input, output, tensors};
use crate::cli::args::AssignArgs;
use crate::cli::report::{Exit, Failure};

pub(super) fn run(args: &AssignArgs) -> Result<(), Failure> {
    let index = Index::parse(args.text.as_deref(), &args.index)?;
    if let Some(value) = args.what.value.as_deref() {
        index.refuse_stdin("--value", value)?;
    }
    let workers = output::workers(args.to.threads);
    let index = index.open(&args.from, &workers, args.to.quiet, "TARGET", &args.target)?;
    let casts = index::casts(&args.cast)?;
    let mut job = open(&args.target, &args.from, &args.index.reshape, &args.to, &workers)?;
    let failed = |error| index.failure(error);
    let slices = (0..job.tensors().len()).map(|number| job.slice(number, index.of_job()));
    let slices = slices.collect::<Result<Vec<_>, _>>().map_err(failed)?;
    let values = values(args, &job, &workers)?;
    refuse_unused(&casts, &values)?;
    let broadcast = args.broadcast || args.what.fill.is_some();
    for (slice, value) in slices.into_iter().zip(values) {
        job.assign(slice, value, &casts, broadcast).map_err(failed)?;
    }
    output::perform(
        &mut job,
        &Share::Whole,
        Dry::of(args.to.dry_run, args.to.json),
        args.to.quiet,
        failed,
    )
}

/// What is written to each tensor: elements of a file, or one number everywhere.
fn values(args: &AssignArgs, job: &Editing, workers: &Workers) -> Result<Vec<Operand>, Failure> {
    if let Some(text) = &args.what.fill {
        let element = |tensor: &TensorInfo| {
            let dtype = &tensor.dtype;
            Ok(IndexTensor::element(number(text, dtype)?, dtype).into())
        };
        return job.tensors().map(element).collect();
    }
    let path = args.what.value.as_deref().unwrap_or(Path::new(""));
    let name = args.value_tensor.as_ref();
    let unpack = args.from.unpack;
    let named = NamedTensor { path, flag: "--value-tensor", name, workers, unpack };
    // --value takes no numbers, unless a file has such a name
    let is_number =
        |text: &&str| job.tensors().any(|tensor| element::parse(text, &tensor.dtype).is_ok());
    let number = path.to_str().filter(is_number).filter(|_| !path.exists());
    let hint =
        number.map(|number| format!("--value names a file; --fill {number} writes the number"));
    let values = named.for_each(&names(job), args.from.io, args.to.quiet);
    values.map_err(|failure| failure.hint_if(hint))
}

fn number(text: &str, target: &DType) -> Result<Vec<u8>, Failure> {
    element::parse(text, target).map_err(|error| {
        let failure = Failure::new(format_args!("--fill {text}: {error}"));
        match error {
            ElementError::NotANumber(_) => Failure { exit: Exit::Usage, ..failure },
            ElementError::Range { .. } if element::parse("inf", target).is_ok() => {
                failure.hint("--fill inf writes infinity")
            }
            _ => failure,
        }
    })
}

pub(super) fn run_scatter(args: &ScatterArgs) -> Result<(), Failure> {
    if args.indices == Path::new("-") && args.values == args.indices {
        return Err(Failure::usage("--indices and --values cannot both be standard input"));
    }
    let name = args.indices_tensor.as_ref();
    let workers = output::workers(args.to.threads);
    let path = &args.indices;
    let flag = "--indices-tensor";
    let indices = NamedTensor { path, flag, name, workers: &workers, unpack: args.from.unpack };
    let typed = indices.typed()?;
    let casts = index::casts(&args.cast)?;
    let options =
        ScatterOptions { axis: args.axis.clone(), out_of_range: args.out_of_range, casts };
    let mut job = open(&args.target, &args.from, &args.reshape, &args.to, &workers)?;
    let indices = typed.map_or_else(|| indices.indices(args.from.io, args.to.quiet), Ok)?;
    let name = args.values_tensor.as_ref();
    let path = &args.values;
    let unpack = args.from.unpack;
    let flag = "--values-tensor";
    let values = NamedTensor { path, flag, name, workers: &workers, unpack };
    let values = values.for_each(&names(&job), args.from.io, args.to.quiet)?;
    refuse_unused(&options.casts, &values)?;
    for (number, value) in values.into_iter().enumerate() {
        job.scatter(number, indices.clone(), value, &options).map_err(advised)?;
    }
    output::perform(
        &mut job,
        &Share::Whole,
        Dry::of(args.to.dry_run, args.to.json),
        args.to.quiet,
        advised,
    )
}

/// Word the error of a scatter, whose target takes the place of gather's params.
fn advised(error: Error) -> Failure {
    let (is_flat, of_params) = match (error.cause.downcast_ref(), error.cause.downcast_ref()) {
        (Some(ScatterError::Indices(GatherError::LongTuples { indices, .. })), _) => {
            (indices.len() == 1, true)
        }
        (Some(_), _) => (false, error.file.is_none()),
        (_, Some(ExecuteError::Fill { error: FillError::Position(_), .. })) => (false, true),
        _ => (false, false),
    };
    let failure = Failure::from(error);
    let failure = if of_params {
        Failure { message: failure.message.replace("params", "target"), ..failure }
    } else {
        failure
    };
    let rows = is_flat.then_some("one position a row is an index tensor of shape [N, 1]");
    failure.hint_if(rows)
}

pub(super) fn open(
    path: &Path,
    from: &InputArgs,
    reshape: &ReshapeArgs,
    to: &EditArgs,
    workers: &Workers,
) -> Result<Editing, Failure> {
    if path == Path::new("-") {
        return Err(Failure::usage("TARGET must be a file, not standard input"));
    }
    let copy = to.place.output.as_deref().map(output::target);
    if let (Some(copy), false) = (&copy, to.dry_run) {
        output::refuse_terminal(copy)?;
    }
    let mut options = WriteOptions::default().force(to.force).fsync(to.fsync).workers(workers);
    options.metadata = output::metadata(&to.metadata)?;
    if to.place.in_place && options.metadata.is_any() {
        let message = "--metadata, --metadata-from and --no-metadata are for a copy, -o FILE: in place \
                       a header stays as it is";
        return Err(Failure::usage(message));
    }
    let seen = index::seen(None, reshape)?;
    let mut job = Editing::open(path, &input::options(from, None, workers)?, copy, options)?;
    job.see(&seen)?;
    Ok(job)
}

pub(super) fn names(job: &Editing) -> Vec<Option<String>> {
    job.tensors().map(|tensor| tensor.name.clone()).collect()
}

pub(super) fn refuse_unused(casts: &Casts, values: &[Operand]) -> Result<(), Failure> {
    let dtypes = values.iter().map(|value| value.tensor().dtype.clone());
    Ok(casts.refuse_unused(dtypes).map_err(Error::from)?)
}

/// A tensor in another file, which `flag` chooses by its name.
pub(super) struct NamedTensor<'a> {
    pub(super) path: &'a Path,
    pub(super) flag: &'a str,
    pub(super) name: Option<&'a String>,
    /// The threads that parse a text.
    pub(super) workers: &'a Workers,
    /// Whether packed values are unpacked.
    pub(super) unpack: bool,
}

impl NamedTensor<'_> {
    /// Open the file, and find the tensor for each of `names`: as asked, of that name, or the only one.
    pub(super) fn for_each(
        &self,
        names: &[Option<String>],
        io: IoMode,
        quiet: bool,
    ) -> Result<Vec<Operand>, Failure> {
        if self.name.is_some() {
            return Ok(vec![self.open(io, false, quiet)?; names.len()]);
        }
        let workers = self.workers.clone();
        let unpack = self.unpack;
        let options = OpenOptions { io, workers, unpack, ..OpenOptions::default() };
        let opened = input::open_watched(&input::location(self.path), &options, quiet);
        let operands = opened.and_then(|input| {
            let tensors = &input.contents().tensors;
            let meant: Vec<usize> = match tensors.len() {
                1 => vec![0],
                _ => names.iter().flatten().filter_map(|name| tensors.number_of(name)).collect(),
            };
            tensors::note_packed(tensors::of_numbers(&input, &meant));
            Operand::for_each(input, names)
        });
        operands.map_err(of_flag(self.flag))
    }

    /// Open the file; if `integers` are needed, those in a text become an index tensor.
    pub(super) fn open(&self, io: IoMode, integers: bool, quiet: bool) -> Result<Operand, Failure> {
        let workers = self.workers.clone();
        let unpack = self.unpack;
        let options = OpenOptions { io, integers, workers, unpack, ..OpenOptions::default() };
        let opened = input::open_watched(&input::location(self.path), &options, quiet);
        let name = self.name.map_or(&[][..], std::slice::from_ref);
        let operand = opened.and_then(|input| {
            tensors::note_packed(tensors::of_numbers(&input, &input.find(name)?));
            Operand::of_input(input, name)
        });
        operand.map_err(of_flag(self.flag))
    }

    pub(super) fn typed(&self) -> Result<Option<Operand>, Failure> {
        let Some(text) = self.path.to_str().filter(|text| text.starts_with('[')) else {
            return Ok(None);
        };
        let list = parse_list(text).map_err(|error| {
            misread("--indices", text)(error)
                .hint("a file whose name begins with a bracket is reached as ./[...")
        })?;
        if let Some(name) = self.name {
            let message = format!("--indices-tensor {name} has no effect: the indices are a list");
            return Err(Failure::usage(message));
        }
        Ok(Some(IndexTensor::new(&list.values, list.shape).into()))
    }

    /// Read the indices from the file; if that fails, hint at a list typed without brackets.
    pub(super) fn indices(&self, io: IoMode, quiet: bool) -> Result<Operand, Failure> {
        let list = self.path.to_str().map(|text| format!("[{text}]"));
        let list = list.filter(|list| parse_list(list).is_ok() && !self.path.exists());
        let hint =
            list.map(|list| format!("--indices names a file; a list has brackets: '{list}'"));
        self.open(io, true, quiet).map_err(|failure| failure.hint_if(hint))
    }
}
