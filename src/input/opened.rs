//! An opened input: what its header says, and the bytes of its tensors.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Cause, Error, Fault, FileName};
use crate::format::gguf::{GgufMetadata, MetadataError, MetadataValue};
use crate::format::npy::{self, NpyError};
use crate::format::npz::{Member, MemberFault, NpzError};
use crate::format::torch::TorchError;
use crate::format::{Contents, Format, FormatError, TensorInfo, shards, shortened};
use crate::input::checked::StoredMember;
use crate::input::notes::Notes;
use crate::input::pattern;
use crate::input::pattern::SelectFault;
use crate::input::{Location, OpenOptions};
use crate::source::{self, InflatedSource, Source, Stream};

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
    /// Names or globs of tensors that are left out of those that are chosen.
    pub(crate) exclude: Vec<String>,
    /// Whether it may lack them, as another input has them.
    pub(crate) may_lack_excluded: bool,
    /// Whether tensors that are not chosen are kept beside them.
    pub(crate) keeps_rest: bool,
    /// Its files that cannot be opened.
    pub(crate) absent: Vec<Absent>,
    /// The classes and functions of a pickle that are not known.
    pub(crate) opaque: Vec<String>,
    pub(crate) notes: Notes,
}

/// What has a name and is no tensor that can be read, such as a member of an archive with Python objects.
/// The others can still be read.
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
    /// A member that an archive contradicts itself about.
    #[error("zip: {0}")]
    Npz(#[from] NpzError),
    /// A member of an archive.
    #[error(transparent)]
    Member(#[from] MemberFault),
    /// A tensor of torch.save.
    #[error(transparent)]
    Torch(#[from] TorchError),
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
            UnreadableCause::Npz(error) => error.into(),
            UnreadableCause::Member(fault) => fault.into(),
            UnreadableCause::Torch(error) => error.into(),
            #[cfg(feature = "hdf5")]
            UnreadableCause::Hdf5(error) => error.into(),
            #[cfg(feature = "zarr")]
            UnreadableCause::Zarr(error) => error.into(),
        }
    }
}

/// The header of a member of a `.npz` breaks the rules of its format.
#[derive(Debug, thiserror::Error)]
#[error("{}{error}", of_member(name))]
pub struct BadMember {
    /// The member.
    pub name: String,
    /// What is wrong with it.
    pub error: FormatError,
}

impl Fault for BadMember {}

/// The beginning of a message about a member; that which is the only one has no name.
fn of_member(name: &str) -> String {
    if name.is_empty() { String::new() } else { format!("member {:?}: ", shortened(name)) }
}

/// Of how many tensors that cannot be read notes give the reason.
const MOST_NOTES: usize = 10;

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
    /// How many tensors there are, in files that were not opened too.
    pub listed: usize,
    /// Whether the files were found in a folder without an index.
    pub(crate) is_folder: bool,
    /// The numbers of the tensors of the index that are nowhere.
    pub(crate) missing: Vec<u32>,
}

/// A file that should be there, and cannot be opened.
pub struct Absent {
    /// Its number among the files; they ascend.
    pub(crate) number: usize,
    /// The name, in the folder of the input.
    pub file: String,
    /// Why it cannot be opened.
    pub reason: String,
}

/// What should be in an input of several files, and is not there.
pub struct Missing<'a> {
    /// The tensor; of a file of which no tensors are known, none.
    pub tensor: Option<&'a str>,
    /// The file.
    pub file: &'a str,
    /// Why the file cannot be opened; it can be, and does not hold the tensor, without one.
    pub reason: Option<&'a str>,
}

/// A tensor that is asked for, and is not there.
#[derive(Debug, thiserror::Error)]
#[error("{}{}: {reason}", of_missing(tensor.as_deref()), shortened(file))]
pub struct MissingTensor {
    tensor: Option<String>,
    file: String,
    reason: String,
}

impl Fault for MissingTensor {}

/// The beginning of a message about what is missing: a tensor, or a file.
fn of_missing(tensor: Option<&str>) -> String {
    match tensor {
        Some(tensor) => format!("tensor {:?} is missing: ", shortened(tensor)),
        None => "a file is missing: ".to_owned(),
    }
}

