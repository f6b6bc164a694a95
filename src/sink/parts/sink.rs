//! Steps 2 to 5: a part of an output as a sink, and the output put in place.

use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::folder::{
    DATA, Data, Folder, TRIES, any_output_at, damaged, failed, is_gone, output_at, part_name,
    remove_ended, sync_parent,
};
use super::{JobRecord, PartRecord, PartsError};
use crate::os;
use crate::os::fs::{AtFlags, Mode, OFlags, fstat, openat, renameat, statat};
use crate::os::io::{Errno, retry_on_intr};
use crate::os::{Advice, FileExt, FileId, advise_file, rename_to_free, settle};
use crate::sink::file::allocate;
use crate::sink::folder::Subfolders;
use crate::sink::placed::move_to_free;
use crate::sink::resolve::FileAt;
use crate::sink::rights::RightsOf;
use crate::sink::sharing::Space;
use crate::sink::zip::MemberCrcs;
use crate::sink::{
    Draft, FileTree, PlacedOutputs, Replaced, Sink, SinkError, SinkOptions, SinkResult, ZipLayout,
    end_within, ignore_sigxfsz,
};

const SYNCING: &str = "cannot be brought to the disk";

/// The extended attribute of an output written by parts: the job, and the time of the last change.
const ATTRIBUTE: &str = "user.tslice.parts";

/// A part of an output, and the job that it belongs to.
#[derive(Clone)]
pub struct PartJob {
    pub index: u64,
    /// The range of the output that the part may write.
    pub range: Range<u64>,
    pub bytes: u64,
    pub total: u64,
    pub job: JobRecord,
    /// All bytes of the output except its elements.
    pub layout: FixedLayout,
    pub options: SinkOptions,
}

/// All bytes of an output except its elements, where every offset is known beforehand.
#[derive(Clone, Debug)]
pub enum FixedLayout {
    /// Bytes at the beginning.
    Header(Arc<[u8]>),
    /// The records of an archive of stored members.
    Zip(Arc<ZipLayout>),
    /// Files of a folder, beside the files of the elements: the name and the bytes of each.
    Folder(Arc<[(String, Vec<u8>)]>),
}

pub enum Begun {
    /// The part was complete already. The output is in place, if all parts are complete.
    Complete,
    Part(Box<PartSink>),
    Folder(Box<PartFolder>),
}

/// The output that a part belongs to.
struct Shared {
    folder: Folder,
    part: PartJob,
    /// The identity of the file or folder that becomes the output.
    id: FileId,
}

/// A part that is being written. `commit` records it and, after the last part, puts the output in place. If
/// it is dropped, the part must be written again.
pub struct PartSink {
    output: Shared,
    data: File,
    /// The number of element bytes written or shared, and their CRCs, where needed.
    written: AtomicU64,
    crcs: Option<MemberCrcs>,
    space: Space,
}

/// A part of a folder that is being written; [`PartSink`] is its counterpart for a file.
pub struct PartFolder {
    output: Shared,
    data: DataFolder,
}

impl PartJob {
    /// The length of the file that parts write; `None` for a folder.
    fn len(&self) -> Option<u64> {
        (!matches!(self.layout, FixedLayout::Folder(_))).then_some(self.job.len)
    }

    /// Begin the part of the output at `path`: steps 1 and 2, and 4 and 5 for a part that is complete.
    pub fn begin(self, path: &Path) -> SinkResult<Begun> {
        ignore_sigxfsz();
        let len = self.len();
        let is_folder = len.is_none();
        let mut made = false;
        for _ in 0..TRIES {
            let entry = if is_folder { any_output_at(path)? } else { output_at(path)? };
            let is_over = is_output_of(&entry, &self.job, self.options.force);
            let Some(folder) = Folder::open(&entry)? else {
                let _ = remove_ended(&entry);
                if is_over {
                    return Ok(Begun::Complete);
                }
                check_overwrite(&entry, is_folder, self.options)?;
                Folder::make(&entry)?;
                made = true;
                continue;
            };
            let begun = match folder.job()? {
                Some(job) => job,
                None => match folder.begin(&self.job, is_folder) {
                    Err(SinkError::Parts(PartsError::Discarded)) => continue,
                    begun => begun?,
                },
            };
            if let Some(difference) = self.job.difference(&begun) {
                return Err(PartsError::OtherJob(difference).into());
            }
            let data = folder.open_data(len)?;
            let id = data.as_ref().map(|data| data.id);
            if !folder.is_named() {
                continue;
            }
            let there = entry.id();
            if is_over || there.is_some() && (id.is_none() || id == there) {
                return folder.remove().map(|()| Begun::Complete);
            }
            if let Err(error) = check_overwrite(&entry, is_folder, self.options) {
                // the output appeared while this process made a folder that is now useless
                return if made { folder.remove().and(Err(error)) } else { Err(error) };
            }
            let Data { id, file } = data.ok_or_else(|| damaged(DATA))?;
            let output = Shared { folder, part: self.clone(), id };
            if output.folder.read::<PartRecord>(&part_name(self.index))?.is_some() {
                drop(file);
                return output.unless_over(output.finish()).map(|_| Begun::Complete);
            }
            if is_folder {
                let data = DataFolder::new(file);
                return Ok(Begun::Folder(Box::new(PartFolder { output, data })));
            }
            let crcs = match &self.layout {
                FixedLayout::Zip(layout) => Some(MemberCrcs::new(layout)),
                FixedLayout::Header(_) | FixedLayout::Folder(_) => None,
            };
            let (written, space) = Default::default();
            let part = PartSink { output, data: file, written, crcs, space };
            return Ok(Begun::Part(Box::new(part)));
        }
        Err(PartsError::Discarded.into())
    }
}

