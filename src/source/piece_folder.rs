//! Files that an input names, below its folder.

use std::fs;
use std::path::{Component, Path, PathBuf};

use super::{FileOpener, OpenError, Source, SourceError, SourceResult};

/// The folder of an input, below which the files that it names are looked for.
pub(crate) struct PieceFolder {
    /// The folder's path without links, if it exists.
    folder: PathBuf,
    opener: FileOpener,
}

impl PieceFolder {
    pub(crate) fn new(folder: &Path, opener: FileOpener) -> PieceFolder {
        let folder = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
        PieceFolder { folder, opener }
    }

    /// The folder of another file, whose pieces are opened in the same way.
    #[cfg(feature = "hdf5")]
    pub(crate) fn of(&self, path: &Path) -> PieceFolder {
        PieceFolder::new(path.parent().unwrap_or(path), self.opener.clone())
    }

    /// The path of a name in the folder; an error if the name has `..` or a root, whether the file exists or not.
    pub(crate) fn named(&self, name: &str) -> SourceResult<PathBuf> {
        let inner = Path::new(name).strip_prefix(&self.folder).unwrap_or(Path::new(name));
        let is_below = |part| matches!(part, Component::Normal(_) | Component::CurDir);
        if inner.components().all(is_below) {
            return Ok(self.folder.join(inner));
        }
        Err(SourceError::Outside.of_file(name))
    }

    /// The path of a file with links resolved; an error if a link leads out of the folder.
    pub(crate) fn path(&self, name: &str) -> SourceResult<PathBuf> {
        let path = fs::canonicalize(self.named(name)?);
        let path = path.map_err(|error| SourceError::Io(error).of_file(name))?;
        if path.starts_with(&self.folder) {
            return Ok(path);
        }
        Err(SourceError::Outside.of_file(name))
    }

    /// Open a file by its name. The error names it.
    pub(crate) fn open(&self, name: &str) -> SourceResult<Box<dyn Source>> {
        self.opener.open(&self.path(name)?).map_err(|error| match error {
            OpenError::Io(error) => SourceError::Io(error).of_file(name),
            other => SourceError::Io(std::io::Error::other(other)).of_file(name),
        })
    }
}
