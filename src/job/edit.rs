//! A file that is changed: itself, or a copy of it.
//!
//! Everything is checked while the file is only read. [`Original::begin`] is the moment from
//! which on bytes are written.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::dtype::DType;
use crate::error::{Cause, ContainerError, FileName};
use crate::execute::{self, Conversion, ExecuteError, FillError, Progress, Transfer, Workers};
use crate::format::{self, FileKind, Tensor, npy};
use crate::input::OpenOptions;
use crate::input::{Bytes, Input, Location, failed_source};
use crate::input::{raw, single};
use crate::job::casts::Casts;
use crate::job::edit_fault::EditFault;
use crate::job::overwrite;
use crate::region::{ListError, Lists};
use crate::sink::{self, Destination, InPlaceFile, Sink, SinkError};
use crate::source::{self, PreadSource, Source};

/// Where the change is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EditMode {
    /// The file itself.
    InPlace,
    /// A copy of it.
    Copy(Destination),
}

/// How a change is written.
#[derive(Clone, Debug)]
pub struct EditOptions {
    /// Replace a copy that exists.
    pub force: bool,
    /// Wait until the disk has it all.
    pub fsync: bool,
    /// The threads that work.
    pub workers: Workers,
}

impl EditOptions {
    fn sink(&self) -> sink::SinkOptions {
        sink::SinkOptions { force: self.force, fsync: self.fsync, ..Default::default() }
    }
}

/// The file that is to be changed, its header read.
pub struct Original {
    input: Input,
    path: PathBuf,
    file: File,
    /// How long it was when its header was read, in bytes.
    len: u64,
    /// The file itself, opened for writing, where it is changed in place.
    patch: Option<InPlaceFile>,
    mode: EditMode,
}

