//! An opened input: what its header says, and the bytes of its tensors.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Cause, Error, Fault, FileName};
use crate::execute::{self, ExecuteError, FillError, Progress, Workers};
use crate::format::gguf::{GgufMetadata, MetadataError, MetadataValue};
use crate::format::npy::NpyError;
use crate::format::npz::Member;
use crate::format::{Contents, Format, FormatError, TensorInfo, shards, shortened};
use crate::input::checked::StoredMember;
use crate::input::pattern;
use crate::input::pattern::SelectFault;
use crate::input::watched::Watched;
use crate::runs::Runs;
use crate::source::remote::Address;
use crate::source::{self, ConcatSource, Forward, InflatedSource, Source, SourceError, Stream};

/// Where an input comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// Standard input.
    Stdin,
    /// A file, a pipe or a device.
    Path(PathBuf),
    /// A file behind a network.
    Remote(Address),
}

impl Location {
    /// Where a text leads: an address where it begins as one, else a path.
    pub fn of(path: &Path) -> Location {
        match path.to_str().and_then(Address::parse) {
            Some(address) => Location::Remote(address),
            None => Location::Path(path.to_owned()),
        }
    }

    /// The path, where it is one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Location::Stdin | Location::Remote(_) => None,
            Location::Path(path) => Some(path),
        }
    }

    /// The last part of the path or address; none of standard input.
    pub(crate) fn file_name(&self) -> Option<&OsStr> {
        match self {
            Location::Stdin => None,
            Location::Path(path) => path.file_name(),
            Location::Remote(address) => Some(OsStr::new(address.file_name())),
        }
    }

    /// A file of that name in the same folder; `None` for standard input.
    pub(crate) fn with_file_name(&self, name: &str) -> Option<Location> {
        match self {
            Location::Stdin => None,
            Location::Path(path) => Some(Location::Path(path.with_file_name(name))),
            Location::Remote(address) => Some(Location::Remote(address.with_file_name(name))),
        }
    }
}

