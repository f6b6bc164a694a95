//! A file that is changed: itself, or a copy of it.
//!
//! Everything is checked while the file is only read. [`Original::begin`] is the moment from
//! which on bytes are written.

use std::fs;
use std::fs::File;
use std::io::ErrorKind;
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;

use super::EditFault;
use crate::error::{Error, FileName};
use crate::execute::{Conversion, ExecuteError, NullSink, Progress, Transfer, Workers};
use crate::format::npz::MemberSums;
use crate::format::{Format, npz};
use crate::input::{
    Bytes, Input, Location, OpenOptions, RecognisedFile, Summed, first_bytes, raw, recognise,
    unrecognised,
};
use crate::job::overwrite;
use crate::output::layout::OutputFormat;
use crate::output::{Becomes, LayoutFault, Output, Prepared, WriteOptions, layout};
use crate::plan::{PIECE_BYTES, Plan};
use crate::runs::Runs;
use crate::sink::{BLOCK_BYTES, CopiedRange, Destination, Draft, InPlaceFile, Sink, SinkError};
use crate::source::{FileId, NO_WAIT, PreadSource, SourceError};
use crate::tensor::TensorInfo;
use crate::{execute, input, sink, source};

/// The file that is to be changed, its header read.
pub struct Original {
    input: Input,
    file: File,
    /// How long it was when its header was read, in bytes.
    len: u64,
    /// The file itself, opened for writing, where it is changed in place.
    patch: Option<InPlaceFile>,
    pub(super) copy: Option<Destination>,
    /// The file whose bytes the copy overwrites as it is written, if it does.
    overwritten: Option<FileId>,
    /// The header of the copy, where it is another one.
    header: Option<NewHeader>,
    options: WriteOptions,
}

impl Original {
    /// Open the file, as is needed for what is to be done with it: itself is changed, or a `copy`. Of how it is opened that counts
    /// which says what raw bytes mean; of how it is written `force`, `fsync` and the threads.
    pub fn open(
        path: &Path,
        open: &OpenOptions,
        copy: Option<Destination>,
        options: WriteOptions,
    ) -> Result<Original, Error> {
        if let Location::Remote(address) = Location::of(path) {
            return Err(Error::file(FileName::Remote(address), EditFault::Remote));
        }
        if input::is_zarr_folder(path) {
            return Err(Error::file(path, EditFault::ReadOnly(Format::Zarr)));
        }
        let failed = |error: std::io::Error| Error::file(path, error);
        let patch = match copy {
            None => Some(InPlaceFile::open(path).map_err(|error| failed_sink(path.into(), error))?),
            Some(_) => None,
        };
        let file = match &patch {
            Some(patch) => patch.file().try_clone(),
            // not to wait for the other end of a FIFO
            None => fs::OpenOptions::new().read(true).custom_flags(NO_WAIT).open(path),
        };
        let file = file.map_err(failed)?;
        source::note_read(&file, || path.display().to_string());
        let metadata = file.metadata().map_err(failed)?;
        if metadata.is_dir() {
            return Err(Error::file(path, source::OpenError::IsADirectory));
        }
        if !metadata.is_file() {
            return Err(Error::file(path, EditFault::NotAFile));
        }
        let len = metadata.len();
        let source = PreadSource::new(file.try_clone().map_err(failed)?, 0, len);
        let location = Location::Path(path.to_owned());
        let input = open_input(&location, source, open);
        let mut input = input.map_err(|error| error.in_file(&location))?;
        if copy.is_none() && input.contents.format == Format::Npz {
            return Err(Error::file(path, EditFault::Archive));
        }
        let header = match &copy {
            Some(copy) if options.metadata.is_any() => {
                Some(NewHeader::of(&mut input, copy, &options)?)
            }
            _ => None,
        };
        // the header of the copy is that of the file, whatever elements are read as
        open.read_as.iter().try_for_each(|other| input.read_as(other, open.raw.several))?;
        let overwritten = copy.as_ref().map_or(Ok(None), overwrite::overwritten)?;
        let original = Original { input, file, len, patch, copy, overwritten, header, options };
        if let Some(output) = overwritten {
            overwrite::check_input(output, &original.input)?;
        }
        if let Some(copy) = &original.copy {
            original.check_name(copy)?;
        }
        Ok(original)
    }

    /// A copy has the format of what it is a copy of, and its name must not say another one.
    fn check_name(&self, copy: &Destination) -> Result<(), Error> {
        let Destination::Path(path) = copy else { return Ok(()) };
        let extension = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
        let format = self.format();
        let fits = match self.input.contents.format {
            // raw bytes have any name that tells no other format
            Format::Raw => layout::by_extension(&extension).is_none_or(|it| it.name == format.name),
            _ => format.extensions.contains(&extension.as_str()),
        };
        if fits || copy.is_stream() {
            return Ok(());
        }
        let original = FileName::from(self.input.location());
        Err(Error::file(copy, EditFault::CopyName { original, format }))
    }

