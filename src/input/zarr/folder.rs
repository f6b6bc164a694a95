//! A hierarchy in a folder: keys are paths.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::hierarchy::{self, Hierarchy, StoredValue, Values};
use crate::error::Error;
use crate::format::zarr::ArrayStore;
use crate::input::{Input, Location, OpenOptions};
use crate::source::{self, Advice, IoMode, MemorySource, OpenError, Source, SourceError};

/// A folder.
struct ZarrFolder(PathBuf);

/// The arrays in a folder.
///
/// # Errors
/// Those of [`hierarchy::input`].
pub(super) fn open(
    location: &Location,
    path: &Path,
    options: &OpenOptions,
) -> Result<Input, Error> {
    let folder = ZarrFolder(path.to_owned());
    hierarchy::input(location, &folder, Arc::new(MemorySource::default()), options)
}

impl Hierarchy for ZarrFolder {
    fn value<'a>(&'a self, key: &str) -> Result<Option<Box<dyn StoredValue + 'a>>, SourceError> {
        match source::open_file(&self.0.join(key), IoMode::Read) {
            Ok(file) => Ok(Some(Box::new(Arc::<dyn Source>::from(file)))),
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

    fn expect(&self, key: &str) {
        // what is wrong with it is said where it is read
        if let Ok(file) = source::open_file(&self.0.join(key), IoMode::Read) {
            file.advise(0..file.len(), Advice::WillNeed);
        }
    }

    fn children(&self, group: &str) -> Result<Vec<String>, SourceError> {
        let mut names = Vec::new();
        let folder = self.0.join(group);
        for entry in folder.read_dir()? {
            let entry = entry?;
            // what is no text is no name of a node
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
        Arc::new(Values(ZarrFolder(self.0.join(path))))
    }
}

/// Whether a link leads to the folder that it lies in, or to one above that.
fn leads_up(folder: &Path, link: &Path) -> bool {
    match (folder.canonicalize(), link.canonicalize()) {
        (Ok(folder), Ok(target)) => folder.starts_with(target),
        _ => false,
    }
}
