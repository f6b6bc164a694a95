//! Steps 1 to 4: a part of an output as a sink.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, OFlags, fstat, linkat, renameat, statat, unlinkat};
use rustix::io::{Errno, retry_on_intr};

use super::folder::{
    CLOSED, DATA, Folder, any_output_at, create, create_own, damaged, discarded_if_gone, open_dir,
    open_own, output_at, part_name, remove_leftovers, unless_gone,
};
use super::output::{Look, PartJob, SharedOutput, is_output_of};
use super::{DoneRecord, Fingerprint, PartsError};
use crate::os::{Advice, advise_file, boot_id, nobody_writes, settle};
use crate::sink::file::allocate;
use crate::sink::folder::Subfolders;
use crate::sink::resolve::FileAt;
use crate::sink::sharing::Space;
use crate::sink::temp_name::{TempName, random_name};
use crate::sink::zip::{MemberCrcs, WriteAt};
use crate::sink::{
    Draft, FileTree, Old, Placed, Sink, SinkError, SinkOptions, SinkResult, ZipLayout, end_within,
    ignore_sigxfsz,
};

/// How often a folder that somebody removes meanwhile is looked for again.
const TRIES: usize = 100;

const OPENING: &str = "its parts cannot be opened";

pub enum Begun {
    /// The part was complete already. The output is in place, if all were.
    Complete,
    Part(Box<PartSink>),
    /// The part of a folder is to be written.
    Folder(Box<PartFolder>),
}

/// A part that is being written. `commit` records it and, if it was the last one, puts the output in
/// place. Dropping it leaves the part to be written again.
pub struct PartSink {
    output: SharedOutput,
    writer: Writer,
    /// Bytes of elements that were written or shared, and their sums, where those are needed.
    written: AtomicU64,
    crcs: Option<MemberCrcs>,
    space: Space,
}

impl PartJob {
    /// Begin the part of the output at `path`: steps 1 and 2, and those after 4 for a part that is
    /// complete.
    pub fn begin(self, path: &Path) -> SinkResult<Begun> {
        ignore_sigxfsz();
        let is_folder = matches!(self.frame, FixedFrame::Folder(_));
        let mut created = false;
        for _ in 0..TRIES {
            let entry = if is_folder { any_output_at(path)? } else { output_at(path)? };
            let Some(folder) = Folder::open(&entry)? else {
                if is_output_of(&entry, &self.job, self.options.force) {
                    remove_leftovers(&entry);
                    return Ok(Begun::Complete);
                }
                check_overwrite(&entry, is_folder, self.options)?;
                created = create(&entry, &self.job, is_folder)?;
                continue;
            };
            let Some(theirs) = folder.job()? else {
                folder.remove(&entry)?;
                continue;
            };
            if let Some(difference) = self.job.difference(&theirs) {
                return Err(PartsError::OtherJob(difference).into());
            }
            let data = folder.data_id();
            let output = SharedOutput { entry, folder, part: self.clone(), data };
            if output.is_complete()? {
                output.clean()?;
                return Ok(Begun::Complete);
            }
            if let Err(error) = check_overwrite(&output.entry, is_folder, self.options) {
                // it came while this process made a folder that nobody can use
                return if created { output.clean().and(Err(error)) } else { Err(error) };
            }
            output.folder.check_unspoiled()?;
            if let Some(record) = output.folder.read(&part_name(self.index))? {
                output.finish(record, None)?;
                return Ok(Begun::Complete);
            }
            if is_folder {
                // in its place, if not being discarded
                let Some(data) = DataFolder::open(&output.folder)? else { continue };
                return Ok(Begun::Folder(Box::new(PartFolder { output, data })));
            }
            // closed, if not being discarded: another run of this part is complete
            let Some(writer) = output.folder.open_writer()? else { continue };
            let crcs = match &self.frame {
                FixedFrame::Header(_) | FixedFrame::Folder(_) => None,
                FixedFrame::Zip(layout) => Some(MemberCrcs::new(layout)),
            };
            let (written, space) = Default::default();
            return Ok(Begun::Part(Box::new(PartSink { output, writer, written, crcs, space })));
        }
        Err(PartsError::Discarded.into())
    }
}

