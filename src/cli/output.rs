//! The output that was asked for: its place, its format, its header.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal};
use std::path::Path;

use tslice::dtype::DType;
use tslice::format::{Format, Tensor, npy, safetensors};
use tslice::shape::{self, Order};
use tslice::sink::{self, Sink, SinkError, Target};

use super::args::{OrderArg, OutputArgs, To};
use super::exit::Exit;
use super::report::{Failure, human_bytes, plain};

/// Where an output goes, and in what form.
pub(crate) struct Output {
    target: Target,
    pub(crate) format: Format,
    pub(crate) order: Order,
    name: Option<String>,
    force: bool,
    fsync: bool,
}

/// One tensor on its way into an output: the header before it and what has to be done to it.
pub(crate) struct Prepared {
    /// All bytes before the elements.
    pub(crate) header: Vec<u8>,
    /// The dtype that the output has, which may differ in byte order.
    pub(crate) dtype: DType,
    pub(crate) shape: Vec<u64>,
    /// Bytes of the elements.
    pub(crate) bytes: u64,
    /// Bytes that change places on the way; 1 for none.
    pub(crate) swap_width: usize,
}

impl Output {
    /// Understand the flags, and refuse contradictions among them.
    pub(crate) fn new(args: &OutputArgs) -> Result<Output, Failure> {
        let target = match &args.output {
            Some(path) if path != Path::new("-") => Target::Path(path.clone()),
            _ => Target::Stdout,
        };
        let format = match (args.to, &target) {
            (Some(To::Npy), _) | (None, Target::Stdout) => Format::Npy,
            (Some(To::Safetensors), _) => Format::Safetensors,
            (None, Target::Path(path)) => by_name(path)?,
        };
        if format == Format::Npy && args.name.is_some() {
            return Err(Failure::usage("--name has no effect: a .npy file names no tensor"));
        }
        if format == Format::Safetensors && matches!(args.order, Some(OrderArg::F)) {
            return Err(Failure::usage(
                "--order F has no effect: a .safetensors file is always in C order",
            ));
        }
        Ok(Output {
            target,
            format,
            order: if matches!(args.order, Some(OrderArg::F)) { Order::F } else { Order::C },
            name: args.name.clone(),
            force: args.force,
            fsync: args.fsync,
        })
    }

    /// Fit a tensor of that dtype and shape, taken from `from` in the file `input`, to the output.
    pub(crate) fn prepare(
        &self,
        from: &Tensor,
        input: &Path,
        shape: Vec<u64>,
        metadata: &BTreeMap<String, String>,
    ) -> Result<Prepared, Failure> {
        let dtype = self.format.stored_dtype(&from.dtype).map_err(Failure::new)?;
        let bytes = shape::byte_count(&shape, dtype.item_bits())
            .ok_or_else(|| Failure::new("the output would have 2^63 bytes or more"))?;
        let header = match self.format {
            Format::Npy => npy::header(&dtype, &shape, self.order),
            Format::Safetensors => {
                let name = self.tensor_name(from, input);
                safetensors::header(&[(&name, &dtype, &shape, bytes)], metadata)
            }
        };
        let swap_width = match (&from.dtype, &dtype) {
            (DType::Scalar(_, ours), DType::Scalar(_, theirs)) if ours != theirs => {
                dtype.swap_width()
            }
            _ => 1,
        };
        Ok(Prepared { header: header.map_err(Failure::new)?, dtype, shape, bytes, swap_width })
    }

    /// `--name`, or the name that the tensor had, or the stem of the input file.
    fn tensor_name(&self, from: &Tensor, input: &Path) -> String {
        let stem = || match input.file_stem() {
            Some(stem) if input != Path::new("-") => stem.to_string_lossy().into_owned(),
            _ => "tensor".to_owned(),
        };
        self.name.clone().or_else(|| from.name.clone()).unwrap_or_else(stem)
    }

    /// Make all the checks that `create` would fail at, and say what would be written.
    pub(crate) fn describe(&self, prepared: &Prepared) -> Result<String, Failure> {
        sink::check(&self.target, self.options(None)).map_err(|error| self.failed(&error))?;
        Ok(format!(
            "would write {}: shape {}, dtype {}, {} bytes of elements ({} with the header), \
             format {}\n",
            self.shown(),
            shape::Tuple(&prepared.shape),
            prepared.dtype,
            prepared.bytes,
            human_bytes(prepared.bytes + prepared.header.len() as u64),
            self.format,
        ))
    }

    /// Begin to write an output of `len` bytes.
    pub(crate) fn create(&self, len: u64) -> Result<Box<dyn Sink>, Failure> {
        if matches!(self.target, Target::Stdout) && io::stdout().is_terminal() {
            return Err(Failure::new("standard output is a terminal, and the output is binary")
                .hint("name a file with -o FILE, or pipe the output to another program"));
        }
        let sink = sink::create(&self.target, self.options(Some(len)));
        sink.map_err(|error| self.failed(&error))
    }

    fn options(&self, len: Option<u64>) -> sink::Options {
        sink::Options { force: self.force, fsync: self.fsync, len }
    }

    /// What is to be said when it could not be written.
    pub(crate) fn failed(&self, error: &SinkError) -> Failure {
        let words = match error {
            SinkError::Closed => {
                return Failure { quiet: true, ..Failure::new("the pipe was closed") };
            }
            SinkError::Io(error) => plain(error),
            error => error.to_string(),
        };
        let failure = Failure::new(format_args!("{}: {words}", self.shown()));
        match error {
            SinkError::Exists => failure.hint("--force replaces it"),
            _ => failure,
        }
    }

    fn shown(&self) -> String {
        match &self.target {
            Target::Stdout => "standard output".to_owned(),
            Target::Path(path) => path.display().to_string(),
        }
    }
}

/// The format that a file's name asks for; `.npy` for pipes and devices, which have no such name.
fn by_name(path: &Path) -> Result<Format, Failure> {
    let extension = path.extension().map(|extension| extension.to_string_lossy().to_lowercase());
    match extension.as_deref() {
        Some("npy") => Ok(Format::Npy),
        Some("safetensors") => Ok(Format::Safetensors),
        _ if path.metadata().is_ok_and(|meta| !meta.is_file() && !meta.is_dir()) => Ok(Format::Npy),
        Some(other) => Err(Failure::usage(format_args!(
            "{}: the extension .{other} names no format that can be written",
            path.display()
        ))),
        None => Err(Failure::usage(format_args!(
            "{}: the name has no extension that tells the format",
            path.display()
        ))),
    }
    .map_err(|failure| failure.hint("use .npy or .safetensors, or --to FORMAT"))
}

/// What is to be said when text could not be printed.
pub(crate) fn failed_stdout(error: &io::Error) -> Failure {
    let quiet = error.kind() == io::ErrorKind::BrokenPipe;
    let message = format!("standard output: {}", plain(error));
    Failure { exit: Exit::Failed, quiet, ..Failure::new(message) }
}
