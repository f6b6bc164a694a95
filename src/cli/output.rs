//! The output that was asked for: its place, its format, its header.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal};
use std::path::Path;

use tslice::dtype::DType;
use tslice::format::{Format, FormatError, Tensor, TextFormat, npy, npz, safetensors};
use tslice::shape::{self, Order};
use tslice::sink::{
    self, DeflatedZipSink, Destination, FolderSink, Sink, SinkError, ZipLayout, ZipMember, ZipSink,
};
use tslice::text::TextSink;

use super::args::{OrderArg, OutputArgs, To};
use super::exit::Exit;
use super::folder::FolderFile;
use super::report::{Failure, human_bytes, plain};

/// Where an output goes, and in what form.
pub(crate) struct Output {
    target: Destination,
    pub(crate) format: Format,
    pub(crate) order: Order,
    name: Option<String>,
    force: bool,
    fsync: bool,
    deflate: bool,
}

/// A tensor that is to be written: its name, where names count, and what it is.
pub(crate) struct Item<'a> {
    pub(crate) name: &'a str,
    /// The dtype that its bytes have now.
    pub(crate) dtype: &'a DType,
    pub(crate) shape: Vec<u64>,
}

/// An output whose every byte has its place.
pub(crate) struct Prepared {
    /// The tensors, in the order in which they were given.
    pub(crate) tensors: Vec<Placed>,
    /// All that is not elements.
    pub(crate) frame: Frame,
    /// Bytes of the elements of all tensors.
    pub(crate) bytes: u64,
}

/// What stands around the elements of an output.
pub(crate) enum Frame {
    /// All bytes before the elements.
    Header(Vec<u8>),
    /// Text, which the elements become on the way.
    Text(TextFormat),
    /// A zip archive, a member each tensor.
    Archive(ZipLayout),
    /// Files one after the other, as they are to lie in one folder.
    Folder(Vec<FolderFile>),
}

/// A tensor in its place.
pub(crate) struct Placed {
    /// The dtype that the output has, which may differ in byte order.
    pub(crate) dtype: DType,
    pub(crate) shape: Vec<u64>,
    /// Bytes of its elements.
    pub(crate) bytes: u64,
    /// Bytes that change places on the way; 1 for none.
    pub(crate) swap_width: usize,
    /// Where its elements begin in the output, in bytes.
    pub(crate) at: u64,
}

impl Output {
    /// Understand the flags, and refuse contradictions among them.
    pub(crate) fn new(args: &OutputArgs) -> Result<Output, Failure> {
        let target = match &args.output {
            Some(path) if path != Path::new("-") => Destination::Path(path.clone()),
            _ => Destination::Stdout,
        };
        let format = match (args.to, &target) {
            (Some(to), _) => by_flag(to),
            (None, Destination::Stdout) => Format::Npy,
            (None, Destination::Path(path)) => by_name(path)?,
        };
        if args.name.is_some() && !format.names_tensors() {
            return Err(Failure::usage(format_args!(
                "--name has no effect: an output of format {format} names no tensor"
            )));
        }
        if args.deflate && format != Format::Npz {
            return Err(Failure::usage(format_args!(
                "--deflate has no effect: an output of format {format} is never compressed"
            ))
            .hint("use it with .npz, or --to npz"));
        }
        let order = args.order.map_or(Order::C, OrderArg::order);
        if order == Order::F && !format.has_orders() {
            return Err(Failure::usage(format_args!(
                "--order F has no effect: an output of format {format} is always in C order"
            )));
        }
        Ok(Output {
            target,
            format,
            order,
            name: args.name.clone(),
            force: args.force,
            fsync: args.fsync,
            deflate: args.deflate,
        })
    }

    /// Refuse a folder where the input is no sharded checkpoint.
    pub(crate) fn refuse_folder(&self) -> Result<(), Failure> {
        match self.format {
            Format::Sharded => Err(self
                .failed(&SinkError::IsADirectory)
                .hint("only a sharded checkpoint is written to a folder")),
            _ => Ok(()),
        }
    }