/// Refuse to replace a file without `force`, and a folder.
fn check_overwrite(entry: &FileAt, is_folder: bool, options: SinkOptions) -> SinkResult<()> {
    if is_folder && entry.old_mode.is_some() {
        return Err(PartsError::FolderExists.into());
    }
    entry.check_overwrite(options)
}

impl Sink for PartSink {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> SinkResult<()> {
        let PartJob { job, range, .. } = &self.output.part;
        end_within(offset, bytes.len() as u64, job.len)?;
        let data = self.writer.file()?;
        // step 3: so that a full disk is noticed at once
        self.space.make(|| allocate(data, range.clone()).map(|_| ()))?;
        let written = self.space.write(data, offset, bytes);
        written.or_else(|error| self.output.failed_write(error))?;
        if let Some(crcs) = &self.crcs {
            crcs.add_bytes(offset, bytes)?;
        }
        self.written.fetch_add(bytes.len() as u64, Ordering::AcqRel);
        Ok(())
    }

    fn share(&self, offset: u64, file: &File, range: Range<u64>) -> Range<u64> {
        match self.writer.file() {
            // who adds up sums looks at every byte
            Ok(data) if self.crcs.is_none() => {
                let len = self.output.part.job.len;
                let shared = self.space.share(data, len, offset, file, range);
                self.written.fetch_add(shared.end - shared.start, Ordering::AcqRel);
                shared
            }
            _ => range.start..range.start,
        }
    }

    fn keep_holes(&self) {
        self.space.keep_holes();
    }

    fn settle(&self, range: Range<u64>, wait: bool) -> SinkResult<()> {
        let settled = settle(self.writer.file()?, &range, wait);
        settled.or_else(|error| self.output.failed_write(error.into()))
    }

    fn expect(&self, range: Range<u64>) {
        if let Ok(file) = self.writer.file() {
            advise_file(file, range, Advice::WillNeed);
        }
    }
}

impl Draft for PartSink {
    /// Steps 4 to 8.
    fn place(self: Box<Self>, _: Old) -> SinkResult<Placed> {
        let PartSink { output, writer, written, crcs, .. } = *self;
        let PartJob { index: first, bytes: len, .. } = output.part;
        let written = written.into_inner();
        if written != len {
            return Err(SinkError::Incomplete { written, len });
        }
        output.check_inputs(Look::Quick)?;
        match writer.close() {
            Err(error) if is_stale(&error) => {
                output.unless_over(PartsError::Discarded.into())?;
                return Ok(Placed::default());
            }
            closed => closed?,
        }
        let crcs = crcs.as_ref().map(MemberCrcs::sums).unwrap_or_default();
        output.record(DoneRecord { first, written, crcs })?;
        Ok(Placed::default())
    }
}

/// Whether a file is gone for the server of a network file system.
fn is_stale(error: &SinkError) -> bool {
    error.io().is_some_and(|error| error.kind() == ErrorKind::StaleNetworkFileHandle)
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
    /// Write it around the elements, whose sums are those of `all`.
    pub(super) fn write(&self, all: &DoneRecord, write: &WriteAt<'_>) -> SinkResult<()> {
        match self {
            FixedFrame::Header(header) => write(0, header),
            FixedFrame::Zip(layout) => {
                let crcs = MemberCrcs::with_heads(layout);
                all.crcs.iter().for_each(|&(member, crc)| crcs.add(member, crc));
                crcs.write_rest(&mut 0, write)
            }
            // a folder is no file
            FixedFrame::Folder(_) => Err(PartsError::NotAFile.into()),
        }
    }
}

/// A part that is being written. `place` records it and, if it was the last one, puts the folder in place.
/// Dropping it leaves the part to be written again.
pub struct PartFolder {
    output: SharedOutput,
    data: DataFolder,
}

impl FileTree for PartFolder {
    fn write(&self, name: &str, bytes: &[u8]) -> SinkResult<()> {
        match self.data.write(&self.output.folder, name, bytes) {
            // the output is in place, for which nothing is to be written any more
            Err(SinkError::Parts(PartsError::Discarded)) if self.output.is_over() => Ok(()),
            written => written,
        }
    }