impl From<&Location> for FileName {
    fn from(location: &Location) -> FileName {
        match location {
            Location::Stdin => FileName::Stdin,
            Location::Path(path) => FileName::Path(path.clone()),
            Location::Remote(address) => FileName::Remote(address.clone()),
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        FileName::from(self).fmt(f)
    }
}

/// An input whose header has been read.
///
/// All positions of tensors count in one space, whatever the container: shards follow each other,
/// and the deflated members of an archive follow the archive.
pub struct Input {
    pub(crate) location: Location,
    pub(crate) contents: Contents,
    pub(crate) bytes: Bytes,
    pub(crate) checkpoint: Option<Box<Checkpoint>>,
    /// Its files, where there are several.
    pub(crate) parts: Vec<PartFile>,
    /// What a `.gguf` says besides its tensors.
    pub(crate) gguf: Option<GgufPart>,
    /// The deflated members of an archive: tensors of part n are in number n - 1.
    pub(crate) deflated: Vec<DeflatedMember>,
    /// Its stored members that have elements, in the order of their bytes.
    pub(crate) stored: Vec<StoredMember>,
    pub(crate) unreadable: Vec<Unreadable>,
}

/// A member of an archive that holds no array that can be read, such as one of Python objects. The
/// others can still be read, as by np.load.
#[derive(Clone, Debug)]
pub struct Unreadable {
    /// The name that the tensor would have.
    pub name: String,
    /// Why it cannot be read.
    pub error: UnreadableCause,
}

/// Why one tensor of a file cannot be read, while the others can.
#[derive(Clone, Debug, thiserror::Error)]
pub enum UnreadableCause {
    /// The header of a member.
    #[error(transparent)]
    Npy(#[from] NpyError),
    /// A dataset.
    #[cfg(feature = "hdf5")]
    #[error(transparent)]
    Hdf5(#[from] crate::format::hdf5::Hdf5Error),
    /// An array.
    #[cfg(feature = "zarr")]
    #[error(transparent)]
    Zarr(#[from] crate::format::zarr::ZarrError),
}

impl From<UnreadableCause> for FormatError {
    fn from(cause: UnreadableCause) -> FormatError {
        match cause {
            UnreadableCause::Npy(error) => error.into(),
            #[cfg(feature = "hdf5")]
            UnreadableCause::Hdf5(error) => error.into(),
            #[cfg(feature = "zarr")]
            UnreadableCause::Zarr(error) => error.into(),
        }
    }
}

/// The header of a member of a `.npz` breaks the rules of its format.
#[derive(Debug, thiserror::Error)]
#[error("member {:?}: {error}", shortened(name))]
pub struct BadMember {
    /// The member.
    pub name: String,
    /// What is wrong with it.
    pub error: FormatError,
}

impl Fault for BadMember {}

/// The bytes of an input.
pub(crate) enum Bytes {
    /// Bytes that can be read in any order.
    Random(Arc<dyn Source>),
    /// Bytes that can be read once, from front to back.
    Stream(Stream),
}

impl From<source::Opened> for Bytes {
    fn from(opened: source::Opened) -> Bytes {
        match opened {
            source::Opened::Random(source) => Bytes::Random(Arc::from(source)),
            source::Opened::Forward(stream) => Bytes::Stream(stream),
        }
    }
}

/// The metadata of a `.gguf`, and the file that they are read from: the first of several.
pub(crate) struct GgufPart {
    pub(crate) metadata: GgufMetadata,
    pub(crate) source: Arc<dyn Source>,
}

/// A file of an input of several.
pub struct PartFile {
    /// The name, in the folder of the input.
    pub name: String,
    /// The position of its first byte; 0 for one that was not opened.
    pub start: u64,
}

/// A sharded checkpoint: its index, and the `__metadata__` of each of its files.
pub struct Checkpoint {
    /// The name of the index file.
    pub name: String,
    /// The index.
    pub index: shards::ShardIndex,
    /// The metadata of each file; empty for files that were not opened.
    pub metadata: Vec<BTreeMap<String, String>>,
}

/// A deflated member of an archive, and the position of its first inflated byte.
pub(crate) struct DeflatedMember {
    pub(crate) start: u64,
    pub(crate) bytes: Arc<InflatedSource>,
}

impl Input {
    /// A single file with these contents.
    pub(crate) fn of_file(
        location: &Location,
        bytes: impl Into<Bytes>,
        contents: Contents,
    ) -> Input {
        let (location, bytes) = (location.clone(), bytes.into());
        Input {
            location,
            contents,
            bytes,
            checkpoint: None,
            parts: Vec::new(),
            gguf: None,
            deflated: Vec::new(),
            stored: Vec::new(),
            unreadable: Vec::new(),
        }
    }

    /// An input whose header was read by other means, for a format that is not recognised:
    /// `contents` tells where in the bytes of `source` its tensors are.
    pub fn of_source(location: &Location, source: Arc<dyn Source>, contents: Contents) -> Input {
        Input::of_file(location, Bytes::Random(source), contents)
    }

    /// Where it comes from.
    pub fn location(&self) -> &Location {
        &self.location
    }

    /// What its header says.
    pub fn contents(&self) -> &Contents {
        &self.contents
    }

    /// The index of a sharded checkpoint, where it is one.
    pub fn checkpoint(&self) -> Option<&Checkpoint> {
        self.checkpoint.as_deref()
    }

    /// The files, where there are several: shards, or those of a split model.
    pub fn parts(&self) -> &[PartFile] {
        &self.parts
    }

    /// Whether it is a `.gguf`, whose metadata have values of several types.
    pub fn has_gguf_metadata(&self) -> bool {
        self.gguf.is_some()
    }

    /// Show each key of the metadata of a `.gguf` with its value, which is read now.
    ///
    /// # Errors
    /// [`MetadataError`].
    pub fn visit_gguf(
        &self,
        show: &mut dyn FnMut(&str, MetadataValue<'_, '_>) -> Result<(), MetadataError>,
    ) -> Result<(), MetadataError> {
        let Some(GgufPart { metadata, source }) = &self.gguf else { return Ok(()) };
        metadata.visit(source.as_ref(), show)
    }

    /// The file that holds a tensor, where there are several, and where in it the tensor begins,
    /// in bytes; no position for a tensor that is compressed, in chunks or text.
    pub fn whereabouts(&self, tensor: &TensorInfo) -> (Option<&str>, Option<u64>) {
        let file = self.parts.get(tensor.part()).map(|file| file.name.as_str());
        let position = match tensor.chunk_shape() {
            None => self.place_in_file(tensor.part(), tensor.data().start),
            Some(_) => None,
        };
        (file, position)
    }

    /// A position of a part of the input in the file that holds it, in bytes; `None` where that is
    /// compressed or text.
    pub(crate) fn place_in_file(&self, part: usize, position: u64) -> Option<u64> {
        match self.parts.get(part) {
            Some(file) => position.checked_sub(file.start),
            None => {
                let is_text = matches!(self.contents.format, Format::Text(_));
                (part == 0 && !is_text).then_some(position)
            }
        }
    }

    /// The file that holds the bytes of a tensor, where there are several one beside the input.
    pub(crate) fn file_name(&self, tensor: &TensorInfo) -> FileName {
        let shard = self
            .parts
            .get(tensor.part())
            .and_then(|file| Some(FileName::from(&self.location.with_file_name(&file.name)?)));
        shard.unwrap_or_else(|| (&self.location).into())
    }

    /// The one tensor that the patterns (names or globs) mean; without any, the only one.
    ///
    /// # Errors
    /// [`SelectFault`]: no such tensor, several of them, a pattern that is no glob.
    pub fn tensor(&self, patterns: &[String]) -> Result<TensorInfo, Error> {
        Ok(self.contents.tensors.at(self.find_one(patterns)?))
    }

    /// The one tensor that the patterns mean; its fields in place of its items, if any are named.
    ///
    /// # Errors
    /// As [`tensor`](Input::tensor); [`FieldFault`](crate::input::FieldFault).
    pub fn tensor_fields(
        &mut self,
        patterns: &[String],
        fields: Option<&str>,
    ) -> Result<TensorInfo, Error> {
        let number = self.find_one(patterns)?;
        self.take_fields(fields, &[number])?;
        Ok(self.contents.tensors.at(number))
    }

    /// The number of that tensor.
    pub(crate) fn find_one(&self, patterns: &[String]) -> Result<usize, Error> {
        match self.find(patterns)?.as_slice() {
            &[only] => Ok(only),
            several => Err(self.failed(SelectFault::Several(several.len()))),
        }
    }

    /// The members of an archive that cannot be read.
    pub fn unreadable(&self) -> &[Unreadable] {
        &self.unreadable
    }

    /// The numbers of the tensors that the patterns mean, ascending; without any, the only one's.
    ///
    /// # Errors
    /// [`SelectFault`], and [`BadMember`](crate::input::BadMember) for one that cannot be read.
    pub fn find(&self, patterns: &[String]) -> Result<Vec<usize>, Error> {
        let found = self.find_named(patterns)?;
        found.iter().try_for_each(|&number| self.refuse_unreadable(number))?;
        Ok(found)
    }

    /// The numbers of the tensors with these names, where what cannot be read counts too: its numbers
    /// follow those of the tensors.
    ///
    /// # Errors
    /// [`SelectFault`].
    pub fn find_named(&self, patterns: &[String]) -> Result<Vec<usize>, Error> {
        let tensors = &self.contents.tensors;
        let names = tensors.names().map(|name| name.unwrap_or("-"));
        let names = names.chain(self.unreadable.iter().map(|member| member.name.as_str()));
        match (patterns, self.named_count()) {
            ([], 1) => Ok(vec![0]),
            ([], 0) => Err(self.failed(SelectFault::NoTensors)),
            ([], _) => {
                let names = names.map(str::to_owned).collect();
                Err(self.failed(SelectFault::NotNamed { names, holds_several: false }))
            }
            ([first, ..], 1) if tensors.names().any(|name| name.is_none()) => {
                Err(self.failed(SelectFault::Nameless { pattern: first.clone() }))
            }
            (patterns, _) => pattern::find(names, patterns).map_err(|fault| self.failed(fault)),
        }
    }

    /// The error of one of its tensors, whose name is told where there are several.
    pub(crate) fn failed_tensor(
        &self,
        tensor: &TensorInfo,
        several: bool,
        cause: impl Into<Cause>,
    ) -> Error {
        Error::file(&self.location, cause).of_tensor(tensor.name.as_deref(), several)
    }

    /// How many names there are, those of what cannot be read included.
    pub(crate) fn named_count(&self) -> usize {
        self.contents.tensors.len() + self.unreadable.len()
    }

    /// The error of a number that is beyond those of the tensors.
    pub(crate) fn refuse_unreadable(&self, number: usize) -> Result<(), Error> {
        let beyond = number.checked_sub(self.contents.tensors.len());
        match beyond.and_then(|number| self.unreadable.get(number)) {
            Some(Unreadable { name, error }) => {
                let (name, error) = (name.clone(), error.clone().into());
                Err(Error::file(&self.location, BadMember { name, error }))
            }
            None => Ok(()),
        }
    }

    /// The files whose headers were read; `None` for standard input.
    pub(crate) fn files(&self) -> Option<Vec<PathBuf>> {
        let path = self.location.path()?;
        if self.contents.format == Format::Zarr && path.is_dir() {
            return all_files(path).ok();
        }
        let mut files = vec![path.to_owned()];
        let mut parts: Vec<usize> =
            self.contents.tensors.iter().map(|tensor| tensor.part()).collect();
        parts.dedup();
        let parts = parts.into_iter().filter_map(|part| self.parts.get(part));
        files.extend(parts.map(|file| path.with_file_name(&file.name)).filter(|it| it != path));
        Some(files)
    }

    /// The error of a member whose bytes are damaged.
    pub(crate) fn damaged(&self, member: &StoredMember) -> Error {
        let mut tensors = self.contents.tensors.iter();
        let at = |tensor: &TensorInfo| Some(tensor.data()).filter(|data| !data.is_empty());
        let found = tensors.find(|tensor| at(tensor).is_some_and(|it| it.start == member.start));
        let name = found.and_then(|tensor| tensor.name).unwrap_or_default() + ".npy";
        Error::file(&self.location, Member::damaged(&name))
    }

    pub(crate) fn failed(&self, fault: SelectFault) -> Error {
        Error::file(&self.location, fault)
    }

    /// Its bytes, where they can be read in any order.
    pub(crate) fn random(&self) -> Option<Arc<dyn Source>> {
        match &self.bytes {
            Bytes::Random(source) => Some(Arc::clone(source)),
            Bytes::Stream(_) => None,
        }
    }

    /// Make sure that its bytes can be read in any order: what is left of a pipe is copied to a
    /// temporary file.
    ///
    /// # Errors
    /// A pipe that fails or ends before its tensors do, a temporary file that cannot be written.
    pub fn spool(&mut self) -> Result<Arc<dyn Source>, Error> {
        self.spool_watched(&Progress::default())
    }

    /// The bytes of one of its tensors, at their positions, for who reads them more than once: those
    /// of a remote file are copied to a temporary file too.
    ///
    /// # Errors
    /// As [`spool`](Input::spool).
    pub fn nearby(
        &mut self,
        tensor: &TensorInfo,
        workers: &Workers,
        progress: &Progress,
    ) -> Result<Arc<dyn Source>, Error> {
        let source = self.spool_watched(progress)?;
        let Range { start, end } = tensor.data();
        if source.request_gap().is_none() || start == end {
            return Ok(source);
        }
        let runs = Runs::contiguous(start, end - start);
        let copied =
            execute::spool(source.as_ref(), &runs, 1, workers).map_err(|error| match error {
                ExecuteError::Fill { error: FillError::Source(error), .. } => {
                    failed_source(&self.location, error)
                }
                error => error.into(),
            })?;
        self.at(start, copied)
    }

    /// Bytes of which the first stands at position `start`.
    fn at(&self, start: u64, rest: Box<dyn Source>) -> Result<Arc<dyn Source>, Error> {
        let source = ConcatSource::at(start, rest.into());
        Ok(Arc::new(source.map_err(|error| failed_source(&self.location, error))?))
    }

    /// Keep a tensor as [`spool`](Input::spool) does, where another thread watches how far it is:
    /// [`Progress::keeping`].
    ///
    /// # Errors
    /// As [`spool`](Input::spool).
    pub fn spool_watched(&mut self, progress: &Progress) -> Result<Arc<dyn Source>, Error> {
        let stream = match &mut self.bytes {
            Bytes::Random(source) => return Ok(Arc::clone(source)),
            Bytes::Stream(stream) => stream,
        };
        let start = stream.position();
        progress.kept.begin(self.contents.expected_len().saturating_sub(start));
        let rest = source::spool(Watched::new(stream, progress));
        progress.kept.begin(0);
        let rest = rest.map_err(|error| failed_source(&self.location, error))?;
        check_len(&self.location, start + rest.len(), &self.contents)?;
        let source = self.at(start, rest)?;
        self.bytes = Bytes::Random(Arc::clone(&source));
        Ok(source)
    }
}

/// No more of a pipe is needed. One that [drains](Stream::drains) is read to the end of what its format
/// promises, so that a short one is found out; of another one, whose writer would be waited for, only
/// that nothing follows the last byte of the data is looked at, where that was needed.
pub(crate) fn finish(
    location: &Location,
    stream: &mut Stream,
    contents: &Contents,
) -> Result<(), Error> {
    let rest = contents.expected_len().saturating_sub(stream.position());
    if rest > 0 && !stream.drains() {
        return Ok(());
    }
    stream.skip(rest).map_err(|error| failed_stream(location, stream, contents, error))?;
    let io = |error| Error::file(location, source::SourceError::Io(error));
    if !contents.allows_trailing_bytes() && stream.read(&mut [0]).map_err(io)? > 0 {
        // how many follow is known only to whoever reads them all
        return check_len(location, stream.position(), contents);
    }
    Ok(())
}

fn check_len(location: &Location, len: u64, contents: &Contents) -> Result<(), Error> {
    contents.check_len(len).map_err(|error| Error::file(location, error))
}

/// The error of a stream; of one that ended too early, the same as of a file that is cut short.
pub(crate) fn failed_stream(
    location: &Location,
    stream: &Stream,
    contents: &Contents,
    error: SourceError,
) -> Error {
    let ended = matches!(error, SourceError::UnexpectedEnd(_) | SourceError::Truncated);
    match check_len(location, stream.position(), contents) {
        Err(short) if ended && contents.format != Format::Raw => short,
        _ => failed_source(location, error),
    }
}

/// The error of the bytes of an input.
pub(crate) fn failed_source(location: &Location, error: SourceError) -> Error {
    Error::file(location, error)
}

/// All files of a folder and those below it, in the order of their names.
fn all_files(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let (mut files, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in folder.read_dir()? {
            let entry = entry?;
            match entry.file_type()?.is_dir() {
                true => folders.push(entry.path()),
                false => files.push(entry.path()),
            }
        }
    }
    files.sort_unstable();
    Ok(files)
}
