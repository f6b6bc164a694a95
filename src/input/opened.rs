//! An opened input: the contents of its header, and the bytes of its tensors.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::bytes::Bytes;
use super::checkpoint::ShardIndex;
use super::members::{DeflatedMember, StoredMember};
use super::options::{Location, Notes, OpenOptions, UseOfIndex};
use crate::error::{Cause, ErrorKind, Fault, FileName, faults};
use crate::input::Contents;
use crate::source::Source;
use crate::tensor::{TensorInfo, shortened};

/// An input whose header has been read.
///
/// All positions of tensors count in one space, whatever the container: shards follow each other,
/// and the deflated members of an archive follow the archive.
pub struct Input {
    pub(crate) location: Location,
    pub(crate) contents: Contents,
    pub(crate) bytes: Bytes,
    pub(crate) container: Container,
    /// Names or globs of tensors that are excluded from those that are chosen.
    pub(crate) exclude: Vec<String>,
    /// Whether an excluded name may be missing, as another input has it.
    pub(crate) may_lack_excluded: bool,
    /// Whether tensors that are not chosen are kept as well.
    pub(crate) keeps_rest: bool,
    /// Whether it is an error to leave out what cannot be read.
    pub(crate) is_strict: bool,
    pub(crate) notes: Notes,
}

/// The container of the tensors: an archive, the files of a model, or neither.
#[derive(Default)]
pub(crate) struct Container {
    pub(crate) checkpoint: Option<Box<Checkpoint>>,
    /// The files, if there are several.
    pub(crate) shards: Vec<ShardFile>,
    /// The files that cannot be opened.
    pub(crate) absent: Vec<Absent>,
    /// The deflated members of an archive: the tensors of shard n are in the member n - 1.
    pub(crate) deflated: Vec<DeflatedMember>,
    /// The stored members that have elements, in the order of their bytes.
    pub(crate) stored: Vec<StoredMember>,
    pub(crate) unreadable: Vec<Unreadable>,
    /// The unknown classes and functions of a pickle.
    pub(crate) opaque: Vec<String>,
}

/// An entry with a name that is not a readable tensor, such as a member of an archive with Python
/// objects. Other entries can still be read.
#[derive(Clone, Debug)]
pub struct Unreadable {
    /// The name that the tensor would have.
    pub name: String,
    pub(crate) error: Arc<Cause>,
}

impl Unreadable {
    pub(crate) fn new(name: String, error: impl Into<Cause>) -> Unreadable {
        Unreadable { name, error: Arc::new(error.into()) }
    }

    pub(crate) fn all<E: Into<Cause>>(
        found: impl IntoIterator<Item = (String, E)>,
    ) -> Vec<Unreadable> {
        found.into_iter().map(|(name, error)| Unreadable::new(name, error)).collect()
    }

    /// Why it cannot be read, for a message that has named the format.
    pub fn reason(&self) -> String {
        self.error.words()
    }
}

/// The header of a member of a `.npz` breaks the rules of its format.
#[derive(Debug, thiserror::Error)]
#[error("{}{error}", of_member(name))]
pub struct BadMember {
    pub name: String,
    /// The error in the header.
    pub error: Arc<Cause>,
}

impl Fault for BadMember {
    fn kind(&self) -> ErrorKind {
        self.error.kind
    }
}

/// The beginning of a message about a member; an only member has no name.
fn of_member(name: &str) -> String {
    if name.is_empty() { String::new() } else { format!("member {:?}: ", shortened(name)) }
}

pub struct ShardFile {
    /// The name, relative to the folder of the input.
    pub name: String,
    /// The position of its first byte; 0 for a file that was not opened.
    pub start: u64,
}

/// A sharded checkpoint: its index, and the `__metadata__` of each of its files.
pub struct Checkpoint {
    pub name: String,
    pub index: ShardIndex,
    /// The metadata of each file; empty for files that were not opened.
    pub metadata: Vec<BTreeMap<String, String>>,
    /// The number of tensors, with those in files that were not opened.
    pub listed: usize,
    /// Whether the files were found in a folder without an index.
    pub(crate) is_folder: bool,
    /// The numbers of the index's tensors that are in no file.
    pub(crate) missing: Vec<u32>,
}

