//! A hierarchy in a folder: keys are paths.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use zarrs::storage::byte_range::ByteRangeIterator;
use zarrs::storage::{Bytes, MaybeBytesIterator, ReadableStorageTraits, StorageError, StoreKey};

use super::hierarchy::{self, Hierarchy, MAX_METADATA};
use crate::error::Error;
use crate::format::zarr::ArrayStore;
use crate::input::{Input, Location};
use crate::source::{self, IoMode, MemorySource, OpenError, Source, SourceError};

/// A folder.
struct ZarrFolder(PathBuf);

/// The arrays in a folder.
///
/// # Errors
/// Those of [`hierarchy::input`].
pub(super) fn open(location: &Location, path: &Path) -> Result<Input, Error> {
    let folder = ZarrFolder(path.to_owned());
    hierarchy::input(location, &folder, Arc::new(MemorySource::default()))
}

impl ZarrFolder {
    /// The file of a key; `None` where there is none.
    fn file(&self, key: &str) -> Result<Option<Box<dyn Source>>, OpenError> {
        match source::open_file(&self.0.join(key), IoMode::Read) {
            Err(OpenError::Io(error))
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                Ok(None)
            }
            file => file.map(Some),
        }
    }
}

impl Hierarchy for ZarrFolder {
    fn metadata(&self, key: &str) -> Result<Option<Vec<u8>>, SourceError> {
        let failed = |error: OpenError| SourceError::File {
            name: key.to_owned(),
            error: Box::new(std::io::Error::other(error).into()),
        };
        let Some(file) = self.file(key).map_err(failed)? else { return Ok(None) };
        let mut value = vec![0; file.len().min(MAX_METADATA) as usize];
        file.read(0..value.len() as u64, &mut Vec::new(), &mut value)?;
        Ok(Some(value))
    }

    fn children(&self, group: &str) -> Result<Vec<String>, SourceError> {
        let mut names = Vec::new();
        for entry in self.0.join(group).read_dir()? {
            let entry = entry?;
            // what is no text is no name of a node
            if let Ok(name) = entry.file_name().into_string()
                && entry.path().is_dir()
            {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn array(&self, path: &str) -> ArrayStore {
        Arc::new(ZarrFolder(self.0.join(path)))
    }
}

impl ReadableStorageTraits for ZarrFolder {
    fn get_partial_many<'a>(
        &'a self,
        key: &StoreKey,
        ranges: ByteRangeIterator<'a>,
    ) -> Result<MaybeBytesIterator<'a>, StorageError> {
        let file =
            self.file(key.as_str()).map_err(|error| StorageError::Other(error.to_string()))?;
        let Some(file) = file else { return Ok(None) };
        Ok(Some(Box::new(ranges.map(move |range| {
            let range = hierarchy::range(range, file.len())?;
            let mut value = vec![0; (range.end - range.start) as usize];
            let read = file.read(range, &mut Vec::new(), &mut value);
            read.map_err(|error| StorageError::Other(error.to_string()))?;
            Ok(Bytes::from(value))
        }))))
    }

    fn size_key(&self, key: &StoreKey) -> Result<Option<u64>, StorageError> {
        let file =
            self.file(key.as_str()).map_err(|error| StorageError::Other(error.to_string()))?;
        Ok(file.map(|file| file.len()))
    }

    fn supports_get_partial(&self) -> bool {
        true
    }
}
