//! Folders below one, made as files need them.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use rustix::fs::{Mode, mkdirat};
use rustix::io::Errno;

use crate::sink::placed::{open_dir, sync_dir};

/// The folders below one that are known to be there, by their paths in it.
#[derive(Debug, Default)]
pub(in crate::sink) struct Subfolders(Mutex<BTreeSet<String>>);

impl Subfolders {
    /// Make the folders that a file of this name lies in, but for those that are there.
    ///
    /// # Errors
    /// The operating system's.
    pub(in crate::sink) fn make_for(&self, fd: &OwnedFd, name: &str) -> rustix::io::Result<()> {
        let Some((folder, _)) = name.rsplit_once('/') else { return Ok(()) };
        let mut made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if made.contains(folder) {
            return Ok(());
        }
        let ends = folder.match_indices('/').map(|(at, _)| at).chain([folder.len()]);
        for path in ends.map(|end| &folder[..end]) {
            match mkdirat(fd, path, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error),
            }
            made.insert(path.to_owned());
        }
        Ok(())
    }

    /// Bring the names in them, and in the one that they lie in, to the disk.
    ///
    /// # Errors
    /// The operating system's.
    pub(in crate::sink) fn sync(&self, fd: &OwnedFd) -> rustix::io::Result<()> {
        let made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut paths = made.iter().map(String::as_str).chain(["."]);
        paths.try_for_each(|path| open_dir(fd, Path::new(path)).and_then(sync_dir))
    }
}
