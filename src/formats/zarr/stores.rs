//! The stores of a hierarchy's values: a folder, a zip archive, a remote address.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::io::{self, ErrorKind, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::array::{self, ArrayStore};
use super::hierarchy::{self, Hierarchy, StoredValue, Values, below, fits};
use super::{ATTRIBUTES, METADATA};
use crate::crc::PiecesCrc;
use crate::error::Error;
use crate::formats::archive::Archive;
use crate::formats::npz::{Member, MemberFault, Members, NpzError};
use crate::input::{Input, Location, OpenOptions};
use crate::source::remote::{self, Address, Ahead, RemoteError, Scheme};
use crate::source::{
    self, Advice, DeflatedRange, IoMode, MemorySource, OpenError, Opened, Source, SourceError,
    spool,
};

struct ZarrFolder {
    path: PathBuf,
    /// Files that are read in ranges, which are opened once.
    ranged: Mutex<HashMap<String, Arc<dyn Source>>>,
}

/// The number of files that are held open for ranges of their bytes.
const MOST_OPEN: usize = 32;

impl ZarrFolder {
    fn new(path: PathBuf) -> ZarrFolder {
        ZarrFolder { path, ranged: Mutex::default() }
    }

    fn open(&self, key: &str) -> Result<Option<Arc<dyn Source>>, SourceError> {
        match source::open_file(&self.path.join(key), IoMode::Read) {
            Ok(file) => Ok(Some(file.into())),
            Err(OpenError::Io(error))
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                Ok(None)
            }
            Err(error) => Err(SourceError::File {
                name: key.to_owned(),
                error: Box::new(io::Error::other(error).into()),
            }),
        }
    }
}

pub(crate) fn open_path(
    location: &Location,
    path: &Path,
    options: &OpenOptions,
) -> Result<Input, Error> {
    let folder = ZarrFolder::new(path.to_owned());
    hierarchy::input(location, &folder, Arc::new(MemorySource::default()), options)
}

impl Hierarchy for ZarrFolder {
    fn value<'a>(&'a self, key: &str) -> Result<Option<Box<dyn StoredValue + 'a>>, SourceError> {
        Ok(self.open(key)?.map(|file| -> Box<dyn StoredValue> { Box::new(file) }))
    }

    fn ranged<'a>(&'a self, key: &str) -> Result<Option<Box<dyn StoredValue + 'a>>, SourceError> {
        let ranged = || self.ranged.lock().unwrap_or_else(PoisonError::into_inner);
        let known = ranged().get(key).map(Arc::clone);
        let file = match known {
            Some(file) => file,
            None => {
                let Some(file) = self.open(key)? else { return Ok(None) };
                let mut ranged = ranged();
                if ranged.len() >= MOST_OPEN {
                    ranged.clear();
                }
                Arc::clone(ranged.entry(key.to_owned()).or_insert(file))
            }
        };
        Ok(Some(Box::new(file)))
    }

    fn expect(&self, key: &str, _: u64) {
        // a fault of the file is reported when it is read
        if let Ok(file) = source::open_file(&self.path.join(key), IoMode::Read) {
            file.advise(0..file.len(), Advice::WillNeed);
        }
    }

    fn children(&self, group: &str) -> Result<Vec<String>, SourceError> {
        let mut names = Vec::new();
        let folder = self.path.join(group);
        for entry in folder.read_dir()? {
            let entry = entry?;
            // a name that is not text names no node
            if let Ok(name) = entry.file_name().into_string()
                && entry.path().is_dir()
                && !(entry.file_type()?.is_symlink() && leads_up(&folder, &entry.path()))
            {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn array(&self, path: &str) -> ArrayStore {
        Arc::new(Values(ZarrFolder::new(self.path.join(path))))
    }
}

/// Whether a link leads to its own folder, or to a folder above.
fn leads_up(folder: &Path, link: &Path) -> bool {
    match (folder.canonicalize(), link.canonicalize()) {
        (Ok(folder), Ok(target)) => folder.starts_with(target),
        _ => false,
    }
}

struct ZipValues {
    bytes: Arc<dyn Source>,
    members: HashMap<String, ZipValue>,
    /// Members that cannot be read.
    refused: BTreeMap<String, NpzError>,
}

enum ZipValue {
    Stored { range: Range<u64>, crc: u32 },
    Deflated(DeflatedRange),
}

/// The members whose names begin with a path.
struct Below {
    values: Arc<ZipValues>,
    path: String,
}

pub(crate) fn open_archive(
    location: &Location,
    archive: Archive,
    members: Members,
    options: &OpenOptions,
) -> Result<Input, Error> {
    let value = |member: &Member<'_>| match archive.range(member) {
        range if member.deflated => ZipValue::Deflated(range),
        range => ZipValue::Stored { range: range.range, crc: range.crc },
    };
    let mut read = HashMap::new();
    let mut refused = BTreeMap::new();
    for member in members.iter() {
        let name = member.name.to_owned();
        match member.refusal() {
            Some(error) => drop(refused.insert(name, error)),
            None => drop(read.insert(name, value(&member))),
        }
    }
    let values = ZipValues { bytes: Arc::clone(&archive.bytes), members: read, refused };
    let values = Below { values: Arc::new(values), path: String::new() };
    hierarchy::input(location, &values, archive.bytes, options)
}

struct ValueInZip<'a> {
    bytes: &'a dyn Source,
    value: &'a ZipValue,
}

