//! A part of an output as a sink.

use std::fs::File;
use std::io;
use std::io::{ErrorKind, Write};
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, linkat, statat};
use rustix::io::{Errno, retry_on_intr};

use super::super::copy_file::Space;
use super::super::folder::Subfolders;
use super::super::temp_name::TempName;
use super::super::zip::MemberCrcs;
use super::super::{FileTree, ZipLayout, ZipSink, end_within};
use super::PartsError;
use super::create::{create, create_own, damaged, discarded_if_gone, is_gone, remove_leftovers};
use super::finish::{Look, SharedOutput, Unchanged, is_output_of};
use super::folder::{
    DATA, DoneRecord, Folder, JobRecord, Part, any_output_at, open_dir, output_at, part_name,
};
use super::writer::Writer;
use crate::os::{Advice, advise_file, allocate, settle};
use crate::sink::resolve::FileAt;
use crate::sink::{Draft, Old, Placed, Sink, SinkError, SinkOptions, ignore_sigxfsz};

/// A part that is being written. `commit` records it and, if it was the last one, puts the output in
/// place. Dropping it leaves the part to be written again.
pub struct PartSink {
    output: SharedOutput,
    part: Part,
    writer: Writer,
    frame: FixedFrame,
    counted: Counted,
    size: PartSize,
    space: Space,
}

/// What a part is of its output.
#[derive(Clone, Debug)]
pub struct PartSize {
    /// The range of the output that it writes within.
    pub range: Range<u64>,
    /// Bytes of elements that it writes.
    pub bytes: u64,
    /// Bytes of elements of all parts.
    pub total: u64,
}

/// What came of the beginning of a part.
pub enum Begun {
    /// The part was complete already. The output is in place, if all were.
    Complete,
    /// The part is to be written.
    Part(Box<PartSink>),
    /// The part of a folder is to be written.
    Folder(Box<PartFolder>),
}

/// How often a folder that somebody removes meanwhile is looked for again.
const TRIES: usize = 100;

impl PartSink {
    /// Begin a part of the output at `path`: steps 1 and 2, and those after 4 for a part that is
    /// complete.
    ///
    /// # Errors
    /// [`PartsError`]; [`SinkError::AlreadyExists`] for an output that exists and is not this
    /// job's; the operating system's errors.
    pub fn begin(
        path: &Path,
        part: Part,
        job: &JobRecord,
        unchanged: Unchanged,
        frame: FixedFrame,
        size: PartSize,
        options: SinkOptions,
    ) -> Result<Begun, SinkError> {
        ignore_sigxfsz();
        let (mut created, is_folder) = (false, frame.folder().is_some());
        for _ in 0..TRIES {
            let entry = if is_folder { any_output_at(path)? } else { output_at(path)? };
            let Some(folder) = Folder::open(&entry)? else {
                if is_output_of(&entry, job, options.force) {
                    remove_leftovers(&entry);
                    return Ok(Begun::Complete);
                }
                check_overwrite(&entry, is_folder, options)?;
                created = create(&entry, job, is_folder)?;
                continue;
            };
            let Some(theirs) = folder.job()? else {
                folder.remove(&entry)?;
                continue;
            };
            if let Some(difference) = job.difference(&theirs) {
                return Err(PartsError::OtherJob(difference).into());
            }
            let data = folder.data_id();
            let unchanged = Unchanged::clone(&unchanged);
            let (job, total) = (job.clone(), size.total);
            let output = SharedOutput { entry, folder, job, options, total, unchanged, data };
            if output.is_complete()? {
                output.clean()?;
                return Ok(Begun::Complete);
            }
            if let Err(error) = check_overwrite(&output.entry, is_folder, options) {
                // it came while this process made a folder that nobody can use
                return if created { output.clean().and(Err(error)) } else { Err(error) };
            }
            output.folder.check_unspoiled()?;
            let frame = frame.clone();
            if let Some(record) = output.folder.read(&part_name(part.index))? {
                output.finish(part, record, None, frame)?;
                return Ok(Begun::Complete);
            }
            if is_folder {
                // in its place, if not being discarded
                let Some(data) = DataFolder::open(&output.folder)? else { continue };
                let folder = PartFolder::new(output, part, frame, data, size.bytes);
                return Ok(Begun::Folder(Box::new(folder)));
            }
            // closed, if not being discarded: another run of this part is complete
            let Some(writer) = output.folder.open_writer()? else { continue };
            let counted = Counted::new(&frame);
            let space = Space::default();
            let sink = PartSink { output, part, writer, frame, counted, size, space };
            return Ok(Begun::Part(Box::new(sink)));
        }
        Err(PartsError::Discarded.into())
    }