/// Refuse to replace a file without `force`, and always refuse to replace a folder.
fn check_overwrite(entry: &FileAt, is_folder: bool, options: SinkOptions) -> SinkResult<()> {
    if is_folder && entry.old_mode.is_some() {
        return Err(PartsError::FolderExists.into());
    }
    entry.check_overwrite(options)
}

impl Shared {
    /// Record a part whose bytes are on the disk (the end of step 3), and do steps 4 to 6.
    fn complete(&self, record: &PartRecord) -> SinkResult<PlacedOutputs> {
        // an error if the file was cut short while the part was written
        self.folder.open_data(self.part.len())?;
        let recorded = self.folder.record(&part_name(self.part.index), record);
        self.unless_over(recorded.and_then(|()| {
            if self.folder.is_named() { self.finish() } else { Err(PartsError::Discarded.into()) }
        }))
    }

    /// The result of a step; success where the folder is gone because another run put the output in place.
    fn unless_over(&self, done: SinkResult<()>) -> SinkResult<PlacedOutputs> {
        match done {
            Err(SinkError::Parts(PartsError::Discarded)) if self.is_over() => {}
            done => done?,
        }
        Ok(PlacedOutputs::default())
    }

    /// Whether the file or folder under the output's name comes from this job.
    fn is_over(&self) -> bool {
        let entry = &self.folder.entry;
        // without attributes, the inode tells
        entry.id() == Some(self.id) || is_output_of(entry, &self.part.job, false)
    }

    /// Steps 4 to 6, where all parts are complete.
    fn finish(&self) -> SinkResult<()> {
        let PartJob { index, total, job, layout, options, .. } = &self.part;
        let Shared { folder, .. } = self;
        // parts mostly run in order: so few of them list the folder
        let next = (index + 1) % job.parts;
        if !folder.has_part(next)? || !folder.missing(job.parts)?.is_empty() {
            return Ok(());
        }
        let crcs = match layout {
            FixedLayout::Zip(layout) => Some(MemberCrcs::with_heads(layout)),
            FixedLayout::Header(_) | FixedLayout::Folder(_) => None,
        };
        let mut written = 0u64;
        for index in 0..job.parts {
            let record: Option<PartRecord> = folder.read(&part_name(index))?;
            let record = record.ok_or(PartsError::Discarded)?;
            written = written.saturating_add(record.written);
            if let Some(crcs) = &crcs {
                record.crcs.iter().for_each(|&(member, crc)| crcs.add(member, crc));
            }
        }
        if written != *total {
            return Err(SinkError::Incomplete { written, len: *total });
        }
        // opened anew, so that the bytes of other processes are visible
        let data = folder.open_data(self.part.len())?.ok_or(PartsError::Discarded)?.file;
        if let FixedLayout::Folder(files) = layout {
            let data = DataFolder::new(data);
            files.iter().try_for_each(|(name, bytes)| data.write(folder, name, bytes))?;
            data.sync()?;
            mark(&data.fd, job)?;
        } else {
            let write = |at, bytes: &[u8]| data.write_all_at(bytes, at).map_err(SinkError::Io);
            if let FixedLayout::Header(header) = layout {
                write(0, header)?;
            }
            crcs.map_or(Ok(()), |crcs| crcs.write_rest(&mut 0, &write))?;
            data.sync_all().map_err(SinkError::os(SYNCING))?;
            mark(&data, job)?;
            if options.force {
                RightsOf::replaced(&folder.entry.dir, &folder.entry.name).give(&data)?;
            }
        }
        self.place()?;
        folder.remove()
    }

    /// Step 5.
    fn place(&self) -> SinkResult<()> {
        let Folder { dir, entry } = &self.folder;
        let rename = || retry_on_intr(|| renameat(dir, DATA, &entry.dir, &entry.name));
        let is_folder = self.part.len().is_none();
        let placed = match self.part.options.force {
            // only an empty folder is replaced
            _ if is_folder => {
                rename_to_free(dir, DATA, &entry.dir, &entry.name).or_else(|_| rename())
            }
            true => rename(),
            false => move_to_free(dir, DATA, entry),
        };
        match placed {
            // placed by another run
            Err(_) if self.is_over() => Ok(()),
            Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR) if is_folder => {
                Err(PartsError::FolderExists.into())
            }
            Err(Errno::EXIST) => Err(SinkError::AlreadyExists),
            Err(error) if is_gone(error) => Err(PartsError::Discarded.into()),
            Err(error) => Err(SinkError::os("cannot be put in place")(error)),
            Ok(()) => sync_parent(entry)
                .map_err(SinkError::os("is in place, but its name cannot be brought to the disk")),
        }
    }
}

