//! Who has `data` open to write: a marker for each of them, and the question whether any is left.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::fs::{AtFlags, OFlags, fstat, renameat, unlinkat};
use rustix::io::Errno;

use super::create::{create_own, damaged, is_gone, open_own};
use super::folder::{CLOSED, DATA, Fingerprint, Folder};
use crate::os::{boot_id, nobody_writes};
use crate::sink::SinkError;
use crate::sink::temp_name::random_name;

/// How the names of markers begin.
const MARKER: &str = "writer.";

/// `data`, open to write, and the marker that says so. Dropping it closes the file and removes the
/// marker, unless bytes may still be on their way. A process that is killed leaves its marker; so does
/// one that a signal ends, whose other threads write to the last.
#[derive(Debug)]
pub(super) struct Writer {
    dir: Arc<OwnedFd>,
    marker: String,
    data: Option<File>,
}

impl Folder {
    /// Make a marker, then open `data`; `None` where that is closed, or the folder is being removed.
    pub(super) fn open_writer(&self) -> Result<Option<Writer>, SinkError> {
        let failed = SinkError::os::<Errno>("its parts cannot be opened");
        let prefix = format!("{MARKER}{}.", self.place().unwrap_or_default());
        let (dir, data) = (Arc::clone(&self.dir), None);
        let mut writer = loop {
            let marker = random_name(&prefix);
            match create_own(&self.dir, &marker) {
                Ok(_) => break Writer { dir, marker, data },
                Err(Errno::EXIST) => {}
                Err(error) if is_gone(error) => return Ok(None),
                Err(error) => return Err(failed(error)),
            }
        };
        // not to read: an NFS client would read pages that others are writing, and keep them
        writer.data = open_own(&self.dir, DATA, OFlags::WRONLY, "its parts cannot be opened")?;
        Ok(writer.data.is_some().then_some(writer))
    }

    /// Take `data` the name by which it is opened.
    pub(super) fn close_data(&self) -> Result<(), SinkError> {
        match renameat(&self.dir, DATA, &self.dir, CLOSED) {
            Err(Errno::ISDIR) => Err(damaged(CLOSED)),
            // by another process, or by this call, whose answer was lost on its way
            Err(error) if !is_gone(error) => {
                Err(SinkError::os("its parts cannot be closed")(error))
            }
            _ => Ok(()),
        }
    }

    /// Whether somebody may still write `closed`: whether markers are left, unless all are of this
    /// machine, whose kernel says that nobody has the file open.
    pub(super) fn may_be_written(&self, closed: &File) -> Result<bool, SinkError> {
        let names = self.names()?;
        let mut markers =
            names.iter().filter_map(|name| name.to_bytes().strip_prefix(MARKER.as_bytes()));
        let own = self.place();
        let is_here =
            |marker: &[u8]| own.as_ref().is_some_and(|own| marker.starts_with(own.as_bytes()));
        let Some(first) = markers.next() else { return Ok(false) };
        Ok(!(is_here(first) && markers.all(is_here) && nobody_writes(closed)))
    }

    /// A number for this run of this machine's kernel and for the file system, as this machine mounts
    /// it: who has the same meets the same files in one kernel. `None` where it cannot be told.
    fn place(&self) -> Option<String> {
        let mut place = Fingerprint::default();
        place.add(boot_id()?.as_bytes());
        place.add(&fstat(&*self.dir).ok()?.st_dev.to_le_bytes());
        Some(place.to_string())
    }
}

impl Writer {
    /// The open file.
    pub(super) fn file(&self) -> Result<&File, SinkError> {
        self.data.as_ref().ok_or_else(|| SinkError::Io(Errno::BADF.into()))
    }

    /// Bring all that was written to the disk, close the file, and remove the marker.
    pub(super) fn close(mut self) -> Result<(), SinkError> {
        self.file()?.sync_all().map_err(SinkError::os("cannot be brought to the disk"))?;
        self.data = None;
        Ok(())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // as long as bytes are in this machine's memory, on their way to a server, it writes
        let is_written = self.data.take().is_none_or(|data| data.sync_all().is_ok());
        if is_written {
            let _ = unlinkat(&self.dir, &self.marker, AtFlags::empty());
        }
    }
}
