//! The arrays of a hierarchy, wherever its values are stored.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use zarrs::storage::byte_range::{ByteRange, ByteRangeIterator};
use zarrs::storage::{
    Bytes as StoreBytes, MaybeBytes, MaybeBytesIterator, ReadableStorageTraits, StorageError,
    StoreKey,
};

use super::array::{self, ArrayStore, ValueStore, ZarrError, ZarrNode};
use super::{ATTRIBUTES, FORMAT, METADATA};
use crate::error::Error;
use crate::input::{Container, Contents, Input, Location, MissingChunks, OpenOptions, Unreadable};
use crate::source::{Source, SourceError, memory_bytes, spare_bytes};
use crate::tensor::{Annotations, LazyAnnotations, TensorInfo, Tensors};

/// The longest metadata of an array or a group, in bytes: as for the header of a `.safetensors`.
const MAX_METADATA: u64 = 100_000_000;

const MAX_DEPTH: usize = 100;

/// The store of a hierarchy's values, by their keys.
pub(super) trait Hierarchy: Send + Sync {
    /// The value of a key; `None` where there is none.
    fn value<'a>(&'a self, key: &str) -> Result<Option<Box<dyn StoredValue + 'a>>, SourceError>;

    /// The value of a key, which is read in many ranges.
    fn ranged<'a>(&'a self, key: &str) -> Result<Option<Box<dyn StoredValue + 'a>>, SourceError> {
        self.value(key)
    }

    fn whole(&self, key: &str) -> Result<Option<Vec<u8>>, SourceError> {
        let value = self.value(key)?;
        value.map(|value| value.read(0..fits(value.len())?)).transpose()
    }

    /// Announce that a whole value will be read soon; it decodes to a chunk of `bytes` bytes.
    fn expect(&self, key: &str, bytes: u64) {
        let _ = (key, bytes);
    }

    /// Whether it takes little time to find out if a value exists.
    fn is_local(&self) -> bool {
        true
    }

    /// The names below a group, in order.
    fn children(&self, group: &str) -> Result<Vec<String>, SourceError>;

    /// Why an existing value below an array cannot be read, where this is known without reading it.
    fn refused(&self, path: &str) -> Option<String> {
        let _ = path;
        None
    }

    /// The store of the values below an array.
    fn array(&self, path: &str) -> ArrayStore;
}

pub(super) trait StoredValue: Send + Sync {
    fn len(&self) -> u64;

    fn read(&self, range: Range<u64>) -> Result<Vec<u8>, SourceError>;
}

impl StoredValue for Arc<dyn Source> {
    fn len(&self) -> u64 {
        self.as_ref().len()
    }

    fn read(&self, range: Range<u64>) -> Result<Vec<u8>, SourceError> {
        let mut value = spare_bytes((range.end - range.start) as usize);
        self.as_ref().read(range, &mut Vec::new(), &mut value)?;
        Ok(value)
    }
}

/// Check that memory has room for `bytes` bytes.
pub(super) fn fits(bytes: u64) -> Result<u64, SourceError> {
    let too_many = || io::Error::other(format!("its {bytes} bytes are more than the memory has"));
    Some(bytes).filter(|bytes| *bytes <= memory_bytes()).ok_or_else(|| too_many().into())
}

/// A hierarchy as a store of `zarrs`.
pub(super) struct Values<H>(pub(super) H);

impl<H: Hierarchy> ReadableStorageTraits for Values<H> {
    fn get(&self, key: &StoreKey) -> Result<MaybeBytes, StorageError> {
        Ok(self.whole(key)?.map(StoreBytes::from))
    }

