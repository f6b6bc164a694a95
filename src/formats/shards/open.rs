//! A checkpoint of several files as one input: its index, and the needed files of the index; or the files in
//! the folder, where there is no index.
//!
//! An index may be wrong. A tensor is read from the shard that has it, also if the index names another shard, or does not
//! name the tensor. If several shards have a tensor, it is read from the shard that the index names. A tensor that no
//! shard has is an error if it is asked for.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{INDEX, is_index, shards_in};
use crate::error::{Cause, Error, Fault};
use crate::execute::Progress;
use crate::formats::recognise::read_header;
use crate::formats::shards::{self, MAX_INDEX, ShardsError};
use crate::formats::{Foreign, NotRead, first_bytes, npz, safetensors, torch};
use crate::input::{
    Absent, Bytes, Checkpoint, Container, Contents, Format, Input, Location, OpenOptions,
    RecognisedFile, SelectFault, ShardFile, ShardIndex, Unreadable, UseOfIndex, find, folder_of,
};
use crate::source::remote::{self, RemoteError};
use crate::source::{Advice, ConcatSource, FileOpener, IoMode, OpenError, Opened, Reader, Source};
use crate::tensor::{Tensors, first_repeated, shortened};

const NAMED: usize = 10;

/// A checkpoint of several `.safetensors` files, by its index.
pub(crate) static FORMAT: Format =
    Format { is_named: is_index, ..Format::new("sharded safetensors", shards::begins, open) };

/// A checkpoint of several files of torch.save, by its index.
pub(crate) static OF_TORCH: Format = Format::new("sharded pytorch", |_| false, open);

/// Open the shards of an index that hold the needed tensors.
fn open(file: RecognisedFile<'_>) -> Result<Input, Error> {
    let RecognisedFile { location, mut bytes, options, .. } = file;
    if options.index == UseOfIndex::Ignored {
        let folder = folder_of(location.path().ok_or(ShardsFault::NoFolder)?);
        let files = shards_in(folder)?;
        let location = Location::Path(folder.to_owned());
        return open_folder(&location, folder, files, options)
            .map_err(|error| error.in_file(&location));
    }
    let mut index = read_index(&mut bytes)?;
    if matches!(location, Location::Stdin | Location::Memory) {
        return Err(ShardsFault::NoFolder.into());
    }
    if let (UseOfIndex::Widened, Some(path)) = (options.index, location.path()) {
        let mut others = shards_in(folder_of(path))?;
        others.retain(|file| index.files.binary_search(file).is_err());
        index.files.extend(others);
    }
    let wanted = Wanted::of(location, &index, options)?;
    let mut opened = OpenShards::open(location, None, &index, &wanted.files, options)?;
    let all = index.files.len();
    if wanted.numbers.iter().any(|&number| !opened.found[number]) && wanted.files.len() < all {
        // the tensor may be in another shard
        opened = OpenShards::open(location, None, &index, &(0..all).collect(), options)?;
    }
    if options.index == UseOfIndex::Strict {
        opened.refuse_disagreement(&index)?;
    }
    if let Some(&number) = wanted.numbers.iter().find(|&&number| !opened.found[number]) {
        let file = index.tensor(number).1;
        let fault = opened.faults.remove(&file);
        return Err(fault.unwrap_or_else(|| missing(&index, number).into()));
    }
    if opened.files.len() == all {
        opened.note(location, &index, options);
    }
    let name = location.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(opened.into_input(location, index, name, false))
}

