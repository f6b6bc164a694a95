//! A file that appears whole or not at all.
//!
//! 1. The path is resolved to a name in an open directory (`resolve`). An existing name is refused, unless `force` is
//!    set.
//! 2. A file without a name is opened in that directory (`O_TMPFILE`). It has the permissions of a new file, or all
//!    rights of the file that it replaces (`rights`). However the process ends, the file is gone.
//! 3. Space for all bytes is allocated (`fallocate`), so that a full disk is noticed at once. There are two exceptions
//!    (`Space`): if blocks are shared with an input, or the input has holes, space is allocated as bytes are written.
//! 4. Bytes are written by position, from any thread.
//! 5. `commit` checks that all were written. With `fsync`, and on network file systems, it waits for the disk.
//! 6. The file gets its name by `linkat`, which fails if the name was taken in the meantime.
//! 7. To replace a file, the new file gets a name beginning with `.tslice-` and is renamed over the old one.
//!    `temp_name` removes that name if a signal comes in between. Where the file is one of several outputs (`place`),
//!    the old file is preserved until all are in place (`placed`).
//! 8. With `fsync`, the directory is synced too. It is opened before 6; if syncing fails, the output stays in place and
//!    the error says so.
//!
//! On file systems without unnamed files, 2 makes a file whose name begins with `.tslice-`, and 6 renames it. Where
//! there are more files than can be open at a time, a file gets such a name after 5, and is closed.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::in_place::InPlaceFile;
use super::placed::{PlacedOutputs, Replaced, move_to_free, no_folder, open_to_sync};
use super::resolve::FileAt;
use super::rights::RightsOf;
use super::sharing::{CopiedRange, Space, copy_file};
use super::temp_name::{TempKind, TempName};
use super::{
    Draft, Sink, SinkError, SinkOptions, SinkResult, end_within, ignore_sigxfsz, sync_file,
};
use crate::os;
use crate::os::fd::AsFd;
use crate::os::fs::{
    AtFlags, Mode, OFlags, RawMode, fchmod, fstat, ftruncate, openat, renameat, statat,
};
use crate::os::io::{Errno, Result as OsResult, retry_on_intr};
use crate::os::{Advice, FileId};

#[derive(Debug)]
pub(super) struct FileSink {
    /// The file; `None` when it is parked.
    file: Option<File>,
    /// The temporary name of a parked file, and of any file on file systems without unnamed files.
    named: Option<TempName>,
    pub(super) entry: FileAt,
    options: SinkOptions,
    /// The number of bytes written or shared, and the highest end of a write.
    written: AtomicU64,
    end: AtomicU64,
    space: Space,
}

impl FileSink {
    /// Create a file: steps 1 to 3.
    pub(super) fn at(entry: FileAt, options: SinkOptions) -> SinkResult<Self> {
        Self::create(entry, options, true)
    }

    /// Create a file; a new file takes over the rights of `other`, if given.
    pub(super) fn beside(
        entry: FileAt,
        options: SinkOptions,
        other: Option<RightsOf<'_>>,
    ) -> SinkResult<Self> {
        let other = other.filter(|_| entry.old_mode.is_none());
        // nobody else may open the file before it has these rights
        let mode = if other.is_some() { Some(0o600) } else { options.mode };
        let sink = Self::create(entry, SinkOptions { mode, ..options }, true)?;
        if let (Some(other), Some(file)) = (other, &sink.file) {
            other.give(file)?;
        }
        Ok(sink)
    }

    /// Create a file. With `unnamed`, and where the file system allows it, the file has no name until it is
    /// complete.
    pub(super) fn create(entry: FileAt, options: SinkOptions, unnamed: bool) -> SinkResult<Self> {
        entry.check_overwrite(options)?;
        ignore_sigxfsz();
        let failed = SinkError::os::<io::Error>(entry.making());
        // The wanted mode is set again below, since the umask applies here. The mode here keeps the new file from
        // being readable to more people in between.
        let asked = options.mode.map(|bits| Mode::from_raw_mode((bits & 0o777) as RawMode));
        let wanted = asked.or(entry.old_mode);
        let mode = wanted.unwrap_or(Mode::from_raw_mode(0o666));
        let unnamed = unnamed.then(|| os::open_unnamed(&entry.dir, Path::new("."), mode));
        let (file, named) = match unnamed.flatten() {
            Some(file) => (file, None),
            None => {
                let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
                let make = |name: &str| retry_on_intr(|| openat(&entry.dir, name, flags, mode));
                let (named, file) = TempName::create(&entry.dir, make).map_err(&failed)?;
                (file, Some(named))
            }
        };
        if let Some(wanted) = wanted {
            fchmod(&file, wanted).map_err(SinkError::os("cannot be given its permissions"))?;
        }
        if asked.is_none() && entry.old_mode.is_some() {
            RightsOf::replaced(&entry.dir, &entry.name).give(&file)?;
        }
        let (written, end, space) = Default::default();
        let file = Some(file.into());
        let sink = Self { file, named, entry, options, written, end, space };
        if !options.shares {
            sink.make_room()?;
        }
        Ok(sink)
    }

