//! A part of an output as a sink.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{
    FallocateFlags, Mode, OFlags, XattrFlags, fallocate, fchmod, fgetxattr, fsetxattr, fstat,
    openat,
};
use rustix::io::{Errno, retry_on_intr};

use super::error::PartsError;
use super::folder::{Folder, Stored, part_name};
use super::frame::{Counted, FixedFrame, OwnedFrame};
use super::record::{DoneRecord, JobRecord, Part};
use super::tree::climb;
use crate::sink::resolve::{FileAt, Resolved, resolve};
use crate::sink::space::Space;
use crate::sink::{Sink, SinkError, SinkOptions, WriteOrder, ignore_sigxfsz};

/// A part that is being written. `commit` records it and, if it was the last one, puts the output in
/// place. Dropping it leaves the part to be written again.
#[derive(Debug)]
pub struct PartSink {
    output: SharedOutput,
    part: Part,
    data: File,
    frame: OwnedFrame,
    counted: Counted,
    /// The range of the output that the part writes within, and its bytes of elements.
    range: Range<u64>,
    bytes: u64,
    space: Space,
}

/// What came of the beginning of a part.
#[derive(Debug)]
pub enum Begun {
    /// The part was complete already. The output is in place, if all were.
    Complete,
    /// The part is to be written.
    Part(Box<PartSink>),
}

/// The output of a job, and its folder.
#[derive(Debug)]
struct SharedOutput {
    entry: FileAt,
    folder: Folder,
    job: JobRecord,
    options: SinkOptions,
    /// Bytes of elements of all parts.
    total: u64,
}

/// The extended attribute of an output that parts wrote: the job, and the time of the last change.
const ATTRIBUTE: &str = "user.tslice.parts";

/// How often a folder that somebody removes meanwhile is looked for again.
const TRIES: usize = 100;

impl PartSink {
    /// Begin a part of the output at `path`: steps 1 and 2, and those after 4 for a part that is
    /// complete. The part writes `bytes` bytes of elements, all within `range` of the output; all
    /// parts together write `total`.
    ///
    /// # Errors
    /// [`PartsError`]; [`SinkError::AlreadyExists`] for an output that exists and is not this
    /// job's; the operating system's errors.
    pub fn begin(
        path: &Path,
        part: Part,
        job: &JobRecord,
        frame: FixedFrame<'_>,
        (range, bytes, total): (Range<u64>, u64, u64),
        options: SinkOptions,
    ) -> Result<Begun, SinkError> {
        ignore_sigxfsz();
        for _ in 0..TRIES {
            let Resolved::File(entry) = resolve(path)? else {
                return Err(PartsError::NotAFile.into());
            };
            let Some(folder) = Folder::open(&entry)? else {
                if is_output_of(&entry, job, options.force) {
                    return Ok(Begun::Complete);
                }
                entry.check_overwrite(options)?;
                Folder::create(&entry, job)?;
                continue;
            };
            let Some(theirs) = folder.job()? else {
                folder.remove(&entry)?;
                continue;
            };
            if let Some(difference) = job.difference(&theirs) {
                return Err(PartsError::OtherJob(difference).into());
            }
            let Some(data) = folder.open_data()? else {
                // placed, unless it is being discarded at this moment
                if folder.job()?.is_some() {
                    folder.remove(&entry)?;
                    return Ok(Begun::Complete);
                }
                continue;
            };
            if Folder::is_placed(&data, &entry) {
                folder.remove(&entry)?;
                return Ok(Begun::Complete);
            }
            if is_output_of(&entry, job, options.force) {
                // the folder was made when the output was not in place yet, after the job's own one
                // had been removed
                folder.remove(&entry)?;
                return Ok(Begun::Complete);
            }
            entry.check_overwrite(options)?;
            let frame = frame.into_owned();
            let output = SharedOutput { entry, folder, job: job.clone(), options, total };
            if let Some(record) = output.folder.done(part.index)? {
                output.finish(part, (record, None), frame, data)?;
                return Ok(Begun::Complete);
            }
            let counted = Counted::new(&frame);
            let space = Space::default();
            let sink = PartSink { output, part, data, frame, counted, range, bytes, space };
            return Ok(Begun::Part(Box::new(sink)));
        }
        Err(PartsError::Discarded.into())
    }
}

impl Sink for PartSink {
    fn order(&self) -> WriteOrder {
        WriteOrder::Any
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), SinkError> {
        let (count, len) = (bytes.len() as u64, self.output.job.len);
        let fits = offset.checked_add(count).is_some_and(|end| end <= len);
        if !fits {
            return Err(SinkError::OutOfBounds { offset, count, len });
        }
        self.space.make(|| reserve(&self.data, &self.range))?;
        self.data.write_all_at(bytes, offset).map_err(SinkError::Io)?;
        self.counted.add(&self.frame, offset, bytes)
    }

    fn share(&self, offset: u64, file: &File, range: Range<u64>) -> Range<u64> {
        if !self.counted.takes_shared() {
            return range.start..range.start;
        }
        let shared = self.space.share((&self.data, self.output.job.len), offset, file, range);
        self.counted.add_shared(shared.end - shared.start);
        shared
    }