impl Original {
    /// Open the file, as is needed for what is to be done with it. Of the options those count that say
    /// what raw bytes mean.
    ///
    /// # Errors
    /// [`EditFault`], a header that breaks its format's rules, a file that cannot be opened.
    pub fn open(
        path: &Path,
        mode: EditMode,
        options: &OpenOptions,
    ) -> Result<Original, ContainerError> {
        if let Location::Remote(address) = Location::of(path) {
            return Err(ContainerError::file(FileName::Remote(address), EditFault::Remote));
        }
        let failed = |error: std::io::Error| ContainerError::file(path, error);
        let patch = match mode {
            EditMode::InPlace => {
                Some(InPlaceFile::open(path).map_err(|error| failed_sink(path.into(), error))?)
            }
            EditMode::Copy(_) => None,
        };
        let file = match &patch {
            Some(patch) => patch.file().try_clone(),
            // not to wait for the other end of a FIFO
            None => fs::OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path),
        };
        let file = file.map_err(failed)?;
        source::note_read(&file, || path.display().to_string());
        let metadata = file.metadata().map_err(failed)?;
        if metadata.is_dir() {
            return Err(ContainerError::file(path, source::OpenError::IsADirectory));
        }
        if !metadata.is_file() {
            return Err(ContainerError::file(path, EditFault::NotAFile));
        }
        let len = metadata.len();
        let source = PreadSource::new(file.try_clone().map_err(failed)?, 0, len);
        let input = open_input(&Location::Path(path.to_owned()), source, options)?;
        if let EditMode::Copy(target) = &mode {
            overwrite::check_input(target, &input)?;
        }
        Ok(Original { input, path: path.to_owned(), file, len, patch, mode })
    }

    /// The file as an input, to choose a tensor of.
    pub fn input(&self) -> &Input {
        &self.input
    }

    /// Make the checks that only writing would make.
    ///
    /// # Errors
    /// Those of [`sink::check`].
    pub fn check(&self, options: EditOptions) -> Result<(), ContainerError> {
        match &self.mode {
            EditMode::InPlace => Ok(()),
            EditMode::Copy(target) => sink::check(target, options.sink())
                .map_err(|error| failed_sink(target.into(), error)),
        }
    }

    /// Make sure that all of a tensor that is read while `written` (bytes of the file) is changed is
    /// there, and stays as it is. A pipe is read to its end; what lies in the bytes to be written is
    /// refused.
    ///
    /// # Errors
    /// An input that cannot be read, a temporary file that cannot be written, [`EditFault::Overlap`],
    /// [`InputIsOutput`](crate::error::InputIsOutput).
    pub fn keep(
        &self,
        mut input: Input,
        tensor: &Tensor,
        written: &Range<u64>,
    ) -> Result<Arc<dyn Source>, ContainerError> {
        let source = input.spool()?;
        self.check_kept(&input, tensor, written)?;
        if tensor.part > 0 && !input.deflated.is_empty() && tensor.bytes > 0 {
            // inflated whole by the first byte that is asked for, its checksum included
            let first = tensor.offset..tensor.offset + 1;
            let failed = |error| failed_source(&input.location, error);
            source.window(first, &mut Vec::new()).map_err(failed)?;
        }
        Ok(source)
    }

    /// Refuse a tensor that lies in the bytes that are to be changed, or in the output. Its input is
    /// no pipe, or has been spooled.
    fn check_kept(
        &self,
        input: &Input,
        tensor: &Tensor,
        written: &Range<u64>,
    ) -> Result<(), ContainerError> {
        match (&self.mode, &self.patch, &input.bytes) {
            (EditMode::Copy(target), ..) => overwrite::check_input(target, input),
            (EditMode::InPlace, Some(patch), Bytes::Random(source)) => {
                overwrite::check_in_place(patch, written, (input, tensor), source.as_ref())
            }
            _ => Ok(()),
        }
    }

    /// Refuse lists of an index that lie in the bytes that are to be changed, or in the output.
    ///
    /// # Errors
    /// Those of [`keep`](Original::keep).
    pub fn check_lists(&self, lists: &Lists, written: &Range<u64>) -> Result<(), ListError> {
        lists.files().try_for_each(|(item, input, tensor)| {
            let kept = self.check_kept(input, tensor, written);
            kept.map_err(|error| ListError { item, error })
        })
    }

    /// Begin to write; another thread may watch how far a copy is: [`Progress::copying`].
    ///
    /// # Errors
    /// A copy that cannot be made.
    pub fn begin(self, options: EditOptions, progress: &Progress) -> Result<Edit, ContainerError> {
        let Original { path, file, len, patch, mode, .. } = self;
        match (mode, patch) {
            (EditMode::InPlace, Some(patch)) => {
                let name = FileName::Path(path);
                Ok(Edit { name, patch, copy: None, options })
            }
            (EditMode::InPlace, None) => {
                Err(ContainerError::file(path.as_path(), EditFault::NotAFile))
            }
            (EditMode::Copy(target), _) => {
                progress.copy(len);
                let add = |bytes| progress.add_copied(bytes);
                let copied = sink::create_copy(&target, options.sink(), (&file, len), &add);
                progress.copy(0);
                let (copy, patch) = copied.map_err(|error| match error {
                    SinkError::OriginalTruncated => ContainerError::file(path.as_path(), error),
                    error => failed_sink((&target).into(), error),
                })?;
                Ok(Edit { name: (&target).into(), patch, copy: Some(copy), options })
            }
        }
    }
}

/// A file that can be changed, as an input.
fn open_input(
    location: &Location,
    source: PreadSource,
    options: &OpenOptions,
) -> Result<Input, ContainerError> {
    let kind = format::detect(&single::first_bytes(location, &source)?);
    let mut bytes = source::Opened::Random(Box::new(source));
    let mut input = match (options.raw.of_raw_bytes(kind), kind) {
        (Some(dtype), _) => {
            let contents = raw::read(location, &mut bytes, dtype, &options.raw)?;
            Input::of_file(location, bytes, contents)
        }
        (None, Some(FileKind::Zip)) => {
            return Err(ContainerError::file(location, EditFault::Archive));
        }
        (None, Some(FileKind::Json)) => {
            return Err(ContainerError::file(location, EditFault::Sharded));
        }
        (None, _) => single::open(location, bytes)?,
    };
    options.raw.apply(&mut input, &options.tensors)?;
    Ok(input)
}

