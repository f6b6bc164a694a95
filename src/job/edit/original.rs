//! A file that is changed: in place, in a copy of it, or in a copy of all files of a checkpoint in
//! a folder.
//!
//! Everything is checked while the file is only read. [`Original::begin`] starts the writing.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;

use super::EditFault;
use super::copies::{CopiedFile, CopiedFolder, CopiedHeader, failed_sink};
use crate::error::{Error, FileName};
use crate::execute::{Conversion, ExecuteError, NullSink, Progress, Transfer, Workers};
use crate::formats::npz::MemberSums;
use crate::formats::{first_bytes, npz, raw, recognise, safetensors, shards, unrecognised, zarr};
use crate::input::{Bytes, Input, Location, OpenOptions, RecognisedFile, Summed};
use crate::job::overwrite;
use crate::output::layout::OutputFormat;
use crate::output::{Output, WriteOptions};
use crate::plan::{PIECE_BYTES, Plan};
use crate::runs::Runs;
use crate::sink::{Destination, Draft, InPlaceFile, Sink, SinkError};
use crate::source::{FileId, PreadSource, SourceError};
use crate::tensor::TensorInfo;
use crate::{execute, formats, sink, source};

/// The file that is to be changed; its header was read.
pub struct Original {
    input: Input,
    target: EditOutput,
    /// The file whose bytes are overwritten while the copy is written, if there is one.
    overwritten: Option<FileId>,
    options: WriteOptions,
}

/// Where the changed bytes go.
enum EditOutput {
    /// The file itself, opened for writing; taken when it is written.
    InPlace(Option<InPlaceFile>),
    Copy(Box<CopiedFile>),
    Folder(Box<CopiedFolder>),
}

impl Original {
    /// Open the file to change it in place, or to change a `copy`. `open` says what raw bytes mean. Of the write options,
    /// `force`, `fsync` and the threads count.
    pub fn open(
        path: &Path,
        open: &OpenOptions,
        copy: Option<Destination>,
        options: WriteOptions,
    ) -> Result<Original, Error> {
        if let Location::Remote(address) = Location::of(path) {
            return Err(Error::file(FileName::Remote(address), EditFault::Remote));
        }
        if zarr::is_folder(path) {
            return Err(Error::file(path, EditFault::ReadOnly(&zarr::FORMAT)));
        }
        let failed = |error: std::io::Error| Error::file(path, error);
        let patch = match copy {
            None => Some(InPlaceFile::open(path).map_err(|error| failed_sink(path.into(), error))?),
            Some(_) => None,
        };
        let file = match &patch {
            Some(patch) => patch.file().try_clone(),
            // does not wait for the other end of a FIFO
            None => source::open_at_once(path, false),
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
        if copy.is_none() && input.contents.format == &npz::FORMAT {
            return Err(Error::file(path, EditFault::Archive));
        }
        let overwritten = copy.as_ref().map_or(Ok(None), overwrite::overwritten)?;
        let target = match copy {
            None => EditOutput::InPlace(patch),
            Some(destination) => {
                let header = if options.metadata.is_any() {
                    Some(CopiedHeader::of(&mut input, &destination, &options)?)
                } else {
                    None
                };
                EditOutput::Copy(Box::new(CopiedFile { destination, file, len, header }))
            }
        };
        // the copy has the file's header, whatever dtype the elements are read as
        open.read_as.iter().try_for_each(|other| input.read_as(other, open.raw.several))?;
        let original = Original { input, target, overwritten, options };
        if let Some(output) = overwritten {
            overwrite::check_input(output, &original.input)?;
        }
        if let Some(copy) = original.destination() {
            original.check_name(copy)?;
        }
        Ok(original)
    }

    /// Open a checkpoint whose changed copy is written into a folder, if `output` is one.
    pub fn open_folder(
        location: &Location,
        open: &OpenOptions,
        output: &Output,
    ) -> Result<Original, Error> {
        let all_as_stored = OpenOptions { read_as: None, rest: true, ..open.clone() };
        let mut input = formats::open(location, &all_as_stored)?;
        input.keeps_rest = open.rest;
        let format = input.contents.format;
        if format != &shards::FORMAT && format != &safetensors::FORMAT {
            let Some(format) = formats::of_plain(format) else {
                return Err(Error::file(location, EditFault::ReadOnly(format)));
            };
            let fault = EditFault::CopyName { original: location.into(), format };
            return Err(Error::file(output.destination(), fault));
        }
        let folder = CopiedFolder::of(&mut input, output)?;
        open.read_as.iter().try_for_each(|other| input.read_as(other, open.raw.several))?;
        let target = EditOutput::Folder(Box::new(folder));
        Ok(Original { input, target, overwritten: None, options: output.options.clone() })
    }

    /// The destination of the copy, if one is changed.
    pub(super) fn destination(&self) -> Option<&Destination> {
        match &self.target {
            EditOutput::InPlace(_) => None,
            EditOutput::Copy(copy) => Some(&copy.destination),
            EditOutput::Folder(folder) => Some(folder.prepared.output.destination()),
        }
    }

    /// The bytes of elements that are copied before they are changed; they are counted as they are
    /// copied.
    pub(super) fn copied_bytes(&self) -> u64 {
        match &self.target {
            EditOutput::Folder(folder) => folder.prepared.bytes,
            EditOutput::InPlace(_) | EditOutput::Copy(_) => 0,
        }
    }

    /// Refuse a copy whose name has the extension of another format than the file's.
    fn check_name(&self, copy: &Destination) -> Result<(), Error> {
        let Destination::Path(path) = copy else { return Ok(()) };
        let extension = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
        let format = self.format();
        let fits = if format.is_raw {
            // the name of raw bytes may be any that has no extension of another format
            formats::by_extension(&extension).is_none_or(|it| it.name == format.name)
        } else {
            format.extensions.contains(&extension.as_str())
        };
        if fits || copy.is_stream() {
            return Ok(());
        }
        let original = FileName::from(self.input.location());
        Err(Error::file(copy, EditFault::CopyName { original, format }))
    }

    pub fn format(&self) -> &'static OutputFormat {
        match &self.target {
            EditOutput::Folder(folder) => folder.prepared.output.format(),
            EditOutput::InPlace(_) | EditOutput::Copy(_) => {
                formats::of_plain(self.input.contents.format).unwrap_or(&raw::OUTPUT)
            }
        }
    }

