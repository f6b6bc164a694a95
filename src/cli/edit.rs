//! A file that is to be changed: itself, or a copy of it.
//!
//! Everything is checked while the file is only read. [`Target::begin`] is the moment from which
//! on bytes are written.

use std::fs::{self, File, OpenOptions};
use std::io::{self, IsTerminal, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use tslice::execute::{self, ExecuteError, FillError, Progress, Transfer};
use tslice::format::{self, Contents, FileKind, Format, MAGIC_LEN, Tensor};
use tslice::shape::AsTuple;
use tslice::sink::{self, InPlaceFile, Sink, SinkError};
use tslice::source::{self, PreadSource, Reader, Source};

use super::args::EditArgs;
use super::input::{Input, failed_source};
use super::job;
use super::progress;
use super::report::{Failure, human_bytes, plain};

/// The file that is to be changed, its header read.
pub(crate) struct Target<'a> {
    /// As an input, to choose a tensor from.
    pub(crate) input: Input,
    file: File,
    /// How long it was when its header was read, in bytes.
    len: u64,
    /// The file itself, opened for writing, where it is to be changed in place.
    patch: Option<InPlaceFile>,
    args: &'a EditArgs,
}

impl<'a> Target<'a> {
    /// Open the file, as is needed for what is to be done with it.
    pub(crate) fn open(path: &Path, args: &'a EditArgs) -> Result<Target<'a>, Failure> {
        if path == Path::new("-") {
            return Err(Failure::usage("TARGET must be a file, not standard input"));
        }
        let to_stdout = args.place.output.as_deref() == Some(Path::new("-"));
        if to_stdout && !args.dry_run && io::stdout().is_terminal() {
            return Err(Failure::terminal());
        }
        let failed = |error: &_| Failure::io(path, error);
        let patch = match args.place.in_place {
            true => Some(InPlaceFile::open(path).map_err(|error| failed_sink(path, &error))?),
            false => None,
        };
        let file = match &patch {
            Some(patch) => patch.file().try_clone(),
            // not to wait for the other end of a FIFO
            None => OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path),
        };
        let file = file.map_err(|error| failed(&error))?;
        let metadata = file.metadata().map_err(|error| failed(&error))?;
        if metadata.is_dir() {
            return Err(Failure::file(path, "is a directory"));
        }
        if !metadata.is_file() {
            return Err(Failure::file(path, "only a regular file can be changed"));
        }
        let again = file.try_clone().map_err(|error| failed(&error))?;
        let source = PreadSource::new(again, 0, metadata.len());
        let contents = read_contents(path, &source)?;
        let bytes = source::Opened::Random(Box::new(source));
        let (input, len) = (Input::of_file(path, bytes, contents), metadata.len());
        let target = Target { input, file, len, patch, args };
        target.check_name()?;
        Ok(target)
    }

    /// A copy has the format of what it is a copy of, and its name must not say another one.
    fn check_name(&self) -> Result<(), Failure> {
        let Some(output) = &self.args.place.output else { return Ok(()) };
        let format = self.input.contents.format;
        let extension = output.extension().unwrap_or_default().to_string_lossy().to_lowercase();
        let expected = match format {
            Format::Npy => "npy",
            Format::Safetensors => "safetensors",
            _ => "bin",
        };
        let is_stream = || output.metadata().is_ok_and(|meta| !meta.is_file() && !meta.is_dir());
        if extension == expected || output == Path::new("-") || is_stream() {
            return Ok(());
        }
        Err(Failure::usage(format_args!(
            "{}: the output is a copy of {}, in the {format} format",
            output.display(),
            self.input.path.display()
        ))
        .hint(format_args!("give it a name that ends in .{expected}")))
    }

    /// Whether a file that is read is the very file that will be written.
    pub(crate) fn is_written_by(&self, path: &Path) -> bool {
        let Ok(ours) = self.file.metadata() else { return false };
        let theirs = match path.to_str() {
            Some("-") => fs::metadata("/dev/stdin"),
            _ => fs::metadata(path),
        };
        let same = theirs.is_ok_and(|it| (it.dev(), it.ino()) == (ours.dev(), ours.ino()));
        self.patch.is_some() && same
    }

    /// Make the checks that only writing would make, and say what would be written.
    pub(crate) fn describe(
        &self,
        tensor: &Tensor,
        shape: &[u64],
        bytes: u64,
    ) -> Result<String, Failure> {
        let place = match &self.args.place.output {
            None => format!("{}, in place", self.input.path.display()),
            Some(output) => {
                let target = as_target(output);
                sink::check(&target, self.options())
                    .map_err(|error| failed_sink(output, &error))?;
                format!("{}, a copy of {}", named(output).display(), self.input.path.display())
            }
        };
        Ok(format!(
            "would write into {place}: shape {}, dtype {}, {bytes} bytes of elements ({}), \
             format {}\n",
            AsTuple(shape),
            tensor.dtype,
            human_bytes(bytes),
            self.input.contents.format,
        ))
    }