impl StoredValue for ValueInZip<'_> {
    fn len(&self) -> u64 {
        match self.value {
            ZipValue::Stored { range, .. } => range.end - range.start,
            ZipValue::Deflated(range) => range.len,
        }
    }

    /// Read a range. A deflated member is inflated up to the end of the range. The CRC-32 is compared where the
    /// whole member is read, as by zarr-python.
    fn read(&self, range: Range<u64>) -> Result<Vec<u8>, SourceError> {
        let len = range.end - range.start;
        match self.value {
            ZipValue::Stored { range: stored, crc } => {
                let mut bytes = vec![0; len as usize];
                let is_whole = len == stored.end - stored.start;
                let wanted = stored.start + range.start..stored.start + range.start + len;
                self.bytes.read(wanted, &mut Vec::new(), &mut bytes)?;
                let found = PiecesCrc::default();
                if is_whole {
                    found.add(&bytes, 0);
                }
                if is_whole && found.get() != *crc {
                    Err(invalid(MemberFault::Crc))
                } else {
                    Ok(bytes)
                }
            }
            ZipValue::Deflated(deflated) => {
                let mut stream = deflated.stream();
                let mut bytes = Vec::new();
                io::copy(&mut stream.by_ref().take(range.start), &mut io::sink())?;
                stream.by_ref().take(len).read_to_end(&mut bytes)?;
                if range.end == deflated.len {
                    stream.finish()?;
                }
                Ok(bytes)
            }
        }
    }
}

/// The error for bytes that exist but are invalid.
fn invalid(error: impl std::error::Error + Send + Sync + 'static) -> SourceError {
    io::Error::new(ErrorKind::InvalidData, error).into()
}

impl Hierarchy for Below {
    fn value<'a>(&'a self, key: &str) -> Result<Option<Box<dyn StoredValue + 'a>>, SourceError> {
        let values = self.values.as_ref();
        let key = below(&self.path, key);
        let member = |value| ValueInZip { bytes: values.bytes.as_ref(), value };
        if let Some(error) = values.refused.get(&key) {
            return Err(invalid(error.clone()));
        }
        let found = values.members.get(&key).map(member);
        Ok(found.map(|member| Box::new(member) as Box<dyn StoredValue + 'a>))
    }

    fn refused(&self, path: &str) -> Option<String> {
        let path = below(path, "");
        let first = self.values.refused.range(path.clone()..).next();
        first.filter(|(name, _)| name.starts_with(&path)).map(|(_, error)| error.to_string())
    }

    fn children(&self, group: &str) -> Result<Vec<String>, SourceError> {
        let path = below(group, "");
        let names = self.values.members.keys().chain(self.values.refused.keys());
        let names = names.filter_map(|name| name.strip_prefix(&path));
        let names: BTreeSet<&str> =
            names.filter_map(|rest| rest.split_once('/').map(|(name, _)| name)).collect();
        Ok(names.into_iter().map(str::to_owned).collect())
    }

    fn array(&self, path: &str) -> ArrayStore {
        Arc::new(Values(Below { values: Arc::clone(&self.values), path: path.to_owned() }))
    }
}

// A hierarchy behind a network, whose keys are addresses.
//
// Servers of plain addresses list no folders. The arrays are found by consolidated metadata, where a group has
// them; their content is trusted, as by zarr-python, which also saves requests. Otherwise the store is asked.

const SHARDS: usize = 64;

struct ZarrAddress {
    address: Address,
    /// The known metadata by their keys; `None` where it is known that there are none.
    known: BTreeMap<String, Option<Vec<u8>>>,
    /// Whether `known` is complete.
    is_consolidated: bool,
    /// Values of which parts were read, the most recent first.
    shards: Mutex<VecDeque<(String, Arc<dyn Source>)>>,
    /// Values that are requested ahead.
    ahead: Arc<Ahead>,
}

/// Open the arrays behind an address; `None` where there are no metadata of Zarr.
pub(crate) fn open_remote(
    location: &Location,
    address: &Address,
    options: &OpenOptions,
) -> Result<Option<Input>, Error> {
    let failed = |error| Error::file(location, error);
    let ahead = Arc::new(Ahead::new().map_err(|error| failed(error.into()))?);
    let mut known = BTreeMap::new();
    for name in METADATA {
        let value = remote_value(ahead.open_whole(&address.below(name))).map_err(failed)?;
        let json = value.as_ref().map(all).transpose().map_err(failed)?;
        known.insert(name.to_owned(), json);
        if value.is_some() {
            break;
        }
    }
    if known.values().all(Option::is_none) {
        return Ok(None);
    }
    let mut folder = ZarrAddress {
        address: address.clone(),
        known,
        is_consolidated: false,
        shards: Mutex::default(),
        ahead: Arc::clone(&ahead),
    };
    folder.consolidate().map_err(failed)?;
    hierarchy::input(location, &folder, ahead, options).map(Some)
}

