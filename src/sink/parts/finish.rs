//! Steps 6 to 8: from the sum of all records to the output in its place.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use rustix::fs::{
    AtFlags, Mode, OFlags, chmodat, fstat, linkat, openat, renameat, statat, unlinkat,
};
use rustix::io::{Errno, retry_on_intr};

use super::super::end_within;
use super::PartsError;
use super::create::{damaged, discarded_if_gone, is_gone, open_own, remove_leftovers};
use super::folder::{
    CLOSED, ChosenRecord, DATA, DoneRecord, Folder, JobRecord, Part, Stored, part_name, sync_parent,
};
use super::sink::{DataFolder, FixedFrame};
use crate::os;
use crate::os::{FileId, rename_to_free};
use crate::sink::copy_file::CopiedRange;
use crate::sink::file::FileSink;
use crate::sink::resolve::FileAt;
use crate::sink::temp_name::random_name;
use crate::sink::{Draft, Old, Placed, Sink, SinkError, SinkOptions};

/// Asks whether all inputs are what they were when the part was begun: an error where one is not,
/// [`PartsError::InputChanged`] in a [`SinkError::File`] that names it.
pub type Unchanged = Arc<dyn Fn(Look) -> Result<(), SinkError> + Send + Sync>;

/// How inputs are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// By what `stat` says, which a network file system may have from its memory.
    Quick,
    /// By opening them, which asks its server.
    Fresh,
}

/// The output of a job, and its folder.
pub(super) struct SharedOutput {
    pub(super) entry: FileAt,
    pub(super) folder: Folder,
    pub(super) job: JobRecord,
    pub(super) options: SinkOptions,
    /// Bytes of elements of all parts.
    pub(super) total: u64,
    pub(super) unchanged: Unchanged,
    /// The file that parts write.
    pub(super) data: Option<FileId>,
}

/// The name of the record of which file is the output.
const CHOSEN: &str = "chosen";

/// How the names of copies begin.
const COPY: &str = "copy.";

/// The extended attribute of an output that parts wrote: the job, and the time of the last change.
const ATTRIBUTE: &str = "user.tslice.parts";

impl Folder {
    /// Whether the output is in place; the folder is only to be removed then.
    pub(super) fn is_placed(&self, entry: &FileAt) -> Result<bool, SinkError> {
        let Some(chosen) = self.chosen()? else { return Ok(false) };
        match statat(&self.dir, &chosen.file, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(file) => Ok(FileId::from_stat(&file) == entry.id() && entry.id().is_some()),
            // renamed to its place, unless the folder is being removed
            Err(error) if is_gone(error) => Ok(self.job()?.is_some()),
            Err(error) => Err(SinkError::os("its parts cannot be read")(error)),
        }
    }

    /// The file that was chosen, if one was.
    fn chosen(&self) -> Result<Option<ChosenRecord>, SinkError> {
        let chosen: Option<ChosenRecord> = self.read(CHOSEN)?;
        let is_ours = |file: &str| {
            matches!(file, CLOSED | DATA) || (file.starts_with(COPY) && !file.contains('/'))
        };
        match chosen {
            Some(chosen) if !is_ours(&chosen.file) => Err(damaged(CHOSEN)),
            chosen => Ok(chosen),
        }
    }

    /// The file or the folder that parts write, or wrote.
    pub(super) fn data_id(&self) -> Option<FileId> {
        let id = |name| statat(&self.dir, name, AtFlags::SYMLINK_NOFOLLOW).ok();
        id(DATA).or_else(|| id(CLOSED)).as_ref().map(FileId::any)
    }
}

impl SharedOutput {
    /// Steps 5 to 8, from the record of a complete part on.
    pub(super) fn finish(
        self,
        part: Part,
        record: DoneRecord,
        stored: Option<Stored>,
        frame: FixedFrame,
    ) -> Result<(), SinkError> {
        match self.climb_and_place(part, record, stored, frame) {
            Ok(true) => self.clean(),
            Ok(false) => Ok(()),
            Err(error) => self.unless_placed(error),
        }
    }

    /// Whether the output is in place, and only the folder is to be removed.
    pub(super) fn is_complete(&self) -> Result<bool, SinkError> {
        // by its attribute: the folder was made when the output was not in place yet, after the job's
        // own one had been removed
        Ok(self.folder.is_placed(&self.entry)?
            || is_output_of(&self.entry, &self.job, self.options.force))
    }

    /// Step 8.
    pub(super) fn clean(self) -> Result<(), SinkError> {
        remove_leftovers(&self.entry);
        self.folder.remove(&self.entry)
    }

    /// An error, unless it comes from the end of the job: another run of this part was the last one,
    /// put the output in place and removed the folder.
    pub(super) fn unless_placed(self, error: SinkError) -> Result<(), SinkError> {
        if !matches!(error, SinkError::Parts(PartsError::Discarded)) || !self.is_over() {
            return Err(error);
        }
        // An NFS client that had the file open could not remove all of the folder.
        match self.folder.job()? {
            None => self.folder.remove(&self.entry),
            Some(_) => Ok(()),
        }
    }

