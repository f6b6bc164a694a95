//! The inputs of a job that has any number of them ([`Inputs`]), and tensors beside the main one of
//! a job ([`Operand`]): the indices of a gather, the value of an assignment.
//!
//! All headers are read once, several at a time, to check whether the inputs fit together. The job decides what it stores
//! of each header. If there are many inputs, only the first one and pipes stay open; the others are opened again when they
//! are copied.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::ops::{Deref, Range};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::{Cause, Error, FileName};
use crate::execute::{Progress, Workers};
use crate::formats::open;
use crate::input::{Bytes, Input, Location, OpenOptions, SelectFault, Transform};
use crate::job::copy::Writing;
use crate::job::edit::{EditFault, Original};
use crate::job::join::JoinFault;
use crate::job::overwrite;
use crate::job::parts::PartFault;
use crate::os::open_file_limit;
use crate::region::{GatheredList, IndexTensor, Take, decoded_bytes, decoded_info};
use crate::sink::Destination;
use crate::source::{IoMode, Source, SourceError};
use crate::tensor::{Scaling, ScalingFault, TensorInfo};

/// The most descriptors that all inputs together may take to stay open, where the limit is at least
/// twice that.
const HELD: usize = 96;

fn held() -> usize {
    usize::try_from(open_file_limit() / 2).map_or(HELD, |half| half.min(HELD))
}

/// Files smaller than this, in bytes, are read and not mapped: mapping takes longer than one read.
const SMALL: u64 = 1 << 20;

/// The number of inputs that are opened between two checks for the first that does not fit.
const CHUNK: usize = 4096;

pub(super) struct Inputs<'a> {
    pub(super) locations: Cow<'a, [Location]>,
    open: OpenOptions,
    /// The dtypes, shapes or fields that chosen tensors are read as.
    transform: Transform,
    keep: bool,
    /// The inputs that stay open: the first one, pipes and, where there are few, all others.
    pub(super) held: BTreeMap<usize, InputRef<'a>>,
    /// Whether the options for raw bytes apply to any input.
    speaks: AtomicBool,
    /// The files of inputs whose location is not a single file; `None` where parts cannot read them
    /// again.
    files: HashMap<usize, Option<Vec<Location>>>,
}

/// An input that was opened once: what was found in it, and the input, if it stays open.
pub(super) struct ScannedInput<T> {
    number: usize,
    found: T,
    files: Option<Vec<Location>>,
    open: Option<Box<Input>>,
}

/// An input of the caller, or one that was opened for this job alone.
pub(crate) enum InputRef<'a> {
    Borrowed(&'a Input),
    Owned(Box<Input>),
}

impl Deref for InputRef<'_> {
    type Target = Input;

    fn deref(&self) -> &Input {
        match self {
            InputRef::Borrowed(input) => input,
            InputRef::Owned(input) => input,
        }
    }
}

