//! Files of a folder that are exchanged one by one, where the folder cannot be exchanged.
//!
//! The last old file, by which the others are found, is taken away, the others are exchanged, and the
//! last new one takes its place, without a signal in between; those that are to go are taken away. Each can be taken back (`placed`), so that
//! an error undoes all of it.

use std::ffi::OsString;
use std::sync::Arc;

use super::pending::PendingFile;
use super::place::ExistingFolder;
use crate::sink::placed::{Old, Placed};
use crate::sink::resolve::FileAt;
use crate::sink::temp_name::without_signals;
use crate::sink::{Draft, SinkError, SinkOptions};

/// Give all files their names; `in_folder` says which one could not have its own.
pub(super) fn replace(
    files: Vec<PendingFile>,
    folder: &ExistingFolder,
    removed: &[String],
    options: SinkOptions,
    in_folder: impl Fn(&str, SinkError) -> SinkError,
) -> Result<Placed, SinkError> {
    let Some(last) = files.last().map(|file| (file.name.clone(), file.entry.clone())) else {
        return Ok(Placed::default());
    };
    without_signals(|| {
        let mut placed = Placed::default();
        let (name, entry) = last;
        if entry.old_mode.is_some() && options.force {
            let away = Placed::take_away(entry).map_err(SinkError::os("cannot be put in place"));
            placed = away.map_err(|error| in_folder(&name, error))?;
        }
        let placed = removed.iter().try_fold(placed, |placed, name| {
            let (dir, name) = (Arc::clone(&folder.fd), OsString::from(name));
            let away = Placed::take_away(FileAt { dir, name: name.clone(), old_mode: None });
            let away = away.map_err(SinkError::os("cannot be put in place"));
            placed.and(away).map_err(|error| in_folder(&name.to_string_lossy(), error))
        })?;
        files.into_iter().try_fold(placed, |placed, PendingFile { name, mut sink, .. }| {
            let one = sink.seal().and_then(|()| Box::new(sink).place(Old::Kept));
            placed.and(one).map_err(|error| in_folder(&name, error))
        })
    })
}
