//! A checkpoint of several files as one input: its index, and those of its files that are needed; or the
//! files that are there, where it has no index.
//!
//! An index may be wrong. What is there is read: a tensor that stands in several shards is that of the index;
//! one that stands elsewhere, or that the index leaves out, is read where it is. What is nowhere is
//! missing, which is an error for who asks for it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::open::{InputFormat, OpenOptions, RecognisedFile, UseOfIndex};
use crate::error::{Error, Fault};
use crate::execute::Progress;
use crate::format::shards::{MAX_INDEX, ShardIndex, ShardsError};
use crate::format::{
    Contents, Foreign, Format, FormatError, Tensors, first_repeated, shards, shortened,
};
use crate::input::folder::folder_of;
use crate::input::{
    Absent, Bytes, Checkpoint, Input, Location, PartFile, Unreadable, failed_source, pattern,
    single, torch, zip,
};
use crate::source;
use crate::source::remote::RemoteError;
use crate::source::{Advice, ConcatSource, FilePool, IoMode, OpenError, Reader, Source};

/// Of more shards each is opened when it is read, and few stay open.
const POOLED: usize = 192;

/// The name of an index of a checkpoint that has none.
const INDEX: &str = "model.safetensors.index.json";

/// How many tensors a note names.
const NAMED: usize = 10;

/// A checkpoint of several files, by its index.
pub(super) const FORMAT: InputFormat =
    InputFormat { format: Format::Sharded, begins: shards::begins, open };

/// Open the shards that an index names: those that hold tensors that are needed.
fn open(file: RecognisedFile<'_>) -> Result<Input, Error> {
    let RecognisedFile { location, mut bytes, options, .. } = file;
    let mut index = read_index(location, &mut bytes)?;
    if options.index == UseOfIndex::Ignored {
        let path = location.path().ok_or_else(|| Error::file(location, ShardsFault::NoFolder))?;
        let folder = folder_of(path);
        let files = super::folder::shards_in(folder)?;
        return open_folder(&Location::Path(folder.to_owned()), folder, files, options);
    }
    if matches!(location, Location::Stdin | Location::Memory) {
        return Err(Error::file(location, ShardsFault::NoFolder));
    }
    if let (UseOfIndex::Widened, Some(path)) = (options.index, location.path()) {
        let others = super::folder::shards_in(folder_of(path))?;
        let others = others.into_iter().filter(|file| index.files.binary_search(file).is_err());
        let others: Vec<String> = others.collect();
        index.files.extend(others);
    }
    let wanted = Wanted::of(location, &index, options)?;
    let mut opened = OpenShards::open(location, None, &index, &wanted.files, options)?;
    let all = index.files.len();
    if wanted.numbers.iter().any(|&number| !opened.found[number]) && wanted.files.len() < all {
        // it may stand in another shard
        opened = OpenShards::open(location, None, &index, &(0..all).collect(), options)?;
    }
    if options.index == UseOfIndex::Strict {
        opened.refuse_disagreement(location, &index)?;
    }
    if let Some(&number) = wanted.numbers.iter().find(|&&number| !opened.found[number]) {
        let (tensor, file) = index.tensor(number);
        return Err(match opened.faults.remove(&file) {
            Some(error) => error,
            None => unfit(location, missing(&index, tensor, file)),
        });
    }
    if opened.files.len() == all {
        opened.note(location, &index, options);
    }
    let name = location.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(opened.into_input(location, index, name, false))
}

/// The tensors of shards in a folder, whatever an index says.
pub(super) fn open_folder(
    location: &Location,
    folder: &Path,
    files: Vec<String>,
    options: &OpenOptions,
) -> Result<Input, Error> {
    let index = ShardIndex::of_files(files);
    let all = (0..index.files.len()).collect();
    let mut opened = OpenShards::open(location, Some(folder), &index, &all, options)?;
    match opened.faults.pop_first() {
        Some((_, error)) => Err(error),
        None => Ok(opened.into_input(location, index, INDEX.to_owned(), true)),
    }
}

/// What is asked for.
struct Wanted {
    /// The numbers of tensors of the index that patterns mean; none where all are needed.
    numbers: Vec<usize>,
    /// The numbers of the files that are opened.
    files: BTreeSet<usize>,
}

