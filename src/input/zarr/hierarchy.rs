//! The arrays of a hierarchy, wherever its values lie.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use zarrs::storage::StorageError;
use zarrs::storage::byte_range::ByteRange;

use crate::error::Error;
use crate::format::zarr::{self, ArrayStore, ZarrError, ZarrNode};
use crate::format::{Contents, Format, FormatError, TensorInfo, Tensors};
use crate::input::{Bytes, Input, Location, Unreadable};
use crate::source::{Source, SourceError};

/// The longest metadata of an array or a group, in bytes: as long as the header of a `.safetensors` may be.
pub(super) const MAX_METADATA: u64 = 100_000_000;

/// The deepest group.
const MAX_DEPTH: usize = 100;

/// Where the values of a hierarchy lie under their keys.
pub(super) trait Hierarchy {
    /// A value of metadata; `None` where there is none of that key.
    fn metadata(&self, key: &str) -> Result<Option<Vec<u8>>, SourceError>;

    /// The names below a group, in order.
    fn children(&self, group: &str) -> Result<Vec<String>, SourceError>;

    /// What lies below an array.
    fn array(&self, path: &str) -> ArrayStore;
}

/// The input whose arrays a hierarchy has.
///
/// # Errors
/// Metadata that cannot be read, groups nested without end; an array that is the whole input, and cannot be
/// read.
pub(super) fn input(
    location: &Location,
    hierarchy: &dyn Hierarchy,
    bytes: Arc<dyn Source>,
) -> Result<Input, Error> {
    let (mut arrays, mut unreadable) = (BTreeMap::new(), Vec::new());
    let mut paths = vec![String::new()];
    while let Some(path) = paths.pop() {
        match read(location, hierarchy, &path)? {
            Some(Node::Array(tensor)) => {
                let name = (!path.is_empty()).then(|| path.clone());
                arrays.insert(path, TensorInfo { name, ..tensor });
            }
            Some(Node::Unfit(error)) if path.is_empty() => {
                return Err(Error::file(location, FormatError::from(error)));
            }
            Some(Node::Unfit(error)) => {
                unreadable.push(Unreadable { name: path, error: error.into() });
            }
            Some(Node::Group) if path.split('/').count() > MAX_DEPTH => {
                let error = ZarrError::Metadata(format!("more than {MAX_DEPTH} groups in another"));
                return Err(Error::file(location, FormatError::from(error)));
            }
            Some(Node::Group) => {
                let children = hierarchy.children(&path);
                let children = children.map_err(|error| Error::file(location, error))?;
                paths.extend(children.into_iter().map(|name| below(&path, &name)));
            }
            None => {}
        }
    }
    unreadable.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    let tensors: Tensors = arrays.into_values().collect();
    let contents = Contents::of(Format::Zarr, tensors);
    Ok(Input { unreadable, ..Input::of_file(location, Bytes::Random(bytes), contents) })
}

enum Node {
    Array(TensorInfo),
    Unfit(ZarrError),
    Group,
}

/// What is at a path, if anything is.
fn read(location: &Location, hierarchy: &dyn Hierarchy, path: &str) -> Result<Option<Node>, Error> {
    let metadata = |name: &str| {
        let value = hierarchy.metadata(&below(path, name));
        value.map_err(|error| Error::file(location, error))
    };
    let array = |json: &[u8]| match zarr::array(hierarchy.array(path), json) {
        Ok(tensor) => Node::Array(tensor),
        Err(error) => Node::Unfit(error),
    };
    if let Some(json) = metadata("zarr.json")? {
        return Ok(Some(match zarr::node(&json) {
            Ok(ZarrNode::Array) => array(&json),
            Ok(ZarrNode::Group) => Node::Group,
            Err(error) => Node::Unfit(error),
        }));
    }
    if let Some(json) = metadata(".zarray")? {
        return Ok(Some(array(&json)));
    }
    Ok(metadata(".zgroup")?.map(|_| Node::Group))
}

/// The range of a value of that length which is asked for: an index of a shard may say any.
pub(super) fn range(asked: ByteRange, len: u64) -> Result<Range<u64>, StorageError> {
    let range = match asked {
        ByteRange::FromStart(start, None) => Some(start..len),
        ByteRange::FromStart(start, Some(count)) => start.checked_add(count).map(|end| start..end),
        ByteRange::Suffix(count) => len.checked_sub(count).map(|start| start..len),
    };
    let range = range.filter(|range| range.start <= range.end && range.end <= len);
    range.ok_or_else(|| StorageError::Other("a part of it is beyond its end".to_owned()))
}

/// The key of a name at a path.
pub(super) fn below(path: &str, name: &str) -> String {
    match path.is_empty() {
        true => name.to_owned(),
        false => format!("{path}/{name}"),
    }
}