    /// Give tensors their places in the output, one after the other.
    pub(crate) fn prepare(
        &self,
        items: &[Item<'_>],
        metadata: &BTreeMap<String, String>,
    ) -> Result<Prepared, Failure> {
        self.refuse_folder()?;
        let mut tensors = Vec::with_capacity(items.len());
        let mut bytes = 0u64;
        for item in items {
            let placed = self.place(item, bytes).map_err(|failure| match items {
                [_] => failure,
                _ => failure.of_tensor(item.name),
            })?;
            bytes = bytes.checked_add(placed.bytes).ok_or_else(too_large)?;
            tensors.push(placed);
        }
        if i64::try_from(bytes).is_err() {
            return Err(too_large());
        }
        if self.format == Format::Npz {
            return self.prepare_archive(items, tensors, bytes);
        }
        if let (Format::Text(form), [only]) = (self.format, tensors.as_slice()) {
            let (ndim, most) = (only.shape.len(), form.max_ndim());
            if ndim > most {
                return Err(Failure::new(format_args!(
                    "an output of format {} has at most {most} axes, and the result has {ndim}",
                    self.format
                )));
            }
            return Ok(Prepared { tensors, frame: Frame::Text(form), bytes });
        }
        let header = self.header(items, &tensors, metadata).map_err(Failure::new)?;
        for tensor in &mut tensors {
            tensor.at += header.len() as u64;
        }
        Ok(Prepared { tensors, frame: Frame::Header(header), bytes })
    }

    /// The same for an archive, whose members know their own places.
    fn prepare_archive(
        &self,
        items: &[Item<'_>],
        mut tensors: Vec<Placed>,
        bytes: u64,
    ) -> Result<Prepared, Failure> {
        let mut members = Vec::with_capacity(items.len());
        for (item, tensor) in items.iter().zip(&tensors) {
            let name = format!("{}.npy", item.name);
            npz::check_name(&name).map_err(Failure::new)?;
            let head = npy::header(&tensor.dtype, &tensor.shape, self.order);
            let head = head.map_err(Failure::new)?;
            members.push(ZipMember { name, head, data_len: tensor.bytes });
        }
        let layout = self.layout(members)?;
        for (tensor, at) in tensors.iter_mut().zip(layout.data()) {
            tensor.at = at;
        }
        Ok(Prepared { tensors, frame: Frame::Archive(layout), bytes })
    }

    fn layout(&self, members: Vec<ZipMember>) -> Result<ZipLayout, Failure> {
        // a device is taken to go forward only, whatever it may be
        let forward = match &self.target {
            Destination::Stdout => true,
            Destination::Path(path) => {
                path.starts_with("/dev") || path.metadata().is_ok_and(|meta| !meta.is_file())
            }
        };
        ZipLayout::new(members, forward).ok_or_else(too_large)
    }

    /// Fit a tensor to the output, its first byte `at` bytes from the first of all elements.
    pub(crate) fn place(&self, item: &Item<'_>, at: u64) -> Result<Placed, Failure> {
        let dtype = self.format.stored_dtype(item.dtype).map_err(Failure::new)?;
        let shape = item.shape.clone();
        let bytes = shape::byte_count(&shape, dtype.item_bits()).ok_or_else(too_large)?;
        let swap_width = match (item.dtype, &dtype) {
            (DType::Scalar(_, ours), DType::Scalar(_, theirs)) if ours != theirs => {
                dtype.swap_width()
            }
            _ => 1,
        };
        Ok(Placed { dtype, shape, bytes, swap_width, at })
    }

    fn header(
        &self,
        items: &[Item<'_>],
        tensors: &[Placed],
        metadata: &BTreeMap<String, String>,
    ) -> Result<Vec<u8>, FormatError> {
        match (self.format, tensors) {
            (Format::Npy, [only, ..]) => npy::header(&only.dtype, &only.shape, self.order),
            (Format::Raw | Format::Sharded | Format::Npz | Format::Text(_), _)
            | (Format::Npy, []) => Ok(Vec::new()),
            (Format::Safetensors, _) => {
                let entries: Vec<_> =
                    items.iter().zip(tensors).map(|(item, to)| to.described(item.name)).collect();
                safetensors::header(&entries, metadata)
            }
        }
    }

    /// `--name` for a tensor that is `sliced`, or the name that it had, or the stem of the input.
    pub(crate) fn tensor_name(&self, from: &Tensor, input: &Path, sliced: bool) -> String {
        let stem = || match input.file_stem() {
            Some(stem) if input != Path::new("-") => stem.to_string_lossy().into_owned(),
            _ => "tensor".to_owned(),
        };
        let given = self.name.clone().filter(|_| sliced);
        given.or_else(|| from.name.clone()).unwrap_or_else(stem)
    }

    /// Make all the checks that `create` would fail at, and say what would be written.
    pub(crate) fn describe(&self, prepared: &Prepared) -> Result<String, Failure> {
        match (&prepared.frame, &self.target) {
            (Frame::Folder(_), Destination::Path(path)) => {
                FolderSink::check(path, self.options(None))
            }
            _ => sink::check(&self.target, self.options(None)),
        }
        .map_err(|error| self.failed(&error))?;
        let what = match prepared.tensors.as_slice() {
            [only] => format!("shape {}, dtype {}", shape::AsTuple(&only.shape), only.dtype),
            several => format!("{} tensors", several.len()),
        };
        let whole = match &prepared.frame {
            Frame::Text(_) => "before they become text".to_owned(),
            Frame::Archive(_) if self.deflate => "before they are deflated".to_owned(),
            _ => format!("{} with the header", human_bytes(prepared.len())),
        };
        Ok(format!(
            "would write {}: {what}, {} bytes of elements ({whole}), format {}\n",
            self.shown(),
            prepared.bytes,
            self.format,
        ))
    }

    /// Begin to write an output; `check` is asked before the first byte, and told whether
    /// nothing is seen before the commit.
    pub(crate) fn create(
        &self,
        prepared: &Prepared,
        check: impl FnOnce(bool) -> Result<(), Failure>,
    ) -> Result<Box<dyn Sink>, Failure> {
        let binary = !matches!(prepared.frame, Frame::Text(_));
        if binary && matches!(self.target, Destination::Stdout) && io::stdout().is_terminal() {
            return Err(Failure::terminal());
        }
        let sink = self.begin(prepared).map_err(|error| self.failed(&error))?;
        check(sink.is_atomic())?;
        prepared.write_headers(sink.as_ref()).map_err(|error| self.failed(&error))?;
        Ok(sink)
    }

    fn begin(&self, prepared: &Prepared) -> Result<Box<dyn Sink>, SinkError> {
        match (&prepared.frame, &self.target) {
            (Frame::Header(_), _) => sink::create(&self.target, self.options(Some(prepared.len()))),
            (Frame::Archive(layout), _) if self.deflate => {
                let sink = sink::create(&self.target, self.options(None))?;
                Ok(Box::new(DeflatedZipSink::new(sink, layout.clone())?))
            }
            (Frame::Archive(layout), _) => {
                let options = self.options(Some(layout.len()));
                let sink = sink::create(&self.target, options)?;
                Ok(Box::new(ZipSink::new(sink, layout.clone())?))
            }
            (Frame::Text(form), _) => {
                let sink = sink::create(&self.target, self.options(None))?;
                let unfit = || SinkError::Io(io::ErrorKind::InvalidInput.into());
                let only = prepared.tensors.first().ok_or_else(unfit)?;
                let text = TextSink::new(sink, *form, &only.dtype, &only.shape);
                Ok(Box::new(text.ok_or_else(unfit)?))
            }
            (Frame::Folder(files), Destination::Path(path)) => {
                let lens: Vec<_> = files.iter().map(|file| (&*file.name, file.len())).collect();
                Ok(Box::new(FolderSink::create(path, &lens, self.options(None))?))
            }
            (Frame::Folder(_), Destination::Stdout) => Err(SinkError::IsADirectory),
        }
    }

    fn options(&self, len: Option<u64>) -> sink::SinkOptions {
        sink::SinkOptions { force: self.force, fsync: self.fsync, len }
    }

    /// What is to be said when it could not be written.
    pub(crate) fn failed(&self, error: &SinkError) -> Failure {
        let words = match error {
            SinkError::BrokenPipe => {
                return Failure { quiet: true, ..Failure::new("the pipe was closed") };
            }
            SinkError::StdoutClosed => return Failure::new(error),
            error => plain(error),
        };
        let failure = Failure::new(format_args!("{}: {words}", self.shown()));
        match error {
            SinkError::AlreadyExists => failure.hint("--force replaces it"),
            SinkError::FolderNotEmpty => {
                failure.hint("--force replaces the files of the same names")
            }
            _ => failure,
        }
    }

    fn shown(&self) -> String {
        match &self.target {
            Destination::Stdout => "standard output".to_owned(),
            Destination::Path(path) => path.display().to_string(),
        }
    }
}

impl Prepared {
    /// Bytes of the whole output.
    fn len(&self) -> u64 {
        match &self.frame {
            Frame::Header(header) => header.len() as u64 + self.bytes,
            Frame::Archive(layout) => layout.len(),
            Frame::Text(_) => self.bytes,
            Frame::Folder(files) => files.iter().map(FolderFile::len).sum(),
        }
    }
}

impl Prepared {
    /// Write all that is known before the first element is.
    fn write_headers(&self, sink: &dyn Sink) -> Result<(), SinkError> {
        match &self.frame {
            Frame::Header(header) => sink.write_at(0, header),
            Frame::Archive(_) | Frame::Text(_) => Ok(()),
            Frame::Folder(files) => {
                let mut start = 0;
                files.iter().try_for_each(|file| {
                    let at = start;
                    start += file.len();
                    sink.write_at(at, &file.header)
                })
            }
        }
    }
}

impl Placed {
    /// The tensor as headers speak of it: name, dtype, shape and number of bytes.
    pub(crate) fn described<'a>(&'a self, name: &'a str) -> (&'a str, &'a DType, &'a [u64], u64) {
        (name, &self.dtype, &self.shape, self.bytes)
    }
}

pub(crate) fn too_large() -> Failure {
    Failure::new("the output would have 2^63 bytes or more")
}

fn by_flag(to: To) -> Format {
    match to {
        To::Npy => Format::Npy,
        To::Npz => Format::Npz,
        To::Safetensors => Format::Safetensors,
        To::Raw => Format::Raw,
        To::Csv => Format::Text(TextFormat::Csv),
        To::Txt => Format::Text(TextFormat::Txt),
        To::Json => Format::Text(TextFormat::Json),
    }
}

/// The format that a file's name asks for; `.npy` for pipes and devices, which have no such name.
fn by_name(path: &Path) -> Result<Format, Failure> {
    if is_folder(path) {
        return Ok(Format::Sharded);
    }
    let extension = path.extension().map(|extension| extension.to_string_lossy().to_lowercase());
    match extension.as_deref() {
        Some("npy") => Ok(Format::Npy),
        Some("npz") => Ok(Format::Npz),
        Some("safetensors") => Ok(Format::Safetensors),
        Some("bin" | "raw") => Ok(Format::Raw),
        Some("csv") => Ok(Format::Text(TextFormat::Csv)),
        Some("txt") => Ok(Format::Text(TextFormat::Txt)),
        Some("json") => Ok(Format::Text(TextFormat::Json)),
        _ if path.metadata().is_ok_and(|meta| !meta.is_file()) => Ok(Format::Npy),
        Some(other) => Err(Failure::usage(format_args!(
            "{}: the extension .{other} names no format that can be written",
            path.display()
        ))),
        None => Err(Failure::usage(format_args!(
            "{}: the name has no extension that tells the format",
            path.display()
        ))),
    }
    .map_err(|failure| {
        failure.hint("use .npy, .npz, .safetensors, .bin, .csv, .txt or .json, or --to FORMAT")
    })
}

/// Whether a path is that of a folder, by what is there or by its last character.
fn is_folder(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().ends_with(b"/") || path.is_dir()
}

/// What is to be said when text could not be printed.
pub(crate) fn failed_stdout(error: &io::Error) -> Failure {
    let quiet = error.kind() == io::ErrorKind::BrokenPipe;
    let message = format!("standard output: {}", plain(error));
    Failure { exit: Exit::Failed, quiet, ..Failure::new(message) }
}
