//! Steps 4 to 8: from the record of a part to the output in its place.

use std::fs::File;
use std::io;
use std::io::ErrorKind;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use rustix::fs::{AtFlags, Mode, OFlags, fstat, linkat, openat, renameat, statat, unlinkat};
use rustix::io::{Errno, Result as OsResult, retry_on_intr};

use super::folder::{
    CLOSED, DATA, Folder, Stored, damaged, discarded_if_gone, is_gone, part_name, remove_leftovers,
    sync_parent, unless_gone,
};
use super::sink::{DataFolder, FixedFrame};
use super::{ChosenRecord, DoneRecord, JobRecord, PartsError};
use crate::os;
use crate::os::{FileId, rename_to_free};
use crate::sink::file::FileSink;
use crate::sink::resolve::FileAt;
use crate::sink::rights::RightsOf;
use crate::sink::sharing::CopiedRange;
use crate::sink::temp_name::random_name;
use crate::sink::{Draft, SinkError, SinkOptions, SinkResult};

/// Asks whether all inputs are what they were when the part was begun: an error where one is not,
/// [`PartsError::InputChanged`] in a [`SinkError::File`] that names it.
pub type Unchanged = Arc<dyn Fn(Look) -> SinkResult<()> + Send + Sync>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// By what `stat` says, which a network file system may have from its memory.
    Quick,
    /// By opening them, which asks its server.
    Fresh,
}

/// A part of an output: what it is, and what it is a part of.
#[derive(Clone)]
pub struct PartJob {
    pub index: u64,
    /// The range of the output that it writes within.
    pub range: Range<u64>,
    pub bytes: u64,
    pub total: u64,
    pub job: JobRecord,
    /// All of the output but its elements.
    pub frame: FixedFrame,
    pub unchanged: Unchanged,
    pub options: SinkOptions,
}

/// The output that a part is written of, and the folder of the job.
pub(super) struct SharedOutput {
    pub(super) entry: FileAt,
    pub(super) folder: Folder,
    pub(super) part: PartJob,
    /// The file or folder that parts write.
    pub(super) data: Option<FileId>,
}

const CHOSEN: &str = "chosen";

const COPY: &str = "copy.";

/// The extended attribute of an output that parts wrote: the job, and the time of the last change.
const ATTRIBUTE: &str = "user.tslice.parts";

impl Folder {
    fn chosen(&self) -> SinkResult<Option<ChosenRecord>> {
        let chosen: Option<ChosenRecord> = self.read(CHOSEN)?;
        let is_ours = |file: &str| {
            matches!(file, CLOSED | DATA) || (file.starts_with(COPY) && !file.contains('/'))
        };
        match chosen {
            Some(chosen) if !is_ours(&chosen.file) => Err(damaged(CHOSEN)),
            chosen => Ok(chosen),
        }
    }
}

impl SharedOutput {
    /// Whether the output is in place, and only the folder is to be removed.
    pub(super) fn is_complete(&self) -> SinkResult<bool> {
        // by its attribute: the folder was made when the output was not in place yet, after the job's
        // own one had been removed
        let PartJob { job, options, .. } = &self.part;
        Ok(self.is_placed()? || is_output_of(&self.entry, job, options.force))
    }

    /// Whether the chosen file has the output's name; the folder is only to be removed then.
    fn is_placed(&self) -> SinkResult<bool> {
        let Some(chosen) = self.folder.chosen()? else { return Ok(false) };
        let file = statat(&self.folder.dir, &chosen.file, AtFlags::SYMLINK_NOFOLLOW);
        match unless_gone(file, "its parts cannot be read")? {
            Some(file) => {
                let id = self.entry.id();
                Ok(id.is_some() && FileId::from_stat(&file) == id)
            }
            // renamed to its place, unless the folder is being removed
            None => Ok(self.folder.job()?.is_some()),
        }
    }