    fn get_partial_many<'a>(
        &'a self,
        key: &StoreKey,
        ranges: ByteRangeIterator<'a>,
    ) -> Result<MaybeBytesIterator<'a>, StorageError> {
        let Some(value) = self.0.value(key.as_str()).map_err(failed)? else { return Ok(None) };
        let read = move |asked| Ok(StoreBytes::from(read_range(value.as_ref(), asked)?));
        Ok(Some(Box::new(ranges.map(read))))
    }

    fn size_key(&self, key: &StoreKey) -> Result<Option<u64>, StorageError> {
        let value = self.0.value(key.as_str()).map_err(failed)?;
        Ok(value.map(|value| value.len()))
    }

    fn supports_get_partial(&self) -> bool {
        true
    }
}

impl<H: Hierarchy> ValueStore for Values<H> {
    fn whole(&self, key: &StoreKey) -> Result<Option<Vec<u8>>, StorageError> {
        self.0.whole(key.as_str()).map_err(failed)
    }

    fn range(&self, key: &StoreKey, range: ByteRange) -> Result<Option<Vec<u8>>, StorageError> {
        let value = self.0.ranged(key.as_str()).map_err(failed)?;
        value.map(|value| read_range(value.as_ref(), range)).transpose()
    }

    fn is_local(&self) -> bool {
        self.0.is_local()
    }

    fn expect(&self, key: &StoreKey, bytes: u64) {
        self.0.expect(key.as_str(), bytes);
    }
}

fn failed(error: SourceError) -> StorageError {
    StorageError::Other(error.to_string())
}

/// The input with the arrays of a hierarchy.
pub(super) fn input(
    location: &Location,
    hierarchy: &dyn Hierarchy,
    bytes: Arc<dyn Source>,
    options: &OpenOptions,
) -> Result<Input, Error> {
    let refuses = options.missing_chunks == MissingChunks::Error;
    let mut arrays = BTreeMap::new();
    let mut unreadable = Vec::new();
    let mut groups = Vec::new();
    let mut paths = vec![String::new()];
    while let Some(path) = paths.pop() {
        match read(location, hierarchy, &path, refuses)? {
            Node::Array(tensor) => {
                let name = (!path.is_empty()).then(|| path.clone());
                arrays.insert(path, TensorInfo { name, ..*tensor });
            }
            Node::Unfit(error) => {
                // the metadata may belong to a group
                let below = match error {
                    ZarrError::Value(_) => named_below(location, hierarchy, &path)?,
                    _ => Vec::new(),
                };
                if path.is_empty() && below.is_empty() {
                    return Err(Error::file(location, error));
                }
                let name = if path.is_empty() { "/".to_owned() } else { path };
                paths.extend(below);
                unreadable.push(Unreadable::new(name, error));
            }
            Node::Group(_) if path.split('/').count() > MAX_DEPTH => {
                let error = ZarrError::Metadata(format!("more than {MAX_DEPTH} groups in another"));
                return Err(Error::file(location, error));
            }
            Node::Group(annotations) => {
                paths.extend(paths_below(location, hierarchy, &path)?);
                if !annotations.is_empty() {
                    groups.push((path, LazyAnnotations::of(annotations)));
                }
            }
        }
    }
    unreadable.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    let mut tensors: Tensors = arrays.into_values().collect();
    groups.into_iter().for_each(|(path, annotated)| tensors.annotate_group(path, annotated));
    let contents = Contents::of(&FORMAT, tensors);
    let container = Container { unreadable, ..Container::default() };
    Ok(Input { container, ..Input::of_source(location, bytes, contents) })
}

fn paths_below(
    location: &Location,
    hierarchy: &dyn Hierarchy,
    group: &str,
) -> Result<Vec<String>, Error> {
    let names = hierarchy.children(group).map_err(|error| Error::file(location, error))?;
    Ok(names.into_iter().map(|name| below(group, &name)).collect())
}

/// The paths directly below a group that have metadata of their own.
fn named_below(
    location: &Location,
    hierarchy: &dyn Hierarchy,
    group: &str,
) -> Result<Vec<String>, Error> {
    let is_there = |name: &str| !matches!(hierarchy.value(name), Ok(None));
    let mut paths = paths_below(location, hierarchy, group)?;
    paths.retain(|path| METADATA.iter().any(|name| is_there(&below(path, name))));
    Ok(paths)
}