/// Open the tensors of the shards in a folder; any index is ignored.
pub(crate) fn open_folder(
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

struct Wanted {
    /// The numbers of the index's tensors that the patterns match; none where all are needed.
    numbers: Vec<usize>,
    /// The numbers of the files to open.
    files: BTreeSet<usize>,
}

impl Wanted {
    fn of(location: &Location, index: &ShardIndex, options: &OpenOptions) -> Result<Wanted, Error> {
        let OpenOptions { tensors: patterns, exclude, rest, .. } = options;
        let all = || (0..index.files.len()).collect();
        let names = index.tensors().map(|(name, _)| name);
        let mut numbers = match find(names.clone(), patterns) {
            _ if patterns.is_empty() => Vec::new(),
            // the index may lack the tensor
            Err(SelectFault::NotFound { .. }) => {
                return Ok(Wanted { numbers: Vec::new(), files: all() });
            }
            found => found?,
        };
        // the selection of tensors reports names that no tensor has
        let of = |pattern| find(names.clone(), std::slice::from_ref(pattern));
        let excluded: BTreeSet<usize> = exclude.iter().flat_map(of).flatten().collect();
        numbers.retain(|number| !excluded.contains(number));
        // any shard may hold tensors for a glob that the index lacks
        let is_glob = |pattern: &String| index.number_of(pattern).is_none();
        let is_local = location.path().is_some();
        // excluded tensors must exist, in whatever shard
        let needs_all = *rest
            || !exclude.is_empty()
            || options.index == UseOfIndex::Strict
            || patterns.is_empty();
        let files = if needs_all || is_local && patterns.iter().any(is_glob) {
            all()
        } else {
            numbers.iter().map(|&number| index.tensor(number).1).collect()
        };
        Ok(Wanted { numbers, files })
    }
}

struct OpenShards {
    files: BTreeSet<usize>,
    joined: ConcatSource,
    tensors: Tensors,
    unreadable: Vec<Unreadable>,
    opaque: BTreeSet<String>,
    metadata: Vec<BTreeMap<String, String>>,
    shards: Vec<ShardFile>,
    format: &'static Format,
    /// For each tensor of the index, whether it was found.
    found: Vec<bool>,
    faults: BTreeMap<usize, Error>,
    left_out: SomeNames,
    elsewhere: SomeNames,
    /// The first disagreement: a tensor that the index lacks, or that is in another shard, or in several.
    disagreement: Option<ShardsError>,
}

/// The number of names, and the first few of them.
#[derive(Default)]
struct SomeNames {
    count: usize,
    first: Vec<String>,
}

impl SomeNames {
    fn add(&mut self, name: &str) {
        self.count += 1;
        if self.first.len() < NAMED {
            self.first.push(name.to_owned());
        }
    }
}

/// A tensor in another shard than the index says.
struct MisplacedTensor {
    tensor: usize,
    listed: usize,
}

impl OpenShards {
    fn new(index: &ShardIndex, files: &BTreeSet<usize>) -> OpenShards {
        let shard = |name: &String| ShardFile { name: name.clone(), start: 0 };
        OpenShards {
            files: files.clone(),
            joined: ConcatSource::default(),
            tensors: Tensors::default(),
            unreadable: Vec::new(),
            opaque: BTreeSet::new(),
            metadata: vec![BTreeMap::new(); index.files.len()],
            shards: index.files.iter().map(shard).collect(),
            format: &FORMAT,
            found: vec![false; index.tensors().len()],
            faults: BTreeMap::new(),
            left_out: SomeNames::default(),
            elsewhere: SomeNames::default(),
            disagreement: None,
        }
    }

    /// Open the given files of an index, in a folder, or beside the index.
    fn open(
        location: &Location,
        folder: Option<&Path>,
        index: &ShardIndex,
        files: &BTreeSet<usize>,
        options: &OpenOptions,
    ) -> Result<OpenShards, Error> {
        let mut opened = OpenShards::new(index, files);
        let mut elsewhere = Vec::new();
        let mut left_out = Vec::new();
        let names = files.iter().map(|&number| &index.files[number]);
        let sources = open_sources(location, folder, names, files.len(), options.io)?;
        for (&number, source) in files.iter().zip(sources) {
            let shard =
                source.and_then(|(location, source)| open_shard(&location, source, options));
            let shard = match shard {
                Ok(shard) => shard,
                Err(error) => {
                    opened.faults.insert(number, error);
                    continue;
                }
            };
            let first = opened.tensors.len();
            opened.push(number, shard, index)?;
            for tensor in first..opened.tensors.len() {
                match index.number_of(opened.name(tensor)) {
                    Some(listed) if index.tensor(listed).1 == number => opened.found[listed] = true,
                    Some(listed) => elsewhere.push(MisplacedTensor { tensor, listed }),
                    None => left_out.push(tensor),
                }
            }
        }
        let mut dropped = opened.settle_elsewhere(index, &elsewhere)?;
        if options.index == UseOfIndex::Only {
            dropped.append(&mut left_out);
            dropped.sort_unstable();
        }
        opened.settle_left_out(&left_out)?;
        if !dropped.is_empty() {
            let rest = opened.tensors.iter().enumerate();
            let rest = rest.filter(|(at, _)| dropped.binary_search(at).is_err());
            opened.tensors = rest.map(|(_, tensor)| tensor).collect();
        }
        Ok(opened)
    }

    fn name(&self, tensor: usize) -> &str {
        self.tensors.name(tensor).unwrap_or_default()
    }

    /// The name of the shard that a tensor was found in.
    fn file(&self, tensor: usize) -> String {
        self.shards[self.tensors.at(tensor).shard()].name.clone()
    }

    fn push(&mut self, number: usize, shard: Input, index: &ShardIndex) -> Result<(), Error> {
        let Input { contents, bytes, container, .. } = shard;
        let Bytes::Random(source) = bytes else { return Err(ShardsFault::NoShard.into()) };
        let base = self.joined.push(index.files[number].clone(), source)?;
        self.tensors.extend(contents.tensors.iter().map(|tensor| tensor.placed(number, base)));
        self.metadata[number] = contents.metadata.texts;
        self.shards[number].start = base;
        for member in container.unreadable {
            if let Some(listed) = index.number_of(&member.name) {
                self.found[listed] = true;
            }
            self.unreadable.push(member);
        }
        self.opaque.extend(container.opaque);
        if contents.format == &torch::FORMAT {
            self.format = &OF_TORCH;
        }
        Ok(())
    }

    /// Choose among tensors of one name; returns the tensors to drop.
    fn settle_elsewhere(
        &mut self,
        index: &ShardIndex,
        elsewhere: &[MisplacedTensor],
    ) -> Result<Vec<usize>, ShardsError> {
        let mut dropped = Vec::new();
        let mut taken: BTreeMap<usize, usize> = BTreeMap::new();
        for &MisplacedTensor { tensor: at, listed } in elsewhere {
            let (name, of_index) = index.tensor(listed);
            let tensor = name.to_owned();
            if let Some(&first) = taken.get(&listed) {
                let first = self.file(first);
                let second = self.file(at);
                return Err(ShardsError::Several { tensor, first, second });
            }
            let file = index.files[of_index].clone();
            if self.found[listed] || !self.files.contains(&of_index) {
                let several = ShardsError::Several { tensor, first: file, second: self.file(at) };
                self.disagreement.get_or_insert(several);
                dropped.push(at);
                continue;
            }
            self.disagreement.get_or_insert(ShardsError::Missing { file, tensor });
            self.elsewhere.add(name);
            taken.insert(listed, at);
        }
        taken.keys().for_each(|&listed| self.found[listed] = true);
        Ok(dropped)
    }

    /// Accept the tensors that the index lacks; two of them must not share a name.
    fn settle_left_out(&mut self, left_out: &[usize]) -> Result<(), ShardsError> {
        let names = left_out.iter().map(|&at| self.name(at));
        if let Some(twice) = first_repeated(names.clone()) {
            let mut both = left_out.iter().zip(names).filter(|(_, name)| *name == twice);
            let mut next = || both.next().map(|(at, _)| self.file(*at)).unwrap_or_default();
            let first = next();
            let second = next();
            let tensor = twice.to_owned();
            return Err(ShardsError::Several { tensor, first, second });
        }
        if let Some(&at) = left_out.first() {
            let unlisted =
                ShardsError::Unlisted { file: self.file(at), tensor: self.name(at).to_owned() };
            self.disagreement.get_or_insert(unlisted);
        }
        for &at in left_out {
            self.left_out.add(self.tensors.name(at).unwrap_or_default());
        }
        Ok(())
    }

    /// Refuse an index that disagrees with its shards in any way.
    fn refuse_disagreement(&mut self, index: &ShardIndex) -> Result<(), Error> {
        if let Some((_, error)) = self.faults.pop_first() {
            return Err(error);
        }
        if let Some(first) = self.disagreement.take() {
            return Err(first.into());
        }
        match self.found.iter().position(|found| !found) {
            Some(number) => Err(missing(index, number).into()),
            None => Ok(()),
        }
    }

    /// Note the tensors that the index lacks, and the tensors in other shards.
    fn note(&self, location: &Location, index: &ShardIndex, options: &OpenOptions) {
        let said = |names: &SomeNames, what: &str| {
            let more = names.count - names.first.len();
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let named: Vec<_> = names.first.iter().map(|name| shortened(name)).collect();
            if names.count > 0 {
                let named = named.join(", ");
                options.notes.add(format_args!("{location}: {what}: {named}{more}"));
            }
        };
        if index.tensors().len() > 0 {
            said(&self.left_out, "tensors of its shards that the index leaves out");
            said(&self.elsewhere, "tensors in other shards than the index says");
        }
    }

    fn into_input(
        self,
        location: &Location,
        index: ShardIndex,
        name: String,
        is_folder: bool,
    ) -> Input {
        let all = self.metadata.iter().flatten().map(|(key, value)| (key.clone(), value.clone()));
        let metadata = all.collect::<BTreeMap<String, String>>().into();
        let contents = Contents { metadata, ..Contents::of(self.format, self.tensors) };
        let is_missing = |&number: &u32| {
            let file = index.tensor(number as usize).1;
            !self.found[number as usize] && self.files.contains(&file)
        };
        let missing = (0..self.found.len() as u32).filter(is_missing).collect();
        let listed = index.tensors().len() + self.left_out.count;
        let metadata = self.metadata;
        let checkpoint = Checkpoint { name, index, metadata, listed, is_folder, missing };
        let absent = self.faults.into_iter().map(|(number, error)| {
            let file = self.shards[number].name.clone();
            Absent { number, file, reason: error.cause.to_string() }
        });
        let container = Container {
            checkpoint: Some(Box::new(checkpoint)),
            absent: absent.collect(),
            shards: self.shards,
            unreadable: self.unreadable,
            opaque: self.opaque.into_iter().collect(),
            ..Container::default()
        };
        Input { container, ..Input::of_source(location, Arc::new(self.joined), contents) }
    }
}

/// The fault of an index that names the wrong shard for a tensor.
fn missing(index: &ShardIndex, number: usize) -> ShardsError {
    let (tensor, file) = index.tensor(number);
    ShardsError::Missing { file: index.files[file].clone(), tensor: tensor.to_owned() }
}

/// Read the header of a shard: never an index again, which could name itself.
fn open_shard(
    location: &Location,
    source: Box<dyn Source>,
    options: &OpenOptions,
) -> Result<Input, Error> {
    let open = || {
        let first = first_bytes(source.as_ref())?;
        let opener = [&npz::FORMAT, &torch::FORMAT].into_iter().find(|it| (it.begins)(&first));
        let shard = match opener {
            None => {
                let contents = read_header(location, source.as_ref())?;
                Input::of_file(location, Opened::Random(source), contents)
            }
            Some(format) => {
                let bytes = Opened::Random(source);
                let progress = &Progress::default();
                (format.open)(RecognisedFile { location, bytes, options, progress })?
            }
        };
        match [&torch::FORMAT, &safetensors::FORMAT].contains(&shard.contents.format) {
            true => Ok(shard),
            false => Err(ShardsFault::NoShard.into()),
        }
    };
    open().map_err(|error: Error| error.in_file(location))
}

type OpenSource = (Location, Box<dyn Source>);

/// Open the shards with these names, in a folder or beside an index: lazily, or all at once where they are
/// remote.
fn open_sources<'a>(
    location: &'a Location,
    folder: Option<&'a Path>,
    files: impl Iterator<Item = &'a String> + 'a,
    count: usize,
    io: IoMode,
) -> Result<Box<dyn Iterator<Item = Result<OpenSource, Error>> + 'a>, Error> {
    let opener = FileOpener::new(count, io);
    let open = move |path: PathBuf| {
        let source = opener.open(&path).map_err(|error| Error::file(path.as_path(), error))?;
        Ok((Location::Path(path), source))
    };
    match (location, folder) {
        (_, Some(folder)) => Ok(Box::new(files.map(move |file| open(folder.join(file))))),
        (Location::Stdin | Location::Memory, None) => Err(ShardsFault::NoFolder.into()),
        (Location::Path(index), None) => {
            let folders = folders(index)?;
            Ok(Box::new(files.map(move |file| open(locate(index, file, &folders)?))))
        }
        (Location::Remote(index), None) => {
            let addresses: Vec<_> = files.map(|file| index.with_file_name(file)).collect();
            let opened = remote::open_all(&addresses, io);
            let shard = |(address, opened)| {
                let location = Location::Remote(address);
                match opened {
                    Ok(Opened::Random(source)) => Ok((location, source)),
                    Ok(_) => Err(Error::file(&location, OpenError::from(RemoteError::NoRanges))),
                    Err(error) => Err(Error::file(&location, error)),
                }
            };
            Ok(Box::new(addresses.into_iter().zip(opened).map(shard)))
        }
    }
}