    /// Begin to write.
    pub(crate) fn begin(self) -> Result<Edit, Failure> {
        let options = self.options();
        let Target { input, file, len, patch, args } = self;
        let (copy, patch, path) = match (&args.place.output, patch) {
            (None, Some(patch)) => (None, patch, input.path.clone()),
            (output, _) => {
                let path = output.clone().unwrap_or_default();
                let target = as_target(&path);
                let (copy, patch) = sink::create_copy(&target, options, (&file, len)).map_err(
                    |error| match error {
                        SinkError::OriginalTruncated => Failure::file(&input.path, error),
                        error => failed_sink(&path, &error),
                    },
                )?;
                (Some(copy), patch, path)
            }
        };
        let threads = args.workers();
        Ok(Edit { path, patch, copy, threads, quiet: args.quiet, fsync: args.fsync })
    }

    fn options(&self) -> sink::SinkOptions {
        sink::SinkOptions { force: self.args.force, fsync: self.args.fsync, len: None }
    }
}

/// The header of a file that can be changed.
fn read_contents(path: &Path, source: &PreadSource) -> Result<Contents, Failure> {
    let mut first = Vec::new();
    Reader::new(source)
        .take(MAGIC_LEN as u64)
        .read_to_end(&mut first)
        .map_err(|error| Failure::io(path, &error))?;
    let refused = |what, hint| Err(Failure::file(path, what).hint(hint));
    match format::detect(&first) {
        Some(FileKind::Zip) => refused(
            "a .npz archive cannot be changed",
            "take the array out with `tslice FILE -t NAME -o NAME.npy`, and change that",
        ),
        Some(FileKind::Json) => refused(
            "a sharded checkpoint cannot be changed as a whole",
            "name the shard that holds the tensor",
        ),
        _ => format::read_contents(&mut Reader::new(source), Some(source.len()))
            .map_err(|error| Failure::file(path, error)),
    }
}

impl EditArgs {
    /// How many threads are to work.
    pub(crate) fn workers(&self) -> usize {
        job::threads(self.threads)
    }
}

/// A file that is being changed. Dropping it leaves what stood there before, but in place.
pub(crate) struct Edit {
    path: PathBuf,
    pub(crate) patch: InPlaceFile,
    copy: Option<Box<dyn Sink>>,
    threads: usize,
    quiet: bool,
    fsync: bool,
}

impl Edit {
    /// Run one transfer from the input at `path` into a sink that writes through the patch.
    pub(crate) fn run(
        &self,
        transfer: Transfer<'_>,
        sink: &dyn Sink,
        path: &Path,
    ) -> Result<(), Failure> {
        let progress = Progress::default();
        let source = transfer.source;
        let outcome = progress::watch(&progress, transfer.pieces.bytes(), self.quiet, || {
            execute::run(&[transfer], sink, self.threads, &progress)
        });
        // an input that was cut short is the reason for whatever else went wrong
        source.verify().map_err(|error| failed_source(path, &error))?;
        outcome.map_err(|error| match error {
            ExecuteError::Fill { error: FillError::Source(error), .. } => {
                failed_source(path, &error)
            }
            ExecuteError::Sink(error) => failed_sink(&self.path, &error),
            error => Failure::new(error),
        })
    }

    /// All is written.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        let Edit { path, patch, copy, fsync, .. } = self;
        match copy {
            None => patch.finish(fsync),
            // the copy waits for the disk by itself
            Some(copy) => patch.finish(false).and_then(|()| copy.commit()),
        }
        .map_err(|error| failed_sink(&path, &error))
    }
}

/// An output as messages show it.
fn named(output: &Path) -> &Path {
    if output == Path::new("-") { Path::new("standard output") } else { output }
}

fn as_target(output: &Path) -> sink::Destination {
    match output {
        output if output == Path::new("-") => sink::Destination::Stdout,
        output => sink::Destination::Path(output.to_owned()),
    }
}

/// What is to be said when a file could not be changed.
fn failed_sink(path: &Path, error: &SinkError) -> Failure {
    let path = named(path);
    match error {
        SinkError::BrokenPipe => Failure { quiet: true, ..Failure::new("the pipe was closed") },
        SinkError::Io(error) => Failure::io(path, error),
        SinkError::Copy(error) | SinkError::Os { error, .. }
            if error.kind() == std::io::ErrorKind::StorageFull =>
        {
            Failure::io(path, error)
        }
        SinkError::Copy(error) => {
            Failure::file(path, format!("cannot be copied: {}", plain(error)))
        }
        SinkError::AlreadyExists => Failure::file(path, error).hint("--force replaces it"),
        error => Failure::file(path, error),
    }
}