    /// Whether the file that has the output's name is this job's.
    pub(super) fn is_over(&self) -> bool {
        // where there are no attributes, it can be told by its number
        let there = statat(&self.entry.dir, &self.entry.name, AtFlags::SYMLINK_NOFOLLOW);
        let is_data = self.data.is_some() && self.data == there.ok().as_ref().map(FileId::any);
        is_data || is_output_of(&self.entry, &self.job, false)
    }

    /// Record a part, and go on with steps 5 to 8.
    pub(super) fn record(
        self,
        part: Part,
        record: DoneRecord,
        frame: FixedFrame,
    ) -> Result<(), SinkError> {
        let recorded = self.folder.store(&record).and_then(|stored| {
            // a name that is taken is that of the same record, by another run of this part
            let _: Option<DoneRecord> = self.folder.publish(&stored, &part_name(part.index))?;
            self.folder.sync()?;
            match self.folder.job()? {
                Some(_) => Ok(stored),
                None => Err(PartsError::Discarded.into()),
            }
        });
        match recorded {
            Ok(stored) => self.finish(part, record, Some(stored), frame),
            Err(error) => self.unless_placed(error),
        }
    }

    /// Make sure that no input changed; or else the job is never completed.
    pub(super) fn check_inputs(&self, look: Look) -> Result<(), SinkError> {
        (self.unchanged)(look).or_else(|error| {
            if let SinkError::File { error: cause, .. } = &error
                && matches!(**cause, SinkError::Parts(PartsError::InputChanged))
            {
                self.folder.spoil()?;
            }
            Err(error)
        })
    }