impl Absent {
    /// The file as what is missing.
    fn missing(&self) -> Missing<'_> {
        Missing { tensor: None, file: &self.file, reason: Some(&self.reason) }
    }
}

impl<'a> Missing<'a> {
    /// By what it can be asked for.
    pub(crate) fn name(&self) -> &'a str {
        self.tensor.unwrap_or(self.file)
    }
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
            exclude: Vec::new(),
            may_lack_excluded: false,
            keeps_rest: false,
            absent: Vec::new(),
            opaque: Vec::new(),
            notes: Notes::default(),
        }
    }

    /// An input whose header was read by other means, for a format that is not recognised:
    /// `contents` tells where in the bytes of `source` its tensors are.
    pub fn of_source(location: &Location, source: Arc<dyn Source>, contents: Contents) -> Input {
        Input::of_file(location, Bytes::Random(source), contents)
    }

    /// Leave out of what is chosen what these options say.
    pub(crate) fn leave_out(&mut self, options: &OpenOptions) {
        self.keeps_rest = options.rest;
        self.exclude.clone_from(&options.exclude);
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

    /// What follows the array of a `.npy`, as several np.save to one file leave it: how many bytes, and
    /// whether they begin another array. np.load passes over them.
    pub fn following(&self) -> Option<(u64, bool)> {
        let (Format::Npy, Bytes::Random(source)) = (self.contents.format, &self.bytes) else {
            return None;
        };
        let end = self.contents.tensors.at(0).data().end;
        let bytes = source.len().checked_sub(end).filter(|bytes| *bytes > 0)?;
        let first = end..end.saturating_add(npy::MAGIC.len() as u64).min(source.len());
        let mut scratch = Vec::new();
        let begins = source.window(first, &mut scratch).is_ok_and(|first| first == npy::MAGIC);
        Some((bytes, begins))
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
            .and_then(|file| Some(FileName::from(&self.beside(&file.name)?)));
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
            several => {
                let tensors = &self.contents.tensors;
                let name = |number: &usize| tensors.name(*number).unwrap_or_default().to_owned();
                let names = several.iter().map(name).collect();
                let (chooses, excludes) = (!patterns.is_empty(), !self.exclude.is_empty());
                Err(self.failed(SelectFault::Several { names, chooses, excludes }))
            }
        }
    }

    /// The names of the classes and functions of a pickle that are not known: tensors in the arguments and
    /// the state of what they make are found.
    pub fn opaque(&self) -> &[String] {
        &self.opaque
    }

    /// What should be there, and is not: tensors, and files of which no tensors are known.
    pub fn missing(&self) -> impl Iterator<Item = Missing<'_>> {
        let named = (0..self.missing_count()).filter_map(|at| self.missing_named(at));
        let mut listed = HashSet::new();
        if let Some(it) = &self.checkpoint {
            listed.extend(it.missing.iter().map(|&number| it.index.tensor(number as usize).1));
        }
        let files = if self.checkpoint.is_some() { self.absent.as_slice() } else { &[] };
        let files = files.iter().filter(move |it| !listed.contains(&it.number));
        named.chain(files.map(Absent::missing))
    }

    /// How many of these have a name by which they can be asked for: tensors, and where these are not known,
    /// files.
    pub fn missing_count(&self) -> usize {
        self.checkpoint.as_ref().map_or(self.absent.len(), |it| it.missing.len())
    }

    /// One of those that have a name.
    pub fn missing_named(&self, at: usize) -> Option<Missing<'_>> {
        let Some(checkpoint) = &self.checkpoint else {
            return self.absent.get(at).map(Absent::missing);
        };
        let (tensor, file) = checkpoint.index.tensor(*checkpoint.missing.get(at)? as usize);
        let absent = self.absent.binary_search_by_key(&file, |it| it.number).ok();
        let reason = absent.and_then(|at| Some(self.absent.get(at)?.reason.as_str()));
        Some(Missing { tensor: Some(tensor), file: &checkpoint.index.files[file], reason })
    }

    /// A file in the folder of the input.
    pub(crate) fn beside(&self, name: &str) -> Option<Location> {
        match &self.location {
            Location::Path(folder) if self.checkpoint.as_ref().is_some_and(|it| it.is_folder) => {
                Some(Location::Path(folder.join(name)))
            }
            other => other.with_file_name(name),
        }
    }

    /// What has a name, and cannot be read.
    pub fn unreadable(&self) -> &[Unreadable] {
        &self.unreadable
    }

    /// The numbers of the tensors that the patterns mean, ascending; without any, the only one's. What
    /// cannot be read is left out of several with a note.
    ///
    /// # Errors
    /// [`SelectFault`], and [`BadMember`](crate::input::BadMember) for what cannot be read where that is
    /// named itself, or is all that is meant.
    pub fn find(&self, patterns: &[String]) -> Result<Vec<usize>, Error> {
        let mut found = self.find_named(patterns)?;
        self.leave_out_unreadable(&mut found, patterns)?;
        Ok(found)
    }

    /// Leave out of the tensors that these patterns mean, ascending numbers, what cannot be read.
    ///
    /// # Errors
    /// As [`find`](Input::find).
    pub(crate) fn leave_out_unreadable(
        &self,
        found: &mut Vec<usize>,
        patterns: &[String],
    ) -> Result<(), Error> {
        let count = self.contents.tensors.len();
        let hidden = found.split_off(found.partition_point(|&number| number < count));
        let is_named = |number: &&usize| {
            self.unreadable.get(**number - count).is_some_and(|it| patterns.contains(&it.name))
        };
        let only = hidden.first().filter(|_| found.is_empty());
        match hidden.iter().find(is_named).or(only) {
            Some(&number) => self.refuse_unreadable(number),
            None => self.note_unreadable(hidden),
        }
    }

    /// Say of what cannot be read that it is left out: of the first few with the reason.
    ///
    /// # Errors
    /// [`MissingTensor`] for what is missing.
    pub(crate) fn note_unreadable(
        &self,
        numbers: impl IntoIterator<Item = usize>,
    ) -> Result<(), Error> {
        let mut more = 0u64;
        let there = self.contents.tensors.len() + self.unreadable.len();
        for (at, number) in numbers.into_iter().enumerate() {
            if number >= there {
                return self.refuse_unreadable(number);
            }
            match self.refuse_unreadable(number) {
                Err(error) if at < MOST_NOTES => self.notes.add(format_args!("{error}; left out")),
                _ => more += 1,
            }
        }
        if more > 0 {
            let shown = &self.location;
            self.notes
                .add(format_args!("{shown}: {more} more tensors cannot be read, and are left out"));
        }
        Ok(())
    }

    /// The numbers of the tensors with these names, where what cannot be read counts too: its numbers
    /// follow those of the tensors. Without names, those of all but what is left out, or the only one's.
    ///
    /// # Errors
    /// [`SelectFault`].
    pub fn find_named(&self, patterns: &[String]) -> Result<Vec<usize>, Error> {
        if self.exclude.is_empty() {
            return self.find_all_named(patterns);
        }
        let excluded = self.excluded()?;
        let mut found = match patterns.is_empty() && !self.keeps_rest {
            true => (0..self.named_count()).collect(),
            false => self.find_all_named(patterns)?,
        };
        found.retain(|number| excluded.binary_search(number).is_err());
        if found.is_empty() {
            return Err(self.failed(SelectFault::NothingLeft));
        }
        Ok(found)
    }

    /// The numbers of the tensors that are left out, ascending.
    ///
    /// # Errors
    /// [`SelectFault::Excluded`].
    pub(crate) fn excluded(&self) -> Result<Vec<usize>, Error> {
        let is_here = |pattern: &&String| !self.may_lack_excluded || !self.lacks(pattern);
        let patterns: Vec<String> = self.exclude.iter().filter(is_here).cloned().collect();
        if patterns.is_empty() {
            return Ok(Vec::new());
        }
        self.find_all_named(&patterns).map_err(|error| {
            let cause = match error.cause.downcast::<SelectFault>() {
                Ok(fault) => fault.of_excluded().into(),
                Err(cause) => cause,
            };
            Error { cause, ..error }
        })
    }

    /// Whether a name or glob means nothing here.
    pub(crate) fn lacks(&self, pattern: &str) -> bool {
        let found = self.find_all_named(&[pattern.to_owned()]);
        let fault = found.as_ref().err().and_then(|error| error.cause.downcast_ref());
        matches!(
            fault,
            Some(
                SelectFault::NotFound { .. }
                    | SelectFault::NoTensors
                    | SelectFault::Nameless { .. }
            )
        )
    }

    /// Whether it holds one tensor, without a name.
    pub(crate) fn is_nameless(&self) -> bool {
        self.named_count() == 1 && self.contents.tensors.names().any(|name| name.is_none())
    }

    fn find_all_named(&self, patterns: &[String]) -> Result<Vec<usize>, Error> {
        let tensors = &self.contents.tensors;
        let names = tensors.names().map(|name| name.unwrap_or("-"));
        let names = names.chain(self.unreadable.iter().map(|member| member.name.as_str()));
        let missing = (0..self.missing_count()).filter_map(|at| self.missing_named(at));
        let missing = missing.map(|it| it.name());
        let names = names.chain(missing);
        match (patterns, self.named_count()) {
            ([], 1) => Ok(vec![0]),
            ([], 0) => Err(self.failed(SelectFault::NoTensors)),
            ([], _) => {
                let names = names.map(str::to_owned).collect();
                let excludes = !self.exclude.is_empty();
                Err(self.failed(SelectFault::NotNamed { names, holds_several: false, excludes }))
            }
            ([first, ..], _) if self.is_nameless() => {
                Err(self.failed(SelectFault::Nameless { pattern: first.clone() }))
            }
            (patterns, _) => pattern::find(names, patterns).map_err(|fault| match fault {
                SelectFault::NotFound { pattern, names, .. } => {
                    let links = self.contents.format == Format::Hdf5;
                    self.failed(SelectFault::NotFound { pattern, names, links })
                }
                fault => self.failed(fault),
            }),
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
        self.contents.tensors.len() + self.unreadable.len() + self.missing_count()
    }

    /// The error of a number that is beyond those of the tensors: what cannot be read, and behind that what
    /// is missing.
    pub(crate) fn refuse_unreadable(&self, number: usize) -> Result<(), Error> {
        let beyond = number.checked_sub(self.contents.tensors.len());
        let missing = beyond.and_then(|at| at.checked_sub(self.unreadable.len()));
        if let Some(missing) = missing.and_then(|at| self.missing_named(at)) {
            let tensor = missing.tensor.map(str::to_owned);
            let reason = missing.reason.unwrap_or("it does not hold it").to_owned();
            let fault = MissingTensor { tensor, file: missing.file.to_owned(), reason };
            return Err(Error::file(&self.location, fault));
        }
        match beyond.and_then(|number| self.unreadable.get(number)) {
            Some(Unreadable { name, error }) => {
                let (name, error) = (name.clone(), error.clone().into());
                Err(Error::file(&self.location, BadMember { name, error }))
            }
            None => Ok(()),
        }
    }

    /// The files whose headers were read; `None` for standard input, memory, and folders behind a network.
    pub(crate) fn files(&self) -> Option<Vec<Location>> {
        let own = match &self.location {
            Location::Stdin | Location::Memory => return None,
            Location::Path(path) if self.contents.format == Format::Zarr && path.is_dir() => {
                return Some(all_files(path).ok()?.into_iter().map(Location::Path).collect());
            }
            // its chunks are too many to ask for the version of each
            Location::Remote(address)
                if self.contents.format == Format::Zarr && address.may_be_zarr() =>
            {
                return None;
            }
            own => own,
        };
        let mut files = vec![own.clone()];
        let mut parts: Vec<usize> =
            self.contents.tensors.iter().map(|tensor| tensor.part()).collect();
        parts.dedup();
        let parts = parts.into_iter().filter_map(|part| self.parts.get(part));
        let shards = parts.filter_map(|file| self.beside(&file.name));
        files.extend(shards.filter(|it| it != own));
        if self.checkpoint.as_ref().is_some_and(|it| it.is_folder) {
            files.remove(0);
        }
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