impl<'a> Inputs<'a> {
    pub(super) fn open(
        locations: &'a [Location],
        open: &OpenOptions,
        transform: Transform,
    ) -> Result<Inputs<'a>, Error> {
        if locations.is_empty() {
            return Err(JoinFault::Nothing.into());
        }
        if locations.iter().filter(|location| **location == Location::Stdin).count() > 1 {
            return Err(JoinFault::StdinTwice.into());
        }
        let open = open.clone();
        let locations = Cow::Borrowed(locations);
        let mut inputs =
            Inputs { locations, open, transform, keep: true, ..Inputs::held(Vec::new()) };
        let first = inputs.open_one(0, inputs.open.io)?;
        inputs.keep = inputs.locations.len().saturating_mul(descriptors(&first)) <= held();
        inputs.speaks = AtomicBool::new(inputs.open.raw.speaks_of(&first));
        inputs.held.insert(0, InputRef::Owned(Box::new(first)));
        Ok(inputs)
    }

    /// Inputs that are open, and stay open.
    pub(super) fn held(inputs: Vec<InputRef<'a>>) -> Inputs<'a> {
        let locations = inputs.iter().map(|input| input.location.clone()).collect();
        Inputs {
            locations: Cow::Owned(locations),
            open: OpenOptions::default(),
            transform: Transform::default(),
            keep: false,
            files: HashMap::new(),
            held: inputs.into_iter().enumerate().collect(),
            speaks: AtomicBool::new(false),
        }
    }

    pub(super) fn first(&self) -> &Input {
        &self.held[&0]
    }

    /// The numbers of all inputs after the first, in groups that are [opened](Inputs::look)
    /// together.
    pub(super) fn others(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let count = self.locations.len();
        (1..count).step_by(CHUNK).map(move |start| start..count.min(start + CHUNK))
    }

    pub(super) fn look<T: Send>(
        &self,
        numbers: Range<usize>,
        workers: &Workers,
        look: impl Fn(usize, &Input) -> Result<T, Error> + Sync,
    ) -> Result<Vec<ScannedInput<T>>, Error> {
        workers.each(numbers.len(), |at| {
            let number = numbers.start + at;
            let io = if self.keep { self.open.io } else { IoMode::Read };
            let input = self.open_one(number, io)?;
            if self.open.raw.speaks_of(&input) {
                self.speaks.store(true, Ordering::Relaxed);
            }
            let found = look(number, &input)?;
            let files = input.files();
            let open = (self.keep || is_stream(&input)).then(|| Box::new(input));
            Ok(ScannedInput { number, found, files, open })
        })
    }

    /// Keep the inputs that stay open, and return what was found in each.
    pub(super) fn keep<T>(&mut self, looked: Vec<ScannedInput<T>>) -> impl Iterator<Item = T> {
        looked.into_iter().map(|ScannedInput { number, found, files, open }| {
            if files.as_deref() != Some(std::slice::from_ref(&self.locations[number])) {
                self.files.insert(number, files);
            }
            self.held.extend(open.map(|input| (number, InputRef::Owned(input))));
            found
        })
    }

    /// Finish after all inputs were opened once: keep as many open as the descriptors allow.
    pub(super) fn all_seen(&mut self) -> Result<(), Error> {
        self.open.raw.check_any(self.speaks.load(Ordering::Relaxed))?;
        if self.keep && self.held.values().map(|input| descriptors(input)).sum::<usize>() > held() {
            self.held.retain(|&number, input| number == 0 || is_stream(input));
        }
        Ok(())
    }

    /// Open an input, and read its chosen tensors as `transform` says.
    fn open_one(&self, number: usize, io: IoMode) -> Result<Input, Error> {
        let location = &self.locations[number];
        let io = if self.open.io == IoMode::Auto { io } else { self.open.io };
        let mut input = open(location, &OpenOptions { io, ..self.open.clone() })?;
        input.may_lack_excluded = number > 0;
        if !self.transform.is_plain() {
            let has_name = number == 0 || !input.is_nameless();
            let patterns = if has_name { self.open.tensors.as_slice() } else { &[] };
            let numbers = input.find(patterns)?;
            input.transform(&self.transform, &numbers)?;
        }
        Ok(input)
    }

    /// The input with that number, opened again if it is not held.
    pub(super) fn lend(&self, number: usize) -> Result<InputRef<'_>, Error> {
        match self.held.get(&number) {
            Some(input) => Ok(InputRef::Borrowed(input)),
            None => {
                let location = &self.locations[number];
                let small = location.path().and_then(|path| path.metadata().ok());
                let small = small.is_some_and(|metadata| metadata.len() < SMALL);
                let io = if small { IoMode::Read } else { IoMode::Auto };
                Ok(InputRef::Owned(Box::new(self.open_one(number, io)?)))
            }
        }
    }

    /// Whether an input is a pipe that was not stored in scratch yet.
    pub(super) fn is_stream(&self, number: usize) -> bool {
        self.held.get(&number).is_some_and(|input| matches!(input.bytes, Bytes::Stream(_)))
    }

    pub(super) fn any_stream(&self) -> bool {
        self.held.keys().any(|&number| self.is_stream(number))
    }

    /// Copy takes of an input that is held. A pipe is read to the end that its header states.
    pub(super) fn copy(
        &mut self,
        number: usize,
        job: &Writing<'_>,
        takes: &[Take],
    ) -> Result<(), Error> {
        match self.held.get_mut(&number) {
            Some(InputRef::Owned(input)) => job.copy(input, takes),
            Some(InputRef::Borrowed(input)) => {
                job.copy_random(input, source_of(input)?.as_ref(), takes)
            }
            None => Ok(()),
        }
    }

    /// Unmap the pages of an input that was opened for this job, with these workers.
    pub(super) fn unmap(&self, workers: &Workers) {
        if let Some(InputRef::Owned(input)) = self.held.get(&0)
            && let Some(source) = input.random()
        {
            overwrite::unmap(source.as_ref(), workers);
        }
    }

    /// Make all held inputs readable in any order, and more than once.
    pub(super) fn spool_all(&mut self, progress: &Progress) -> Result<(), Error> {
        self.held.values_mut().try_for_each(|input| match input {
            InputRef::Owned(input) => input.spool_watched(progress).map(drop),
            InputRef::Borrowed(_) => Ok(()),
        })
    }

    pub(super) fn check_overwrite(&self, output: &Destination) -> Result<(), Error> {
        if overwrite::overwrites(output)? {
            for number in 0..self.locations.len() {
                overwrite::check(output, [&*self.lend(number)?], [])?;
            }
        }
        Ok(())
    }

    pub(super) fn any_remote(&self) -> bool {
        self.locations.iter().any(|location| matches!(location, Location::Remote(_)))
    }

    /// All files, in order, and the names by which other machines know them.
    pub(super) fn files(&self) -> Result<Vec<(String, Location)>, Error> {
        let mut files = Vec::with_capacity(self.locations.len());
        for (number, location) in self.locations.iter().enumerate() {
            let of_one = match self.held.get(&number) {
                Some(input) => input.files(),
                None => {
                    self.files.get(&number).cloned().unwrap_or_else(|| Some(vec![location.clone()]))
                }
            };
            files.extend(of_one.ok_or_else(|| Error::file(location, PartFault::NotAFile))?);
        }
        // if inputs in several folders have one name, the names are their paths below the common folder
        let paths: Vec<PathBuf> = files.iter().map(Location::as_path).collect();
        let common = common_folder(&paths);
        let name = |path: &Path| match path.strip_prefix(&common) {
            Ok(name) => name.to_string_lossy().into_owned(),
            Err(_) => last_name(path),
        };
        Ok(paths.iter().map(|path| name(path)).zip(files).collect())
    }
}