    /// Steps 5 to 7: whether the output is in place now.
    fn climb_and_place(
        &self,
        part: Part,
        record: DoneRecord,
        stored: Option<Stored>,
        frame: FixedFrame,
    ) -> Result<bool, SinkError> {
        let Some(all) = climb(&self.folder, part, record, stored)? else { return Ok(false) };
        if all.written != self.total {
            return Err(SinkError::Incomplete { written: all.written, len: self.total });
        }
        if let Some(files) = frame.folder() {
            self.complete_folder(files)?;
            self.place_folder()?;
            return Ok(true);
        }
        // opened anew, so that what others wrote is seen
        if let Some(writer) = self.folder.open_writer()? {
            let data = writer.file()?.try_clone().map_err(SinkError::Io)?;
            frame.write(Box::new(Around { data, len: self.job.len }), &all)?;
            mark(writer.file()?, &self.job)?;
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

    /// Step 6 of a folder: the files that are no elements', and the record that it is the output.
    fn complete_folder(&self, files: &[(String, Vec<u8>)]) -> Result<(), SinkError> {
        // in its place
        let Some(data) = DataFolder::open(&self.folder)? else { return Ok(()) };
        files.iter().try_for_each(|(name, bytes)| data.write(&self.folder, name, bytes))?;
        data.sync()?;
        let folder = data.fd().try_clone().map_err(SinkError::Io)?;
        mark(&folder.into(), &self.job)?;
        self.check_inputs(Look::Fresh)?;
        self.folder.check_unspoiled()?;
        let stored = self.folder.store(&ChosenRecord { file: DATA.to_owned() })?;
        let _: Option<ChosenRecord> = self.folder.publish(&stored, CHOSEN)?;
        self.folder.sync()
    }

    /// Step 7 of a folder.
    fn place_folder(&self) -> Result<(), SinkError> {
        let (folder, entry) = (&self.folder.dir, &self.entry);
        // a folder that is empty is replaced, and no other
        let placed = rename_to_free(folder, DATA, &entry.dir, &entry.name)
            .or_else(|_| retry_on_intr(|| renameat(folder, DATA, &entry.dir, &entry.name)));
        match placed {
            Ok(()) => sync_parent(entry)
                .map_err(SinkError::os("is in place, but its name cannot be brought to the disk")),
            // by another run of this part, which may have removed the folder since
            Err(_) if self.folder.is_placed(entry)? || self.is_over() => Ok(()),
            Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR) => {
                Err(PartsError::FolderExists.into())
            }
            Err(error) if is_gone(error) => Err(PartsError::Discarded.into()),
            Err(error) => Err(SinkError::os("cannot be put in place")(error)),
        }
    }

    /// Step 6, from the closed file on: which file is the output, for all who ask.
    fn choose(&self) -> Result<ChosenRecord, SinkError> {
        let closed =
            open_own(&self.folder.dir, CLOSED, OFlags::RDONLY, "its parts cannot be read")?;
        let closed = closed.ok_or(PartsError::Discarded)?;
        let file = match self.folder.may_be_written(&closed)? {
            true => self.copy(&closed).map_err(discarded_if_gone)?,
            false => CLOSED.to_owned(),
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

    /// Remove a file that this process made, and that was not chosen.
    fn remove_copy(&self, file: &str) {
        if file != CLOSED {
            let _ = unlinkat(&self.folder.dir, file, AtFlags::empty());
        }
    }

    /// Copy the closed file, blocks shared where that can be, to one that only this process has ever
    /// had open. Its name.
    fn copy(&self, closed: &File) -> Result<String, SinkError> {
        let name = random_name(COPY);
        let dir = Arc::clone(&self.folder.dir);
        let entry = FileAt { dir, name: name.clone().into(), old_mode: None };
        let options = SinkOptions { fsync: true, ..SinkOptions::default() };
        let mut sink = FileSink::at(entry, options)?;
        sink.fill_from(&CopiedRange::first(closed, self.job.len), &|_| {})?;
        Box::new(sink).commit()?;
        let copy = open_own(&self.folder.dir, &name, OFlags::RDONLY, "its parts cannot be read")?;
        mark(&copy.ok_or(PartsError::Discarded)?, &self.job)?;
        Ok(name)
    }

    /// Step 7.
    fn place(&self, file: &str) -> Result<(), SinkError> {
        // that of a folder
        if file == DATA {
            return Err(damaged(CHOSEN));
        }
        let (folder, entry) = (&self.folder.dir, &self.entry);
        let own = self.folder.file_id(file);
        let placed = if self.options.force {
            // by its name, which the file loses by being put in place
            let mode = entry.old_mode.map_or(Ok(()), |old| set_mode(&self.folder, file, old));
            mode?;
            retry_on_intr(|| renameat(folder, file, &entry.dir, &entry.name))
        } else {
            retry_on_intr(|| linkat(folder, file, &entry.dir, &entry.name, AtFlags::empty()))
        };
        match placed {
            Ok(()) => sync_parent(entry)
                .map_err(SinkError::os("is in place, but its name cannot be brought to the disk")),
            // by another run of this part, which may have removed the folder since
            Err(_) if own.is_some() && own == entry.id() => Ok(()),
            Err(_) if self.folder.is_placed(entry)? || self.is_over() => Ok(()),
            Err(Errno::EXIST) => Err(SinkError::AlreadyExists),
            Err(error) if is_gone(error) => Err(PartsError::Discarded.into()),
            Err(error) => Err(SinkError::os("cannot be put in place")(error)),
        }
    }
}

/// Give a file of the folder the permissions of the one that it replaces.
fn set_mode(folder: &Folder, file: &str, mode: Mode) -> Result<(), SinkError> {
    match chmodat(&folder.dir, file, mode, AtFlags::empty()) {
        Err(error) if !is_gone(error) => {
            Err(SinkError::os("cannot be given its permissions")(error))
        }
        _ => Ok(()),
    }
}

/// The shared file, for what stands around the elements.
struct Around {
    data: File,
    len: u64,
}

impl Sink for Around {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), SinkError> {
        end_within(offset, bytes.len() as u64, self.len)?;
        self.data.write_all_at(bytes, offset).map_err(SinkError::Io)
    }
}

impl Draft for Around {
    fn place(self: Box<Self>, _: Old) -> Result<Placed, SinkError> {
        self.data.sync_all().map_err(SinkError::os("cannot be brought to the disk"))?;
        Ok(Placed::default())
    }
}

/// Name the job in an attribute; some file systems have none. The file is not the output yet.
fn mark(file: &File, job: &JobRecord) -> Result<(), SinkError> {
    os::set_attribute(file, ATTRIBUTE, &attribute(file, job)?);
    Ok(())
}

/// The attribute of an output of that job, as long as nobody changes it.
fn attribute(file: &File, job: &JobRecord) -> Result<String, SinkError> {
    let stat = fstat(file).map_err(|error| SinkError::Io(error.into()))?;
    Ok(format!("{} {}.{:09}", job.id(), stat.st_mtime, stat.st_mtime_nsec))
}

/// Whether the file that has the output's name was put there by that job, and, if that matters, not
/// changed since.
pub(super) fn is_output_of(entry: &FileAt, job: &JobRecord, unchanged: bool) -> bool {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(file) = retry_on_intr(|| openat(&entry.dir, &entry.name, flags, Mode::empty())) else {
        return false;
    };
    let file = File::from(file);
    match os::attribute(&file, ATTRIBUTE) {
        None => false,
        Some(found) if unchanged => {
            attribute(&file, job).is_ok_and(|unchanged| found == unchanged.as_bytes())
        }
        Some(found) => found.starts_with(job.id().to_string().as_bytes()),
    }
}

/// Climb from the record of a complete part as far as all parts below are complete: the sum of all
/// records, for whoever passes the last join. `stored` is the part's own record, where it was just
/// written.
fn climb(
    folder: &Folder,
    part: Part,
    own: DoneRecord,
    mut stored: Option<Stored>,
) -> Result<Option<DoneRecord>, SinkError> {
    let mut record = own;
    // the number of the node that this process stands at, and how many parts are below each
    let (mut at, mut span) = (part.index, 1u64);
    for level in 1.. {
        if span >= part.count {
            break;
        }
        let sibling = at ^ 1;
        // the last node of a level may have no sibling
        if sibling.checked_mul(span).is_some_and(|first| first < part.count) {
            let name = format!("join.{level}.{}", at / 2);
            let file = match stored.take() {
                Some(file) => file,
                None => folder.store(&record)?,
            };
            let theirs: Option<DoneRecord> = folder.publish(&file, &name)?;
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