    pub(in crate::job) fn workers(&self) -> &Workers {
        &self.options.workers
    }

    /// Refuse a tensor whose elements are not plain bytes of the file; it is named if there are
    /// `several`.
    pub(super) fn check_target(&self, tensor: &TensorInfo, several: bool) -> Result<(), Error> {
        match (tensor.shard(), &self.target) {
            (0, _) | (_, EditOutput::Folder(_)) => Ok(()),
            _ => Err(self.input.failed_tensor(tensor, several, EditFault::Deflated)),
        }
    }

    /// The positions of the CRC-32s of the members of an archive whose elements begin at `starts`
    /// (ascending); empty for other files.
    pub(super) fn sums(&self, starts: &[u64]) -> Result<Vec<MemberSums>, Error> {
        let EditOutput::Copy(copy) = &self.target else { return Ok(Vec::new()) };
        if self.input.contents.format != &npz::FORMAT || starts.is_empty() {
            return Ok(Vec::new());
        }
        let location = self.input.location();
        let file = copy.file.try_clone().map_err(|error| Error::file(location, error))?;
        // the archive alone, without the members inflated after it
        let archive = PreadSource::new(file, 0, copy.len);
        npz::sums(&archive, starts).map_err(|error| Error::file(location, error))
    }

    pub fn input(&self) -> &Input {
        &self.input
    }

    /// Make the checks that only writing would make.
    pub(super) fn check(&self) -> Result<(), Error> {
        match &self.target {
            EditOutput::InPlace(_) => Ok(()),
            EditOutput::Copy(copy) => {
                let destination = &copy.destination;
                let checked = sink::check(destination, self.options.sink());
                checked.map_err(|error| failed_sink(destination.into(), error))
            }
            EditOutput::Folder(folder) => folder.prepared.check(),
        }
    }

    /// Check that all of a tensor is there, and that it does not change while `written` (bytes of
    /// the file) is changed. A tensor in the bytes to be written is refused. Its input is not a
    /// pipe, or has been spooled.
    pub(in crate::job) fn keep(
        &self,
        input: &Input,
        tensor: &TensorInfo,
        written: &Range<u64>,
    ) -> Result<(), Error> {
        self.check_spooled(input, tensor, written)?;
        let Range { start, end } = tensor.data();
        if let Some(source) = input.random()
            && tensor.shard() > 0
            && !input.container.deflated.is_empty()
            && start < end
        {
            // the first byte inflates the whole member, and checks its checksum
            let first = start..start + 1;
            let failed = |error| Error::file(&input.location, error);
            source.window(first, &mut Vec::new()).map_err(failed)?;
        }
        Ok(())
    }

    /// Refuse a tensor that lies in the bytes that are to be changed, or in the output. Its input
    /// is not a pipe, or has been spooled.
    pub(super) fn check_spooled(
        &self,
        input: &Input,
        tensor: &TensorInfo,
        written: &Range<u64>,
    ) -> Result<(), Error> {
        match (self.overwritten, &self.target, &input.bytes) {
            (Some(output), ..) => overwrite::check_input(output, input),
            (None, EditOutput::InPlace(Some(patch)), Bytes::Random(source)) => {
                overwrite::check_in_place(patch, written, input, tensor, source.as_ref())
            }
            _ => Ok(()),
        }
    }

