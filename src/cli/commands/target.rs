//! A file that is changed by the flags of `assign` and `scatter`.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use tslice::error::{ContainerError, FileName};
use tslice::execute::{Conversion, ExecuteError, FillError, Progress, Transfer, Workers};
use tslice::format::{Format, Tensor, printable};
use tslice::input::{Input, OpenOptions};
use tslice::job::Casts;
use tslice::job::{Edit, EditMode, EditOptions, Original, cast_conversion};
use tslice::output::layout;
use tslice::shape::AsTuple;
use tslice::sink::{InPlaceFile, Sink, SinkError};
use tslice::source::Source;

use super::input;
use super::output::{self, refuse_terminal};
use crate::cli::args::{EditArgs, InputArgs, Io};
use crate::cli::report::{Failure, cast, human_bytes, of_flag, watch};

/// The file that is to be changed, its header read.
pub(super) struct Target<'a> {
    pub(super) original: Original,
    mode: EditMode,
    args: &'a EditArgs,
    workers: Workers,
}

impl<'a> Target<'a> {
    /// Open the file, as is needed for what is to be done with it.
    pub(super) fn open(
        path: &Path,
        from: &InputArgs,
        args: &'a EditArgs,
        workers: Workers,
    ) -> Result<Target<'a>, Failure> {
        if path == Path::new("-") {
            return Err(Failure::usage("TARGET must be a file, not standard input"));
        }
        let mode = match &args.place.output {
            None => EditMode::InPlace,
            Some(output) => EditMode::Copy(output::target(output)),
        };
        if let (EditMode::Copy(target), false) = (&mode, args.dry_run) {
            refuse_terminal(target)?;
        }
        let original = Original::open(path, mode.clone(), &input::options(from)?)?;
        let target = Target { original, mode, args, workers };
        target.check_name(path)?;
        Ok(target)
    }

    /// A copy has the format of what it is a copy of, and its name must not say another one.
    fn check_name(&self, path: &Path) -> Result<(), Failure> {
        let Some(output) = &self.args.place.output else { return Ok(()) };
        let format = self.original.input().contents().format;
        let extension = output.extension().unwrap_or_default().to_string_lossy().to_lowercase();
        let expected = match format {
            Format::Npy => "npy",
            Format::Safetensors => "safetensors",
            _ => "bin",
        };
        // raw bytes have any name that tells no other format
        let named = layout::by_extension(&extension);
        let fits = match format {
            Format::Raw => named.is_none_or(|named| named.name == "raw"),
            _ => extension == expected,
        };
        if fits || output::target(output).is_stream() {
            return Ok(());
        }
        Err(Failure::new(format_args!(
            "{}: the output is a copy of {}, in the {format} format",
            output.display(),
            path.display()
        ))
        .hint(format_args!("give it a name that ends in .{expected}")))
    }

    /// The one tensor that is changed.
    pub(super) fn tensor(&self, patterns: &[String]) -> Result<Tensor, Failure> {
        Ok(self.original.input().tensor(patterns)?)
    }

    /// The threads that work.
    pub(super) fn workers(&self) -> &Workers {
        &self.workers
    }

    fn options(&self) -> EditOptions {
        let EditArgs { force, fsync, .. } = *self.args;
        EditOptions { force, fsync, workers: self.workers.clone() }
    }

    /// Make the checks that only writing would make, and say what would be written.
    pub(super) fn describe(
        &self,
        tensor: &Tensor,
        shape: &[u64],
        bytes: u64,
    ) -> Result<String, Failure> {
        self.original.check(self.options())?;
        let input = self.original.input();
        let place = match &self.mode {
            EditMode::InPlace => format!("{}, in place", input.location()),
            EditMode::Copy(copy) => {
                format!("{}, a copy of {}", FileName::from(copy), input.location())
            }
        };
        let place = printable(&place);
        Ok(format!(
            "would write into {place}: shape {}, dtype {}, {bytes} bytes of elements ({}), \
             format {}\n",
            AsTuple(shape),
            tensor.dtype,
            human_bytes(bytes),
            input.contents().format,
        ))
    }

    /// Whether everything is only checked.
    pub(super) fn is_dry_run(&self) -> bool {
        self.args.dry_run
    }

    /// Begin to write.
    pub(super) fn begin(self) -> Result<Changing, Failure> {
        let (options, quiet) = (self.options(), self.args.quiet);
        let progress = Progress::default();
        let edit = watch(&progress, 0, quiet, || self.original.begin(options, &progress))?;
        Ok(Changing { edit, quiet })
    }
}