/// The source of an input that is not a stream any more.
pub(super) fn source_of(input: &Input) -> Result<Arc<dyn Source>, Error> {
    input.random().ok_or_else(|| Error::file(&input.location, SourceError::Truncated))
}

fn is_stream(input: &Input) -> bool {
    matches!(input.bytes, Bytes::Stream(_)) || input.location == Location::Stdin
}

/// The descriptors that an input takes: for a file, or several, and for each inflated member.
pub(super) fn descriptors(input: &Input) -> usize {
    1 + input.container.shards.len() + input.container.deflated.len()
}

/// The deepest folder that holds all of these files.
fn common_folder(files: &[PathBuf]) -> PathBuf {
    let mut folders = files.iter().filter_map(|file| file.parent());
    let mut common = folders.next().unwrap_or(Path::new("")).to_owned();
    for folder in folders {
        while !folder.starts_with(&common) {
            if !common.pop() {
                // absolute and relative paths have nothing in common
                return PathBuf::new();
            }
        }
    }
    common
}

/// A tensor that is read as a whole, in a file or in memory.
#[derive(Clone)]
pub struct Operand {
    tensor: TensorInfo,
    bytes: OperandBytes,
    file: Option<FileName>,
}

#[derive(Clone)]
enum OperandBytes {
    /// A tensor of a file, as it is stored there; other tensors of the file may be read, too.
    File {
        input: Arc<Mutex<Input>>,
        stored: TensorInfo,
    },
    There(Arc<dyn Source>),
}

impl From<IndexTensor> for Operand {
    fn from(IndexTensor { info, bytes, file }: IndexTensor) -> Operand {
        Operand { tensor: info, bytes: OperandBytes::There(bytes), file }
    }
}

impl Operand {
    /// The tensor of an input that these patterns (names or globs) choose; without patterns, the
    /// only one.
    pub fn of_input(input: Input, patterns: &[String]) -> Result<Operand, Error> {
        let stored = input.tensor(patterns)?;
        let file = input.location().into();
        Ok(Operand::of_file(Arc::new(Mutex::new(input)), stored, file))
    }