    /// Steps 4 to 8.
    fn place(self: Box<Self>) -> SinkResult<Placed> {
        let PartFolder { output, data } = *self;
        output.check_inputs(Look::Quick)?;
        if let Err(error) = data.sync() {
            return output.unless_over(error).map(|()| Placed::default());
        }
        drop(data);
        let PartJob { index: first, bytes: written, .. } = output.part;
        output.record(DoneRecord { first, written, crcs: Vec::new() })?;
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
    pub(super) fn open(folder: &Folder) -> SinkResult<Option<DataFolder>> {
        match open_dir(&folder.dir, DATA) {
            Err(Errno::NOTDIR | Errno::LOOP) => Err(damaged(DATA)),
            opened => {
                let fd = unless_gone(opened, OPENING)?;
                Ok(fd.map(|fd| DataFolder { fd, below: Subfolders::default() }))
            }
        }
    }

    /// Put a file into it, whole and on the disk, unless it is there: whoever wrote that had the same bytes.
    /// It grows in the folder of the job, so that nothing else is ever in what becomes the output.
    pub(super) fn write(&self, folder: &Folder, name: &str, bytes: &[u8]) -> SinkResult<()> {
        self.write_new(folder, name, bytes).map_err(discarded_if_gone)
    }

    fn write_new(&self, folder: &Folder, name: &str, bytes: &[u8]) -> SinkResult<()> {
        const CREATING: &str = "cannot be created";
        // a name that is there may not be on the disk yet
        self.below.make_for(&self.fd, name).map_err(SinkError::os(CREATING))?;
        if statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW).is_ok() {
            return Ok(());
        }
        let made = TempName::create(&folder.dir, |name| create_own(&folder.dir, name));
        let (temp_name, mut file) = made.map_err(SinkError::os(CREATING))?;
        file.write_all(bytes).map_err(SinkError::Io)?;
        file.sync_all().map_err(SinkError::os("cannot be brought to the disk"))?;
        let from = temp_name.name();
        match retry_on_intr(|| linkat(&folder.dir, from, &self.fd, name, AtFlags::empty())) {
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(error) => Err(SinkError::os(CREATING)(error)),
        }
    }

    /// Bring the names of its files to the disk.
    pub(super) fn sync(&self) -> SinkResult<()> {
        let synced = self.below.sync(&self.fd);
        synced.map_err(SinkError::os("cannot be brought to the disk")).map_err(discarded_if_gone)
    }

    pub(super) fn as_file(&self) -> SinkResult<File> {
        self.fd.try_clone().map(File::from).map_err(SinkError::Io)
    }
}

// Who has `data` open to write: a marker for each of them, and the question whether any is left.

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
    pub(super) fn open_writer(&self) -> SinkResult<Option<Writer>> {
        let prefix = format!("{MARKER}{}.", self.place().unwrap_or_default());
        let marker = loop {
            let marker = random_name(&prefix);
            match create_own(&self.dir, &marker) {
                Err(Errno::EXIST) => {}
                made => break unless_gone(made, OPENING)?.map(|_| marker),
            }
        };
        let Some(marker) = marker else { return Ok(None) };
        let mut writer = Writer { dir: Arc::clone(&self.dir), marker, data: None };
        // not to read: an NFS client would read pages that others are writing, and keep them
        writer.data = open_own(&self.dir, DATA, OFlags::WRONLY, OPENING)?;
        Ok(writer.data.is_some().then_some(writer))
    }

    /// Take `data` the name by which it is opened.
    pub(super) fn close_data(&self) -> SinkResult<()> {
        match renameat(&self.dir, DATA, &self.dir, CLOSED) {
            Err(Errno::ISDIR) => Err(damaged(CLOSED)),
            // gone: renamed by another process, or by this call, whose answer was lost on its way
            closed => unless_gone(closed, "its parts cannot be closed").map(|_| ()),
        }
    }

    /// Whether somebody may still write `closed`: whether markers are left, unless all are of this
    /// machine, whose kernel says that nobody has the file open.
    pub(super) fn may_be_written(&self, closed: &File) -> SinkResult<bool> {
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
    pub(super) fn file(&self) -> SinkResult<&File> {
        self.data.as_ref().ok_or_else(|| SinkError::Io(Errno::BADF.into()))
    }

    /// Bring all that was written to the disk, close the file, and remove the marker.
    pub(super) fn close(mut self) -> SinkResult<()> {
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