impl Wanted {
    fn of(location: &Location, index: &ShardIndex, options: &OpenOptions) -> Result<Wanted, Error> {
        let OpenOptions { tensors: patterns, exclude, rest, .. } = options;
        let all = || (0..index.files.len()).collect();
        let names = index.tensors().map(|(name, _)| name);
        let mut numbers = match pattern::find(names.clone(), patterns) {
            _ if patterns.is_empty() => Vec::new(),
            // the index may leave it out
            Err(pattern::SelectFault::NotFound { .. }) => {
                return Ok(Wanted { numbers: Vec::new(), files: all() });
            }
            found => found.map_err(|fault| Error::file(location, fault))?,
        };
        // what nobody has is told by who chooses tensors
        let of = |pattern| pattern::find(names.clone(), std::slice::from_ref(pattern));
        let excluded: BTreeSet<usize> = exclude.iter().flat_map(of).flatten().collect();
        numbers.retain(|number| !excluded.contains(number));
        // of a glob there may be more than the index says, in any shard
        let is_glob = |pattern: &String| index.number_of(pattern).is_none();
        let is_local = location.path().is_some();
        // what is left out must be there, in whatever shard
        let needs_all = *rest
            || !exclude.is_empty()
            || options.index == UseOfIndex::Strict
            || patterns.is_empty();
        let files = match needs_all || is_local && patterns.iter().any(is_glob) {
            true => all(),
            false => numbers.iter().map(|&number| index.tensor(number).1).collect(),
        };
        Ok(Wanted { numbers, files })
    }
}

/// Shards that are open, and what is in them.
struct OpenShards {
    /// The numbers of the files that were to be opened.
    files: BTreeSet<usize>,
    joined: ConcatSource,
    tensors: Tensors,
    unreadable: Vec<Unreadable>,
    opaque: BTreeSet<String>,
    metadata: Vec<BTreeMap<String, String>>,
    parts: Vec<PartFile>,
    format: Format,
    /// Whether each tensor of the index was found.
    found: Vec<bool>,
    /// The shards that cannot be opened.
    faults: BTreeMap<usize, Error>,
    /// The first tensor that the index leaves out, those that stand elsewhere, and so on.
    said: Disagreement,
}

/// How an index does not agree with its shards.
#[derive(Default)]
struct Disagreement {
    /// How many tensors the index leaves out, and the first few.
    left_out: (usize, Vec<String>),
    /// How many stand in another shard than the index says.
    moved: (usize, Vec<String>),
    /// The first of either, or of those that stand in several shards.
    first: Option<ShardsError>,
}

fn count_named(counted: &mut (usize, Vec<String>), name: &str) {
    counted.0 += 1;
    if counted.1.len() < NAMED {
        counted.1.push(name.to_owned());
    }
}

impl OpenShards {
    /// Open these files of an index; in a folder, or beside the index.
    fn open(
        location: &Location,
        folder: Option<&Path>,
        index: &ShardIndex,
        files: &BTreeSet<usize>,
        options: &OpenOptions,
    ) -> Result<OpenShards, Error> {
        let part = |name: &String| PartFile { name: name.clone(), start: 0 };
        let mut opened = OpenShards {
            files: files.clone(),
            joined: ConcatSource::default(),
            tensors: Tensors::default(),
            unreadable: Vec::new(),
            opaque: BTreeSet::new(),
            metadata: vec![BTreeMap::new(); index.files.len()],
            parts: index.files.iter().map(part).collect(),
            format: Format::Sharded,
            found: vec![false; index.tensors().len()],
            faults: BTreeMap::new(),
            said: Disagreement::default(),
        };
        // numbers of tensors that the index places in another shard, and of those that it leaves out
        let (mut elsewhere, mut left_out) = (Vec::new(), Vec::new());
        let names = files.iter().map(|&number| &index.files[number]);
        let sources = open_sources(location, folder, names, files.len(), options.io)?;
        for (&number, source) in files.iter().zip(sources) {
            let shard =
                source.and_then(|(location, source)| read_shard(&location, source, options));
            let shard = match shard {
                Ok(shard) => shard,
                Err(error) => {
                    opened.faults.insert(number, error);
                    continue;
                }
            };
            let first = opened.tensors.len();
            opened.push(location, number, &index.files[number], shard, index)?;
            for at in first..opened.tensors.len() {
                let name = opened.tensors.name(at).unwrap_or_default();
                match index.number_of(name) {
                    Some(listed) if index.tensor(listed).1 == number => opened.found[listed] = true,
                    Some(listed) => elsewhere.push((at, listed)),
                    None => left_out.push(at),
                }
            }
        }
        opened.settle(location, index, &elsewhere, &left_out)?;
        Ok(opened)
    }