enum Node {
    Array(Box<TensorInfo>),
    Unfit(ZarrError),
    Group(Annotations),
}

/// Read the node at a path; an array there may refuse missing chunks. A path without metadata is a group,
/// since other nodes may lie below.
fn read(
    location: &Location,
    hierarchy: &dyn Hierarchy,
    path: &str,
    refuses: bool,
) -> Result<Node, Error> {
    let metadata = |name: &str| {
        let value = hierarchy.value(&below(path, name));
        let found = value.as_ref().ok().and_then(Option::as_ref);
        if let Some(len) = found.map(|value| value.len()).filter(|len| *len > MAX_METADATA) {
            let reason = format!("{name} has {len} bytes, and over {MAX_METADATA} are not read");
            return Err(Unread::Unfit(ZarrError::Metadata(reason)));
        }
        let read = |value: Box<dyn StoredValue + '_>| value.read(0..value.len());
        match value.and_then(|value| value.map(read).transpose()) {
            // damaged, while its neighbours may be whole
            Err(SourceError::Io(error)) if error.kind() == io::ErrorKind::InvalidData => {
                Err(Unread::Unfit(ZarrError::Value(format!("{name}: {error}"))))
            }
            read => read.map_err(|error| Unread::Failed(Error::file(location, error))),
        }
    };
    let array = |json| {
        let missing = || match path {
            "" => "it is not there".to_owned(),
            path => format!("it is not there, in the array {path:?}"),
        };
        let tensor = array::array(hierarchy.array(path), json, refuses.then(missing))?;
        match hierarchy.refused(path) {
            Some(error) => Err(ZarrError::Value(error)),
            None => Ok(Node::Array(Box::new(tensor))),
        }
    };
    let node = || {
        if let Some(json) = metadata("zarr.json")? {
            return Ok(match array::node(&json)? {
                ZarrNode::Array(json) => array(json)?,
                ZarrNode::Group(annotations) => Node::Group(annotations),
            });
        }
        if let Some(json) = metadata(".zarray")? {
            return Ok(array(array::array_v2(&json, metadata(ATTRIBUTES)?.as_deref())?)?);
        }
        Ok(match metadata(ATTRIBUTES)? {
            Some(json) => Node::Group(array::group_v2(&json)?),
            None => Node::Group(Annotations::default()),
        })
    };
    match node() {
        Ok(node) => Ok(node),
        Err(Unread::Unfit(error)) => Ok(Node::Unfit(error)),
        Err(Unread::Failed(error)) => Err(error),
    }
}

/// Why a path has no readable node.
enum Unread {
    Unfit(ZarrError),
    Failed(Error),
}

impl From<ZarrError> for Unread {
    fn from(error: ZarrError) -> Unread {
        Unread::Unfit(error)
    }
}

fn read_range(value: &dyn StoredValue, asked: ByteRange) -> Result<Vec<u8>, StorageError> {
    let range = range(asked, value.len())?;
    fits(range.end - range.start).and_then(|_| value.read(range)).map_err(failed)
}

/// The requested range of a value of `len` bytes: the index of a shard may name any range.
fn range(asked: ByteRange, len: u64) -> Result<Range<u64>, StorageError> {
    let range = match asked {
        ByteRange::FromStart(start, None) => Some(start..len),
        ByteRange::FromStart(start, Some(count)) => start.checked_add(count).map(|end| start..end),
        ByteRange::Suffix(count) => len.checked_sub(count).map(|start| start..len),
    };
    let range = range.filter(|range| range.start <= range.end && range.end <= len);
    range.ok_or_else(|| StorageError::Other("a part of it is beyond its end".to_owned()))
}

pub(super) fn below(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") }
}
