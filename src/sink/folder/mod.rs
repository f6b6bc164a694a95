//! A folder of files as one output: the bytes of each file follow those of the one before.
//!
//! 1. The folder is found, and whatever stands under the names of the files in it: a name that
//!    cannot be replaced is refused before anything is written (`place`).
//! 2. Each file is created as any output is (`file`): without a name, allocated in full, with the
//!    permissions of the file that it replaces. A symbolic link is followed, as for a single file.
//! 3. `commit` checks that all files are complete before it names the first one.
//! 4. If it can, it fills a folder whose own name begins with `.tslice-` and puts it in the place of
//!    the other one by one system call (`whole`): the files appear together. Files of other names
//!    are in the new folder too, as hard links.
//! 5. Where that cannot be, for a folder with other folders, links to other places, or rights that
//!    cannot be copied, the files are exchanged one by one (`one_by_one`). An error undoes what was
//!    done. A kill in between leaves a folder without its last file: of a checkpoint that is the
//!    index, without which nobody takes old and new files for one checkpoint.

use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use self::pending::PendingFile;
use self::place::FolderPlace;
use super::file::FileSink;
use super::resolve::{FileAt, Resolved};
use super::{Draft, Old, Placed, Sink, SinkError, SinkOptions, Targets};

mod one_by_one;
mod pending;
mod place;
mod subfolders;
mod tree;
mod whole;

pub(super) use place::folder_at;
pub(super) use subfolders::Subfolders;
pub use tree::{FileTree, FolderTree};

/// A folder that is being written.
#[derive(Debug)]
pub struct FolderSink {
    /// For errors.
    path: PathBuf,
    files: Vec<PendingFile>,
    place: FolderPlace,
    /// The names of files that go when the new ones are there.
    removed: Vec<String>,
    options: SinkOptions,
}

impl FolderSink {
    /// Create a folder for `path` with these files, each a name, a length in bytes, and the permissions that
    /// it has where those are given. The last one is that by which the others are found, such as the index of a checkpoint. Files with the names of
    /// `old` go, unless they are replaced.
    ///
    /// # Errors
    /// [`SinkError::FolderNotEmpty`] if it is not empty and `force` is not set,
    /// [`SinkError::File`] for a name that cannot be replaced, [`SinkError::Os`].
    pub fn create(
        path: &Path,
        files: &[(&str, u64, Option<u32>)],
        old: &[String],
        options: SinkOptions,
    ) -> Result<Self, SinkError> {
        let place = FolderPlace::find(path, options)?;
        let entries = files
            .iter()
            .map(|(name, ..)| place.entry(name).map_err(|error| in_folder(path, name, error)));
        let entries: Vec<FileAt> = entries.collect::<Result<_, _>>()?;
        let names = files.iter().map(|(name, ..)| *name);
        claim(path, &place, names.zip(&entries), &mut Targets::default())?;
        let is_new = |old: &str| files.iter().any(|(name, ..)| *name == old);
        let mut removed = Vec::new();
        for name in old.iter().filter(|name| !is_new(name)) {
            if place.has(name).map_err(|error| in_folder(path, name, error))? {
                removed.push(name.clone());
            }
        }
        let mut start = 0;
        let mut pending = Vec::with_capacity(files.len());
        for (&(name, len, mode), entry) in files.iter().zip(entries) {
            let options = SinkOptions { len: Some(len), mode, ..options };
            let sink = FileSink::at(entry.clone(), options)?;
            pending.push(PendingFile { name: name.to_owned(), start, entry, sink });
            start += len;
        }
        Ok(FolderSink { path: path.to_owned(), files: pending, place, removed, options })
    }

    /// Make the checks of [`FolderSink::create`] without creating anything. `targets` are those of the
    /// outputs that are written together with it.
    ///
    /// # Errors
    /// Those of [`FolderSink::create`].
    pub fn check<'a>(
        path: &Path,
        names: impl IntoIterator<Item = &'a str>,
        options: SinkOptions,
        targets: &mut Targets,
    ) -> Result<(), SinkError> {
        let place = FolderPlace::find(path, options)?;
        let entry = |name: &'a str| match place.entry(name) {
            Ok(entry) => Ok((name, entry)),
            Err(error) => Err(in_folder(path, name, error)),
        };
        let entries: Vec<_> = names.into_iter().map(entry).collect::<Result<_, _>>()?;
        place.check_writable()?;
        claim(path, &place, entries.iter().map(|(name, entry)| (*name, entry)), targets)
    }

    /// The file that holds a position.
    fn file_at(&self, offset: u64) -> Option<&PendingFile> {
        let at = self.files.partition_point(|file| file.start <= offset);
        self.files[..at].last()
    }
}

impl Sink for FolderSink {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), SinkError> {
        match self.file_at(offset) {
            Some(file) => file.sink.write_at(offset - file.start, bytes),
            None => Ok(()),
        }
    }

    fn share(&self, offset: u64, file: &File, range: Range<u64>) -> Range<u64> {
        match self.file_at(offset) {
            Some(target) => target.sink.share(offset - target.start, file, range),
            None => range.start..range.start,
        }
    }

    fn settle(&self, range: Range<u64>, wait: bool) -> Result<(), SinkError> {
        let Some(file) = self.file_at(range.start) else { return Ok(()) };
        file.sink.settle(range.start - file.start..range.end - file.start, wait)
    }

    fn expect(&self, range: Range<u64>) {
        if let Some(file) = self.file_at(range.start) {
            file.sink.expect(range.start - file.start..range.end - file.start);
        }
    }
}

impl Draft for FolderSink {
    fn seal(&mut self) -> Result<(), SinkError> {
        self.files.iter().try_for_each(|file| file.sink.check_complete())
    }

    fn place(self: Box<Self>, _: Old) -> Result<Placed, SinkError> {
        let Self { path, files, place, removed, options } = *self;
        match place {
            FolderPlace::New(at) => whole::place_new(files, at, options),
            FolderPlace::Existing(folder) => {
                let linked = files.iter().any(|file| !Arc::ptr_eq(&file.entry.dir, &folder.fd));
                match if linked { None } else { whole::prepare(&folder, &files, &removed)? } {
                    Some(prepared) => whole::replace(files, folder, prepared, removed, options),
                    None => {
                        one_by_one::replace(files, &folder, &removed, options, |name, error| {
                            in_folder(&path, name, error)
                        })
                    }
                }
            }
        }
    }
}

/// Refuse a folder, or a file of it, that another output is to have, too.
fn claim<'a>(
    path: &Path,
    place: &FolderPlace,
    mut entries: impl Iterator<Item = (&'a str, &'a FileAt)>,
    targets: &mut Targets,
) -> Result<(), SinkError> {
    match place {
        FolderPlace::New(at) => targets.add(path, Resolved::File(at.clone())),
        FolderPlace::Existing(_) => entries.try_for_each(|(name, entry)| {
            let added = targets.add(&path.join(name), Resolved::File(entry.clone()));
            added.map_err(|error| in_folder(path, name, error))
        }),
    }
}

/// The error of a file of a folder.
fn in_folder(folder: &Path, name: &str, error: SinkError) -> SinkError {
    error.of_file(folder.join(name))
}