    fn make_room(&self) -> SinkResult<()> {
        let Some(len) = self.options.len else { return Ok(()) };
        let file = self.file().map_err(SinkError::Io)?;
        self.space.make(|| reserve(file, len))
    }

    /// Steps 3 and 4: copy a range of another file. Bytes before the range, and changes, are written through the
    /// returned [`InPlaceFile`] and don't change the count of written bytes.
    pub(super) fn fill_from(
        &mut self,
        original: &CopiedRange<'_>,
        copied: &dyn Fn(u64),
    ) -> SinkResult<InPlaceFile> {
        let len = original.len();
        let named = self.named.as_ref().filter(|_| original.is_from_the_start());
        let clone = named.and_then(|it| os::clone_over(original.file, it.dir(), it.name()).ok());
        let is_whole = match clone.map(File::from) {
            Some(clone) => {
                let clone = self.file.insert(clone);
                RightsOf::replaced(&self.entry.dir, &self.entry.name).give(&*clone)?;
                clone.metadata().map_err(SinkError::Io)?.len() == len
            }
            None => false,
        };
        if !is_whole {
            copy_file(original, self.file().map_err(SinkError::Io)?, copied)?;
        }
        self.options.len = Some(len);
        self.written = len.into();
        self.end = len.into();
        self.patch()
    }

    /// Open the file to change written bytes; the count of written bytes stays.
    pub(super) fn patch(&self) -> SinkResult<InPlaceFile> {
        InPlaceFile::new(self.file().and_then(File::try_clone).map_err(SinkError::Io)?)
    }

    /// Steps 5 to 8, under a name of the same file system that may differ from the first one.
    pub(super) fn commit_as(mut self, entry: &FileAt) -> SinkResult<()> {
        self.seal()?;
        self.put(entry, Replaced::Removed)?.keep()
    }

    /// Steps 6 and 7.
    fn put(self, entry: &FileAt, replaced: Replaced) -> SinkResult<PlacedOutputs> {
        // Opened before anything is put in place, so that a folder without read permission fails here and not
        // afterwards.
        let dir = open_to_sync(&entry.dir, self.options)?;
        let force = self.options.force;
        let placed = self.name(entry, replaced);
        let mut placed = placed.map_err(|error| match Errno::from_io_error(&error) {
            Some(Errno::EXIST) if !force => SinkError::AlreadyExists,
            _ => SinkError::os("cannot be put in place")(error),
        })?;
        if let Some(dir) = dir {
            placed.sync_later(Arc::clone(&entry.dir), dir);
        }
        Ok(placed)
    }

    fn name(mut self, entry: &FileAt, replaced: Replaced) -> io::Result<PlacedOutputs> {
        let force = self.options.force;
        let id = match (replaced, &self.named) {
            (Replaced::Removed, _) => None,
            (Replaced::Saved, Some(named)) => {
                Some(statat(named.dir(), named.name(), AtFlags::SYMLINK_NOFOLLOW)?)
            }
            (Replaced::Saved, None) => Some(fstat(self.file()?)?),
        };
        if entry.old_mode.is_none() || !force {
            let named = match &self.named {
                Some(named) => named.persist(|dir, name| move_to_free(dir, name, entry)),
                None => {
                    os::link_unnamed(self.file()?, &entry.dir, &entry.name).map_err(io::Error::from)
                }
            };
            match named {
                // A file was created after step 1; replace it like any other.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && force => {}
                Err(error) => return Err(error),
                Ok(()) => {
                    let placed =
                        |id| PlacedOutputs::new(entry.clone(), FileId::any(&id), TempKind::File);
                    return Ok(id.map(placed).unwrap_or_default());
                }
            }
        }
        self.give_temp_name()?;
        let temp_name = self.named.take().ok_or(Errno::BADF)?;
        match replaced {
            Replaced::Saved => PlacedOutputs::replace(temp_name, entry.clone(), no_folder, None),
            Replaced::Removed => {
                temp_name.persist(|dir, name| renameat(dir, name, &entry.dir, &entry.name))?;
                Ok(PlacedOutputs::default())
            }
        }
    }

