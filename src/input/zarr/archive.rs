//! A hierarchy in a zip archive: keys are names of members.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{self, ErrorKind, Read};
use std::ops::Range;
use std::sync::Arc;

use super::hierarchy::{self, Hierarchy, StoredValue, Values, below};
use crate::crc::PiecesCrc;
use crate::error::Error;
use crate::format::npz::{Member, MemberFault, Members, NpzError};
use crate::format::zarr::ArrayStore;
use crate::input::archive::Archive;
use crate::input::{Input, Location, OpenOptions};
use crate::source::{DeflatedRange, Source, SourceError};

/// An archive and its members.
struct ZipValues {
    bytes: Arc<dyn Source>,
    members: HashMap<String, ZipValue>,
    /// Members that cannot be read.
    refused: BTreeMap<String, NpzError>,
}

/// A member.
enum ZipValue {
    Stored { range: Range<u64>, crc: u32 },
    Deflated(DeflatedRange),
}

/// The members whose names begin with a path.
struct Below {
    values: Arc<ZipValues>,
    path: String,
}

/// The arrays in an archive.
///
/// # Errors
/// Those of [`hierarchy::input`].
pub(in crate::input) fn open_archive(
    location: &Location,
    archive: Archive,
    members: Members,
    options: &OpenOptions,
) -> Result<Input, Error> {
    let value = |member: &Member<'_>| match archive.range(member) {
        range if member.deflated => ZipValue::Deflated(range),
        range => ZipValue::Stored { range: range.range, crc: range.crc },
    };
    let (mut read, mut refused) = (HashMap::new(), BTreeMap::new());
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

/// A member of an archive.
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

    /// One that is deflated is inflated as far as the end of the range. The CRC-32 is compared where all of it is
    /// read, as zarr-python does.
    fn read(&self, range: Range<u64>) -> Result<Vec<u8>, SourceError> {
        let len = range.end - range.start;
        match self.value {
            ZipValue::Stored { range: place, crc } => {
                let mut bytes = vec![0; len as usize];
                let is_whole = len == place.end - place.start;
                let place = place.start + range.start..place.start + range.start + len;
                self.bytes.read(place, &mut Vec::new(), &mut bytes)?;
                let found = PiecesCrc::default();
                if is_whole {
                    found.add(&bytes, 0);
                }
                match is_whole && found.get() != *crc {
                    true => Err(invalid(MemberFault::Crc)),
                    false => Ok(bytes),
                }
            }
            ZipValue::Deflated(deflated) => {
                let (mut stream, mut bytes) = (deflated.stream(), Vec::new());
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

/// Bytes that are there, and are not what they should be.
fn invalid(error: impl std::error::Error + Send + Sync + 'static) -> SourceError {
    io::Error::new(ErrorKind::InvalidData, error).into()
}

impl Hierarchy for Below {
    fn value<'a>(&'a self, key: &str) -> Result<Option<Box<dyn StoredValue + 'a>>, SourceError> {
        let (values, key) = (self.values.as_ref(), below(&self.path, key));
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