    /// Add what a shard holds.
    fn push(
        &mut self,
        location: &Location,
        number: usize,
        file: &str,
        shard: Input,
        index: &ShardIndex,
    ) -> Result<(), Error> {
        let Input { contents, bytes, unreadable, opaque, .. } = shard;
        let Bytes::Random(source) = bytes else {
            return Err(Error::file(location, ShardsFault::NoShard));
        };
        let pushed = self.joined.push(file.to_owned(), source);
        let base = pushed.map_err(|error| failed_source(location, error))?;
        self.tensors.extend(contents.tensors.iter().map(|tensor| tensor.placed(number, base)));
        (self.metadata[number], self.parts[number].start) = (contents.metadata, base);
        for member in unreadable {
            if let Some(listed) = index.number_of(&member.name) {
                self.found[listed] = true;
            }
            self.unreadable.push(member);
        }
        self.opaque.extend(opaque);
        if contents.format == Format::Torch {
            self.format = Format::ShardedTorch;
        }
        Ok(())
    }

    /// Find out which of several tensors of one name are meant, and leave out the others.
    fn settle(
        &mut self,
        location: &Location,
        index: &ShardIndex,
        elsewhere: &[(usize, usize)],
        left_out: &[usize],
    ) -> Result<(), Error> {
        let mut dropped = Vec::new();
        let file = |this: &Self, at: usize| index.files[this.tensors.at(at).part()].clone();
        let mut taken: BTreeMap<usize, usize> = BTreeMap::new();
        for &(at, listed) in elsewhere {
            let (name, of_index) = index.tensor(listed);
            if let Some(&first) = taken.get(&listed) {
                let (first, second) = (file(self, first), file(self, at));
                let tensor = name.to_owned();
                return Err(unfit(location, ShardsError::Several { tensor, first, second }));
            }
            if self.found[listed] || !self.files.contains(&of_index) {
                let (first, second) = (index.files[of_index].clone(), file(self, at));
                let tensor = name.to_owned();
                self.said.first.get_or_insert(ShardsError::Several { tensor, first, second });
                dropped.push(at);
                continue;
            }
            let (file, tensor) = (index.files[of_index].clone(), name.to_owned());
            self.said.first.get_or_insert(ShardsError::Missing { file, tensor });
            count_named(&mut self.said.moved, name);
            taken.insert(listed, at);
        }
        taken.keys().for_each(|&listed| self.found[listed] = true);
        let names = left_out.iter().map(|&at| self.tensors.name(at).unwrap_or_default());
        if let Some(twice) = first_repeated(names.clone()) {
            let mut both = left_out.iter().zip(names).filter(|(_, name)| *name == twice);
            let mut next = || both.next().map(|(at, _)| file(self, *at)).unwrap_or_default();
            let (first, second, tensor) = (next(), next(), twice.to_owned());
            return Err(unfit(location, ShardsError::Several { tensor, first, second }));
        }
        if let Some(&at) = left_out.first() {
            let (file, tensor) =
                (file(self, at), self.tensors.name(at).unwrap_or_default().to_owned());
            self.said.first.get_or_insert(ShardsError::Unlisted { file, tensor });
        }
        for &at in left_out {
            count_named(&mut self.said.left_out, self.tensors.name(at).unwrap_or_default());
        }
        if !dropped.is_empty() {
            let kept = self.tensors.iter().enumerate();
            let kept = kept.filter(|(at, _)| dropped.binary_search(at).is_err());
            self.tensors = kept.map(|(_, tensor)| tensor).collect();
        }
        Ok(())
    }

    /// Refuse an index that does not agree with its shards in any way.
    fn refuse_disagreement(
        &mut self,
        location: &Location,
        index: &ShardIndex,
    ) -> Result<(), Error> {
        if let Some((_, error)) = self.faults.pop_first() {
            return Err(error);
        }
        if let Some(first) = self.said.first.take() {
            return Err(unfit(location, first));
        }
        match self.found.iter().position(|found| !found) {
            Some(number) => {
                let (tensor, file) = index.tensor(number);
                Err(unfit(location, missing(index, tensor, file)))
            }
            None => Ok(()),
        }
    }