    /// Begin to write into these files of the copy, by their numbers. Another thread may watch the progress of copying
    /// ([`Progress::copying`]).
    pub(super) fn begin<'a>(
        &'a mut self,
        files: BTreeSet<usize>,
        progress: &'a Progress,
    ) -> Result<Edit<'a>, Error> {
        let options = self.options.clone();
        let name = FileName::from(self.input.location());
        let (name, patches, copy) = match &mut self.target {
            EditOutput::InPlace(patch) => {
                let fault = || Error::file(name.clone(), EditFault::NotAFile);
                let patch = patch.take().ok_or_else(fault)?;
                (name, BTreeMap::from([(0, patch)]), None)
            }
            EditOutput::Copy(file) => {
                let (copy, patch) = file.begin(&name, &options, progress)?;
                ((&file.destination).into(), BTreeMap::from([(0, patch)]), Some(copy))
            }
            EditOutput::Folder(folder) => {
                let name = FileName::from(folder.prepared.output.destination());
                let copy = folder.copy(&self.input, progress)?;
                let patch = |file| match &copy {
                    Some(copy) => Ok((file, copy.patch(file)?)),
                    None => Err(SinkError::NotRegularFile),
                };
                let patches = files.into_iter().map(patch).collect::<Result<_, _>>();
                (name.clone(), patches.map_err(|error| failed_sink(name, error))?, copy)
            }
        };
        Ok(Edit { name, patches, copy, options })
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
    let file = RecognisedFile { location, bytes, options, progress };
    let mut input = match format {
        _ if options.raw.is_raw_bytes(format.is_some()) => raw::open(file)?,
        Some(format) if format == &shards::FORMAT => return Err(EditFault::Sharded.into()),
        Some(format) => (format.open)(file)?,
        None => return Err(unrecognised(location, file.bytes)),
    };
    let format = input.contents.format;
    if formats::of_plain(format).is_none() {
        return Err(EditFault::ReadOnly(format).into());
    }
    options.raw.apply(&mut input, options)?;
    Ok(input)
}

/// A file that is being changed. If it is dropped, the previous file stays, except in place.
pub(super) struct Edit<'a> {
    name: FileName,
    /// The files that are written, by their numbers in the copy.
    patches: BTreeMap<usize, InPlaceFile>,
    copy: Option<Box<dyn Draft + 'a>>,
    options: WriteOptions,
}

impl Edit<'_> {
    /// The file that holds a tensor.
    pub(super) fn patch(&self, tensor: &TensorInfo) -> Result<&InPlaceFile, Error> {
        let patch = self.patches.get(&tensor.shard());
        patch.ok_or_else(|| Error::file(self.name.clone(), EditFault::OtherTensor))
    }

    /// Compute the CRC-32 of a changed member of an archive, and write it.
    pub(super) fn sum(&self, member: &MemberSums, progress: &Progress) -> Result<(), Error> {
        let Range { start, end } = member.data;
        let failed = |error: SinkError| failed_sink(self.name.clone(), error);
        let patch = self.patches.get(&0).ok_or_else(|| failed(SinkError::NotRegularFile))?;
        let file =
            patch.file().try_clone().map_err(|error| Error::file(self.name.clone(), error))?;
        let source = &PreadSource::new(file, 0, end);
        let plan = Plan::new(&Runs::contiguous(start, end - start), 1, PIECE_BYTES);
        let pieces = &Summed::new(&plan, end - start);
        let transfer = Transfer { source, pieces, conversion: Conversion::None, at: 0 };
        self.run(transfer, &NullSink, Some(&self.name), progress)?;
        let damaged = || Error::file(self.name.clone(), SourceError::Truncated);
        let crc = pieces.crc().ok_or_else(damaged)?.to_le_bytes();
        let mut offsets = member.offsets.iter();
        offsets.try_for_each(|&offset| patch.write_at(offset, &crc)).map_err(failed)
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
        // a truncated input is the cause of any other error
        source.verify().map_err(|error| Error::of_file(input, error))?;
        outcome.map_err(|error| match error.into_source() {
            Ok(error) => Error::of_file(input, error),
            Err(ExecuteError::Sink(error)) => failed_sink(self.name.clone(), error),
            Err(error) => error.into(),
        })
    }

    pub(super) fn finish(self) -> Result<(), Error> {
        let Edit { name, patches, copy, options } = self;
        // the draft of a copy waits for the disk
        let fsync = options.fsync && copy.is_none();
        let finished = patches.into_values().try_for_each(|patch| patch.finish(fsync));
        let placed = finished.and_then(|()| copy.map_or(Ok(()), |copy| copy.commit()));
        placed.map_err(|error| failed_sink(name, error))
    }
}