    pub fn format(&self) -> &'static OutputFormat {
        layout::of_plain(self.input.contents.format)
    }

    pub(in crate::job) fn workers(&self) -> &Workers {
        &self.options.workers
    }

    /// Refuse a tensor whose bytes are not in the file as they are; it is named where there are `several`.
    pub(super) fn check_target(&self, tensor: &TensorInfo, several: bool) -> Result<(), Error> {
        match tensor.part() {
            0 => Ok(()),
            _ => Err(self.input.failed_tensor(tensor, several, EditFault::Deflated)),
        }
    }

    /// Where the CRC-32s of those members of an archive stand whose elements begin at these positions,
    /// which ascend; none in other files.
    pub(super) fn sums(&self, starts: &[u64]) -> Result<Vec<MemberSums>, Error> {
        if self.input.contents.format != Format::Npz || starts.is_empty() {
            return Ok(Vec::new());
        }
        let location = self.input.location();
        let file = self.file.try_clone().map_err(|error| Error::file(location, error))?;
        // the archive alone, without what is inflated behind it
        let archive = PreadSource::new(file, 0, self.len);
        npz::sums(&archive, starts).map_err(|error| Error::file(location, error))
    }

    pub fn input(&self) -> &Input {
        &self.input
    }

    /// Make the checks that only writing would make.
    pub(super) fn check(&self) -> Result<(), Error> {
        let Some(copy) = &self.copy else { return Ok(()) };
        let checked = sink::check(copy, self.options.sink());
        checked.map_err(|error| failed_sink(copy.into(), error))
    }

    /// Make sure that all of a tensor that is read while `written` (bytes of the file) is changed is
    /// there, and stays as it is. What lies in the bytes to be written is refused; its input is no
    /// pipe, or has been spooled.
    pub(in crate::job) fn keep(
        &self,
        input: &Input,
        tensor: &TensorInfo,
        written: &Range<u64>,
    ) -> Result<(), Error> {
        self.check_kept(input, tensor, written)?;
        let Range { start, end } = tensor.data();
        if let Some(source) = input.random()
            && tensor.part() > 0
            && !input.container.deflated.is_empty()
            && start < end
        {
            // inflated whole by the first byte that is asked for, its checksum included
            let first = start..start + 1;
            let failed = |error| Error::file(&input.location, error);
            source.window(first, &mut Vec::new()).map_err(failed)?;
        }
        Ok(())
    }

    /// Refuse a tensor that lies in the bytes that are to be changed, or in the output. Its input is
    /// no pipe, or has been spooled.
    pub(super) fn check_kept(
        &self,
        input: &Input,
        tensor: &TensorInfo,
        written: &Range<u64>,
    ) -> Result<(), Error> {
        match (self.overwritten, &self.patch, &input.bytes) {
            (Some(output), ..) => overwrite::check_input(output, input),
            (None, Some(patch), Bytes::Random(source)) => {
                overwrite::check_in_place(patch, written, input, tensor, source.as_ref())
            }
            _ => Ok(()),
        }
    }

    /// Begin to write; another thread may watch how far a copy is: [`Progress::copying`].
    pub(super) fn begin(&mut self, progress: &Progress) -> Result<Edit, Error> {
        let options = self.options.clone();
        let name = FileName::from(self.input.location());
        let Some(target) = &self.copy else {
            return match self.patch.take() {
                Some(patch) => Ok(Edit { name, patch, copy: None, options }),
                None => Err(Error::file(name, EditFault::NotAFile)),
            };
        };
        let add = |bytes| progress.copied.add(bytes);
        let (from, at) = self.header.as_ref().map_or((0, 0), |header| (header.old, header.new));
        let original = CopiedRange { file: &self.file, range: from..self.len, at };
        let copy = || sink::create_copy(target, options.sink(), &original, &add);
        let copied = progress.copied.during(self.len, copy);
        let (copy, patch) = copied.map_err(|error| match error {
            SinkError::OriginalTruncated => Error::file(name, error),
            error => failed_sink(target.into(), error),
        })?;
        if let Some(NewHeader { prepared, .. }) = &self.header {
            let written = prepared.frame.write_headers(&|at, bytes| patch.write_at(at, bytes));
            written.map_err(|error| failed_sink(target.into(), error))?;
        }
        Ok(Edit { name: target.into(), patch, copy: Some(copy), options })
    }
}

/// The header of a copy that has other metadata than its original.
struct NewHeader {
    prepared: Prepared,
    /// Where the elements begin in the original, and in the copy.
    old: u64,
    new: u64,
}

