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
use super::resolve::{FileAt, Resolved};
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
    /// Add what a path leads to.
    ///
    /// # Errors
    /// [`SinkError::SameFile`] if one that was added before leads there, too; [`SinkError::Os`].
    pub(super) fn add(&mut self, path: &Path, place: Resolved) -> Result<(), SinkError> {
        let target = match place {
            Resolved::File(FileAt { dir, name, .. }) => {
                let dir = fstat(dir).map_err(SinkError::os("cannot be created"))?;
                OutputTarget::Name(FileId::any(&dir), name)
            }
            Resolved::Stdout => OutputTarget::Stdout,
            Resolved::Special { dir, name } => {
                let stat = statat(dir, name, AtFlags::empty());
                let stat = stat.map_err(SinkError::os("cannot be opened"))?;
                OutputTarget::Special(FileId::any(&stat))
            }
        };
        match self.0.entry(target) {
            Entry::Occupied(other) => Err(SinkError::SameFile { other: other.get().clone() }),
            Entry::Vacant(free) => {
                free.insert(path.to_owned());
                Ok(())
            }
        }
    }
}