    /// Whether the file that has the output's name is this job's.
    pub(super) fn is_over(&self) -> bool {
        // where there are no attributes, it can be told by its number
        let there = statat(&self.entry.dir, &self.entry.name, AtFlags::SYMLINK_NOFOLLOW);
        let is_data = self.data.is_some() && self.data == there.ok().as_ref().map(FileId::any);
        is_data || is_output_of(&self.entry, &self.part.job, false)
    }

    /// Step 8.
    pub(super) fn clean(self) -> SinkResult<()> {
        remove_leftovers(&self.entry);
        self.folder.remove(&self.entry)
    }

    /// An error, unless it comes from the end of the job: another run of this part was the last one,
    /// put the output in place and removed the folder.
    pub(super) fn unless_over(self, error: SinkError) -> SinkResult<()> {
        if !matches!(error, SinkError::Parts(PartsError::Discarded)) || !self.is_over() {
            return Err(error);
        }
        // An NFS client that had the file open could not remove all of the folder.
        match self.folder.job()? {
            None => self.folder.remove(&self.entry),
            Some(_) => Ok(()),
        }
    }

    /// The error of writing; success where the file is gone because the output is in place, for which
    /// nothing is to be written any more. Only network file systems take a file from under a process.
    pub(super) fn failed_write(&self, error: io::Error) -> SinkResult<()> {
        match error.kind() {
            ErrorKind::StaleNetworkFileHandle if self.is_over() => Ok(()),
            ErrorKind::StaleNetworkFileHandle => Err(PartsError::Discarded.into()),
            _ => Err(SinkError::Io(error)),
        }
    }

    /// Make sure that no input changed; or else the job is never completed.
    pub(super) fn check_inputs(&self, look: Look) -> SinkResult<()> {
        (self.part.unchanged)(look).or_else(|error| {
            if let SinkError::File { error: cause, .. } = &error
                && matches!(**cause, SinkError::Parts(PartsError::InputChanged))
            {
                self.folder.spoil()?;
            }
            Err(error)
        })
    }

    /// The end of step 4 of a part whose bytes are on the disk, and steps 5 to 8.
    pub(super) fn record(self, record: DoneRecord) -> SinkResult<()> {
        let recorded = self.folder.store(&record).and_then(|stored| {
            // a name that is taken is that of the same record, by another run of this part
            let name = part_name(self.part.index);
            let _: Option<DoneRecord> = self.folder.publish(&stored, &name)?;
            self.folder.sync()?;
            match self.folder.job()? {
                Some(_) => Ok(stored),
                None => Err(PartsError::Discarded.into()),
            }
        });
        match recorded {
            Ok(stored) => self.finish(record, Some(stored)),
            Err(error) => self.unless_over(error),
        }
    }

    /// Steps 5 to 8, from the record of the complete part on, which is `stored` where it was just written.
    pub(super) fn finish(self, record: DoneRecord, stored: Option<Stored>) -> SinkResult<()> {
        match self.climb_and_place(record, stored) {
            Ok(true) => self.clean(),
            Ok(false) => Ok(()),
            Err(error) => self.unless_over(error),
        }
    }

    /// Steps 5 to 7: whether the output is in place now.
    fn climb_and_place(&self, record: DoneRecord, stored: Option<Stored>) -> SinkResult<bool> {
        let Some(all) = self.climb(record, stored)? else { return Ok(false) };
        let PartJob { total, frame, job, .. } = &self.part;
        if all.written != *total {
            return Err(SinkError::Incomplete { written: all.written, len: *total });
        }
        if let FixedFrame::Folder(files) = frame {
            self.complete_folder(files)?;
            self.place_folder()?;
            return Ok(true);
        }
        // opened anew, so that what others wrote is seen
        if let Some(writer) = self.folder.open_writer()? {
            let data = writer.file()?;
            frame.write(&all, &|at, bytes| data.write_all_at(bytes, at).map_err(SinkError::Io))?;
            data.sync_all().map_err(SinkError::os("cannot be brought to the disk"))?;
            mark(data, job)?;
            writer.close()?;
            self.folder.close_data()?;
        }
        let chosen = match self.folder.chosen()? {
            Some(chosen) => chosen,
            None => self.choose()?,
        };
        self.place(&chosen.file)?;
        Ok(true)
    }