/// A file that is being changed. Dropping it leaves what stood there before, but in place.
pub struct Edit {
    name: FileName,
    patch: InPlaceFile,
    copy: Option<Box<dyn Sink>>,
    options: EditOptions,
}

impl Edit {
    /// What the bytes of the file are written through.
    pub fn patch(&self) -> &InPlaceFile {
        &self.patch
    }

    /// Run one transfer from an input into a sink that writes through the patch.
    ///
    /// # Errors
    /// An input that fails, a file that cannot be written.
    pub fn run(
        &self,
        transfer: Transfer<'_>,
        sink: &dyn Sink,
        input: &Location,
        progress: &Progress,
    ) -> Result<(), ContainerError> {
        let source = transfer.source;
        let outcome = execute::run(&[transfer], sink, &self.options.workers, progress);
        // an input that was cut short is the reason for whatever else went wrong
        source.verify().map_err(|error| failed_source(input, error))?;
        outcome.map_err(|error| match error {
            ExecuteError::Fill { error: FillError::Source(error), .. } => {
                failed_source(input, error)
            }
            ExecuteError::Sink(error) => failed_sink(self.name.clone(), error),
            error => error.into(),
        })
    }

    /// All is written.
    ///
    /// # Errors
    /// A disk that fails, a copy that cannot be put in place.
    pub fn finish(self) -> Result<(), ContainerError> {
        let Edit { name, patch, copy, options } = self;
        match copy {
            None => patch.finish(options.fsync),
            // the copy waits for the disk by itself
            Some(copy) => patch.finish(false).and_then(|()| copy.commit()),
        }
        .map_err(|error| failed_sink(name, error))
    }
}

/// The error of writing the file; a full disk is told as such, whatever step met it.
fn failed_sink(name: FileName, error: SinkError) -> ContainerError {
    let error = match error {
        SinkError::Copy(error) | SinkError::Os { error, .. }
            if error.kind() == ErrorKind::StorageFull =>
        {
            SinkError::Io(error)
        }
        error => error,
    };
    ContainerError::file(name, error)
}

/// How elements of a value become those of a target, where one of `casts` may be for its dtype.
///
/// # Errors
/// [`EditFault::DType`] for a dtype that is not the target's afterwards;
/// [`EditFault::PartsOfBytes`]; [`CastError`](crate::cast::CastError).
pub fn cast_conversion(value: &DType, target: &DType, casts: &Casts) -> Result<Conversion, Cause> {
    let Some(cast) = casts.of(value)? else { return Ok(conversion(value, target)?) };
    conversion(&cast.to(), target)?;
    if !value.item_bits().is_multiple_of(8) {
        return Err(EditFault::PartsOfBytes(value.clone()).into());
    }
    Ok(match target {
        _ if cast.keeps_type() => conversion(value, target)?,
        _ => Conversion::Cast(cast.with_order_of(target)),
    })
}

/// What makes elements of a value's dtype elements of the target's, where the two are one but for
/// their byte order. What a `.npy` has as `<V2` is the bfloat16 that it was made of.
///
/// # Errors
/// [`EditFault::DType`] for two different ones.
pub(crate) fn conversion(value: &DType, target: &DType) -> Result<Conversion, EditFault> {
    let swap_width = match (value, target) {
        (DType::Scalar(ours, from), DType::Scalar(theirs, to)) => {
            (ours == theirs).then(|| if from == to { 1 } else { target.swap_width() })
        }
        (DType::Npy(ours), DType::Npy(theirs)) if ours == theirs => Some(1),
        (DType::Npy(ours), DType::Npy(theirs)) => ours.swap_width_to(theirs),
        (stored @ DType::Npy(_), scalar) | (scalar, stored @ DType::Npy(_)) => {
            (npy::stored_dtype(scalar).as_ref() == Some(stored)).then_some(1)
        }
    };
    let conversion = swap_width.map(Conversion::swap_bytes);
    conversion.ok_or_else(|| EditFault::DType { value: value.clone(), target: target.clone() })
}
