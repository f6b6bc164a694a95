//! Files of a folder that are exchanged one by one, where the folder cannot be exchanged.
//!
//! All files get temporary names beside those that they replace. Then, without a signal in between:
//! the last old file, by which the others are found, is taken away, the others are exchanged, and
//! the last new one takes its place. An error undoes all of it.

use std::io;
use std::sync::Arc;

use rustix::fs::{AtFlags, RenameFlags, linkat, renameat, renameat_with, unlinkat};
use rustix::io::{Errno, Result as OsResult};

use super::pending::PendingFile;
use crate::sink::file::{open_dir, sync_dir};
use crate::sink::resolve::FileAt;
use crate::sink::temp_name::{TempName, without_signals};
use crate::sink::{SinkError, SinkOptions};

/// A file with a temporary name in the directory that it goes to.
struct Staged {
    name: String,
    temp_name: TempName,
    entry: FileAt,
}

/// What was done to a name, to be undone.
enum Done {
    /// Old and new file have exchanged their names.
    Exchanged,
    /// The new file has its name, where nothing was.
    Placed,
    /// The new file has its name, and the old one is gone: the file system does not exchange names.
    Replaced,
}

/// Give all files their names; `in_folder` says which one could not have its own.
pub(super) fn replace(
    files: Vec<PendingFile>,
    options: SinkOptions,
    in_folder: impl Fn(&str, SinkError) -> SinkError,
) -> Result<(), SinkError> {
    let mut staged = Vec::with_capacity(files.len());
    let mut dirs = Vec::new();
    for PendingFile { name, entry, sink, .. } in files {
        if options.fsync && !dirs.iter().any(|(dir, _)| Arc::ptr_eq(dir, &entry.dir)) {
            let open = open_dir(&entry).map_err(SinkError::os("cannot be brought to the disk"))?;
            dirs.push((Arc::clone(&entry.dir), open));
        }
        let temp_name = sink.into_temp_name().map_err(|error| in_folder(&name, error))?;
        staged.push(Staged { name, temp_name, entry });
    }
    let Some((last, others)) = staged.split_last() else { return Ok(()) };
    let kept = last.keep_old();
    without_signals(|| {
        let away = kept.as_ref().map_or(Ok(()), |_| last.take_away());
        away.map_err(|error| in_folder(&last.name, placing(error)))?;
        let mut done = Vec::with_capacity(others.len());
        for file in others.iter().chain([last]) {
            match file.place(options) {
                Ok(how) => done.push((file, how)),
                Err(error) => {
                    done.into_iter().rev().for_each(|(file, how)| file.undo(&how));
                    if let Some(kept) = &kept {
                        last.put_back(kept);
                    }
                    return Err(in_folder(&file.name, placing(error)));
                }
            }
        }
        Ok(())
    })?;
    // the temporary names are those of the old files now, which go with them
    drop(staged);
    for (_, dir) in dirs {
        sync_dir(dir)
            .map_err(SinkError::os("is in place, but its name cannot be brought to the disk"))?;
    }
    Ok(())
}

impl Staged {
    /// A second name for the file that is replaced; `None` where there is none, or no hard links.
    fn keep_old(&self) -> Option<TempName> {
        let FileAt { dir, name, .. } = &self.entry;
        let link = |temp: &str| linkat(dir, name, dir, temp, AtFlags::empty());
        TempName::create(dir, link).ok().map(|(temp_name, ())| temp_name)
    }

    fn take_away(&self) -> OsResult<()> {
        unlinkat(&self.entry.dir, &self.entry.name, AtFlags::empty())
    }

    fn put_back(&self, kept: &TempName) {
        let FileAt { dir, name, .. } = &self.entry;
        // nothing more can be done about an error: the file has its temporary name only
        let _ = linkat(dir, kept.name(), dir, name, AtFlags::empty());
    }

    fn place(&self, options: SinkOptions) -> OsResult<Done> {
        let FileAt { dir, name, .. } = &self.entry;
        let temp = self.temp_name.name();
        match renameat_with(dir, temp, dir, name, RenameFlags::NOREPLACE) {
            Ok(()) => return Ok(Done::Placed),
            Err(Errno::EXIST) if options.force => {}
            // the file system has no such flags
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) if options.force => {}
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                return linkat(dir, temp, dir, name, AtFlags::empty()).map(|()| Done::Placed);
            }
            Err(error) => return Err(error),
        }
        match renameat_with(dir, temp, dir, name, RenameFlags::EXCHANGE) {
            Ok(()) => Ok(Done::Exchanged),
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP | Errno::NOENT) => {
                renameat(dir, temp, dir, name).map(|()| Done::Replaced)
            }
            Err(error) => Err(error),
        }
    }

    fn undo(&self, done: &Done) {
        let FileAt { dir, name, .. } = &self.entry;
        let temp = self.temp_name.name();
        // nothing more can be done about an error here
        let _ = match done {
            Done::Exchanged => renameat_with(dir, temp, dir, name, RenameFlags::EXCHANGE),
            Done::Placed => renameat(dir, name, dir, temp),
            Done::Replaced => Ok(()),
        };
    }
}

fn placing(error: Errno) -> SinkError {
    match error {
        Errno::EXIST => SinkError::AlreadyExists,
        error => SinkError::os("cannot be put in place")(io::Error::from(error)),
    }
}