/// A file that is missing or cannot be opened.
pub struct Absent {
    /// The number among the files, ascending.
    pub(crate) number: usize,
    /// The name, relative to the folder of the input.
    pub file: String,
    pub reason: String,
}

/// A tensor or file that is missing in an input of several files.
pub struct Missing<'a> {
    /// The tensor; `None` for a file whose tensors are not known.
    pub tensor: Option<&'a str>,
    pub file: &'a str,
    /// Why the file cannot be opened; `None` if it was opened and does not hold the tensor.
    pub reason: Option<&'a str>,
}

/// A tensor that was chosen and is missing.
#[derive(Debug, thiserror::Error)]
#[error("{}{}: {reason}", of_missing(tensor.as_deref()), shortened(file))]
pub struct MissingTensor {
    pub(super) tensor: Option<String>,
    pub(super) file: String,
    pub(super) reason: String,
}

faults!(FileMissing: MissingTensor);

/// The beginning of a message about a missing tensor or file.
fn of_missing(tensor: Option<&str>) -> String {
    match tensor {
        Some(tensor) => format!("tensor {:?} is missing: ", shortened(tensor)),
        None => "a file is missing: ".to_owned(),
    }
}

impl Absent {
    fn missing(&self) -> Missing<'_> {
        Missing { tensor: None, file: &self.file, reason: Some(&self.reason) }
    }
}

impl<'a> Missing<'a> {
    /// The name by which it can be chosen.
    pub(crate) fn name(&self) -> &'a str {
        self.tensor.unwrap_or(self.file)
    }
}

impl Input {
    pub(crate) fn of_file(
        location: &Location,
        bytes: impl Into<Bytes>,
        contents: Contents,
    ) -> Input {
        Input {
            location: location.clone(),
            contents,
            bytes: bytes.into(),
            container: Container::default(),
            exclude: Vec::new(),
            may_lack_excluded: false,
            keeps_rest: false,
            is_strict: false,
            notes: Notes::default(),
        }
    }

    /// An input whose header was read by other means, for a format that is not recognised:
    /// `contents` says where its tensors are in the bytes of `source`.
    pub fn of_source(location: &Location, source: Arc<dyn Source>, contents: Contents) -> Input {
        Input::of_file(location, Bytes::Random(source), contents)
    }

    /// Exclude from the chosen tensors what these options exclude.
    pub(crate) fn leave_out(&mut self, options: &OpenOptions) {
        self.keeps_rest = options.rest;
        self.is_strict = options.index == UseOfIndex::Strict;
        self.exclude.clone_from(&options.exclude);
    }

    pub fn location(&self) -> &Location {
        &self.location
    }

    pub fn contents(&self) -> &Contents {
        &self.contents
    }

    /// The index of a sharded checkpoint, if it is one.
    pub fn checkpoint(&self) -> Option<&Checkpoint> {
        self.container.checkpoint.as_deref()
    }

    /// The files, if there are several: shards, or the files of a split model.
    pub fn shards(&self) -> &[ShardFile] {
        &self.container.shards
    }

    /// The file that holds a tensor, if there are several, and the tensor's offset in it, in bytes;
    /// no offset for a tensor that is compressed, in chunks or text.
    pub fn whereabouts(&self, tensor: &TensorInfo) -> (Option<&str>, Option<u64>) {
        let file = self.container.shards.get(tensor.shard()).map(|file| file.name.as_str());
        let is_there = !tensor.is_decoded();
        let position = is_there.then(|| self.offset_in_file(tensor.shard(), tensor.data().start));
        let position = position.flatten();
        (file, position)
    }

    /// The offset in its file of a position in a shard of the input, in bytes; `None` if it is
    /// compressed or text.
    pub(crate) fn offset_in_file(&self, shard: usize, position: u64) -> Option<u64> {
        match self.container.shards.get(shard) {
            Some(file) => position.checked_sub(file.start),
            None => {
                let is_text = self.contents.format.is_text();
                (shard == 0 && !is_text).then_some(position)
            }
        }
    }