/// The bytes of the target's file among which `bytes` are changed.
pub(super) fn written(tensor: &Tensor, bytes: u64) -> Range<u64> {
    let end = if bytes > 0 { tensor.offset + tensor.bytes } else { tensor.offset };
    tensor.offset..end
}

/// The error of a value in the file at `path` that does not fit what is written.
pub(super) fn not_broadcast(path: &Path, value: &[u64], written: &[u64]) -> Failure {
    let (value, written) = (AsTuple(value), AsTuple(written));
    Failure::file(
        path,
        format_args!("could not broadcast input array from shape {value:#} into shape {written:#}"),
    )
}

/// The error of positions that could not be read any more while the target was written, if it is one.
pub(super) fn of_positions(error: ContainerError) -> Result<FillError, ContainerError> {
    let ContainerError { file, tensor, cause } = error;
    match cause.downcast() {
        Ok(SinkError::Positions(reason)) => match reason.downcast() {
            Ok(error) => Ok(*error),
            Err(reason) => Err(SinkError::Positions(reason).into()),
        },
        Ok(error) => Err(ContainerError { file, tensor, cause: error.into() }),
        Err(cause) => Err(ContainerError { file, tensor, cause }),
    }
}

/// The error of preparing the value in the file at `path` to be written.
pub(super) fn failed_value(path: &Path, error: ExecuteError) -> Failure {
    match error {
        ExecuteError::Fill { error: FillError::Source(error), .. } => Failure::file(path, error),
        error => Failure::new(error),
    }
}

/// A target that is being written.
pub(super) struct Changing {
    edit: Edit,
    quiet: bool,
}

impl Changing {
    /// What the bytes of the target are written through.
    pub(super) fn patch(&self) -> &InPlaceFile {
        self.edit.patch()
    }

    /// Run one transfer from the input at `path` into a sink that writes through the patch, and show
    /// how far it is.
    pub(super) fn run(
        &self,
        transfer: Transfer<'_>,
        sink: &dyn Sink,
        path: &Path,
    ) -> Result<(), ContainerError> {
        let (progress, location) = (Progress::default(), input::location(path));
        let bytes = transfer.conversion.output_bytes(transfer.pieces.bytes());
        watch(&progress, bytes, self.quiet, || self.edit.run(transfer, sink, &location, &progress))
    }

    /// All is written.
    pub(super) fn finish(self) -> Result<(), Failure> {
        Ok(self.edit.finish()?)
    }
}

/// A tensor that is read while the target is written.
pub(super) struct Value {
    pub(super) tensor: Tensor,
    /// What its elements go through on the way to the target.
    pub(super) conversion: Conversion,
    input: Input,
}

impl Value {
    /// Open a file, and choose a tensor by the name that `flag` gave, whose dtype is the target's
    /// or cast to it.
    pub(super) fn open(
        path: &Path,
        (flag, name): (&str, Option<&String>),
        io: Io,
        (target, casts): (&Tensor, &Casts),
    ) -> Result<Value, Failure> {
        let options = OpenOptions { io: io.into(), ..OpenOptions::default() };
        let input = tslice::input::open(&input::location(path), &options).map_err(of_flag(flag))?;
        let name = name.map_or(&[][..], std::slice::from_ref);
        let tensor = input.tensor(name).map_err(of_flag(flag))?;
        casts.refuse_unused(std::iter::once(tensor.dtype.clone())).map_err(ContainerError::from)?;
        let conversion = cast_conversion(&tensor.dtype, &target.dtype, casts);
        let conversion = conversion.map_err(|error| match error.downcast_ref() {
            Some(error) => cast(error),
            None => {
                let file = Some(FileName::from(input.location()));
                ContainerError { file, ..ContainerError::from(error) }.into()
            }
        })?;
        Ok(Value { tensor, conversion, input })
    }

    /// Its bytes, none of which may lie in `written`, the bytes of the target that are changed.
    pub(super) fn into_kept(
        mut self,
        target: &Target<'_>,
        written: &Range<u64>,
    ) -> Result<Arc<dyn Source>, Failure> {
        output::spool(&mut self.input, target.args.quiet)?;
        Ok(target.original.keep(self.input, &self.tensor, written)?)
    }
}
