//! Files of a folder that are exchanged one by one, where the folder cannot be exchanged.
//!
//! The last old file, by which the others are found, is taken away, the others are exchanged, and the
//! last new one takes its place, without a signal in between. Each can be taken back (`placed`), so that
//! an error undoes all of it.

use super::pending::PendingFile;
use crate::sink::placed::{Old, Placed};
use crate::sink::temp_name::without_signals;
use crate::sink::{Draft, SinkError, SinkOptions};

/// Give all files their names; `in_folder` says which one could not have its own.
pub(super) fn replace(
    files: Vec<PendingFile>,
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
        files.into_iter().try_fold(placed, |placed, PendingFile { name, mut sink, .. }| {
            let one = sink.seal().and_then(|()| Box::new(sink).place(Old::Kept));
            placed.and(one).map_err(|error| in_folder(&name, error))
        })
    })
}