    fn give_temp_name(&mut self) -> io::Result<()> {
        if self.named.is_none() {
            let file = self.file()?;
            let link = |name: &str| os::link_unnamed(file, &self.entry.dir, name);
            let (named, ()) = TempName::create(&self.entry.dir, link)?;
            self.named = Some(named);
        }
        Ok(())
    }

    fn file(&self) -> io::Result<&File> {
        self.file.as_ref().ok_or_else(|| Errno::BADF.into())
    }

    pub(super) fn temp_name(&self) -> Option<&str> {
        self.named.as_ref().map(TempName::name)
    }

    /// Step 5: all bytes were written.
    pub(super) fn check_complete(&self) -> SinkResult<()> {
        let written = self.written.load(Ordering::Acquire);
        let len = self.options.len.unwrap_or(self.end.load(Ordering::Acquire));
        if written == len { Ok(()) } else { Err(SinkError::Incomplete { written, len }) }
    }
}

impl Sink for FileSink {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> SinkResult<()> {
        let count = bytes.len() as u64;
        let len = self.options.len.unwrap_or(i64::MAX as u64);
        let end = end_within(offset, count, len)?;
        self.make_room()?;
        // Continues after signals and short writes.
        self.file()
            .and_then(|file| self.space.write(file, offset, bytes))
            .map_err(SinkError::Io)?;
        self.written.fetch_add(count, Ordering::AcqRel);
        self.end.fetch_max(end, Ordering::AcqRel);
        Ok(())
    }

    fn share(&self, offset: u64, file: &File, range: Range<u64>) -> Range<u64> {
        let (Some(len), Some(own)) = (self.options.len, &self.file) else {
            return range.start..range.start;
        };
        let shared = self.space.share(own, len, offset, file, range);
        self.written.fetch_add(shared.end - shared.start, Ordering::AcqRel);
        shared
    }

    fn keep_holes(&self) {
        if self.options.len.is_some() {
            self.space.keep_holes();
        }
    }

    fn settle(&self, range: Range<u64>, wait: bool) -> SinkResult<()> {
        let file = self.file().map_err(SinkError::Io)?;
        os::settle(file, &range, wait).map_err(|error| SinkError::Io(error.into()))
    }

    fn expect(&self, range: Range<u64>) {
        if let Ok(file) = self.file() {
            os::advise_file(file, range, Advice::WillNeed);
        }
    }
}

impl Draft for FileSink {
    /// Step 5.
    fn seal(&mut self) -> SinkResult<()> {
        self.check_complete()?;
        let Some(file) = &self.file else { return Ok(()) };
        if let (true, Some(len)) = (self.space.keeps_holes(), self.options.len) {
            // a file may end with a hole
            file.set_len(len).map_err(SinkError::Io)?;
        }
        sync_file(file, self.options.fsync)
    }

    fn park(&mut self) -> SinkResult<()> {
        self.give_temp_name().map_err(SinkError::os("cannot be put in place"))?;
        self.file = None;
        Ok(())
    }

    fn place(self: Box<Self>, replaced: Replaced) -> SinkResult<PlacedOutputs> {
        let entry = self.entry.clone();
        self.put(&entry, replaced)
    }
}

/// Step 3. File systems that allocate nothing get a sparse file of the right length.
pub(super) fn reserve(file: impl AsFd, len: u64) -> OsResult<()> {
    if allocate(&file, 0..len)? { Ok(()) } else { retry_on_intr(|| ftruncate(&file, len)) }
}

/// Allocate a range of a file; returns false where the file system allocates nothing.
pub(super) fn allocate(file: impl AsFd, range: Range<u64>) -> OsResult<bool> {
    if range.is_empty() {
        return Ok(true);
    }
    match os::allocate(file, range) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(false),
        result => result.map(|()| true),
    }
}
