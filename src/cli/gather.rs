//! `tslice gather [PARAMS] --indices FILE`: gather_nd, and with --axis gather.

use std::path::{Path, PathBuf};

use tslice::dtype::{DType, Endian, Scalar};
use tslice::execute::{ExecuteError, FillError};
use tslice::format::Tensor;
use tslice::gather::{Gather, GatherError, Indices, Options, OutOfRange};
use tslice::index::array;
use tslice::shape::Order;
use tslice::source::{MemorySource, Source};
use tslice::view::Layout;

use super::args::{self, GatherArgs, Outside};
use super::edit::Target;
use super::input::{Input, failed_source};
use super::job::{Job, threads};
use super::output::{Item, Output};
use super::print;
use super::report::Failure;
use super::value::{Kept, keep};

/// Write the slabs at the positions that the indices name to the output.
pub(crate) fn run(args: &GatherArgs) -> Result<(), Failure> {
    let path = args.params.as_deref().unwrap_or(Path::new("-"));
    if path == Path::new("-") && args.indices == path {
        return Err(Failure::usage("PARAMS and --indices cannot both be standard input"));
    }
    let indices = (args.indices.as_path(), args.indices_tensor.as_ref());
    let typed = typed(indices)?;
    let output = Output::new(&args.to)?;
    let params = Input::open(path, args.io)?;
    let tensor = params.tensor(args.tensor.as_slice())?.clone();
    let numbers = typed.map_or_else(|| Numbers::open(indices, args.io), Ok)?;
    let gather = gather(args, &tensor, params.gone(), &numbers, output.order)?;
    let name = output.tensor_name(&tensor, path, true);
    let item = Item { name: &name, dtype: &tensor.dtype, shape: gather.shape().to_vec() };
    let prepared = output.prepare(&[item], &params.contents.metadata)?;

    let (indices_path, indices) = numbers.into_source()?;
    let indices = (indices_path.as_path(), indices.as_ref());
    let failed = |error| failed_indices(indices, error);
    let gathering = gather.with(indices.1).map_err(failed)?;
    let check = || {
        gathering.check(threads(args.to.threads)).map_err(|error| match error {
            ExecuteError::Fill { error, .. } => failed(error),
            error => Failure::new(error),
        })
    };
    if args.to.dry_run {
        check()?;
        return print(&output.describe(&prepared)?);
    }
    let (_, source) = params.into_source()?;
    let job = Job::begin_checked(&output, &prepared, &args.to, |is_atomic| {
        if is_atomic && gathering.checks_itself() { Ok(()) } else { check() }
    })?;
    for placed in &prepared.tensors {
        let params = (path, source.as_ref());
        job.gather(&gathering, params, indices, (placed.swap_width, placed.at))?;
    }
    job.commit()
}

/// What the arguments ask for, of a tensor whose file has lost its first `gone` bytes.
fn gather(
    args: &GatherArgs,
    tensor: &Tensor,
    gone: u64,
    numbers: &Numbers,
    order: Order,
) -> Result<Gather, Failure> {
    let params = Layout {
        shape: &tensor.shape,
        item_bits: tensor.dtype.item_bits(),
        order: tensor.order,
        offset: tensor.offset - gone,
    };
    let indices = numbers.indices();
    let out_of_range = match args.out_of_range {
        Outside::Error => OutOfRange::Error,
        Outside::Zero => OutOfRange::Drop,
        Outside::Clip => OutOfRange::Clip,
        Outside::Wrap => OutOfRange::Wrap,
    };
    let options = Options {
        batch_dims: args.batch_dims.into(),
        out_of_range,
        order,
        unit: tensor.dtype.swap_width() as u64,
        ..Options::default()
    };
    match args.axis {
        None => Gather::nd(&params, &indices, &options),
        Some(axis) => Gather::along(&params, &indices, axis, &options),
    }
    .map_err(|error| match error {
        GatherError::NotIntegers(_) => Failure::file(&args.indices, error),
        error => Failure::new(error),
    })
}

/// An index tensor, in a file or typed on the command line.
pub(crate) struct Numbers {
    pub(crate) tensor: Tensor,
    /// The bytes before the source's first.
    gone: u64,
    from: From,
}

enum From {
    File(Box<Input>),
    Typed(MemorySource),
    Kept(Box<dyn Source>),
}

impl Numbers {
    /// Open the file, and choose the tensor of that name.
    pub(crate) fn open(
        (path, name): (&Path, Option<&String>),
        io: args::Io,
    ) -> Result<Numbers, Failure> {
        let input = Input::open(path, io)?;
        let name = name.map_or(&[][..], std::slice::from_ref);
        let tensor = input.tensor_by("--indices-tensor", name)?.clone();
        Ok(Numbers { tensor, gone: input.gone(), from: From::File(Box::new(input)) })
    }

    pub(crate) fn indices(&self) -> Indices<'_> {
        let Tensor { dtype, shape, order, offset, .. } = &self.tensor;
        Indices { dtype, shape, order: *order, offset: offset - self.gone }
    }

    /// Let them stay as they are while the target is written.
    pub(crate) fn kept(self, target: &Target<'_>, written: &Tensor) -> Result<Numbers, Failure> {
        let Numbers { tensor, from, gone } = self;
        match from {
            From::File(input) => {
                let Kept { source, gone } = keep(*input, &tensor, target, written)?;
                Ok(Numbers { tensor, gone, from: From::Kept(source) })
            }
            from => Ok(Numbers { tensor, gone, from }),
        }
    }

    pub(crate) fn into_source(self) -> Result<(PathBuf, Box<dyn Source>), Failure> {
        match self.from {
            From::File(input) => input.into_source(),
            From::Kept(source) => Ok((PathBuf::new(), source)),
            From::Typed(bytes) => Ok((PathBuf::new(), Box::new(bytes))),
        }
    }
}

/// The indices, where they were typed.
pub(crate) fn typed((path, name): (&Path, Option<&String>)) -> Result<Option<Numbers>, Failure> {
    let Some(text) = path.to_str().filter(|text| text.starts_with('[')) else {
        return Ok(None);
    };
    let array = array::parse(text).map_err(|error| {
        Failure::usage(format_args!("--indices: {error}"))
            .at(text, error.span.clone())
            .hint("a file whose name begins with a bracket is reached as ./[...")
    })?;
    if let Some(name) = name {
        let message = format!("--indices-tensor {name} has no effect: the indices are a list");
        return Err(Failure::usage(message));
    }
    let bytes: Vec<u8> = array.values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let tensor = Tensor {
        name: None,
        dtype: DType::Scalar(Scalar::I64, Endian::Little),
        shape: array.shape,
        order: Order::C,
        part: 0,
        offset: 0,
        bytes: bytes.len() as u64,
    };
    Ok(Some(Numbers { tensor, gone: 0, from: From::Typed(MemorySource(bytes)) }))
}

/// What is to be said of indices that are bad, or could not be read.
pub(crate) fn failed_indices((path, source): (&Path, &dyn Source), error: FillError) -> Failure {
    match (source.verify(), error) {
        // a file that was cut short is the reason for whatever else is wrong with it
        (Err(error), _) | (Ok(()), FillError::Indices(error) | FillError::Source(error)) => {
            failed_source(path, &error)
        }
        (Ok(()), error) => Failure::new(error),
    }
}