impl NewHeader {
    /// Make it for a copy of `input`, whose tensors get the places that they have in the copy.
    fn of(
        input: &mut Input,
        copy: &Destination,
        options: &WriteOptions,
    ) -> Result<NewHeader, Error> {
        let format = layout::of_plain(input.contents.format);
        let output = Output::new(copy.clone(), options.clone().format(format))?;
        let tensors = Arc::clone(&input.contents.tensors);
        let mut preparation = output.begin_preparing(Arc::clone(&tensors), None)?;
        preparation.keeps_order = true;
        for (number, tensor) in tensors.iter().enumerate() {
            let name = output.tensor_name(&tensor, &input.location, false);
            let becomes = Becomes::kept(tensor.shape.clone());
            preparation.push(name, &tensor, number, becomes)?;
        }
        let mut prepared = preparation.finish(&input.contents.metadata)?;
        let old = input.contents.header_len;
        let start = |prepared: &Prepared| prepared.frame.starts().next().map_or(0, |(_, at)| at);
        // the same place, or the same one in a later block, so that blocks are shared
        let short = start(&prepared);
        let more = match old.checked_sub(short) {
            Some(more) => more,
            None => (short - old).next_multiple_of(BLOCK_BYTES) - (short - old),
        };
        prepared.frame.grow(&|_| more.next_multiple_of(8));
        let new = start(&prepared);
        let moved = new.checked_sub(old).ok_or(LayoutFault::TooLarge)?;
        let placed = tensors.iter().map(|tensor| tensor.placed(0, moved));
        input.contents.tensors = Arc::new(placed.collect());
        Ok(NewHeader { prepared, old, new })
    }
}

fn open_input(
    location: &Location,
    source: PreadSource,
    options: &OpenOptions,
) -> Result<Input, Error> {
    let format = recognise(&first_bytes(&source)?);
    let bytes = source::Opened::Random(Box::new(source));
    let progress = &Progress::default();
    if options.raw.text_format(location, format.is_some()).is_some() {
        return Err(EditFault::Text.into());
    }
    let mut input = match (options.raw.of_raw_bytes(format.is_some()), format) {
        (Some(dtype), _) => raw::open(location, bytes, dtype, &options.raw, progress)?,
        (None, Some(format)) if format.format == Format::Sharded => {
            return Err(EditFault::Sharded.into());
        }
        (None, Some(format)) => {
            (format.open)(RecognisedFile { location, bytes, options, progress })?
        }
        (None, None) => return Err(unrecognised(location, bytes)),
    };
    match input.contents.format {
        Format::Npy | Format::Npz | Format::Safetensors | Format::Raw => {}
        format => return Err(EditFault::ReadOnly(format).into()),
    }
    options.raw.apply(&mut input, options)?;
    Ok(input)
}

/// A file that is being changed. Dropping it leaves what stood there before, but in place.
pub(super) struct Edit {
    name: FileName,
    patch: InPlaceFile,
    copy: Option<Box<dyn Draft>>,
    options: WriteOptions,
}

impl Edit {
    pub(super) fn patch(&self) -> &InPlaceFile {
        &self.patch
    }

    /// Compute the CRC-32 of a member of an archive from what was written, and put it where it stands.
    pub(super) fn sum(&self, member: &MemberSums, progress: &Progress) -> Result<(), Error> {
        let Range { start, end } = member.data;
        let file =
            self.patch.file().try_clone().map_err(|error| Error::file(self.name.clone(), error))?;
        let source = &PreadSource::new(file, 0, end);
        let plan = Plan::new(&Runs::contiguous(start, end - start), 1, PIECE_BYTES);
        let pieces = &Summed::new(&plan, end - start);
        let transfer = Transfer { source, pieces, conversion: Conversion::None, at: 0 };
        self.run(transfer, &NullSink, Some(&self.name), progress)?;
        let damaged = || Error::file(self.name.clone(), SourceError::Truncated);
        let crc = pieces.crc().ok_or_else(damaged)?.to_le_bytes();
        let mut places = member.places.iter();
        let written = places.try_for_each(|&place| self.patch.write_at(place, &crc));
        written.map_err(|error| failed_sink(self.name.clone(), error))
    }

    /// Run one transfer from an input into a sink that writes through the patch.
    pub(super) fn run(
        &self,
        transfer: Transfer<'_>,
        sink: &dyn Sink,
        input: Option<&FileName>,
        progress: &Progress,
    ) -> Result<(), Error> {
        let source = transfer.source;
        let outcome = execute::run(&[transfer], sink, &self.options.workers, progress);
        // an input that was cut short is the reason for whatever else went wrong
        source.verify().map_err(|error| Error::of_file(input, error))?;
        outcome.map_err(|error| match error.into_source() {
            Ok(error) => Error::of_file(input, error),
            Err(ExecuteError::Sink(error)) => failed_sink(self.name.clone(), error),
            Err(error) => error.into(),
        })
    }

    pub(super) fn finish(self) -> Result<(), Error> {
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
fn failed_sink(name: FileName, error: SinkError) -> Error {
    let error = match error {
        SinkError::Os { error, .. } if error.kind() == ErrorKind::StorageFull => {
            SinkError::Io(error)
        }
        error => error,
    };
    Error::file(name, error)
}