    /// The error of writing; success where the file is gone because the output is in place, for which
    /// nothing is to be written any more. Only network file systems take a file from under a process.
    fn failed(&self, error: io::Error) -> Result<(), SinkError> {
        match error.kind() {
            ErrorKind::StaleNetworkFileHandle if self.output.is_over() => Ok(()),
            ErrorKind::StaleNetworkFileHandle => Err(PartsError::Discarded.into()),
            _ => Err(SinkError::Io(error)),
        }
    }
}

impl Sink for PartSink {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), SinkError> {
        end_within(offset, bytes.len() as u64, self.output.job.len)?;
        let data = self.writer.file()?;
        self.space.make(|| reserve(data, &self.size.range))?;
        data.write_all_at(bytes, offset).or_else(|error| self.failed(error))?;
        self.counted.add(offset, bytes)
    }

    fn share(&self, offset: u64, file: &File, range: Range<u64>) -> Range<u64> {
        let nothing = range.start..range.start;
        match self.writer.file() {
            Ok(data) if self.counted.takes_shared() => {
                let len = self.output.job.len;
                let shared = self.space.share(data, len, offset, file, range);
                self.counted.add_shared(shared.end - shared.start);
                shared
            }
            _ => nothing,
        }
    }

    fn settle(&self, range: Range<u64>, wait: bool) -> Result<(), SinkError> {
        let settled = settle(self.writer.file()?, &range, wait);
        settled.or_else(|error| self.failed(error.into()))
    }

    fn expect(&self, range: Range<u64>) {
        if let Ok(file) = self.writer.file() {
            advise_file(file, range, Advice::WillNeed);
        }
    }
}

impl Draft for PartSink {
    /// Steps 4 to 8.
    fn place(self: Box<Self>, _: Old) -> Result<Placed, SinkError> {
        let PartSink { output, part, writer, frame, counted, size, .. } = *self;
        let record = counted.record(part.index);
        if record.written != size.bytes {
            return Err(SinkError::Incomplete { written: record.written, len: size.bytes });
        }
        output.check_inputs(Look::Quick)?;
        match writer.close() {
            Err(error) if is_stale(&error) => {
                output.unless_placed(PartsError::Discarded.into())?;
                return Ok(Placed::default());
            }
            closed => closed?,
        }
        output.record(part, record, frame)?;
        Ok(Placed::default())
    }
}

/// Refuse to replace a file without `force`, and a folder.
fn check_overwrite(entry: &FileAt, is_folder: bool, options: SinkOptions) -> Result<(), SinkError> {
    match is_folder && entry.old_mode.is_some() {
        true => Err(PartsError::FolderExists.into()),
        false => entry.check_overwrite(options),
    }
}

/// Whether a file is gone for the server of a network file system.
fn is_stale(error: &SinkError) -> bool {
    error.io().is_some_and(|error| error.kind() == ErrorKind::StaleNetworkFileHandle)
}

/// Step 3: space for a range, so that a full disk is noticed at once.
fn reserve(data: &File, range: &Range<u64>) -> rustix::io::Result<()> {
    if range.is_empty() {
        return Ok(());
    }
    match allocate(data, range.clone()) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
        result => result,
    }
}

/// All of an output but its elements, where every byte has its place beforehand.
#[derive(Clone, Debug)]
pub enum FixedFrame {
    /// Bytes at the beginning.
    Header(Arc<[u8]>),
    /// The records of an archive of stored members.
    Zip(Arc<ZipLayout>),
    /// Files of a folder, beside those of the elements: the name and the bytes of each.
    Folder(Arc<[(String, Vec<u8>)]>),
}

