//! An opened input: what its header says, and the bytes of its tensors.

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
    /// Names or globs of tensors that are left out of those that are chosen.
    pub(crate) exclude: Vec<String>,
    /// Whether it may lack them, as another input has them.
    pub(crate) may_lack_excluded: bool,
    /// Whether tensors that are not chosen are kept beside them.
    pub(crate) keeps_rest: bool,
    /// Whether it is an error to leave out what cannot be read.
    pub(crate) is_strict: bool,
    pub(crate) notes: Notes,
}

/// What an input is besides its tensors: an archive, files of a model, or neither.
#[derive(Default)]
pub(crate) struct Container {
    pub(crate) checkpoint: Option<Box<Checkpoint>>,
    /// Its files, where there are several.
    pub(crate) parts: Vec<PartFile>,
    /// Its files that cannot be opened.
    pub(crate) absent: Vec<Absent>,
    /// The deflated members of an archive: tensors of part n are in number n - 1.
    pub(crate) deflated: Vec<DeflatedMember>,
    /// Its stored members that have elements, in the order of their bytes.
    pub(crate) stored: Vec<StoredMember>,
    pub(crate) unreadable: Vec<Unreadable>,
    /// The classes and functions of a pickle that are not known.
    pub(crate) opaque: Vec<String>,
}

/// What has a name and is no tensor that can be read, such as a member of an archive with Python objects.
/// The others can still be read.
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

    pub(crate) fn all<E: Into<Cause>>(found: Vec<(String, E)>) -> Vec<Unreadable> {
        found.into_iter().map(|(name, error)| Unreadable::new(name, error)).collect()
    }

    /// Why it cannot be read, of a file whose format is said.
    pub fn reason(&self) -> String {
        self.error.words()
    }
}

/// The header of a member of a `.npz` breaks the rules of its format.
#[derive(Debug, thiserror::Error)]
#[error("{}{error}", of_member(name))]
pub struct BadMember {
    pub name: String,
    /// What is wrong with it.
    pub error: Arc<Cause>,
}

impl Fault for BadMember {
    fn kind(&self) -> ErrorKind {
        self.error.kind
    }
}

/// The beginning of a message about a member; that which is the only one has no name.
fn of_member(name: &str) -> String {
    if name.is_empty() { String::new() } else { format!("member {:?}: ", shortened(name)) }
}

pub struct PartFile {
    /// The name, in the folder of the input.
    pub name: String,
    /// The position of its first byte; 0 for one that was not opened.
    pub start: u64,
}

/// A sharded checkpoint: its index, and the `__metadata__` of each of its files.
pub struct Checkpoint {
    pub name: String,
    pub index: ShardIndex,
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
    pub reason: String,
}

/// What should be in an input of several files, and is not there.
pub struct Missing<'a> {
    /// The tensor; of a file of which no tensors are known, none.
    pub tensor: Option<&'a str>,
    pub file: &'a str,
    /// Why the file cannot be opened; it can be, and does not hold the tensor, without one.
    pub reason: Option<&'a str>,
}

/// A tensor that is asked for, and is not there.
#[derive(Debug, thiserror::Error)]
#[error("{}{}: {reason}", of_missing(tensor.as_deref()), shortened(file))]
pub struct MissingTensor {
    pub(super) tensor: Option<String>,
    pub(super) file: String,
    pub(super) reason: String,
}

faults!(FileMissing: MissingTensor);

/// The beginning of a message about what is missing: a tensor, or a file.
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
    /// By what it can be asked for.
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
    /// `contents` tells where in the bytes of `source` its tensors are.
    pub fn of_source(location: &Location, source: Arc<dyn Source>, contents: Contents) -> Input {
        Input::of_file(location, Bytes::Random(source), contents)
    }

    /// Leave out of what is chosen what these options say.
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

    /// The index of a sharded checkpoint, where it is one.
    pub fn checkpoint(&self) -> Option<&Checkpoint> {
        self.container.checkpoint.as_deref()
    }

    /// The files, where there are several: shards, or those of a split model.
    pub fn parts(&self) -> &[PartFile] {
        &self.container.parts
    }

    /// The file that holds a tensor, where there are several, and where in it the tensor begins,
    /// in bytes; no position for a tensor that is compressed, in chunks or text.
    pub fn whereabouts(&self, tensor: &TensorInfo) -> (Option<&str>, Option<u64>) {
        let file = self.container.parts.get(tensor.part()).map(|file| file.name.as_str());
        let is_there = !tensor.is_decoded();
        let position = is_there.then(|| self.place_in_file(tensor.part(), tensor.data().start));
        let position = position.flatten();
        (file, position)
    }

    /// A position of a part of the input in the file that holds it, in bytes; `None` where that is
    /// compressed or text.
    pub(crate) fn place_in_file(&self, part: usize, position: u64) -> Option<u64> {
        match self.container.parts.get(part) {
            Some(file) => position.checked_sub(file.start),
            None => {
                let is_text = self.contents.format.is_text();
                (part == 0 && !is_text).then_some(position)
            }
        }
    }

    /// The file that holds the bytes of a tensor, where there are several one beside the input.
    pub(crate) fn file_name(&self, tensor: &TensorInfo) -> FileName {
        let file = self.container.parts.get(tensor.part());
        let shard = file.and_then(|file| Some(FileName::from(&self.beside(&file.name)?)));
        shard.unwrap_or_else(|| (&self.location).into())
    }

    /// The names of the classes and functions of a pickle that are not known: tensors in the arguments and
    /// the state of what they make are found.
    pub fn opaque(&self) -> &[String] {
        &self.container.opaque
    }

    /// What should be there, and is not: tensors, and files of which no tensors are known.
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

    /// How many of these have a name by which they can be asked for: tensors, and where these are not known,
    /// files.
    pub fn missing_count(&self) -> usize {
        self.container
            .checkpoint
            .as_ref()
            .map_or(self.container.absent.len(), |it| it.missing.len())
    }

    /// One of those that have a name.
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

    /// What has a name, and cannot be read.
    pub fn unreadable(&self) -> &[Unreadable] {
        &self.container.unreadable
    }

    /// The files whose headers were read; `None` for standard input, memory, and folders behind a network.
    pub(crate) fn files(&self) -> Option<Vec<Location>> {
        let own = match &self.location {
            Location::Stdin | Location::Memory => return None,
            Location::Path(path) if self.contents.format.is_folder && path.is_dir() => {
                return Some(all_files(path).ok()?.into_iter().map(Location::Path).collect());
            }
            // its chunks are too many to ask for the version of each
            Location::Remote(address)
                if self.contents.format.is_folder && address.may_be_zarr() =>
            {
                return None;
            }
            own => own,
        };
        let mut files = vec![own.clone()];
        let mut parts: Vec<usize> =
            self.contents.tensors.iter().map(|tensor| tensor.part()).collect();
        parts.dedup();
        let parts = parts.into_iter().filter_map(|part| self.container.parts.get(part));
        let shards = parts.filter_map(|file| self.beside(&file.name));
        files.extend(shards.filter(|it| it != own));
        if self.container.checkpoint.as_ref().is_some_and(|it| it.is_folder) {
            files.remove(0);
        }
        Some(files)
    }
}

/// All files of a folder and those below it, in the order of their names.
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