impl Sink for PartSink {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> SinkResult<()> {
        let PartJob { job, range, .. } = &self.output.part;
        end_within(offset, bytes.len() as u64, job.len)?;
        // so that a full disk is noticed at once
        self.space.make(|| allocate(&self.data, range.clone()).map(|_| ()))?;
        self.space.write(&self.data, offset, bytes).map_err(SinkError::Io)?;
        if let Some(crcs) = &self.crcs {
            crcs.add_bytes(offset, bytes)?;
        }
        self.written.fetch_add(bytes.len() as u64, Ordering::AcqRel);
        Ok(())
    }

    fn share(&self, offset: u64, file: &File, range: Range<u64>) -> Range<u64> {
        // sums need every byte
        if self.crcs.is_some() {
            return range.start..range.start;
        }
        let shared = self.space.share(&self.data, self.output.part.job.len, offset, file, range);
        self.written.fetch_add(shared.end - shared.start, Ordering::AcqRel);
        shared
    }

    fn keep_holes(&self) {
        self.space.keep_holes();
    }

    fn settle(&self, range: Range<u64>, wait: bool) -> SinkResult<()> {
        settle(&self.data, &range, wait).map_err(|error| SinkError::Io(error.into()))
    }

    fn expect(&self, range: Range<u64>) {
        advise_file(&self.data, range, Advice::WillNeed);
    }
}

impl Draft for PartSink {
    /// Steps 3 to 6.
    fn place(self: Box<Self>, _: Replaced) -> SinkResult<PlacedOutputs> {
        let PartSink { output, data, written, crcs, .. } = *self;
        let (written, len) = (written.into_inner(), output.part.bytes);
        if written != len {
            return Err(SinkError::Incomplete { written, len });
        }
        data.sync_all().map_err(SinkError::os(SYNCING))?;
        drop(data);
        let crcs = crcs.as_ref().map(MemberCrcs::sums).unwrap_or_default();
        output.complete(&PartRecord { written, crcs })
    }
}

impl FileTree for PartFolder {
    fn write(&self, name: &str, bytes: &[u8]) -> SinkResult<()> {
        self.output.unless_over(self.data.write(&self.output.folder, name, bytes)).map(|_| ())
    }

    /// Steps 3 to 6.
    fn place(self: Box<Self>) -> SinkResult<PlacedOutputs> {
        let PartFolder { output, data } = *self;
        if let Err(error) = data.sync() {
            return output.unless_over(Err(error));
        }
        output.complete(&PartRecord { written: output.part.bytes, crcs: Vec::new() })
    }
}

/// The open folder that becomes the output.
struct DataFolder {
    fd: File,
    below: Subfolders,
}

impl DataFolder {
    fn new(fd: File) -> DataFolder {
        DataFolder { fd, below: Subfolders::default() }
    }

    /// Write a file into the folder, whole and synced, unless it exists: an existing file has the same
    /// bytes. The file grows in the folder of the job, so that the output's folder never holds anything
    /// else.
    fn write(&self, folder: &Folder, name: &str, bytes: &[u8]) -> SinkResult<()> {
        const CREATING: &str = "cannot be created";
        // an existing name may not be synced yet
        self.below.make_for(&self.fd, name).map_err(|error| failed(CREATING)(error.into()))?;
        if statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW).is_ok() {
            return Ok(());
        }
        folder.write(&self.fd, name, bytes, CREATING)
    }

    /// Sync the names of the folder's files.
    fn sync(&self) -> SinkResult<()> {
        self.below.sync(&self.fd).map_err(|error| failed(SYNCING)(error.into()))
    }
}

/// Name the job in an attribute, on file systems that have attributes. The file is not the output yet.
fn mark(file: &File, job: &JobRecord) -> SinkResult<()> {
    os::set_attribute(file, ATTRIBUTE, &attribute(file, job)?);
    Ok(())
}

/// The attribute of an output of a job, valid until the file is changed.
fn attribute(file: &File, job: &JobRecord) -> SinkResult<String> {
    let stat = fstat(file).map_err(|error| SinkError::Io(error.into()))?;
    Ok(format!("{} {}.{:09}", job.id(), stat.st_mtime, stat.st_mtime_nsec))
}

/// Whether the file under the output's name comes from this job and, with `unchanged`, was not changed
/// since.
fn is_output_of(entry: &FileAt, job: &JobRecord, unchanged: bool) -> bool {
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