    /// For each of these names of tensors, the tensor of an input that has the name, or the only
    /// one, unless it has the name of one of several.
    pub fn for_each(input: Input, names: &[Option<String>]) -> Result<Vec<Operand>, Error> {
        let number = |name: &Option<String>| input.contents.tensors.number_of(name.as_deref()?);
        if let ([None], _) | (_, 1) = (names, input.named_count()) {
            let only = input.contents.tensors.get(0).and_then(|only| only.name);
            if let Some(name) = only.filter(|_| names.len() > 1)
                && names.iter().flatten().any(|other| *other == name)
                && let Some(other) = names.iter().flatten().find(|other| **other != name)
            {
                let other = other.clone();
                return Err(Error::file(&input.location, EditFault::OfOne { name, other }));
            }
            return Ok(vec![Operand::of_input(input, &[])?; names.len()]);
        }
        let mut numbers = Vec::with_capacity(names.len());
        for name in names {
            match (number(name), name) {
                (Some(number), _) => numbers.push(number),
                (None, Some(name)) if names.len() > 1 => {
                    let names = input.contents.tensors.names().flatten().map(str::to_owned);
                    let pattern = name.clone();
                    let names = names.collect();
                    return Err(input.failed(SelectFault::NotFound {
                        pattern,
                        names,
                        links: false,
                    }));
                }
                // one tensor is changed: a pattern must choose the tensor that is read
                _ => return Ok(vec![Operand::of_input(input, &[])?]),
            }
        }
        let tensors: Vec<TensorInfo> =
            numbers.into_iter().map(|number| input.contents.tensors.at(number)).collect();
        let file = FileName::from(input.location());
        let input = Arc::new(Mutex::new(input));
        let of = |tensor| Operand::of_file(Arc::clone(&input), tensor, file.clone());
        Ok(tensors.into_iter().map(of).collect())
    }

    fn of_file(input: Arc<Mutex<Input>>, stored: TensorInfo, file: FileName) -> Operand {
        let tensor = decoded_info(&stored);
        Operand { tensor, bytes: OperandBytes::File { input, stored }, file: Some(file) }
    }

    /// The tensor with its elements multiplied and added to.
    pub fn scaled(&self, scaling: &Scaling) -> Result<Operand, Error> {
        let OperandBytes::File { input, stored } = &self.bytes else {
            return Err(self.failed(ScalingFault(self.tensor.dtype.clone())));
        };
        let scaled = scaling.of(stored).map_err(|fault| self.failed(fault))?;
        Ok(Operand {
            tensor: decoded_info(&scaled),
            bytes: OperandBytes::File { input: Arc::clone(input), stored: scaled },
            file: self.file.clone(),
        })
    }

    pub fn tensor(&self) -> &TensorInfo {
        &self.tensor
    }

    /// The file that holds the tensor; `None` for one in memory.
    pub fn file(&self) -> Option<&FileName> {
        self.file.as_ref()
    }

    pub(super) fn failed(&self, cause: impl Into<Cause>) -> Error {
        Error::of_file(self.file.as_ref(), cause)
    }

    /// The index tensor made of the operand; a pipe is read to its end, and so is a remote file.
    pub fn into_indices(
        self,
        workers: &Workers,
        progress: &Progress,
    ) -> Result<IndexTensor, Error> {
        let bytes = match self.bytes {
            OperandBytes::File { input, stored } => {
                let mut input = input.lock().unwrap_or_else(PoisonError::into_inner);
                let source = input.nearby(&stored, workers, progress)?;
                decoded_bytes(&stored, source, &input.location().into(), workers, progress)?
            }
            OperandBytes::There(bytes) => bytes,
        };
        Ok(IndexTensor { info: self.tensor, bytes, file: self.file })
    }

    /// Check that the whole tensor is there, and does not change while the range `written` of a file is changed. A pipe
    /// is read to its end.
    pub(super) fn keep(
        &mut self,
        original: &Original,
        written: &Range<u64>,
        progress: &Progress,
    ) -> Result<GatheredList, Error> {
        let source = match &mut self.bytes {
            OperandBytes::File { input, stored } => {
                let mut input = input.lock().unwrap_or_else(PoisonError::into_inner);
                let source = input.spool_watched(progress)?;
                let workers = original.workers();
                original.keep(&input, stored, written)?;
                decoded_bytes(stored, source, &input.location().into(), workers, progress)?
            }
            OperandBytes::There(source) => Arc::clone(source),
        };
        Ok(GatheredList { source, file: self.file.clone() })
    }
}

/// The name of a file without its folder, whose path may differ on other machines.
pub(super) fn last_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_common_folder_holds_all_files() {
        let common = |files: &[&str]| {
            let files: Vec<PathBuf> = files.iter().map(PathBuf::from).collect();
            common_folder(&files).to_string_lossy().into_owned()
        };
        assert_eq!(common(&["/a/b/x.npy", "/a/b/y.npy"]), "/a/b");
        assert_eq!(common(&["/a/b/x.npy", "/a/c/x.npy", "/a/b/y.npy"]), "/a");
        assert_eq!(common(&["x.npy", "y.npy"]), "");
        assert_eq!(common(&["/a/x.npy", "b/x.npy"]), "");
    }
}