    /// Climb from the record of a complete part as far as all parts below are complete: the sum of all
    /// records, for whoever passes the last join.
    fn climb(&self, own: DoneRecord, mut stored: Option<Stored>) -> SinkResult<Option<DoneRecord>> {
        let mut record = own;
        // the number of the node that this process stands at, and how many parts are below each
        let mut at = self.part.index;
        let mut span = 1u64;
        for level in 1.. {
            if span >= self.part.job.parts {
                break;
            }
            let sibling = at ^ 1;
            // the last node of a level may have no sibling
            if sibling.checked_mul(span).is_some_and(|first| first < self.part.job.parts) {
                let name = format!("join.{level}.{}", at / 2);
                let file = match stored.take() {
                    Some(file) => file,
                    None => self.folder.store(&record)?,
                };
                let theirs: Option<DoneRecord> = self.folder.publish(&file, &name)?;
                let Some(theirs) = theirs else { return Ok(None) };
                if theirs.first / span == at {
                    return Ok(None);
                }
                let sum = record.add(&theirs).filter(|_| theirs.first / span == sibling);
                record = sum.ok_or(PartsError::Damaged(name))?;
            }
            at /= 2;
            span = span.saturating_mul(2);
        }
        Ok(Some(record))
    }

    /// Step 6 of a folder: the files that are no elements', and the record that it is the output.
    fn complete_folder(&self, files: &[(String, Vec<u8>)]) -> SinkResult<()> {
        // in its place
        let Some(data) = DataFolder::open(&self.folder)? else { return Ok(()) };
        files.iter().try_for_each(|(name, bytes)| data.write(&self.folder, name, bytes))?;
        data.sync()?;
        mark(&data.as_file()?, &self.part.job)?;
        self.check_inputs(Look::Fresh)?;
        self.folder.check_unspoiled()?;
        let stored = self.folder.store(&ChosenRecord { file: DATA.to_owned() })?;
        let _: Option<ChosenRecord> = self.folder.publish(&stored, CHOSEN)?;
        self.folder.sync()
    }

    /// Step 7 of a folder.
    fn place_folder(&self) -> SinkResult<()> {
        let folder = &self.folder.dir;
        let entry = &self.entry;
        // a folder that is empty is replaced, and no other
        let placed = rename_to_free(folder, DATA, &entry.dir, &entry.name)
            .or_else(|_| retry_on_intr(|| renameat(folder, DATA, &entry.dir, &entry.name)));
        self.placed(placed, |error| match error {
            Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR => Some(PartsError::FolderExists.into()),
            _ => None,
        })
    }

    /// Step 6, from the closed file on: which file is the output, for all who ask.
    fn choose(&self) -> SinkResult<ChosenRecord> {
        let closed = self.folder.open_file(CLOSED)?.ok_or(PartsError::Discarded)?;
        let file = if self.folder.may_be_written(&closed)? {
            self.copy(&closed).map_err(discarded_if_gone)?
        } else {
            CLOSED.to_owned()
        };
        // an NFS client would keep a name for it in the folder
        drop(closed);
        let own = ChosenRecord { file };
        let checked = self.check_inputs(Look::Fresh).and_then(|()| self.folder.check_unspoiled());
        let stored = checked.and_then(|()| self.folder.store(&own));
        let stored = stored.inspect_err(|_| self.remove_copy(&own.file))?;
        let Some(theirs) = self.folder.publish::<ChosenRecord>(&stored, CHOSEN)? else {
            self.folder.sync()?;
            return Ok(own);
        };
        if own != theirs {
            self.remove_copy(&own.file);
        }
        self.folder.chosen()?.ok_or_else(|| PartsError::Discarded.into())
    }