fn read_index(bytes: &mut Opened) -> Result<ShardIndex, Error> {
    // allocate the length at once: a growing buffer would take twice the memory
    let len = match bytes {
        Opened::Random(source) => source.len().min(MAX_INDEX),
        Opened::Forward(_) => 0,
    };
    let mut json = Vec::with_capacity(len as usize);
    let mut most = |reader: &mut dyn Read| reader.take(MAX_INDEX + 1).read_to_end(&mut json);
    match bytes {
        Opened::Random(source) => {
            if source.is_remote() {
                source.advise(0..len, Advice::Sequential);
            }
            most(&mut Reader::new(source.as_ref()))?
        }
        Opened::Forward(stream) => most(stream)?,
    };
    Ok(ShardIndex::parse(&json).map_err(|error| -> Cause {
        match error {
            ShardsError::NoIndex => NotRead(Foreign::JsonObject).into(),
            // the first object is complete, and more text follows
            ShardsError::Json(fault) if fault.to_string().starts_with("trailing characters") => {
                NotRead(Foreign::JsonLines).into()
            }
            error => error.into(),
        }
    })?)
}

/// The folders of the index: the folder of its path, and the folder that its link leads to.
fn folders(path: &Path) -> std::io::Result<[PathBuf; 2]> {
    let parent = folder_of(path);
    let real = fs::canonicalize(path)?;
    Ok([fs::canonicalize(parent)?, real.parent().unwrap_or(parent).to_owned()])
}

/// The path of a shard; an error for a link out of the folder.
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
    #[error(
        "is a directory that holds no checkpoint: no model.safetensors, no index \
         (*.safetensors.index.json, pytorch_model.bin.index.json), no shards"
    )]
    NoIndex,
    #[error("the folder holds several indexes: {}", .0.join(", "))]
    SeveralIndexes(Vec<String>),
    #[error("the index of a sharded checkpoint must be opened by its name")]
    NoFolder,
    #[error("a shard must be a .safetensors or a file of torch.save")]
    NoShard,
    #[error("the shard is outside the folder of its index")]
    Outside,
}

impl Fault for ShardsFault {}
