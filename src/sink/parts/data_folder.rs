//! `data` of an output that is a folder.

use std::io::Write;
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, linkat, statat};
use rustix::io::{Errno, retry_on_intr};

use super::folder::{DATA, Folder, open_dir};
use super::own::{create_own, damaged, discarded_if_gone, is_gone};
use crate::sink::SinkError;
use crate::sink::folder::Subfolders;
use crate::sink::temp_name::TempName;

/// `data`, open: the folder that becomes the output.
pub(super) struct DataFolder {
    fd: OwnedFd,
    below: Subfolders,
}

impl DataFolder {
    /// Open it; `None` where it is in its place, or gone.
    pub(super) fn open(folder: &Folder) -> Result<Option<DataFolder>, SinkError> {
        match open_dir(&folder.dir, DATA) {
            Ok(fd) => Ok(Some(DataFolder { fd, below: Subfolders::default() })),
            Err(error) if is_gone(error) => Ok(None),
            Err(Errno::NOTDIR | Errno::LOOP) => Err(damaged(DATA)),
            Err(error) => Err(SinkError::os("its parts cannot be opened")(error)),
        }
    }

    /// Put a file into it, whole and on the disk, unless it is there: whoever wrote that had the same bytes.
    /// It grows in the folder of the job, so that nothing else is ever in what becomes the output.
    pub(super) fn write(&self, folder: &Folder, name: &str, bytes: &[u8]) -> Result<(), SinkError> {
        let written = || {
            let failed = SinkError::os::<Errno>("cannot be created");
            // a name that is there may not be on the disk yet
            self.below.make_for(&self.fd, name).map_err(&failed)?;
            if statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW).is_ok() {
                return Ok(());
            }
            let made = TempName::create(&folder.dir, |name| create_own(&folder.dir, name));
            let (temp_name, mut file) = made.map_err(SinkError::os("cannot be created"))?;
            file.write_all(bytes).map_err(SinkError::Io)?;
            file.sync_all().map_err(SinkError::os("cannot be brought to the disk"))?;
            let from = temp_name.name();
            match retry_on_intr(|| linkat(&folder.dir, from, &self.fd, name, AtFlags::empty())) {
                Ok(()) | Err(Errno::EXIST) => Ok(()),
                Err(error) => Err(failed(error)),
            }
        };
        written().map_err(discarded_if_gone)
    }

    /// Bring the names of its files to the disk.
    pub(super) fn sync(&self) -> Result<(), SinkError> {
        let synced = self.below.sync(&self.fd);
        synced.map_err(SinkError::os("cannot be brought to the disk")).map_err(discarded_if_gone)
    }

    /// The folder itself.
    pub(super) fn fd(&self) -> &OwnedFd {
        &self.fd
    }
}