    /// The file that holds the bytes of a tensor, if there are files next to the input.
    pub(crate) fn file_name(&self, tensor: &TensorInfo) -> FileName {
        let file = self.container.shards.get(tensor.shard());
        let shard = file.and_then(|file| Some(FileName::from(&self.beside(&file.name)?)));
        shard.unwrap_or_else(|| (&self.location).into())
    }

    /// The names of a pickle's unknown classes and functions: tensors in the arguments and the
    /// state of their objects are found.
    pub fn opaque(&self) -> &[String] {
        &self.container.opaque
    }

    /// Missing tensors, and missing files whose tensors are not known.
    pub fn missing(&self) -> impl Iterator<Item = Missing<'_>> {
        let named = (0..self.missing_count()).filter_map(|at| self.missing_named(at));
        let mut listed = HashSet::new();
        if let Some(it) = &self.container.checkpoint {
            listed.extend(it.missing.iter().map(|&number| it.index.tensor(number as usize).1));
        }
        let files = if self.container.checkpoint.is_some() {
            self.container.absent.as_slice()
        } else {
            &[]
        };
        let files = files.iter().filter(move |it| !listed.contains(&it.number));
        named.chain(files.map(Absent::missing))
    }

    /// The number of missing tensors, and of missing files whose tensors are not known.
    pub fn missing_count(&self) -> usize {
        self.container
            .checkpoint
            .as_ref()
            .map_or(self.container.absent.len(), |it| it.missing.len())
    }

    /// The missing tensor or file with this number.
    pub fn missing_named(&self, at: usize) -> Option<Missing<'_>> {
        let Some(checkpoint) = &self.container.checkpoint else {
            return self.container.absent.get(at).map(Absent::missing);
        };
        let (tensor, file) = checkpoint.index.tensor(*checkpoint.missing.get(at)? as usize);
        let absent = self.container.absent.binary_search_by_key(&file, |it| it.number).ok();
        let reason = absent.and_then(|at| Some(self.container.absent.get(at)?.reason.as_str()));
        Some(Missing { tensor: Some(tensor), file: &checkpoint.index.files[file], reason })
    }

    /// A file in the folder of the input.
    pub(crate) fn beside(&self, name: &str) -> Option<Location> {
        match &self.location {
            Location::Path(folder)
                if self.container.checkpoint.as_ref().is_some_and(|it| it.is_folder) =>
            {
                Some(Location::Path(folder.join(name)))
            }
            other => other.with_file_name(name),
        }
    }

    /// The entries that have a name and cannot be read.
    pub fn unreadable(&self) -> &[Unreadable] {
        &self.container.unreadable
    }

    /// The files whose headers were read; `None` for standard input, memory, and remote folders.
    pub(crate) fn files(&self) -> Option<Vec<Location>> {
        let own = match &self.location {
            Location::Stdin | Location::Memory => return None,
            Location::Path(path) if self.contents.format.is_folder && path.is_dir() => {
                return Some(all_files(path).ok()?.into_iter().map(Location::Path).collect());
            }
            // it has too many chunks to ask for the version of each
            Location::Remote(address)
                if self.contents.format.is_folder && address.may_be_zarr() =>
            {
                return None;
            }
            own => own,
        };
        let mut files = vec![own.clone()];
        let mut numbers: Vec<usize> =
            self.contents.tensors.iter().map(|tensor| tensor.shard()).collect();
        numbers.dedup();
        let shards = numbers.into_iter().filter_map(|number| self.container.shards.get(number));
        let shards = shards.filter_map(|file| self.beside(&file.name));
        files.extend(shards.filter(|it| it != own));
        if self.container.checkpoint.as_ref().is_some_and(|it| it.is_folder) {
            files.remove(0);
        }
        Some(files)
    }
}

/// All files of a folder and of the folders in it, in the order of their names.
fn all_files(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in folder.read_dir()? {
            let entry = entry?;
            let found = if entry.file_type()?.is_dir() { &mut folders } else { &mut files };
            found.push(entry.path());
        }
    }
    files.sort_unstable();
    Ok(files)
}