impl FixedFrame {
    /// The files of an output that is a folder.
    pub(super) fn folder(&self) -> Option<&[(String, Vec<u8>)]> {
        match self {
            FixedFrame::Header(_) | FixedFrame::Zip(_) => None,
            FixedFrame::Folder(files) => Some(files),
        }
    }

    /// Write it around the elements, whose sums are those of `all`; `data` is committed.
    pub(super) fn write(self, data: Box<dyn Draft>, all: &DoneRecord) -> Result<(), SinkError> {
        match self {
            FixedFrame::Header(header) => {
                data.write_at(0, &header)?;
                data.commit()
            }
            FixedFrame::Zip(layout) => {
                let archive = ZipSink::new(data, layout)?;
                archive.count_written(&all.crcs);
                Box::new(archive).commit()
            }
            // a folder is no file
            FixedFrame::Folder(_) => Err(PartsError::NotAFile.into()),
        }
    }
}

/// What a part counts of the elements that it writes.
#[derive(Debug)]
pub(super) struct Counted {
    written: AtomicU64,
    crcs: Option<MemberCrcs>,
}

impl Counted {
    /// Nothing yet.
    pub(super) fn new(frame: &FixedFrame) -> Counted {
        let crcs = match frame {
            FixedFrame::Header(_) | FixedFrame::Folder(_) => None,
            FixedFrame::Zip(layout) => Some(MemberCrcs::new(layout)),
        };
        Counted { written: AtomicU64::new(0), crcs }
    }

    /// Count bytes that are written at a position of the output.
    pub(super) fn add(&self, offset: u64, bytes: &[u8]) -> Result<(), SinkError> {
        if let Some(crcs) = &self.crcs {
            crcs.add_bytes(offset, bytes)?;
        }
        self.written.fetch_add(bytes.len() as u64, Ordering::AcqRel);
        Ok(())
    }

    /// Whether elements need not be looked at to be counted.
    pub(super) fn takes_shared(&self) -> bool {
        self.crcs.is_none()
    }

    /// Count bytes that came without being looked at.
    pub(super) fn add_shared(&self, bytes: u64) {
        self.written.fetch_add(bytes, Ordering::AcqRel);
    }

    /// The record of part `index`.
    pub(super) fn record(&self, index: u64) -> DoneRecord {
        let written = self.written.load(Ordering::Acquire);
        let crcs = self.crcs.as_ref().map(MemberCrcs::sums).unwrap_or_default();
        DoneRecord { first: index, written, crcs }
    }
}

/// A part that is being written. `place` records it and, if it was the last one, puts the folder in place.
/// Dropping it leaves the part to be written again.
pub struct PartFolder {
    output: SharedOutput,
    part: Part,
    frame: FixedFrame,
    data: DataFolder,
    /// Bytes of elements that it writes.
    bytes: u64,
}

impl PartFolder {
    pub(super) fn new(
        output: SharedOutput,
        part: Part,
        frame: FixedFrame,
        data: DataFolder,
        bytes: u64,
    ) -> PartFolder {
        PartFolder { output, part, frame, data, bytes }
    }
}

impl FileTree for PartFolder {
    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), SinkError> {
        match self.data.write(&self.output.folder, name, bytes) {
            // the output is in place, for which nothing is to be written any more
            Err(SinkError::Parts(PartsError::Discarded)) if self.output.is_over() => Ok(()),
            written => written,
        }
    }

    /// Steps 4 to 8.
    fn place(self: Box<Self>) -> Result<Placed, SinkError> {
        let PartFolder { output, part, frame, data, bytes } = *self;
        output.check_inputs(Look::Quick)?;
        if let Err(error) = data.sync() {
            return output.unless_placed(error).map(|()| Placed::default());
        }
        drop(data);
        let record = DoneRecord { first: part.index, written: bytes, crcs: Vec::new() };
        output.record(part, record, frame)?;
        Ok(Placed::default())
    }
}

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
