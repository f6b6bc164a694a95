//! Whether several outputs are several files.
//!
//! Two paths may lead to one name: through symbolic links, linked folders, `..`. So each is resolved to
//! the directory that it is in, by device and inode, and the name there, which need not exist. All are
//! added before the first output is created.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, fstat, statat};

use super::SinkError;
use super::resolve::{FileAt, Resolved, SpecialFile, resolve};
use crate::os::FileId;

/// Where outputs go that are written together.
#[derive(Debug, Default)]
pub struct Targets(HashMap<OutputTarget, PathBuf>);

/// What a path leads to.
#[derive(Debug, PartialEq, Eq, Hash)]
enum OutputTarget {
    Stdout,
    /// A FIFO, a device, or an open descriptor.
    Special(FileId),
    /// A name in a directory.
    Name(FileId, OsString),
}

impl Targets {
    /// Add the file that a path leads to.
    ///
    /// # Errors
    /// [`SinkError::SameFile`] if one that was added before leads there, too; those of resolving it.
    pub(super) fn add(&mut self, path: &Path) -> Result<(), SinkError> {
        let target = match resolve(path)? {
            Resolved::File(entry) => return self.add_entry(path, &entry),
            Resolved::Stdout => OutputTarget::Stdout,
            Resolved::Special(SpecialFile { dir, name }) => {
                let stat = statat(&dir, &name, AtFlags::empty());
                OutputTarget::Special(FileId::any(
                    &stat.map_err(SinkError::os("cannot be opened"))?,
                ))
            }
        };
        self.add_target(path, target)
    }

    /// Add a name in a directory, to which a path leads.
    pub(super) fn add_entry(&mut self, path: &Path, entry: &FileAt) -> Result<(), SinkError> {
        let dir = fstat(&entry.dir).map_err(SinkError::os("cannot be created"))?;
        self.add_target(path, OutputTarget::Name(FileId::any(&dir), entry.name.clone()))
    }

    fn add_target(&mut self, path: &Path, target: OutputTarget) -> Result<(), SinkError> {
        match self.0.entry(target) {
            Entry::Occupied(other) => Err(SinkError::SameFile { other: other.get().clone() }),
            Entry::Vacant(free) => {
                free.insert(path.to_owned());
                Ok(())
            }
        }
    }
}