impl ZarrAddress {
    /// Take the consolidated metadata of a group, for all arrays and groups in it.
    fn consolidate(&mut self) -> Result<(), SourceError> {
        let [v3, _, group] = METADATA;
        let of_root = |name| self.known.get(name).and_then(Option::as_deref);
        let all = match (of_root(v3), of_root(group)) {
            (Some(root), _) => array::consolidated(root),
            (None, Some(_)) => {
                self.whole(".zmetadata")?.and_then(|all| array::consolidated_v2(&all))
            }
            (None, None) => None,
        };
        let Some(all) = all else { return Ok(()) };
        for (key, metadata) in all {
            // the metadata of the root were read before
            self.known.entry(key).or_insert(Some(metadata));
        }
        self.is_consolidated = true;
        Ok(())
    }

    fn shards(&self) -> MutexGuard<'_, VecDeque<(String, Arc<dyn Source>)>> {
        self.shards.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Hierarchy for ZarrAddress {
    fn is_local(&self) -> bool {
        false
    }

    fn value<'a>(&'a self, key: &str) -> Result<Option<Box<dyn StoredValue + 'a>>, SourceError> {
        let boxed = |value: Arc<dyn Source>| Box::new(value) as Box<dyn StoredValue + 'a>;
        if let Some(known) = self.known.get(key) {
            let known = known.clone().map(|bytes| Arc::new(MemorySource(bytes)) as Arc<dyn Source>);
            return Ok(known.map(boxed));
        }
        let name = key.rsplit('/').next().unwrap_or(key);
        if self.is_consolidated && (METADATA.contains(&name) || name == ATTRIBUTES) {
            return Ok(None);
        }
        let open = self.shards().iter().find(|(of, _)| of == key).map(|(_, it)| Arc::clone(it));
        if let Some(open) = open {
            return Ok(Some(boxed(open)));
        }
        let opened = remote_value(remote::open(&self.address.below(key), IoMode::Read))?;
        if let Some(opened) = &opened {
            let mut shards = self.shards();
            shards.push_front((key.to_owned(), Arc::clone(opened)));
            shards.truncate(SHARDS);
        }
        Ok(opened.map(boxed))
    }

    fn whole(&self, key: &str) -> Result<Option<Vec<u8>>, SourceError> {
        let value = remote_value(self.ahead.open_whole(&self.address.below(key)))?;
        value.map(|value| all(&value)).transpose()
    }

    fn expect(&self, key: &str, bytes: u64) {
        self.ahead.expect(&self.address.below(key), bytes);
    }

    fn children(&self, group: &str) -> Result<Vec<String>, SourceError> {
        if self.is_consolidated {
            let path = below(group, "");
            let names = self.known.iter().filter(|(_, metadata)| metadata.is_some());
            let names = names.filter_map(|(key, _)| key.strip_prefix(&path)?.split_once('/'));
            let names: BTreeSet<&str> = names.map(|(name, _)| name).collect();
            return Ok(names.into_iter().map(str::to_owned).collect());
        }
        if self.address.scheme() == Scheme::Url {
            let reason = "a group whose metadata are not consolidated, on a server that lists nothing: \
                          zarr.consolidate_metadata writes them; the address of an array in it can be read";
            return Err(io::Error::other(reason).into());
        }
        let entries = remote::list(&self.address.below(&below(group, ""))).map_err(failed)?;
        let folders = entries.iter().filter_map(|entry| entry.name.strip_suffix('/'));
        Ok(folders.map(str::to_owned).collect())
    }

    fn array(&self, path: &str) -> ArrayStore {
        Arc::new(Values(ZarrAddress {
            address: self.address.below(path),
            known: BTreeMap::new(),
            is_consolidated: false,
            shards: Mutex::default(),
            ahead: Arc::clone(&self.ahead),
        }))
    }
}

/// A value; `None` where there is none. A stream is copied to a scratch file.
fn remote_value(opened: Result<Opened, OpenError>) -> Result<Option<Arc<dyn Source>>, SourceError> {
    match opened {
        Ok(Opened::Random(source)) => Ok(Some(source.into())),
        Ok(Opened::Forward(stream)) => Ok(Some(spool(stream)?.into())),
        Err(OpenError::Remote(RemoteError::NotFound)) => Ok(None),
        Err(error) => Err(failed(error)),
    }
}

fn failed(error: OpenError) -> SourceError {
    io::Error::other(error).into()
}

fn all(value: &Arc<dyn Source>) -> Result<Vec<u8>, SourceError> {
    value.read(0..fits(value.len())?)
}