    /// Say what the index leaves out, and what stands elsewhere.
    fn note(&self, location: &Location, index: &ShardIndex, options: &OpenOptions) {
        let said = |(count, names): &(usize, Vec<String>), what: &str| {
            if *count > 0 {
                let named: Vec<_> = names.iter().map(|name| shortened(name)).collect();
                let more = count - named.len();
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                let named = named.join(", ");
                options.notes.add(format_args!("{location}: {what}: {named}{more}"));
            }
        };
        if index.tensors().len() > 0 {
            said(&self.said.left_out, "tensors of its shards that the index leaves out");
            said(&self.said.moved, "tensors in another shard than the index says");
        }
    }

    /// The input of these shards.
    fn into_input(
        self,
        location: &Location,
        index: ShardIndex,
        name: String,
        is_folder: bool,
    ) -> Input {
        let OpenShards { files, joined, tensors, metadata, parts, format, found, faults, .. } =
            self;
        let all = metadata.iter().flatten().map(|(key, value)| (key.clone(), value.clone()));
        let contents = Contents { metadata: all.collect(), ..Contents::of(format, tensors) };
        let of_opened = |&number: &u32| files.contains(&index.tensor(number as usize).1);
        let missing = (0u32..).zip(&found).filter(|(_, found)| !**found).map(|(number, _)| number);
        let missing = missing.filter(of_opened).collect();
        let listed = index.tensors().len() + self.said.left_out.0;
        let checkpoint = Checkpoint { name, index, metadata, listed, is_folder, missing };
        let absent = faults.into_iter().map(|(number, error)| {
            let file = parts[number].name.clone();
            Absent { number, file, reason: error.cause.to_string() }
        });
        Input {
            checkpoint: Some(Box::new(checkpoint)),
            absent: absent.collect(),
            parts,
            unreadable: self.unreadable,
            opaque: self.opaque.into_iter().collect(),
            ..Input::of_file(location, Bytes::Random(Arc::new(joined)), contents)
        }
    }
}

/// The fault of an index that places a tensor in a shard where it is not.
pub(super) fn missing(index: &ShardIndex, tensor: &str, file: usize) -> ShardsError {
    ShardsError::Missing { file: index.files[file].clone(), tensor: tensor.to_owned() }
}

/// Read the header of a shard: never an index again, which could name itself.
fn read_shard(
    location: &Location,
    source: Box<dyn Source>,
    options: &OpenOptions,
) -> Result<Input, Error> {
    let first = single::first_bytes(location, source.as_ref())?;
    let opener = match () {
        () if (zip::FORMAT.begins)(&first) => zip::FORMAT.open,
        () if (torch::OLD_FORMAT.begins)(&first) => torch::OLD_FORMAT.open,
        () => {
            let contents = single::read_header(location, source.as_ref())?;
            if contents.format != Format::Safetensors {
                return Err(Error::file(location, ShardsFault::NoShard));
            }
            return Ok(Input::of_file(location, source::Opened::Random(source), contents));
        }
    };
    let (bytes, progress) = (source::Opened::Random(source), &Progress::default());
    let shard = opener(RecognisedFile { location, bytes, options, progress })?;
    match shard.contents.format {
        Format::Torch => Ok(shard),
        _ => Err(Error::file(location, ShardsFault::NoShard)),
    }
}

/// A shard, and where it is.
type OpenSource = (Location, Box<dyn Source>);