    /// Steps 4 to 8.
    fn commit(self: Box<Self>) -> Result<(), SinkError> {
        let PartSink { output, part, data, frame, counted, bytes, .. } = *self;
        let record = counted.record(part.index);
        if record.written != bytes {
            return Err(SinkError::Incomplete { written: record.written, len: bytes });
        }
        data.sync_all().map_err(SinkError::os("cannot be brought to the disk"))?;
        let recorded = output.folder.store(&record).and_then(|stored| {
            // a name that is taken is that of the same record, by another run of this part
            output.folder.publish(&stored, &part_name(part.index))?;
            output.folder.sync()?;
            match output.folder.job()? {
                Some(_) => Ok(stored),
                None => Err(PartsError::Discarded.into()),
            }
        });
        match recorded {
            Ok(stored) => output.finish(part, (record, Some(stored)), frame, data),
            Err(error) => output.unless_placed(error, &data),
        }
    }
}

impl SharedOutput {
    /// Steps 5 to 8, from the record of a complete part on.
    fn finish(
        self,
        part: Part,
        record: (DoneRecord, Option<Stored>),
        frame: OwnedFrame,
        data: File,
    ) -> Result<(), SinkError> {
        match self.climb_and_place(part, record, frame) {
            Ok(true) => {
                // an NFS client would keep a name for it in the folder
                drop(data);
                self.folder.remove(&self.entry)
            }
            Ok(false) => Ok(()),
            Err(error) => self.unless_placed(error, &data),
        }
    }

    /// An error, unless it comes from the end of the job: another run of this part was the last one,
    /// put the output in place and removed the folder.
    fn unless_placed(&self, error: SinkError, data: &File) -> Result<(), SinkError> {
        let gone = matches!(error, SinkError::Parts(PartsError::Discarded));
        if gone && Folder::is_placed(data, &self.entry) {
            // this run has written to it since
            return mark(data, &self.job);
        }
        if gone && is_output_of(&self.entry, &self.job, false) { Ok(()) } else { Err(error) }
    }

    /// Steps 5 to 7: whether the output is in place now.
    fn climb_and_place(
        &self,
        part: Part,
        (record, stored): (DoneRecord, Option<Stored>),
        frame: OwnedFrame,
    ) -> Result<bool, SinkError> {
        let Some(all) = climb(&self.folder, part, record, stored)? else { return Ok(false) };
        if all.written != self.total {
            return Err(SinkError::Incomplete { written: all.written, len: self.total });
        }
        // opened anew, so that what others wrote is seen
        let open = || -> Result<File, SinkError> {
            Ok(self.folder.open_data()?.ok_or(PartsError::Discarded)?)
        };
        let data = open()?;
        if let Some(old) = self.entry.old_mode {
            fchmod(&data, old).map_err(SinkError::os("cannot be given its permissions"))?;
        }
        frame.write(Box::new(Around { data, len: self.job.len }), &all)?;
        let data = open()?;
        mark(&data, &self.job)?;
        self.folder.place(&data, &self.entry, self.options.force)?;
        Ok(true)
    }
}

/// The shared file, for what stands around the elements.
struct Around {
    data: File,
    len: u64,
}

impl Sink for Around {
    fn order(&self) -> WriteOrder {
        WriteOrder::Any
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), SinkError> {
        let (count, len) = (bytes.len() as u64, self.len);
        match offset.checked_add(count).is_some_and(|end| end <= len) {
            true => self.data.write_all_at(bytes, offset).map_err(SinkError::Io),
            false => Err(SinkError::OutOfBounds { offset, count, len }),
        }
    }

    fn commit(self: Box<Self>) -> Result<(), SinkError> {
        self.data.sync_all().map_err(SinkError::os("cannot be brought to the disk"))
    }
}

/// Step 3: space for a range, so that a full disk is noticed at once.
fn reserve(data: &File, range: &Range<u64>) -> rustix::io::Result<()> {
    if range.is_empty() {
        return Ok(());
    }
    let (start, len) = (range.start, range.end - range.start);
    match retry_on_intr(|| fallocate(data, FallocateFlags::empty(), start, len)) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
        result => result,
    }
}

/// Step 6: name the job in an attribute; some file systems have none.
fn mark(data: &File, job: &JobRecord) -> Result<(), SinkError> {
    let value = attribute(data, job)?;
    let _ = fsetxattr(data, ATTRIBUTE, value.as_bytes(), XattrFlags::empty());
    Ok(())
}

/// The attribute of an output of that job, as long as nobody changes it.
fn attribute(file: &File, job: &JobRecord) -> Result<String, SinkError> {
    let stat = fstat(file).map_err(|error| SinkError::Io(error.into()))?;
    Ok(format!("{} {}.{:09}", job.id(), stat.st_mtime, stat.st_mtime_nsec))
}

/// Whether the file that has the output's name was put there by that job, and, if that matters, not
/// changed since.
fn is_output_of(entry: &FileAt, job: &JobRecord, unchanged: bool) -> bool {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(file) = retry_on_intr(|| openat(&entry.dir, &entry.name, flags, Mode::empty())) else {
        return false;
    };
    let file = File::from(file);
    let mut value = [0; 256];
    let found = fgetxattr(&file, ATTRIBUTE, &mut value).ok().and_then(|len| value.get(..len));
    match found {
        None => false,
        Some(found) if unchanged => {
            attribute(&file, job).is_ok_and(|unchanged| found == unchanged.as_bytes())
        }
        Some(found) => found.starts_with(job.id().to_string().as_bytes()),
    }
}
