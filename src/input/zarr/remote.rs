//! A hierarchy behind a network: keys are addresses.
//!
//! Servers of plain addresses list no folders. Which arrays there are is said by consolidated metadata, where a
//! group has them; they are taken for what they say, as zarr-python does, which also saves requests. A store is
//! asked otherwise.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::hierarchy::{self, Hierarchy, StoredValue, Values, below, fits};
use super::keys::{ATTRIBUTES, METADATA};
use crate::error::Error;
use crate::format::zarr::{self, ArrayStore};
use crate::input::{Input, Location, OpenOptions};
use crate::source::remote::{self, Address, RemoteError, Scheme};
use crate::source::{IoMode, MemorySource, OpenError, Opened, Source, SourceError, spool};

/// How many shards stay open.
const SHARDS: usize = 64;

/// A folder behind a network.
struct ZarrAddress {
    address: Address,
    /// What is known of metadata, by their keys: also that there are none.
    known: BTreeMap<String, Option<Vec<u8>>>,
    /// Whether no others are there.
    is_consolidated: bool,
    /// Values of which parts were read, the last ones first.
    shards: Mutex<VecDeque<(String, Arc<dyn Source>)>>,
    /// A file that is open, so that connections last from one value to the next.
    keeps: Arc<dyn Source>,
}

/// The arrays behind an address; `None` where there are no metadata of Zarr.
///
/// # Errors
/// Those of [`hierarchy::input`], and of networks.
pub(super) fn open(
    location: &Location,
    address: &Address,
    options: &OpenOptions,
) -> Result<Option<Input>, Error> {
    let failed = |error| Error::file(location, error);
    let mut known = BTreeMap::new();
    let mut keeps = None;
    for name in METADATA {
        let value = value(&address.below(name), remote::open_whole).map_err(failed)?;
        let json = value.as_ref().map(all).transpose().map_err(failed)?;
        known.insert(name.to_owned(), json);
        if value.is_some() {
            keeps = value;
            break;
        }
    }
    let Some(keeps) = keeps else { return Ok(None) };
    let mut folder = ZarrAddress {
        address: address.clone(),
        known,
        is_consolidated: false,
        shards: Mutex::default(),
        keeps,
    };
    folder.consolidate().map_err(failed)?;
    let bytes = Arc::new(MemorySource::default());
    hierarchy::input(location, &folder, bytes, options).map(Some)
}

impl ZarrAddress {
    /// Take the metadata that a group has of all arrays and groups in it.
    fn consolidate(&mut self) -> Result<(), SourceError> {
        let [v3, _, group] = METADATA;
        let of_root = |name| self.known.get(name).and_then(Option::as_deref);
        let all = match (of_root(v3), of_root(group)) {
            (Some(root), _) => zarr::consolidated(root),
            (None, Some(_)) => {
                self.whole(".zmetadata")?.and_then(|all| zarr::consolidated_v2(&all))
            }
            (None, None) => None,
        };
        let Some(all) = all else { return Ok(()) };
        for (key, metadata) in all {
            // what the root says of itself was read
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
        let opened =
            value(&self.address.below(key), |address| remote::open(address, IoMode::Read))?;
        if let Some(opened) = &opened {
            let mut shards = self.shards();
            shards.push_front((key.to_owned(), Arc::clone(opened)));
            shards.truncate(SHARDS);
        }
        Ok(opened.map(boxed))
    }

    fn whole(&self, key: &str) -> Result<Option<Vec<u8>>, SourceError> {
        value(&self.address.below(key), remote::open_whole)?.map(|value| all(&value)).transpose()
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
            keeps: Arc::clone(&self.keeps),
        }))
    }
}

/// A value; `None` where there is none. What comes as a stream is kept in a temporary file.
fn value(
    address: &Address,
    open: impl Fn(&Address) -> Result<Opened, OpenError>,
) -> Result<Option<Arc<dyn Source>>, SourceError> {
    match open(address) {
        Ok(Opened::Random(source)) => Ok(Some(source.into())),
        Ok(Opened::Forward(stream)) => Ok(Some(spool(stream)?.into())),
        Err(OpenError::Remote(RemoteError::NotFound)) => Ok(None),
        Err(error) => Err(failed(error)),
    }
}

fn failed(error: OpenError) -> SourceError {
    io::Error::other(error).into()
}

/// All bytes of a value.
fn all(value: &Arc<dyn Source>) -> Result<Vec<u8>, SourceError> {
    value.read(0..fits(value.len())?)
}