    fn remove_copy(&self, file: &str) {
        if file != CLOSED {
            let _ = unlinkat(&self.folder.dir, file, AtFlags::empty());
        }
    }

    /// Copy the closed file, blocks shared where that can be, to one that only this process has ever
    /// had open. Its name.
    fn copy(&self, closed: &File) -> SinkResult<String> {
        let name = random_name(COPY);
        let dir = Arc::clone(&self.folder.dir);
        let entry = FileAt { dir, name: name.clone().into(), old_mode: None };
        let options = SinkOptions { fsync: true, ..SinkOptions::default() };
        let mut sink = FileSink::at(entry, options)?;
        sink.fill_from(&CopiedRange::first(closed, self.part.job.len), &|_| {})?;
        Box::new(sink).commit()?;
        let copy = self.folder.open_file(&name)?.ok_or(PartsError::Discarded)?;
        mark(&copy, &self.part.job)?;
        Ok(name)
    }

    /// Step 7.
    fn place(&self, file: &str) -> SinkResult<()> {
        // that of a folder
        if file == DATA {
            return Err(damaged(CHOSEN));
        }
        let folder = &self.folder.dir;
        let entry = &self.entry;
        let own = self.folder.file_id(file);
        let placed = if self.part.options.force {
            // by its name, which the file loses by being put in place
            if entry.old_mode.is_some()
                && let Some(file) = self.folder.open_file(file)?
            {
                RightsOf::replaced(&entry.dir, &entry.name).give(&file)?;
            }
            retry_on_intr(|| renameat(folder, file, &entry.dir, &entry.name))
        } else {
            retry_on_intr(|| linkat(folder, file, &entry.dir, &entry.name, AtFlags::empty()))
        };
        // by another run of this part
        if placed.is_err() && own.is_some() && own == entry.id() {
            return Ok(());
        }
        self.placed(placed, |error| match error {
            Errno::EXIST => Some(SinkError::AlreadyExists),
            _ => None,
        })
    }

    /// What came of putting the output in place; `taken` is the error where the name is.
    fn placed(
        &self,
        placed: OsResult<()>,
        taken: impl Fn(Errno) -> Option<SinkError>,
    ) -> SinkResult<()> {
        let Err(error) = placed else {
            let what = "is in place, but its name cannot be brought to the disk";
            return sync_parent(&self.entry).map_err(SinkError::os(what));
        };
        // by another run of this part, which may have removed the folder since
        if self.is_placed()? || self.is_over() {
            return Ok(());
        }
        Err(match taken(error) {
            Some(taken) => taken,
            None if is_gone(error) => PartsError::Discarded.into(),
            None => SinkError::os("cannot be put in place")(error),
        })
    }
}

/// Name the job in an attribute; some file systems have none. The file is not the output yet.
fn mark(file: &File, job: &JobRecord) -> SinkResult<()> {
    os::set_attribute(file, ATTRIBUTE, &attribute(file, job)?);
    Ok(())
}

/// The attribute of an output of that job, as long as nobody changes it.
fn attribute(file: &File, job: &JobRecord) -> SinkResult<String> {
    let stat = fstat(file).map_err(|error| SinkError::Io(error.into()))?;
    Ok(format!("{} {}.{:09}", job.id(), stat.st_mtime, stat.st_mtime_nsec))
}

/// Whether the file that has the output's name was put there by that job, and, if that matters, not
/// changed since.
pub(super) fn is_output_of(entry: &FileAt, job: &JobRecord, unchanged: bool) -> bool {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = retry_on_intr(|| openat(&entry.dir, &entry.name, flags, Mode::empty()));
    let Ok(file) = file.map(File::from) else { return false };
    match os::attribute(&file, ATTRIBUTE) {
        None => false,
        Some(found) if unchanged => {
            attribute(&file, job).is_ok_and(|unchanged| found == unchanged.as_bytes())
        }
        Some(found) => found.starts_with(job.id().to_string().as_bytes()),
    }
}