/// Open so many shards that have these names, in a folder or beside an index: each when it is asked for, or
/// all at once where they are remote.
fn open_sources<'a>(
    location: &'a Location,
    folder: Option<&'a Path>,
    files: impl Iterator<Item = &'a String> + 'a,
    count: usize,
    io: IoMode,
) -> Result<Box<dyn Iterator<Item = Result<OpenSource, Error>> + 'a>, Error> {
    let pool = (count > POOLED).then(FilePool::default);
    let open = move |path: &Path| match &pool {
        Some(pool) => pool.open(path),
        None => source::open_file(path, io),
    };
    match (location, folder) {
        (_, Some(folder)) => Ok(Box::new(files.map(move |file| {
            let path = folder.join(file);
            let source = open(&path).map_err(|error| Error::file(path.as_path(), error))?;
            Ok((Location::Path(path), source))
        }))),
        (Location::Stdin | Location::Memory, None) => {
            Err(Error::file(location, ShardsFault::NoFolder))
        }
        (Location::Path(index), None) => {
            let folders = folders(index).map_err(|error| Error::file(location, error))?;
            Ok(Box::new(files.map(move |file| {
                let path = locate(index, file, &folders)?;
                let source = open(&path).map_err(|error| Error::file(path.as_path(), error))?;
                Ok((Location::Path(path), source))
            })))
        }
        (Location::Remote(index), None) => {
            let addresses: Vec<_> = files.map(|file| index.with_file_name(file)).collect();
            let opened = source::remote::open_all(&addresses, io);
            let shard = |(address, opened)| {
                let location = Location::Remote(address);
                match opened {
                    Ok(source::Opened::Random(source)) => Ok((location, source)),
                    Ok(_) => Err(Error::file(&location, OpenError::from(RemoteError::NoRanges))),
                    Err(error) => Err(Error::file(&location, error)),
                }
            };
            Ok(Box::new(addresses.into_iter().zip(opened).map(shard)))
        }
    }
}

fn read_index(location: &Location, bytes: &mut source::Opened) -> Result<ShardIndex, Error> {
    if let source::Opened::Random(source) = bytes
        && source.request_gap().is_some()
    {
        source.advise(0..source.len().min(MAX_INDEX), Advice::Sequential);
    }
    // as long as it is, since growing would hold it twice
    let mut json = match bytes {
        source::Opened::Random(source) => Vec::with_capacity(source.len().min(MAX_INDEX) as usize),
        source::Opened::Forward(_) => Vec::new(),
    };
    let mut most = |reader: &mut dyn Read| reader.take(MAX_INDEX + 1).read_to_end(&mut json);
    match bytes {
        source::Opened::Random(source) => most(&mut Reader::new(source.as_ref())),
        source::Opened::Forward(stream) => most(stream),
    }
    .map_err(|error| Error::file(location, error))?;
    ShardIndex::parse(&json).map_err(|error| match error {
        ShardsError::NoIndex => Error::file(location, FormatError::Foreign(Foreign::JsonObject)),
        error => unfit(location, error),
    })
}

fn unfit(location: &Location, error: ShardsError) -> Error {
    Error::file(location, FormatError::from(error))
}

/// The folder of the index: the one that it was found in, and the one that it really lies in.
fn folders(path: &Path) -> std::io::Result<[PathBuf; 2]> {
    let parent = folder_of(path);
    let real = fs::canonicalize(path)?;
    Ok([fs::canonicalize(parent)?, real.parent().unwrap_or(parent).to_owned()])
}

/// The path of a shard, unless it is a link out of the folder.
fn locate(index: &Path, file: &str, folders: &[PathBuf]) -> Result<PathBuf, Error> {
    let path = index.with_file_name(file);
    let real = fs::canonicalize(&path).map_err(|error| Error::file(path.as_path(), error))?;
    if folders.iter().any(|folder| real.parent() == Some(folder)) {
        return Ok(path);
    }
    Err(Error::file(path.as_path(), ShardsFault::Outside))
}

/// Why the files of a sharded checkpoint cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum ShardsFault {
    /// A folder is no checkpoint.
    #[error(
        "is a directory that holds no checkpoint: no model.safetensors, no index \
         (*.safetensors.index.json, pytorch_model.bin.index.json), no shards"
    )]
    NoIndex,
    /// A folder holds several indexes, and none of the usual name.
    #[error("the folder holds several indexes: {}", .0.join(", "))]
    SeveralIndexes(Vec<String>),
    /// The index comes through a pipe, which lies in no folder.
    #[error("the index of a sharded checkpoint has to be opened by its name")]
    NoFolder,
    /// A shard is in another format.
    #[error("a shard has to be a .safetensors file, or one of torch.save")]
    NoShard,
    /// A shard is a link to somewhere else.
    #[error("the shard lies outside of the folder of its index")]
    Outside,
}

impl Fault for ShardsFault {}
